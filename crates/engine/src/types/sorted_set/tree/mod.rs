//! A counted B+tree: items in order, found by comparison and by rank.
//!
//! ```text
//!            [ 0: a 5 items | 1: f 4 items ]           inner: first item and count of each child
//!              /                        \
//!      [a b c d e]                  [f g h i]          leaves: the items
//! ```
//!
//! The caller supplies the comparison with the sought item, because an item may hold less than what
//! it represents. A full node passes items to a neighbour before it is split, and nodes at the
//! edges are left full when items arrive in order, so leaves are about four fifths full, or
//! completely.

mod node;

use node::{FANOUT, Inner, Node, RightEdge};
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

/// Items in ascending order, no two of them equal. A clone is quickly made: it shares nodes, and a
/// shared node is copied before it changes.
#[derive(Clone)]
pub(super) struct Tree<T> {
    root: Node<T>,
    len: u64,
    leaves: usize,
    inners: usize,
}

impl<T: Copy> Tree<T> {
    pub(super) fn new() -> Tree<T> {
        Tree { root: Node::leaf(), len: 0, leaves: 1, inners: 0 }
    }

    /// A tree of items that are in order, with a little room in every leaf.
    pub(super) fn of_sorted(items: &[T]) -> Tree<T> {
        const FILLED: usize = FANOUT - FANOUT / 8;
        if items.is_empty() {
            return Tree::new();
        }
        let mut level: Vec<Node<T>> =
            evenly(items.len(), FILLED).map(|range| Node::of_items(&items[range])).collect();
        let (leaves, mut inners) = (level.len(), 0);
        while level.len() > 1 {
            let ranges = evenly(level.len(), FILLED);
            let mut children = level.into_iter();
            level = ranges.map(|range| Node::over(children.by_ref().take(range.len()))).collect();
            inners += level.len();
        }
        match level.pop() {
            Some(root) => Tree { root, len: items.len() as u64, leaves, inners },
            None => Tree::new(),
        }
    }

    /// Bytes of memory that the nodes take.
    pub(super) fn bytes(&self) -> usize {
        // In front of each are the counts of its owners.
        const COUNTS_BYTES: usize = 2 * size_of::<usize>();
        self.leaves * (COUNTS_BYTES + size_of::<node::Leaf<T>>())
            + self.inners * (COUNTS_BYTES + size_of::<Inner<T>>())
    }

    /// Adds an item; `against` says how an item compares with it, and none is equal.
    pub(super) fn insert(&mut self, item: T, against: impl Fn(&T) -> Ordering) {
        if self.root.is_full() {
            let root = std::mem::replace(&mut self.root, Node::leaf());
            self.root = Node::over(std::iter::once(root));
            self.inners += 1;
        }
        let before = |other: &T| against(other) == Ordering::Greater;
        let mut node = &mut self.root;
        let mut edge = RightEdge(true);
        loop {
            match node {
                Node::Leaf(leaf) => {
                    let leaf = Arc::make_mut(leaf);
                    let at = leaf.items.partition_point(|other| !before(other));
                    leaf.items.insert(at, item);
                    self.len += 1;
                    return;
                }
                Node::Inner(inner) => {
                    let inner = Arc::make_mut(inner);
                    let mut at = child_of(inner, &against);
                    if inner.children[at].is_full() {
                        if inner.make_room(at, item, edge, before) {
                            match inner.children[at] {
                                Node::Leaf(_) => self.leaves += 1,
                                Node::Inner(_) => self.inners += 1,
                            }
                        }
                        at = child_of(inner, &against);
                    }
                    if at == 0 && before(&inner.firsts[0]) {
                        inner.firsts[0] = item;
                    }
                    inner.counts[at] += 1;
                    edge = RightEdge(edge.0 && at + 1 == inner.children.len());
                    node = &mut inner.children[at];
                }
            }
        }
    }

    /// Puts `new` into the place of the item that is equal by `old`, if its place stays within
    /// the leaf; false if not, and then nothing has changed. `new` compares by `against`.
    pub(super) fn move_within_leaf(
        &mut self,
        old: impl Fn(&T) -> Ordering,
        new: T,
        against: impl Fn(&T) -> Ordering,
    ) -> bool {
        let mut node = &mut self.root;
        // The next leaf's first item.
        let mut end: Option<T> = None;
        let leaf = loop {
            match node {
                Node::Leaf(leaf) => break Arc::make_mut(leaf),
                Node::Inner(inner) => {
                    let inner = Arc::make_mut(inner);
                    let at = child_of(inner, &old);
                    end = inner.firsts.get(at + 1).copied().or(end);
                    node = &mut inner.children[at];
                }
            }
        };
        let items = &mut leaf.items[..];
        let Ok(from) = items.binary_search_by(&old) else { return false };
        // The nodes above know a leaf's first item.
        if from == 0
            || against(&items[0]) != Ordering::Less
            || end.is_some_and(|end| against(&end) != Ordering::Greater)
        {
            return false;
        }
        let to = items.partition_point(|item| against(item) == Ordering::Less);
        if to > from {
            items.copy_within(from + 1..to, from);
            items[to - 1] = new;
        } else {
            items.copy_within(to..from, to + 1);
            items[to] = new;
        }
        true
    }

    /// How many items come before what `before` says; it must be true of none after one of which
    /// it is false.
    pub(super) fn count_before(&self, before: impl Fn(&T) -> bool) -> usize {
        let mut node = &self.root;
        let mut rank = 0;
        loop {
            match node {
                Node::Leaf(leaf) => return rank + leaf.items.partition_point(before),
                Node::Inner(inner) => {
                    let at = inner.firsts.partition_point(&before).saturating_sub(1);
                    rank += inner.counts[..at].iter().sum::<u64>() as usize;
                    node = &inner.children[at];
                }
            }
        }
    }

    /// The items of the leaf that has this rank, from there on; none past the end.
    pub(super) fn run_from(&self, rank: usize) -> &[T] {
        let (leaf, at) = self.leaf_of(rank);
        leaf.get(at..).unwrap_or(&[])
    }

    /// The items of the leaf that has this rank, up to there.
    pub(super) fn run_to(&self, rank: usize) -> &[T] {
        let (leaf, at) = self.leaf_of(rank);
        leaf.get(..=at).unwrap_or(&[])
    }

    fn leaf_of(&self, rank: usize) -> (&[T], usize) {
        let mut node = &self.root;
        let mut rank = rank as u64;
        loop {
            match node {
                Node::Leaf(leaf) => return (&leaf.items, rank as usize),
                Node::Inner(inner) => {
                    let (at, within) = inner.child_at(rank);
                    (node, rank) = (&inner.children[at], within);
                }
            }
        }
    }

    /// Takes up to `max` items out, from a rank to the end of its leaf at most; `visit` sees
    /// them. How many there were: none only past the end.
    pub(super) fn remove_run(
        &mut self,
        rank: usize,
        max: usize,
        mut visit: impl FnMut(T),
    ) -> usize {
        let removed = remove_from(
            &mut self.root,
            rank as u64,
            max,
            &mut visit,
            (&mut self.leaves, &mut self.inners),
        );
        self.len -= removed as u64;
        self.lower_root();
        removed
    }

    /// Removes the equal item; returns whether it existed.
    pub(super) fn remove(&mut self, against: impl Fn(&T) -> Ordering) -> bool {
        let counts = (&mut self.leaves, &mut self.inners);
        let removed = remove_equal(&mut self.root, &against, counts);
        if removed {
            self.len -= 1;
            self.lower_root();
        }
        removed
    }

    /// After items were taken out: a root with one child is none.
    fn lower_root(&mut self) {
        while let Node::Inner(inner) = &mut self.root
            && inner.children.len() <= 1
        {
            self.inners -= 1;
            match Arc::make_mut(inner).children.pop() {
                Some(child) => self.root = child,
                None => {
                    self.root = Node::leaf();
                    self.leaves += 1;
                }
            }
        }
    }
}

/// The child that something belongs to: the last that does not begin after it.
#[inline]
fn child_of<T: Copy>(inner: &Inner<T>, against: impl Fn(&T) -> Ordering) -> usize {
    let begun = inner.firsts.partition_point(|first| against(first) != Ordering::Greater);
    begun.saturating_sub(1)
}

fn remove_from<T: Copy>(
    node: &mut Node<T>,
    rank: u64,
    max: usize,
    visit: &mut impl FnMut(T),
    (leaves, inners): (&mut usize, &mut usize),
) -> usize {
    match node {
        Node::Leaf(leaf) => {
            let leaf = Arc::make_mut(leaf);
            let from = (rank as usize).min(leaf.items.len());
            let to = from.saturating_add(max).min(leaf.items.len());
            leaf.items.drain(from..to).for_each(visit);
            to - from
        }
        Node::Inner(inner) => {
            let inner = Arc::make_mut(inner);
            let (at, rank) = inner.child_at(rank);
            let is_leaf = matches!(inner.children[at], Node::Leaf(_));
            let child = &mut inner.children[at];
            let removed = remove_from(child, rank, max, visit, (&mut *leaves, &mut *inners));
            if removed > 0 && inner.shrunk(at) {
                *(if is_leaf { leaves } else { inners }) -= 1;
            }
            removed
        }
    }
}

fn remove_equal<T: Copy>(
    node: &mut Node<T>,
    against: &impl Fn(&T) -> Ordering,
    (leaves, inners): (&mut usize, &mut usize),
) -> bool {
    match node {
        Node::Leaf(leaf) => {
            let Ok(at) = leaf.items.binary_search_by(against) else { return false };
            Arc::make_mut(leaf).items.remove(at);
            true
        }
        Node::Inner(inner) => {
            let at = child_of(inner, against);
            let inner = Arc::make_mut(inner);
            let is_leaf = matches!(inner.children[at], Node::Leaf(_));
            let child = &mut inner.children[at];
            let removed = remove_equal(child, against, (&mut *leaves, &mut *inners));
            if removed && inner.shrunk(at) {
                *(if is_leaf { leaves } else { inners }) -= 1;
            }
            removed
        }
    }
}

/// Cuts `0..len` into ranges of about the same length, at most `max`.
fn evenly(len: usize, max: usize) -> impl Iterator<Item = Range<usize>> {
    let parts = len.div_ceil(max);
    (0..parts).map(move |part| len * part / parts..len * (part + 1) / parts)
}

#[cfg(test)]
impl<T: Copy> Tree<T> {
    /// What must always hold: order, counts, first items, equal heights, the accounts.
    pub(super) fn check(&self, compare: impl Fn(&T, &T) -> Ordering) {
        let mut items = Vec::new();
        let (mut leaves, mut inners) = (0, 0);
        let root = (&self.root, true);
        check_node(root, &compare, &mut items, (&mut leaves, &mut inners));
        assert!(items.is_sorted_by(|a, b| compare(a, b) == Ordering::Less));
        assert_eq!((items.len(), leaves, inners), (self.len as usize, self.leaves, self.inners));
    }
}

/// The height.
#[cfg(test)]
fn check_node<T: Copy>(
    (node, is_root): (&Node<T>, bool),
    compare: &impl Fn(&T, &T) -> Ordering,
    items: &mut Vec<T>,
    (leaves, inners): (&mut usize, &mut usize),
) -> usize {
    assert!(is_root || node.len() > 0);
    match node {
        Node::Leaf(leaf) => {
            *leaves += 1;
            items.extend(leaf.items.iter().copied());
            0
        }
        Node::Inner(inner) => {
            *inners += 1;
            assert!(!is_root || inner.children.len() > 1);
            let mut heights = Vec::new();
            for (at, child) in inner.children.iter().enumerate() {
                let before = items.len();
                heights.push(check_node((child, false), compare, items, (leaves, inners)));
                assert_eq!(items.len() - before, inner.counts[at] as usize);
                assert!(compare(&items[before], &inner.firsts[at]).is_eq());
            }
            assert!(heights.iter().all(|height| *height == heights[0]));
            heights[0] + 1
        }
    }
}
