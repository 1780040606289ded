//! Clients of memcached's protocol and of HTTP, which count in the same counter as those of RESP.

use crate::client::{Client, prepare};
use ladon_resp::client::Value;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

/// A client that can add one to a counter.
pub trait Counting {
    /// Adds one to the number at `key`, which begins at 0; the sum.
    ///
    /// # Errors
    /// The system's; a connection that ended. Within: a reply that is no number, as text.
    fn add_one(&mut self, key: &str) -> io::Result<Result<i64, String>>;
}

impl Counting for Client {
    fn add_one(&mut self, key: &str) -> io::Result<Result<i64, String>> {
        Ok(match self.call(&["INCR", key])? {
            Value::Integer(value) => Ok(value),
            other => Err(format!("INCR answered {other:?}")),
        })
    }
}

/// A blocking connection that reads lines.
struct Lines(BufReader<TcpStream>);

impl Lines {
    fn connect(port: u16) -> io::Result<Lines> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        prepare(&stream)?;
        Ok(Lines(BufReader::new(stream)))
    }

    fn send(&mut self, text: &str) -> io::Result<()> {
        self.0.get_mut().write_all(text.as_bytes())
    }

    /// One line, without its end.
    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.0.read_line(&mut line)?;
        // A line that the end of the connection cut is none: its number may be cut too.
        let whole = line.strip_suffix("\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
        Ok(whole.to_owned())
    }
}

fn number(text: &str, whole: &str) -> Result<i64, String> {
    text.parse().map_err(|_| format!("no number: {whole}"))
}

/// A connection of memcached's protocol.
pub struct MemcachedClient(Lines);

impl MemcachedClient {
    /// Connects to a port of this machine.
    ///
    /// # Errors
    /// The system's.
    pub fn connect(port: u16) -> io::Result<MemcachedClient> {
        Lines::connect(port).map(MemcachedClient)
    }
}

impl Counting for MemcachedClient {
    fn add_one(&mut self, key: &str) -> io::Result<Result<i64, String>> {
        self.0.send(&format!("ma {key} N0 J1 v\r\n"))?;
        let head = self.0.line()?;
        if !head.starts_with("VA ") {
            return Ok(Err(format!("ma answered {head}")));
        }
        let value = self.0.line()?;
        Ok(number(&value, &value))
    }
}

/// A connection of HTTP.
pub struct HttpClient(Lines);

impl HttpClient {
    /// Connects to a port of this machine.
    ///
    /// # Errors
    /// The system's.
    pub fn connect(port: u16) -> io::Result<HttpClient> {
        Lines::connect(port).map(HttpClient)
    }

    /// The status line and the body of a response.
    fn response(&mut self) -> io::Result<(String, String)> {
        let status = self.0.line()?;
        let mut body_bytes = 0;
        loop {
            let header = self.0.line()?.to_ascii_lowercase();
            if header.is_empty() {
                break;
            }
            if let Some(length) = header.strip_prefix("content-length:") {
                let parsed = length.trim().parse();
                body_bytes = parsed.map_err(|error| io::Error::other(format!("{error}")))?;
            }
        }
        let mut body = vec![0; body_bytes];
        self.0.0.read_exact(&mut body)?;
        Ok((status, String::from_utf8_lossy(&body).into_owned()))
    }
}

impl Counting for HttpClient {
    fn add_one(&mut self, key: &str) -> io::Result<Result<i64, String>> {
        let body = format!(r#"["INCR","{key}"]"#);
        let length = body.len();
        self.0.send(&format!(
            "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n{body}"
        ))?;
        let (status, body) = self.response()?;
        let value = body.strip_prefix(r#"{"result":"#).and_then(|rest| rest.strip_suffix('}'));
        Ok(match value {
            Some(value) if status.starts_with("HTTP/1.1 200 ") => number(value, &body),
            _ => Err(format!("{status}: {body}")),
        })
    }
}
