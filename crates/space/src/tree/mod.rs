//! A counted copy-on-write B+tree: items in order, found by comparison and by rank.
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

mod build;
mod node;
mod run;
mod search;

pub(crate) use build::TreeBuild;
use node::{Inner, Node, RightEdge};
pub(crate) use search::{Hints, Item, partition_point};
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

/// Where an item is: which child leads to it on each level, and its place in the leaf. Until the
/// tree changes.
pub(crate) type Path = SmallVec<[u8; 8]>;

/// Items in ascending order, no two of them equal. A clone is quickly made: it shares nodes, and a
/// shared node is copied before it changes.
#[derive(Clone)]
pub struct Tree<T> {
    root: Node<T>,
    len: u64,
    leaves: usize,
    inners: usize,
}

impl<T: Item> Default for Tree<T> {
    fn default() -> Tree<T> {
        Tree::new()
    }
}

impl<T: Item> Tree<T> {
    /// A tree without items.
    pub fn new() -> Tree<T> {
        Tree { root: Node::leaf(), len: 0, leaves: 1, inners: 0 }
    }

    /// A tree of items that are in order, with a little room in every leaf.
    pub fn of_sorted(items: impl IntoIterator<Item = T>) -> Tree<T> {
        let mut build = TreeBuild::new();
        items.into_iter().for_each(|item| build.push(item));
        build.finish()
    }

    /// How many items there are.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Bytes of memory that the nodes take.
    pub fn bytes(&self) -> usize {
        // In front of each are the counts of its owners.
        const COUNTS_BYTES: usize = 2 * size_of::<usize>();
        self.leaves * (COUNTS_BYTES + size_of::<node::Leaf<T>>())
            + self.inners * (COUNTS_BYTES + size_of::<Inner<T>>())
    }

    /// The equal item, which has one of these hints.
    #[inline]
    pub fn get(&self, hints: Hints, against: impl Fn(&T) -> Ordering) -> Option<&T> {
        let mut node = &self.root;
        loop {
            match node {
                Node::Leaf(leaf) => {
                    let at = place_of(&leaf.items, hints, &against).ok()?;
                    return Some(&leaf.items[at]);
                }
                Node::Inner(inner) => {
                    node = &inner.children[child_of(inner, hints, &against)];
                    node.fetch();
                }
            }
        }
    }

    /// As [`Tree::get`], and where it is.
    #[inline]
    pub fn locate(&self, hints: Hints, against: impl Fn(&T) -> Ordering) -> Option<(Path, &T)> {
        let mut path = Path::new();
        let mut node = &self.root;
        loop {
            match node {
                Node::Leaf(leaf) => {
                    let at = place_of(&leaf.items, hints, &against).ok()?;
                    path.push(at as u8);
                    return Some((path, &leaf.items[at]));
                }
                Node::Inner(inner) => {
                    let at = child_of(inner, hints, &against);
                    path.push(at as u8);
                    node = &inner.children[at];
                    node.fetch();
                }
            }
        }
    }

    /// Puts an equal item into the place of the one that [`Tree::locate`] found, which returns.
    pub fn replace_at(&mut self, path: &Path, item: T) -> T {
        let mut node = &mut self.root;
        let mut below = &path[..];
        loop {
            let (at, rest) = (usize::from(below[0]), &below[1..]);
            match node {
                Node::Leaf(leaf) => {
                    return std::mem::replace(&mut Arc::make_mut(leaf).items[at], item);
                }
                Node::Inner(inner) => {
                    let inner = Arc::make_mut(inner);
                    if rest.iter().all(|at| *at == 0) {
                        inner.firsts[at] = item.clone();
                    }
                    node = &mut inner.children[at];
                }
            }
            below = rest;
        }
    }

    /// Begins to fetch what searches for `count` items need, one level after the other, so that
    /// they wait for memory together. `begun` says of a number and an item whether the item
    /// precedes the one that is sought under that number, or may be it.
    pub fn fetch_paths(&self, count: usize, begun: impl Fn(usize, &T) -> bool) {
        let mut nodes: SmallVec<[&Node<T>; 64]> = SmallVec::from_elem(&self.root, count);
        while let Some(Node::Inner(_)) = nodes.first() {
            for (number, node) in nodes.iter_mut().enumerate() {
                // All leaves are at one depth.
                let Node::Inner(inner) = *node else { continue };
                let at = inner.firsts.partition_point(|first| begun(number, first));
                *node = &inner.children[at.saturating_sub(1)];
                node.fetch();
            }
        }
        for (number, node) in nodes.iter().enumerate() {
            let Node::Leaf(leaf) = *node else { continue };
            let at = leaf.items.partition_point(|item| begun(number, item));
            if let Some(item) = leaf.items.get(at.saturating_sub(1)) {
                item.fetch_all();
            }
        }
    }

    /// Adds an item; `against` says how an item compares with it, and none is equal.
    fn insert(&mut self, item: T, hints: Hints, against: impl Fn(&T) -> Ordering) {
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
                    let at = partition_point(&leaf.items, hints, |other| !before(other));
                    leaf.items.insert(at, item);
                    self.len += 1;
                    return;
                }
                Node::Inner(inner) => {
                    let inner = Arc::make_mut(inner);
                    let mut at = child_of(inner, hints, &against);
                    if inner.children[at].is_full() {
                        if inner.make_room(at, &item, edge, before) {
                            match inner.children[at] {
                                Node::Leaf(_) => self.leaves += 1,
                                Node::Inner(_) => self.inners += 1,
                            }
                        }
                        at = child_of(inner, hints, &against);
                    }
                    if at == 0 && before(&inner.firsts[0]) {
                        inner.firsts[0] = item.clone();
                    }
                    inner.counts[at] += 1;
                    edge = RightEdge(edge.0 && at + 1 == inner.children.len());
                    node = &mut inner.children[at];
                }
            }
        }
    }

    /// Puts `item` into the place of the item that is equal by `against`, which returns; if there
    /// is none, adds it.
    pub fn put(&mut self, item: T, hints: Hints, against: impl Fn(&T) -> Ordering) -> Option<T> {
        match put_below(&mut self.root, item, hints, &against) {
            Put::Replaced { old, .. } => Some(old),
            Put::Added { .. } => {
                self.len += 1;
                None
            }
            Put::NoRoom(item) => {
                self.insert(item, hints, against);
                None
            }
        }
    }

    /// Changes the items of these ranks, in a way that changes neither their order nor their
    /// equality to others.
    pub fn change(&mut self, ranks: Range<u64>, change: &mut impl FnMut(&mut T)) {
        change_below(&mut self.root, ranks, change);
    }

    /// How many items come before what `before` says; it must be true of none after one of which
    /// it is false.
    pub fn count_before(&self, hints: Hints, before: impl Fn(&T) -> bool) -> u64 {
        self.run_behind(hints, before).0
    }

    /// As [`Tree::count_before`], and with the items of one leaf that follow those; there may be
    /// none of them, and more in the next leaf.
    pub fn run_behind(&self, hints: Hints, before: impl Fn(&T) -> bool) -> (u64, &[T]) {
        let mut node = &self.root;
        let mut rank = 0;
        loop {
            match node {
                Node::Leaf(leaf) => {
                    let at = partition_point(&leaf.items, hints, before);
                    return (rank + at as u64, &leaf.items[at..]);
                }
                Node::Inner(inner) => {
                    let at = partition_point(&inner.firsts, hints, &before).saturating_sub(1);
                    node = &inner.children[at];
                    node.fetch();
                    rank += inner.counts[..at].iter().sum::<u64>();
                }
            }
        }
    }

    /// The item of this rank.
    pub fn at(&self, rank: u64) -> Option<&T> {
        self.run_from(rank).first()
    }

    /// The items of the leaf that has this rank, from there on; none past the end.
    pub fn run_from(&self, rank: u64) -> &[T] {
        let (leaf, at) = self.leaf_of(rank);
        leaf.get(at..).unwrap_or(&[])
    }

    /// The items of the leaf that has this rank, up to there.
    pub fn run_to(&self, rank: u64) -> &[T] {
        let (leaf, at) = self.leaf_of(rank);
        leaf.get(..=at).unwrap_or(&[])
    }

    fn leaf_of(&self, mut rank: u64) -> (&[T], usize) {
        let mut node = &self.root;
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

    /// Removes the equal item.
    pub fn remove(&mut self, hints: Hints, against: impl Fn(&T) -> Ordering) -> Option<T> {
        let counts = (&mut self.leaves, &mut self.inners);
        let (removed, _) = remove_equal(&mut self.root, hints, &against, counts)?;
        self.len -= 1;
        self.lower_root();
        Some(removed)
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
fn child_of<T: Item>(inner: &Inner<T>, hints: Hints, against: impl Fn(&T) -> Ordering) -> usize {
    let begun = partition_point(&inner.firsts, hints, |first| against(first) != Ordering::Greater);
    begun.saturating_sub(1)
}

/// Where the equal item is, or where it would be.
#[inline]
fn place_of<T: Item>(
    items: &[T],
    hints: Hints,
    against: impl Fn(&T) -> Ordering,
) -> Result<usize, usize> {
    let at = partition_point(items, hints, |item| against(item) == Ordering::Less);
    match items.get(at) {
        Some(item) if against(item) == Ordering::Equal => Ok(at),
        _ => Err(at),
    }
}

/// What came of an item to be put in. `is_first` says whether it is the node's first one now.
enum Put<T> {
    Replaced {
        old: T,
        is_first: bool,
    },
    Added {
        is_first: bool,
    },
    /// Its leaf is full; nothing has changed.
    NoRoom(T),
}

fn put_below<T: Item>(
    node: &mut Node<T>,
    item: T,
    hints: Hints,
    against: &impl Fn(&T) -> Ordering,
) -> Put<T> {
    let inner = match node {
        Node::Leaf(leaf) => {
            return match place_of(&leaf.items, hints, against) {
                Ok(at) => {
                    let old = std::mem::replace(&mut Arc::make_mut(leaf).items[at], item);
                    Put::Replaced { old, is_first: at == 0 }
                }
                Err(_) if leaf.items.is_full() => Put::NoRoom(item),
                Err(at) => {
                    Arc::make_mut(leaf).items.insert(at, item);
                    Put::Added { is_first: at == 0 }
                }
            };
        }
        Node::Inner(inner) => inner,
    };
    let at = child_of(inner, hints, against);
    let inner = Arc::make_mut(inner);
    let child = &mut inner.children[at];
    child.fetch();
    let mut put = put_below(child, item, hints, against);
    let is_first = match &mut put {
        Put::Replaced { is_first, .. } => is_first,
        Put::Added { is_first } => {
            inner.counts[at] += 1;
            is_first
        }
        Put::NoRoom(_) => return put,
    };
    if *is_first {
        // Of an equal item in its place as well: otherwise the old one would be kept alive.
        if let Some(first) = child.first() {
            inner.firsts[at] = first.clone();
        }
        *is_first = at == 0;
    }
    put
}

fn change_below<T: Item>(node: &mut Node<T>, ranks: Range<u64>, change: &mut impl FnMut(&mut T)) {
    match node {
        Node::Leaf(leaf) => {
            let items = &mut Arc::make_mut(leaf).items;
            let end = items.len().min(ranks.end as usize);
            items[ranks.start as usize..end].iter_mut().for_each(change);
        }
        Node::Inner(inner) => {
            let Inner { firsts, counts, children } = Arc::make_mut(inner);
            let mut rank = 0;
            for ((first, &count), child) in firsts.iter_mut().zip(&*counts).zip(children) {
                let within = ranks.start.max(rank)..ranks.end.min(rank + count);
                if !within.is_empty() {
                    if within.start == rank {
                        change(first);
                    }
                    change_below(child, within.start - rank..within.end - rank, &mut *change);
                }
                rank += count;
            }
        }
    }
}

/// The removed item, and whether it was the node's first one.
fn remove_equal<T: Item>(
    node: &mut Node<T>,
    hints: Hints,
    against: &impl Fn(&T) -> Ordering,
    (leaves, inners): (&mut usize, &mut usize),
) -> Option<(T, bool)> {
    match node {
        Node::Leaf(leaf) => {
            let at = place_of(&leaf.items, hints, against).ok()?;
            Some((Arc::make_mut(leaf).items.remove(at), at == 0))
        }
        Node::Inner(inner) => {
            let at = child_of(inner, hints, against);
            let inner = Arc::make_mut(inner);
            let is_leaf = matches!(inner.children[at], Node::Leaf(_));
            let child = &mut inner.children[at];
            child.fetch();
            let counts = (&mut *leaves, &mut *inners);
            let (removed, was_first) = remove_equal(child, hints, against, counts)?;
            inner.counts[at] -= 1;
            // Another one is left alone: its count of owners is seldom in the cache.
            if was_first && let Some(first) = child.first() {
                inner.firsts[at] = first.clone();
            }
            if inner.shrunk(at) {
                *(if is_leaf { leaves } else { inners }) -= 1;
            }
            Some((removed, was_first && at == 0))
        }
    }
}

#[cfg(test)]
impl<T: Item> Tree<T> {
    /// What must always hold: order, counts, first items, equal heights, the accounts.
    pub(crate) fn check(&self, compare: impl Fn(&T, &T) -> Ordering) {
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
fn check_node<T: Clone>(
    (node, is_root): (&Node<T>, bool),
    compare: &impl Fn(&T, &T) -> Ordering,
    items: &mut Vec<T>,
    (leaves, inners): (&mut usize, &mut usize),
) -> usize {
    assert!(is_root || node.len() > 0);
    match node {
        Node::Leaf(leaf) => {
            *leaves += 1;
            items.extend(leaf.items.iter().cloned());
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
