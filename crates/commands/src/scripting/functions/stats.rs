//! `FUNCTION STATS` and `FUNCTION KILL`: the function that runs.

use ladon_kernel::command::error::CommandResult;
use ladon_kernel::ctx::Ctx;
use ladon_kernel::scripts::running::Kind;

pub(super) fn stats(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    let running = ctx.node.scripts.running.function(ctx.node.clock.monotonic_ns())?;
    // It must not wait for a lock that a long function holds.
    let counts = ctx.keyspace().library_counts();
    ctx.depend_on(ctx.node.durability.reserved());
    let reply = &mut ctx.reply;
    reply.map(2);
    reply.bulk("running_script");
    match running {
        Some(function) => {
            reply.map(3);
            reply.bulk("name");
            reply.bulk(&function.name);
            reply.bulk("command");
            reply.array(function.command.len());
            function.command.iter().for_each(|argument| reply.bulk(argument));
            reply.bulk("duration_ms");
            reply.integer(function.milliseconds as i64);
        }
        None => reply.null(),
    }
    reply.bulk("engines");
    reply.map(1);
    reply.bulk("LUA");
    reply.map(2);
    reply.bulk("libraries_count");
    reply.integer(counts.libraries as i64);
    reply.bulk("functions_count");
    reply.integer(counts.functions as i64);
    Ok(())
}

pub(super) fn kill(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    ctx.node.scripts.running.kill(Kind::Function)?;
    ctx.reply.ok();
    Ok(())
}
