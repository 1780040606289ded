//! What a browser may be made to do by the pages of others.
//!
//! A page may send requests to any address that its reader's machine reaches. So what a browser marks
//! as another site's is refused, unless the setting names the site. A page may also give its own name
//! the address of a server here (DNS rebinding); then everything looks like the same site. So who
//! shows no credentials has to address the server by an address, a name of one word, or a name that
//! the setting knows.

use super::head::{Headers, Refused};
use std::net::IpAddr;

/// The sites of the setting `http-cors-origins`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sites {
    all: bool,
    origins: Vec<String>,
}

impl Sites {
    /// `*`, or origins (`https://shop.example`) with blanks between them.
    pub fn parse(text: &str) -> Sites {
        let words = text.split_ascii_whitespace();
        let origins: Vec<String> = words.map(str::to_ascii_lowercase).collect();
        Sites { all: origins.iter().any(|origin| origin == "*"), origins }
    }

    fn has(&self, origin: &str) -> bool {
        self.all || self.origins.contains(&origin.to_ascii_lowercase())
    }

    /// Whether one of the sites has this name and port.
    fn has_host(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        let hosts = self.origins.iter().filter_map(|origin| origin.split_once("://"));
        self.all || hosts.into_iter().any(|(_, of_origin)| of_origin == host)
    }

    /// Decides about a request. Returns the origin to be named in the answer, so that its page may
    /// read it.
    ///
    /// # Errors
    /// If a page may be behind it that has no business here.
    pub fn check(
        &self,
        headers: &Headers,
        has_credentials: bool,
    ) -> Result<Option<Box<str>>, Refused> {
        let host = headers.host.as_deref().unwrap_or_default();
        let refused = |why: String| Err(Refused::new(403, why));
        if let Some(origin) = headers.origin.as_deref() {
            if self.has(origin) {
                return Ok(Some(if self.all { "*".into() } else { origin.into() }));
            }
            let of_origin = origin.split_once("://").map(|(_, host)| host);
            if of_origin.is_none_or(|of_origin| !of_origin.eq_ignore_ascii_case(host)) {
                return refused(format!(
                    "the origin {} may not ask here; the setting http-cors-origins names those \
                     that may",
                    origin.escape_debug()
                ));
            }
        } else if let Some(site) = headers.sec_fetch_site.as_deref()
            && !matches!(site, "same-origin" | "none")
        {
            return refused(
                "a page of another site may not ask here; the setting http-cors-origins names \
                 those that may"
                    .to_owned(),
            );
        }
        if !has_credentials && !host.is_empty() && !is_own(host) && !self.has_host(host) {
            return refused(format!(
                "the name {} may be anybody's: log in, use an address, or name http://{} in the \
                 setting http-cors-origins",
                host.escape_debug(),
                host.escape_debug()
            ));
        }
        Ok(None)
    }
}

/// Whether a host is an address, or a name that the internet does not have.
fn is_own(host: &str) -> bool {
    let name = if let Some(rest) = host.strip_prefix('[') {
        rest.split(']').next().unwrap_or_default()
    } else {
        host.rsplit_once(':').map_or(host, |(name, _)| name)
    };
    let name = name.to_ascii_lowercase();
    name.parse::<IpAddr>().is_ok() || !name.contains('.') || name.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(
        setting: &str,
        (host, origin, site): (&str, &str, &str),
        has_credentials: bool,
        expected: Option<&str>,
    ) {
        let some = |text: &str| (!text.is_empty()).then(|| text.into());
        let headers = Headers {
            host: some(host),
            origin: some(origin),
            sec_fetch_site: some(site),
            ..Headers::default()
        };
        let found = Sites::parse(setting).check(&headers, has_credentials);
        let found = found.map(|origin| origin.unwrap_or_default());
        assert_eq!(found.ok().as_deref(), expected, "{setting} {host} {origin} {site}");
    }

    #[test]
    fn pages_of_others_are_refused() {
        let here = "127.0.0.1:8080";
        check("", (here, "", ""), false, Some(""));
        check("", (here, "", "none"), false, Some(""));
        check("", (here, "", "same-origin"), false, Some(""));
        check("", (here, "http://127.0.0.1:8080", "same-origin"), false, Some(""));
        check("", (here, "", "cross-site"), false, None);
        check("", (here, "", "same-site"), true, None);
        check("", (here, "https://evil.example", ""), false, None);
        check("", (here, "https://evil.example", "cross-site"), true, None);
        check("", (here, "null", ""), true, None);
        let shop = "https://shop.example http://localhost:3000";
        check(
            shop,
            (here, "https://shop.example", "cross-site"),
            false,
            Some("https://shop.example"),
        );
        check(shop, (here, "https://Shop.example.evil", ""), false, None);
        check("*", (here, "https://evil.example", "cross-site"), false, Some("*"));
    }

    #[test]
    fn a_name_of_the_internet_needs_credentials() {
        for own in
            ["localhost", "localhost:1", "ladon:8080", "[::1]:8080", "10.1.2.3", "a.localhost"]
        {
            check("", (own, "", ""), false, Some(""));
        }
        for other in ["evil.example", "evil.example:8080", "127.0.0.1.evil.example"] {
            check("", (other, "", ""), false, None);
            check("", (other, &format!("http://{other}"), "same-origin"), false, None);
            check("", (other, "", ""), true, Some(""));
            check(&format!("http://{other}"), (other, "", ""), false, Some(""));
        }
        // HTTP/1.0 without a host: no browser.
        check("", ("", "", ""), false, Some(""));
    }
}
