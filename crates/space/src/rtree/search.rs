//! Searches of an R-tree: by how boxes lie, and by distance.

use super::bounds::{self, Bounds, Distance};
use super::node::Node;
use crate::iterator_type::IteratorType;
use crate::looked::{LOOKED_AT_ONCE, Looked};
use crate::tuple::Tuple;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// Tuples that an iterator selects.
pub(crate) struct Search<'a> {
    /// The nodes on the way down, and which of their entries come next.
    path: Vec<(&'a Node, usize)>,
    stride: usize,
    iterator: IteratorType,
    key: Bounds,
}

impl<'a> Search<'a> {
    pub(super) fn new(
        root: &'a Node,
        stride: usize,
        iterator: IteratorType,
        key: Bounds,
    ) -> Search<'a> {
        Search { path: vec![(root, 0)], stride, iterator, key }
    }
}

impl<'a> Search<'a> {
    /// Looks at some entries.
    pub(crate) fn look(&mut self) -> Looked<'a> {
        for _ in 0..LOOKED_AT_ONCE {
            let Some((node, at)) = self.path.last_mut() else { return Looked::AtAll };
            let (entry, node) = (*at, *node);
            *at += 1;
            if entry >= node.len() {
                self.path.pop();
                continue;
            }
            match node {
                Node::Leaf(leaf) => {
                    let bounds = leaf.bounds(entry, self.stride);
                    if bounds::selects(self.iterator, bounds, &self.key) {
                        return Looked::Found((0, &leaf.items[entry]));
                    }
                }
                Node::Inner(inner) => {
                    let around = inner.bounds(entry, self.stride);
                    if bounds::may_hold(self.iterator, around, &self.key) {
                        self.path.push((&inner.items[entry], 0));
                    }
                }
            }
        }
        Looked::AtSome
    }
}

impl<'a> Iterator for Search<'a> {
    type Item = &'a Tuple;

    fn next(&mut self) -> Option<&'a Tuple> {
        Looked::until_found(|| self.look()).map(|(_, tuple)| tuple)
    }
}

/// All tuples, the nearest ones first; those that are equally near by their bytes.
pub(crate) struct Neighbors<'a> {
    heap: BinaryHeap<Reverse<Near<'a>>>,
    stride: usize,
    distance: Distance,
    key: Bounds,
}

struct Near<'a> {
    distance: f64,
    what: What<'a>,
}

#[derive(Clone, Copy)]
enum What<'a> {
    Node(&'a Node),
    Tuple(&'a Tuple),
}

impl<'a> Neighbors<'a> {
    pub(super) fn new(
        root: &'a Node,
        stride: usize,
        distance: Distance,
        key: Bounds,
    ) -> Neighbors<'a> {
        let root = Near { distance: 0.0, what: What::Node(root) };
        Neighbors { heap: BinaryHeap::from([Reverse(root)]), stride, distance, key }
    }
}

impl<'a> Neighbors<'a> {
    /// Looks at the nearest tuple, or into the nearest node.
    pub(crate) fn look(&mut self) -> Looked<'a> {
        let Some(Reverse(nearest)) = self.heap.pop() else { return Looked::AtAll };
        let node = match nearest.what {
            What::Tuple(tuple) => return Looked::Found((0, tuple)),
            What::Node(node) => node,
        };
        for at in 0..node.len() {
            let (bounds, what) = match node {
                Node::Leaf(leaf) => (leaf.bounds(at, self.stride), What::Tuple(&leaf.items[at])),
                Node::Inner(inner) => (inner.bounds(at, self.stride), What::Node(&inner.items[at])),
            };
            let distance = bounds::distance(self.distance, bounds, &self.key);
            self.heap.push(Reverse(Near { distance, what }));
        }
        Looked::AtSome
    }
}

impl Ord for Near<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let order = self.distance.total_cmp(&other.distance);
        order.then_with(|| match (self.what, other.what) {
            (What::Tuple(a), What::Tuple(b)) => a.bytes().cmp(b.bytes()),
            // A node may hold a tuple that comes first.
            (What::Node(_), What::Tuple(_)) => Ordering::Less,
            (What::Tuple(_), What::Node(_)) => Ordering::Greater,
            (What::Node(_), What::Node(_)) => Ordering::Equal,
        })
    }
}

impl PartialOrd for Near<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Near<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Near<'_> {}
