//! Where a server listens: `127.0.0.1:6379`, `[::1]:6379`, `unix:/run/ladon.sock`.

use std::fmt;
use std::path::PathBuf;

/// One address to listen on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// A TCP port on one address.
    Tcp {
        /// A host name or address without brackets; `*` and `::*` mean every address.
        host: String,
        /// Port, never zero.
        port: u16,
        /// Written with a leading `-`: not an error when this machine has no such address.
        optional: bool,
    },
    /// A unix socket.
    Unix(PathBuf),
}

impl Endpoint {
    /// Reads one endpoint. The error says what is wrong with it.
    pub fn parse(text: &str) -> Result<Endpoint, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            return match path {
                "" => Err("a unix socket needs a path: unix:/run/ladon.sock".to_owned()),
                path => Ok(Endpoint::Unix(path.into())),
            };
        }
        let malformed = || format!("'{text}' is no address; write HOST:PORT or unix:PATH");
        let (host, port) = text.rsplit_once(':').ok_or_else(malformed)?;
        let port = port.parse::<u16>().ok().filter(|&port| port != 0).ok_or_else(malformed)?;
        let optional = host.starts_with('-');
        let host = host.strip_prefix('-').unwrap_or(host);
        let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        if host.is_empty() || bracketed.is_none() && host.contains(':') {
            return Err(malformed());
        }
        let host = bracketed.unwrap_or(host).to_owned();
        Ok(Endpoint::Tcp { host, port, optional })
    }

    /// The host as `bind` writes it: no brackets, `-` in front if optional; `None` for a unix
    /// socket.
    pub(crate) fn bind_word(&self) -> Option<String> {
        match self {
            Endpoint::Tcp { host, optional, .. } => {
                Some(format!("{}{host}", if *optional { "-" } else { "" }))
            }
            Endpoint::Unix(_) => None,
        }
    }

    /// The inverse of [`Endpoint::bind_word`].
    pub(crate) fn from_bind_word(word: &str, port: u16) -> Endpoint {
        let host = word.strip_prefix('-').unwrap_or(word);
        Endpoint::Tcp { host: host.to_owned(), port, optional: word.starts_with('-') }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Tcp { host, port, optional } => {
                let dash = if *optional { "-" } else { "" };
                match host.contains(':') {
                    true => write!(f, "{dash}[{host}]:{port}"),
                    false => write!(f, "{dash}{host}:{port}"),
                }
            }
            Endpoint::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Reads endpoints that commas or spaces separate; the empty text and `off` are none.
pub fn parse_list(text: &str) -> Result<Vec<Endpoint>, String> {
    if text == "off" {
        return Ok(Vec::new());
    }
    let words = text.split([',', ' ']).filter(|word| !word.is_empty());
    words.map(Endpoint::parse).collect()
}

/// The inverse of [`parse_list`].
pub fn format_list(endpoints: &[Endpoint]) -> String {
    endpoints.iter().map(Endpoint::to_string).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_read_back() {
        let text = "127.0.0.1:6379 -[::1]:6379 *:7 localhost:8 unix:/tmp/x.sock";
        assert_eq!(format_list(&parse_list(text).unwrap()), text);
        assert_eq!(parse_list(&text.replace(' ', ",")), parse_list(text));
        assert_eq!((parse_list("off"), parse_list("")), (Ok(Vec::new()), Ok(Vec::new())));
    }

    #[test]
    fn malformed_endpoints_are_refused() {
        for bad in ["6379", ":6379", "host:", "host:0", "host:65536", "::1:6379", "unix:"] {
            assert!(Endpoint::parse(bad).is_err(), "{bad}");
        }
    }
}
