//! A response on its way out: status, headers, and a body whose length may not be known yet.

use std::fmt::Write as _;

/// A body that is longer goes out in chunks, as it is made.
const WHOLE_BYTES_MAX: usize = 32 << 10;

/// What a request says of how it wants to be answered.
#[derive(Clone, Debug, Default)]
pub struct Manner {
    /// HTTP/1.0: no chunks.
    pub is_old: bool,
    /// The connection stays open afterwards.
    pub keep_alive: bool,
    /// `HEAD`: no body.
    pub is_head: bool,
    /// The origin of another site that may read the answer.
    pub origin: Option<Box<str>>,
}

/// How the body's end is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Framing {
    /// The head is not out.
    #[default]
    Undecided,
    /// Its length was said: so many bytes are to come.
    Length(u64),
    Chunks,
    /// By the connection's end.
    Close,
}

/// A response that is being made.
#[derive(Debug)]
pub struct Response {
    manner: Manner,
    /// The first line and the headers, without those of the framing.
    head: String,
    framing: Framing,
    body: Vec<u8>,
    has_body: bool,
}

impl Response {
    /// Begins a response. `date` is the text of its header.
    pub fn new(status: u16, manner: Manner, date: &str) -> Response {
        let mut head = String::with_capacity(192);
        // Strings take everything.
        let _ = write!(head, "HTTP/1.1 {status} {}\r\nDate: {date}\r\n", reason(status));
        if let Some(origin) = &manner.origin {
            let _ = write!(
                head,
                "Access-Control-Allow-Origin: {origin}\r\nVary: Origin\r\n\
                 Access-Control-Expose-Headers: ETag, Ladon-TTL, Ladon-Type\r\n"
            );
        }
        if !manner.keep_alive {
            head.push_str("Connection: close\r\n");
        } else if manner.is_old {
            head.push_str("Connection: keep-alive\r\n");
        }
        let has_body = status != 204 && status != 304;
        Response { manner, head, framing: Framing::Undecided, body: Vec::new(), has_body }
    }

    /// Adds a header, before the body has begun to leave.
    pub fn header(&mut self, name: &str, value: impl std::fmt::Display) {
        debug_assert!(self.framing == Framing::Undecided, "a header behind the head");
        let _ = write!(self.head, "{name}: {value}\r\n");
    }

    /// The body in the making.
    pub fn body(&mut self) -> &mut Vec<u8> {
        &mut self.body
    }

    /// Memory that it holds.
    pub fn bytes(&self) -> usize {
        self.head.capacity() + self.body.capacity()
    }

    /// The body will have exactly this length, and may leave in pieces.
    pub fn has_length(&mut self, length: u64, out: &mut Vec<u8>) {
        self.end_head(Framing::Length(length), out);
    }

    /// The body has no end in sight: each flush leaves.
    pub fn is_endless(&mut self, out: &mut Vec<u8>) {
        let framing = if self.manner.is_old { Framing::Close } else { Framing::Chunks };
        self.end_head(framing, out);
    }

    /// Lets out what is there, if it is much or has to go.
    pub fn flush(&mut self, out: &mut Vec<u8>) {
        if self.framing == Framing::Undecided {
            if self.body.len() < WHOLE_BYTES_MAX {
                return;
            }
            self.is_endless(out);
        }
        self.put_out(out);
    }

    /// Ends the body.
    pub fn finish(mut self, out: &mut Vec<u8>) {
        if self.framing == Framing::Undecided {
            self.end_head(Framing::Length(self.body.len() as u64), out);
        }
        self.put_out(out);
        if self.framing == Framing::Chunks && !self.manner.is_head {
            out.extend_from_slice(b"0\r\n\r\n");
        }
    }

    fn end_head(&mut self, framing: Framing, out: &mut Vec<u8>) {
        self.framing = framing;
        match framing {
            _ if !self.has_body => {}
            Framing::Length(length) => {
                let _ = write!(self.head, "Content-Length: {length}\r\n");
            }
            Framing::Chunks => self.head.push_str("Transfer-Encoding: chunked\r\n"),
            Framing::Close => self.manner.keep_alive = false,
            Framing::Undecided => debug_assert!(false, "a head without framing"),
        }
        out.extend_from_slice(self.head.as_bytes());
        out.extend_from_slice(b"\r\n");
        self.head = String::new();
    }

    fn put_out(&mut self, out: &mut Vec<u8>) {
        if self.manner.is_head || !self.has_body {
            self.body.clear();
        }
        if self.body.is_empty() {
            return;
        }
        if self.framing == Framing::Chunks {
            let mut length = String::new();
            let _ = write!(length, "{:x}\r\n", self.body.len());
            out.extend_from_slice(length.as_bytes());
            out.append(&mut self.body);
            out.extend_from_slice(b"\r\n");
        } else {
            out.append(&mut self.body);
        }
    }
}

/// The words behind a status (RFC 9110, section 15).
fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        204 => "No Content",
        304 => "Not Modified",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        408 => "Request Timeout",
        409 => "Conflict",
        411 => "Length Required",
        412 => "Precondition Failed",
        413 => "Content Too Large",
        414 => "URI Too Long",
        415 => "Unsupported Media Type",
        417 => "Expectation Failed",
        431 => "Request Header Fields Too Large",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        507 => "Insufficient Storage",
        _ => "Internal Server Error",
    }
}

/// The status that says what an error of a command means.
pub fn status_of(error: &[u8]) -> u16 {
    let word = error.split(|&byte| byte == b' ').next().unwrap_or_default();
    match word {
        b"NOAUTH" | b"WRONGPASS" => 401,
        b"NOPERM" | b"DENIED" => 403,
        b"NOTFOUND" => 404,
        b"WRONGTYPE" | b"BUSYKEY" | b"DUPLICATE" => 409,
        b"OOM" => 507,
        b"LOADING" | b"NOQUORUM" | b"MASTERDOWN" | b"CLUSTERDOWN" | b"READONLY" | b"MISCONF"
        | b"TRYAGAIN" | b"BUSY" | b"NOREPLICAS" | b"UNKILLABLE" => 503,
        _ if error.starts_with(b"ERR Protocol error: unauthenticated") => 401,
        _ if error.starts_with(b"ERR Protocol error: invalid bulk length") => 413,
        _ if error.starts_with(b"ERR max number of clients") => 503,
        _ => 400,
    }
}
