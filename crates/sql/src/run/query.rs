//! Rows of whole queries.

use super::keep::{Kept, canonical_row};
use super::{Env, Row, Run};
use crate::ast::Compound;
use crate::error::{self, Error};
use crate::operators::order;
use crate::tree::{Query, Recursion, Sorting, Sub};
use crate::value::Value;
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// A row with the keys that it is sorted by.
pub(super) type Sortable = (Row, Row);

/// Bytes of memory that a row takes.
pub(super) fn row_bytes(row: &[Value]) -> usize {
    size_of_val(row) + 32 + row.iter().map(Value::heap_bytes).sum::<usize>()
}

fn compare_sortable(a: &Sortable, b: &Sortable, sorting: &[Sorting]) -> Ordering {
    let mut own = 0;
    for one in sorting {
        let (a, b) = match one.column {
            Some(column) => (&a.0[column], &b.0[column]),
            None => {
                own += 1;
                (&a.1[own - 1], &b.1[own - 1])
            }
        };
        let found = order(a, b, one.collation);
        if found.is_ne() {
            return if one.is_descending { found.reverse() } else { found };
        }
    }
    Ordering::Equal
}

impl Run<'_> {
    /// A query's rows, `most` of them at most. Their memory counts until [`Run::forget`].
    pub(crate) fn query(
        &self,
        query: &Query,
        outer: Option<&Env<'_>>,
        most: Option<usize>,
    ) -> Result<Vec<Row>, Error> {
        let (offset, limit) = self.window(query)?;
        let limit = limit.min(most.unwrap_or(usize::MAX));
        let needed = limit.saturating_add(offset);
        if limit == 0 {
            return Ok(Vec::new());
        }
        let mut rows = match &query.cores[..] {
            [(_, core)] => self.sorted_core(query, core, outer, needed)?,
            _ => self.compound(query, outer, needed)?,
        };
        if rows.len() > needed {
            self.forget(&rows[needed..]);
            rows.truncate(needed);
        }
        if offset > 0 {
            let skipped = offset.min(rows.len());
            self.forget(&rows[..skipped]);
            rows.drain(..skipped);
        }
        Ok(rows)
    }

    /// How many rows a query leaves out, and how many it shows at most.
    pub(super) fn window(&self, query: &Query) -> Result<(usize, usize), Error> {
        let limit = query.limit.as_ref().map(|ex| self.limit(ex, "LIMIT")).transpose()?;
        let offset = query.offset.as_ref().map(|ex| self.limit(ex, "OFFSET")).transpose()?;
        if let (Some(limit), Some(offset)) = (limit, offset)
            && limit.checked_add(offset).is_none()
        {
            return Err(error::execute(
                "sum of LIMIT and OFFSET values should not result in integer overflow",
            ));
        }
        Ok((offset.unwrap_or(0), limit.unwrap_or(usize::MAX)))
    }

    /// The memory of these rows is free again, or nearly.
    pub(crate) fn forget(&self, rows: &[Row]) {
        self.budget.give(rows.iter().map(|row| row_bytes(row)).sum());
    }

    fn sorted_core(
        &self,
        query: &Query,
        core: &crate::tree::Core,
        outer: Option<&Env<'_>>,
        needed: usize,
    ) -> Result<Vec<Row>, Error> {
        if query.order.is_empty() || core.is_in_order {
            let mut rows = Vec::new();
            self.core(core, outer, &mut |row, _| {
                self.budget.take(row_bytes(&row))?;
                rows.push(row);
                Ok(rows.len() < needed)
            })?;
            return Ok(rows);
        }
        const SLACK: usize = 1024;
        let cut = needed.saturating_mul(2).saturating_add(SLACK);
        let mut rows: Vec<Sortable> = Vec::new();
        let by = |a: &Sortable, b: &Sortable| compare_sortable(a, b, &query.order);
        self.core(core, outer, &mut |row, keys| {
            self.budget.take(row_bytes(&row) + row_bytes(&keys))?;
            rows.push((row, keys));
            if rows.len() >= cut {
                rows.sort_by(by);
                for (row, keys) in rows.drain(needed..) {
                    self.budget.give(row_bytes(&row) + row_bytes(&keys));
                }
            }
            Ok(true)
        })?;
        rows.sort_by(by);
        self.budget.give(rows.iter().map(|(_, keys)| row_bytes(keys)).sum());
        Ok(rows.into_iter().map(|(row, _)| row).collect())
    }

    fn compound(
        &self,
        query: &Query,
        outer: Option<&Env<'_>>,
        needed: usize,
    ) -> Result<Vec<Row>, Error> {
        let collations = &query.cores[0].1.collations;
        let may_stop = query.order.is_empty();
        let mut rows: Vec<Row> = Vec::new();
        for (at, (compound, core)) in query.cores.iter().enumerate() {
            let mut own = Vec::new();
            let is_last = at + 1 == query.cores.len();
            let most = match compound {
                Some(Compound::UnionAll) if may_stop && is_last => {
                    needed.saturating_sub(rows.len())
                }
                _ => usize::MAX,
            };
            if most > 0 {
                self.core(core, outer, &mut |row, _| {
                    self.budget.take(row_bytes(&row))?;
                    own.push(row);
                    Ok(own.len() < most)
                })?;
            }
            match compound {
                None => rows = own,
                Some(Compound::UnionAll) => rows.append(&mut own),
                Some(compound) => rows = self.combined(*compound, rows, own, collations),
            }
        }
        if !query.order.is_empty() {
            rows.sort_by(|a, b| {
                let keys = query.order.iter().map(|one| {
                    let column = one.column.unwrap_or_default();
                    let found = order(&a[column], &b[column], one.collation);
                    if one.is_descending { found.reverse() } else { found }
                });
                keys.fold(Ordering::Equal, Ordering::then)
            });
        }
        Ok(rows)
    }

    /// What UNION, INTERSECT and EXCEPT make of two lists: without doubles, and in order.
    fn combined(
        &self,
        compound: Compound,
        left: Vec<Row>,
        right: Vec<Row>,
        collations: &[u32],
    ) -> Vec<Row> {
        let key = |row: &Row| canonical_row(row, collations);
        let mut found: HashMap<Vec<u8>, Row> = HashMap::new();
        match compound {
            Compound::Union | Compound::UnionAll => {
                for row in left.iter().chain(&right) {
                    found.entry(key(row)).or_insert_with(|| Row::clone(row));
                }
            }
            Compound::Intersect | Compound::Except => {
                let others: HashSet<Vec<u8>> = right.iter().map(key).collect();
                for row in &left {
                    let bytes = key(row);
                    if others.contains(&bytes) == (compound == Compound::Intersect) {
                        found.entry(bytes).or_insert_with(|| Row::clone(row));
                    }
                }
            }
        }
        self.forget(&left);
        self.forget(&right);
        let mut rows: Vec<Row> = found.into_values().collect();
        rows.sort_by(|a, b| {
            let pairs = a.iter().zip(b.iter()).enumerate();
            let orders =
                pairs.map(|(at, (a, b))| order(a, b, collations.get(at).copied().unwrap_or(0)));
            orders.fold(Ordering::Equal, Ordering::then)
        });
        // It was counted before, so it fits.
        let _ = self.budget.take(rows.iter().map(|row| row_bytes(row)).sum());
        rows
    }

    /// The rows of a query inside of another, made once if it looks at nothing around.
    pub(super) fn sub_rows(
        &self,
        sub: &Sub,
        env: &Env<'_>,
        most: Option<usize>,
    ) -> Result<Rc<Vec<Row>>, Error> {
        let Some(place) = sub.kept else {
            let rows = self.query(&sub.query, Some(env), most)?;
            self.forget(&rows);
            return Ok(Rc::new(rows));
        };
        if let Kept::Rows(rows) = self.kept(place) {
            return Ok(rows);
        }
        let rows = Rc::new(self.query(&sub.query, Some(env), most)?);
        self.keep(place, Kept::Rows(Rc::clone(&rows)));
        Ok(rows)
    }

    /// The rows of a recursive query.
    pub(super) fn recursion(
        &self,
        recursion: &Recursion,
        env: &Env<'_>,
    ) -> Result<Rc<Vec<Row>>, Error> {
        let limit = recursion.limit.as_ref().map(|ex| self.limit(ex, "LIMIT")).transpose()?;
        let limit = limit.unwrap_or(usize::MAX);
        let mut seen = HashSet::new();
        let mut all: Vec<Row> = Vec::new();
        let mut fresh = |rows: Vec<Row>, all: &mut Vec<Row>| {
            let mut new = Vec::new();
            for row in rows {
                if recursion.is_distinct && !seen.insert(canonical_row(&row, &recursion.collations))
                {
                    continue;
                }
                all.push(Row::clone(&row));
                new.push(row);
            }
            new
        };
        let before = self.kept(recursion.place);
        let mut round = fresh(self.query(&recursion.first, Some(env), None)?, &mut all);
        while !round.is_empty() && all.len() < limit {
            self.budget.step()?;
            self.keep(recursion.place, Kept::Rows(Rc::new(round)));
            let mut next = Vec::new();
            for query in &recursion.next {
                next.append(&mut self.query(query, Some(env), None)?);
            }
            round = fresh(next, &mut all);
        }
        self.keep(recursion.place, before);
        all.truncate(limit);
        Ok(Rc::new(all))
    }
}
