//! Loading a space from a checkpoint and the log, many tuples at once; and following the log of
//! another node, one tuple at a time.

use crate::definition::IndexKind;
use crate::entry::Entry;
use crate::error::{BoxError, ErrorCode};
use crate::format::Rules;
use crate::index::{Index, REHINTED_AT, Store};
use crate::key::Key;
use crate::space::Space;
use crate::statement::Written;
use crate::tree::TreeBuild;
use crate::tuple::Tuple;
use std::cmp::Ordering;
use std::sync::Arc;

/// So many searches fetch what they need together.
const FETCHED_TOGETHER: usize = 64;

impl Space {
    /// Begins loading: secondary indexes are left alone, for their keys may not be unique before
    /// the end. Until then only [`Space::load`], [`Space::apply_put`] and [`Space::apply_delete`]
    /// change tuples.
    pub fn begin_loading(&mut self) {
        self.is_loading = true;
    }

    /// Ends loading: builds the secondary indexes, and checks the tuples.
    ///
    /// # Errors
    /// Tarantool's, if the tuples break a rule; the space is not usable then.
    pub fn finish_loading(&mut self) -> Result<(), BoxError> {
        self.is_loading = false;
        let Some((primary, others)) = self.indexes.split_first_mut() else { return Ok(()) };
        primary.choose_hints();
        let mut duplicate = None;
        for (at, index) in others.iter_mut().enumerate() {
            if index.is_functional() {
                let two = index.fill_made(primary.tuples(), &self.def.name)?;
                duplicate = two.map(|two| (at + 1, two));
                if duplicate.is_some() {
                    break;
                }
                continue;
            }
            if let Err(two) = index.fill(primary.tuples()) {
                duplicate = Some((at + 1, two));
                break;
            }
        }
        match duplicate {
            Some((at, (old, new))) if self.indexes[at].is_functional() => {
                Err(self.duplicate_entry(&self.indexes[at], &old, new.bytes()))
            }
            Some((at, (old, new))) => Err(self.duplicate(&self.indexes[at], &old, new.bytes())),
            None => Ok(()),
        }
    }

    /// Puts tuples of a checkpoint into a space without any, while it is loading: runs in the order
    /// of the primary index, if that has an order. The runs may come in any order.
    pub fn load_runs(&mut self, runs: Vec<Vec<Tuple>>) {
        if let Some(primary) = self.indexes.first_mut() {
            self.tuple_bytes = 0;
            primary.load(runs, &mut self.tuple_bytes);
        }
    }

    /// Puts in tuples that were checked, one after the other, while the space is loading.
    pub fn put_run(&mut self, run: &mut Vec<Tuple>) {
        if let Some(primary) = self.indexes.first_mut() {
            primary.put_run(run, &mut self.tuple_bytes);
        }
    }

    /// What tuples must be like that are put in.
    ///
    /// # Errors
    /// One for a space without a primary index.
    pub fn rules_of_puts(&self) -> Result<Arc<Rules>, BoxError> {
        self.require_index(0)?;
        Ok(Arc::clone(&self.rules))
    }

    /// Puts in a tuple that was checked when it was first written.
    pub(crate) fn load(&mut self, tuple: Tuple) {
        let Some(primary) = self.indexes.first_mut() else { return };
        let old = primary.put(&tuple);
        if !self.is_loading {
            for index in &mut self.indexes[1..] {
                if let Some(old) = &old {
                    index.remove(old.bytes());
                }
                index.put(&tuple);
            }
        }
        self.account(old.as_ref(), Some(&tuple));
    }

    /// Does again what a put did before it was logged.
    ///
    /// # Errors
    /// Tarantool's, if the tuple does not fit the format: the log is damaged, or of another space.
    pub fn apply_put(&mut self, tuple: &[u8]) -> Result<(), BoxError> {
        self.require_index(0)?;
        self.rules.check(tuple)?;
        self.load(Tuple::new(tuple));
        Ok(())
    }

    /// Does again what a delete did before it was logged; `key` is a primary key.
    ///
    /// # Errors
    /// Tarantool's, if the key does not fit.
    pub fn apply_delete(&mut self, key: &[u8]) -> Result<(), BoxError> {
        let primary = self.require_index(0)?;
        let key = Key::parse(key)?;
        primary.key.check_exact(&key)?;
        if let Some(old) = primary.find_key(&key).map(|(_, tuple)| tuple.clone()) {
            self.take_out(&old);
        }
        Ok(())
    }
}

/// What another node has done, and logged, while readers look at the space: all indexes are kept.
impl Space {
    /// Puts a tuple where the other node has, just as it is.
    ///
    /// # Errors
    /// Tarantool's, if the tuple does not fit the format, or the tuples that there are: they are not
    /// those of the other node. Nothing has changed then.
    pub fn follow_put(&mut self, tuple: &[u8]) -> Result<Written, BoxError> {
        self.require_index(0)?;
        self.rules.check(tuple)?;
        let old = self.find_primary(tuple)?.cloned();
        self.check_unique(tuple, old.as_ref())?;
        Ok(self.write(old, Tuple::new(tuple)))
    }

    /// Deletes the tuple with a primary key, as the other node has; it is there.
    ///
    /// # Errors
    /// Tarantool's, if the key does not fit; one if there is no such tuple.
    pub fn follow_delete(&mut self, key: &[u8]) -> Result<Written, BoxError> {
        let written = self.delete(0, key)?;
        if written.is_nothing() {
            let text =
                format!("space '{}' has no tuple with a key that was deleted", self.def.name);
            return Err(BoxError::new(ErrorCode::ILLEGAL_PARAMS, text));
        }
        Ok(written)
    }
}

impl Index {
    /// Replaces everything by tuples that come in runs, each of them in the index's order, and one
    /// after the other, as a checkpoint has them; of two with one place, the later one stays. Other
    /// orders take longer. Adds to `bytes` those of the tuples.
    pub(crate) fn load(&mut self, mut runs: Vec<Vec<Tuple>>, bytes: &mut usize) {
        self.clear();
        runs.retain(|run| !run.is_empty());
        if self.def.kind != IndexKind::Tree {
            runs.into_iter().flatten().for_each(|tuple| self.put_counted(&tuple, bytes));
            return;
        }
        self.sort_runs(&mut runs);
        let key = &self.key;
        let mut build = TreeBuild::new();
        let mut tuples = runs.into_iter().flatten();
        let behind = tuples.by_ref().find_map(|tuple| {
            let entry = Entry { hint: key.hint(tuple.bytes()), tuple };
            if build.last().is_some_and(|last| key.order(last, &entry) != Ordering::Less) {
                return Some(entry.tuple);
            }
            *bytes += entry.tuple.memory();
            build.push(entry);
            None
        });
        self.store = Store::Tree(build.finish());
        behind.into_iter().chain(tuples).for_each(|tuple| self.put_counted(&tuple, bytes));
    }

    /// Puts the runs into the order of their first tuples, and has hints show what tells the tuples
    /// apart.
    fn sort_runs(&mut self, runs: &mut [Vec<Tuple>]) {
        let key = &self.key;
        runs.sort_by(|a, b| {
            let hints = [&a[0], &b[0]].map(|tuple| key.hint(tuple.bytes()));
            key.compare(hints[0], &a[0], hints[1], b[0].bytes())
        });
        let ends: Vec<u64> = runs
            .iter()
            .scan(0, |end, run| {
                *end += run.len() as u64;
                Some(*end)
            })
            .collect();
        let tuple = |rank: u64| {
            let run = ends.partition_point(|end| *end <= rank);
            let begin = ends[run] - runs[run].len() as u64;
            runs[run].get((rank - begin) as usize)
        };
        self.key.choose_window(ends.last().copied().unwrap_or(0), tuple);
    }

    fn put_counted(&mut self, tuple: &Tuple, bytes: &mut usize) {
        *bytes += tuple.memory();
        *bytes -= self.put(tuple).map_or(0, |old| old.memory());
    }

    /// Puts tuples in, as if they came one after the other. Adds to `bytes` what there is more of
    /// tuples.
    pub(crate) fn put_run(&mut self, run: &mut Vec<Tuple>, bytes: &mut usize) {
        let key = &self.key;
        let Store::Tree(tree) = &mut self.store else {
            run.drain(..).for_each(|tuple| self.put_counted(&tuple, bytes));
            return;
        };
        let of = |tuple: Tuple| Entry { hint: key.hint(tuple.bytes()), tuple };
        let mut entries: Vec<Entry> = run.drain(..).map(of).collect();
        if !entries.is_sorted_by(|a, b| key.order(a, b) == Ordering::Less) {
            entries.sort_by(|a, b| key.order(a, b));
            // The later one of equal ones stays.
            entries.dedup_by(|later, earlier| {
                let are_equal = key.order(earlier, later) == Ordering::Equal;
                if are_equal {
                    std::mem::swap(earlier, later);
                }
                are_equal
            });
        }
        let len = tree.len();
        *bytes += entries.iter().map(|entry| entry.tuple.memory()).sum::<usize>();
        while !entries.is_empty() {
            let rest = entries.split_off(entries.len().min(FETCHED_TOGETHER));
            let part = std::mem::replace(&mut entries, rest);
            let last = tree.len().checked_sub(1).and_then(|rank| tree.at(rank));
            if last.is_some_and(|last| key.order(last, &part[0]) != Ordering::Less) {
                tree.fetch_paths(part.len(), |number, entry| entry.hint <= part[number].hint);
            }
            tree.put_run(part, |a, b| key.order(a, b), |old| *bytes -= old.tuple.memory());
        }
        let lens = len + 1..=tree.len();
        if REHINTED_AT.iter().any(|at| lens.contains(at)) {
            self.choose_hints();
        }
    }
}
