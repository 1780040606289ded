//! Splits a script's line into the arguments of a command.
//!
//! As redis-cli does it: blanks separate, `"..."` with `\n \r \t \a \b \\ \" \xHH`, `'...'` with
//! `\'` only. On top of it, `${rep:TEXT:COUNT}` stands for TEXT repeated, so that long values
//! need not stand in the script.

/// The words of `line`.
///
/// # Errors
/// A text saying what is wrong: an open quote, or a quote in the middle of a word's end.
pub fn split(line: &str) -> Result<Vec<Vec<u8>>, String> {
    let bytes = line.as_bytes();
    let mut words = Vec::new();
    let mut at = 0;
    loop {
        while at < bytes.len() && bytes[at].is_ascii_whitespace() {
            at += 1;
        }
        if at == bytes.len() {
            return Ok(words);
        }
        let mut word = Vec::new();
        match bytes[at] {
            b'"' => {
                at += 1;
                loop {
                    match bytes.get(at) {
                        None => return Err("an open double quote".into()),
                        Some(b'"') => break,
                        Some(b'\\') => at += escape(&bytes[at..], &mut word)?,
                        Some(&byte) => {
                            word.push(byte);
                            at += 1;
                        }
                    }
                }
                at += 1;
            }
            b'\'' => {
                at += 1;
                loop {
                    match bytes.get(at) {
                        None => return Err("an open single quote".into()),
                        Some(b'\'') => break,
                        Some(b'\\') if bytes.get(at + 1) == Some(&b'\'') => {
                            word.push(b'\'');
                            at += 2;
                        }
                        Some(&byte) => {
                            word.push(byte);
                            at += 1;
                        }
                    }
                }
                at += 1;
            }
            _ => {
                while at < bytes.len() && !bytes[at].is_ascii_whitespace() {
                    word.push(bytes[at]);
                    at += 1;
                }
            }
        }
        if bytes.get(at).is_some_and(|byte| !byte.is_ascii_whitespace()) {
            return Err(format!("no blank after the quote at column {at}"));
        }
        words.push(word);
    }
}

/// Takes one escape from the front of `rest` and returns its length.
fn escape(rest: &[u8], word: &mut Vec<u8>) -> Result<usize, String> {
    let Some(&byte) = rest.get(1) else { return Err("a backslash at the end".into()) };
    if byte == b'x' {
        let digits = rest.get(2..4).and_then(|digits| std::str::from_utf8(digits).ok());
        let value = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        word.push(value.ok_or("\\x without two hexadecimal digits")?);
        return Ok(4);
    }
    word.push(match byte {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'a' => 7,
        b'b' => 8,
        other => other,
    });
    Ok(2)
}

/// Puts the value of `${rep:TEXT:COUNT}` in its place, wherever it is in `word`.
pub fn expand(word: &[u8]) -> Vec<u8> {
    const OPEN: &[u8] = b"${rep:";
    let mut out = Vec::new();
    let mut rest = word;
    while let Some(start) = find(rest, OPEN) {
        let body = &rest[start + OPEN.len()..];
        let parts = find(body, b"}").and_then(|end| {
            let inside = &body[..end];
            let colon = inside.iter().rposition(|&byte| byte == b':')?;
            let count: usize = std::str::from_utf8(&inside[colon + 1..]).ok()?.parse().ok()?;
            Some((inside[..colon].repeat(count), end))
        });
        let Some((text, end)) = parts else { break };
        out.extend_from_slice(&rest[..start]);
        out.extend_from_slice(&text);
        rest = &body[end + 1..];
    }
    out.extend_from_slice(rest);
    out
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, words: &[&[u8]]) {
        let words: Vec<Vec<u8>> = words.iter().map(|word| word.to_vec()).collect();
        assert_eq!(split(line), Ok(words), "{line}");
    }

    #[test]
    fn splits_as_redis_cli() {
        check("set k v", &[b"set", b"k", b"v"]);
        check("  set \"a b\" ''  ", &[b"set", b"a b", b""]);
        check(r#"set k "\x00\n\"""#, &[b"set", b"k", b"\0\n\""]);
        check(r"echo 'it\'s \n'", &[b"echo", b"it's \\n"]);
        assert!(split("set \"a").is_err());
        assert!(split("set \"a\"b").is_err());
    }

    #[test]
    fn repeats() {
        assert_eq!(expand(b"a${rep:xy:3}b"), b"axyxyxyb");
        assert_eq!(expand(b"${i}"), b"${i}");
    }
}
