//! The first line of a library: `#!lua name=...`.

use ladon_kernel::command::error::{CommandError, shown_whole};

/// A library's source, in its parts.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Source<'a> {
    /// What the first line names it.
    pub(super) name: Vec<u8>,
    /// What follows the first line. The line's end stays, so that errors name the right line.
    pub(super) body: &'a [u8],
}

/// Reads the first line.
pub(super) fn parse(code: &[u8]) -> Result<Source<'_>, CommandError> {
    const INVALID: CommandError = CommandError::text("ERR Invalid library metadata");
    if !code.starts_with(b"#!") {
        return Err(CommandError::text("ERR Missing library metadata"));
    }
    let end = code.iter().position(|&byte| byte == b'\n' || byte == 0);
    let end = end.filter(|&end| code[end] == b'\n').ok_or(INVALID)?;
    let (line, body) = code.split_at(end);
    let words = split(line).ok_or(INVALID)?;
    let (engine, options) = words.split_first().ok_or(INVALID)?;
    let mut name = None;
    for option in options {
        match option.split_at_checked(5) {
            Some((key, value)) if key.eq_ignore_ascii_case(b"name=") => {
                if name.replace(value.to_vec()).is_some() {
                    return Err(CommandError::text(
                        "ERR Invalid metadata value, name argument was given multiple times",
                    ));
                }
            }
            _ => {
                let option = shown_whole(option);
                return Err(CommandError::err(format_args!(
                    "Invalid metadata value given: {option}"
                )));
            }
        }
    }
    let name = name.ok_or(CommandError::text("ERR Library name was not given"))?;
    check_name(&name)?;
    let engine = engine.get(2..).unwrap_or_default();
    if !engine.eq_ignore_ascii_case(b"lua") {
        return Err(CommandError::err(format_args!("Engine '{}' not found", shown_whole(engine))));
    }
    Ok(Source { name, body })
}

/// The rule for names of libraries and of functions.
pub(super) fn check_name(name: &[u8]) -> Result<(), CommandError> {
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    if !name.is_empty() && name.iter().all(allowed) {
        return Ok(());
    }
    Err(CommandError::text(
        "ERR Library names can only contain letters, numbers, or underscores(_) and must be at least \
         one character long",
    ))
}

/// The words of a line, which may be quoted as on the command line of `redis-cli`; `None` if a
/// quote does not end, or something follows it at once.
fn split(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    let mut rest = line;
    loop {
        rest = rest.trim_ascii_start();
        if rest.is_empty() {
            return Some(words);
        }
        let mut word = Vec::new();
        while let Some((&byte, after)) = rest.split_first() {
            if matches!(byte, b' ' | b'\n' | b'\r' | b'\t' | 0) {
                break;
            }
            rest = match byte {
                b'"' => take_quoted(after, &mut word)?,
                b'\'' => take_literal(after, &mut word)?,
                byte => {
                    word.push(byte);
                    after
                }
            };
        }
        words.push(word);
    }
}

/// Up to the closing `"`, with escapes; returns what follows.
fn take_quoted<'a>(mut rest: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        rest = match rest {
            [b'"', after @ ..] => return ends_word(after),
            [b'\\', b'x', high, low, after @ ..]
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                let digit = |byte: &u8| char::from(*byte).to_digit(16).unwrap_or(0) as u8;
                word.push(digit(high) << 4 | digit(low));
                after
            }
            [b'\\', byte, after @ ..] => {
                word.push(match byte {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 8,
                    b'a' => 7,
                    byte => *byte,
                });
                after
            }
            [byte, after @ ..] => {
                word.push(*byte);
                after
            }
            [] => return None,
        };
    }
}

/// Up to the closing `'`; returns what follows.
fn take_literal<'a>(mut rest: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        rest = match rest {
            [b'\'', after @ ..] => return ends_word(after),
            [b'\\', b'\'', after @ ..] => {
                word.push(b'\'');
                after
            }
            [byte, after @ ..] => {
                word.push(*byte);
                after
            }
            [] => return None,
        };
    }
}

fn ends_word(rest: &[u8]) -> Option<&[u8]> {
    rest.first().is_none_or(u8::is_ascii_whitespace).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What redis-server 7.0.15 says.
    #[test]
    fn first_lines() {
        let name = |code: &str| match parse(code.as_bytes()) {
            Ok(source) => format!("{} {}", source.name.escape_ascii(), source.body.escape_ascii()),
            Err(error) => error.to_string(),
        };
        for (code, expected) in [
            ("#!lua name=x\nbody\n", "x \\nbody\\n"),
            ("#!LUA   NAME=x9 \nb", "x9 \\nb"),
            ("#!lua name=\"x3\"\nb", "x3 \\nb"),
            ("#!lua name='x4'\nb", "x4 \\nb"),
            ("#!\"lua\" \"name=x\\x36\"\nb", "x6 \\nb"),
            ("#!lua name=x10\r\nb", "x10 \\nb"),
            ("", "ERR Missing library metadata"),
            ("#", "ERR Missing library metadata"),
            ("return 1", "ERR Missing library metadata"),
            ("#!lua name=x", "ERR Invalid library metadata"),
            ("#!lua\0 name=x\n", "ERR Invalid library metadata"),
            ("#!lua name=\"x5\nb", "ERR Invalid library metadata"),
            ("#!lua name=\"x5\"y\nb", "ERR Invalid library metadata"),
            ("#!lua name=x'\nb", "ERR Invalid library metadata"),
            ("#!\nb", "ERR Library name was not given"),
            ("#!   \nb", "ERR Library name was not given"),
            ("#! lua name=x\nb", "ERR Invalid metadata value given: lua"),
            ("#!lua name=x engine=y\nb", "ERR Invalid metadata value given: engine=y"),
            (
                "#!lua name=x name=y\nb",
                "ERR Invalid metadata value, name argument was given multiple times",
            ),
            ("#!js name=x\nb", "ERR Engine 'js' not found"),
            ("#!lua name=x\u{e9}\nb", NAMES),
            ("#!js name=my-lib\nb", NAMES),
            ("#!lua name=\nb", NAMES),
        ] {
            assert_eq!(name(code), expected, "{code:?}");
        }
    }

    const NAMES: &str = "ERR Library names can only contain letters, numbers, or underscores(_) and \
                         must be at least one character long";
}
