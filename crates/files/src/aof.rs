//! The commands of an append-only file, one after the other.
//!
//! ```text
//! file    := (command | "#" annotation crlf)...
//! command := "*" count crlf, ("$" length crlf, bytes crlf)...
//! ```
//!
//! Nothing is allocated in proportion to a count or a length that the file only announces.

use std::io::{self, BufRead, BufReader, Read};

/// A command has no more words; Redis' own limit for requests.
const WORDS_MAX: u64 = 1 << 20;
/// A longer line is no number.
const LINE_BYTES_MAX: u64 = 4096;

/// Why there is no further command.
#[derive(Debug)]
pub(crate) enum Fault {
    Io(io::Error),
    /// The file ends in the middle of a command.
    Cut,
    Malformed(&'static str),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Fault {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Fault::Cut,
            _ => Fault::Io(error),
        }
    }
}

/// Reads commands.
pub(crate) struct Commands<R> {
    read: BufReader<R>,
    /// Bytes that were taken.
    offset: u64,
    /// Where the last command ended.
    pub(crate) end: u64,
}

impl<R: Read> Commands<R> {
    /// Reads from what follows the first `offset` bytes of a file.
    pub(crate) fn new(read: R, offset: u64) -> Commands<R> {
        Commands { read: BufReader::with_capacity(64 << 10, read), offset, end: offset }
    }

    /// The words of the next command; `None` at the file's end.
    pub(crate) fn next(&mut self) -> Result<Option<Vec<Vec<u8>>>, Fault> {
        loop {
            let Some(line) = self.line()? else { return Ok(None) };
            match line.split_first() {
                Some((b'#', _)) => self.end = self.offset,
                Some((b'*', count)) => {
                    let words = self.words(number(count)?)?;
                    self.end = self.offset;
                    return Ok(Some(words));
                }
                _ => return Err(Fault::Malformed("no command begins here")),
            }
        }
    }

    fn words(&mut self, count: u64) -> Result<Vec<Vec<u8>>, Fault> {
        if count == 0 || count > WORDS_MAX {
            return Err(Fault::Malformed("a command has no words, or too many"));
        }
        let mut words = Vec::new();
        for _ in 0..count {
            let line = self.line()?.ok_or(Fault::Cut)?;
            let Some((b'$', length)) = line.split_first() else {
                return Err(Fault::Malformed("a word does not begin with $"));
            };
            let length = number(length)?;
            let mut word = Vec::new();
            let read = (&mut self.read).take(length).read_to_end(&mut word)?;
            let mut end = [0; 2];
            self.read.read_exact(&mut end)?;
            self.offset += read as u64 + 2;
            if end != *b"\r\n" {
                return Err(Fault::Malformed("a word is longer than it says"));
            }
            words.push(word);
        }
        Ok(words)
    }

    /// A line without its end; `None` at the file's end.
    fn line(&mut self) -> Result<Option<Vec<u8>>, Fault> {
        let mut line = Vec::new();
        let read = (&mut self.read).take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
        self.offset += read as u64;
        if line.is_empty() {
            return Ok(None);
        }
        if line.ends_with(b"\r\n") {
            line.truncate(line.len() - 2);
            return Ok(Some(line));
        }
        Err(match line.len() as u64 {
            LINE_BYTES_MAX => Fault::Malformed("a line is too long"),
            _ if line.ends_with(b"\n") => Fault::Malformed("a line does not end with CR LF"),
            _ => Fault::Cut,
        })
    }
}

fn number(text: &[u8]) -> Result<u64, Fault> {
    let number = str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    number.ok_or(Fault::Malformed("a count or a length is no number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8]) -> (Vec<Vec<Vec<u8>>>, u64, Option<String>) {
        let mut commands = Commands::new(bytes, 0);
        let mut found = Vec::new();
        loop {
            match commands.next() {
                Ok(Some(words)) => found.push(words),
                Ok(None) => return (found, commands.end, None),
                Err(fault) => return (found, commands.end, Some(format!("{fault:?}"))),
            }
        }
    }

    #[test]
    fn commands_are_read_and_every_cut_is_noticed() {
        let file =
            b"#TS:123\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*3\r\n$3\r\nSET\r\n$1\r\na\r\n$0\r\n\r\n";
        let (found, end, fault) = all(file);
        assert_eq!((found.len(), end, fault), (2, file.len() as u64, None));
        assert_eq!(found[1], [&b"SET"[..], b"a", b""]);
        let whole = [0, 9, 32];
        for cut in 0..file.len() {
            let (_, end, fault) = all(&file[..cut]);
            let before = whole.iter().rfind(|&&at| at <= cut as u64).unwrap();
            assert_eq!(end, *before, "cut at {cut}");
            assert_eq!(fault.as_deref(), (end != cut as u64).then_some("Cut"), "cut at {cut}");
        }
    }

    #[test]
    fn what_is_malformed_is_refused_and_allocates_nothing() {
        for wrong in [
            &b"hello\r\n"[..],
            b"*0\r\n",
            b"*2000000\r\n",
            b"*1\r\n+a\r\n",
            b"*1\r\n$1\r\nab\r\n",
            b"*1\n",
            b"*x\r\n",
        ] {
            let (_, _, fault) = all(wrong);
            assert!(fault.as_ref().is_some_and(|it| it.starts_with("Malformed")), "{fault:?}");
        }
        assert_eq!(all(b"*1\r\n$9000000000000000000\r\nabc").2.as_deref(), Some("Cut"));
    }
}
