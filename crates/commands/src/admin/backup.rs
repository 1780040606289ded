//! `LADON.BACKUP`: the files of a consistent copy of all data, for `ladon backup`.
//!
//! ```text
//! LADON.BACKUP BEGIN                   the number, the log's end, the files' names and bytes
//! LADON.BACKUP READ id file at count   bytes of a file
//! LADON.BACKUP END id
//! ```
//!
//! Redis 8.10 has another command named `BACKUP`. All of it here may wait for the disk, and so runs aside.

use crate::shared::help::HELP;
use crate::shared::made_bulk::MadeBulk;
use ladon_kernel::command::args::integer_in;
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::command::spec::{Code, LockNeed};
use ladon_kernel::ctx::Ctx;
use ladon_kernel::durability::{BackupBegun, BackupError, Backups};
use ladon_kernel::long::large::Large;
use ladon_kernel::long::slices::Headed;
use ladon_kernel::request::admission::copies_data;
use ladon_resp::Reply;
use std::sync::Arc;

/// Most bytes of one piece: enough that a round trip costs little beside it, and what a client that
/// does not read can make the server hold.
const PIECE_BYTES_MAX: i64 = 1 << 20;

const NOT_HERE: CommandError = CommandError::text("ERR a backup needs a data directory");
const BAD_NUMBER: CommandError = CommandError::text("ERR invalid backup number");

pub(crate) const COMMANDS: &[Code] = &[Code::container(
    "ladon.backup",
    &[
        Code::with_locks("begin", LockNeed::None, begin),
        Code::with_locks("read", LockNeed::None, read),
        Code::with_locks("end", LockNeed::None, end),
        HELP,
    ],
)];

fn begin(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    copies_data(ctx.node)?;
    let (backups, client) = (backups(ctx)?, Arc::clone(&ctx.session.info));
    ctx.reply_aside(move |_| {
        let begun = backups.begin(&client);
        Box::new(Headed::new(move |reply| write_begun(reply, begun), ()))
    });
    Ok(())
}

fn write_begun(reply: &mut Reply<'_>, begun: Result<BackupBegun, BackupError>) {
    match begun {
        Err(error) => reply.error(format!("ERR {error}")),
        Ok(BackupBegun { id, end, files }) => {
            reply.array(3);
            reply.bulk(format!("{id:016x}"));
            reply.integer(end.0 as i64);
            reply.array(files.len());
            for (name, bytes) in files {
                reply.array(2);
                reply.bulk(name);
                reply.integer(bytes as i64);
            }
        }
    }
}

fn read(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (backups, id) = (backups(ctx)?, number(args[2])?);
    let file = integer_in(args[3], 0, i64::from(u32::MAX))? as usize;
    let at = integer_in(args[4], 0, i64::MAX)? as u64;
    let count = integer_in(args[5], 1, PIECE_BYTES_MAX)? as usize;
    ctx.reply_aside(move |_| Box::new(MadeBulk::new(backups.read(id, file, at, count))));
    Ok(())
}

fn end(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (backups, id) = (backups(ctx)?, number(args[2])?);
    ctx.reply_aside(move |_| {
        let ended = backups.end(id);
        let answer = move |reply: &mut Reply<'_>| match ended {
            true => reply.ok(),
            false => reply.error(format!("ERR {}", BackupError::NoSuchBackup)),
        };
        Box::new(Headed::new(answer, ()))
    });
    Ok(())
}

/// The backups, if a job can work on them now: not inside `EXEC`.
fn backups(ctx: &Ctx<'_>) -> Result<Arc<dyn Backups>, CommandError> {
    if ctx.large_aside() == Large::NEVER {
        return Err(NOT_HERE);
    }
    ctx.node.durability.backups().ok_or(NOT_HERE)
}

/// The number in hexadecimal digits.
fn number(word: &[u8]) -> Result<u64, CommandError> {
    let digits = str::from_utf8(word).ok().filter(|digits| digits.len() == 16);
    digits.and_then(|digits| u64::from_str_radix(digits, 16).ok()).ok_or(BAD_NUMBER)
}
