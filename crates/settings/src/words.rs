//! A line of redis.conf as words, with Redis' quoting.

/// Splits a line at blanks. `"..."` knows `\n \r \t \b \a \xHH \\ \"`, `'...'` knows `\'`.
///
/// `None` when quotes are unbalanced, when a closing quote is followed by anything but a blank,
/// or when the bytes that escapes make are not UTF-8.
pub(crate) fn split(line: &str) -> Option<Vec<String>> {
    let mut rest = line.as_bytes();
    let mut words = Vec::new();
    loop {
        rest = rest.trim_ascii_start();
        if rest.is_empty() {
            return Some(words);
        }
        let word = match rest[0] {
            b'"' => take_double_quoted(&mut rest)?,
            b'\'' => take_single_quoted(&mut rest)?,
            _ => take_bare(&mut rest)?,
        };
        words.push(String::from_utf8(word).ok()?);
    }
}

/// Writes a word so that [`split`] reads it back.
pub(crate) fn quote(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_graphic() && !b"\"'\\#".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        return word.to_owned();
    }
    let mut quoted = String::from("\"");
    for character in word.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            control if control.is_ascii_control() => {
                quoted.push_str(&format!("\\x{:02x}", control as u32));
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

fn take_bare(rest: &mut &[u8]) -> Option<Vec<u8>> {
    let mut word = Vec::new();
    while let [byte, tail @ ..] = *rest {
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' => break,
            // A quote in the middle of a word opens a quoted part, which then ends the word.
            b'"' => {
                word.extend(take_double_quoted(rest)?);
                break;
            }
            b'\'' => {
                word.extend(take_single_quoted(rest)?);
                break;
            }
            _ => word.push(*byte),
        }
        *rest = tail;
    }
    Some(word)
}

fn take_double_quoted(rest: &mut &[u8]) -> Option<Vec<u8>> {
    let mut word = Vec::new();
    let mut left = &rest[1..];
    loop {
        left = match left {
            [b'\\', b'x', high, low, tail @ ..]
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                let digit = |byte: u8| (byte as char).to_digit(16).unwrap_or(0) as u8;
                word.push(digit(*high) << 4 | digit(*low));
                tail
            }
            [b'\\', escaped, tail @ ..] => {
                word.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 8,
                    b'a' => 7,
                    other => *other,
                });
                tail
            }
            [b'"', tail @ ..] => return end_quote(rest, tail).then_some(word),
            [byte, tail @ ..] => {
                word.push(*byte);
                tail
            }
            [] => return None,
        };
    }
}

fn take_single_quoted(rest: &mut &[u8]) -> Option<Vec<u8>> {
    let mut word = Vec::new();
    let mut left = &rest[1..];
    loop {
        left = match left {
            [b'\\', b'\'', tail @ ..] => {
                word.push(b'\'');
                tail
            }
            [b'\'', tail @ ..] => return end_quote(rest, tail).then_some(word),
            [byte, tail @ ..] => {
                word.push(*byte);
                tail
            }
            [] => return None,
        };
    }
}

fn end_quote<'a>(rest: &mut &'a [u8], tail: &'a [u8]) -> bool {
    *rest = tail;
    tail.first().is_none_or(u8::is_ascii_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: Option<&[&str]>) {
        let found = split(line);
        let found: Option<Vec<&str>> =
            found.as_ref().map(|words| words.iter().map(String::as_str).collect());
        assert_eq!(found.as_deref(), expected, "{line}");
    }

    #[test]
    fn lines_split_as_in_redis() {
        check("", Some(&[]));
        check("  a\t b ", Some(&["a", "b"]));
        check(r#"save """#, Some(&["save", ""]));
        check(r#"x "a b\n\x41\q\"" 'it\'s'"#, Some(&["x", "a b\nAq\"", "it's"]));
        check(r#"x"y z""#, Some(&["xy z"]));
        for bad in [r#"x "a"#, r#"x "a"b"#, "x 'a", "x 'a'b", r#"x "\xff""#] {
            check(bad, None);
        }
    }

    #[test]
    fn quoted_words_read_back() {
        for word in ["plain", "", "two words", "tab\t\"quote\" back\\slash", "it's", "#", "\x01é"]
        {
            let quoted = quote(word);
            assert_eq!(split(&quoted).as_deref(), Some(&[word.to_owned()][..]), "{quoted}");
        }
    }
}
