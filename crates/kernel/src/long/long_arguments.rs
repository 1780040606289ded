//! Memory for copies of long arguments.
//!
//! A command copies a long argument into its value, and into its record. Most of the time of such a
//! copy goes to the system, which clears fresh memory. So the request waits until a job has
//! prepared memory (`aside.rs`), and runs with it. `SET` and its relatives do better: they take over
//! the memory in which the argument arrived.

use crate::command::error::CommandResult;
use crate::command::flags::Flags;
use crate::command::spec::CommandSpec;
use crate::ctx::Ctx;
use ladon_platform::pages;

/// Less than any argument that gets prepared memory; the first look shall be short.
const SPAN_BYTES_MIN: usize = 1 << 12;

/// Memory beside the arguments' own: lengths, names, times.
const REST_BYTES: usize = 64 << 10;

/// What a request with long arguments does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Memory {
    /// It runs as any other.
    Ordinary,
    /// It waits for memory, and runs again.
    Awaited,
    /// It runs with memory that was prepared, which has to be taken back.
    Lent,
}

/// Decides what the request does. Only a long span of bytes can have long arguments; they usually
/// lie behind each other.
#[inline(always)]
pub(crate) fn memory(ctx: &mut Ctx<'_>, spec: &CommandSpec, args: &[&[u8]]) -> Memory {
    let begin = args[0].as_ptr().addr();
    let span = args[args.len() - 1].as_ptr_range().end.addr().wrapping_sub(begin);
    if span < SPAN_BYTES_MIN || !spec.flags.has(Flags::DENYOOM) {
        return Memory::Ordinary;
    }
    memory_of_long(ctx, spec, args)
}

#[cold]
fn memory_of_long(ctx: &mut Ctx<'_>, spec: &CommandSpec, args: &[&[u8]]) -> Memory {
    if let Some(aside) = &mut ctx.session.aside {
        let Some(memory) = aside.memory.take() else { return Memory::Ordinary };
        pages::lend(memory);
        return Memory::Lent;
    }
    let large = ctx.large_store();
    let is_taken_over = spec.flags.has(Flags::TAKES_OVER) && spec.keys.positions(args).count() == 1;
    if is_taken_over || !args.iter().any(|arg| large.is_long(arg.len())) {
        return Memory::Ordinary;
    }
    // One for each value, and one for the record.
    let record: usize = args.iter().map(|arg| arg.len()).sum();
    let values = args.iter().map(|arg| arg.len()).filter(|&bytes| large.is_long(bytes));
    let sizes: Vec<usize> = [record].into_iter().chain(values).take(pages::PREPARED_MAX).collect();
    ctx.await_memory(sizes.into_iter().map(|bytes| bytes + REST_BYTES).collect());
    Memory::Awaited
}

/// Takes the place of a command that waits.
pub(crate) fn wait(_: &mut Ctx<'_>, _: &[&[u8]]) -> CommandResult {
    Ok(())
}
