//! HTTP/1.1 to a server that takes Redis' commands as JSON, as Upstash's REST API has them.
//!
//! | operation | request | reply |
//! |---|---|---|
//! | set | `POST /pipeline`, `[["SET",KEY,VALUE],["GET",KEY]]` | 200, `[{"result":"OK"},{"result":VALUE}]` |
//! | get | `POST /`, `["GET",KEY]` | 200, `{"result":VALUE}` |
//! | delete | `POST /`, `["DEL",KEY]` | 200, `{"result":1}` |
//!
//! A set also reads back, as the web programs of [`super::http`] do, and the answer is JSON.
//!
//! Source: the documentation of Upstash's REST API.

use super::http::{Reply, frame_of, refused};
use super::{Dialect, Framed, Malformed, Refused};
use crate::operation::{Answer, Operation, OperationKind};
use serde_json::{Value, json};

/// The dialect.
#[derive(Clone, Copy, Debug, Default)]
pub struct HttpCommands;

impl Dialect for HttpCommands {
    fn can(&self, kind: OperationKind) -> Result<(), String> {
        match kind {
            OperationKind::Set | OperationKind::Get | OperationKind::Delete => Ok(()),
            other => Err(format!("no request of commands over HTTP for `{other}` was written")),
        }
    }

    fn hello(&mut self, _: &[u8], _: &mut Vec<u8>) -> Result<usize, Malformed> {
        Ok(0)
    }

    fn check_hello(&self, _: usize, frame: &[u8]) -> Result<(), Refused> {
        Err(refused(frame)) // nothing was said
    }

    fn encode(&mut self, _: u64, operation: &Operation, out: &mut Vec<u8>) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (path, body) = match operation {
            Operation::Set { key, value } => {
                let key = text(key);
                ("/pipeline", json!([["SET", key, text(value)], ["GET", key]]))
            }
            Operation::Get { key } => ("/", json!(["GET", text(key)])),
            Operation::Delete { key } => ("/", json!(["DEL", text(key)])),
            // The driver asks `can` first.
            _ => unreachable!("refused by can()"),
        };
        let body = body.to_string();
        let head =
            format!("POST {path} HTTP/1.1\r\nHost: lab\r\nContent-Length: {}\r\n\r\n", body.len());
        out.extend_from_slice(head.as_bytes());
        out.extend_from_slice(body.as_bytes());
    }

    fn frame(&self, _: Option<&Operation>, bytes: &[u8]) -> Result<Framed, Malformed> {
        frame_of(bytes)
    }

    fn answer(&self, operation: &Operation, frame: &[u8]) -> Result<Answer, Refused> {
        let reply = Reply::parse(frame).ok().flatten().ok_or_else(|| refused(frame))?;
        let body = frame.get(reply.head..).filter(|body| body.len() == reply.body);
        let body: Value = body
            .filter(|_| reply.status == 200)
            .and_then(|body| serde_json::from_slice(body).ok())
            .ok_or_else(|| refused(frame))?;
        match operation {
            Operation::Set { value, .. } if body[0]["result"] == "OK" => {
                let read = body[1]["result"].as_str().ok_or_else(|| refused(frame))?;
                let own = read.as_bytes() == value.as_slice();
                Ok(if own { Answer::Done } else { Answer::Value(Some(read.into())) })
            }
            Operation::Get { .. } => match &body["result"] {
                Value::String(value) => Ok(Answer::Value(Some(value.clone().into_bytes()))),
                Value::Null if body.get("result").is_some() => Ok(Answer::Value(None)),
                _ => Err(refused(frame)),
            },
            Operation::Delete { .. } => match body["result"].as_u64() {
                Some(count) => Ok(Answer::Existed(count == 1)),
                None => Err(refused(frame)),
            },
            _ => Err(refused(frame)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(status: u16, body: &str) -> Vec<u8> {
        let length = body.len();
        format!("HTTP/1.1 {status} x\r\nContent-Length: {length}\r\n\r\n{body}").into_bytes()
    }

    #[test]
    fn requests_are_json_and_replies_are_checked() {
        let (key, value) = (b"k\"".to_vec(), b"v\\".to_vec());
        let set = Operation::Set { key: key.clone(), value };
        let mut out = Vec::new();
        HttpCommands.encode(0, &set, &mut out);
        let text = String::from_utf8(out).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert_eq!(body, r#"[["SET","k\"","v\\"],["GET","k\""]]"#);
        assert!(head.ends_with(&format!("Content-Length: {}", body.len())));
        let right = reply(200, r#"[{"result":"OK"},{"result":"v\\"}]"#);
        assert_eq!(HttpCommands.answer(&set, &right), Ok(Answer::Done));
        let other = reply(200, r#"[{"result":"OK"},{"result":"w"}]"#);
        assert_eq!(HttpCommands.answer(&set, &other), Ok(Answer::Value(Some(b"w".to_vec()))));
        let get = Operation::Get { key: key.clone() };
        let found = reply(200, r#"{"result":"v"}"#);
        assert_eq!(HttpCommands.answer(&get, &found), Ok(Answer::Value(Some(b"v".to_vec()))));
        let none = reply(200, r#"{"result":null}"#);
        assert_eq!(HttpCommands.answer(&get, &none), Ok(Answer::Value(None)));
        let delete = Operation::Delete { key };
        let existed = reply(200, r#"{"result":1}"#);
        assert_eq!(HttpCommands.answer(&delete, &existed), Ok(Answer::Existed(true)));
        for (operation, wrong) in [
            (&set, reply(200, r#"[{"error":"ERR"},{"result":"v"}]"#)),
            (&set, reply(400, r#"{"error":"ERR"}"#)),
            (&get, reply(200, "{}")),
            (&delete, reply(200, "no json")),
        ] {
            assert!(HttpCommands.answer(operation, &wrong).is_err());
        }
    }
}
