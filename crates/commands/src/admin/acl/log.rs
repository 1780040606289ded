//! `ACL LOG`: what was denied lately.

use ladon_identity::Field;
use ladon_kernel::command::args::is;
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;
use ladon_resp::parse_i64;

/// Entries that are shown if nobody says how many.
const COUNT_DEFAULT: usize = 10;

pub(super) fn log(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let count = match args {
        [_, _] => COUNT_DEFAULT,
        [_, _, word] if is(word, "reset") => {
            ctx.node.accounts.denials.lock().reset();
            ctx.reply.ok();
            return Ok(());
        }
        [_, _, count] => {
            let count = parse_i64(count).ok_or(CommandError::NotInteger)?;
            usize::try_from(count).unwrap_or(0)
        }
        _ => return Err(CommandError::subcommand(args)),
    };
    let denials = ctx.node.accounts.denials.lock();
    let entries = denials.entries().take(count);
    ctx.reply.array(entries.len());
    for entry in entries {
        let fields = entry.fields(ctx.now_ms);
        ctx.reply.map(fields.len());
        for (name, value) in fields {
            ctx.reply.bulk(name);
            match value {
                Field::Integer(number) => ctx.reply.integer(number as i64),
                Field::Text(text) => ctx.reply.bulk(text),
                Field::Seconds(seconds) => ctx.reply.double(seconds),
            }
        }
    }
    Ok(())
}
