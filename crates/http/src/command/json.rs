//! JSON to commands: `["SET","k","v"]`, or an array of such arrays. A push parser: a body is read as
//! it arrives, so that no turn reads a long one at once.
//!
//! Arguments are strings, numbers (as they are written) and booleans. Bytes of strings are not
//! checked to be UTF-8: values are bytes.

use super::Commands;

/// Whether a body is one command or a list of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// `["GET","k"]`
    One,
    /// `[["GET","k"],["GET","l"]]`
    List,
}

/// Bytes of a number's text.
const NUMBER_BYTES_MAX: usize = 512;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before the outer `[`.
    Start,
    /// After the outer `[` of a list.
    FirstCommand,
    /// After a comma of a list.
    NextCommand,
    /// After a command of a list.
    AfterCommand,
    /// After the `[` of a command.
    FirstArgument,
    /// After a comma of a command.
    NextArgument,
    AfterArgument,
    Text,
    Escape,
    /// In the four digits after `\u`.
    Unicode {
        digits: u8,
        value: u16,
    },
    /// In a number, or in `true` and `false`.
    Word,
    End,
}

/// The parser of one body.
#[derive(Debug)]
pub struct JsonCommands {
    state: State,
    shape: Shape,
    /// The first half of a pair of `\u` escapes.
    high: Option<u16>,
    /// Where the word of the moment begins in the arguments.
    word: usize,
    offset: usize,
    commands: Commands,
}

impl JsonCommands {
    /// Expects a body of this shape.
    pub fn new(shape: Shape) -> JsonCommands {
        JsonCommands {
            state: State::Start,
            shape,
            high: None,
            word: 0,
            offset: 0,
            commands: Commands::default(),
        }
    }

    /// Memory that it holds.
    pub fn bytes(&self) -> usize {
        self.commands.bytes()
    }

    /// Takes the next bytes of the body.
    ///
    /// # Errors
    /// In words, if this is not what was expected.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<(), String> {
        while let Some(&byte) = bytes.first() {
            let taken = if self.state == State::Text { self.text(bytes)? } else { self.one(byte)? };
            self.offset += taken;
            bytes = &bytes[taken..];
        }
        Ok(())
    }

    /// The commands, at the end of the body.
    ///
    /// # Errors
    /// As [`push`](JsonCommands::push), of a body that ends too early.
    pub fn finish(self) -> Result<Commands, String> {
        match self.state {
            State::End => Ok(self.commands),
            _ => Err(format!("the JSON of the body is cut off at byte {}", self.offset)),
        }
    }

    fn wrong(&self, expected: &str) -> String {
        format!("the body is not JSON as expected: at byte {} there is no {expected}", self.offset)
    }

    /// The run of ordinary bytes in a string, and what ends it.
    fn text(&mut self, bytes: &[u8]) -> Result<usize, String> {
        let end = bytes.iter().position(|&byte| byte == b'"' || byte == b'\\' || byte < b' ');
        let run = &bytes[..end.unwrap_or(bytes.len())];
        if !run.is_empty() {
            self.end_pair();
            self.commands.extend(run);
        }
        let Some(at) = end else { return Ok(run.len()) };
        match bytes[at] {
            b'"' => {
                self.end_pair();
                self.commands.end_argument();
                self.state = State::AfterArgument;
            }
            b'\\' => self.state = State::Escape,
            _ => {
                self.offset += at;
                return Err(self.wrong("byte of a string (control characters are escaped)"));
            }
        }
        Ok(at + 1)
    }

    /// Half a pair without its other half stands for nothing.
    fn end_pair(&mut self) {
        if self.high.take().is_some() {
            self.put_char(char::REPLACEMENT_CHARACTER);
        }
    }

    fn put_char(&mut self, char: char) {
        self.commands.extend(char.encode_utf8(&mut [0; 4]).as_bytes());
    }

    /// One byte outside of strings. Returns how many it took: none if it only ended a word.
    fn one(&mut self, byte: u8) -> Result<usize, String> {
        let is_blank = matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        match self.state {
            State::Text | State::Escape | State::Unicode { .. } | State::Word => {
                return self.inside(byte);
            }
            _ if is_blank => {}
            State::Start => {
                if byte != b'[' {
                    return Err(self.wrong("[ of an array"));
                }
                self.state = match self.shape {
                    Shape::One => State::FirstArgument,
                    Shape::List => State::FirstCommand,
                };
            }
            State::FirstCommand if byte == b']' => self.state = State::End,
            State::FirstCommand | State::NextCommand => {
                if byte != b'[' {
                    return Err(self.wrong("[ of a command's array"));
                }
                self.state = State::FirstArgument;
            }
            State::AfterCommand => match byte {
                b',' => self.state = State::NextCommand,
                b']' => self.state = State::End,
                _ => return Err(self.wrong("comma or ] after a command")),
            },
            State::FirstArgument if byte == b']' => return Err("empty command".to_owned()),
            State::FirstArgument | State::NextArgument => self.begin(byte)?,
            State::AfterArgument => match byte {
                b',' => self.state = State::NextArgument,
                b']' => self.end_command()?,
                _ => return Err(self.wrong("comma or ] after an argument")),
            },
            State::End => return Err(self.wrong("end after the array")),
        }
        Ok(1)
    }

    fn end_command(&mut self) -> Result<(), String> {
        self.commands.end_command()?;
        self.state = match self.shape {
            Shape::One => State::End,
            Shape::List => State::AfterCommand,
        };
        Ok(())
    }

    fn begin(&mut self, byte: u8) -> Result<(), String> {
        match byte {
            b'"' => self.state = State::Text,
            b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => {
                self.word = self.commands.argument_bytes();
                self.commands.extend(&[byte]);
                self.state = State::Word;
            }
            b'[' | b'{' => {
                return Err(
                    "arguments of commands are strings, numbers or booleans: encode arrays \
                            and objects as strings"
                        .to_owned(),
                );
            }
            _ => return Err(self.wrong("argument")),
        }
        Ok(())
    }

    fn inside(&mut self, byte: u8) -> Result<usize, String> {
        match self.state {
            State::Escape => {
                let plain = match byte {
                    b'u' => {
                        self.state = State::Unicode { digits: 0, value: 0 };
                        return Ok(1);
                    }
                    b'n' => b'\n',
                    b't' => b'\t',
                    b'r' => b'\r',
                    b'b' => 8,
                    b'f' => 12,
                    b'"' | b'\\' | b'/' => byte,
                    _ => return Err(self.wrong("escape")),
                };
                self.end_pair();
                self.commands.extend(&[plain]);
                self.state = State::Text;
            }
            State::Unicode { digits, value } => {
                let Some(digit) = char::from(byte).to_digit(16) else {
                    return Err(self.wrong("hexadecimal digit"));
                };
                let value = value << 4 | digit as u16;
                self.state = State::Unicode { digits: digits + 1, value };
                if digits == 3 {
                    self.code_unit(value);
                    self.state = State::Text;
                }
            }
            // A number, `true`, `false`, `null`.
            _ => {
                if byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.') {
                    if self.commands.argument_bytes() - self.word == NUMBER_BYTES_MAX {
                        return Err(self.wrong("number of that length"));
                    }
                    self.commands.extend(&[byte]);
                    return Ok(1);
                }
                self.end_word()?;
                return Ok(0);
            }
        }
        Ok(1)
    }

    /// A code unit of UTF-16.
    fn code_unit(&mut self, unit: u16) {
        if let Some(high) = self.high.take() {
            if (0xDC00..0xE000).contains(&unit) {
                let scalar =
                    0x1_0000 + ((u32::from(high) - 0xD800) << 10) + u32::from(unit) - 0xDC00;
                return self
                    .put_char(char::from_u32(scalar).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            self.put_char(char::REPLACEMENT_CHARACTER);
        }
        if (0xD800..0xDC00).contains(&unit) {
            self.high = Some(unit);
        } else {
            let char = char::from_u32(unit.into()).unwrap_or(char::REPLACEMENT_CHARACTER);
            self.put_char(char);
        }
    }

    fn end_word(&mut self) -> Result<(), String> {
        let word = self.commands.argument_from(self.word);
        match word {
            b"true" | b"false" => {}
            b"null" => return Err("null args are not supported".to_owned()),
            number if is_number(number) => {}
            _ => return Err(self.wrong("number")),
        }
        self.commands.end_argument();
        self.state = State::AfterArgument;
        Ok(())
    }
}

/// Whether this is a number in JSON's grammar (RFC 8259, section 6).
fn is_number(text: &[u8]) -> bool {
    fn digits(text: &[u8]) -> (&[u8], &[u8]) {
        text.split_at(text.iter().take_while(|byte| byte.is_ascii_digit()).count())
    }
    let text = text.strip_prefix(b"-").unwrap_or(text);
    let (whole, mut rest) = digits(text);
    if whole.is_empty() || whole.len() > 1 && whole[0] == b'0' {
        return false;
    }
    if let Some(after) = rest.strip_prefix(b".") {
        let (fraction, after) = digits(after);
        if fraction.is_empty() {
            return false;
        }
        rest = after;
    }
    if let [b'e' | b'E', after @ ..] = rest {
        let after = after.strip_prefix(b"+").or(after.strip_prefix(b"-")).unwrap_or(after);
        let (exponent, after) = digits(after);
        return !exponent.is_empty() && after.is_empty();
    }
    rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(shape: Shape, body: &[u8], at_once: usize) -> Result<Vec<Vec<String>>, String> {
        let mut parser = JsonCommands::new(shape);
        for part in body.chunks(at_once) {
            parser.push(part)?;
        }
        let commands = parser.finish()?;
        let text = |arg: &[u8]| String::from_utf8_lossy(arg).into_owned();
        Ok(commands.lists().iter().map(|list| list.iter().map(|arg| text(arg)).collect()).collect())
    }

    #[track_caller]
    fn check(shape: Shape, body: &str, expected: &[&[&str]]) {
        for at_once in [1, 2, 3, 1000] {
            let found = parsed(shape, body.as_bytes(), at_once);
            let expected: Vec<Vec<String>> = expected
                .iter()
                .map(|list| list.iter().map(|&arg| arg.to_owned()).collect())
                .collect();
            assert_eq!(found.as_ref(), Ok(&expected), "{body} by {at_once}");
        }
    }

    #[track_caller]
    fn refuse(shape: Shape, body: &str, why: &str) {
        for at_once in [1, 2, 1000] {
            let error = parsed(shape, body.as_bytes(), at_once).expect_err(body);
            assert!(error.contains(why), "{body}: {error}");
        }
    }

    #[test]
    fn commands_are_arrays_of_strings_numbers_and_booleans() {
        check(Shape::One, r#"["SET","k","v"]"#, &[&["SET", "k", "v"]]);
        check(Shape::One, " [ \"INCRBY\" ,\t\"k\",\n-12 ] \r\n", &[&["INCRBY", "k", "-12"]]);
        check(
            Shape::One,
            r#"["a",1.50,2e+7,true,false,""]"#,
            &[&["a", "1.50", "2e+7", "true", "false", ""]],
        );
        check(Shape::List, r#"[["a"],["b",1]]"#, &[&["a"], &["b", "1"]]);
        check(Shape::List, "[]", &[]);
    }

    #[test]
    fn escapes_are_what_they_stand_for() {
        check(Shape::One, r#"["\"\\\/\b\f\n\r\t"]"#, &[&["\"\\/\u{8}\u{c}\n\r\t"]]);
        check(Shape::One, r#"["\u0041\u00e9\u20AC\uD83D\uDE00."]"#, &[&["Aé€😀."]]);
        // Halves of pairs.
        check(
            Shape::One,
            r#"["\uD83Dx\uDE00\uD83D\n\uD83D\u0041\uD83D"]"#,
            &[&["\u{FFFD}x\u{FFFD}\u{FFFD}\n\u{FFFD}A\u{FFFD}"]],
        );
    }

    #[test]
    fn anything_else_is_refused_in_words() {
        for (shape, body, why) in [
            (Shape::One, "", "cut off at byte 0"),
            (Shape::One, r#"["GET","#, "cut off"),
            (Shape::One, r#"["GET"#, "cut off"),
            (Shape::One, "{}", "no ["),
            (Shape::One, "[]", "empty command"),
            (Shape::List, "[[]]", "empty command"),
            (Shape::One, r#"["GET",]"#, "no argument"),
            (Shape::One, r#"["GET" "k"]"#, "comma or ]"),
            (Shape::One, r#"["GET"] x"#, "no end after"),
            (Shape::One, r#"["SET","k",null]"#, "null args are not supported"),
            (Shape::One, r#"["SET","k",{"a":1}]"#, "encode arrays"),
            (Shape::One, r#"["SET","k",01]"#, "no number"),
            (Shape::One, r#"["SET","k",1.]"#, "no number"),
            (Shape::One, r#"["SET","k",nil]"#, "no number"),
            (Shape::One, "[\"a\nb\"]", "control"),
            (Shape::One, r#"["\x"]"#, "escape"),
            (Shape::One, r#"["\u12g4"]"#, "hexadecimal"),
            (Shape::List, r#"["GET","k"]"#, "command's array"),
            (Shape::One, r#"["MULTI"]"#, "not available"),
        ] {
            refuse(shape, body, why);
        }
    }
}
