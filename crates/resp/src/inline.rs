//! Inline requests: words on a line, as a person types them into a terminal.
//!
//! The quoting rules are those of Redis' command line: `"..."` knows `\xHH`, `\n`, `\r`, `\t`,
//! `\b`, `\a` and `\` before any other byte; `'...'` knows `\'` only; a closing quote must end
//! its word. One difference: a NUL byte is a byte like any other here, where Redis waits for a
//! line end that it then never finds.

use crate::error::ProtocolError;
use crate::parser::Arg;

/// A line's arguments.
pub(crate) enum Line {
    /// No quotes: positions were appended.
    InPlace,
    /// Quotes undone; at least one argument.
    Unquoted(Vec<Vec<u8>>),
}

/// Splits `line` (without its end) into arguments.
pub(crate) fn split(line: &[u8], args: &mut Vec<Arg>) -> Result<Line, ProtocolError> {
    if memchr::memchr2(b'"', b'\'', line).is_some() {
        return unquote(line).map(Line::Unquoted);
    }
    let mut position = 0;
    while let Some(start) = word_start(line, position) {
        let length = line[start..].iter().position(|byte| ends_word(*byte));
        position = length.map_or(line.len(), |length| start + length);
        args.push(Arg { start: start as u32, end: position as u32 });
    }
    Ok(Line::InPlace)
}

/// C's `isspace` separates words, but only these bytes end one: Redis does it so.
fn ends_word(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

fn word_start(line: &[u8], from: usize) -> Option<usize> {
    line[from..].iter().position(|byte| !is_space(*byte)).map(|skipped| from + skipped)
}

fn unquote(line: &[u8]) -> Result<Vec<Vec<u8>>, ProtocolError> {
    let mut words = Vec::new();
    let mut position = 0;
    while let Some(start) = word_start(line, position) {
        let mut word = Vec::new();
        position = start;
        while let Some(byte) = line.get(position).copied().filter(|byte| !ends_word(*byte)) {
            position += 1;
            match byte {
                b'"' => position = double_quoted(line, position, &mut word)?,
                b'\'' => position = single_quoted(line, position, &mut word)?,
                _ => word.push(byte),
            }
        }
        words.push(word);
    }
    Ok(words)
}

/// From behind the opening quote to behind the closing one.
fn double_quoted(
    line: &[u8],
    mut position: usize,
    word: &mut Vec<u8>,
) -> Result<usize, ProtocolError> {
    loop {
        let (byte, length) = match &line[position..] {
            [] => return Err(ProtocolError::UnbalancedQuotes),
            [b'"', ..] => return closed(line, position + 1),
            [b'\\', b'x', high, low, ..] if hex(*high).is_some() && hex(*low).is_some() => {
                (hex(*high).unwrap_or(0) << 4 | hex(*low).unwrap_or(0), 4)
            }
            [b'\\', escaped, ..] => (escape(*escaped), 2),
            [byte, ..] => (*byte, 1),
        };
        word.push(byte);
        position += length;
    }
}

fn single_quoted(
    line: &[u8],
    mut position: usize,
    word: &mut Vec<u8>,
) -> Result<usize, ProtocolError> {
    loop {
        let (byte, length) = match &line[position..] {
            [] => return Err(ProtocolError::UnbalancedQuotes),
            [b'\'', ..] => return closed(line, position + 1),
            [b'\\', b'\'', ..] => (b'\'', 2),
            [byte, ..] => (*byte, 1),
        };
        word.push(byte);
        position += length;
    }
}

/// `"a"b` is not a word: a closing quote is followed by a space or the line's end.
fn closed(line: &[u8], position: usize) -> Result<usize, ProtocolError> {
    match line.get(position) {
        Some(byte) if !is_space(*byte) => Err(ProtocolError::UnbalancedQuotes),
        _ => Ok(position),
    }
}

fn escape(byte: u8) -> u8 {
    match byte {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 0x08,
        b'a' => 0x07,
        other => other,
    }
}

fn hex(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Result<Vec<Vec<u8>>, ProtocolError> {
        let mut args = Vec::new();
        Ok(match split(line.as_bytes(), &mut args)? {
            Line::InPlace => args.iter().map(|arg| arg.of(line.as_bytes()).to_vec()).collect(),
            Line::Unquoted(words) => words,
        })
    }

    #[track_caller]
    fn check(line: &str, expected: &[&[u8]]) {
        let expected: Vec<Vec<u8>> = expected.iter().map(|word| word.to_vec()).collect();
        assert_eq!(words(line), Ok(expected), "{line:?}");
    }

    #[test]
    fn splits_words() {
        check("", &[]);
        check(" \t ", &[]);
        check("PING", &[b"PING"]);
        check("  SET  a\tb ", &[b"SET", b"a", b"b"]);
        check("a\x0bb \x0b\x0cc", &[b"a\x0bb", b"c"]);
        check("a\\nb", &[b"a\\nb"]);
    }

    #[test]
    fn undoes_quotes() {
        check(r#"SET "a b" 'c d'"#, &[b"SET", b"a b", b"c d"]);
        check(r#""\x00\xfF\n\r\t\b\a\\\"\q\x0g""#, &[b"\x00\xff\n\r\t\x08\x07\\\"qx0g"]);
        check(r"'\n\''", &[b"\\n'"]);
        check(r#"a"b c" d"#, &[b"ab c", b"d"]);
        check(r#""" ''"#, &[b"", b""]);
    }

    #[test]
    fn refuses_unbalanced_quotes() {
        for line in [r#"""#, "'", r#""a"b"#, "'a'b", r#""a\"#, r#"""""#, r#"a "b\""#] {
            assert_eq!(words(line), Err(ProtocolError::UnbalancedQuotes), "{line:?}");
        }
    }
}
