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

/// As `shown`, at most so many bytes.
pub fn shown_up_to(argument: &[u8], most: usize) -> String {
    let end = argument.iter().take(most).position(|&byte| byte == 0);
    let end = end.unwrap_or(argument.len().min(most));
    String::from_utf8_lossy(&argument[..end]).into_owned()
}
