//! Fields of a hash by chance: HRANDFIELD.

use crate::ctx::{After, Ctx};
use crate::element_random::Wanted;
use crate::error::CommandResult;
use crate::rng::Rng;
use ladon_engine::types::hash::{Field, HashValue};
use ladon_resp::{Proto, Reply};
use ladon_settings::OutputClass;
use std::collections::HashSet;

pub(super) fn hrandfield(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (wanted, with_values) = Wanted::parse(&args[2..], Some("WITHVALUES"))?;
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let limit_bytes = ctx.node.settings.output_limit(OutputClass::Normal).hard_bytes;
    let (tx, reply, rng) = ctx.tx_reply_and_rng();
    if wanted == Wanted::One {
        match tx.read_value::<HashValue>(db, key)?.and_then(|hash| hash.random(|| rng.next_u64())) {
            Some(field) => reply.bulk(field.name),
            None => reply.null(),
        }
        return Ok(());
    }
    let Some(hash) = tx.read_value::<HashValue>(db, key)? else {
        reply.array(0);
        return Ok(());
    };
    let mut show = Show { reply, with_values };
    match wanted {
        Wanted::WithRepeats(count) => {
            if !with_repeats(&mut show, rng, hash, count, limit_bytes) {
                ctx.after = After::Drop;
            }
        }
        Wanted::Distinct(count) => distinct(&mut show, rng, hash, count.min(hash.len())),
        Wanted::One => unreachable!("answered above"),
    }
    Ok(())
}

struct Show<'r, 'b> {
    reply: &'r mut Reply<'b>,
    with_values: bool,
}

impl Show<'_, '_> {
    fn begin(&mut self, count: usize) {
        let flat = self.with_values && self.reply.proto() == Proto::Resp2;
        self.reply.array(if flat { 2 * count } else { count });
    }

    fn field(&mut self, field: Field<'_>) {
        if self.with_values && self.reply.proto() != Proto::Resp2 {
            self.reply.array(2);
        }
        self.reply.bulk(field.name);
        if self.with_values {
            self.reply.bulk(field.value);
        }
    }
}

/// `count` fields, each drawn on its own. False if the reply became longer than the connection
/// may have unread, which costs it the connection anyway.
fn with_repeats(
    show: &mut Show<'_, '_>,
    rng: &mut Rng,
    hash: &HashValue,
    count: usize,
    limit_bytes: u64,
) -> bool {
    show.begin(count);
    for _ in 0..count {
        if let Some(field) = hash.random(|| rng.next_u64()) {
            show.field(field);
        }
        if limit_bytes != 0 && show.reply.position() as u64 > limit_bytes {
            return false;
        }
    }
    true
}

/// `count` different fields, at most as many as there are.
fn distinct(show: &mut Show<'_, '_>, rng: &mut Rng, hash: &HashValue, count: usize) {
    /// Drawing until there are enough different ones is the faster way where there is this
    /// much to choose from.
    const CHOICE_MIN: usize = 3;
    show.begin(count);
    if count.saturating_mul(CHOICE_MIN) <= hash.len() && hash.encoding() == "hashtable" {
        let mut drawn = HashSet::with_capacity(count);
        while drawn.len() < count {
            if let Some(field) = hash.random(|| rng.next_u64())
                && drawn.insert(field.name)
            {
                show.field(field);
            }
        }
        return;
    }
    // One walk, in which every field is taken with the probability that fills the rest.
    let mut missing = count;
    for (seen, field) in hash.fields().enumerate() {
        if rng.below(hash.len() - seen) < missing {
            show.field(field);
            missing -= 1;
        }
    }
}
