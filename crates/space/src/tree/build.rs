//! A tree that is built from items in order, without searching.

use super::Tree;
use super::node::{FANOUT, Node};
use super::search::Item;
use arrayvec::ArrayVec;
use std::ops::Range;

/// With a little room in every node, so that the first items added later do not split all of them.
const FILLED: usize = FANOUT - FANOUT / 8;

/// Items in ascending order so far, no two of them equal.
pub struct TreeBuild<T> {
    leaves: Vec<Node<T>>,
    /// Of the leaf that comes next: at least one, if there are any.
    items: ArrayVec<T, FILLED>,
}

impl<T: Item> TreeBuild<T> {
    /// No items yet.
    pub fn new() -> TreeBuild<T> {
        TreeBuild { leaves: Vec::new(), items: ArrayVec::new() }
    }

    /// The greatest item.
    pub fn last(&self) -> Option<&T> {
        self.items.last()
    }

    /// Adds an item that comes after all others.
    #[inline]
    pub fn push(&mut self, item: T) {
        if self.items.is_full() {
            self.end_leaf();
        }
        self.items.push(item);
    }

    fn end_leaf(&mut self) {
        self.leaves.push(Node::of_items(self.items.drain(..)));
    }

    /// The tree.
    pub fn finish(mut self) -> Tree<T> {
        if self.items.is_empty() {
            return Tree::new();
        }
        let len = (self.leaves.len() * FILLED + self.items.len()) as u64;
        self.end_leaf();
        let mut level = self.leaves;
        let (leaves, mut inners) = (level.len(), 0);
        while level.len() > 1 {
            let ranges = evenly(level.len(), FILLED);
            let mut children = level.into_iter();
            level = ranges.map(|range| Node::over(children.by_ref().take(range.len()))).collect();
            inners += level.len();
        }
        match level.pop() {
            Some(root) => Tree { root, len, leaves, inners },
            None => Tree::new(),
        }
    }
}

/// Cuts `0..len` into ranges of about the same length, at most `max`.
fn evenly(len: usize, max: usize) -> impl Iterator<Item = Range<usize>> {
    let parts = len.div_ceil(max);
    (0..parts).map(move |part| len * part / parts..len * (part + 1) / parts)
}
