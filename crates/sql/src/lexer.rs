//! Text to tokens. Each token keeps its place, so that errors can name it.

use crate::error::{self, Error};

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A name or a keyword, without quotes.
    Word,
    /// A name in double quotes.
    Quoted,
    /// A text in single quotes.
    Text,
    /// `x'..'`.
    Blob,
    Integer,
    Float,
    /// `?`.
    Question,
    /// `:name`, `@name`, `$name` or `#name`.
    Named,
    /// An operator or a separator.
    Sign,
    End,
}

/// A token's kind and its place in the text, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// The longest signs come first.
const SIGNS: [&str; 28] = [
    "<<", ">>", "<=", ">=", "<>", "!=", "==", "||", "(", ")", ",", ";", "+", "-", "*", "/", "%",
    "<", ">", "=", "&", "|", "~", ".", "[", "]", "{", "}",
];

/// The tokens of a text; an end follows the last one.
///
/// # Errors
/// `SQL_UNRECOGNIZED_SYNTAX`, if something is no token.
pub(crate) fn tokens(text: &[u8]) -> Result<Vec<Token>, Error> {
    let mut found = Vec::with_capacity(text.len() / 4 + 1);
    let mut at = 0;
    loop {
        at = skip_blanks(text, at);
        if at >= text.len() {
            break;
        }
        let (kind, end) = next(text, at)?;
        found.push(Token { kind, start: at, end });
        at = end;
    }
    found.push(Token { kind: Kind::End, start: text.len(), end: text.len() });
    Ok(found)
}

/// Skips blanks and comments.
fn skip_blanks(text: &[u8], mut at: usize) -> usize {
    loop {
        let rest = &text[at.min(text.len())..];
        match rest {
            [b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c, ..] => at += 1,
            [byte, ..] if *byte >= 0x80 => match wide_blank(rest) {
                Some(length) => at += length,
                None => return at,
            },
            [b'-', b'-', ..] => {
                at += rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
            }
            [b'/', b'*', _, ..] => {
                let close = rest[2..].windows(2).position(|pair| pair == b"*/");
                at += close.map_or(rest.len(), |close| close + 4);
            }
            _ => return at.min(text.len()),
        }
    }
}

/// The length of a blank of Unicode, if one is here.
fn wide_blank(rest: &[u8]) -> Option<usize> {
    let first = &rest[..rest.len().min(4)];
    let text = match std::str::from_utf8(first) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&first[..error.valid_up_to()]).ok()?,
    };
    text.chars().next().filter(|char| char.is_whitespace()).map(char::len_utf8)
}

fn next(text: &[u8], at: usize) -> Result<(Kind, usize), Error> {
    let rest = &text[at..];
    let bad = |end: usize| Err(error::unrecognized(text, at, end));
    match rest[0] {
        quote @ (b'\'' | b'"') => match quoted_end(text, at, quote) {
            Some(end) => Ok((if quote == b'"' { Kind::Quoted } else { Kind::Text }, end)),
            None => bad(text.len()),
        },
        b'x' | b'X' if rest.get(1) == Some(&b'\'') => {
            let close = rest[2..].iter().position(|byte| *byte == b'\'');
            let Some(length) = close else { return bad(text.len()) };
            let digits = &rest[2..2 + length];
            let is_good = length % 2 == 0 && digits.iter().all(u8::is_ascii_hexdigit);
            if is_good { Ok((Kind::Blob, at + length + 3)) } else { bad(at + length + 3) }
        }
        b'0'..=b'9' => number(text, at),
        b'.' if rest.get(1).is_some_and(u8::is_ascii_digit) => number(text, at),
        b'?' => Ok((Kind::Question, at + 1)),
        b':' | b'@' | b'$' | b'#' => {
            let end = word_end(text, at + 1);
            match rest[0] {
                _ if end > at + 1 => Ok((Kind::Named, end)),
                b':' => Ok((Kind::Sign, end)),
                _ => bad(end),
            }
        }
        byte if is_word(byte) => Ok((Kind::Word, word_end(text, at))),
        first => match SIGNS
            .iter()
            .find(|sign| sign.as_bytes()[0] == first && rest.starts_with(sign.as_bytes()))
        {
            Some(sign) => Ok((Kind::Sign, at + sign.len())),
            None => bad(at + 1),
        },
    }
}

/// Whether the byte may be in a name. All beyond ASCII may.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

fn word_end(text: &[u8], at: usize) -> usize {
    let mut at = at;
    while let Some(byte) = text.get(at)
        && (is_word(*byte) || *byte == b'$')
        && (*byte < 0x80 || wide_blank(&text[at..]).is_none())
    {
        at += 1;
    }
    at
}

/// Where a quoted token ends; a doubled quote is a part of it.
fn quoted_end(text: &[u8], start: usize, quote: u8) -> Option<usize> {
    let mut at = start + 1;
    while at < text.len() {
        if text[at] != quote {
            at += 1;
        } else if text.get(at + 1) == Some(&quote) {
            at += 2;
        } else {
            return Some(at + 1);
        }
    }
    None
}

fn number(text: &[u8], start: usize) -> Result<(Kind, usize), Error> {
    let digits = |mut at: usize| {
        while text.get(at).is_some_and(u8::is_ascii_digit) {
            at += 1;
        }
        at
    };
    let mut kind = Kind::Integer;
    let mut at = start;
    if matches!(text[start..], [b'0', b'x' | b'X', digit, ..] if digit.is_ascii_hexdigit()) {
        at += 2;
        while text.get(at).is_some_and(u8::is_ascii_hexdigit) {
            at += 1;
        }
    } else {
        at = digits(at);
        if text.get(at) == Some(&b'.') {
            kind = Kind::Float;
            at = digits(at + 1);
        }
        if matches!(text.get(at), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(text.get(at + 1), Some(b'+' | b'-')));
            if text.get(at + 1 + sign).is_some_and(u8::is_ascii_digit) {
                kind = Kind::Float;
                at = digits(at + 1 + sign);
            }
        }
    }
    if text.get(at).is_some_and(|byte| is_word(*byte)) {
        return Err(error::unrecognized(text, start, word_end(text, at)));
    }
    Ok((kind, at))
}

/// What a quoted token contains.
pub(crate) fn unquoted(token: &[u8]) -> Vec<u8> {
    let quote = token[0];
    let inner = &token[1..token.len() - 1];
    let mut out = Vec::with_capacity(inner.len());
    let mut at = 0;
    while at < inner.len() {
        out.push(inner[at]);
        at += if inner[at] == quote { 2 } else { 1 };
    }
    out
}
