//! Members by chance: ZRANDMEMBER.

use super::show;
use crate::ctx::{After, Ctx};
use crate::element_random::Wanted;
use crate::error::CommandResult;
use crate::rng::Rng;
use ladon_engine::types::sorted_set::SortedSet;
use ladon_resp::Reply;
use ladon_settings::OutputClass;
use std::collections::HashSet;

pub(super) fn zrandmember(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (wanted, with_scores) = Wanted::parse(&args[2..], Some("WITHSCORES"))?;
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let limit_bytes = ctx.node.settings.output_limit(OutputClass::Normal).hard_bytes;
    let (tx, reply, rng) = ctx.tx_reply_and_rng();
    if wanted == Wanted::One {
        match tx.read_value::<SortedSet>(db, key)? {
            Some(set) => {
                let rank = rng.below(set.len());
                set.for_each(rank..rank + 1, |member, _| reply.bulk(member));
            }
            None => reply.null(),
        }
        return Ok(());
    }
    let Some(set) = tx.read_value::<SortedSet>(db, key)? else {
        reply.array(0);
        return Ok(());
    };
    match wanted {
        Wanted::WithRepeats(count) => {
            if !with_repeats(reply, rng, set, count, with_scores, limit_bytes) {
                ctx.after = After::Drop;
            }
        }
        Wanted::Distinct(count) => distinct(reply, rng, set, count.min(set.len()), with_scores),
        Wanted::One => unreachable!("answered above"),
    }
    Ok(())
}

/// `count` members, each drawn on its own. False if the reply became longer than the connection
/// may have unread, which costs it the connection anyway.
fn with_repeats(
    reply: &mut Reply<'_>,
    rng: &mut Rng,
    set: &SortedSet,
    count: usize,
    with_scores: bool,
    limit_bytes: u64,
) -> bool {
    show::header(reply, count, with_scores);
    for _ in 0..count {
        let rank = rng.below(set.len());
        set.for_each(rank..rank + 1, |member, score| {
            show::member(reply, member, score, with_scores);
        });
        if limit_bytes != 0 && reply.position() as u64 > limit_bytes {
            return false;
        }
    }
    true
}

/// `count` different members, at most as many as there are.
fn distinct(
    reply: &mut Reply<'_>,
    rng: &mut Rng,
    set: &SortedSet,
    count: usize,
    with_scores: bool,
) {
    /// Drawing until there are enough different ones is the faster way where there is this
    /// much to choose from.
    const CHOICE_MIN: usize = 3;
    show::header(reply, count, with_scores);
    if count.saturating_mul(CHOICE_MIN) <= set.len() && !set.is_packed() {
        let mut drawn = HashSet::with_capacity(count);
        while drawn.len() < count {
            let rank = rng.below(set.len());
            if drawn.insert(rank) {
                set.for_each(rank..rank + 1, |member, score| {
                    show::member(reply, member, score, with_scores);
                });
            }
        }
        return;
    }
    // One walk, in which every member is taken with the probability that fills the rest.
    let (mut missing, mut left) = (count, set.len());
    set.for_each(0..set.len(), |member, score| {
        if rng.below(left) < missing {
            show::member(reply, member, score, with_scores);
            missing -= 1;
        }
        left -= 1;
    });
}
