//! What a browser may send here, and on whose behalf.
//!
//! A page of another site must not act with the session of somebody who is logged in: the cookie is
//! `SameSite=Strict`, requests that change anything carry JSON, which no form can send, and what
//! `Origin` and `Sec-Fetch-Site` say has to be this site. A page that has let its own name point to
//! this machine (DNS rebinding) has no cookie of this site, but could log in where no password is
//! needed: see [`is_plain_host`].

use super::{Refusal, refusal};
use hyper::header::{
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, COOKIE, HOST, HeaderName, HeaderValue, ORIGIN,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use hyper::{HeaderMap, StatusCode};
use ladon_identity::PasswordHash;
use std::net::IpAddr;

/// Scripts and styles of this port alone, nothing inline, no frames, no forms, no other site.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

/// Headers of every response.
pub(super) fn protect(headers: &mut HeaderMap) {
    let fixed = [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

/// Refuses what a page of another site has sent.
pub(super) fn refuse_foreign(headers: &HeaderMap) -> Result<(), Refusal> {
    let text = |name: HeaderName| headers.get(name).map(HeaderValue::as_bytes);
    let site = text(HeaderName::from_static("sec-fetch-site"));
    let is_foreign_site = site.is_some_and(|site| site != b"same-origin" && site != b"none");
    let host = text(HOST).unwrap_or_default();
    let is_foreign_origin = text(ORIGIN).is_some_and(|origin| {
        let of_http = origin.strip_prefix(b"http://");
        let rest = of_http.or_else(|| origin.strip_prefix(b"https://"));
        rest.is_none_or(|rest| !rest.eq_ignore_ascii_case(host))
    });
    if is_foreign_site || is_foreign_origin {
        return Err(refusal(StatusCode::FORBIDDEN, "the request comes from another site"));
    }
    Ok(())
}

/// Refuses what a form could send.
pub(super) fn refuse_forms(headers: &HeaderMap) -> Result<(), Refusal> {
    let kind = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    let kind = kind.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii();
    if kind.eq_ignore_ascii_case(b"application/json") {
        return Ok(());
    }
    let text = "the body has to be JSON, with Content-Type: application/json";
    Err(refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, text))
}

/// Whether the browser asked for this machine by an address or as `localhost`: names that nobody
/// else can let point here.
pub(super) fn is_plain_host(headers: &HeaderMap) -> bool {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    let name = name.to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost") || name.parse::<IpAddr>().is_ok()
}

/// The session's secret in the cookie of this name, hashed.
pub(super) fn token(headers: &HeaderMap, name: &str) -> Option<PasswordHash> {
    let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|cookies| cookies.split(';')).map(str::trim);
    let value = pairs.find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))?;
    Some(PasswordHash::of(value.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pairs = pairs
            .iter()
            .map(|&(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        pairs.collect()
    }

    #[test]
    fn pages_of_other_sites_are_refused() {
        for (pairs, expected) in [
            (&[("host", "x:1")][..], true),
            (&[("host", "x:1"), ("origin", "http://x:1")], true),
            (&[("host", "x:1"), ("origin", "https://X:1")], true),
            (&[("host", "x:1"), ("origin", "http://x:2")], false),
            (&[("host", "x:1"), ("origin", "null")], false),
            (&[("host", "x:1"), ("origin", "http://evil/x:1")], false),
            (&[("origin", "http://x")], false),
            (&[("host", "x:1"), ("sec-fetch-site", "same-origin")], true),
            (&[("host", "x:1"), ("sec-fetch-site", "none")], true),
            (&[("host", "x:1"), ("sec-fetch-site", "same-site")], false),
            (&[("host", "x:1"), ("sec-fetch-site", "cross-site")], false),
        ] {
            assert_eq!(refuse_foreign(&headers(pairs)).is_ok(), expected, "{pairs:?}");
        }
        assert!(refuse_forms(&headers(&[("content-type", "application/json; charset=x")])).is_ok());
        for kind in ["text/plain", "application/x-www-form-urlencoded", "application/jsonx", ""] {
            assert!(refuse_forms(&headers(&[("content-type", kind)])).is_err(), "{kind}");
        }
    }

    #[test]
    fn a_name_that_others_can_point_here_is_not_plain() {
        for host in ["localhost", "LOCALHOST:9121", "a.localhost:1", "127.0.0.1", "[::1]:1"] {
            assert!(is_plain_host(&headers(&[("host", host)])), "{host}");
        }
        for host in ["", "evil.com", "evil.com:9121", "localhost.evil.com", "127.0.0.1.evil.com"] {
            assert!(!is_plain_host(&headers(&[("host", host)])), "{host}");
        }
    }

    #[test]
    fn a_cookie_is_found_among_others() {
        let found = |text| token(&headers(&[("cookie", text)]), "n-1");
        assert_eq!(found("a=b; n-1=secret; c=d"), Some(PasswordHash::of(b"secret")));
        assert_eq!(found("n-12=secret"), None);
        assert_eq!(found("xn-1=secret"), None);
    }
}
