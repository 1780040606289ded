//! The head of a request, and what it says of the body.
//!
//! What two servers in a row could read in two ways is refused, so that nothing can be smuggled past
//! the first one (RFC 9112, section 11.2): a length beside chunks, two lengths, a line that ends with
//! a bare LF, a line that is continued, blanks before a colon.

use super::target::{Target, TargetError};
use std::fmt;

/// Bytes of a head. The request's first line is a part of it.
pub const HEAD_BYTES_MAX: usize = 16 << 10;

/// Headers of a request.
const HEADERS_MAX: usize = 64;

/// All methods.
const METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

/// The methods that mean something here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are HTTP's")]
pub enum Method {
    Get,
    Head,
    Post,
    Put,
    Patch,
    Delete,
    Options,
}

impl Method {
    fn of(name: &str) -> Option<Method> {
        Some(match name {
            "GET" => Method::Get,
            "HEAD" => Method::Head,
            "POST" => Method::Post,
            "PUT" => Method::Put,
            "PATCH" => Method::Patch,
            "DELETE" => Method::Delete,
            "OPTIONS" => Method::Options,
            _ => return None,
        })
    }
}

/// How the body is delimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyKind {
    /// So many bytes; none without a header that says so.
    Length(u64),
    /// `Transfer-Encoding: chunked`.
    Chunked,
}

/// The headers that mean something here.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "the names are HTTP's")]
pub struct Headers {
    pub host: Option<Box<str>>,
    pub authorization: Option<Box<[u8]>>,
    pub origin: Option<Box<str>>,
    pub sec_fetch_site: Option<Box<str>>,
    pub if_match: Option<Box<str>>,
    pub if_none_match: Option<Box<str>>,
    pub content_type: Option<Box<str>>,
    pub accept: Option<Box<str>>,
    pub ladon_ttl: Option<Box<str>>,
    /// `Upstash-Encoding: base64`
    pub wants_base64: bool,
    /// `Upstash-Response-Format` is not `json`.
    pub wants_other_format: bool,
    /// `Access-Control-Request-Headers`
    pub requests_headers: Option<Box<str>>,
}

/// The head of a request.
#[derive(Clone, Debug)]
pub struct Head {
    /// What it asks for.
    pub method: Method,
    /// Where.
    pub target: Target,
    /// HTTP/1.0.
    pub is_old: bool,
    /// The client wants the connection to stay open.
    pub keep_alive: bool,
    /// It waits for `100 Continue` before it sends the body.
    pub expects_continue: bool,
    /// How its body is delimited.
    pub body: BodyKind,
    /// Its headers.
    pub headers: Box<Headers>,
}

/// Why a request is refused; the connection ends with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The status to answer.
    pub status: u16,
    /// In words.
    pub why: String,
    /// The methods that there are, if another one was asked for.
    pub allow: Option<&'static str>,
}

impl Refused {
    pub(crate) fn new(status: u16, why: impl fmt::Display) -> Refused {
        Refused { status, why: why.to_string(), allow: None }
    }

    /// There are only these methods.
    pub(crate) fn not_allowed(methods: &'static str) -> Refused {
        let why = format!("the methods here are {methods}");
        Refused { status: 405, why, allow: Some(methods) }
    }
}

fn bad(why: impl fmt::Display) -> Refused {
    Refused::new(400, why)
}

/// Reads a head at the beginning of `bytes`. Returns it with its length; `None`: the rest is to come.
///
/// # Errors
/// What is no request, or may be read in two ways.
pub fn parse(bytes: &[u8]) -> Result<Option<(Head, usize)>, Refused> {
    let looked_at = &bytes[..bytes.len().min(HEAD_BYTES_MAX)];
    check_beginning(looked_at)?;
    let Some(end) = memchr::memmem::find(looked_at, b"\r\n\r\n") else {
        check_lines(looked_at)?;
        if looked_at.len() == HEAD_BYTES_MAX {
            return Err(Refused::new(431, format!("the head is over {HEAD_BYTES_MAX} bytes")));
        }
        return Ok(None);
    };
    let length = end + 4;
    let text = &bytes[..length];
    check_lines(text)?;
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(text) {
        Ok(httparse::Status::Complete(parsed)) if parsed == length => {}
        Ok(_) => return Err(bad("the head does not end where its empty line is")),
        Err(httparse::Error::TooManyHeaders) => {
            return Err(Refused::new(431, format!("over {HEADERS_MAX} headers")));
        }
        Err(httparse::Error::Version) => return Err(Refused::new(505, "HTTP/1.1 is spoken here")),
        Err(error) => return Err(bad(error)),
    }
    let (Some(method), Some(path), Some(version)) = (request.method, request.path, request.version)
    else {
        return Err(bad("no request"));
    };
    let method = Method::of(method).ok_or_else(|| Refused::not_allowed(METHODS))?;
    let target = Target::parse(path).map_err(|error| match error {
        TargetError::Form => bad("the target is no path"),
        TargetError::Escape => bad("a % in the target is not followed by two hexadecimal digits"),
    })?;
    let is_old = version == 0;
    let mut head = Head {
        method,
        target,
        is_old,
        keep_alive: !is_old,
        expects_continue: false,
        body: BodyKind::Length(0),
        headers: Box::default(),
    };
    take_headers(&mut head, request.headers)?;
    Ok(Some((head, length)))
}

/// A client that will never send a head is told so at once, rather than when it has sent as much as
/// a head may have.
fn check_beginning(bytes: &[u8]) -> Result<(), Refused> {
    let word = bytes.iter().take_while(|byte| byte.is_ascii_uppercase()).count();
    let is_method = word < bytes.len() && bytes[word] == b' ' || word == bytes.len();
    if word > 16 || !is_method {
        return Err(bad("this is HTTP, and no request of it"));
    }
    Ok(())
}

/// Lines end with CRLF, and none is continued.
fn check_lines(bytes: &[u8]) -> Result<(), Refused> {
    for at in memchr::memchr_iter(b'\n', bytes) {
        if at == 0 || bytes[at - 1] != b'\r' {
            return Err(bad("a line of the head ends with a bare LF"));
        }
        if matches!(bytes.get(at + 1), Some(b' ' | b'\t')) {
            return Err(bad("a line of the head is continued"));
        }
    }
    Ok(())
}

fn take_headers(head: &mut Head, all: &[httparse::Header<'_>]) -> Result<(), Refused> {
    let mut length: Option<u64> = None;
    let mut is_chunked = false;
    for header in all {
        let value = header.value;
        let name = header.name;
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        if is("content-length") {
            if length.is_some() {
                return Err(bad("two lengths of the body"));
            }
            length = Some(parse_length(value)?);
        } else if is("transfer-encoding") {
            if is_chunked || head.is_old {
                return Err(bad("Transfer-Encoding twice, or in HTTP/1.0"));
            }
            if !value.eq_ignore_ascii_case(b"chunked") {
                return Err(Refused::new(501, "no other Transfer-Encoding than chunked"));
            }
            is_chunked = true;
        } else if is("connection") {
            let options = value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
            for option in options {
                if option.eq_ignore_ascii_case(b"close") {
                    head.keep_alive = false;
                } else if head.is_old && option.eq_ignore_ascii_case(b"keep-alive") {
                    head.keep_alive = true;
                }
            }
        } else if is("expect") {
            if !value.eq_ignore_ascii_case(b"100-continue") {
                return Err(Refused::new(417, "no other expectation than 100-continue"));
            }
            head.expects_continue = true;
        } else {
            take_header(&mut head.headers, name, value)?;
        }
    }
    if head.headers.host.is_none() && !head.is_old {
        return Err(bad("no header Host"));
    }
    head.body = match (length, is_chunked) {
        (Some(_), true) => return Err(bad("a length beside Transfer-Encoding")),
        (None, true) => BodyKind::Chunked,
        (length, false) => BodyKind::Length(length.unwrap_or(0)),
    };
    Ok(())
}

fn parse_length(value: &[u8]) -> Result<u64, Refused> {
    let digits = std::str::from_utf8(value)
        .ok()
        .filter(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()));
    digits.and_then(|text| text.parse().ok()).ok_or_else(|| bad("Content-Length is no length"))
}

fn take_header(headers: &mut Headers, name: &str, value: &[u8]) -> Result<(), Refused> {
    let is = |other: &str| name.eq_ignore_ascii_case(other);
    if is("authorization") {
        if headers.authorization.is_some() {
            return Err(bad("Authorization twice"));
        }
        headers.authorization = Some(value.into());
        return Ok(());
    }
    let slot = if is("host") {
        if headers.host.is_some() {
            return Err(bad("Host twice"));
        }
        &mut headers.host
    } else if is("origin") {
        &mut headers.origin
    } else if is("sec-fetch-site") {
        &mut headers.sec_fetch_site
    } else if is("if-match") {
        &mut headers.if_match
    } else if is("if-none-match") {
        &mut headers.if_none_match
    } else if is("content-type") {
        &mut headers.content_type
    } else if is("accept") {
        &mut headers.accept
    } else if is("ladon-ttl") {
        &mut headers.ladon_ttl
    } else if is("access-control-request-headers") {
        &mut headers.requests_headers
    } else if is("upstash-encoding") {
        headers.wants_base64 = value.eq_ignore_ascii_case(b"base64");
        return Ok(());
    } else if is("upstash-response-format") {
        headers.wants_other_format = !value.eq_ignore_ascii_case(b"json");
        return Ok(());
    } else {
        return Ok(());
    };
    let text =
        std::str::from_utf8(value).map_err(|_| bad(format!("the header {name} is not UTF-8")))?;
    *slot = Some(text.into());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refuse(text: &str, status: u16, why: &str) {
        let refused = parse(text.as_bytes()).expect_err(text);
        assert_eq!(refused.status, status, "{text:?}: {}", refused.why);
        assert!(refused.why.contains(why), "{text:?}: {}", refused.why);
    }

    fn parsed(text: &str) -> Head {
        let (head, length) = parse(text.as_bytes()).expect(text).expect("whole");
        assert_eq!(length, text.find("\r\n\r\n").map_or(0, |at| at + 4));
        head
    }

    #[test]
    fn heads_are_read_when_they_are_whole() {
        let text = "POST /set/a HTTP/1.1\r\nHost: x\r\nContent-Length: 12\r\n\r\nbody";
        for end in 0..text.len() - 4 {
            assert!(parse(&text.as_bytes()[..end]).expect("no error yet").is_none(), "{end}");
        }
        let head = parsed(text);
        assert_eq!((head.method, head.body), (Method::Post, BodyKind::Length(12)));
        assert!(head.keep_alive && !head.is_old);
        assert!(!parsed("GET / HTTP/1.0\r\n\r\n").keep_alive);
        assert!(parsed("GET / HTTP/1.0\r\nconnection: Keep-Alive\r\n\r\n").keep_alive);
        assert!(!parsed("GET / HTTP/1.1\r\nhost: x\r\nConnection: TE, close\r\n\r\n").keep_alive);
        let head = parsed("PUT / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n");
        assert_eq!(head.body, BodyKind::Chunked);
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_refused() {
        let with = |headers: &str| format!("POST / HTTP/1.1\r\nHost: x\r\n{headers}\r\n\r\n");
        refuse(&with("Content-Length: 1\r\nTransfer-Encoding: chunked"), 400, "beside");
        refuse(&with("Content-Length: 1\r\nContent-Length: 1"), 400, "two lengths");
        refuse(&with("Content-Length: +1"), 400, "no length");
        refuse(&with("Content-Length: 1, 1"), 400, "no length");
        refuse(&with("Content-Length: 99999999999999999999"), 400, "no length");
        refuse(&with("Content-Length:"), 400, "no length");
        refuse(&with("Transfer-Encoding: gzip, chunked"), 501, "chunked");
        refuse(&with("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"), 400, "twice");
        refuse(&with("A: b\nContent-Length: 5"), 400, "bare LF");
        refuse(&with("A: b\r\n c"), 400, "continued");
        refuse(&with("A : b"), 400, "");
        refuse(&with("Host: y"), 400, "Host twice");
        refuse("GET / HTTP/1.1\r\n\r\n", 400, "no header Host");
        refuse("GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400, "HTTP/1.0");
        refuse("GET / HTTP/2.0\r\nHost: x\r\n\r\n", 505, "HTTP/1.1");
        refuse("BREW / HTTP/1.1\r\nHost: x\r\n\r\n", 405, "GET");
        refuse("CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n", 405, "GET");
        refuse("GET x HTTP/1.1\r\nHost: x\r\n\r\n", 400, "no path");
        refuse("GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n", 400, "hexadecimal");
        refuse(&with("Expect: wonders"), 417, "100-continue");
    }

    #[test]
    fn what_is_no_request_is_refused_at_once() {
        refuse("*1\r\n$4\r\nPING\r\n", 400, "no request");
        refuse("\u{16}\u{3}\u{1}", 400, "no request");
        refuse("get / HTTP/1.1\r\n", 400, "no request");
        refuse("GET / HTTP/1.1\n", 400, "bare LF");
        refuse(&format!("GET /{}", "a".repeat(HEAD_BYTES_MAX)), 431, "16384");
        let many = "a: b\r\n".repeat(HEADERS_MAX + 1);
        refuse(&format!("GET / HTTP/1.1\r\nHost: x\r\n{many}\r\n"), 431, "64");
    }
}
