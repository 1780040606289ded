//! A client of HTTP that sees every byte.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// A connection.
pub(crate) struct Http(pub(super) TcpStream);

/// A response.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(super) head: String,
    pub(super) body: Vec<u8>,
}

impl Response {
    /// The body as text.
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("text")
    }

    /// The value of a header.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines
            .into_iter()
            .find(|(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }
}

impl Http {
    pub(crate) fn connect(port: u16) -> Http {
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("connects");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
        stream.set_nodelay(true).expect("a socket");
        Http(stream)
    }

    pub(super) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).expect("sent");
    }

    /// Sends a request and reads its response. `head` is the first line without the version, and
    /// headers behind line ends.
    pub(crate) fn ask(&mut self, head: &str, body: impl AsRef<[u8]>) -> Response {
        let (line, headers) = head.split_once('\n').unwrap_or((head, ""));
        let headers = headers.replace('\n', "\r\n");
        let blank = if headers.is_empty() { "" } else { "\r\n" };
        let body = body.as_ref();
        let length = body.len();
        let head = format!(
            "{line} HTTP/1.1\r\nHost: localhost\r\n{headers}{blank}Content-Length: {length}\r\n\r\n"
        );
        self.send([head.as_bytes(), body].concat());
        self.response(line.starts_with("HEAD "))
    }

    /// Runs a command, and returns the body of the response.
    pub(super) fn run(&mut self, command: &str) -> String {
        self.ask("POST /", command).text().to_owned()
    }

    /// Reads a response.
    pub(super) fn response(&mut self, is_head: bool) -> Response {
        let head = self.until(b"\r\n\r\n");
        let head = String::from_utf8(head).expect("text");
        let status = head[9..12].parse().expect("a status");
        let mut response = Response { status, head, body: Vec::new() };
        if is_head || status == 204 || status == 304 || status == 100 {
            return response;
        }
        if let Some(length) = response.header("content-length") {
            response.body = vec![0; length.parse().expect("a length")];
            self.0.read_exact(&mut response.body).expect("the body");
            return response;
        }
        assert_eq!(response.header("transfer-encoding"), Some("chunked"), "{}", response.head);
        loop {
            let line = String::from_utf8(self.until(b"\r\n")).expect("text");
            let length = usize::from_str_radix(line.trim_end(), 16).expect("a chunk");
            let mut chunk = vec![0; length + 2];
            self.0.read_exact(&mut chunk).expect("a chunk");
            response.body.extend_from_slice(&chunk[..length]);
            if length == 0 {
                return response;
            }
        }
    }

    /// Reads up to these bytes.
    pub(super) fn until(&mut self, end: &[u8]) -> Vec<u8> {
        let (mut read, mut byte) = (Vec::new(), [0; 1]);
        while !read.ends_with(end) {
            self.0.read_exact(&mut byte).unwrap_or_else(|error| {
                panic!("{error} after {:?}", String::from_utf8_lossy(&read))
            });
            read.push(byte[0]);
        }
        read
    }

    /// All that comes until the server closes.
    pub(super) fn rest(&mut self) -> String {
        let mut rest = Vec::new();
        let _ = self.0.read_to_end(&mut rest);
        String::from_utf8_lossy(&rest).into_owned()
    }
}
