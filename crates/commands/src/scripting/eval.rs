//! `EVAL`, `EVALSHA` and their read-only forms.

use ladon_kernel::command::args;
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;
use ladon_kernel::node::Node;
use ladon_kernel::scripts::cache::{Digest, Script};
use ladon_kernel::scripts::runner::{self, Task};
use ladon_kernel::scripts::running::Kind;
use ladon_kernel::scripts::shebang::{self, ScriptFlags};
use ladon_kernel::scripts::thread_vm::{Compiled, Place, ThreadScripts, ThreadVm, check};
use ladon_lua::Vm;
use std::sync::Arc;

pub(super) fn eval(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    run(ctx, args, Source::Body, false)
}

pub(super) fn eval_ro(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    run(ctx, args, Source::Body, true)
}

pub(super) fn evalsha(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    run(ctx, args, Source::Digest, false)
}

pub(super) fn evalsha_ro(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    run(ctx, args, Source::Digest, true)
}

/// What the script that `EVAL` brings declares.
pub(super) fn declared_in_body(_: &Node, args: &[&[u8]]) -> Option<ScriptFlags> {
    shebang::parse(args[1]).ok().map(|(flags, _)| flags)
}

/// What the script that `EVALSHA` names declares.
pub(super) fn declared_by_digest(node: &Node, args: &[&[u8]]) -> Option<ScriptFlags> {
    Some(node.scripts.cache.find(&digest_of_digits(args[1])?)?.flags)
}

/// What the first argument is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Body,
    Digest,
}

fn run(ctx: &mut Ctx<'_>, args: &[&[u8]], source: Source, read_only: bool) -> CommandResult {
    runner::show(ctx, args);
    if source == Source::Digest && args[1].len() != 40 {
        return Err(unknown_script());
    }
    let (keys, arguments) = split(args, "value is not an integer or out of range")?;
    runner::with_vm(ctx, |ctx: &mut Ctx<'_>, thread_vm| {
        let ThreadVm { machine, scripts, .. } = thread_vm;
        let place = match source {
            Source::Body => of_body(ctx, (scripts, &mut machine.vm), args[1], false)?,
            Source::Digest => of_digest(ctx, (scripts, &mut machine.vm), args[1])?,
        };
        let Compiled { script, handle } = scripts.at(place);
        let task = Task {
            arguments: args,
            kind: Kind::Script,
            name: &script.digest,
            flags: script.flags,
            read_only,
            learnt: &script.learnt,
            keys,
            is_quick: handle.is_quick(),
        };
        let proto = ctx.reply.proto();
        runner::run(ctx, machine, task, |vm, host, out| {
            vm.run(handle, keys, arguments, proto, host, out)
        })
    })
}

type Words<'a, 'b> = &'a [&'b [u8]];

/// The keys and the other arguments, behind `numkeys` at position 2; the error if that is no
/// number.
pub(super) fn split<'a, 'b>(
    args: Words<'a, 'b>,
    no_number: &'static str,
) -> Result<(Words<'a, 'b>, Words<'a, 'b>), CommandError> {
    let rest = &args[3..];
    let count = args::integer(args[2]).map_err(|_| CommandError::err(no_number))?;
    if count > rest.len() as i64 {
        return Err(CommandError::err("Number of keys can't be greater than number of args"));
    }
    let Ok(count) = usize::try_from(count) else {
        return Err(CommandError::err("Number of keys can't be negative"));
    };
    Ok(rest.split_at(count))
}

fn unknown_script() -> CommandError {
    CommandError::text("NOSCRIPT No matching script. Please use EVAL.")
}

/// The scripts that are compiled, and what compiles others.
type Scripts<'a> = (&'a mut ThreadScripts, &'a mut Vm);

/// The script of a digest, in digits of either case.
fn of_digest(
    ctx: &mut Ctx<'_>,
    (scripts, vm): Scripts<'_>,
    digits: &[u8],
) -> Result<Place, CommandError> {
    // Clients send lower case, as `SCRIPT LOAD` replied.
    if let Some(place) = digits.try_into().ok().and_then(|it| scripts.find(ctx.node, it)) {
        return Ok(place);
    }
    let digest = digest_of_digits(digits).ok_or_else(unknown_script)?;
    if let Some(place) = scripts.find(ctx.node, &digest) {
        return Ok(place);
    }
    let script = ctx.node.scripts.cache.find(&digest).ok_or_else(unknown_script)?;
    ctx.local.measure_script(ctx.node);
    scripts.compile(ctx.node, vm, script)
}

/// A digest in lower case, if it has the length of one.
pub(super) fn digest_of_digits(digits: &[u8]) -> Option<Digest> {
    let mut digest: Digest = digits.try_into().ok()?;
    digest.make_ascii_lowercase();
    Some(digest)
}

/// The script of a source, which is kept.
pub(super) fn of_body(
    ctx: &mut Ctx<'_>,
    (scripts, vm): Scripts<'_>,
    body: &[u8],
    loaded: bool,
) -> Result<Place, CommandError> {
    let cache = &ctx.node.scripts.cache;
    let digest = ladon_lua::sha1_hex(body);
    if !loaded && let Some(place) = scripts.find(ctx.node, &digest) {
        return Ok(place);
    }
    ctx.local.measure_script(ctx.node);
    let known: Option<Arc<Script>> = cache.find(&digest).filter(|_| !loaded);
    if let Some(script) = known {
        return scripts.compile(ctx.node, vm, script);
    }
    let (flags, rest) = shebang::parse(body)?;
    let handle = check(vm, &digest, rest)?;
    let script = cache.keep(digest, rest, flags, loaded);
    Ok(scripts.keep(ctx.node, vm, script, handle))
}
