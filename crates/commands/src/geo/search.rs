//! `GEOSEARCH`, `GEOSEARCHSTORE` and the older `GEORADIUS` forms.
//!
//! The members of nine cells at most are looked at. Where these are many, it is done aside, from a
//! frozen set; with `ANY`, as many as a small search has are looked at first.

use super::kernel::{Area, Cell, Point, cover, point_of_score, write_distance};
use super::options::{Form, Order, Query, Shown};
use ladon_engine::types::sorted_set::{Gathered, ScoreRange, SortedSet, SortedSetLimits};
use ladon_engine::{EventClass, Variant};
use ladon_kernel::command::error::CommandResult;
use ladon_kernel::ctx::Ctx;
use ladon_kernel::long::slices::{Headed, Room, Slices};
use ladon_record::KeyHasher;
use ladon_resp::Reply;
use std::ops::{Bound, Range};

pub(super) fn geosearch(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    run(ctx, args, Form::Search)
}

pub(super) fn geosearchstore(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    run(ctx, args, Form::SearchStore)
}

pub(super) fn georadius(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    run(ctx, args, Form::Radius { stores: true })
}

pub(super) fn georadius_ro(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    run(ctx, args, Form::Radius { stores: false })
}

pub(super) fn georadiusbymember(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    run(ctx, args, Form::RadiusByMember { stores: true })
}

pub(super) fn georadiusbymember_ro(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    run(ctx, args, Form::RadiusByMember { stores: false })
}

fn run(ctx: &mut Ctx<'_>, args: &[&[u8]], form: Form) -> CommandResult {
    let (db, source) = (ctx.db(), ctx.key(args[form.source_at()]));
    let target = form.target_at(args).map(|at| args[at]);
    if let Some(target) = target
        && let Some(count) = ctx.put_computed(db, target)?
    {
        has_stored(ctx, form, target, count);
        return Ok(());
    }
    let hasher = ctx.keyspace().hasher();
    let large = if target.is_some() { ctx.large_store() } else { ctx.large_aside() };
    let tx = ctx.tx();
    let limits = tx.sorted_set_limits();
    let set = tx.read_value::<SortedSet>(db, source)?;
    let find = set.map(|set| |member: &[u8]| set.score(hasher, member).map(point_of_score));
    let query = Query::parse(form, args, find)?;
    let found = match (set, &query.area) {
        (Some(set), Some(area)) => Found::search(set, area, &query, large.elements()),
        _ => Some(Found::default()),
    };
    let Some(found) = found else {
        let frozen = tx.freeze_or_copy::<SortedSet>(db, source);
        let search = move || {
            let found = frozen
                .zip(query.area.as_ref())
                .and_then(|(set, area)| Found::search(&set, area, &query, usize::MAX));
            (found.unwrap_or_default(), query)
        };
        match target {
            Some(target) => ctx.store_aside(&[source], (db, target, 0), move |keyspace| {
                let (found, query) = search();
                Ok(found.into_sorted_set(keyspace.hasher(), limits, &query).into_object())
            }),
            None => ctx.reply_aside(move |_| {
                let (found, query) = search();
                let rest = found.into_rest(&query);
                let count = rest.order.len();
                Box::new(Headed::new(move |reply| reply.array(count), rest))
            }),
        }
        return Ok(());
    };
    if let Some(target) = target {
        let result = found.into_sorted_set(hasher, limits, &query);
        let (key, count) = (tx.key(target), result.len());
        tx.put_value(db, key, result, 0);
        has_stored(ctx, form, target, count);
        return Ok(());
    }
    let mut rest = found.into_rest(&query);
    ctx.reply.array(rest.order.len());
    if ctx.large().is_total(rest.order.len(), rest.memory()) {
        ctx.reply_in_slices(rest);
    } else {
        rest.write_all(&mut ctx.reply);
    }
    Ok(())
}

/// Replies after a result with `count` members was stored.
fn has_stored(ctx: &mut Ctx<'_>, form: Form, target: &[u8], count: usize) {
    let (db, key) = (ctx.db(), ctx.key(target));
    let event = match form {
        Form::Radius { .. } | Form::RadiusByMember { .. } => "georadiusstore",
        _ => "geosearchstore",
    };
    if count > 0 {
        ctx.tx().notify(EventClass::SORTED_SET, event, db, key);
    }
    ctx.reply.integer(count as i64);
}

/// Members inside an area, in the order in which they were found.
#[derive(Default)]
struct Found {
    members: Vec<u8>,
    points: Vec<FoundPoint>,
    /// Meters.
    unit: f64,
}

#[derive(Clone, Copy)]
struct FoundPoint {
    /// Where its member begins in `members`, and its length.
    member: (usize, u32),
    /// How many were found before it.
    number: u32,
    score: f64,
    point: Point,
    distance_m: f64,
}

/// Points that are kept beyond those that are wanted, before the others are dropped.
const SPARE_POINTS: usize = 4096;

impl Found {
    /// Searches a set; `None` if more than so many members would have to be looked at.
    fn search(set: &SortedSet, area: &Area, query: &Query, looks_max: usize) -> Option<Found> {
        let mut found = Found { unit: area.unit, ..Found::default() };
        let ranks: Vec<Range<usize>> =
            cover(area).into_iter().map(|cell| ranks_of(set, cell)).collect();
        let total: usize = ranks.iter().map(Range::len).sum();
        if total >= looks_max && !query.any {
            return None;
        }
        let wanted = if query.any { query.count } else { usize::MAX };
        let (mut looks, mut number) = (0, 0);
        for ranks in ranks {
            set.for_each_while(ranks, |member, score| {
                looks += 1;
                let point = point_of_score(score);
                if let Some(distance_m) = area.distance_inside(point) {
                    found.push(
                        member,
                        FoundPoint { member: (0, 0), number, score, point, distance_m },
                    );
                    number = number.saturating_add(1);
                    found.drop_spare(query);
                }
                looks < looks_max && found.points.len() < wanted
            });
            if found.points.len() >= wanted {
                break;
            }
            if looks >= looks_max {
                return None;
            }
        }
        Some(found)
    }

    fn push(&mut self, member: &[u8], point: FoundPoint) {
        // No member is longer than a request.
        let length = u32::try_from(member.len()).unwrap_or(u32::MAX);
        self.points.push(FoundPoint { member: (self.members.len(), length), ..point });
        self.members.extend_from_slice(member);
    }

    fn member(&self, point: &FoundPoint) -> &[u8] {
        let (start, length) = point.member;
        &self.members[start..start + length as usize]
    }

    /// If a count limits the result: drops what cannot be part of it, once that is a lot.
    fn drop_spare(&mut self, query: &Query) {
        let is_full =
            query.count != 0 && self.points.len() / 2 >= query.count.saturating_add(SPARE_POINTS);
        if !is_full || query.any {
            return;
        }
        let mut kept = Found { unit: self.unit, ..Found::default() };
        for at in self.order(query) {
            let point = self.points[at];
            kept.push(self.member(&point), point);
        }
        kept.points.sort_unstable_by_key(|point| point.number);
        *self = kept;
    }

    /// The points of the result, in its order.
    fn order(&self, query: &Query) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.points.len()).collect();
        let count = if query.count == 0 { order.len() } else { query.count.min(order.len()) };
        if let Some(direction) = query.order {
            let compare = |&a: &usize, &b: &usize| {
                let (a, b) = (&self.points[a], &self.points[b]);
                let by_distance = a.distance_m.total_cmp(&b.distance_m);
                let by_distance = match direction {
                    Order::Ascending => by_distance,
                    Order::Descending => by_distance.reverse(),
                };
                by_distance.then(a.number.cmp(&b.number))
            };
            if count < order.len() {
                order.select_nth_unstable_by(count, compare);
                order.truncate(count);
            }
            order.sort_unstable_by(compare);
        }
        order.truncate(count);
        order
    }

    fn into_sorted_set(
        self,
        hasher: &KeyHasher,
        limits: SortedSetLimits,
        query: &Query,
    ) -> SortedSet {
        let mut result = Gathered::default();
        for at in self.order(query) {
            let point = &self.points[at];
            let score = match query.stores_distances {
                true => point.distance_m / self.unit,
                false => point.score,
            };
            result.set(hasher, self.member(point), |_| score);
        }
        result.into_sorted_set(limits)
    }

    fn into_rest(self, query: &Query) -> Rest {
        let order = self.order(query);
        Rest { found: self, order, next: 0, shown: query.shown }
    }
}

fn ranks_of(set: &SortedSet, cell: Cell) -> Range<usize> {
    let (min, max) = cell.scores();
    set.ranks_by_score(&ScoreRange { min: Bound::Included(min), max: Bound::Excluded(max) })
}

/// The members of a reply that are still to be sent.
struct Rest {
    found: Found,
    order: Vec<usize>,
    next: usize,
    shown: Shown,
}

impl Rest {
    fn write_all(&mut self, reply: &mut Reply<'_>) {
        while self.next < self.order.len() {
            self.write_one(reply);
        }
    }

    fn write_one(&mut self, reply: &mut Reply<'_>) {
        let point = &self.found.points[self.order[self.next]];
        self.next += 1;
        let Shown { distance, hash, coordinates } = self.shown;
        let extras = usize::from(distance) + usize::from(hash) + usize::from(coordinates);
        if extras > 0 {
            reply.array(1 + extras);
        }
        reply.bulk(self.found.member(point));
        if distance {
            reply.bulk(write_distance(point.distance_m / self.found.unit));
        }
        if hash {
            reply.integer(point.score as i64);
        }
        if coordinates {
            reply.array(2);
            reply.human_double(point.point.longitude);
            reply.human_double(point.point.latitude);
        }
    }
}

impl Slices for Rest {
    fn write(&mut self, reply: &mut Reply<'_>, room: &mut Room) -> bool {
        while self.next < self.order.len() {
            if !room.take(reply) {
                return true;
            }
            self.write_one(reply);
        }
        false
    }

    fn memory(&self) -> usize {
        let Found { members, points, .. } = &self.found;
        members.capacity()
            + points.capacity() * size_of::<FoundPoint>()
            + self.order.capacity() * size_of::<usize>()
    }
}
