//! Why rules are refused, in Redis' words.

use crate::password::PASSWORD_BYTES_MAX;
use thiserror::Error;

/// One rule is wrong.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum RuleError {
    /// A name after `+` or `-` that no command and no category has.
    #[error("Unknown command or category name in ACL")]
    UnknownCommand,
    /// Not a rule, or a pattern with a blank in it.
    #[error("Syntax error")]
    Syntax,
    /// A key pattern would add nothing to `~*`.
    #[error(
        "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not \
         have any effect. Try 'resetkeys' to start with an empty list of patterns"
    )]
    KeysAreAll,
    /// A channel pattern would add nothing to `&*`.
    #[error(
        "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does \
         not have any effect. Try 'resetchannels' to start with an empty list of channels"
    )]
    ChannelsAreAll,
    /// `<password` or `!hash` of a password that the user does not have.
    #[error("The password you are trying to remove from the user does not exist")]
    NoSuchPassword,
    /// `#hash` or `!hash` is not a hash.
    #[error(
        "The password hash must be exactly 64 characters and contain only lowercase hexadecimal \
         characters"
    )]
    NotAHash,
    /// A password that would take long to check.
    #[error("The password is too long: at most {PASSWORD_BYTES_MAX} bytes")]
    PasswordTooLong,
    /// `+config|get|maxmemory`.
    #[error("Allowing first-arg of a subcommand is not supported")]
    ArgumentOfSubcommand,
    /// `db=` with something else than database numbers.
    #[error("The provided database ID is out of range")]
    DatabaseOutOfRange,
    /// A second `user` line with the same name.
    #[error("Duplicate user found. A user can only be defined once in config files")]
    DuplicateUser,
}

/// A list of rules is refused, and none of them was applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RulesError {
    /// A selector is not closed. The word that opens it.
    Unmatched(Vec<u8>),
    /// The rule and what is wrong with it.
    Rule(Vec<u8>, RuleError),
}

impl RulesError {
    /// The reply of `ACL SETUSER`, its error code included.
    pub fn reply(&self) -> Vec<u8> {
        match self {
            RulesError::Unmatched(word) => {
                [b"ERR Unmatched parenthesis in acl selector starting at '", &word[..], b"'."]
                    .concat()
            }
            RulesError::Rule(rule, error) => {
                let reason = error.to_string();
                [b"ERR Error in ACL SETUSER modifier '", &rule[..], b"': ", reason.as_bytes()]
                    .concat()
            }
        }
    }
}
