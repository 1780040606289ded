//! The allocator: mimalloc, fast with many threads, and gives memory back that large values leave
//! behind.
//!
//! # Soundness
//! The one `unsafe` call is `mi_collect`, which takes a flag and no pointer, may be called at any
//! time from any thread, and works on the calling thread's heap and what is shared.

use ladon_platform::{SystemProcess, Unused};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The process, with this allocator.
pub fn process() -> SystemProcess {
    SystemProcess { allocator: "mimalloc", purge_memory: Some(purge) }
}

fn purge(unused: Unused) {
    // Without force it looks only at what its own delay for unused memory, a second, has passed for;
    // but it looks by itself only when a thread needs fresh memory.
    // SAFETY: see above.
    unsafe { libmimalloc_sys::mi_collect(unused == Unused::All) };
}
