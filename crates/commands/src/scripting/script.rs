//! `SCRIPT`: the cache of scripts, and the end of a slow one.

use crate::scripting::eval;
use ladon_kernel::command::args::is;
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;
use ladon_kernel::scripts::runner;
use ladon_kernel::scripts::running::Kind;
use ladon_kernel::scripts::thread_vm::ThreadVm;

pub(super) fn load(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    runner::with_vm(ctx, |ctx, thread_vm| {
        let ThreadVm { machine, scripts, .. } = thread_vm;
        let place = eval::of_body(ctx, (scripts, &mut machine.vm), args[2], true)?;
        ctx.reply.bulk(scripts.at(place).script.digest);
        Ok(())
    })
}

pub(super) fn exists(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let asked = &args[2..];
    ctx.reply.array(asked.len());
    for digits in asked {
        let digest = eval::digest_of_digits(digits);
        let known = digest.is_some_and(|digest| ctx.node.scripts.cache.has(&digest));
        ctx.reply.integer(known.into());
    }
    Ok(())
}

pub(super) fn flush(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    match args {
        [_, _] => {}
        [_, _, how] if is(how, "sync") || is(how, "async") => {}
        _ => return Err(CommandError::err("SCRIPT FLUSH only support SYNC|ASYNC option")),
    }
    ctx.node.scripts.cache.flush();
    ctx.reply.ok();
    Ok(())
}

pub(super) fn kill(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    ctx.node.scripts.running.kill(Kind::Script)?;
    ctx.reply.ok();
    Ok(())
}

pub(super) fn debug(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    if is(args[2], "no") {
        ctx.reply.ok();
        return Ok(());
    }
    if is(args[2], "yes") || is(args[2], "sync") {
        return Err(CommandError::err("Ladon has no debugger for scripts"));
    }
    Err(CommandError::err("Use SCRIPT DEBUG YES/SYNC/NO"))
}
