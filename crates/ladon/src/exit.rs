//! How the process ends. Scripts rely on these numbers; `--help` names them.

use std::process::ExitCode;

/// The exit codes of every command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// All is well.
    Ok = 0,
    /// The data is damaged.
    Damaged = 1,
    /// The command line, a file of settings or a value in them is wrong.
    Usage = 2,
    /// The surroundings do not allow it: a port or a directory in use, no permission, no space,
    /// no such file, data of a newer version.
    Refused = 3,
    /// A server failed while it ran, or could not close its log in good order.
    Failed = 4,
    /// Files of the data directory are damaged, but none that a start needs.
    NotNeeded = 5,
}

/// As `--help` says it.
pub const HELP: &str = "\
Exit codes:
  0  all is well
  1  the data is damaged, or a part of it is missing
  2  the command line or a setting is wrong
  3  refused by the surroundings: port or directory in use, no permission, no space,
     nothing there to read, data of a newer version
  4  the server failed while it ran
  5  check, dump: something is damaged that no start needs; nothing is lost";

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}
