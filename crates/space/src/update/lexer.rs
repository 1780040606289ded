//! JSON paths of operations, one step after the other: `a.b[2]["c d"]`.
//!
//! A path is read only as far as an operation gets, so what is wrong behind that place is no error.
//!
//! Source: Tarantool's documentation, "JSON paths", and its `json_lexer`.

/// One step of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token<'a> {
    /// The element of an array, from 0.
    Index(u32),
    /// The value of a map with this key.
    Key(&'a [u8]),
    /// `[*]`, which names no single value.
    Each,
    /// There is no step left.
    End,
}

/// The rest of a path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lexer<'a> {
    text: &'a [u8],
    offset: usize,
    /// Characters so far: messages count from there.
    characters: u32,
}

impl<'a> Lexer<'a> {
    pub(crate) fn of(text: &'a [u8]) -> Lexer<'a> {
        Lexer { text, offset: 0, characters: 0 }
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.offset == self.text.len()
    }

    /// The text that is left.
    pub(crate) fn rest(&self) -> &'a [u8] {
        &self.text[self.offset..]
    }

    /// Bytes that were read.
    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    /// How many characters were read.
    pub(crate) fn characters(&self) -> u32 {
        self.characters
    }

    /// Whether more than so many steps are left.
    pub(crate) fn has_more_than(mut self, steps: usize) -> bool {
        (0..=steps).all(|_| !matches!(self.next(), Ok(Token::End) | Err(_)))
    }

    /// The next step.
    ///
    /// # Errors
    /// The place of what is wrong, in characters from 1.
    pub(crate) fn next(&mut self) -> Result<Token<'a>, u32> {
        if self.is_at_end() {
            return Ok(Token::End);
        }
        let before = *self;
        match self.read()? {
            '[' => {
                let token = match self.peek() {
                    None => return Err(self.characters),
                    Some(quote @ (b'"' | b'\'')) => self.quoted(quote)?,
                    Some(b'*') => {
                        self.pass(1);
                        Token::Each
                    }
                    Some(_) => self.index()?,
                };
                if self.peek() != Some(b']') {
                    return Err(self.characters + 1);
                }
                self.pass(1);
                Ok(token)
            }
            '.' if self.is_at_end() => Err(self.characters + 1),
            '.' => self.identifier(),
            // Only the first name needs no dot.
            _ if before.offset > 0 => Err(self.characters),
            _ => {
                *self = before;
                self.identifier()
            }
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.offset).copied()
    }

    /// Passes characters of one byte each.
    fn pass(&mut self, bytes: usize) {
        self.offset += bytes;
        self.characters += bytes as u32;
    }

    fn read(&mut self) -> Result<char, u32> {
        let rest = self.rest();
        let some = &rest[..rest.len().min(4)];
        let valid = match std::str::from_utf8(some) {
            Ok(text) => text,
            Err(error) => std::str::from_utf8(&some[..error.valid_up_to()]).unwrap_or_default(),
        };
        let read = valid.chars().next().ok_or(self.characters + 1)?;
        self.offset += read.len_utf8();
        self.characters += 1;
        Ok(read)
    }

    fn quoted(&mut self, quote: u8) -> Result<Token<'a>, u32> {
        self.pass(1);
        let from = self.offset;
        while self.read()? != char::from(quote) {}
        match &self.text[from..self.offset - 1] {
            [] => Err(self.characters),
            key => Ok(Token::Key(key)),
        }
    }

    fn index(&mut self) -> Result<Token<'a>, u32> {
        let rest = self.rest();
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit());
        let (mut number, mut length) = (0u32, 0);
        for digit in digits {
            number = number.saturating_mul(10).saturating_add(u32::from(digit - b'0'));
            length += 1;
        }
        let index = number.checked_sub(1).ok_or(self.characters + 1)?;
        self.pass(length);
        Ok(Token::Index(index))
    }

    /// Letters, digits and underscores, with no digit in front.
    fn identifier(&mut self) -> Result<Token<'a>, u32> {
        let from = self.offset;
        let first = self.read()?;
        if !first.is_alphabetic() && first != '_' {
            return Err(self.characters);
        }
        while !self.is_at_end() {
            let before = *self;
            let Ok(next) = self.read() else {
                // As in Tarantool, a byte that is no text ends the name, and is a part of it.
                self.offset += 1;
                break;
            };
            if !next.is_alphanumeric() && next != '_' {
                *self = before;
                break;
            }
        }
        Ok(Token::Key(&self.text[from..self.offset]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The steps as text, or the place of what is wrong.
    fn steps(path: &[u8]) -> String {
        let mut lexer = Lexer::of(path);
        let mut out = String::new();
        loop {
            match lexer.next() {
                Ok(Token::End) => return out,
                Ok(Token::Index(index)) => out.push_str(&format!("[{index}]")),
                Ok(Token::Key(key)) => {
                    out.push_str(&format!("<{}>", String::from_utf8_lossy(key)));
                }
                Ok(Token::Each) => out.push_str("[*]"),
                Err(place) => return format!("{out} wrong at {place}"),
            }
        }
    }

    #[test]
    fn paths_are_read_as_tarantool_reads_them() {
        for (path, expected) in [
            ("", ""),
            ("a.b_1[2]", "<a><b_1>[1]"),
            (".a[\"x y\"]['\"']", "<a><x y><\">"),
            ("[3][*]", "[2][*]"),
            ("[1]x", "[0] wrong at 4"),
            ("a['b']c.d", "<a><b> wrong at 7"),
            ("ы.ы1", "<ы><ы1>"),
            ("b.y[0]", "<b><y> wrong at 5"),
            ("b.y[", "<b><y> wrong at 4"),
            ("b.y[1", "<b><y> wrong at 6"),
            ("b..y", "<b> wrong at 3"),
            ("b.ы..", "<b><ы> wrong at 5"),
            ("b['']", "<b> wrong at 4"),
            ("b['ы']]", "<b><ы> wrong at 7"),
            ("b[1a]", "<b> wrong at 4"),
            ("b.", "<b> wrong at 3"),
            ("b['a", "<b> wrong at 5"),
            ("1", " wrong at 1"),
            ("[-1]", " wrong at 2"),
            ("[99999999999]", "[4294967294]"),
        ] {
            assert_eq!(steps(path.as_bytes()), expected, "{path}");
        }
        assert_eq!(steps(b"a.\xff"), "<a> wrong at 3");
        assert_eq!(steps(b"ab\xff.c"), "<ab\u{fffd}><c>");
        assert_eq!(steps(b"ab\xffc"), "<ab\u{fffd}> wrong at 3");
        assert_eq!(steps(b"['\xe2\x82']"), " wrong at 3");
    }

    #[test]
    fn steps_are_counted_no_further_than_asked() {
        assert!(!Lexer::of(b"a.b").has_more_than(2));
        assert!(Lexer::of(b"a.b[1]").has_more_than(2));
        assert!(!Lexer::of(b"a..b").has_more_than(1));
    }
}
