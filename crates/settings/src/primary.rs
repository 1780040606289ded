//! The server that a replica follows, as `HOST PORT`.

/// A name of DNS has no more.
const HOST_BYTES_MAX: usize = 253;

/// Where the server is that a replica follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Primary {
    /// A name or an address.
    pub host: String,
    /// Its port.
    pub port: u16,
}

impl Primary {
    /// Reads `HOST PORT`.
    pub fn of(text: &str) -> Option<Primary> {
        let mut words = text.split_ascii_whitespace();
        let (host, port) = (words.next()?, words.next()?.parse().ok()?);
        let is_whole = words.next().is_none() && host.len() <= HOST_BYTES_MAX && port != 0;
        is_whole.then(|| Primary { host: host.to_owned(), port })
    }
}

impl std::fmt::Display for Primary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_and_a_port_are_read_and_nothing_else() {
        for (text, read) in [
            ("10.0.0.1 6379", Some("10.0.0.1 6379")),
            ("  db.example   7 ", Some("db.example 7")),
            ("::1 65535", Some("::1 65535")),
            ("a", None),
            ("a 0", None),
            ("a 65536", None),
            ("a 1 b", None),
            ("", None),
        ] {
            let primary = Primary::of(text).map(|primary| primary.to_string());
            assert_eq!(primary.as_deref(), read, "{text:?}");
        }
        assert_eq!(Primary::of(&format!("{} 1", "h".repeat(254))), None);
    }
}
