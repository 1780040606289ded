//! `ACL`, as far as it is true of a server with one user, who may do everything.

use crate::shared::help::HELP;
use ladon_kernel::client::clients::DEFAULT_USER;
use ladon_kernel::command::args::is;
use ladon_kernel::command::error::{CommandError, CommandResult, shown};
use ladon_kernel::command::spec::{Code, LockNeed};
use ladon_kernel::ctx::Ctx;
use sha2::{Digest, Sha256};

pub(crate) const COMMANDS: &[Code] = &[Code::container(
    "acl",
    &[
        Code::with_locks("cat", LockNeed::None, categories),
        Code::with_locks("getuser", LockNeed::None, get_user),
        Code::with_locks("list", LockNeed::None, list),
        Code::with_locks("users", LockNeed::None, users),
        Code::with_locks("whoami", LockNeed::None, who_am_i),
        HELP,
    ],
)];

/// Redis' categories, in its order.
const CATEGORIES: [&str; 21] = [
    "keyspace",
    "read",
    "write",
    "set",
    "sortedset",
    "list",
    "hash",
    "string",
    "bitmap",
    "hyperloglog",
    "geo",
    "stream",
    "pubsub",
    "admin",
    "fast",
    "slow",
    "blocking",
    "dangerous",
    "connection",
    "transaction",
    "scripting",
];

fn categories(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let names: Vec<&str> = match args {
        [_, _] => CATEGORIES.to_vec(),
        [_, _, wanted] => {
            let category = CATEGORIES.into_iter().find(|category| is(wanted, category));
            let category = category.ok_or_else(|| {
                CommandError::err(format_args!("Unknown category '{}'", shown(wanted)))
            })?;
            let commands = ctx.node.table.iter().map(|(_, entry)| entry);
            let within = commands.filter(|entry| entry.doc.acl_categories.contains(&category));
            within.map(|entry| entry.full_name.as_str()).collect()
        }
        _ => {
            return Err(CommandError::err(format_args!(
                "unknown subcommand or wrong number of arguments for '{}'. Try ACL HELP.",
                shown(args[1])
            )));
        }
    };
    ctx.reply.array(names.len());
    for name in names {
        ctx.reply.bulk(name);
    }
    Ok(())
}

/// The digest of the password as Redis shows it; `None` if there is no password.
fn password_digest(ctx: &Ctx<'_>) -> Option<String> {
    let password = ctx.node.settings.requirepass();
    let digest = || Sha256::digest(password.as_bytes());
    (!password.is_empty()).then(|| digest().iter().map(|byte| format!("{byte:02x}")).collect())
}

fn list(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    let password = password_digest(ctx).map_or("nopass".into(), |digest| format!("#{digest}"));
    ctx.reply.array(1);
    ctx.reply.bulk(format!("user {DEFAULT_USER} on {password} ~* &* +@all"));
    Ok(())
}

fn users(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    ctx.reply.array(1);
    ctx.reply.bulk(DEFAULT_USER);
    Ok(())
}

fn who_am_i(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    ctx.reply.bulk(DEFAULT_USER);
    Ok(())
}

fn get_user(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    if args[2] != DEFAULT_USER.as_bytes() {
        ctx.reply.null();
        return Ok(());
    }
    let digest = password_digest(ctx);
    let flags: &[&str] = match digest {
        Some(_) => &["on"],
        None => &["on", "nopass"],
    };
    ctx.reply.map(6);
    ctx.reply.bulk("flags");
    ctx.reply.set(flags.len());
    flags.iter().for_each(|flag| ctx.reply.bulk(flag));
    ctx.reply.bulk("passwords");
    ctx.reply.array(usize::from(digest.is_some()));
    digest.iter().for_each(|digest| ctx.reply.bulk(digest));
    for (name, rule) in [("commands", "+@all"), ("keys", "~*"), ("channels", "&*")] {
        ctx.reply.bulk(name);
        ctx.reply.bulk(rule);
    }
    ctx.reply.bulk("selectors");
    ctx.reply.array(0);
    Ok(())
}
