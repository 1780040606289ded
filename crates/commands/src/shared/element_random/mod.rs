//! Random elements of a collection: SRANDMEMBER, HRANDFIELD and ZRANDMEMBER.
//!
//! A count may far exceed the size of the value. A long reply is made in slices from the frozen
//! value, as its client takes it, however long it is.

mod long;

use ladon_engine::types::Position;
use ladon_engine::types::hash::{Field, HashValue};
use ladon_engine::types::set::{Member, SetValue};
use ladon_engine::types::sorted_set::SortedSet;
use ladon_engine::{Key, Variant};
use ladon_kernel::command::args::{self, is};
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;
use ladon_kernel::rng::Rng;
use ladon_record::DbId;
use ladon_resp::{Proto, Reply};
use long::{Distinct, Repeats};

/// How many random elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// One, as a single reply.
    One,
    /// This many distinct ones, at most as many as there are.
    Distinct(usize),
    /// This many, each drawn independently.
    WithRepeats(usize),
}

impl Wanted {
    /// Reads `[count [word]]`, where `word` asks for what accompanies the elements; returns whether
    /// it is given.
    pub(crate) fn parse(
        words: &[&[u8]],
        word: Option<&str>,
    ) -> Result<(Wanted, bool), CommandError> {
        let Some((count, rest)) = words.split_first() else { return Ok((Wanted::One, false)) };
        if word.is_none() && !rest.is_empty() {
            return Err(CommandError::Syntax);
        }
        let count = args::integer_between(count, -i64::MAX, i64::MAX)?;
        let with_values = match (rest, word) {
            ([], _) => false,
            ([option], Some(word)) if is(option, word) => true,
            _ => return Err(CommandError::Syntax),
        };
        // Twice as many words must still be countable.
        if with_values && count.unsigned_abs() > i64::MAX as u64 / 2 {
            return Err(CommandError::OutOfRange);
        }
        let number = count.unsigned_abs() as usize;
        let wanted =
            if count >= 0 { Wanted::Distinct(number) } else { Wanted::WithRepeats(number) };
        Ok((wanted, with_values))
    }
}

/// One element of a collection.
#[derive(Clone, Copy)]
pub(crate) enum Element<'a> {
    Member(Member<'a>),
    Field(Field<'a>),
    Scored(&'a [u8], f64),
}

impl Element<'_> {
    /// The element alone.
    fn write_name(self, reply: &mut Reply<'_>) {
        match self {
            Element::Member(Member::Int(int)) => reply.bulk_int(int),
            Element::Member(Member::Bytes(name)) | Element::Scored(name, _) => reply.bulk(name),
            Element::Field(field) => reply.bulk(field.name),
        }
    }

    /// The element, and its value or score if `with_values`: in RESP3 as a pair.
    fn write(self, reply: &mut Reply<'_>, with_values: bool) {
        if with_values && reply.proto() != Proto::Resp2 {
            reply.array(2);
        }
        self.write_name(reply);
        match self {
            Element::Field(field) if with_values => reply.bulk(field.value),
            Element::Scored(_, score) if with_values => reply.double(score),
            _ => {}
        }
    }

    /// The address of its name, unique while the value does not change. Integers have none.
    fn address(self) -> usize {
        match self {
            Element::Member(Member::Int(_)) => 0,
            Element::Member(Member::Bytes(name)) | Element::Scored(name, _) => name.as_ptr().addr(),
            Element::Field(field) => field.name.as_ptr().addr(),
        }
    }
}

fn header(reply: &mut Reply<'_>, count: usize, with_values: bool) {
    let flat = with_values && reply.proto() == Proto::Resp2;
    reply.array(if flat { 2 * count } else { count });
}

/// The position of a traversal of a collection.
#[derive(Clone, Copy, Default)]
pub(crate) struct WalkedTo {
    /// In a table.
    position: Position,
    /// By rank.
    rank: usize,
}

/// A collection that elements can be drawn from.
pub(crate) trait Draw: Variant + Send + 'static {
    /// Visits an element chosen uniformly at random; none of an empty collection.
    fn draw(&self, rng: &mut Rng, visit: &mut dyn FnMut(Element<'_>));

    /// Whether it has the form of a large collection: `draw` takes constant time, the value can be
    /// frozen, and each element has an address.
    fn is_large_form(&self) -> bool;

    /// Visits every element once.
    fn all(&self, visit: &mut dyn FnMut(Element<'_>));

    /// Visits the elements of a frozen large form, beginning at `from`, until `visit` returns false
    /// or the end is reached. Returns where to continue.
    fn walk(&self, from: WalkedTo, visit: &mut dyn FnMut(Element<'_>) -> bool) -> WalkedTo;
}

impl Draw for SetValue {
    fn draw(&self, rng: &mut Rng, visit: &mut dyn FnMut(Element<'_>)) {
        if let Some(member) = self.random(|| rng.next_u64()) {
            visit(Element::Member(member));
        }
    }

    fn is_large_form(&self) -> bool {
        self.is_on_table()
    }

    fn all(&self, visit: &mut dyn FnMut(Element<'_>)) {
        self.members().for_each(|member| visit(Element::Member(member)));
    }

    fn walk(&self, from: WalkedTo, visit: &mut dyn FnMut(Element<'_>) -> bool) -> WalkedTo {
        let mut members = self.members_from(from.position);
        while members.next().is_some_and(|member| visit(Element::Member(member))) {}
        WalkedTo { position: members.position(), rank: 0 }
    }
}

impl Draw for HashValue {
    fn draw(&self, rng: &mut Rng, visit: &mut dyn FnMut(Element<'_>)) {
        if let Some(field) = self.random(|| rng.next_u64()) {
            visit(Element::Field(field));
        }
    }

    fn is_large_form(&self) -> bool {
        self.encoding() == "hashtable"
    }

    fn all(&self, visit: &mut dyn FnMut(Element<'_>)) {
        self.fields().for_each(|field| visit(Element::Field(field)));
    }

    fn walk(&self, from: WalkedTo, visit: &mut dyn FnMut(Element<'_>) -> bool) -> WalkedTo {
        let mut fields = self.fields_from(from.position);
        while fields.next().is_some_and(|field| visit(Element::Field(field))) {}
        WalkedTo { position: fields.position(), rank: 0 }
    }
}

impl Draw for SortedSet {
    fn draw(&self, rng: &mut Rng, visit: &mut dyn FnMut(Element<'_>)) {
        if !self.is_empty() {
            let rank = rng.below(self.len());
            self.for_each(rank..rank + 1, |member, score| visit(Element::Scored(member, score)));
        }
    }

    fn is_large_form(&self) -> bool {
        !self.is_packed()
    }

    fn all(&self, visit: &mut dyn FnMut(Element<'_>)) {
        self.for_each(0..self.len(), |member, score| visit(Element::Scored(member, score)));
    }

    fn walk(&self, from: WalkedTo, visit: &mut dyn FnMut(Element<'_>) -> bool) -> WalkedTo {
        let mut rank = from.rank;
        self.for_each_while(from.rank..self.len(), |member, score| {
            rank += 1;
            visit(Element::Scored(member, score))
        });
        WalkedTo { rank, ..from }
    }
}

/// Replies with random elements of the key's value.
pub(crate) fn answer<V: Draw>(
    ctx: &mut Ctx<'_>,
    (db, key): (DbId, Key<'_>),
    wanted: Wanted,
    with_values: bool,
) -> CommandResult {
    let large = ctx.large();
    let (tx, reply, rng) = ctx.tx_reply_and_rng();
    let Some(value) = tx.read_value::<V>(db, key)? else {
        if wanted == Wanted::One {
            reply.null()
        } else {
            reply.array(0)
        }
        return Ok(());
    };
    let count = match wanted {
        Wanted::One => {
            value.draw(rng, &mut |element| element.write_name(reply));
            return Ok(());
        }
        Wanted::Distinct(count) => count.min(value.len()),
        Wanted::WithRepeats(count) => count,
    };
    header(reply, count, with_values);
    let repeats = matches!(wanted, Wanted::WithRepeats(_));
    if !large.is(value, count) || !repeats && !value.is_large_form() {
        if repeats {
            for _ in 0..count {
                value.draw(rng, &mut |element| element.write(reply, with_values));
            }
        } else {
            distinct(value, rng, count, &mut |element| element.write(reply, with_values));
        }
        return Ok(());
    }
    let Some(value) = tx.freeze_or_copy::<V>(db, key) else { return Ok(()) };
    let rng = Rng::new(rng.next_u64());
    if repeats {
        ctx.reply_in_slices(Repeats::new(value, with_values, count, rng));
    } else {
        ctx.reply_in_slices(Distinct::new(value, with_values, count, rng));
    }
    Ok(())
}

/// Drawing until there are enough distinct elements is faster if the collection has at least this
/// many elements for each that is wanted.
const CHOICE_MIN: usize = 3;

/// `count` different elements, at most as many as there are.
fn distinct<V: Draw>(value: &V, rng: &mut Rng, count: usize, visit: &mut dyn FnMut(Element<'_>)) {
    if count.saturating_mul(CHOICE_MIN) <= value.len() && value.is_large_form() {
        let mut drawn = std::collections::HashSet::with_capacity(count);
        while drawn.len() < count {
            value.draw(rng, &mut |element| {
                if drawn.insert(element.address()) {
                    visit(element);
                }
            });
        }
        return;
    }
    // One traversal, in which each element is taken with the probability that yields the required
    // number.
    let (mut missing, mut left) = (count, value.len());
    value.all(&mut |element| {
        if rng.below(left) < missing {
            visit(element);
            missing -= 1;
        }
        left -= 1;
    });
}
