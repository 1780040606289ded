//! A reply as received, its decoder and its two printed forms.
//!
//! `show` keeps every difference of the protocol (RESP2's two nulls, maps and arrays); `loose`
//! folds RESP3 into what RESP2 would say, so that one expectation in a script serves both
//! protocols.

use std::io::{self, BufRead};

/// One reply, or why there was none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// `+text`
    Simple(String),
    /// `-text`
    Error(String),
    /// `:n`
    Integer(i64),
    /// `$n`
    Bulk(Vec<u8>),
    /// `$-1`
    NullBulk,
    /// `*-1`
    NullArray,
    /// `_`
    Null,
    /// `*n`
    Array(Vec<Reply>),
    /// `%n`
    Map(Vec<(Reply, Reply)>),
    /// `~n`
    Set(Vec<Reply>),
    /// `>n`
    Push(Vec<Reply>),
    /// `,text`, as written
    Double(String),
    /// `#t` or `#f`
    Boolean(bool),
    /// `(digits`
    BigNumber(String),
    /// `=n`, with its three-letter format
    Verbatim(String, Vec<u8>),
    /// `|n` and the reply that it belongs to
    Attribute(Vec<(Reply, Reply)>, Box<Reply>),
    /// The server closed the connection.
    Closed,
    /// Nothing came within the time limit.
    Timeout,
    /// Nothing came, as the script demands.
    Silence,
    /// Bytes that are not a reply.
    Malformed(String),
}

/// How deep replies may nest before they are taken for garbage.
const MAX_DEPTH: usize = 64;

impl Reply {
    /// Reads one reply. End of stream and time-outs are replies too; any other I/O error counts
    /// as a closed connection, which is what a reset is to a client.
    pub fn read(input: &mut impl BufRead) -> Reply {
        match read_at(input, 0) {
            Ok(reply) => reply,
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Reply::Timeout,
                io::ErrorKind::InvalidData => Reply::Malformed(error.to_string()),
                _ => Reply::Closed,
            },
        }
    }

    /// The printed form that keeps every difference.
    pub fn show(&self) -> String {
        self.print(false)
    }

    /// The printed form in which RESP3 reads like RESP2.
    pub fn loose(&self) -> String {
        self.print(true)
    }

    /// The text of a simple string, bulk string, error or integer; empty for anything else.
    pub fn text(&self) -> String {
        match self {
            Reply::Simple(text) | Reply::Error(text) => text.clone(),
            Reply::Bulk(bytes) | Reply::Verbatim(_, bytes) => {
                String::from_utf8_lossy(bytes).into_owned()
            }
            Reply::Integer(value) => value.to_string(),
            Reply::Double(text) | Reply::BigNumber(text) => text.clone(),
            _ => String::new(),
        }
    }

    /// The elements of an array, a set or a push; a map's keys and values in turn.
    pub fn elements(&self) -> Vec<Reply> {
        match self {
            Reply::Array(items) | Reply::Set(items) | Reply::Push(items) => items.clone(),
            Reply::Map(pairs) => {
                pairs.iter().flat_map(|(key, value)| [key.clone(), value.clone()]).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Whether this, or anything in it, is a reply that did not come in time.
    pub fn timed_out(&self) -> bool {
        *self == Reply::Timeout || self.elements().iter().any(Reply::timed_out)
    }

    fn print(&self, loose: bool) -> String {
        let list = |open: &str, items: &[Reply], close: &str| {
            let inner: Vec<String> = items.iter().map(|item| item.print(loose)).collect();
            format!("{open}{}{close}", inner.join(", "))
        };
        let pairs = |open: &str, items: &[(Reply, Reply)], close: &str| {
            let inner: Vec<String> = items
                .iter()
                .map(|(key, value)| {
                    let separator = if loose { ", " } else { ": " };
                    format!("{}{separator}{}", key.print(loose), value.print(loose))
                })
                .collect();
            format!("{open}{}{close}", inner.join(", "))
        };
        match self {
            Reply::Simple(text) => format!("+{text}"),
            Reply::Error(text) => format!("-{text}"),
            Reply::Integer(value) => format!(":{value}"),
            Reply::Bulk(bytes) => quote(bytes),
            Reply::NullBulk | Reply::NullArray | Reply::Null if loose => "nil".into(),
            Reply::NullBulk => "nil-bulk".into(),
            Reply::NullArray => "nil-array".into(),
            Reply::Null => "nil".into(),
            Reply::Array(items) => list("[", items, "]"),
            Reply::Set(items) if loose => list("[", items, "]"),
            Reply::Set(items) => list("~[", items, "]"),
            Reply::Push(items) => list(">[", items, "]"),
            Reply::Map(items) if loose => pairs("[", items, "]"),
            Reply::Map(items) => pairs("{", items, "}"),
            Reply::Double(text) | Reply::BigNumber(text) if loose => quote(text.as_bytes()),
            Reply::Double(text) => format!(",{text}"),
            Reply::BigNumber(text) => format!("({text}"),
            Reply::Boolean(value) if loose => format!(":{}", i64::from(*value)),
            Reply::Boolean(value) => format!("#{}", if *value { 't' } else { 'f' }),
            Reply::Verbatim(_, bytes) if loose => quote(bytes),
            Reply::Verbatim(format, bytes) => format!("={format}:{}", quote(bytes)),
            Reply::Attribute(_, reply) if loose => reply.print(true),
            Reply::Attribute(items, reply) => {
                format!("{} {}", pairs("|{", items, "}"), reply.print(false))
            }
            Reply::Closed => "closed".into(),
            Reply::Timeout => "timeout".into(),
            Reply::Silence => "silence".into(),
            Reply::Malformed(why) => format!("malformed({why})"),
        }
    }
}

/// `bytes` in double quotes, with the escapes that scripts use too.
pub fn quote(bytes: &[u8]) -> String {
    let mut text = String::from("\"");
    for &byte in bytes {
        match byte {
            b'"' => text.push_str("\\\""),
            b'\\' => text.push_str("\\\\"),
            b'\n' => text.push_str("\\n"),
            b'\r' => text.push_str("\\r"),
            b'\t' => text.push_str("\\t"),
            0x20..=0x7e => text.push(byte as char),
            _ => text.push_str(&format!("\\x{byte:02x}")),
        }
    }
    text.push('"');
    text
}

fn invalid(why: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.into())
}

/// A line's text. Bytes that are not UTF-8 stay distinct, as escapes.
fn text(line: &[u8]) -> String {
    let mut text = String::with_capacity(line.len());
    for chunk in line.utf8_chunks() {
        text.push_str(chunk.valid());
        chunk.invalid().iter().for_each(|byte| text.push_str(&format!("\\x{byte:02x}")));
    }
    text
}

fn read_line(input: &mut impl BufRead) -> io::Result<String> {
    let mut line = Vec::new();
    input.read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    match line.strip_suffix(b"\r\n") {
        Some(line) => Ok(text(line)),
        None => Err(invalid(format!("a line without CRLF: {}", quote(&line)))),
    }
}

fn read_bytes(input: &mut impl BufRead, length: i64) -> io::Result<Vec<u8>> {
    let length = usize::try_from(length).map_err(|_| invalid(format!("length {length}")))?;
    let mut bytes = vec![0; length + 2];
    input.read_exact(&mut bytes)?;
    if !bytes.ends_with(b"\r\n") {
        return Err(invalid("a string without CRLF at its end"));
    }
    bytes.truncate(length);
    Ok(bytes)
}

fn read_items(input: &mut impl BufRead, count: i64, depth: usize) -> io::Result<Vec<Reply>> {
    (0..count).map(|_| read_at(input, depth + 1)).collect()
}

fn read_pairs(
    input: &mut impl BufRead,
    count: i64,
    depth: usize,
) -> io::Result<Vec<(Reply, Reply)>> {
    (0..count).map(|_| Ok((read_at(input, depth + 1)?, read_at(input, depth + 1)?))).collect()
}

fn read_at(input: &mut impl BufRead, depth: usize) -> io::Result<Reply> {
    if depth > MAX_DEPTH {
        return Err(invalid("nested too deep"));
    }
    let line = read_line(input)?;
    let Some(kind) = line.chars().next().filter(char::is_ascii) else {
        return Err(invalid(format!("a reply that starts with {line:?}")));
    };
    let rest = &line[1..];
    let number = || rest.parse::<i64>().map_err(|_| invalid(format!("a number in {line:?}")));
    Ok(match kind {
        '+' => Reply::Simple(rest.into()),
        '-' => Reply::Error(rest.into()),
        ':' => Reply::Integer(number()?),
        ',' => Reply::Double(rest.into()),
        '(' => Reply::BigNumber(rest.into()),
        '_' => Reply::Null,
        '#' => Reply::Boolean(rest == "t"),
        '$' => match number()? {
            -1 => Reply::NullBulk,
            length => Reply::Bulk(read_bytes(input, length)?),
        },
        '!' => {
            let bytes = read_bytes(input, number()?)?;
            Reply::Error(text(&bytes))
        }
        '=' => {
            let bytes = read_bytes(input, number()?)?;
            if bytes.len() < 4 || bytes[3] != b':' {
                return Err(invalid("a verbatim string without its format"));
            }
            let format = String::from_utf8_lossy(&bytes[..3]).into_owned();
            Reply::Verbatim(format, bytes[4..].to_vec())
        }
        '*' => match number()? {
            -1 => Reply::NullArray,
            count => Reply::Array(read_items(input, count, depth)?),
        },
        '~' => Reply::Set(read_items(input, number()?, depth)?),
        '>' => Reply::Push(read_items(input, number()?, depth)?),
        '%' => Reply::Map(read_pairs(input, number()?, depth)?),
        '|' => {
            let pairs = read_pairs(input, number()?, depth)?;
            Reply::Attribute(pairs, Box::new(read_at(input, depth + 1)?))
        }
        _ => return Err(invalid(format!("a reply that starts with {line:?}"))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(wire: &str, show: &str, loose: &str) {
        let reply = Reply::read(&mut wire.as_bytes());
        assert_eq!(reply.show(), show);
        assert_eq!(reply.loose(), loose);
    }

    #[test]
    fn prints_what_the_wire_said() {
        check("+OK\r\n", "+OK", "+OK");
        check("$-1\r\n", "nil-bulk", "nil");
        check("*2\r\n:1\r\n$1\r\na\r\n", "[:1, \"a\"]", "[:1, \"a\"]");
        check("%1\r\n+a\r\n,1.5\r\n", "{+a: ,1.5}", "[+a, \"1.5\"]");
        check("=7\r\ntxt:a\nb\r\n", "=txt:\"a\\nb\"", "\"a\\nb\"");
        check("+é\r\n", "+é", "+é");
        check("", "closed", "closed");
        check("$3\r\nab", "closed", "closed");
    }

    #[test]
    fn tells_bytes_that_are_not_utf_8_apart() {
        let error = |byte| Reply::read(&mut [b'-', byte, b'\r', b'\n'].as_slice());
        assert_eq!(error(0xff).show(), "-\\xff");
        assert_ne!(error(0xff), error(0xfe));
    }

    #[test]
    fn tells_garbage_from_replies() {
        assert!(matches!(Reply::read(&mut "hello\r\n".as_bytes()), Reply::Malformed(_)));
        assert!(matches!(Reply::read(&mut "$x\r\n".as_bytes()), Reply::Malformed(_)));
    }
}
