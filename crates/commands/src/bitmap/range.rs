//! Bits of a range: BITCOUNT, BITPOS.

use super::kernel;
use ladon_engine::types::string;
use ladon_kernel::command::args::{integer, is};
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;

/// What the positions of a range count.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    Byte,
    Bit,
}

/// A range as asked for: both ends included, negative ones counted from the end.
#[derive(Clone, Copy)]
struct Asked {
    start: i64,
    /// `None`: the end of the string.
    end: Option<i64>,
    unit: Unit,
}

const WHOLE: Asked = Asked { start: 0, end: None, unit: Unit::Byte };

impl Asked {
    /// The range in bits, both ends included, for a string of this many bytes; `None` if it is
    /// empty.
    fn bits(self, bytes: usize) -> Option<(u64, u64)> {
        let total = match self.unit {
            Unit::Byte => bytes as i64,
            Unit::Bit => bytes as i64 * 8,
        };
        let from_end = |at: i64| if at < 0 { (total + at).max(0) } else { at };
        let start = from_end(self.start);
        let end = self.end.map_or(total - 1, |end| from_end(end).min(total - 1));
        if start > end {
            return None;
        }
        let (start, end) = (start as u64, end as u64);
        Some(match self.unit {
            Unit::Byte => (start * 8, end * 8 + 7),
            Unit::Bit => (start, end),
        })
    }
}

fn unit(word: Option<&&[u8]>) -> Result<Unit, CommandError> {
    match word {
        None => Ok(Unit::Byte),
        Some(word) if is(word, "byte") => Ok(Unit::Byte),
        Some(word) if is(word, "bit") => Ok(Unit::Bit),
        Some(_) => Err(CommandError::Syntax),
    }
}

pub(super) fn bitcount(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let asked = match &args[2..] {
        [] => WHOLE,
        [start, end, rest @ ..] if rest.len() <= 1 => {
            let (start, end) = (integer(start)?, Some(integer(end)?));
            Asked { start, end, unit: unit(rest.first())? }
        }
        _ => return Err(CommandError::Syntax),
    };
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let mut ones = 0;
    if let Some(entry) = ctx.tx().read(db, key) {
        let bytes = string::bytes(entry.value()).ok_or(CommandError::WrongType)?;
        // Unlike other ranges: two negative ends in the wrong order are not adjusted.
        let backwards = matches!(asked.end, Some(end) if asked.start < 0 && end < asked.start);
        if let Some((first, last)) = asked.bits(bytes.len())
            && !backwards
        {
            ones = kernel::count_ones(&bytes, first, last);
        }
    }
    ctx.reply.integer(ones as i64);
    Ok(())
}

pub(super) fn bitpos(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let wanted = match integer(args[2])? {
        0 => false,
        1 => true,
        _ => return Err(CommandError::text("ERR The bit argument must be 1 or 0.")),
    };
    let asked = match &args[3..] {
        [] => WHOLE,
        [start] => Asked { start: integer(start)?, ..WHOLE },
        [start, end, rest @ ..] if rest.len() <= 1 => {
            let (start, unit) = (integer(start)?, unit(rest.first())?);
            Asked { start, end: Some(integer(end)?), unit }
        }
        _ => return Err(CommandError::Syntax),
    };
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let (tx, reply) = ctx.tx_and_reply();
    let position = match tx.read(db, key) {
        // A missing key is an endless run of zeros.
        None if wanted => None,
        None => Some(0),
        Some(entry) => {
            let bytes = string::bytes(entry.value()).ok_or(CommandError::WrongType)?;
            match asked.bits(bytes.len()) {
                None => None,
                Some((first, last)) => kernel::find(&bytes, first, last, wanted).or_else(|| {
                    // After the string there are zeros, unless the range has its own end.
                    (!wanted && asked.end.is_none()).then_some(last + 1)
                }),
            }
        }
    };
    reply.integer(position.map_or(-1, |position| position as i64));
    Ok(())
}
