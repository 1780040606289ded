//! Sets: members in and out, the questions about one set, and members that expire.

mod add_expiring;
mod algebra;
mod expire;
mod random;
mod ttl;

use crate::shared::scan::{Also, ScanOptions, reply_empty, reply_page};
use ladon_engine::types::Position;
use ladon_engine::types::set::{Member, SetValue};
use ladon_engine::{EventClass, Key, Look, Tx};
use ladon_kernel::command::args;
use ladon_kernel::command::error::CommandResult;
use ladon_kernel::command::spec::{Code, Part};
use ladon_kernel::ctx::Ctx;
use ladon_kernel::long::slices::{Headed, Room, Slices};
use ladon_record::DbId;
use ladon_resp::Reply;

pub(crate) const COMMANDS: &[Code] = &[
    Code::on_keys("sadd", sadd).at(Part::Element(2)),
    Code::on_keys("srem", srem).at(Part::Element(2)),
    Code::on_keys("smove", smove),
    Code::on_keys("sismember", sismember).at(Part::Element(2)),
    Code::on_keys("smismember", smismember).at(Part::Element(2)),
    Code::on_keys("scard", scard).at(Part::Whole),
    Code::on_keys("smembers", smembers),
    Code::on_keys("sscan", sscan),
    Code::on_keys("spop", random::spop),
    Code::on_keys("srandmember", random::srandmember),
    Code::on_keys("sinter", algebra::sinter),
    Code::on_keys("sinterstore", algebra::sinterstore),
    Code::on_keys("sintercard", algebra::sintercard),
    Code::on_keys("sunion", algebra::sunion),
    Code::on_keys("sunioncard", algebra::sunioncard),
    Code::on_keys("sdiffcard", algebra::sdiffcard),
    Code::on_keys("sunionstore", algebra::sunionstore),
    Code::on_keys("sdiff", algebra::sdiff),
    Code::on_keys("sdiffstore", algebra::sdiffstore),
    Code::on_keys("saddex", add_expiring::saddex),
    Code::on_keys("sexpire", expire::sexpire),
    Code::on_keys("spexpire", expire::spexpire),
    Code::on_keys("sexpireat", expire::sexpireat),
    Code::on_keys("spexpireat", expire::spexpireat),
    Code::on_keys("sttl", ttl::sttl),
    Code::on_keys("spttl", ttl::spttl),
    Code::on_keys("sexpiretime", ttl::sexpiretime),
    Code::on_keys("spexpiretime", ttl::spexpiretime),
    Code::on_keys("spersist", ttl::spersist),
];

/// A member as a reply.
#[inline]
pub(crate) fn reply_member(reply: &mut Reply<'_>, member: Member<'_>) {
    match member {
        Member::Int(int) => reply.bulk_int(int),
        Member::Bytes(bytes) => reply.bulk(bytes),
    }
}

fn sadd(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let added = ctx.tx().set_add(db, key, args[2..].iter().copied())?;
    if added > 0 {
        ctx.tx().notify(EventClass::SET, "sadd", db, key);
    }
    ctx.reply.integer(added as i64);
    Ok(())
}

fn srem(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let removed = ctx.tx().set_remove(db, key, args[2..].iter().copied())?;
    if removed > 0 {
        ctx.tx().notify_removal(EventClass::SET, "srem", db, key);
    }
    ctx.reply.integer(removed as i64);
    Ok(())
}

fn smove(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (db, from, to, member) = (ctx.db(), ctx.key(args[1]), ctx.key(args[2]), args[3]);
    let hasher = ctx.keyspace().hasher();
    let tx = ctx.tx();
    // As in Redis, without a source the destination's type is not checked.
    let moved = match tx.get_value::<SetValue>(db, from)?.map(|set| set.expire_at(hasher, member)) {
        None => false,
        Some(present) => {
            let there = tx.get_value::<SetValue>(db, to)?;
            let there = there.and_then(|set| set.expire_at(hasher, member));
            if let Some(at) = present.filter(|_| from.bytes != to.bytes) {
                tx.set_remove(db, from, [member].into_iter())?;
                tx.notify_removal(EventClass::SET, "srem", db, from);
                add_moved(tx, (db, to), member, at, there)?;
            }
            present.is_some()
        }
    };
    ctx.reply.integer(i64::from(moved));
    Ok(())
}

/// Adds a member that expires then (0: never) to a set where it expires at `there`, if it is there.
fn add_moved(
    tx: &mut Tx<'_>,
    (db, to): (DbId, Key<'_>),
    member: &[u8],
    at: u64,
    there: Option<u64>,
) -> CommandResult {
    if at == 0 && there.unwrap_or(0) == 0 {
        tx.set_add(db, to, [member].into_iter())?;
    } else {
        tx.edit_or_create_set(db, to, &[member], |edit| edit.put(member, at))?;
    }
    if there.is_none() {
        tx.notify(EventClass::SET, "sadd", db, to);
    }
    if at != 0 {
        tx.notify(EventClass::SET, "sexpire", db, to);
    } else if there.is_some_and(|there| there != 0) {
        tx.notify(EventClass::SET, "spersist", db, to);
    }
    Ok(())
}

fn sismember(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let hasher = ctx.keyspace().hasher();
    let present =
        ctx.tx().read_value::<SetValue>(db, key)?.is_some_and(|set| set.contains(hasher, args[2]));
    ctx.reply.integer(i64::from(present));
    Ok(())
}

fn smismember(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let hasher = ctx.keyspace().hasher();
    let (tx, reply) = ctx.tx_and_reply();
    let set = tx.read_value::<SetValue>(db, key)?;
    reply.array(args.len() - 2);
    for member in &args[2..] {
        reply.integer(i64::from(set.is_some_and(|set| set.contains(hasher, member))));
    }
    Ok(())
}

fn scard(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let count = ctx.tx().read_value::<SetValue>(db, key)?.map_or(0, |set| set.len());
    ctx.reply.integer(count as i64);
    Ok(())
}

fn smembers(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let large = ctx.large();
    let (tx, reply) = ctx.tx_and_reply();
    match tx.read_or_freeze::<SetValue>(db, key, |set| large.is(set, set.len()))? {
        None => reply.set(0),
        Some(Look::Here(set)) => {
            reply.set(set.len());
            set.members().for_each(|member| reply_member(reply, member));
        }
        Some(Look::Frozen(set)) => {
            reply.set(set.len());
            ctx.reply_in_slices(Rest { set, at: Position::default() });
        }
    }
    Ok(())
}

/// A reply with the members of a frozen set.
pub(crate) fn slices_of(set: SetValue) -> Box<dyn Slices> {
    let count = set.len();
    if set.is_on_table() {
        let rest = Rest { set, at: Position::default() };
        return Box::new(Headed::new(move |reply| reply.set(count), rest));
    }
    Box::new(Headed::new(
        move |reply| {
            reply.set(count);
            set.members().for_each(|member| reply_member(reply, member));
        },
        (),
    ))
}

/// The members of a set that are still to be sent.
struct Rest {
    set: SetValue,
    at: Position,
}

impl Slices for Rest {
    fn write(&mut self, reply: &mut Reply<'_>, room: &mut Room) -> bool {
        let mut members = self.set.members_from(self.at);
        while room.take(reply) {
            let Some(member) = members.next() else { return false };
            reply_member(reply, member);
        }
        self.at = members.position();
        true
    }
}

fn sscan(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let cursor = args::cursor(args[2])?;
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let hasher = ctx.keyspace().hasher();
    let (tx, reply) = ctx.tx_and_reply();
    let Some(set) = tx.read_value::<SetValue>(db, key)? else {
        // As in Redis, the options are not checked then.
        reply_empty(reply);
        return Ok(());
    };
    let options = ScanOptions::parse(&args[3..], Also::Nothing)?;
    reply_page(reply, |page| {
        let mut members = 0;
        let next = set.scan(hasher, cursor, options.count, |member| {
            if member.with_bytes(|bytes| options.matches(bytes)) {
                reply_member(page, member);
                members += 1;
            }
            options.goes_on(page)
        });
        (next, members)
    });
    Ok(())
}
