//! TLS with generated certificates: served, mutual, renewed.

use std::path::{Path, PathBuf};

use admission_worker::{Limits, ServeOptions, Serving, TlsFiles};
use rcgen::{BasicConstraints, CertificateParams, CertifiedKey, IsCa, KeyPair};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

use crate::client::{Client, SERVING, soon, until};
use crate::workers::{Gate, worker};

/// A folder of one test, removed with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("rust-sdk-tls-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn files(&self, client_ca: bool) -> TlsFiles {
        let at = |name: &str| self.0.join(name);
        TlsFiles { certificate: at("cert"), key: at("key"), client_ca: client_ca.then(|| at("ca")) }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn authority() -> CertifiedKey {
    let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key_pair = KeyPair::generate().unwrap();
    CertifiedKey { cert: params.self_signed(&key_pair).unwrap(), key_pair }
}

/// An authority's certificate for localhost: its PEM and its key's.
fn issued(by: &CertifiedKey) -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    (params.signed_by(&key, &by.cert, &by.key_pair).unwrap().pem(), key.serialize_pem())
}

fn write(folder: &Folder, (certificate, key): &(String, String), client_ca: &CertifiedKey) {
    let put = |name: &str, content: &str| std::fs::write(Path::new(&folder.0).join(name), content).unwrap();
    put("cert", certificate);
    put("key", key);
    put("ca", &client_ca.cert.pem());
}

async fn serving(files: TlsFiles) -> Serving {
    let options = ServeOptions { limits: Limits::default(), tls: Some(files) };
    worker(&Gate::default()).serve("127.0.0.1:0", options).await.unwrap()
}

/// A channel that trusts an authority, with an optional client certificate.
async fn dial(address: &str, trusts: &CertifiedKey, shows: Option<(String, String)>) -> Option<Channel> {
    let mut tls =
        ClientTlsConfig::new().ca_certificate(Certificate::from_pem(trusts.cert.pem())).domain_name("localhost");
    if let Some((certificate, key)) = shows {
        tls = tls.identity(Identity::from_pem(certificate, key));
    }
    let endpoint = Endpoint::from_shared(format!("https://{address}")).unwrap().tls_config(tls).unwrap();
    soon(endpoint.connect()).await.ok()
}

/// Whether a client is served.
async fn is_served(address: &str, trusts: &CertifiedKey, shows: Option<(String, String)>) -> bool {
    let Some(channel) = dial(address, trusts, shows).await else { return false };
    Client(channel).health("").await.is_ok_and(|status| status == SERVING)
}

/// The worker serves clients that trust the authority; no others, and none without TLS.
#[tokio::test]
async fn a_worker_serves_tls() {
    let (ours, other, folder) = (authority(), authority(), Folder::new("serves"));
    write(&folder, &issued(&ours), &ours);
    let serving = serving(folder.files(false)).await;
    assert!(is_served(serving.address(), &ours, None).await);
    assert!(!is_served(serving.address(), &other, None).await);
    let plain = Endpoint::from_shared(format!("http://{}", serving.address())).unwrap().connect_lazy();
    assert!(Client(plain).health("").await.is_err());
}

/// With client authorities, only clients with their certificates are served.
#[tokio::test]
async fn mutual_tls_serves_only_known_clients() {
    let (ours, clients, other, folder) = (authority(), authority(), authority(), Folder::new("mutual"));
    write(&folder, &issued(&ours), &clients);
    let serving = serving(folder.files(true)).await;
    assert!(is_served(serving.address(), &ours, Some(issued(&clients))).await);
    assert!(!is_served(serving.address(), &ours, Some(issued(&other))).await);
    assert!(!is_served(serving.address(), &ours, None).await);
}

/// New files are used without a restart; invalid ones are ignored, and the previous certificate stays.
#[tokio::test]
async fn certificates_are_read_again() {
    let (old, new, folder) = (authority(), authority(), Folder::new("again"));
    write(&folder, &issued(&old), &old);
    let serving = serving(folder.files(false)).await;
    let address = serving.address().to_owned();
    std::fs::write(folder.0.join("cert"), "no certificate").unwrap();
    assert!(is_served(&address, &old, None).await);
    write(&folder, &issued(&new), &new);
    until(|| is_served(&address, &new, None)).await;
    assert!(!is_served(&address, &old, None).await);
}

/// A certificate that cannot be used at startup is an error of one line that names its file.
#[tokio::test]
async fn invalid_certificates_are_errors() {
    let (ours, folder) = (authority(), Folder::new("unusable"));
    for (name, content, part) in [
        ("cert", "nothing", "cert: must hold certificates in PEM"),
        ("key", "nothing", "key: must hold a private key in PEM"),
        ("ca", "nothing", "ca: must hold certificates in PEM"),
        ("key", issued(&ours).1.as_str(), "key: "),
    ] {
        write(&folder, &issued(&ours), &ours);
        std::fs::write(folder.0.join(name), content).unwrap();
        let options = ServeOptions { limits: Limits::default(), tls: Some(folder.files(true)) };
        let error = worker(&Gate::default()).serve("127.0.0.1:0", options).await.unwrap_err().to_string();
        assert!(error.contains(part) && !error.contains('\n'), "{error}");
    }
}
