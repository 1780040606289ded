//! A reply of RESP2 as a stream of tokens: a long one is passed on as it comes.

/// A part of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token<'a> {
    /// `+TEXT`
    Simple(&'a [u8]),
    /// `-TEXT`
    Error(&'a [u8]),
    /// `:DIGITS`
    Integer(&'a [u8]),
    /// `$-1`, `*-1`
    Null,
    /// A string of so many bytes begins; [`Token::Bytes`] and [`Token::BulkEnd`] follow.
    Bulk(u64),
    /// Some of its bytes.
    Bytes(&'a [u8]),
    /// It ends.
    BulkEnd,
    /// An array of so many elements begins.
    Array(u64),
    /// It ends.
    ArrayEnd,
}

impl Token<'_> {
    /// Whether an element, or a whole reply, ends with it.
    pub fn ends_element(self) -> bool {
        !matches!(self, Token::Bulk(_) | Token::Bytes(_) | Token::Array(_))
    }
}

/// What the server sends is not RESP2: a fault of this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotResp;

/// Reads tokens out of bytes that come in pieces.
#[derive(Debug, Default)]
pub struct Tokens {
    /// The beginning of a line.
    line: Vec<u8>,
    /// Bytes of the string of the moment that are to come, with its line's end.
    bulk: Option<u64>,
    /// Elements to come, of each array that has begun.
    arrays: Vec<u64>,
}

impl Tokens {
    /// Passes on the next token and says how many bytes it took; `None` if it needs more bytes, which
    /// are kept here as far as it needs them. The second argument of `pass` is how many arrays the
    /// token is in.
    ///
    /// # Errors
    /// Never while the server speaks RESP2.
    pub fn next(
        &mut self,
        bytes: &[u8],
        pass: impl FnOnce(Token<'_>, usize),
    ) -> Result<Option<usize>, NotResp> {
        if self.arrays.last() == Some(&0) {
            self.arrays.pop();
            self.count_element();
            pass(Token::ArrayEnd, self.arrays.len());
            return Ok(Some(0));
        }
        if let Some(left) = self.bulk {
            return Ok(self.string(left, bytes, pass));
        }
        let Some(end) = memchr::memchr(b'\n', bytes) else {
            self.line.extend_from_slice(bytes);
            return Ok(None);
        };
        let taken = end + 1;
        if self.line.is_empty() {
            self.line_is_whole(&bytes[..taken], pass)?;
        } else {
            let mut line = std::mem::take(&mut self.line);
            line.extend_from_slice(&bytes[..taken]);
            self.line_is_whole(&line, pass)?;
        }
        Ok(Some(taken))
    }

    /// Whether the last token ended a whole reply.
    pub fn is_between_replies(&self) -> bool {
        self.arrays.is_empty() && self.bulk.is_none() && self.line.is_empty()
    }

    /// Memory that it holds.
    pub fn bytes(&self) -> usize {
        self.line.capacity() + self.arrays.capacity() * size_of::<u64>()
    }

    fn string(
        &mut self,
        left: u64,
        bytes: &[u8],
        pass: impl FnOnce(Token<'_>, usize),
    ) -> Option<usize> {
        let depth = self.arrays.len();
        if left > 2 {
            let taken = bytes.len().min(usize::try_from(left - 2).unwrap_or(usize::MAX));
            if taken == 0 {
                return None;
            }
            self.bulk = Some(left - taken as u64);
            pass(Token::Bytes(&bytes[..taken]), depth);
            return Some(taken);
        }
        if bytes.is_empty() {
            return None;
        }
        if left == 2 && bytes.len() == 1 {
            // Half of the line's end.
            self.bulk = Some(1);
            return None;
        }
        let taken = left as usize;
        self.bulk = None;
        self.count_element();
        pass(Token::BulkEnd, depth);
        Some(taken)
    }

    fn line_is_whole(
        &mut self,
        line: &[u8],
        pass: impl FnOnce(Token<'_>, usize),
    ) -> Result<(), NotResp> {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let (&kind, text) = line.split_first().ok_or(NotResp)?;
        let depth = self.arrays.len();
        let token = match kind {
            b'+' => Token::Simple(text),
            b'-' => Token::Error(text),
            b':' => Token::Integer(text),
            b'$' | b'*' if text == b"-1" => Token::Null,
            b'$' | b'*' => {
                let digits = std::str::from_utf8(text).map_err(|_| NotResp)?;
                let count: u64 = digits.parse().map_err(|_| NotResp)?;
                if kind == b'$' {
                    self.bulk = Some(count.checked_add(2).ok_or(NotResp)?);
                    Token::Bulk(count)
                } else {
                    self.arrays.push(count);
                    Token::Array(count)
                }
            }
            _ => return Err(NotResp),
        };
        if token.ends_element() {
            self.count_element();
        }
        pass(token, depth);
        Ok(())
    }

    fn count_element(&mut self) {
        if let Some(left) = self.arrays.last_mut() {
            *left -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(bytes: &[u8], at_once: usize) -> Vec<String> {
        let mut tokens = Tokens::default();
        let mut found: Vec<String> = Vec::new();
        for mut part in bytes.chunks(at_once) {
            loop {
                let step = tokens.next(part, |token, depth| {
                    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                    match token {
                        // However it is cut.
                        Token::Bytes(bytes) => match found.last_mut() {
                            Some(last) if last.starts_with('"') => last.push_str(&text(bytes)),
                            _ => found.push(format!("\"{}", text(bytes))),
                        },
                        Token::Simple(bytes) => found.push(format!("{depth}+{}", text(bytes))),
                        Token::Error(bytes) => found.push(format!("{depth}-{}", text(bytes))),
                        Token::Integer(bytes) => found.push(format!("{depth}:{}", text(bytes))),
                        other => found.push(format!("{depth} {other:?}")),
                    }
                });
                match step.expect("RESP") {
                    None => break,
                    Some(taken) => part = &part[taken..],
                }
            }
        }
        assert!(tokens.is_between_replies());
        found
    }

    #[test]
    fn replies_are_the_same_however_they_are_cut() {
        let bytes = b"+OK\r\n-ERR no\r\n:-12\r\n$-1\r\n*-1\r\n$0\r\n\r\n$4\r\na\r\nb\r\n\
            *2\r\n*0\r\n*1\r\n$1\r\nx\r\n*0\r\n+end\r\n";
        let expected = [
            "0+OK",
            "0-ERR no",
            "0:-12",
            "0 Null",
            "0 Null",
            "0 Bulk(0)",
            "0 BulkEnd",
            "0 Bulk(4)",
            "\"a\r\nb",
            "0 BulkEnd",
            "0 Array(2)",
            "1 Array(0)",
            "1 ArrayEnd",
            "1 Array(1)",
            "2 Bulk(1)",
            "\"x",
            "2 BulkEnd",
            "1 ArrayEnd",
            "0 ArrayEnd",
            "0 Array(0)",
            "0 ArrayEnd",
            "0+end",
        ];
        for at_once in 1..=bytes.len() {
            assert_eq!(shown(bytes, at_once), expected, "by {at_once}");
        }
    }
}
