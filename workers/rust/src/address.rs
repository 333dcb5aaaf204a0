//! The addresses on which a worker can listen: `HOST:PORT`, `[IPv6]:PORT`, `unix:PATH` or `unix:///ABSOLUTE`.

use std::fmt::{self, Display, Formatter};
use std::path::PathBuf;
use std::str::FromStr;

/// The longest path of a Unix socket on Linux: `sun_path` has 108 bytes, the last of which is NUL (unix(7)).
const SUN_PATH_BYTES: usize = 107;

/// An address to listen on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Address {
    Unix(PathBuf),
    /// Port 0: any free port.
    Tcp {
        host: String,
        port: u16,
    },
}

/// As gRPC writes it: `unix:PATH` or `HOST:PORT`.
impl Display for Address {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(out, "unix:{}", path.display()),
            Self::Tcp { host, port } if host.contains(':') => write!(out, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(out, "{host}:{port}"),
        }
    }
}

impl FromStr for Address {
    type Err = String;

    /// Parses an address. A leading `dns:///`, which gRPC clients need, is removed, so that a client's target can be used
    /// as it is.
    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix("unix:") {
            Some(path) => unix(path, text),
            None => tcp(text.strip_prefix("dns:///").unwrap_or(text), text),
        }
    }
}

fn unix(path: &str, text: &str) -> Result<Address, String> {
    let path = match path.strip_prefix("//") {
        Some(absolute) if absolute.starts_with('/') => absolute,
        Some(_) => {
            return Err(format!(
                "{text:?}: unix:// must be followed by an absolute path, as in unix:///run/worker.sock"
            ));
        }
        None => path,
    };
    let size = path.len();
    if size == 0 || size > SUN_PATH_BYTES {
        return Err(format!(
            "{text:?}: the path of a Unix socket has 1 to {SUN_PATH_BYTES} bytes, this one has {size}"
        ));
    }
    Ok(Address::Unix(path.into()))
}

fn tcp(place: &str, text: &str) -> Result<Address, String> {
    let wrong = || format!("{text:?}: must be HOST:PORT, [IPv6]:PORT or unix:PATH, such as 127.0.0.1:50051");
    let (host, port) = place.rsplit_once(':').ok_or_else(wrong)?;
    let host = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(inner) => inner,
        None if host.contains(':') => {
            return Err(format!("{text:?}: an IPv6 address is written in brackets, as in [::1]:50051"));
        }
        None => host,
    };
    let port = port.parse().ok().filter(|_| port.bytes().all(|digit| digit.is_ascii_digit())).ok_or_else(wrong)?;
    if host.is_empty() || host.contains('/') {
        return Err(wrong());
    }
    Ok(Address::Tcp { host: host.to_owned(), port })
}
