//! Small questions to the server: `TIME`, `ROLE` and `LOLWUT`.

use ladon_kernel::command::args::{self, is};
use ladon_kernel::command::error::CommandResult;
use ladon_kernel::command::spec::{Code, LockNeed};
use ladon_kernel::ctx::Ctx;
use ladon_kernel::node::{LADON_VERSION, REDIS_VERSION};

pub(crate) const COMMANDS: &[Code] = &[
    Code::with_locks("time", LockNeed::None, time),
    Code::with_locks("role", LockNeed::None, role),
    Code::with_locks("lolwut", LockNeed::None, lolwut),
];

fn time(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    let clock = || ctx.node.clock.unix_us();
    let now_us = match &mut ctx.local.script {
        // Time does not pass for a script.
        Some(script) if script.time_us != 0 => script.time_us,
        Some(script) => {
            script.time_us = clock();
            script.time_us
        }
        None => clock(),
    };
    ctx.reply.array(2);
    ctx.reply.bulk_int((now_us / 1_000_000) as i64);
    ctx.reply.bulk_int((now_us % 1_000_000) as i64);
    Ok(())
}

/// A master without replicas.
fn role(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    ctx.reply.array(3);
    ctx.reply.bulk("master");
    ctx.reply.integer(ctx.node.durability.reserved().0 as i64);
    ctx.reply.array(0);
    Ok(())
}

const DRAGON: &str = r"
         o   o   o     <-- one of a hundred
          \  |  /
       o\  \ | /  /o
          `-.'|'.-'
       o---.__|__.---o
             /^\
     ___.---'   '---.___
    /  .-~~~-.  .-~~-.  \~~~~-.__
    \_/       \/      \_/        `>
";

/// Redis' drawing depends on the requested version; Ladon has one dragon for all.
fn lolwut(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    if let [_, version, number, ..] = args
        && is(version, "version")
    {
        args::integer(number)?;
    }
    let text = format!("{DRAGON}\nLadon ver. {LADON_VERSION} (Redis ver. {REDIS_VERSION})\n");
    ctx.reply.verbatim(*b"txt", text);
    Ok(())
}
