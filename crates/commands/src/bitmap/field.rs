//! Integers inside a bitmap: BITFIELD, BITFIELD_RO.

use super::integer::{Overflow, Width};
use super::scaled_offset;
use ladon_engine::EventClass;
use ladon_engine::types::string;
use ladon_kernel::command::args::{integer, is};
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;

#[derive(Clone, Copy)]
enum Action {
    Get,
    Set(i64, Overflow),
    Increase(i64, Overflow),
}

#[derive(Clone, Copy)]
struct Step {
    width: Width,
    /// In bits.
    offset: u64,
    action: Action,
}

/// What happens to the key: with `GET` alone, nothing is written.
pub(super) fn key_flags(args: &[&[u8]]) -> &'static [&'static str] {
    let writes = |word: &&&[u8]| is(word, "set") || is(word, "incrby");
    // No other word of the syntax is spelled like these.
    match args.iter().skip(2).find(writes) {
        Some(_) => &["RW", "access", "update"],
        None => &["RO", "access"],
    }
}

pub(super) fn bitfield(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let steps = parse(args, ctx.node.settings.proto_max_bulk_len())?;
    if steps.iter().all(|step| matches!(step.action, Action::Get)) {
        return get_all(ctx, args, &steps);
    }
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let (tx, reply) = ctx.tx_and_reply();
    let writing = steps.iter().filter(|step| !matches!(step.action, Action::Get));
    let length = writing.map(|step| step.width.bytes(step.offset).end).max().unwrap_or(0);
    let mut answers = Vec::with_capacity(steps.len());
    let before = tx.change_count();
    for Step { width, offset, action } in steps {
        let mut answer = None;
        // The first operation makes room for all, including those that then write nothing.
        tx.edit_string(db, key, length, |string| {
            let old = width.read(string, offset);
            let new = match action {
                Action::Get => Some(old),
                Action::Set(value, overflow) => width.fit(set_value(width, value), overflow),
                Action::Increase(by, overflow) => {
                    width.fit(i128::from(old) + i128::from(by), overflow)
                }
            };
            answer = match action {
                Action::Set(..) => new.map(|_| old),
                _ => new,
            };
            match new {
                Some(new) if new != old => {
                    width.write(string, offset, new);
                    width.bytes(offset)
                }
                _ => 0..0,
            }
        })?;
        answers.push(answer);
    }
    if tx.change_count() != before {
        tx.notify(EventClass::STRING, "setbit", db, key);
    }
    reply.array(answers.len());
    for answer in answers {
        match answer {
            Some(answer) => reply.integer(answer),
            None => reply.null(),
        }
    }
    Ok(())
}

/// The value for an overflow check: unsigned, a negative value counts as a very large one.
fn set_value(width: Width, value: i64) -> i128 {
    if width.signed { i128::from(value) } else { i128::from(value as u64) }
}

pub(super) fn bitfield_ro(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let steps = parse(args, ctx.node.settings.proto_max_bulk_len())?;
    if steps.iter().any(|step| !matches!(step.action, Action::Get)) {
        return Err(CommandError::text("ERR BITFIELD_RO only supports the GET subcommand"));
    }
    get_all(ctx, args, &steps)
}

fn get_all(ctx: &mut Ctx<'_>, args: &[&[u8]], steps: &[Step]) -> CommandResult {
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let (tx, reply) = ctx.tx_and_reply();
    let string = match tx.read(db, key) {
        Some(entry) => string::bytes(entry.value()).ok_or(CommandError::WrongType)?,
        None => Default::default(),
    };
    reply.array(steps.len());
    for step in steps {
        reply.integer(step.width.read(&string, step.offset));
    }
    Ok(())
}

fn parse(args: &[&[u8]], bytes_max: u64) -> Result<Vec<Step>, CommandError> {
    let mut steps = Vec::new();
    let mut overflow = Overflow::Wrap;
    let mut rest = &args[2..];
    while let [word, after @ ..] = rest {
        rest = match after {
            [width, offset, after @ ..] if is(word, "get") => {
                let (width, offset) = parse_place(width, offset, bytes_max)?;
                steps.push(Step { width, offset, action: Action::Get });
                after
            }
            [width, offset, value, after @ ..] if is(word, "set") || is(word, "incrby") => {
                let (width, offset) = parse_place(width, offset, bytes_max)?;
                let value = integer(value)?;
                let action = if is(word, "set") { Action::Set } else { Action::Increase };
                steps.push(Step { width, offset, action: action(value, overflow) });
                after
            }
            [what, after @ ..] if is(word, "overflow") => {
                overflow = parse_overflow(what)?;
                after
            }
            _ => return Err(CommandError::Syntax),
        };
    }
    Ok(steps)
}

fn parse_place(width: &[u8], offset: &[u8], bytes_max: u64) -> Result<(Width, u64), CommandError> {
    let width = Width::parse(width).ok_or(CommandError::text(
        "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but \
         i64 is.",
    ))?;
    let offset = match offset {
        [b'#', number @ ..] => scaled_offset(number, width.bits.into(), bytes_max)?,
        offset => scaled_offset(offset, 1, bytes_max)?,
    };
    Ok((width, offset))
}

fn parse_overflow(word: &[u8]) -> Result<Overflow, CommandError> {
    match word {
        word if is(word, "wrap") => Ok(Overflow::Wrap),
        word if is(word, "sat") => Ok(Overflow::Saturate),
        word if is(word, "fail") => Ok(Overflow::Fail),
        _ => Err(CommandError::text("ERR Invalid OVERFLOW type specified")),
    }
}
