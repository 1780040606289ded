//! HTTP/1.1 with connections kept open, to the web programs of the lab.
//!
//! | operation | request | reply |
//! |---|---|---|
//! | set | `POST /kv/KEY`, the value as the body | 200, `{"key":...,"value":...}` as **read back** after the write |
//! | get | `GET /kv/KEY` | 200, the same; or 404 |
//! | delete | `DELETE /kv/KEY` | 200, `{"existed":true}` |
//!
//! A set writes, reads and answers in JSON because that is what the published test of Go with
//! LevelDB asks of a web program. Values travel as JSON strings, so they must be UTF-8.
//!
//! Source: RFC 9112, with what these programs send: a `Content-Length`, no chunks.

use super::{Dialect, Framed, Malformed, Refused};
use crate::operation::{Answer, Operation, OperationKind};

/// The dialect.
#[derive(Clone, Copy, Debug, Default)]
pub struct Http;

/// More headers than the programs send.
const HEADERS_MAX: usize = 32;
/// Where a head without an end stops being awaited.
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// What a peer announces must not make us wait for ever.
const BODY_BYTES_MAX: usize = 1 << 30;

impl Dialect for Http {
    fn can(&self, kind: OperationKind) -> Result<(), String> {
        match kind {
            OperationKind::Set | OperationKind::Get | OperationKind::Delete => Ok(()),
            other => Err(format!("the web program has no request for `{other}`")),
        }
    }

    fn hello(&mut self, _: &[u8], _: &mut Vec<u8>) -> Result<usize, Malformed> {
        Ok(0)
    }

    fn check_hello(&self, _: usize, frame: &[u8]) -> Result<(), Refused> {
        Err(refused(frame)) // nothing was said
    }

    fn encode(&mut self, _: u64, operation: &Operation, out: &mut Vec<u8>) {
        match operation {
            Operation::Set { key, value } => {
                line("POST", key, out);
                out.extend_from_slice(b"Content-Length: ");
                out.extend_from_slice(value.len().to_string().as_bytes());
                out.extend_from_slice(b"\r\n\r\n");
                out.extend_from_slice(value);
            }
            Operation::Get { key } => {
                line("GET", key, out);
                out.extend_from_slice(b"\r\n");
            }
            Operation::Delete { key } => {
                line("DELETE", key, out);
                out.extend_from_slice(b"\r\n");
            }
            // The driver asks `can` first.
            _ => unreachable!("refused by can()"),
        }
    }

    fn frame(&self, _: Option<&Operation>, bytes: &[u8]) -> Result<Framed, Malformed> {
        frame_of(bytes)
    }

    fn answer(&self, operation: &Operation, frame: &[u8]) -> Result<Answer, Refused> {
        let reply = Reply::parse(frame).ok().flatten().ok_or_else(|| refused(frame))?;
        let body = frame.get(reply.head..).ok_or_else(|| refused(frame))?;
        if body.len() != reply.body {
            return Err(refused(frame));
        }
        let pair = |expected: &[u8]| -> Result<String, Refused> {
            let pair: Pair = serde_json::from_slice(body).map_err(|_| refused(frame))?;
            if pair.key.as_bytes() == expected { Ok(pair.value) } else { Err(refused(frame)) }
        };
        match (operation, reply.status) {
            (Operation::Set { key, value }, 200) => {
                // What was read back after the write: another's, where several write one key at
                // once. Whether that can be is the asker's to judge.
                let read = pair(key)?;
                let own = read.as_bytes() == value.as_slice();
                Ok(if own { Answer::Done } else { Answer::Value(Some(read.into_bytes())) })
            }
            (Operation::Get { key }, 200) => Ok(Answer::Value(Some(pair(key)?.into_bytes()))),
            (Operation::Get { .. }, 404) => Ok(Answer::Value(None)),
            (Operation::Delete { .. }, 200) => {
                let existed: Existed = serde_json::from_slice(body).map_err(|_| refused(frame))?;
                Ok(Answer::Existed(existed.existed))
            }
            _ => Err(refused(frame)),
        }
    }
}

#[derive(serde::Deserialize)]
struct Pair {
    key: String,
    value: String,
}

#[derive(serde::Deserialize)]
struct Existed {
    existed: bool,
}

/// Request line and host. In the key, all but the unreserved characters go as `%XX` (RFC 3986).
fn line(method: &str, key: &[u8], out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    out.extend_from_slice(method.as_bytes());
    out.extend_from_slice(b" /kv/");
    for &byte in key {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(byte);
        } else {
            out.extend_from_slice(&[
                b'%',
                HEX[usize::from(byte >> 4)],
                HEX[usize::from(byte & 15)],
            ]);
        }
    }
    out.extend_from_slice(b" HTTP/1.1\r\nHost: lab\r\n");
}

/// Where a reply ends.
pub(super) fn frame_of(bytes: &[u8]) -> Result<Framed, Malformed> {
    let Some(reply) = Reply::parse(bytes)? else { return Ok(Framed::Incomplete) };
    let length = reply.head + reply.body;
    Ok(if bytes.len() < length { Framed::Incomplete } else { Framed::Frame { length, tag: None } })
}

/// What a reply's head says.
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) head: usize,
    pub(super) body: usize,
}

impl Reply {
    /// `None` while the head is not whole.
    pub(super) fn parse(bytes: &[u8]) -> Result<Option<Self>, Malformed> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut response = httparse::Response::new(&mut headers);
        let head = match response.parse(bytes) {
            Ok(httparse::Status::Complete(head)) => head,
            Ok(httparse::Status::Partial) if bytes.len() < HEAD_BYTES_MAX => return Ok(None),
            Ok(httparse::Status::Partial) => return Err(malformed("a head without end", bytes)),
            Err(error) => return Err(malformed(&error.to_string(), bytes)),
        };
        let status = response.code.ok_or_else(|| malformed("no status", bytes))?;
        let length = response
            .headers
            .iter()
            .find(|header| header.name.eq_ignore_ascii_case("content-length"));
        let body = match length {
            Some(length) => std::str::from_utf8(length.value)
                .ok()
                .and_then(|digits| digits.parse().ok())
                .filter(|body| *body <= BODY_BYTES_MAX)
                .ok_or_else(|| malformed("no readable Content-Length", bytes))?,
            // These have none by definition.
            None if status == 204 || status == 304 => 0,
            None => return Err(malformed("a reply without Content-Length", bytes)),
        };
        Ok(Some(Self { status, head, body }))
    }
}

fn malformed(what: &str, bytes: &[u8]) -> Malformed {
    Malformed(format!("{what}: {}", bytes[..bytes.len().min(80)].escape_ascii()))
}

pub(super) fn refused(frame: &[u8]) -> Refused {
    Refused(frame[..frame.len().min(300)].escape_ascii().to_string())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn operations() -> [Operation; 3] {
        let key = b"k/1".to_vec();
        [
            Operation::Set { key: key.clone(), value: b"v".to_vec() },
            Operation::Get { key: key.clone() },
            Operation::Delete { key },
        ]
    }

    fn reply(status: &str, body: &str) -> Vec<u8> {
        format!("HTTP/1.1 {status}\r\nDate: x\r\ncontent-length: {}\r\n\r\n{body}", body.len())
            .into_bytes()
    }

    #[test]
    fn requests_escape_the_key() {
        let mut out = Vec::new();
        for operation in operations() {
            Http.encode(0, &operation, &mut out);
        }
        let text = String::from_utf8(out).unwrap();
        let head = "HTTP/1.1\r\nHost: lab\r\n";
        assert_eq!(
            text,
            format!(
                "POST /kv/k%2F1 {head}Content-Length: 1\r\n\r\nvGET /kv/k%2F1 {head}\r\n\
                 DELETE /kv/k%2F1 {head}\r\n"
            )
        );
    }

    #[test]
    fn replies_are_framed_at_every_length() {
        let reply = reply("200 OK", r#"{"key":"k/1","value":"v"}"#);
        for length in 1..reply.len() {
            assert_eq!(Http.frame(None, &reply[..length]), Ok(Framed::Incomplete));
        }
        let longer = [&reply[..], b"HTTP"].concat();
        let frame = Framed::Frame { length: reply.len(), tag: None };
        assert_eq!(Http.frame(None, &longer), Ok(frame));
        assert!(Http.frame(None, b"HTTP/1.1 200 OK\r\n\r\n").is_err());
        assert!(Http.frame(None, b"-ERR\r\n").is_err());
    }

    #[test]
    fn what_was_read_back_must_be_what_was_written() {
        let [set, get, delete] = operations();
        let right = reply("200 OK", r#"{"key":"k/1","value":"v"}"#);
        assert_eq!(Http.answer(&set, &right), Ok(Answer::Done));
        assert_eq!(Http.answer(&get, &right), Ok(Answer::Value(Some(b"v".to_vec()))));
        // Another writer's value, or a wrong one: not what was expected, but it is reported.
        let other = reply("200 OK", r#"{"key":"k/1","value":"w"}"#);
        assert_eq!(Http.answer(&set, &other), Ok(Answer::Value(Some(b"w".to_vec()))));
        assert!(!Http.is_right(&set, &Answer::Done, &other));
        for wrong in [
            reply("200 OK", r#"{"key":"k/2","value":"v"}"#),
            reply("500 Oh", r#"{"key":"k/1","value":"v"}"#),
            reply("200 OK", "no json"),
        ] {
            assert!(Http.answer(&set, &wrong).is_err());
        }
        assert_eq!(Http.answer(&get, &reply("404 Not Found", "")), Ok(Answer::Value(None)));
        let existed = reply("200 OK", r#"{"existed":false}"#);
        assert_eq!(Http.answer(&delete, &existed), Ok(Answer::Existed(false)));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(
            start in prop::sample::select(vec!["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: "]),
            rest in prop::collection::vec(prop_oneof![any::<u8>(), prop::sample::select(b"\r\n 019:".to_vec())], 0..60),
        ) {
            let bytes = [start.as_bytes(), &rest].concat();
            let _ = Http.frame(None, &bytes);
            for operation in operations() {
                let _ = Http.answer(&operation, &bytes);
            }
        }
    }
}
