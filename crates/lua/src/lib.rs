//! Lua for scripts and functions, as Redis has it, on LuaJIT.
//!
//! ```text
//!   Vm ── load(script) ──> ScriptHandle
//!    └── run(handle, KEYS, ARGV, host) ──> reply
//!            │  redis.call             ┐
//!            └─────────────────────────┴─> Host: runs commands, says when to stop
//! ```
//!
//! The crate knows Lua and RESP, but nothing of commands, keys or connections: a running script
//! asks a [`Host`] for everything. Semantics and error texts are those of Redis 7.2
//! (<https://redis.io/docs/latest/develop/programmability/lua-api/>).
//!
//! # Invariants
//!
//! - **Scripts share nothing.** All that they can reach beside their own values is read-only, or is
//!   given to those only whose code cannot change it (`bytecode.rs`), so no script can change what
//!   another one sees (`sandbox.rs`).
//! - **A [`Stop`] cannot be caught.** From then on every instruction and every `redis.call` of the
//!   script raises an error, whatever `pcall` or coroutine it is in.
//! - **Memory is bounded.** An allocation beyond the limit is an error of the script
//!   (`memory.rs`).
//! - **Errors of Lua skip Rust frames.** LuaJIT is built so that an error is a jump to the last
//!   `pcall` (`.cargo/config.toml`). A function that Lua calls therefore owns nothing that has to be
//!   dropped while it calls anything that may raise an error. What it needs for longer belongs to
//!   [`Vm`].

mod bytecode;
mod calls;
mod environment;
mod libraries;
mod memory;
mod pace;
mod reply;
mod result;
mod run;
mod sandbox;
mod stack;
mod vm;
mod words;

pub use pace::THREAD_STACK_BYTES;
pub use run::Ended;
pub use vm::{FunctionHandle, Library, RegisteredFunction, ScriptHandle, Vm, VmOptions};

use ladon_resp::Proto;
use sha1::{Digest as _, Sha1};

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

/// The SHA1 of some bytes, in lowercase hexadecimal digits.
#[must_use]
pub fn sha1_hex(bytes: &[u8]) -> [u8; 40] {
    hex(Sha1::new_with_prefix(bytes))
}

/// What was hashed, in lowercase hexadecimal digits.
fn hex(hash: Sha1) -> [u8; 40] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut hex = [0; 40];
    for (pair, byte) in hex.chunks_exact_mut(2).zip(hash.finalize()) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
    hex
}
