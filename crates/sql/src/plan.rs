//! How tables are read and joined: rules, without statistics.
//!
//! A table is read by the index that needs the fewest looks: all parts of a unique one, some parts,
//! a list of keys, a range, else all. Tables are joined in the order in which the estimated looks
//! are the fewest; that of the text goes first. A table that no index helps with is hashed.

use crate::ast::Binary;
use crate::catalog::{Index, Table};
use crate::parser::statement::is_numeric;
use crate::tree::{Access, Comparison, Core, Ex, IndexAccess, Place, Query, Sorting, Step, Sub};
use ladon_space::{FieldType, IndexKind};
use std::sync::Arc;

/// A table of a join.
pub(crate) struct Joined {
    /// A space; none if it is a query.
    pub(crate) table: Option<Arc<Table>>,
    pub(crate) is_left: bool,
    /// The condition of a left join.
    pub(crate) on: Vec<Ex>,
    /// The index that INDEXED BY names.
    pub(crate) forced: Option<u32>,
}

/// Estimated rows of a table.
const ROWS: f64 = 1e6;
/// Orders are tried out for this many tables at most.
const TRIED_MAX: usize = 8;

/// The tables of the query's own level that an expression looks at, as bits.
pub(crate) fn slots(ex: &Ex) -> u64 {
    let mut found = 0;
    each_place(ex, 0, &mut |place, level| {
        if place.up == level {
            found |= 1u64 << place.slot.min(63);
        }
    });
    found
}

/// Whether one of the expressions has a column of its own query.
pub(crate) fn names_columns<'x>(all: impl Iterator<Item = &'x Ex>) -> bool {
    let mut is_one = false;
    all.for_each(|ex| each_place(ex, 0, &mut |place, level| is_one |= place.up == level));
    is_one
}

/// Whether a query is inside of an expression.
pub(crate) fn has_query(ex: &Ex) -> bool {
    let any = |mut list: &mut dyn Iterator<Item = &Ex>| Iterator::any(&mut list, has_query);
    match ex {
        Ex::InQuery(..) | Ex::Exists(_) | Ex::Scalar(_) => true,
        Ex::Value(_) | Ex::Parameter(_) | Ex::Aggregate(_) | Ex::Raise(_) | Ex::Column(_) => false,
        Ex::Unary(_, a) | Ex::IsNull(a, _) | Ex::Cast(a, _) => has_query(a),
        Ex::And(a, b)
        | Ex::Or(a, b)
        | Ex::Arithmetic(_, a, b)
        | Ex::Concat(a, b)
        | Ex::Compare(_, a, b, _) => has_query(a) || has_query(b),
        Ex::CompareRows(_, pairs) => any(&mut pairs.iter().flat_map(|(a, b, _)| [a, b])),
        Ex::InList(a, list, _) => has_query(a) || any(&mut list.iter().map(|(ex, _)| ex)),
        Ex::Like(a, b, c, ..) => any(&mut [&**a, &**b].into_iter().chain(c.as_deref())),
        Ex::Case(a, branches, b) => {
            any(&mut branches.iter().flat_map(|(a, b, _)| [a, b]))
                || any(&mut a.as_deref().into_iter().chain(b.as_deref()))
        }
        Ex::Function(_, list, _) => any(&mut list.iter()),
    }
}

/// Visits all columns in an expression, with how many levels of queries are around each.
fn each_place(ex: &Ex, level: usize, visit: &mut dyn FnMut(&Place, usize)) {
    let mut all = |list: &mut dyn Iterator<Item = &Ex>| {
        list.for_each(|ex| each_place(ex, level, visit));
    };
    match ex {
        Ex::Value(_) | Ex::Parameter(_) | Ex::Aggregate(_) | Ex::Raise(_) => {}
        Ex::Column(place) => visit(place, level),
        Ex::Unary(_, a) | Ex::IsNull(a, _) | Ex::Cast(a, _) => each_place(a, level, visit),
        Ex::And(a, b)
        | Ex::Or(a, b)
        | Ex::Arithmetic(_, a, b)
        | Ex::Concat(a, b)
        | Ex::Compare(_, a, b, _) => all(&mut [&**a, &**b].into_iter()),
        Ex::CompareRows(_, pairs) => {
            all(&mut pairs.iter().flat_map(|(a, b, _)| [a, b]));
        }
        Ex::InList(a, list, _) => {
            all(&mut list.iter().map(|(ex, _)| ex).chain([&**a]));
        }
        Ex::InQuery(list, sub, _) => {
            all(&mut list.iter().map(|(ex, _)| ex));
            each_of_query(&sub.query, level + 1, visit);
        }
        Ex::Like(a, b, c, ..) => {
            all(&mut [&**a, &**b].into_iter().chain(c.as_deref()));
        }
        Ex::Case(a, branches, b) => {
            all(&mut branches.iter().flat_map(|(a, b, _)| [a, b]));
            all(&mut a.as_deref().into_iter().chain(b.as_deref()));
        }
        Ex::Function(_, list, _) => all(&mut list.iter()),
        Ex::Exists(sub) | Ex::Scalar(sub) => each_of_query(&sub.query, level + 1, visit),
    }
}

fn each_of_query(query: &Query, level: usize, visit: &mut dyn FnMut(&Place, usize)) {
    for (_, core) in &query.cores {
        each_of_core(core, level, visit);
    }
}

fn each_of_core(core: &Core, level: usize, visit: &mut dyn FnMut(&Place, usize)) {
    let lists = core.values.iter().chain([&core.filter, &core.results, &core.sort_keys]);
    for ex in lists.flatten() {
        each_place(ex, level, visit);
    }
    for step in &core.steps {
        let of_access: Vec<&Ex> = match &step.access {
            Access::All => Vec::new(),
            Access::Index(access) => {
                let bounds = [&access.low, &access.high].into_iter().flatten();
                access.equal.iter().map(|(ex, _)| ex).chain(bounds.map(|it| &it.0)).collect()
            }
            Access::Keys { list, .. } => list.iter().collect(),
            Access::Hash { own, known, .. } => own.iter().chain(known).collect(),
        };
        let conditions = step.filter.iter().chain(&step.seen_to).chain(&step.after);
        for ex in of_access.into_iter().chain(conditions) {
            each_place(ex, level, visit);
        }
    }
    if let Some(group) = &core.group {
        let keys = group.keys.iter().map(|(ex, _)| ex);
        let arguments = group.aggregates.iter().flat_map(|call| &call.arguments);
        for ex in keys.chain(arguments).chain(&group.having) {
            each_place(ex, level, visit);
        }
    }
    for source in &core.sources {
        if let crate::tree::Source::Query(sub) = source {
            let Sub { query, .. } = &**sub;
            each_of_query(query, level + 1, visit);
        }
    }
}

/// A condition that one table's column has with something that is known before.
struct Term<'e> {
    field: u32,
    op: Binary,
    other: &'e Ex,
    how: Comparison,
    /// The place of the condition.
    place: usize,
}

fn flipped(op: Binary) -> Binary {
    match op {
        Binary::Less => Binary::Greater,
        Binary::LessEqual => Binary::GreaterEqual,
        Binary::Greater => Binary::Less,
        Binary::GreaterEqual => Binary::LessEqual,
        other => other,
    }
}

fn terms<'e>(conditions: &[&'e Ex], slot: usize, known: u64) -> Vec<Term<'e>> {
    let mut found = Vec::new();
    for (place, condition) in conditions.iter().enumerate() {
        let Ex::Compare(op, a, b, how) = condition else { continue };
        if *op == Binary::Unequal {
            continue;
        }
        for (own, other, op) in [(a, b, *op), (b, a, flipped(*op))] {
            if let Ex::Column(Place { up: 0, slot: of, field }) = **own
                && of == slot
                && slots(other) & !known == 0
            {
                found.push(Term { field, op, other, how: *how, place });
            }
        }
    }
    found
}

/// Whether an index's part orders as the comparison compares.
fn fits(part: &crate::catalog::IndexPart, how: Comparison) -> bool {
    let binary = |collation: u32| if collation == 3 { 0 } else { collation };
    match part.kind {
        FieldType::String => !how.is_numeric && binary(part.collation) == binary(how.collation),
        FieldType::Varbinary | FieldType::Boolean | FieldType::Uuid | FieldType::Datetime => true,
        FieldType::Scalar | FieldType::Any => false,
        kind => is_numeric(kind),
    }
}

/// How an index could serve, and how many rows it would look at.
fn index_access(index: &Index, terms: &[Term<'_>]) -> Option<(IndexAccess, f64)> {
    let mut access = IndexAccess {
        index: index.id,
        equal: Vec::new(),
        low: None,
        high: None,
        is_reverse: false,
        is_unique: false,
        sees_to: Vec::new(),
    };
    let of_part = |part: &crate::catalog::IndexPart| -> Vec<&Term<'_>> {
        let is_own = |term: &&Term<'_>| Some(term.field) == part.field && fits(part, term.how);
        terms.iter().filter(is_own).collect()
    };
    let mut used = 0;
    for part in &index.parts {
        let own = of_part(part);
        let Some(equal) = own.iter().find(|term| term.op == Binary::Equal) else { break };
        access.equal.push((equal.other.clone(), part.kind));
        access.sees_to.push(equal.place);
        used += 1;
    }
    let mut rows = ROWS;
    for _ in 0..used {
        rows = if rows > 10.0 { 10.0 } else { rows - 1.0 };
    }
    if used == index.parts.len() && index.is_unique {
        (rows, access.is_unique) = (1.0, true);
    } else if index.kind == IndexKind::Hash {
        return None;
    }
    if let Some(part) = index.parts.get(used) {
        for term in of_part(part) {
            let is_included = matches!(term.op, Binary::LessEqual | Binary::GreaterEqual);
            let bound = Some((term.other.clone(), is_included, part.kind));
            match term.op {
                Binary::Less | Binary::LessEqual if access.high.is_none() => access.high = bound,
                Binary::Greater | Binary::GreaterEqual if access.low.is_none() => {
                    access.low = bound
                }
                _ => continue,
            }
            rows /= 4.0;
        }
    }
    let bounded = used + usize::from(access.low.is_some() || access.high.is_some());
    let leaves_out = index.parts.iter().skip(bounded).any(|part| part.excludes_null);
    let is_kind = matches!(index.kind, IndexKind::Tree | IndexKind::Hash);
    (bounded > 0 && !leaves_out && is_kind).then_some((access, rows.max(1.0)))
}

/// The list of keys of a condition IN on the first part of an index.
fn keys_access(
    index: &Index,
    conditions: &[&Ex],
    slot: usize,
    known: u64,
) -> Option<(Access, f64)> {
    let [part, ..] = &index.parts[..] else { return None };
    if index.kind != IndexKind::Tree && !(index.kind == IndexKind::Hash && index.parts.len() == 1) {
        return None;
    }
    if index.parts.iter().any(|part| part.excludes_null) && index.parts.len() > 1 {
        return None;
    }
    conditions.iter().find_map(|condition| {
        let Ex::InList(own, list, false) = condition else { return None };
        let Ex::Column(Place { up: 0, slot: of, field }) = **own else { return None };
        let is_known = list.iter().all(|(ex, how)| slots(ex) & !known == 0 && fits(part, *how));
        if of != slot || Some(field) != part.field || !is_known {
            return None;
        }
        let each = if index.is_unique && index.parts.len() == 1 { 1.0 } else { 10.0 };
        let rows = list.len() as f64 * each;
        let list = list.iter().map(|(ex, _)| ex.clone()).collect();
        Some((Access::Keys { index: index.id, kind: part.kind, list }, rows))
    })
}

/// The best access to a table when some others are known.
fn best(joined: &Joined, slot: usize, conditions: &[&Ex], known: u64) -> (Access, f64) {
    let mut found = (Access::All, ROWS);
    let Some(table) = &joined.table else { return found };
    let terms = terms(conditions, slot, known);
    let indexes = table.indexes.iter();
    for index in indexes.filter(|index| joined.forced.is_none_or(|forced| forced == index.id)) {
        if let Some((access, rows)) = index_access(index, &terms)
            && rows < found.1
        {
            found = (Access::Index(access), rows);
        }
        if let Some((access, rows)) = keys_access(index, conditions, slot, known)
            && rows < found.1
        {
            found = (access, rows);
        }
    }
    found
}

/// The order in which tables are joined.
fn order(tables: &[Joined], conditions: &[&Ex]) -> Vec<usize> {
    let count = tables.len();
    let of = |slot: usize, known: u64| -> f64 {
        let on: Vec<&Ex> = tables[slot].on.iter().collect();
        let conditions = if tables[slot].is_left { &on[..] } else { conditions };
        best(&tables[slot], slot, conditions, known).1
    };
    let may_come = |slot: usize, done: u64| {
        let before = (1u64 << slot) - 1;
        let is_first_of_rest = done & before == before;
        let has_left_before = (0..slot).any(|it| tables[it].is_left && done & (1 << it) == 0);
        is_first_of_rest || !tables[slot].is_left && !has_left_before
    };
    let greedy = |first: usize| -> (f64, Vec<usize>) {
        let (mut done, mut found, mut rows) = (0u64, Vec::new(), 1.0);
        let mut cost = 0.0;
        while found.len() < count {
            let open = (0..count).filter(|it| done & (1 << it) == 0 && may_come(*it, done));
            let next = if found.is_empty() {
                Some((first, of(first, 0)))
            } else {
                let with_rows = open.map(|it| (it, of(it, done)));
                with_rows.min_by(|a, b| a.1.total_cmp(&b.1))
            };
            let Some((next, looks)) = next else { break };
            rows *= looks;
            cost += rows;
            done |= 1 << next;
            found.push(next);
        }
        (cost, found)
    };
    if count > TRIED_MAX {
        return greedy(0).1;
    }
    let tried = (0..count).filter(|first| may_come(*first, 0)).map(greedy);
    tried.min_by(|a, b| a.0.total_cmp(&b.0)).map_or_else(Vec::new, |(_, order)| order)
}

/// The steps of a join, and the conditions that depend on no table.
pub(crate) fn join(
    tables: &[Joined],
    filter: Vec<Ex>,
    place: &mut dyn FnMut() -> usize,
) -> (Vec<Step>, Vec<Ex>) {
    let borrowed: Vec<&Ex> = filter.iter().collect();
    let order = order(tables, &borrowed);
    let mut left: Vec<(u64, &Ex)> = filter.iter().map(|ex| (slots(ex), ex)).collect();
    let (constant, rest): (Vec<_>, Vec<_>) = left.drain(..).partition(|(of, _)| *of == 0);
    let mut rest = rest;
    let mut steps = Vec::new();
    let mut known = 0;
    for slot in order {
        let joined = &tables[slot];
        let own = 1u64 << slot;
        let on: Vec<&Ex> = joined.on.iter().collect();
        let conditions = if joined.is_left { &on[..] } else { &borrowed[..] };
        let (mut access, _) = best(joined, slot, conditions, known);
        if matches!(access, Access::All) && known != 0 {
            access = hashed(slot, conditions, known, place).unwrap_or(Access::All);
        }
        known |= own;
        let (ready, later): (Vec<_>, Vec<_>) =
            rest.into_iter().partition(|(of, _)| of & !known == 0);
        rest = later;
        let sees_to = match &access {
            Access::Index(access) => &access.sees_to[..],
            _ => &[],
        };
        let is_seen_to = |ex: &&Ex| sees_to.iter().any(|at| std::ptr::eq(conditions[*at], *ex));
        let ready: Vec<&Ex> = ready.into_iter().map(|(_, ex)| ex).collect();
        let (own, after) = if joined.is_left { (on.clone(), ready) } else { (ready, Vec::new()) };
        let (seen_to, filter): (Vec<&Ex>, Vec<&Ex>) = own.into_iter().partition(is_seen_to);
        let [filter, seen_to, after] =
            [filter, seen_to, after].map(|all| all.into_iter().cloned().collect());
        steps.push(Step { slot, access, filter, seen_to, after, is_left: joined.is_left });
    }
    (steps, constant.into_iter().map(|(_, ex)| ex.clone()).collect())
}

/// A hash of the values that are equal, if there are some whose equality is that of their bytes.
fn hashed(
    slot: usize,
    conditions: &[&Ex],
    known: u64,
    place: &mut dyn FnMut() -> usize,
) -> Option<Access> {
    let (mut own, mut before) = (Vec::new(), Vec::new());
    for condition in conditions {
        let Ex::Compare(Binary::Equal, a, b, how) = condition else { continue };
        if how.collation != 0 {
            continue;
        }
        for (a, b) in [(a, b), (b, a)] {
            let (of_a, of_b) = (slots(a), slots(b));
            if matches!(**a, Ex::Column(_)) && of_a == 1 << slot && of_b & !known == 0 && of_b != 0
            {
                own.push((**a).clone());
                before.push((**b).clone());
                break;
            }
        }
    }
    (!own.is_empty()).then(|| Access::Hash { own, known: before, place: place() })
}

/// Whether a query of one table comes in its order by the index that it is read by; it may be read
/// by another one for that, or backwards.
pub(crate) fn order_by_index(core: &mut Core, table: &Table, sorting: &[Sorting]) -> bool {
    if sorting.is_empty() {
        return false;
    }
    let is_descending = sorting[0].is_descending;
    let mut own = core.sort_keys.iter();
    let mut wanted = Vec::new();
    for one in sorting {
        let ex = match one.column {
            Some(column) => core.results.get(column),
            None => own.next(),
        };
        let Some(Ex::Column(Place { up: 0, field, .. })) = ex else { return false };
        if one.is_descending != is_descending {
            return false;
        }
        wanted.push((*field, one.collation));
    }
    let Some(step) = core.steps.first_mut() else { return false };
    let comes = |index: &Index, skipped: usize| {
        let mut parts = index.parts[skipped..].iter();
        index.kind == IndexKind::Tree
            && wanted.iter().all(|(field, collation)| {
                parts.next().is_some_and(|part| {
                    part.field == Some(*field)
                        && part.collation == *collation
                        && !part.excludes_null
                })
            })
    };
    match &mut step.access {
        Access::Index(access) => {
            let index = table.indexes.iter().find(|index| index.id == access.index);
            let is_in_order = index.is_some_and(|index| comes(index, access.equal.len()));
            access.is_reverse = is_in_order && is_descending;
            is_in_order || access.is_unique
        }
        Access::All => {
            let Some(index) = table.indexes.iter().find(|index| comes(index, 0)) else {
                return false;
            };
            if index.parts.iter().any(|part| part.excludes_null) {
                return false;
            }
            step.access = Access::Index(IndexAccess {
                index: index.id,
                equal: Vec::new(),
                low: None,
                high: None,
                is_reverse: is_descending,
                is_unique: false,
                sees_to: Vec::new(),
            });
            true
        }
        Access::Keys { .. } | Access::Hash { .. } => false,
    }
}
