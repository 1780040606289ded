//! Authentication: AUTH, and what HELLO shares with it.

use ladon_identity::{DEFAULT_USER, WRONG_PASSWORD};
use ladon_kernel::access::{self, Access};
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;
use std::sync::Arc;

pub(crate) fn auth(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (user, password) = match args {
        [_, _] if ctx.node.accounts.users().default_user().needs_no_password() => {
            return Err(CommandError::text(
                "ERR AUTH <password> called without any password configured for the default \
                 user. Are you sure your configuration is correct?",
            ));
        }
        [_, password] => (DEFAULT_USER, *password),
        [_, user, password] => (*user, *password),
        _ => return Err(CommandError::Syntax),
    };
    log_in(ctx, args[0], user, password)?;
    ctx.reply.ok();
    Ok(())
}

/// Makes the connection the user's if the password is right.
pub(crate) fn log_in(
    ctx: &mut Ctx<'_>,
    command: &[u8],
    user: &[u8],
    password: &[u8],
) -> CommandResult {
    let accounts = &ctx.node.accounts;
    // A change from now on is seen at the next request.
    let generation = accounts.generation();
    let Some(user) = accounts.users().authenticate(user, password).map(Arc::clone) else {
        access::note_failed_login(ctx.node, ctx.session, command, user);
        return Err(CommandError::text(WRONG_PASSWORD));
    };
    ctx.session.log_in(Access::of(user, generation));
    Ok(())
}
