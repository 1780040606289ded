//! `ACL DRYRUN`: whether a user may run a command.

use ladon_kernel::access::asked_by;
use ladon_kernel::command::error::{CommandError, CommandResult, shown};
use ladon_kernel::command::spec::Handler;
use ladon_kernel::ctx::Ctx;

pub(super) fn dry_run(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (node, users) = (ctx.node, ctx.node.accounts.users());
    let Some(user) = users.get(args[2]) else {
        return Err(CommandError::err(format_args!("User '{}' not found", shown(args[2]))));
    };
    let words = &args[3..];
    let Some(id) = node.table.find_with_subcommand(words) else {
        return Err(CommandError::err(format_args!("Command '{}' not found", shown(words[0]))));
    };
    let entry = node.table.entry(id);
    let is_container = matches!(entry.spec.handler, Handler::Container);
    if is_container || !entry.spec.accepts(words.len()) {
        return Err(CommandError::wrong_number(&entry.full_name));
    }
    if user.is_unlimited() {
        ctx.reply.ok();
        return Ok(());
    }
    let asked = asked_by(node, user, ctx.session.db, id, words);
    match user.check(&node.accounts.commands, &asked.request()) {
        Ok(_) => ctx.reply.ok(),
        Err(denied) => {
            let selected = ctx.session.db.to_string();
            let object = match denied.word() {
                0 => selected.as_bytes(),
                word => words[word],
            };
            ctx.reply.bulk(denied.dry_run(user, &entry.full_name, object));
        }
    }
    Ok(())
}
