//! JSON paths: where in a field a part's value is, as `a.b[1]["c d"]`.
//!
//! Source: Tarantool's documentation, "Using the path option", and its `json_lexer`.

use crate::fields;
use ladon_msgpack as msgpack;
use std::fmt;

/// One step into a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The value of a map with this key.
    Key(Box<[u8]>),
    /// The element of an array with this number, from 0.
    Element(u32),
    /// Each element of an array: `[*]`.
    Each,
}

/// Steps into a field; none is the field itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path(Box<[Step]>);

impl Path {
    /// The path that a text is; none if it is damaged.
    pub fn parse(text: &str) -> Option<Path> {
        let mut steps = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (step, after) = match rest.strip_prefix('[') {
                Some(inside) => bracketed(inside)?,
                None => match rest.strip_prefix('.') {
                    Some(after) => identifier(after)?,
                    None if steps.is_empty() => identifier(rest)?,
                    None => return None,
                },
            };
            steps.push(step);
            rest = after;
        }
        Some(Path(steps.into()))
    }

    /// The steps.
    pub fn steps(&self) -> &[Step] {
        &self.0
    }

    /// Whether it is the field itself.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The steps in front of the first `[*]`, if there is one.
    pub fn in_front_of_each(&self) -> Option<&[Step]> {
        Some(&self.0[..self.first_each()?])
    }

    /// The steps behind the first `[*]`, if there is one.
    pub fn behind_each(&self) -> Option<&[Step]> {
        Some(&self.0[self.first_each()? + 1..])
    }

    fn first_each(&self) -> Option<usize> {
        self.0.iter().position(|step| *step == Step::Each)
    }
}

/// The values of a field from the one on that steps lead to; `[*]` leads nowhere.
pub fn follow<'a>(mut value: &'a [u8], steps: &[Step]) -> Option<&'a [u8]> {
    for step in steps {
        value = match step {
            Step::Key(key) => value_of_key(value, key)?,
            Step::Element(number) => fields::from_field(value, *number)?,
            Step::Each => return None,
        };
    }
    Some(value)
}

fn value_of_key<'a>(mut map: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    for _ in 0..msgpack::read_map(&mut map).ok()? {
        if crate::field_type::peek(map) == Some(msgpack::Value::Str(key)) {
            msgpack::skip(&mut map).ok()?;
            return Some(map);
        }
        msgpack::skip(&mut map).ok()?;
        msgpack::skip(&mut map).ok()?;
    }
    None
}

/// What follows a `[`, and the text behind the `]`.
fn bracketed(text: &str) -> Option<(Step, &str)> {
    let first = text.chars().next()?;
    let (step, after) = match first {
        '"' | '\'' => {
            let (key, after) = text[1..].split_once(first)?;
            (Step::Key(key.as_bytes().into()), after)
        }
        '*' => (Step::Each, &text[1..]),
        _ => {
            let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
            let number: u32 = text[..end].parse().ok()?;
            (Step::Element(number.checked_sub(1)?), &text[end..])
        }
    };
    let is_empty = matches!(&step, Step::Key(key) if key.is_empty());
    (!is_empty).then_some((step, after.strip_prefix(']')?))
}

/// Letters, digits and underscores, with no digit in front.
fn identifier(text: &str) -> Option<(Step, &str)> {
    let first = text.chars().next()?;
    if !first.is_alphabetic() && first != '_' {
        return None;
    }
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    Some((Step::Key(text.as_bytes()[..end].into()), &text[end..]))
}

impl fmt::Display for Step {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Key(key) => write!(out, "[\"{}\"]", String::from_utf8_lossy(key)),
            Step::Element(number) => write!(out, "[{}]", u64::from(*number) + 1),
            Step::Each => out.write_str("[*]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_paths_as_tarantool_has_them() {
        let shown = |text: &str| {
            let path = Path::parse(text)?;
            Some(path.steps().iter().map(Step::to_string).collect::<String>())
        };
        for (text, expected) in [
            ("", ""),
            ("a", "[\"a\"]"),
            (".a.b_1", "[\"a\"][\"b_1\"]"),
            ("[2]['x y'].é[*]", "[2][\"x y\"][\"é\"][*]"),
            ("[\"a]\"][1]", "[\"a]\"][1]"),
        ] {
            assert_eq!(shown(text).as_deref(), Some(expected), "{text}");
        }
        for text in [
            "a..b",
            "[",
            "[0]",
            "[1",
            "a[b]",
            ".",
            "1a",
            "[\"a\"]x",
            "a b",
            "['']",
            "[*",
            "a-b",
            "[99999999999]",
            "[-1]",
            "a.",
            "[]",
            "[1 ]",
        ] {
            assert_eq!(shown(text), None, "{text}");
        }
    }
}
