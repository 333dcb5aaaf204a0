//! Listening sockets, with one-line errors.
//!
//! A killed worker leaves the file of its Unix socket. So the worker first connects to an existing socket, and removes its
//! file only if no process listens on it.

use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener, UnixStream};

use crate::address::Address;

/// An error of the operator: the worker cannot be served with these options. The message is one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServeError(pub(crate) String);

impl std::fmt::Display for ServeError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for ServeError {}

/// A TCP or Unix connection, with or without TLS.
pub(crate) trait Connection: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Connection for T {}

/// A listening socket. A Unix socket's file is removed with it.
pub(crate) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, OwnFile),
}

/// A file that is removed when this is dropped.
pub(crate) struct OwnFile(PathBuf);

impl Drop for OwnFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Listener {
    /// Listens, and returns the target for a gRPC client; port 0 is replaced by the port that the system chose.
    pub(crate) async fn bind(address: &Address) -> Result<(Self, Address), ServeError> {
        let cannot = |reason: String| ServeError(format!("cannot listen on {address}: {reason}"));
        match address {
            Address::Unix(path) => {
                make_free(path).await.map_err(cannot)?;
                let listener = UnixListener::bind(path).map_err(|error| cannot(reason_of(path, &error)))?;
                Ok((Self::Unix(listener, OwnFile(path.clone())), address.clone()))
            }
            Address::Tcp { host, port } => {
                let listener =
                    TcpListener::bind((host.as_str(), *port)).await.map_err(|error| cannot(error.to_string()))?;
                let port = listener.local_addr().map_err(|error| cannot(error.to_string()))?.port();
                Ok((Self::Tcp(listener), Address::Tcp { host: host.clone(), port }))
            }
        }
    }

    /// The next connection, and its peer's address for the log.
    pub(crate) async fn accept(&self) -> io::Result<(Box<dyn Connection>, Arc<str>)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                stream.set_nodelay(true)?;
                Ok((Box::new(stream), peer.to_string().into()))
            }
            Self::Unix(listener, file) => {
                let (stream, _) = listener.accept().await?;
                Ok((Box::new(stream), format!("unix:{}", file.0.display()).into()))
            }
        }
    }
}

/// Removes the file of a Unix socket on which no process listens.
async fn make_free(path: &Path) -> Result<(), String> {
    let found = match std::fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error.to_string()),
    };
    if !found.file_type().is_socket() {
        return Err("the file is no socket; remove it or choose another path".to_owned());
    }
    // A process that does not accept, or refuses permission, counts as listening.
    match UnixStream::connect(path).await {
        Err(error) if matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound) => {}
        _ => return Err("another process listens there; stop it or choose another path".to_owned()),
    }
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(format!("its old file cannot be removed: {error}"))
        }
        _ => Ok(()),
    }
}

fn reason_of(path: &Path, error: &io::Error) -> String {
    match (error.kind(), path.parent()) {
        (io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied | io::ErrorKind::NotADirectory, Some(parent)) => {
            let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
            format!("{} is no directory that can be written to", parent.display())
        }
        _ => error.to_string(),
    }
}
