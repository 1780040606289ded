//! The libraries that Redis gives to scripts beside Lua's own: `cjson`, `cmsgpack` and `struct`.
//!
//! Each `open` leaves the table of a library on the stack. The functions answer as those of Redis
//! 7.2 do, error texts included; `cases/` has what a real server answered.
//!
//! **Invariants.** LuaJIT raises errors like `longjmp`: Rust frames are left without running
//! destructors. So no function here holds a value with a destructor. Bytes that are put together
//! live in a [`buffer::Buffer`], which is memory of the Lua state: the collector frees it, and the
//! state's memory limit counts it. Calls to Lua's API go through [`stack::Stack`].

mod buffer;
pub(crate) mod cjson;
pub(crate) mod cmsgpack;
mod stack;
pub(crate) mod structs;

#[cfg(test)]
mod tests;
