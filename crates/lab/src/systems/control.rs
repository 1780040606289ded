//! A plain blocking client for what happens beside the load: is the server up, how many keys has
//! it, save now.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// One reply, as far as the lab distinguishes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// `+...`
    Simple(String),
    /// `-...`
    Error(String),
    /// `:...`
    Integer(i64),
    /// `$...`, or nil.
    Bulk(Option<Vec<u8>>),
    /// `*...`
    Array(Vec<Self>),
}

impl Reply {
    /// A text as it is, anything else as it looks.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::Bulk(Some(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
            Self::Simple(text) => text.clone(),
            other => format!("{other:?}"),
        }
    }
}

/// The transport of a control connection: a socket, or TLS over one.
pub trait Talk: Read + Write + Send + std::fmt::Debug {}
impl<T: Read + Write + Send + std::fmt::Debug> Talk for T {}

/// A connection for one command at a time.
#[derive(Debug)]
pub struct Control {
    reader: BufReader<Box<dyn Talk>>,
}

/// More than any reply to a command of the lab.
const BULK_BYTES_MAX: usize = 64 << 20;
/// More than any list that the lab asks for (`CONFIG GET *` has some hundreds of items).
const ITEMS_MAX: usize = 100_000;
/// Lists of lists of lists: deeper than any reply to the lab.
const DEPTH_MAX: usize = 8;

impl Control {
    /// Connects.
    ///
    /// # Errors
    /// What connecting says.
    pub fn connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, Duration::from_secs(5))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(120)))?;
        Ok(Self::over(Box::new(stream)))
    }

    /// Over a connection that somebody else opened.
    #[must_use]
    pub fn over(stream: Box<dyn Talk>) -> Self {
        Self { reader: BufReader::new(stream) }
    }

    /// Sends one command and reads its reply.
    ///
    /// # Errors
    /// Errors of the socket; `InvalidData` when the bytes are no reply; `TimedOut`/`WouldBlock`
    /// after two minutes without one.
    pub fn call(&mut self, words: &[&str]) -> io::Result<Reply> {
        let mut request = format!("*{}\r\n", words.len());
        for word in words {
            request += &format!("${}\r\n{word}\r\n", word.len());
        }
        self.reader.get_mut().write_all(request.as_bytes())?;
        self.reader.get_mut().flush()?;
        self.read_reply(0)
    }

    /// Sends several commands together and reads their replies.
    ///
    /// # Errors
    /// As [`Self::call`].
    pub fn calls(&mut self, commands: &[Vec<&str>]) -> io::Result<Vec<Reply>> {
        let mut request = String::new();
        for words in commands {
            request += &format!("*{}\r\n", words.len());
            for word in words {
                request += &format!("${}\r\n{word}\r\n", word.len());
            }
        }
        self.reader.get_mut().write_all(request.as_bytes())?;
        commands.iter().map(|_| self.read_reply(0)).collect()
    }

    /// As [`Self::call`], for commands that answer with an integer.
    ///
    /// # Errors
    /// As [`Self::call`]; `Other` with the reply when it is none.
    pub fn integer(&mut self, words: &[&str]) -> io::Result<i64> {
        match self.call(words)? {
            Reply::Integer(value) => Ok(value),
            other => Err(unexpected(words, &other)),
        }
    }

    /// As [`Self::call`], for commands that answer with a text.
    ///
    /// # Errors
    /// As [`Self::integer`].
    pub fn text(&mut self, words: &[&str]) -> io::Result<String> {
        match self.call(words)? {
            Reply::Simple(text) => Ok(text),
            Reply::Bulk(Some(bytes)) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            other => Err(unexpected(words, &other)),
        }
    }

    /// The value of `field` in `INFO section`.
    ///
    /// # Errors
    /// As [`Self::text`]; `NotFound` when INFO does not have the field.
    pub fn info(&mut self, section: &str, field: &str) -> io::Result<String> {
        let text = self.text(&["INFO", section])?;
        text.lines()
            .find_map(|line| {
                line.trim_end().strip_prefix(field)?.strip_prefix(':').map(str::to_owned)
            })
            .ok_or_else(|| {
                io::Error::new(io::ErrorKind::NotFound, format!("INFO {section} has no {field}"))
            })
    }

    fn read_reply(&mut self, depth: usize) -> io::Result<Reply> {
        let line = self.read_line()?;
        let invalid = || io::Error::new(io::ErrorKind::InvalidData, format!("no reply: {line:?}"));
        let (kind, rest) = line.split_at_checked(1).ok_or_else(invalid)?;
        Ok(match kind {
            "+" => Reply::Simple(rest.to_owned()),
            "-" => Reply::Error(rest.to_owned()),
            ":" => Reply::Integer(rest.parse().map_err(|_| invalid())?),
            // Nil is either; some servers say of an unknown command that it is no array.
            "$" | "*" if rest == "-1" => Reply::Bulk(None),
            "$" => {
                let length: usize = rest.parse().map_err(|_| invalid())?;
                if length > BULK_BYTES_MAX {
                    return Err(invalid());
                }
                let mut bytes = vec![0; length + 2];
                self.reader.read_exact(&mut bytes)?;
                bytes.truncate(length);
                Reply::Bulk(Some(bytes))
            }
            "*" => {
                let items: usize = rest.parse().map_err(|_| invalid())?;
                if items > ITEMS_MAX || depth > DEPTH_MAX {
                    return Err(invalid());
                }
                let items = (0..items).map(|_| self.read_reply(depth + 1));
                Reply::Array(items.collect::<io::Result<_>>()?)
            }
            _ => return Err(invalid()),
        })
    }

    fn read_line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.reader.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end_matches(['\r', '\n']).to_owned())
    }
}

fn unexpected(words: &[&str], reply: &Reply) -> io::Error {
    io::Error::other(format!("{} answered {reply:?}", words.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that says what is written here, whatever it is asked.
    #[derive(Debug)]
    struct Script(&'static [u8]);

    impl Read for Script {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            self.0.read(to)
        }
    }

    impl Write for Script {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn nil_is_told_in_two_ways() {
        for nil in [&b"*1\r\n$-1\r\n"[..], b"*1\r\n*-1\r\n"] {
            let reply = Control::over(Box::new(Script(nil))).call(&["COMMAND"]).unwrap();
            assert_eq!(reply, Reply::Array(vec![Reply::Bulk(None)]));
        }
    }
}
