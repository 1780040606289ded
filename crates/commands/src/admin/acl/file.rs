//! The file of users: `ACL LOAD`, `ACL SAVE`.

use super::users::{own_user_changed, tell};
use ladon_identity::{read_file, write_file};
use ladon_kernel::command::error::{CommandError, CommandResult, shown_whole};
use ladon_kernel::ctx::Ctx;

const NO_FILE: CommandError = CommandError::text(
    "ERR This Redis instance is not configured to use an ACL file. You may want to specify users \
     via the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis \
     configuration file set) in order to store users in the Redis configuration.",
);

pub(super) fn load(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    let (node, path) = (ctx.node, ctx.node.settings.aclfile());
    if path.is_empty() {
        return Err(NO_FILE);
    }
    let text = node.settings.read_users_file().map_err(|error| {
        CommandError::err(format_args!("Error loading ACLs, opening file '{path}': {error}"))
    })?;
    let context = node.accounts.context(&node.settings);
    let users = read_file(&text, &path, context)
        .map_err(|errors| CommandError::Other(shown_whole(&errors.reply()).into()))?;
    node.accounts.change(|all| all.replace(users, context.table));
    tell(ctx, "LOAD", &[path.as_bytes()]);
    own_user_changed(ctx);
    ctx.reply.ok();
    Ok(())
}

pub(super) fn save(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    let settings = &ctx.node.settings;
    if settings.aclfile().is_empty() {
        return Err(NO_FILE);
    }
    let text = write_file(&ctx.node.accounts.users());
    if let Err(error) = settings.write_users_file(&text) {
        tracing::warn!("ACL SAVE failed: {}: {error}", settings.aclfile());
        return Err(CommandError::err(
            "There was an error trying to save the ACLs. Please check the server logs for more \
             information",
        ));
    }
    ctx.reply.ok();
    Ok(())
}
