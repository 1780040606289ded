//! Members of a set by chance: SPOP and SRANDMEMBER.

use crate::args;
use crate::ctx::{After, Ctx};
use crate::element_random::Wanted;
use crate::error::{CommandError, CommandResult};
use crate::rng::Rng;
use crate::set::reply_member;
use ladon_engine::types::set::{Member, SetValue};
use ladon_resp::Reply;
use ladon_settings::OutputClass;
use std::collections::HashSet;

pub(crate) fn spop(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    if args.len() > 3 {
        return Err(CommandError::Syntax);
    }
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let (tx, reply, rng) = ctx.tx_reply_and_rng();
    let random = || rng.next_u64();
    let Some(count) = args.get(2) else {
        if !tx.set_pop(db, key, 1, random, |member| reply_member(reply, member))? {
            reply.null();
        }
        return Ok(());
    };
    let count = args::positive(count)? as usize;
    let Some(set) = tx.get_value::<SetValue>(db, key)? else {
        reply.set(0);
        return Ok(());
    };
    let count = count.min(set.len());
    reply.set(count);
    if count > 0 {
        tx.set_pop(db, key, count, random, |member| reply_member(reply, member))?;
    }
    Ok(())
}

pub(crate) fn srandmember(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (wanted, _) = Wanted::parse(&args[2..], None)?;
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let limit_bytes = ctx.node.settings.output_limit(OutputClass::Normal).hard_bytes;
    let (tx, reply, rng) = ctx.tx_reply_and_rng();
    if wanted == Wanted::One {
        match tx.read_value::<SetValue>(db, key)?.and_then(|set| set.random(|| rng.next_u64())) {
            Some(member) => reply_member(reply, member),
            None => reply.null(),
        }
        return Ok(());
    }
    let Some(set) = tx.read_value::<SetValue>(db, key)? else {
        reply.array(0);
        return Ok(());
    };
    match wanted {
        Wanted::WithRepeats(count) => {
            if !with_repeats(reply, rng, set, count, limit_bytes) {
                ctx.after = After::Drop;
            }
        }
        Wanted::Distinct(count) => distinct(reply, rng, set, count.min(set.len())),
        Wanted::One => unreachable!("answered above"),
    }
    Ok(())
}

/// `count` members, each drawn on its own. False if the reply became longer than the connection
/// may have unread, which costs it the connection anyway.
fn with_repeats(
    reply: &mut Reply<'_>,
    rng: &mut Rng,
    set: &SetValue,
    count: usize,
    limit_bytes: u64,
) -> bool {
    reply.array(count);
    for _ in 0..count {
        if let Some(member) = set.random(|| rng.next_u64()) {
            reply_member(reply, member);
        }
        if limit_bytes != 0 && reply.position() as u64 > limit_bytes {
            return false;
        }
    }
    true
}

/// `count` different members, at most as many as there are.
fn distinct(reply: &mut Reply<'_>, rng: &mut Rng, set: &SetValue, count: usize) {
    /// Drawing until there are enough different ones is the faster way where there is this
    /// much to choose from.
    const CHOICE_MIN: usize = 3;
    reply.array(count);
    if count.saturating_mul(CHOICE_MIN) <= set.len() && set.encoding() == "hashtable" {
        let mut drawn = HashSet::with_capacity(count);
        while drawn.len() < count {
            if let Some(Member::Bytes(member)) = set.random(|| rng.next_u64())
                && drawn.insert(member)
            {
                reply.bulk(member);
            }
        }
        return;
    }
    // One walk, in which every member is taken with the probability that fills the rest.
    let mut missing = count;
    for (seen, member) in set.members().enumerate() {
        if rng.below(set.len() - seen) < missing {
            reply_member(reply, member);
            missing -= 1;
        }
    }
}
