//! `FCALL` and `FCALL_RO`.

use crate::scripting::eval;
use ladon_engine::Locks;
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;
use ladon_kernel::node::Node;
use ladon_kernel::scripts::runner::{self, Task};
use ladon_kernel::scripts::running::Kind;
use ladon_kernel::scripts::shebang::ScriptFlags;
use ladon_kernel::scripts::thread_functions::Callable;
use ladon_kernel::scripts::thread_vm::ThreadVm;
use std::sync::Arc;

pub(super) fn fcall(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    run(ctx, args, false)
}

pub(super) fn fcall_ro(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    run(ctx, args, true)
}

pub(super) fn fcall_of(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    run_of(ctx, args, false)
}

pub(super) fn fcall_ro_of(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    run_of(ctx, args, true)
}

/// Runs the function if it is one of the library that the first argument names.
fn run_of(ctx: &mut Ctx<'_>, args: &[&[u8]], read_only: bool) -> CommandResult {
    let found = ctx.on(Locks::Partition(0), |tx| tx.library_with_function(args[2]))?;
    if found.is_none_or(|(library, _)| *library.name != *args[1]) {
        return Err(CommandError::text("ERR Function not found"));
    }
    // As `FCALL` has it: by its name alone.
    let plain = [&args[..1], &args[2..]].concat();
    run(ctx, &plain, read_only)
}

/// What the function that `LADON.FCALL` names declares.
pub(super) fn declared_of(node: &Node, args: &[&[u8]]) -> Option<ScriptFlags> {
    node.keyspace.peek_function_flags(args[2]).map(ScriptFlags::of_bits)
}

/// What the function that `FCALL` names declares.
pub(super) fn declared(node: &Node, args: &[&[u8]]) -> Option<ScriptFlags> {
    node.keyspace.peek_function_flags(args[1]).map(ScriptFlags::of_bits)
}

fn run(ctx: &mut Ctx<'_>, args: &[&[u8]], read_only: bool) -> CommandResult {
    runner::show(ctx, args);
    // It may load its library first.
    ctx.local.measure_script(ctx.node);
    runner::with_vm(ctx, |ctx: &mut Ctx<'_>, thread_vm| {
        let callable = find(ctx, thread_vm, args[1])?;
        let (keys, arguments) = eval::split(args, "Bad number of keys provided")?;
        ctx.depend_on(callable.depends);
        let facts = callable.facts();
        let task = Task {
            arguments: args,
            kind: Kind::Function,
            name: &facts.name,
            flags: ScriptFlags::of_bits(facts.flags),
            read_only,
            learnt: &callable.learnt,
            keys,
            is_quick: false,
        };
        let proto = ctx.reply.proto();
        runner::run(ctx, &mut thread_vm.machine, task, |vm, host, out| {
            vm.run_function(&callable.handle, &facts.name, keys, arguments, proto, host, out)
        })
    })
}

/// The function of this name, of a library that this thread has loaded.
fn find(
    ctx: &mut Ctx<'_>,
    thread_vm: &mut ThreadVm,
    name: &[u8],
) -> Result<Arc<Callable>, CommandError> {
    if let Some(callable) = thread_vm.functions.find(name) {
        return Ok(callable);
    }
    let node = ctx.node;
    let (found, depends) =
        ctx.on_and_depends(Locks::Partition(0), |tx| tx.library_with_function(name))?;
    let (library, at) = found.ok_or(CommandError::text("ERR Function not found"))?;
    let ThreadVm { machine, functions, .. } = thread_vm;
    functions.load(&mut machine.vm, &library, depends, &*node.clock)?;
    let name = &library.body.functions[at].name;
    functions.find(name).ok_or_else(|| {
        // Its code, run again, has not registered what it registered when it was loaded.
        CommandError::err(format_args!(
            "Function {} is not registered by its library any more",
            String::from_utf8_lossy(name)
        ))
    })
}
