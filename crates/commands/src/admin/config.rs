//! `CONFIG`: reading and changing settings on the running server.

use crate::shared::help::HELP;
use ladon_identity::{User, Users};
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::command::spec::{Code, LockNeed};
use ladon_kernel::ctx::Ctx;
use ladon_kernel::long::aside_job::ReadFiles;
use ladon_kernel::node::Node;
use ladon_platform::{Seldom, seldom};
use ladon_settings::Settings;
use std::sync::Arc;
use std::time::Duration;

pub(crate) const COMMANDS: &[Code] = &[Code::container(
    "config",
    &[
        Code::with_locks("get", LockNeed::None, get),
        Code::with_locks("set", LockNeed::None, set),
        Code::with_locks("resetstat", LockNeed::None, resetstat),
        Code::with_locks("rewrite", LockNeed::None, rewrite),
        HELP,
    ],
)];

fn get(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let found = ctx.node.settings.get(&args[2..]);
    ctx.reply.map(found.len());
    for (name, value) in found {
        ctx.reply.bulk(name);
        ctx.reply.bulk(value);
    }
    Ok(())
}

fn set(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (pairs, []) = args[2..].as_chunks::<2>() else { return Err(CommandError::Syntax) };
    let pairs = pairs.iter().map(|[name, value]| {
        let name = String::from_utf8_lossy(name);
        match str::from_utf8(value) {
            Ok(value) => Ok((name, value)),
            Err(_) => Err(CommandError::err(format_args!(
                "CONFIG SET failed (possibly related to argument '{name}') - \
                 argument must be text in UTF-8"
            ))),
        }
    });
    let pairs = pairs.collect::<Result<Vec<_>, _>>()?;
    let node = ctx.node;
    let read = match ctx.take_read() {
        Some(read) => Some(read),
        None => match reading(node, &pairs)? {
            None => None,
            Some(job) => match ctx.read_aside(job) {
                None => return Ok(()),
                Some(job) => Some(job()),
            },
        },
    };
    let changed = match &node.follow_settings {
        Some(follower) => node.settings.set_many_with(&pairs, |next, changed| {
            check(node, next, changed)?;
            follower.follow(next, changed, read)
        }),
        // A change that demands more than new values is refused as if the setting were immutable.
        None => node.settings.set_many(&pairs),
    };
    let changed = changed.map_err(CommandError::err)?;
    apply(node, &changed);
    tell(ctx, &changed);
    if changed.contains(&"gate") {
        // When a stricter gate is confirmed, everything acknowledged before has passed it too.
        ctx.depends = node.durability.reserved();
    }
    ctx.reply.ok();
    Ok(())
}

/// The job that reads the files of a change, if it has some: a turn of an IO thread waits for no file.
fn reading(
    node: &Node,
    pairs: &[(impl AsRef<str>, impl AsRef<str>)],
) -> Result<Option<ReadFiles>, CommandError> {
    let Some(follower) = &node.follow_settings else { return Ok(None) };
    let (next, changed) = node.settings.preview(pairs).map_err(CommandError::err)?;
    Ok(follower.reading(&next, &changed))
}

/// Says in the server's log who has changed which settings, without secrets.
fn tell(ctx: &Ctx<'_>, changed: &[&'static str]) {
    /// A client that sets something again and again must not fill the disk.
    static SELDOM: Seldom = Seldom::new(100, Duration::from_secs(60));
    if changed.is_empty() {
        return;
    }
    let Some(left_out) = SELDOM.may_say(ctx.now_ms) else { return };
    let shown = |&name: &&str| match ctx.node.settings.for_log(name) {
        Some(value) => format!("{name} '{value}'"),
        None => format!("{name} (not shown)"),
    };
    let changed: Vec<String> = changed.iter().map(shown).collect();
    let info = &ctx.session.info;
    tracing::info!(
        "CONFIG SET by client id={} addr={}: {}{}",
        info.id,
        info.addr,
        changed.join(", "),
        seldom::left_out(left_out)
    );
}

/// Refuses what the process does not allow.
fn check(
    node: &Node,
    next: &Settings,
    changed: &[&'static str],
) -> Result<(), (&'static str, String)> {
    // Files besides connections: the log, checkpoints, what the runtime opens.
    const OTHER_FILES: u64 = 32;
    if changed.contains(&"maxclients")
        && let Some(files) = node.process.facts().open_files_max
        && next.maxclients() as u64 + OTHER_FILES > files
    {
        let most = files.saturating_sub(OTHER_FILES);
        let reason = format!(
            "The operating system is not able to handle the specified number of clients, \
             try with {most}"
        );
        return Err(("maxclients", reason));
    }
    Ok(())
}

/// Updates the components that keep a copy of a setting.
fn apply(node: &Node, changed: &[&'static str]) {
    if changed.contains(&"gate") {
        node.durability.gate_changed(node.settings.gate());
    }
    if changed.contains(&"requirepass") {
        node.accounts.set_default_password(&node.settings.requirepass(), &node.settings);
    }
    node.apply_limits();
}

/// The users that a configuration has to declare, each a name and rules: none if they have a file
/// of their own, or if there is but the default one and it is as `requirepass` makes it.
fn users_to_declare(node: &Node) -> Result<Vec<String>, CommandError> {
    let (accounts, settings) = (&node.accounts, &node.settings);
    let users = accounts.users();
    let mut plain = Users::new(&accounts.commands);
    let password = settings.requirepass();
    let password = (!password.is_empty()).then_some(password.as_bytes());
    plain.set_default_password(password, accounts.context(settings));
    let is_plain = plain.default_user().line() == users.default_user().line();
    if !settings.aclfile().is_empty() || users.iter().len() == 1 && is_plain {
        return Ok(Vec::new());
    }
    let text = |user: &Arc<User>| {
        let line = String::from_utf8(user.line());
        let name = String::from_utf8_lossy(user.name());
        let line = line.map_err(|_| {
            CommandError::err(format_args!(
                "Rewriting config file: the rules of the user {name} are no text; set aclfile, \
                 and use ACL SAVE"
            ))
        })?;
        Ok(line.trim_start_matches("user ").to_owned())
    };
    users.iter().map(text).collect()
}

fn resetstat(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    ctx.node.reset_stats();
    ctx.reply.ok();
    Ok(())
}

fn rewrite(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    let users = users_to_declare(ctx.node)?;
    ctx.node.settings.rewrite(&users).map_err(CommandError::err)?;
    ctx.reply.ok();
    Ok(())
}
