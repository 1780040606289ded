//! The users: `ACL SETUSER`, `GETUSER`, `DELUSER`, `LIST`, `USERS`, `WHOAMI`.

use ladon_identity::{SelectorFields, UserFields};
use ladon_kernel::access::{self, Standing};
use ladon_kernel::command::error::{CommandError, CommandResult, shown_whole};
use ladon_kernel::ctx::Ctx;
use ladon_kernel::request::outcome::Flow;
use ladon_platform::{Seldom, seldom};
use std::time::Duration;

pub(super) fn set_user(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let node = ctx.node;
    let context = node.accounts.context(&node.settings);
    let rules = args[3..].iter().copied();
    let changed = node.accounts.change(|users| users.set(args[2], rules, context));
    changed.map_err(|error| CommandError::Other(shown_whole(&error.reply()).into()))?;
    tell(ctx, "SETUSER", &args[2..3]);
    own_user_changed(ctx);
    ctx.reply.ok();
    Ok(())
}

pub(super) fn del_user(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let deleted = ctx.node.accounts.change(|users| users.delete(args[2..].iter().copied()));
    let deleted = deleted.map_err(|error| CommandError::Other(error.to_string().into()))?;
    if deleted > 0 {
        tell(ctx, "DELUSER", &args[2..]);
    }
    own_user_changed(ctx);
    ctx.reply.integer(deleted as i64);
    Ok(())
}

/// The connection's own user may be the one that changed. If it is gone, this is the connection's
/// last reply.
pub(super) fn own_user_changed(ctx: &mut Ctx<'_>) {
    if access::stands(ctx.node, ctx.session) == Standing::Gone {
        ctx.flow = Flow::Close;
    }
}

/// Says in the server's log who has changed which users.
pub(super) fn tell(ctx: &Ctx<'_>, what: &str, names: &[&[u8]]) {
    /// A client that changes one again and again must not fill the disk.
    static SELDOM: Seldom = Seldom::new(100, Duration::from_secs(60));
    /// Names that are listed.
    const SHOWN_MAX: usize = 8;
    let Some(left_out) = SELDOM.may_say(ctx.now_ms) else { return };
    let shown = names.iter().take(SHOWN_MAX);
    let shown: Vec<String> =
        shown.map(|name| String::from_utf8_lossy(name).escape_debug().to_string()).collect();
    let info = &ctx.session.info;
    tracing::info!(
        "ACL {what} by client id={} addr={} user={}: {}{}",
        info.id,
        info.addr,
        String::from_utf8_lossy(&info.user()),
        shown.join(", "),
        seldom::left_out(left_out)
    );
}

pub(super) fn list(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    let users = ctx.node.accounts.users();
    ctx.reply.array(users.iter().len());
    users.iter().for_each(|user| ctx.reply.bulk(user.line()));
    Ok(())
}

pub(super) fn users(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    let users = ctx.node.accounts.users();
    ctx.reply.array(users.iter().len());
    users.iter().for_each(|user| ctx.reply.bulk(user.name()));
    Ok(())
}

pub(super) fn who_am_i(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    ctx.reply.bulk(ctx.session.access.user.name());
    Ok(())
}

pub(super) fn get_user(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let users = ctx.node.accounts.users();
    let Some(user) = users.get(args[2]) else {
        ctx.reply.null();
        return Ok(());
    };
    let UserFields { flags, passwords, root, selectors } = user.fields();
    // Redis does not have databases among the fields; they are shown where they are limited.
    let shows_databases = |fields: &SelectorFields| fields.databases != "alldbs";
    ctx.reply.map(6 + usize::from(shows_databases(&root)));
    ctx.reply.bulk("flags");
    ctx.reply.set(flags.len());
    flags.iter().for_each(|flag| ctx.reply.bulk(flag));
    ctx.reply.bulk("passwords");
    ctx.reply.array(passwords.len());
    passwords.iter().for_each(|password| ctx.reply.bulk(password));
    fields(ctx, &root, shows_databases(&root));
    ctx.reply.bulk("selectors");
    ctx.reply.array(selectors.len());
    for selector in &selectors {
        ctx.reply.map(3 + usize::from(shows_databases(selector)));
        fields(ctx, selector, shows_databases(selector));
    }
    Ok(())
}

fn fields(ctx: &mut Ctx<'_>, fields: &SelectorFields, shows_databases: bool) {
    let SelectorFields { commands, keys, channels, databases } = fields;
    for (name, rules) in [("commands", commands), ("keys", keys), ("channels", channels)] {
        ctx.reply.bulk(name);
        ctx.reply.bulk(rules);
    }
    if shows_databases {
        ctx.reply.bulk("databases");
        ctx.reply.bulk(databases);
    }
}
