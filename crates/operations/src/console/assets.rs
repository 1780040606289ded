//! The pages, compressed when the server was built.

use super::refusal;
use crate::body::{Answer, Body};
use hyper::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, HeaderValue,
    IF_NONE_MATCH, VARY,
};
use hyper::{HeaderMap, Response, StatusCode};

/// A file of a page.
struct Asset {
    /// Its path below `/console/`.
    path: &'static str,
    /// As gzip.
    bytes: &'static [u8],
    /// Says whether a browser has it.
    etag: &'static str,
}

include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// The file at this path.
pub(super) fn answer(path: &str, headers: &HeaderMap) -> Answer {
    let path = if path.is_empty() { "index.html" } else { path };
    let Some(asset) = ASSETS.iter().find(|asset| asset.path == path) else {
        return refusal(StatusCode::NOT_FOUND, "there is no such page").answer();
    };
    let has =
        headers.get(IF_NONE_MATCH).is_some_and(|etag| etag.as_bytes() == asset.etag.as_bytes());
    let mut answer = Response::new(Body::of(if has { &[] } else { asset.bytes }));
    let own = answer.headers_mut();
    // Asked each time, so that a newer server has newer pages at once.
    own.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    own.insert(ETAG, HeaderValue::from_static(asset.etag));
    own.insert(VARY, HeaderValue::from_static("accept-encoding"));
    if has {
        *answer.status_mut() = StatusCode::NOT_MODIFIED;
        return answer;
    }
    let accepted = headers.get(ACCEPT_ENCODING).and_then(|accepted| accepted.to_str().ok());
    if !accepted.is_some_and(|accepted| accepted.contains("gzip")) {
        let text = "the pages are compressed: ask with Accept-Encoding: gzip";
        return refusal(StatusCode::NOT_ACCEPTABLE, text).answer();
    }
    own.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    own.insert(CONTENT_TYPE, HeaderValue::from_static(kind_of(path)));
    answer
}

fn kind_of(path: &str) -> &'static str {
    match path.rsplit_once('.').map_or("", |(_, end)| end) {
        "html" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "svg" => "image/svg+xml",
        _ => "text/plain; charset=utf-8",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compressed, all together.
    const BYTES_MAX: usize = 150_000;

    #[test]
    fn the_pages_are_small() {
        let bytes: usize = ASSETS.iter().map(|asset| asset.bytes.len()).sum();
        assert!(bytes < BYTES_MAX, "{bytes}");
        assert!(ASSETS.iter().any(|asset| asset.path == "index.html"));
    }

    #[test]
    fn a_browser_is_told_what_it_has() {
        let gzip = (ACCEPT_ENCODING, HeaderValue::from_static("gzip, br"));
        let headers = HeaderMap::from_iter([gzip.clone()]);
        let first = answer("", &headers);
        assert_eq!(first.status(), StatusCode::OK);
        let etag = first.headers()[ETAG].clone();
        let again = answer("index.html", &HeaderMap::from_iter([gzip, (IF_NONE_MATCH, etag)]));
        assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
        assert_eq!(answer("", &HeaderMap::new()).status(), StatusCode::NOT_ACCEPTABLE);
        assert_eq!(answer("../Cargo.toml", &headers).status(), StatusCode::NOT_FOUND);
    }
}
