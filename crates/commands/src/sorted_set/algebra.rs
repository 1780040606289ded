//! Unions, intersections and differences, of sorted sets and sets (whose members all count as 1).

use super::{notify_store, range};
use crate::shared::float::parse_double;
use ladon_engine::types::set::SetValue;
use ladon_engine::types::sorted_set::{Gathered, SortedSet, SortedSetLimits};
use ladon_engine::{Key, Object, Tx, Variant};
use ladon_kernel::command::args::{self, is};
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;
use ladon_kernel::long::large::Large;
use ladon_kernel::long::slices::Headed;
use ladon_record::{DbId, KeyHasher};

pub(super) fn zunion(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    answer(ctx, args, Operation::Union)
}

pub(super) fn zinter(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    answer(ctx, args, Operation::Inter)
}

pub(super) fn zdiff(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    answer(ctx, args, Operation::Diff)
}

pub(super) fn zunionstore(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    store(ctx, args, Operation::Union)
}

pub(super) fn zinterstore(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    store(ctx, args, Operation::Inter)
}

pub(super) fn zdiffstore(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    store(ctx, args, Operation::Diff)
}

fn answer(ctx: &mut Ctx<'_>, args: &[&[u8]], operation: Operation) -> CommandResult {
    let (names, rest) = split(args[0], &args[1..])?;
    let (db, keys) = (ctx.db(), keys(ctx, names));
    let (hasher, large) = (ctx.keyspace().hasher(), ctx.large_aside());
    let (tx, reply) = ctx.tx_and_reply();
    let inputs = inputs(tx, db, &keys)?;
    let options = Options::parse(rest, operation, false, keys.len())?;
    if operation.is_much(large, &inputs) {
        let frozen = ctx.freeze_all(db, &keys);
        ctx.reply_aside(move |keyspace| {
            let result = operation.run(keyspace.hasher(), &inputs_of(&frozen), &options);
            range::slices_of(
                result.into_sorted_set(SortedSetLimits::NEVER_PACKED),
                options.with_scores,
            )
        });
        return Ok(());
    }
    let result =
        operation.run(hasher, &inputs, &options).into_sorted_set(SortedSetLimits::NEVER_PACKED);
    range::write_all(reply, &result, options.with_scores);
    Ok(())
}

fn store(ctx: &mut Ctx<'_>, args: &[&[u8]], operation: Operation) -> CommandResult {
    let (names, rest) = split(args[0], &args[2..])?;
    let (db, to, keys) = (ctx.db(), ctx.key(args[1]), keys(ctx, names));
    let event = match operation {
        Operation::Union => "zunionstore",
        Operation::Inter => "zinterstore",
        Operation::Diff => "zdiffstore",
    };
    if let Some(count) = ctx.put_computed(db, args[1])? {
        notify_store(ctx.tx(), event, db, to, count);
        ctx.reply.integer(count as i64);
        return Ok(());
    }
    let (hasher, large) = (ctx.keyspace().hasher(), ctx.large_store());
    let tx = ctx.tx();
    let limits = tx.sorted_set_limits();
    let inputs = inputs(tx, db, &keys)?;
    let options = Options::parse(rest, operation, true, keys.len())?;
    if operation.is_much(large, &inputs) {
        let frozen = ctx.freeze_all(db, &keys);
        ctx.store_aside(&keys, (db, args[1], 0), move |keyspace| {
            let result = operation.run(keyspace.hasher(), &inputs_of(&frozen), &options);
            Ok(result.into_sorted_set(limits).into_object())
        });
        return Ok(());
    }
    let result = operation.run(hasher, &inputs, &options).into_sorted_set(limits);
    let count = result.len();
    tx.put_value(db, to, result, 0);
    notify_store(tx, event, db, to, count);
    ctx.reply.integer(count as i64);
    Ok(())
}

pub(super) fn zintercard(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (names, rest) = split(args[0], &args[1..])?;
    let (db, keys) = (ctx.db(), keys(ctx, names));
    let (hasher, large) = (ctx.keyspace().hasher(), ctx.large_aside());
    let inputs = inputs(ctx.tx(), db, &keys)?;
    let mut limit = 0;
    let mut rest = rest;
    while let [option, value, after @ ..] = rest {
        if !is(option, "LIMIT") {
            break;
        }
        limit = args::integer_or(value, 0.., "ERR LIMIT can't be negative")?;
        rest = after;
    }
    if !rest.is_empty() {
        return Err(CommandError::Syntax);
    }
    let most = if limit == 0 { usize::MAX } else { limit as usize };
    if Operation::Inter.is_much(large, &inputs) {
        let frozen = ctx.freeze_all(db, &keys);
        ctx.reply_aside(move |keyspace| {
            let count = count_common(keyspace.hasher(), &inputs_of(&frozen), most);
            Box::new(Headed::new(move |reply| reply.integer(count as i64), ()))
        });
        return Ok(());
    }
    let count = count_common(hasher, &inputs, most);
    ctx.reply.integer(count as i64);
    Ok(())
}

/// Number of members common to all, up to `most`.
fn count_common(hasher: &KeyHasher, inputs: &[Option<Input<'_>>], most: usize) -> usize {
    let mut count = 0;
    let Some(order) = smallest_first(inputs) else { return count };
    let (first, others) = (order[0].1, &order[1..]);
    first.for_each_while(|member, _| {
        let has = |other: &Input<'_>| other.score(hasher, member).is_some();
        if others.iter().all(|(_, other)| other.is_same(first) || has(other)) {
            count += 1;
        }
        count < most
    });
    count
}

type Args<'a, 'b> = &'a [&'b [u8]];

/// Splits the arguments into the keys, which follow their number, and the rest.
fn split<'a, 'b>(
    command: &[u8],
    args: Args<'a, 'b>,
) -> Result<(Args<'a, 'b>, Args<'a, 'b>), CommandError> {
    let count = args::integer(args[0])?;
    if count < 1 {
        let name = String::from_utf8_lossy(command).to_lowercase();
        let text = format_args!("at least 1 input key is needed for '{name}' command");
        return Err(CommandError::err(text));
    }
    match usize::try_from(count) {
        Ok(count) if count < args.len() => Ok(args[1..].split_at(count)),
        _ => Err(CommandError::Syntax),
    }
}

fn keys<'k>(ctx: &Ctx<'_>, names: &[&'k [u8]]) -> Vec<Key<'k>> {
    names.iter().map(|name| ctx.key(name)).collect()
}

/// One of the input sets.
#[derive(Clone, Copy)]
enum Input<'a> {
    Sorted(&'a SortedSet),
    Set(&'a SetValue),
}

fn inputs<'t>(
    tx: &'t mut Tx<'_>,
    db: DbId,
    keys: &[Key<'_>],
) -> Result<Vec<Option<Input<'t>>>, CommandError> {
    let objects = tx.read_objects(db, keys)?;
    let input = |object: Option<&'t Object>| match object {
        None => Ok(None),
        Some(object) => Input::of(object).map(Some).ok_or(CommandError::WrongType),
    };
    objects.into_iter().map(input).collect()
}

fn inputs_of(frozen: &[Option<Object>]) -> Vec<Option<Input<'_>>> {
    frozen.iter().map(|object| Input::of(object.as_ref()?)).collect()
}

impl<'a> Input<'a> {
    /// The value, if it is a set or a sorted set.
    fn of(object: &'a Object) -> Option<Input<'a>> {
        match object {
            Object::SortedSet(set) => Some(Input::Sorted(set)),
            Object::Set(set) => Some(Input::Set(set)),
            _ => None,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Input::Sorted(set) => set.bytes(),
            Input::Set(set) => set.bytes(),
        }
    }

    fn len(&self) -> usize {
        match self {
            Input::Sorted(set) => set.len(),
            Input::Set(set) => set.len(),
        }
    }

    fn score(&self, hasher: &KeyHasher, member: &[u8]) -> Option<f64> {
        match self {
            Input::Sorted(set) => set.score(hasher, member),
            Input::Set(set) => set.contains(hasher, member).then_some(1.0),
        }
    }

    fn for_each(&self, mut visit: impl FnMut(&[u8], f64)) {
        self.for_each_while(|member, score| {
            visit(member, score);
            true
        });
    }

    fn for_each_while(&self, mut visit: impl FnMut(&[u8], f64) -> bool) {
        match self {
            Input::Sorted(set) => set.for_each_while(0..set.len(), visit),
            Input::Set(set) => {
                set.members().all(|member| member.with_bytes(|bytes| visit(bytes, 1.0)));
            }
        }
    }

    fn is_same(&self, other: Input<'_>) -> bool {
        match (self, other) {
            (Input::Sorted(a), Input::Sorted(b)) => std::ptr::eq(*a, b),
            (Input::Set(a), Input::Set(b)) => std::ptr::eq(*a, b),
            _ => false,
        }
    }
}

/// The inputs with their positions, in the order in which unions and intersections take them (the
/// sums of doubles depend on it); `None` if one is missing.
fn smallest_first<'a>(inputs: &[Option<Input<'a>>]) -> Option<Vec<(usize, Input<'a>)>> {
    let all: Option<Vec<Input<'a>>> = inputs.iter().copied().collect();
    let mut order: Vec<_> = all?.into_iter().enumerate().collect();
    order.sort_by_key(|(_, input)| input.len());
    Some(order)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Union,
    Inter,
    Diff,
}

impl Operation {
    /// Whether the operation is a lot of work.
    fn is_much(self, large: Large, inputs: &[Option<Input<'_>>]) -> bool {
        let size = |input: Input<'_>| (input.len(), input.bytes());
        let sizes = inputs.iter().map(|input| input.map_or((0, 0), size));
        let (elements, bytes) = match self {
            // Only the smallest set is traversed.
            Operation::Inter => sizes.min().unwrap_or_default(),
            _ => sizes.fold((0, 0), |sum, size| (sum.0 + size.0, sum.1 + size.1)),
        };
        large.is_total(elements, bytes)
    }
}

#[derive(Clone, Copy)]
enum Aggregate {
    Sum,
    Min,
    Max,
    /// The sum of the weights of the sets that have the member.
    Count,
}

impl Aggregate {
    /// Never NaN where `old` is not.
    fn of(self, old: f64, new: f64) -> f64 {
        match self {
            Aggregate::Sum | Aggregate::Count => number(old + new),
            Aggregate::Min if new < old => new,
            Aggregate::Max if new > old => new,
            Aggregate::Min | Aggregate::Max => old,
        }
    }
}

/// Infinities that cancel each other, or are multiplied by zero, count as zero.
fn number(score: f64) -> f64 {
    if score.is_nan() { 0.0 } else { score }
}

struct Options {
    /// By position; missing ones are 1.
    weights: Vec<f64>,
    aggregate: Aggregate,
    with_scores: bool,
}

impl Options {
    fn parse(
        mut rest: &[&[u8]],
        operation: Operation,
        stores: bool,
        keys: usize,
    ) -> Result<Options, CommandError> {
        let mut options =
            Options { weights: Vec::new(), aggregate: Aggregate::Sum, with_scores: false };
        let weighs = operation != Operation::Diff;
        while let [option, after @ ..] = rest {
            rest = after;
            if weighs && after.len() >= keys && is(option, "WEIGHTS") {
                let (weights, after) = after.split_at(keys);
                let weight = |text: &&[u8]| parse_double(text);
                let weights: Option<Vec<f64>> = weights.iter().map(weight).collect();
                const NO_FLOAT: CommandError =
                    CommandError::text("ERR weight value is not a float");
                options.weights = weights.ok_or(NO_FLOAT)?;
                rest = after;
            } else if weighs
                && is(option, "AGGREGATE")
                && let [how, after @ ..] = after
            {
                options.aggregate = match how {
                    how if is(how, "SUM") => Aggregate::Sum,
                    how if is(how, "MIN") => Aggregate::Min,
                    how if is(how, "MAX") => Aggregate::Max,
                    how if is(how, "COUNT") => Aggregate::Count,
                    _ => return Err(CommandError::Syntax),
                };
                rest = after;
            } else if !stores && is(option, "WITHSCORES") {
                options.with_scores = true;
            } else {
                return Err(CommandError::Syntax);
            }
        }
        Ok(options)
    }

    fn weigh(&self, position: usize, score: f64) -> f64 {
        let score = if matches!(self.aggregate, Aggregate::Count) { 1.0 } else { score };
        self.weights.get(position).map_or(score, |weight| weight * score)
    }
}

impl Operation {
    fn run(self, hasher: &KeyHasher, inputs: &[Option<Input<'_>>], options: &Options) -> Gathered {
        match self {
            Operation::Union => union(hasher, inputs, options),
            Operation::Inter => intersection(hasher, inputs, options),
            Operation::Diff => difference(hasher, inputs),
        }
    }
}

fn union(hasher: &KeyHasher, inputs: &[Option<Input<'_>>], options: &Options) -> Gathered {
    let mut found = Gathered::default();
    let mut order: Vec<_> = inputs.iter().enumerate().collect();
    order.sort_by_key(|(_, input)| input.map_or(0, |input| input.len()));
    for (position, input) in order {
        let Some(input) = input else { continue };
        input.for_each(|member, score| {
            let score = number(options.weigh(position, score));
            found.set(hasher, member, |old| match old {
                Some(old) => options.aggregate.of(old, score),
                None => score,
            });
        });
    }
    found
}

fn intersection(hasher: &KeyHasher, inputs: &[Option<Input<'_>>], options: &Options) -> Gathered {
    let mut found = Gathered::default();
    let Some(order) = smallest_first(inputs) else { return found };
    let ((position, first), others) = (order[0], &order[1..]);
    first.for_each(|member, score| {
        let mut sum = number(options.weigh(position, score));
        for (position, other) in others {
            let there =
                if other.is_same(first) { Some(score) } else { other.score(hasher, member) };
            let Some(there) = there else { return };
            sum = options.aggregate.of(sum, options.weigh(*position, there));
        }
        found.set(hasher, member, |_| sum);
    });
    found
}

/// Either asks all others about each member of the first, or removes the members of each other from
/// a copy of the first: whichever is less work, by Redis' estimate for sets.
fn difference(hasher: &KeyHasher, inputs: &[Option<Input<'_>>]) -> Gathered {
    let mut found = Gathered::default();
    let [Some(first), others @ ..] = inputs else { return found };
    let others: Vec<Input<'_>> = others.iter().copied().flatten().collect();
    if others.iter().any(|other| other.is_same(*first)) {
        return found;
    }
    let ask = first.len().saturating_mul(others.len() + 1) / 2;
    let take_out = first.len() + others.iter().map(Input::len).sum::<usize>();
    if ask <= take_out {
        first.for_each(|member, score| {
            if !others.iter().any(|other| other.score(hasher, member).is_some()) {
                found.set(hasher, member, |_| score);
            }
        });
        return found;
    }
    first.for_each(|member, score| found.set(hasher, member, |_| score));
    for other in others {
        other.for_each(|member, _| found.remove(hasher, member));
    }
    found
}
