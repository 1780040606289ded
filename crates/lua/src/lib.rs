//! Lua for scripts: a virtual machine with Redis' environment, values to RESP and back, and a way to
//! stop a script that nothing in it can catch.
//!
//! **Architecture invariant:** it knows Lua and RESP, and nothing of commands, keys or servers: what a
//! script asks for goes to its [`Host`].

mod convert;
mod vm;

pub use vm::{ScriptHandle, Vm, VmOptions};

use ladon_resp::Proto;
use sha1::{Digest, Sha1};

/// What a running script asks of its surroundings.
pub trait Host {
    /// Runs a command; appends its reply as RESP, in the protocol set last (RESP2 at the start).
    ///
    /// # Errors
    /// [`Stop`] ends the script here.
    fn call(&mut self, arguments: &[&[u8]], reply: &mut Vec<u8>) -> Result<(), Stop>;
    /// The protocol of further replies (`redis.setresp`).
    fn set_resp(&mut self, proto: Proto);
    /// `redis.log`.
    fn log(&mut self, level: LogLevel, text: &[u8]);
    /// `redis.acl_check_cmd`.
    ///
    /// # Errors
    /// The command is unknown: the text of the error.
    fn may_run(&mut self, arguments: &[&[u8]]) -> Result<bool, String>;
    /// Called about every millisecond of running code.
    ///
    /// # Errors
    /// [`Stop`] ends the script here.
    fn tick(&mut self) -> Result<(), Stop>;
}

/// How important a line for the server's log is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "Redis' names")]
pub enum LogLevel {
    Debug,
    Verbose,
    Notice,
    Warning,
}

/// The script ends here, whatever it would catch.
#[derive(Clone, Copy, Debug)]
pub struct Stop;

/// How a script ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Its reply, or its error, was written.
    Replied,
    /// The host stopped it; what was written does not matter.
    Stopped,
}

/// The SHA-1 of a text in hexadecimal digits.
pub fn sha1_hex(text: &[u8]) -> [u8; 40] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut hex = [0; 40];
    for (pair, byte) in hex.chunks_exact_mut(2).zip(Sha1::digest(text)) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
    hex
}
