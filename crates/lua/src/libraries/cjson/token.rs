//! Bytes to JSON's tokens, with the liberties that lua-cjson takes.

use std::ffi::c_char;
use std::ptr;

use super::super::buffer::Buffer;
use super::super::stack::Stack;
use super::BUFFER;

/// One token. A string is in the text if `escapes` is false, and otherwise in the buffer.
#[derive(Clone, Copy)]
pub(super) enum Token<'call> {
    ObjectBegin,
    ObjectEnd,
    ArrayBegin,
    ArrayEnd,
    Plain(&'call [u8]),
    /// A string that had escapes: its bytes are in the buffer.
    Unescaped,
    Number(f64),
    Boolean(bool),
    Null,
    Colon,
    Comma,
    End,
    Error(&'static str),
}

impl Token<'_> {
    /// As error texts call it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Token::ObjectBegin => "T_OBJ_BEGIN",
            Token::ObjectEnd => "T_OBJ_END",
            Token::ArrayBegin => "T_ARR_BEGIN",
            Token::ArrayEnd => "T_ARR_END",
            Token::Plain(_) | Token::Unescaped => "T_STRING",
            Token::Number(_) => "T_NUMBER",
            Token::Boolean(_) => "T_BOOLEAN",
            Token::Null => "T_NULL",
            Token::Colon => "T_COLON",
            Token::Comma => "T_COMMA",
            Token::End => "T_END",
            Token::Error(text) => text,
        }
    }
}

/// Reads tokens from a text, which is a Lua string: a zero follows it in memory.
pub(super) struct Reader<'call> {
    text: &'call [u8],
    /// Whether `0x10`, `inf`, `nan` and the like are numbers.
    any_numbers: bool,
    /// Where the next token begins, or where the error is.
    at: usize,
    /// Where the last token begins, or where its error is.
    token_at: usize,
    /// What the last string with escapes was.
    buffer: Buffer<'call>,
}

impl<'call> Reader<'call> {
    pub(super) fn new(stack: Stack<'call>, text: &'call [u8], any_numbers: bool) -> Reader<'call> {
        // Now, while no table is under way on the stack.
        let buffer = Buffer::take(stack, BUFFER);
        Reader { text, any_numbers, at: 0, token_at: 0, buffer }
    }

    /// Where the last token begins, counted from 1.
    pub(super) fn position(&self) -> usize {
        self.token_at + 1
    }

    /// The string of the last token [`Token::Unescaped`].
    pub(super) fn unescaped(&self) -> &[u8] {
        self.buffer.bytes()
    }

    /// Gives the buffer's memory back to the function.
    pub(super) fn keep_buffer(&self) {
        self.buffer.keep(BUFFER);
    }

    /// Reads a token. After the end comes the end again.
    pub(super) fn next(&mut self) -> Token<'call> {
        while matches!(self.text.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
        self.token_at = self.at;
        let token = match self.byte(0) {
            b'{' => Token::ObjectBegin,
            b'}' => Token::ObjectEnd,
            b'[' => Token::ArrayBegin,
            b']' => Token::ArrayEnd,
            b':' => Token::Colon,
            b',' => Token::Comma,
            b'"' => return self.string(),
            0 => return Token::End,
            _ => return self.word(),
        };
        self.at += 1;
        token
    }

    fn word(&mut self) -> Token<'call> {
        let rest = &self.text[self.at..];
        if matches!(rest[0], b'-' | b'0'..=b'9') {
            if !self.any_numbers && self.is_invalid_number() {
                return self.error("invalid number");
            }
            return self.number();
        }
        let words = [
            (&b"true"[..], Token::Boolean(true)),
            (b"false", Token::Boolean(false)),
            (b"null", Token::Null),
        ];
        if let Some((word, token)) = words.into_iter().find(|(word, _)| rest.starts_with(word)) {
            self.at += word.len();
            return token;
        }
        // Of these letters, what is no number is none in `number` either.
        if matches!(rest[0], b'+' | b'i' | b'I' | b'n' | b'N')
            && self.any_numbers
            && self.is_invalid_number()
        {
            return self.number();
        }
        self.error("invalid token")
    }

    /// Whether a number is one of those that C reads and JSON does not have.
    fn is_invalid_number(&self) -> bool {
        let mut offset = 0;
        match self.byte(0) {
            b'+' => return true,
            b'-' => offset = 1,
            _ => {}
        }
        match self.byte(offset) {
            b'0' => matches!(self.byte(offset + 1), b'x' | b'X' | b'0'..=b'9'),
            // C compares characters: all below '9' are taken for an ordinary number.
            byte if byte <= b'9' => false,
            _ => {
                let word = self.text.get(self.at + offset..self.at + offset + 3);
                word.is_some_and(|word| {
                    word.eq_ignore_ascii_case(b"inf") || word.eq_ignore_ascii_case(b"nan")
                })
            }
        }
    }

    fn number(&mut self) -> Token<'call> {
        let start: *const c_char = self.text[self.at..].as_ptr().cast();
        let mut end = ptr::null_mut();
        // SAFETY: a zero follows the text, so that reading ends there at the latest.
        let (number, length) = unsafe {
            let number = libc::strtod(start, &raw mut end);
            (number, end.cast_const().offset_from_unsigned(start))
        };
        if length == 0 {
            return self.error("invalid number");
        }
        self.at += length;
        Token::Number(number)
    }

    fn string(&mut self) -> Token<'call> {
        let text = self.text;
        let start = self.at + 1;
        let Some(length) = memchr::memchr3(b'"', b'\\', 0, &text[start..]) else {
            self.at = text.len();
            return self.error("unexpected end of string");
        };
        self.at = start + length;
        if text[self.at] == b'"' {
            self.at += 1;
            return Token::Plain(&text[start..start + length]);
        }
        let mut buffer = self.buffer;
        buffer.clear();
        buffer.add(&text[start..self.at]);
        let end = self.unescape(&mut buffer);
        self.buffer = buffer;
        match end {
            Ok(()) => Token::Unescaped,
            Err(text) => self.error(text),
        }
    }

    /// Reads to the end of a string; the next byte is a backslash or a zero.
    fn unescape(&mut self, buffer: &mut Buffer<'_>) -> Result<(), &'static str> {
        loop {
            match self.byte(0) {
                b'"' => {
                    self.at += 1;
                    return Ok(());
                }
                b'\\' => self.escape(buffer)?,
                0 => return Err("unexpected end of string"),
                _ => {
                    let rest = &self.text[self.at..];
                    let length = memchr::memchr3(b'"', b'\\', 0, rest).unwrap_or(rest.len());
                    buffer.add(&rest[..length]);
                    self.at += length;
                }
            }
        }
    }

    fn escape(&mut self, buffer: &mut Buffer<'_>) -> Result<(), &'static str> {
        let byte = match self.byte(1) {
            quoted @ (b'"' | b'\\' | b'/') => quoted,
            b'b' => 0x08,
            b't' => b'\t',
            b'n' => b'\n',
            b'f' => 0x0c,
            b'r' => b'\r',
            b'u' => {
                let (character, length) =
                    self.unicode_escape().ok_or("invalid unicode escape code")?;
                buffer.add(character.encode_utf8(&mut [0; 4]).as_bytes());
                self.at += length;
                return Ok(());
            }
            _ => return Err("invalid escape code"),
        };
        buffer.add_byte(byte);
        self.at += 2;
        Ok(())
    }

    /// The character of `\uXXXX`, or of a pair of surrogates, and how long the escape is.
    fn unicode_escape(&self) -> Option<(char, usize)> {
        let high = self.hexadecimal(2)?;
        if high & 0xf800 != 0xd800 {
            return Some((char::from_u32(high)?, 6));
        }
        let is_low = high & 0x400 != 0;
        if is_low || self.byte(6) != b'\\' || self.byte(7) != b'u' {
            return None;
        }
        let low = self.hexadecimal(8)?;
        if low & 0xfc00 != 0xdc00 {
            return None;
        }
        Some((char::from_u32(0x1_0000 + ((high & 0x3ff) << 10) + (low & 0x3ff))?, 12))
    }

    fn hexadecimal(&self, offset: usize) -> Option<u32> {
        let digits = self.text.get(self.at + offset..self.at + offset + 4)?;
        digits.iter().try_fold(0, |code, digit| Some(code << 4 | char::from(*digit).to_digit(16)?))
    }

    /// The byte at an offset from where the reader is; 0 at the end, as C has it.
    fn byte(&self, offset: usize) -> u8 {
        self.text.get(self.at + offset).copied().unwrap_or(0)
    }

    fn error(&mut self, text: &'static str) -> Token<'call> {
        self.token_at = self.at;
        Token::Error(text)
    }
}
