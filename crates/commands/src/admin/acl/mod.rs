//! `ACL`: users, their rules, and what was denied to them.

mod dry_run;
mod file;
mod log;
mod users;

use crate::shared::help::HELP;
use ladon_identity::{BITS_DEFAULT, generate_password};
use ladon_kernel::access::CATEGORIES;
use ladon_kernel::command::args::is;
use ladon_kernel::command::error::{CommandError, CommandResult, shown};
use ladon_kernel::command::spec::{Code, LockNeed};
use ladon_kernel::ctx::Ctx;
use ladon_resp::parse_i64;

pub(crate) const COMMANDS: &[Code] = &[Code::container(
    "acl",
    &[
        Code::with_locks("cat", LockNeed::None, categories),
        Code::with_locks("deluser", LockNeed::None, users::del_user),
        Code::with_locks("dryrun", LockNeed::None, dry_run::dry_run),
        Code::with_locks("genpass", LockNeed::None, genpass),
        Code::with_locks("getuser", LockNeed::None, users::get_user),
        Code::with_locks("list", LockNeed::None, users::list),
        Code::with_locks("load", LockNeed::None, file::load),
        Code::with_locks("log", LockNeed::None, log::log),
        Code::with_locks("save", LockNeed::None, file::save),
        Code::with_locks("setuser", LockNeed::None, users::set_user),
        Code::with_locks("users", LockNeed::None, users::users),
        Code::with_locks("whoami", LockNeed::None, users::who_am_i),
        HELP,
    ],
)];

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
        _ => return Err(CommandError::subcommand(args)),
    };
    ctx.reply.array(names.len());
    for name in names {
        ctx.reply.bulk(name);
    }
    Ok(())
}

fn genpass(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let bits = match args {
        [_, _] => BITS_DEFAULT,
        [_, _, bits] => parse_i64(bits).ok_or(CommandError::NotInteger)?,
        _ => return Err(CommandError::subcommand(args)),
    };
    let mut failure = None;
    let password = generate_password(bits, |bytes| failure = getrandom::fill(bytes).err());
    if let Some(failure) = failure {
        let text = format!("the operating system gives no random bytes: {failure}");
        return Err(CommandError::err(text));
    }
    match password {
        Ok(password) => ctx.reply.bulk(password),
        Err(error) => return Err(CommandError::Other(error.to_string().into())),
    }
    Ok(())
}
