//! TLS 1.2 and newer: the worker's certificate, and optionally the authorities of client certificates.
//!
//! The files are polled and read again when they change, so that a renewed certificate needs no restart. Files that cannot
//! be used are logged once, and the previous certificate stays in use. Open connections keep their certificate.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use crate::listening::ServeError;

/// Between two polls of the files: reading three files of a few KB a second is cheap, and a certificate is renewed hours
/// before it expires.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// For a handshake: two round trips and a signature. A slower client is disconnected.
pub(crate) const HANDSHAKE: Duration = Duration::from_secs(10);

/// The files of a worker that serves TLS, in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, followed by its intermediate authorities.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// The authorities of client certificates; only their clients are served. None: all clients are served.
    pub client_ca: Option<PathBuf>,
}

/// The contents of the files, as they were read.
#[derive(PartialEq, Eq)]
struct Contents {
    certificate: Vec<u8>,
    key: Vec<u8>,
    client_ca: Option<Vec<u8>>,
}

/// The configuration that new connections get.
pub(crate) struct Tls {
    files: TlsFiles,
    current: Mutex<Arc<ServerConfig>>,
    seen: Mutex<Option<Contents>>,
}

impl Tls {
    /// Reads the files; an error if they cannot be used.
    pub(crate) fn read(files: TlsFiles) -> Result<Arc<Self>, ServeError> {
        let contents = Contents::read(&files).map_err(ServeError)?;
        let config = contents.config(&files).map_err(ServeError)?;
        Ok(Arc::new(Self { files, current: Mutex::new(config), seen: Mutex::new(Some(contents)) }))
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        TlsAcceptor::from(Arc::clone(&current))
    }

    /// Polls the files for ever.
    pub(crate) async fn watch(self: Arc<Self>) {
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            let tls = Arc::clone(&self);
            let _ = tokio::task::spawn_blocking(move || tls.poll()).await;
        }
    }

    fn poll(&self) {
        let contents = Contents::read(&self.files);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        match contents {
            Ok(contents) if seen.as_ref() == Some(&contents) => {}
            Ok(contents) => {
                match contents.config(&self.files) {
                    Ok(config) => {
                        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = config;
                        tracing::info!("the certificate in {} was read again", self.files.certificate.display());
                    }
                    Err(error) => tracing::error!("{error}; the previous certificate stays in use"),
                }
                *seen = Some(contents);
            }
            Err(error) => {
                if seen.take().is_some() {
                    tracing::error!("{error}; the previous certificate stays in use");
                }
            }
        }
    }
}

impl Contents {
    fn read(files: &TlsFiles) -> Result<Self, String> {
        let read = |path: &Path| std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
        Ok(Self {
            certificate: read(&files.certificate)?,
            key: read(&files.key)?,
            client_ca: files.client_ca.as_deref().map(read).transpose()?,
        })
    }

    fn config(&self, files: &TlsFiles) -> Result<Arc<ServerConfig>, String> {
        let chain = certificates(&self.certificate, &files.certificate)?;
        let key = PrivateKeyDer::from_pem_slice(&self.key)
            .map_err(|_| format!("{}: must hold a private key in PEM that is not encrypted", files.key.display()))?;
        let provider = Arc::new(ring::default_provider());
        let versions = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let verified = match (&self.client_ca, &files.client_ca) {
            (Some(content), Some(path)) => {
                let mut roots = RootCertStore::empty();
                for certificate in certificates(content, path)? {
                    roots.add(certificate).map_err(|error| format!("{}: {error}", path.display()))?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                    .build()
                    .map_err(|error| format!("{}: {error}", path.display()))?;
                versions.with_client_cert_verifier(verifier)
            }
            _ => versions.with_no_client_auth(),
        };
        let mut config = verified
            .with_single_cert(chain, key)
            .map_err(|error| format!("{} and {}: {error}", files.certificate.display(), files.key.display()))?;
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(Arc::new(config))
    }
}

fn certificates(content: &[u8], path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let wrong = || format!("{}: must hold certificates in PEM", path.display());
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(content).collect();
    found.ok().filter(|found| !found.is_empty()).ok_or_else(wrong)
}
