//! The notation of arguments: one line of text that a person can read, and that becomes the tree
//! which `COMMAND DOCS` answers.
//!
//! ```text
//! sequence := item (' ' item)*
//! item     := '[' element ']' | element               [...] may be left out
//! element  := TOKEN [' ' argument] [' ...' | ' +...'] a fixed word, alone or before an argument
//!           | TOKEN '{' name '}'                      its own name, where that is another
//!           | argument [' ...']                       ... may be repeated, +... with its word
//! argument := name ['{' text '}'] [kind] [versions]   text: shown instead of the name
//!           | name [versions] '(' item ('|' item)+ ')'   one of these
//!           | name [versions] '(' sequence ')'           all of these
//! kind     := ':integer' | ':double' | ':pattern' | ':unix-time'
//!           | '#' key spec's index [kind]             a key, or a pattern of keys; none: a string
//! versions := ['@' since] ['~' deprecated since]
//! ```
//!
//! Names are lower case; tokens are upper case, or one of `= ~ * $ ""`: `key#0 value
//! [expiration(EX seconds:integer|PERSIST)]`.

use crate::argument::{Argument, ArgumentKind};

/// Where a text leaves the notation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// Byte offset.
    pub position: usize,
    /// What should have stood there.
    pub expected: &'static str,
}

impl std::fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "expected {} at byte {}", self.expected, self.position)
    }
}

impl std::error::Error for SyntaxError {}

/// Groups inside groups; no command needs more than three.
const DEPTH_MAX: usize = 8;

/// Turns the notation into the tree. The empty text is a command without arguments.
pub fn parse(text: &str) -> Result<Vec<Argument>, SyntaxError> {
    let mut reader = Reader { text, position: 0, depth: 0 };
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let arguments = reader.sequence()?;
    if reader.position < text.len() {
        return Err(reader.expected("the end"));
    }
    Ok(arguments)
}

struct Reader<'a> {
    text: &'a str,
    position: usize,
    depth: usize,
}

impl Reader<'_> {
    fn sequence(&mut self) -> Result<Vec<Argument>, SyntaxError> {
        let mut arguments = vec![self.item()?];
        while self.take(" ") {
            arguments.push(self.item()?);
        }
        Ok(arguments)
    }

    fn item(&mut self) -> Result<Argument, SyntaxError> {
        if !self.take("[") {
            return self.element();
        }
        let element = self.element()?;
        self.require("]")?;
        Ok(Argument { optional: true, ..element })
    }

    fn element(&mut self) -> Result<Argument, SyntaxError> {
        let mut argument = match self.token() {
            Some(token) if self.peek(" ") && self.at_name(self.position + 1) => {
                self.position += 1;
                Argument { token: Some(token), ..self.argument()? }
            }
            Some(token) => {
                let mut name = token.to_lowercase();
                if self.take("{") {
                    name = self.word(char::is_lowercase, is_name).unwrap_or_default();
                    self.require("}")?;
                }
                let (since, deprecated_since) = self.versions()?;
                let token = Some(token);
                let base = plain(name, ArgumentKind::PureToken);
                Argument { token, since, deprecated_since, ..base }
            }
            None => self.argument()?,
        };
        argument.multiple_token = self.take(" +...");
        argument.multiple = argument.multiple_token || self.take(" ...");
        Ok(argument)
    }

    fn token(&mut self) -> Option<String> {
        let sign = ["=", "~", "*", "$", "\"\""].into_iter().find(|sign| self.take(sign));
        sign.map(str::to_owned).or_else(|| self.word(char::is_uppercase, is_token))
    }

    fn argument(&mut self) -> Result<Argument, SyntaxError> {
        let name = self.word(char::is_lowercase, is_name).ok_or(self.expected("a name"))?;
        let mut argument = plain(name, ArgumentKind::String);
        if self.take("{") {
            argument.display_text = self.word(|_| true, |letter| letter != '}');
            self.require("}")?;
        }
        if self.take("#") {
            let index = self.word(is_digit, is_digit).and_then(|index| index.parse().ok());
            argument.key_spec_index = Some(index.ok_or(self.expected("a key spec's index"))?);
            argument.kind = ArgumentKind::Key;
        }
        if self.take(":") {
            let kind = self.word(char::is_lowercase, is_name);
            argument.kind = match kind.as_deref() {
                Some("integer") => ArgumentKind::Integer,
                Some("double") => ArgumentKind::Double,
                Some("pattern") => ArgumentKind::Pattern,
                Some("unix-time") => ArgumentKind::UnixTime,
                _ => return Err(self.expected("a kind")),
            };
        }
        (argument.since, argument.deprecated_since) = self.versions()?;
        if self.take("(") {
            self.group(&mut argument)?;
        }
        Ok(argument)
    }

    fn group(&mut self, argument: &mut Argument) -> Result<(), SyntaxError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.expected("fewer groups inside groups"));
        }
        let mut arguments = vec![self.item()?];
        argument.kind = ArgumentKind::Block;
        if self.peek("|") {
            argument.kind = ArgumentKind::OneOf;
            while self.take("|") {
                arguments.push(self.item()?);
            }
        } else if self.take(" ") {
            arguments.extend(self.sequence()?);
        }
        self.require(")")?;
        self.depth -= 1;
        argument.arguments = arguments;
        argument.display_text = None;
        Ok(())
    }

    fn versions(&mut self) -> Result<(Option<String>, Option<String>), SyntaxError> {
        let mut version = |sign| {
            if !self.take(sign) {
                return Ok(None);
            }
            let digits = self.word(is_digit, |letter| is_digit(letter) || letter == '.');
            digits.map(Some).ok_or(self.expected("a version"))
        };
        Ok((version("@")?, version("~")?))
    }

    fn peek(&self, sign: &str) -> bool {
        self.text[self.position..].starts_with(sign)
    }

    fn at_name(&self, position: usize) -> bool {
        self.text[position..].starts_with(char::is_lowercase)
    }

    fn take(&mut self, sign: &str) -> bool {
        let found = self.peek(sign);
        if found {
            self.position += sign.len();
        }
        found
    }

    fn require(&mut self, sign: &'static str) -> Result<(), SyntaxError> {
        if self.take(sign) { Ok(()) } else { Err(self.expected(sign)) }
    }

    fn word(&mut self, first: fn(char) -> bool, rest: fn(char) -> bool) -> Option<String> {
        let text = &self.text[self.position..];
        text.starts_with(first).then_some(())?;
        let end = text.find(|letter| !rest(letter)).unwrap_or(text.len());
        self.position += end;
        Some(text[..end].to_owned())
    }

    fn expected(&self, expected: &'static str) -> SyntaxError {
        SyntaxError { position: self.position, expected }
    }
}

fn is_digit(letter: char) -> bool {
    letter.is_ascii_digit()
}

fn is_name(letter: char) -> bool {
    letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-'
}

fn is_token(letter: char) -> bool {
    letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '-'
}

fn plain(name: String, kind: ArgumentKind) -> Argument {
    Argument {
        display_text: Some(name.clone()),
        name,
        kind,
        key_spec_index: None,
        token: None,
        since: None,
        deprecated_since: None,
        optional: false,
        multiple: false,
        multiple_token: false,
        arguments: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Argument {
        parse(text).unwrap().remove(0)
    }

    #[test]
    fn reads_plain_arguments() {
        assert_eq!(parse(""), Ok(vec![]));
        let text = plain("message".into(), ArgumentKind::String);
        assert_eq!(parse("message"), Ok(vec![text.clone()]));
        assert_eq!(one("[message]"), Argument { optional: true, ..text.clone() });
        assert_eq!(one("message ..."), Argument { multiple: true, ..text.clone() });
        let both = Argument { optional: true, multiple: true, ..text.clone() };
        assert_eq!(one("[message ...]"), both);
        let shown = Argument { display_text: Some("a:b".into()), ..text.clone() };
        assert_eq!(one("message{a:b}"), shown);
        let key = Argument { key_spec_index: Some(1), kind: ArgumentKind::Key, ..text.clone() };
        assert_eq!(one("message#1"), key);
        let aged = Argument {
            since: Some("1.2.3".into()),
            deprecated_since: Some("4.5.6".into()),
            kind: ArgumentKind::UnixTime,
            ..text
        };
        assert_eq!(one("message:unix-time@1.2.3~4.5.6"), aged);
    }

    #[test]
    fn tells_tokens_before_arguments_from_tokens_alone() {
        let arguments = parse("LEN [EX seconds:integer] NX XX").unwrap();
        let found: Vec<_> = arguments
            .iter()
            .map(|a| (a.name.as_str(), a.kind, a.token.as_deref(), a.optional))
            .collect();
        assert_eq!(
            found,
            [
                ("len", ArgumentKind::PureToken, Some("LEN"), false),
                ("seconds", ArgumentKind::Integer, Some("EX"), true),
                ("nx", ArgumentKind::PureToken, Some("NX"), false),
                ("xx", ArgumentKind::PureToken, Some("XX"), false),
            ]
        );
    }

    #[test]
    fn reads_signs() {
        let choice = one("operator(={equal}|~{approximately}|*)");
        let found: Vec<_> =
            choice.arguments.iter().map(|a| (a.name.as_str(), a.token.as_deref())).collect();
        assert_eq!(found, [("equal", Some("=")), ("approximately", Some("~")), ("*", Some("*"))]);
    }

    #[test]
    fn reads_groups() {
        let choice = one("[TYPE kind@5.0.0(A|B@6.0.0|c:integer)]");
        assert_eq!(choice.kind, ArgumentKind::OneOf);
        assert_eq!(choice.token.as_deref(), Some("TYPE"));
        assert_eq!(choice.since.as_deref(), Some("5.0.0"));
        assert_eq!((choice.optional, choice.display_text), (true, None));
        assert_eq!(choice.arguments, [one("A"), one("B@6.0.0"), one("c:integer")]);

        let block = one("data(key#0 [value] more(A|B)) ...");
        assert_eq!((block.kind, block.multiple), (ArgumentKind::Block, true));
        assert!(!block.multiple_token);
        assert!(one("[GET name +...]").multiple_token);
        assert_eq!(block.arguments, [one("key#0"), one("[value]"), one("more(A|B)")]);
        assert_eq!(one("single(a)").kind, ArgumentKind::Block);
    }

    #[test]
    fn refuses_everything_else() {
        for text in [
            " a",
            "a ",
            "a  b",
            "[a",
            "a]",
            "a(",
            "a()",
            "a(b",
            "a(b|)",
            "a(b|c d)",
            "a(b c|d)",
            "a:text",
            "a#",
            "a#x",
            "a#300",
            "a@",
            "a{b",
            "(a)",
            "...",
            "a......",
            "EX=seconds",
            "a_b",
            "=a",
            "é",
            "a(a(a(a(a(a(a(a(a(b)))))))))",
        ] {
            assert!(parse(text).is_err(), "{text:?} gave {:?}", parse(text));
        }
    }
}
