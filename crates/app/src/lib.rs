//! The application's virtual machine: Lua programs as Tarantool runs them, on LuaJIT.
//!
//! ```text
//!   other threads ── Request ──> Inbox ──> a fiber calls the function ──> Answer
//!                                             │ box.space.x:get(1)
//!                                             └──> a request of IPROTO ──> Data (the server)
//! ```
//!
//! [`Vm`] runs one program on one thread: `init.lua`, its fibers, and what clients call. Everything
//! that box does with data is a request of IPROTO that [`Data`] runs in this process, so a program
//! has the semantics, the rights and the errors that a client has. The functions of `lua/*.lua` are
//! built on the natives of `natives/`.
//!
//! # Invariants
//!
//! - **A fiber has a C stack of its own** (`ladon-fibers`), so it may wait anywhere: inside `pcall`,
//!   `require`, a comparison of `table.sort`, a metamethod. Stacks are switched only where a native
//!   asks for it, never while LuaJIT records a trace or finalizes a value (`natives/fibers.rs`).
//! - **Errors of Lua skip Rust frames.** A native owns nothing that has to be dropped while it calls
//!   anything that may raise one.
//! - **Nothing is borrowed across a switch** or a call into Lua: the [`Data`] least of all.

mod bare;
mod blocking;
mod context;
mod functions;
mod host;
mod inbox;
mod interrupt;
mod memory;
mod natives;
mod persistent;
mod poller;
mod serve;
mod stack;
mod syntax;
mod values;
mod vm;

pub use functions::set_key_functions;
pub use host::{Caller, Data, Host, Ran, Setting, Stated, Terminal};
pub use inbox::{Inbox, REQUESTS_MAX};
pub use ladon_modules::{LogRecord, TARANTOOL_VERSION, set_log};
pub use persistent::run_persistent_functions;
pub use syntax::is_unfinished;
pub use vm::{Before, Program, Vm, VmOptions};
