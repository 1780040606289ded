//! The part of JSON that `tuples.txt` uses, to MessagePack: no fractions, no `\u` in strings.

use ladon_msgpack::write;

/// Encodes one value; `None` if the text is anything else.
pub fn to_msgpack(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut rest = text.as_bytes();
    value(&mut rest, &mut out)?;
    rest.is_empty().then_some(out)
}

/// Recursive: the depth is that of the program's own data.
fn value(rest: &mut &[u8], out: &mut Vec<u8>) -> Option<()> {
    match *rest.first()? {
        b'[' => {
            let (count, elements) = list(rest, b']', value)?;
            write::array(out, count);
            out.extend_from_slice(&elements);
        }
        b'{' => {
            let (count, pairs) = list(rest, b'}', pair)?;
            write::map(out, count);
            out.extend_from_slice(&pairs);
        }
        b'"' => string(rest, out)?,
        b'-' | b'0'..=b'9' => number(rest, out)?,
        _ => {
            if let Some(after) = rest.strip_prefix(b"true") {
                *rest = after;
                write::bool(out, true);
            } else if let Some(after) = rest.strip_prefix(b"false") {
                *rest = after;
                write::bool(out, false);
            } else {
                *rest = rest.strip_prefix(b"null")?;
                write::nil(out);
            }
        }
    }
    Some(())
}

/// The elements between brackets: their number, and their bytes.
fn list(
    rest: &mut &[u8],
    end: u8,
    element: fn(&mut &[u8], &mut Vec<u8>) -> Option<()>,
) -> Option<(u32, Vec<u8>)> {
    let (mut count, mut out) = (0, Vec::new());
    *rest = &rest[1..];
    if take(rest, end).is_some() {
        return Some((count, out));
    }
    loop {
        element(rest, &mut out)?;
        count += 1;
        if take(rest, end).is_some() {
            return Some((count, out));
        }
        take(rest, b',')?;
    }
}

fn pair(rest: &mut &[u8], out: &mut Vec<u8>) -> Option<()> {
    string(rest, out)?;
    take(rest, b':')?;
    value(rest, out)
}

fn take(rest: &mut &[u8], byte: u8) -> Option<()> {
    *rest = rest.strip_prefix(&[byte])?;
    Some(())
}

fn string(rest: &mut &[u8], out: &mut Vec<u8>) -> Option<()> {
    take(rest, b'"')?;
    let mut text = Vec::new();
    loop {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        match byte {
            b'"' => break,
            b'\\' => {
                let (escaped, after) = rest.split_first()?;
                if !matches!(escaped, b'"' | b'\\') {
                    return None;
                }
                text.push(*escaped);
                *rest = after;
            }
            byte => text.push(*byte),
        }
    }
    write::str(out, &text);
    Some(())
}

fn number(rest: &mut &[u8], out: &mut Vec<u8>) -> Option<()> {
    let digit = |byte: &u8| *byte == b'-' || byte.is_ascii_digit();
    let length = rest.iter().position(|byte| !digit(byte)).unwrap_or(rest.len());
    let text = std::str::from_utf8(&rest[..length]).ok()?;
    match text.parse() {
        Ok(value) => write::uint(out, value),
        Err(_) => write::int(out, text.parse().ok()?),
    }
    *rest = &rest[length..];
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<&[u8]>) {
        assert_eq!(to_msgpack(text).as_deref(), expected, "{text}");
    }

    #[test]
    fn values() {
        check("[]", Some(&[0x90]));
        check("{}", Some(&[0x80]));
        check("[1,-1,4294967295]", Some(&[0x93, 1, 0xff, 0xce, 0xff, 0xff, 0xff, 0xff]));
        check(r#"[true,false,null,""]"#, Some(&[0x94, 0xc3, 0xc2, 0xc0, 0xa0]));
        check(r#"{"a":[0,"\"\\"]}"#, Some(b"\x81\xa1a\x92\x00\xa2\"\\"));
    }

    #[test]
    fn what_is_not_read() {
        for text in [
            "", "[", "[1", "[1,]", "[1]2", "{1:2}", r#"{"a"}"#, r#""a"#, r#""\n""#, "1.5", "-",
            "nul",
        ] {
            check(text, None);
        }
    }
}
