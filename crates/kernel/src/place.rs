//! Where a node is reached.

/// Where clients reach a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// A name or an address.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl Place {
    /// That of `HOST:PORT`; an IPv6 address is in brackets there.
    pub fn of(address: &str) -> Place {
        let (host, port) = address.rsplit_once(':').unwrap_or((address, ""));
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        Place { host: bare.unwrap_or(host).to_owned(), port: port.parse().unwrap_or(0) }
    }
}
