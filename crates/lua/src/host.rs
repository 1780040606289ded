//! A running script's surroundings.

use ladon_resp::Proto;

/// What a running script asks of its surroundings.
pub trait Host {
    /// Runs a command, and writes its reply in the protocol that `redis.setresp` chose (2 at the
    /// start). An error that the script may see is an error reply.
    ///
    /// # Errors
    /// If the script must end here.
    fn call(&mut self, arguments: &[&[u8]], reply: &mut Vec<u8>) -> Result<(), Stop>;

    /// `redis.setresp`.
    fn set_resp(&mut self, proto: Proto);

    /// `redis.log`.
    fn log(&mut self, level: LogLevel, text: &[u8]);

    /// `redis.acl_check_cmd`: whether the caller may run this.
    ///
    /// # Errors
    /// The text for the script if there is no such command.
    fn may_run(&mut self, arguments: &[&[u8]]) -> Result<bool, String>;

    /// Called every few thousand instructions.
    ///
    /// # Errors
    /// If the script must end here.
    fn tick(&mut self) -> Result<(), Stop>;
}

/// The script must end here, whatever it catches. Its result is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop;

/// Importance of a line that a script logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    /// `redis.LOG_DEBUG`.
    Debug,
    /// `redis.LOG_VERBOSE`.
    Verbose,
    /// `redis.LOG_NOTICE`.
    Notice,
    /// `redis.LOG_WARNING`.
    Warning,
}
