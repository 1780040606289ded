//! The tree's nodes: leaves of items, and inner nodes over children of one height.
//!
//! **Invariants:** no node below the root is empty; an inner node's `firsts[i]` is the smallest
//! item under `children[i]`, and `counts[i]` is how many there are.

use crate::left_behind::note_clone;
use crate::prefetch;
use arrayvec::ArrayVec;
use std::sync::Arc;

/// With the length and the counts of owners in front, items of 16 bytes make a leaf of 1 KiB:
/// allocators have that size, and moving half of it aside for an insertion is a few dozen
/// nanoseconds.
pub(in crate::tree) const FANOUT: usize = 62;
/// A node with fewer is joined with a neighbour, or filled up from it.
const POOR: usize = FANOUT / 4;
/// Neighbours that have no more than this together become one; it leaves room to grow.
const JOINED_MAX: usize = FANOUT * 3 / 4;
/// A full node passes items to a neighbour with at most this many; with fewer free places, it would
/// have to do so again too soon.
const TAKES_MAX: usize = FANOUT - FANOUT / 8;

pub(in crate::tree) struct Leaf<T> {
    pub(in crate::tree) items: ArrayVec<T, FANOUT>,
}

pub(in crate::tree) struct Inner<T> {
    pub(in crate::tree) firsts: ArrayVec<T, FANOUT>,
    pub(in crate::tree) counts: ArrayVec<u64, FANOUT>,
    pub(in crate::tree) children: ArrayVec<Node<T>, FANOUT>,
}

impl<T: Clone> Clone for Leaf<T> {
    fn clone(&self) -> Leaf<T> {
        note_clone(size_of::<Leaf<T>>());
        Leaf { items: self.items.clone() }
    }
}

impl<T: Clone> Clone for Inner<T> {
    fn clone(&self) -> Inner<T> {
        note_clone(size_of::<Inner<T>>());
        let Inner { firsts, counts, children } = self;
        Inner { firsts: firsts.clone(), counts: counts.clone(), children: children.clone() }
    }
}

/// A clone shares what is under the node.
pub(in crate::tree) enum Node<T> {
    Leaf(Arc<Leaf<T>>),
    Inner(Arc<Inner<T>>),
}

impl<T> Clone for Node<T> {
    fn clone(&self) -> Node<T> {
        match self {
            Node::Leaf(leaf) => Node::Leaf(Arc::clone(leaf)),
            Node::Inner(inner) => Node::Inner(Arc::clone(inner)),
        }
    }
}

/// Which side of its tree a node is on.
#[derive(Clone, Copy)]
pub(in crate::tree) struct RightEdge(pub(in crate::tree) bool);

impl<T: Clone> Node<T> {
    pub(in crate::tree) fn leaf() -> Node<T> {
        Node::Leaf(Arc::new(Leaf { items: ArrayVec::new() }))
    }

    fn inner() -> Node<T> {
        Node::Inner(Arc::new(Inner {
            firsts: ArrayVec::new(),
            counts: ArrayVec::new(),
            children: ArrayVec::new(),
        }))
    }

    /// A leaf with these items.
    pub(in crate::tree) fn of_items(items: impl Iterator<Item = T>) -> Node<T> {
        Node::Leaf(Arc::new(Leaf { items: items.collect() }))
    }

    /// A node over these children, which have items.
    pub(in crate::tree) fn over(children: impl Iterator<Item = Node<T>>) -> Node<T> {
        let mut node = Node::inner();
        if let Node::Inner(inner) = &mut node {
            let inner = Arc::make_mut(inner);
            children.for_each(|child| inner.insert_child(inner.children.len(), child));
        }
        node
    }

    /// Number of items or children.
    pub(in crate::tree) fn len(&self) -> usize {
        match self {
            Node::Leaf(leaf) => leaf.items.len(),
            Node::Inner(inner) => inner.children.len(),
        }
    }

    pub(in crate::tree) fn is_full(&self) -> bool {
        self.len() == FANOUT
    }

    /// Number of items in and under the node.
    fn count(&self) -> u64 {
        match self {
            Node::Leaf(leaf) => leaf.items.len() as u64,
            Node::Inner(inner) => inner.counts.iter().sum(),
        }
    }

    /// Begins to fetch the node's items, or its children's first ones: a search looks at several of
    /// them, one after the other.
    #[inline]
    pub(in crate::tree) fn fetch(&self) {
        match self {
            Node::Leaf(leaf) => prefetch::items::<T, FANOUT>(Arc::as_ptr(leaf).cast()),
            Node::Inner(inner) => prefetch::items::<T, FANOUT>(Arc::as_ptr(inner).cast()),
        }
    }

    /// The smallest item.
    pub(in crate::tree) fn first(&self) -> Option<&T> {
        match self {
            Node::Leaf(leaf) => leaf.items.first(),
            Node::Inner(inner) => inner.firsts.first(),
        }
    }

    /// Moves everything from `at` on into a new node.
    fn split_off(&mut self, at: usize) -> Node<T> {
        match self {
            Node::Leaf(leaf) => {
                let items = Arc::make_mut(leaf).items.drain(at..).collect();
                Node::Leaf(Arc::new(Leaf { items }))
            }
            Node::Inner(inner) => {
                let inner = Arc::make_mut(inner);
                Node::Inner(Arc::new(Inner {
                    firsts: inner.firsts.drain(at..).collect(),
                    counts: inner.counts.drain(at..).collect(),
                    children: inner.children.drain(at..).collect(),
                }))
            }
        }
    }

    /// Appends the content of a node of the same height; there is room.
    fn append(&mut self, other: Node<T>) {
        match (self, other) {
            (Node::Leaf(leaf), Node::Leaf(other)) => {
                Arc::make_mut(leaf).items.extend(Arc::unwrap_or_clone(other).items);
            }
            (Node::Inner(inner), Node::Inner(other)) => {
                let (inner, other) = (Arc::make_mut(inner), Arc::unwrap_or_clone(other));
                inner.firsts.extend(other.firsts);
                inner.counts.extend(other.counts);
                inner.children.extend(other.children);
            }
            _ => unreachable!("neighbours have one height"),
        }
    }
}

impl<T: Clone> Inner<T> {
    /// The child with the item of this rank, and the rank within the child; of a rank past the
    /// end the last child.
    #[inline]
    pub(in crate::tree) fn child_at(&self, mut rank: u64) -> (usize, u64) {
        let last = self.counts.len() - 1;
        for (index, &count) in self.counts[..last].iter().enumerate() {
            if rank < count {
                return (index, rank);
            }
            rank -= count;
        }
        (last, rank)
    }

    /// Makes room in the full child `at` for an item that belongs there. The item may then belong
    /// to another child. `before` returns for an item whether the new one precedes it.
    ///
    /// At the edges nothing is moved, so that items that arrive in order fill nodes completely.
    /// Returns whether there is one more child now.
    pub(in crate::tree) fn make_room(
        &mut self,
        at: usize,
        item: &T,
        edge: RightEdge,
        before: impl Fn(&T) -> bool,
    ) -> bool {
        let last = self.children.len() - 1;
        if at == 0 && before(&self.firsts[0]) {
            match &mut self.children[0] {
                Node::Leaf(_) => self.insert_empty_leaf(0, item),
                child => {
                    let rest = child.split_off(1);
                    self.refresh(0);
                    self.insert_child(1, rest);
                }
            }
            return true;
        }
        if at == last && edge.0 {
            match &mut self.children[last] {
                Node::Leaf(leaf) if !leaf.items.last().is_some_and(&before) => {
                    self.insert_empty_leaf(last + 1, item);
                    return true;
                }
                Node::Inner(inner) if !inner.firsts.last().is_some_and(&before) => {
                    let rest = self.children[last].split_off(FANOUT - 1);
                    self.refresh(last);
                    self.insert_child(last + 1, rest);
                    return true;
                }
                _ => {}
            }
        }
        if at < last && self.children[at + 1].len() <= TAKES_MAX {
            self.even_out(at);
            false
        } else if at > 0 && self.children[at - 1].len() <= TAKES_MAX {
            self.even_out(at - 1);
            false
        } else if last > 0 {
            self.two_into_three(if at < last { at } else { at - 1 });
            true
        } else {
            let rest = self.children[at].split_off(FANOUT / 2);
            self.refresh(at);
            self.insert_child(at + 1, rest);
            true
        }
    }

    /// After items were taken out from under child `at`, and its count and first item updated:
    /// keeps it from staying empty or poor. Whether there is a child less now.
    pub(in crate::tree) fn shrunk(&mut self, at: usize) -> bool {
        let len = self.children[at].len();
        if len == 0 {
            self.remove_child(at);
            return true;
        }
        if len >= POOR || self.children.len() == 1 {
            return false;
        }
        let left = if at + 1 < self.children.len() { at } else { at - 1 };
        if self.children[left].len() + self.children[left + 1].len() <= JOINED_MAX {
            let right = self.remove_child(left + 1);
            self.children[left].append(right);
            self.refresh(left);
            true
        } else {
            self.even_out(left);
            false
        }
    }

    /// Turns the children `left` and `left + 1`, which are full or nearly so, into three. They end
    /// up two thirds full, while a child cut in two would be half empty.
    fn two_into_three(&mut self, left: usize) {
        let right = &mut self.children[left + 1];
        let third = (FANOUT + right.len()) / 3;
        let rest = right.split_off(right.len() - third);
        self.refresh(left + 1);
        self.insert_child(left + 2, rest);
        self.even_out(left);
    }

    /// Gives the children `left` and `left + 1` the same length.
    fn even_out(&mut self, left: usize) {
        let right = self.remove_child(left + 1);
        let node = &mut self.children[left];
        let half = (node.len() + right.len()) / 2;
        let mut rest;
        if node.len() > half {
            rest = node.split_off(half);
            rest.append(right);
        } else {
            let mut head = right;
            rest = head.split_off(half - node.len());
            node.append(head);
        }
        self.refresh(left);
        self.insert_child(left + 1, rest);
    }

    /// `item` is about to be the only one in it.
    fn insert_empty_leaf(&mut self, at: usize, item: &T) {
        self.firsts.insert(at, item.clone());
        self.counts.insert(at, 0);
        self.children.insert(at, Node::leaf());
    }

    fn insert_child(&mut self, at: usize, child: Node<T>) {
        let Some(first) = child.first().cloned() else { return };
        self.firsts.insert(at, first);
        self.counts.insert(at, child.count());
        self.children.insert(at, child);
    }

    fn remove_child(&mut self, at: usize) -> Node<T> {
        self.firsts.remove(at);
        self.counts.remove(at);
        self.children.remove(at)
    }

    /// Updates the first item and the count of a changed child.
    fn refresh(&mut self, at: usize) {
        if let Some(first) = self.children[at].first().cloned() {
            self.firsts[at] = first;
        }
        self.counts[at] = self.children[at].count();
    }
}
