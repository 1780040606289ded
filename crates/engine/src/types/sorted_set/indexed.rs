//! A large sorted set: a table from members to scores, and a tree of the table's entries by score.
//!
//! ```text
//! table: member -> entry [head, member, score]
//!                    ^
//! tree:  ... (score, | ) (score, entry) ...
//! ```
//!
//! `item.rs` says why the tree may point into the table. What keeps it so is here: an entry is
//! made before its item, an item leaves before its entry, and while items leave, nothing is
//! sought in the tree. A frozen one shares entries with its table and nodes with its tree.

use super::item::Item;
use super::tree::Tree;
use crate::table::Table;
use crate::table::entry::{EntryRef, ValueInit, ValueRef};
use ladon_record::KeyHasher;
use std::cmp::Ordering;
use std::ops::Range;

pub(super) struct Indexed {
    table: Table,
    tree: Tree<Item>,
}

/// A cursor is the top 48 bits of a hash, which is as fine as buckets ever get; it stays positive
/// for clients that read it as a signed number.
const SCAN_SHIFT: u32 = 16;

/// How far ahead members are fetched: about as many as memory answers at once.
const AHEAD: usize = 10;

impl Indexed {
    pub(super) fn new() -> Indexed {
        Indexed { table: Table::new(0), tree: Tree::new() }
    }

    /// From a table of members and scores, as `init` makes them.
    pub(super) fn of_table(table: Table) -> Indexed {
        let mut items = Vec::with_capacity(table.len());
        // SAFETY: the items stay with the table.
        table.for_each(|entry| items.push(unsafe { Item::new(score_of(entry), entry.ptr()) }));
        items.sort_unstable_by(|a: &Item, b| a.against(b.score(), b.member()));
        Indexed { table, tree: Tree::of_sorted(&items) }
    }

    /// Of members that come in order, each once.
    pub(super) fn of_ordered(
        hasher: &KeyHasher,
        walk: impl FnOnce(&mut dyn FnMut(&[u8], f64)),
    ) -> Indexed {
        let (mut table, mut items) = (Table::new(0), Vec::new());
        walk(&mut |member, score| {
            let entry = table.insert(hasher, hasher.hash(member).0, member, 0, init(score), 0);
            // SAFETY: the items stay with the table.
            items.push(unsafe { Item::new(score, entry) });
        });
        Indexed { table, tree: Tree::of_sorted(&items) }
    }

    /// As it is now; see [`Table::freeze`].
    pub(super) fn freeze(&mut self) -> Indexed {
        Indexed { table: self.table.freeze(), tree: self.tree.clone() }
    }

    pub(super) fn table(&self) -> &Table {
        &self.table
    }

    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    /// Bytes of memory, itself included.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Indexed>() + self.table.bytes() + self.tree.bytes()
    }

    #[inline]
    pub(super) fn score(&self, hasher: &KeyHasher, member: &[u8]) -> Option<f64> {
        self.table.get(hasher.hash(member).0, member).map(score_of)
    }

    pub(super) fn update(
        &mut self,
        hasher: &KeyHasher,
        member: &[u8],
        decide: impl FnOnce(Option<f64>) -> Option<f64>,
    ) -> Option<f64> {
        let hash = hasher.hash(member).0;
        let Some(mut slot) = self.table.get_mut(hash, member) else {
            if let Some(score) = decide(None) {
                let entry = self.table.insert(hasher, hash, member, 0, init(score), 0);
                // SAFETY: the entry is the table's; `remove` and `remove_ranks` free it later.
                let item = unsafe { Item::new(score, entry) };
                self.tree.insert(item, |other| other.against(score, member));
            }
            return None;
        };
        let old = score_of(slot.get());
        if let Some(score) = decide(Some(old)).filter(|&score| score != old) {
            // An integer over an integer: the entry's address stays the same, unless a frozen table
            // has it; then the old entry still exists when the tree's old item is read.
            slot.set(0, init(score));
            // SAFETY: as above.
            let item = unsafe { Item::new(score, slot.entry()) };
            let by_old = |other: &Item| other.against(old, member);
            let by_new = |other: &Item| other.against(score, member);
            if !self.tree.move_within_leaf(by_old, item, by_new) {
                self.tree.remove(by_old);
                self.tree.insert(item, by_new);
            }
        }
        Some(old)
    }

    pub(super) fn remove(&mut self, hasher: &KeyHasher, member: &[u8]) -> Option<f64> {
        let slot = self.table.get_mut(hasher.hash(member).0, member)?;
        let score = score_of(slot.get());
        self.tree.remove(|item| item.against(score, member));
        slot.remove(hasher);
        Some(score)
    }

    pub(super) fn remove_ranks(
        &mut self,
        hasher: &KeyHasher,
        ranks: Range<usize>,
        mut visit: impl FnMut(&[u8], f64),
    ) {
        let (table, mut rest) = (&mut self.table, ranks.len());
        let guard = crossbeam_epoch::pin();
        while rest > 0 {
            let run = self.tree.run_from(ranks.start);
            let run = &run[..run.len().min(rest)];
            run.iter().for_each(Item::prefetch);
            for item in run {
                table.prefetch_bucket(hasher.hash(item.member()).0, &guard);
            }
            let removed = self.tree.remove_run(ranks.start, rest, |item| {
                visit(item.member(), item.score());
                let hash = hasher.hash(item.member()).0;
                if let Some(slot) = table.get_mut(hash, item.member()) {
                    slot.remove(hasher);
                }
            });
            if removed == 0 {
                break;
            }
            rest -= removed;
        }
    }

    pub(super) fn rank(&self, hasher: &KeyHasher, member: &[u8]) -> Option<(usize, f64)> {
        let score = self.score(hasher, member)?;
        let before = |item: &Item| item.against(score, member) == Ordering::Less;
        Some((self.tree.count_before(before), score))
    }

    pub(super) fn count_before(&self, before: impl Fn(&[u8], f64) -> bool) -> usize {
        self.tree.count_before(|item| before(item.member(), item.score()))
    }

    pub(super) fn count_before_score(&self, before: impl Fn(f64) -> bool) -> usize {
        self.tree.count_before(|item| before(item.score()))
    }

    pub(super) fn for_each(&self, ranks: Range<usize>, mut visit: impl FnMut(&[u8], f64)) {
        self.for_each_while(ranks, |member, score| {
            visit(member, score);
            true
        });
    }

    pub(super) fn for_each_while(
        &self,
        ranks: Range<usize>,
        mut visit: impl FnMut(&[u8], f64) -> bool,
    ) {
        let mut at = ranks.start;
        while at < ranks.end {
            let run = self.tree.run_from(at);
            let run = &run[..run.len().min(ranks.end - at)];
            if run.is_empty() {
                break;
            }
            run.iter().take(AHEAD).for_each(Item::prefetch);
            for (index, item) in run.iter().enumerate() {
                run.get(index + AHEAD).inspect(|item| item.prefetch());
                if !visit(item.member(), item.score()) {
                    return;
                }
            }
            at += run.len();
        }
    }

    pub(super) fn for_each_reversed(&self, ranks: Range<usize>, mut visit: impl FnMut(&[u8], f64)) {
        let mut end = ranks.end.min(self.len());
        while end > ranks.start {
            let run = self.tree.run_to(end - 1);
            let run = &run[run.len() - run.len().min(end - ranks.start)..];
            if run.is_empty() {
                break;
            }
            run.iter().rev().take(AHEAD).for_each(Item::prefetch);
            for (index, item) in run.iter().enumerate().rev() {
                index.checked_sub(AHEAD).inspect(|&ahead| run[ahead].prefetch());
                visit(item.member(), item.score());
            }
            end -= run.len();
        }
    }

    pub(super) fn scan(
        &self,
        hasher: &KeyHasher,
        cursor: u64,
        count: usize,
        mut visit: impl FnMut(&[u8], f64) -> bool,
    ) -> u64 {
        let (mut seen, mut goes_on) = (0, true);
        let mut at = cursor << SCAN_SHIFT;
        loop {
            let next = self.table.scan(hasher, at, 1, |entry| {
                seen += 1;
                goes_on &= visit(entry.key(), score_of(entry));
            });
            match next {
                None => return 0,
                Some(next) if seen >= count || !goes_on => return next >> SCAN_SHIFT,
                Some(next) => at = next,
            }
        }
    }
}

/// The score that `init` put into an entry.
#[inline]
pub(super) fn score_of(entry: EntryRef<'_>) -> f64 {
    match entry.value() {
        ValueRef::Int(bits) => f64::from_bits(bits as u64),
        _ => unreachable!("a member's value is its score's bits"),
    }
}

/// A score as an entry's value: its bits.
#[inline]
pub(super) fn init(score: f64) -> ValueInit<'static> {
    debug_assert!(!score.is_nan());
    ValueInit::Int(score.to_bits() as i64)
}

#[cfg(test)]
impl Indexed {
    /// What must always hold.
    pub(super) fn check(&self) {
        assert_eq!(self.table.len(), self.tree.count_before(|_| true));
        self.tree.check(|a, b| a.against(b.score(), b.member()));
        self.table.for_each(|entry| {
            let at = self
                .tree
                .count_before(|item| item.against(score_of(entry), entry.key()) == Ordering::Less);
            assert_eq!(self.tree.run_from(at)[0].member().as_ptr(), entry.key().as_ptr());
        });
    }

    pub(super) fn tree_bytes(&self) -> usize {
        self.tree.bytes()
    }
}
