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
mod compile;
mod core;
mod digest;
mod environment;
mod host;
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

pub use core::{FunctionHandle, RegisteredFunction};
pub use digest::sha1_hex;
pub use host::{Host, LogLevel, Stop};
pub use pace::THREAD_STACK_BYTES;
pub use run::Ended;
pub use vm::{Library, ScriptHandle, Vm, VmOptions};
