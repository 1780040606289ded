//! Why a command failed, in Redis' words.

use std::borrow::Cow;
use thiserror::Error;

/// A handler's result: it has written its reply, or the error is the reply.
pub type CommandResult = Result<(), CommandError>;

/// An error reply; displays as the reply's text with its code.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CommandError {
    /// The key holds a value of another type.
    #[error("WRONGTYPE Operation against a key holding the wrong kind of value")]
    WrongType,
    /// The data is over `maxmemory`, and nothing may be evicted.
    #[error("OOM command not allowed when used memory > 'maxmemory'.")]
    OutOfMemory,
    /// The arguments do not fit the command's syntax.
    #[error("ERR syntax error")]
    Syntax,
    /// An argument or a value is no 64-bit integer.
    #[error("ERR value is not an integer or out of range")]
    NotInteger,
    /// An argument or a value is no number.
    #[error("ERR value is not a valid float")]
    NotFloat,
    /// An argument is outside what is allowed.
    #[error("ERR value is out of range")]
    OutOfRange,
    /// The key does not exist.
    #[error("ERR no such key")]
    NoSuchKey,
    /// Any other, code included.
    #[error("{0}")]
    Other(Cow<'static, str>),
}

impl From<ladon_engine::WrongType> for CommandError {
    fn from(_: ladon_engine::WrongType) -> CommandError {
        CommandError::WrongType
    }
}

impl CommandError {
    /// An error with the code `ERR`.
    pub fn err(text: impl std::fmt::Display) -> CommandError {
        CommandError::Other(Cow::Owned(format!("ERR {text}")))
    }

    /// The arguments of a subcommand do not fit.
    pub fn subcommand(args: &[&[u8]]) -> CommandError {
        CommandError::err(format_args!(
            "unknown subcommand or wrong number of arguments for '{}'. Try {} HELP.",
            shown(args[1]),
            shown(args[0]).to_uppercase()
        ))
    }

    /// The number of arguments fits no form of the command.
    pub fn wrong_number(command: &str) -> CommandError {
        CommandError::err(format_args!("wrong number of arguments for '{command}' command"))
    }

    /// An error whose whole text, code included, is known.
    pub const fn text(text: &'static str) -> CommandError {
        CommandError::Other(Cow::Borrowed(text))
    }
}

/// The argument as text for an error message: at most 128 bytes, and like C's `printf` only what
/// precedes a zero byte.
pub fn shown(argument: &[u8]) -> String {
    shown_up_to(argument, 128)
}

/// As `shown`, all of it.
pub fn shown_whole(argument: &[u8]) -> String {
    shown_up_to(argument, usize::MAX)
}

/// As `shown`, at most so many bytes.
pub fn shown_up_to(argument: &[u8], most: usize) -> String {
    let end = argument.iter().take(most).position(|&byte| byte == 0);
    let end = end.unwrap_or(argument.len().min(most));
    let mut text = String::with_capacity(end);
    for chunk in argument[..end].utf8_chunks() {
        for character in chunk.valid().chars() {
            match byte_of(character) {
                None => text.push(character),
                Some(_) => {
                    character.encode_utf8(&mut [0; 4]).bytes().for_each(|it| escape(it, &mut text))
                }
            }
        }
        chunk.invalid().iter().for_each(|&byte| escape(byte, &mut text));
    }
    text
}

/// Bytes of arguments that are not UTF-8 are these characters and the byte's value in a text. They
/// are for private use; an argument that has one of them is escaped byte by byte.
const ESCAPED: u32 = 0x10_ff00;

fn escape(byte: u8, text: &mut String) {
    text.extend(char::from_u32(ESCAPED + u32::from(byte)));
}

fn byte_of(character: char) -> Option<u8> {
    let byte = u32::from(character).checked_sub(ESCAPED)?;
    u8::try_from(byte).ok()
}

/// The text of an error as the client gets it: what `shown` escaped is the argument's bytes again.
pub fn bytes_of(text: &str) -> Cow<'_, [u8]> {
    if text.is_ascii() || !text.chars().any(|it| byte_of(it).is_some()) {
        return Cow::Borrowed(text.as_bytes());
    }
    let mut bytes = Vec::with_capacity(text.len());
    for character in text.chars() {
        match byte_of(character) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    Cow::Owned(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_shown_byte_by_byte() {
        for argument in [
            &b"plain"[..],
            b"\xff\xc3",
            "\u{e9}".as_bytes(),
            "\u{10ffe9}\u{10ff00}".as_bytes(),
            b"a\xf0\x9f",
        ] {
            assert_eq!(bytes_of(&shown(argument)).as_ref(), argument);
        }
        assert_eq!(bytes_of(&shown(b"a\x80\0b")).as_ref(), b"a\x80");
    }
}
