//! `GEOADD`.

use super::kernel::Cell;
use super::options::point;
use ladon_engine::EventClass;
use ladon_kernel::command::args::is;
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;
use smallvec::SmallVec;

/// A member's place among the arguments, as `longitude latitude member`.
const WORDS_PER_MEMBER: usize = 3;

pub(super) fn geoadd(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (mut nx, mut xx, mut ch) = (false, false, false);
    let mut rest = &args[2..];
    while let [option, after @ ..] = rest {
        let flag = match option {
            _ if is(option, "NX") => &mut nx,
            _ if is(option, "XX") => &mut xx,
            _ if is(option, "CH") => &mut ch,
            _ => break,
        };
        *flag = true;
        rest = after;
    }
    if rest.is_empty() || !rest.len().is_multiple_of(WORDS_PER_MEMBER) || nx && xx {
        return Err(CommandError::Syntax);
    }
    let mut scores: SmallVec<[f64; 8]> = SmallVec::new();
    for words in rest.chunks_exact(WORDS_PER_MEMBER) {
        scores.push(Cell::score(point(&words[..2])?).unwrap_or_default());
    }
    let members = rest.iter().skip(2).step_by(WORDS_PER_MEMBER);
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let (mut added, mut updated) = (0, 0);
    let change = |set: &mut ladon_engine::Scores<'_>| {
        for (member, &score) in members.zip(&scores) {
            let old = set.update(member, |old| {
                let stays = if old.is_some() { nx } else { xx };
                (!stays).then_some(score)
            });
            match old {
                None => added += i64::from(!xx),
                Some(old) => updated += i64::from(!nx && old != score),
            }
        }
    };
    if xx {
        ctx.tx().sorted_set_change(db, key, change)?;
    } else {
        ctx.tx().sorted_set_upsert(db, key, (scores.len(), rest[2].len()), change)?;
    }
    if added + updated > 0 {
        ctx.tx().notify(EventClass::SORTED_SET, "zadd", db, key);
    }
    ctx.reply.integer(if ch { added + updated } else { added });
    Ok(())
}
