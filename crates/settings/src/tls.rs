//! Where TLS is spoken.

use crate::endpoint::Endpoint;
use crate::settings::Settings;

impl Settings {
    /// Where to listen for the Redis protocol over TLS: `tls-port` of every address of `bind`.
    pub fn resp_tls(&self) -> Vec<Endpoint> {
        let port = self.tls_port();
        if port == 0 {
            return Vec::new();
        }
        let bind = self.bind();
        bind.split_ascii_whitespace().map(|host| Endpoint::from_bind_word(host, port)).collect()
    }

    /// Whether any listener speaks TLS.
    pub fn has_tls(&self) -> bool {
        let others = [self.iproto_tls(), self.memcached_tls(), self.http_tls()];
        self.tls_port() != 0 || others.iter().any(|endpoints| !endpoints.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::format_list;

    #[test]
    fn the_port_is_one_of_every_address() {
        let settings = Settings::new();
        assert!(settings.resp_tls().is_empty() && !settings.has_tls());
        let pairs = [("tls-port", "7"), ("bind", "* -::1"), ("port", "0")];
        settings.set_many_with(&pairs, |_, _| Ok(())).unwrap();
        assert_eq!(format_list(&settings.resp_tls()), "*:7 -[::1]:7");
        assert!(settings.resp().is_empty() && settings.has_tls());
    }

    #[test]
    fn to_name_a_file_again_is_a_change() {
        let settings = Settings::new();
        let set = |name: &str, value: &str| {
            settings.set_many_with(&[(name, value)], |_, _| Ok(())).unwrap()
        };
        assert_eq!(set("tls-cert-file", "/a"), ["tls-cert-file"]);
        assert_eq!(set("TLS-CERT-FILE", "/a"), ["tls-cert-file"]);
        assert_eq!(set("tls-protocols", "TLSv1.3"), ["tls-protocols"]);
        assert!(set("tls-protocols", "TLSv1.3").is_empty());
    }
}
