//! An R-tree: tuples by boxes of 1 to 20 dimensions, found by how their boxes lie.
//!
//! ```text
//!          [ box around A | box around B ]         inner: a box around each child
//!             /                    \
//!    [box: tuple, ..] A    [box: tuple, ..] B      leaves: each tuple's own box
//! ```
//!
//! Written for spaces: a clone is quickly made and shares nodes, which transactions and long
//! replies need; the number of dimensions is known at run time only. Nodes are divided along the
//! axis where the sides of the two boxes are shortest, as in the R*-tree, which has finite numbers
//! even of infinite boxes. A node that is left with few entries is joined with a neighbour, so a
//! change touches one path.

pub(crate) mod bounds;
mod build;
mod node;
mod search;

use crate::iterator_type::IteratorType;
use crate::tuple::Tuple;
pub use bounds::Distance;
use bounds::{Bounds, Margin};
use node::{Entries, Fanout, Node};
pub(crate) use search::{Neighbors, Search};
use std::sync::Arc;

/// Tuples by their boxes.
#[derive(Clone)]
pub struct Rtree {
    root: Node,
    fanout: Fanout,
    len: u64,
    nodes: usize,
}

impl Rtree {
    /// A tree without tuples.
    pub(crate) fn new(dimensions: u32) -> Rtree {
        let fanout = Fanout::new(dimensions);
        Rtree { root: empty(fanout), fanout, len: 0, nodes: 1 }
    }

    /// How many tuples there are.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Bytes of memory that the nodes take.
    pub(crate) fn bytes(&self) -> usize {
        self.nodes * self.fanout.node_bytes()
    }

    /// Adds a tuple.
    pub(crate) fn insert(&mut self, bounds: &[f64], tuple: Tuple) {
        let sibling = insert(&mut self.root, bounds, tuple, self.fanout, &mut self.nodes);
        if let Some(sibling) = sibling {
            let stride = self.fanout.stride;
            let mut root = Entries::with_room(self.fanout.most + 1, stride);
            let first = std::mem::replace(&mut self.root, empty(self.fanout));
            for child in [first, sibling] {
                root.push(&child.around(stride), child);
            }
            self.root = Node::Inner(Arc::new(root));
            self.nodes += 1;
        }
        self.len += 1;
    }

    /// Takes out a tuple with these bytes and this box. Returns whether it was there.
    pub(crate) fn remove(&mut self, bounds: &[f64], tuple: &[u8]) -> bool {
        if !remove(&mut self.root, bounds, tuple, self.fanout, &mut self.nodes) {
            return false;
        }
        self.len -= 1;
        while let Node::Inner(inner) = &self.root
            && inner.len() == 1
        {
            let child = inner.items[0].clone();
            self.root = child;
            self.nodes -= 1;
        }
        true
    }

    /// All tuples.
    pub(crate) fn tuples(&self) -> Search<'_> {
        Search::new(&self.root, self.fanout.stride, IteratorType::All, Bounds::new())
    }

    /// The tuples that an iterator with this key selects.
    pub(crate) fn search(&self, iterator: IteratorType, key: Bounds) -> Search<'_> {
        Search::new(&self.root, self.fanout.stride, iterator, key)
    }

    /// All tuples, the nearest ones first.
    pub(crate) fn neighbors(&self, distance: Distance, key: Bounds) -> Neighbors<'_> {
        Neighbors::new(&self.root, self.fanout.stride, distance, key)
    }
}

fn empty(fanout: Fanout) -> Node {
    Node::Leaf(Arc::new(Entries::with_room(fanout.most + 1, fanout.stride)))
}

/// Inserts under a node. If it becomes too large, returns the other half.
fn insert(
    node: &mut Node,
    bounds: &[f64],
    tuple: Tuple,
    fanout: Fanout,
    nodes: &mut usize,
) -> Option<Node> {
    match node {
        Node::Leaf(leaf) => {
            let leaf = Arc::make_mut(leaf);
            leaf.push(bounds, tuple);
            let other = (leaf.len() > fanout.most).then(|| leaf.divide(fanout))?;
            *nodes += 1;
            Some(Node::Leaf(Arc::new(other)))
        }
        Node::Inner(inner) => {
            let inner = Arc::make_mut(inner);
            let at = best_child(inner, bounds, fanout.stride);
            let sibling = insert(&mut inner.items[at], bounds, tuple, fanout, nodes);
            match sibling {
                None => bounds::extend(inner.bounds_mut(at, fanout.stride), bounds),
                Some(sibling) => {
                    let around = inner.items[at].around(fanout.stride);
                    inner.bounds_mut(at, fanout.stride).copy_from_slice(&around);
                    inner.push(&sibling.around(fanout.stride), sibling);
                }
            }
            let other = (inner.len() > fanout.most).then(|| inner.divide(fanout))?;
            *nodes += 1;
            Some(Node::Inner(Arc::new(other)))
        }
    }
}

/// The child whose box has to grow least; of several, the one with the smallest box.
fn best_child(inner: &Entries<Node>, bounds: &[f64], stride: usize) -> usize {
    let growth = |at: &usize| {
        let mut around: Bounds = inner.bounds(*at, stride).into();
        let before = Margin::of(&around);
        bounds::extend(&mut around, bounds);
        (Margin::of(&around).minus(before), before)
    };
    let least = (0..inner.len()).min_by(|a, b| {
        let (a, b) = (growth(a), growth(b));
        a.0.compare(b.0).then(a.1.compare(b.1))
    });
    least.expect("no inner node is empty")
}

/// Removes under a node. Returns whether the tuple was there.
fn remove(
    node: &mut Node,
    bounds: &[f64],
    tuple: &[u8],
    fanout: Fanout,
    nodes: &mut usize,
) -> bool {
    let stride = fanout.stride;
    match node {
        Node::Leaf(leaf) => {
            let Some(at) = leaf.items.iter().position(|other| other.bytes() == tuple) else {
                return false;
            };
            Arc::make_mut(leaf).take(at, stride);
            true
        }
        Node::Inner(inner) => {
            // The path is found first: only its nodes are copied.
            let Some(at) = (0..inner.len()).find(|at| has(inner, *at, bounds, tuple, stride))
            else {
                return false;
            };
            let inner = Arc::make_mut(inner);
            remove(&mut inner.items[at], bounds, tuple, fanout, nodes);
            let child = &inner.items[at];
            if child.len() >= fanout.least || inner.len() == 1 {
                let around = child.around(stride);
                if !around.is_empty() {
                    inner.bounds_mut(at, stride).copy_from_slice(&around);
                }
            } else {
                join(inner, at, fanout, nodes);
            }
            true
        }
    }
}

/// Whether a child has a tuple.
fn has(inner: &Entries<Node>, at: usize, bounds: &[f64], tuple: &[u8], stride: usize) -> bool {
    bounds::holds(inner.bounds(at, stride), bounds)
        && match &inner.items[at] {
            Node::Leaf(leaf) => leaf.items.iter().any(|other| other.bytes() == tuple),
            Node::Inner(child) => (0..child.len()).any(|at| has(child, at, bounds, tuple, stride)),
        }
}

/// Joins a child that has few entries with the neighbour whose box has to grow least, and divides
/// the two anew if they are too many.
fn join(inner: &mut Entries<Node>, at: usize, fanout: Fanout, nodes: &mut usize) {
    let stride = fanout.stride;
    let poor = inner.take(at, stride);
    let around = poor.around(stride);
    let to = if around.is_empty() { 0 } else { best_child(inner, &around, stride) };
    let divided = match (&mut inner.items[to], &poor) {
        (Node::Leaf(into), Node::Leaf(from)) => {
            join_entries(Arc::make_mut(into), from, fanout).map(|part| Node::Leaf(Arc::new(part)))
        }
        (Node::Inner(into), Node::Inner(from)) => {
            join_entries(Arc::make_mut(into), from, fanout).map(|part| Node::Inner(Arc::new(part)))
        }
        _ => unreachable!("all leaves have one depth"),
    };
    let around = inner.items[to].around(stride);
    inner.bounds_mut(to, stride).copy_from_slice(&around);
    match divided {
        Some(part) => inner.push(&part.around(stride), part),
        None => *nodes -= 1,
    }
}

fn join_entries<T: Clone>(
    into: &mut Entries<T>,
    from: &Entries<T>,
    fanout: Fanout,
) -> Option<Entries<T>> {
    for (at, item) in from.items.iter().enumerate() {
        into.push(from.bounds(at, fanout.stride), item.clone());
    }
    (into.len() > fanout.most).then(|| into.divide(fanout))
}

#[cfg(test)]
impl Rtree {
    /// What must always hold: boxes that hold what is in them, equal depths, the accounts.
    pub(crate) fn check(&self) {
        let (mut tuples, mut nodes) = (0, 0);
        check_node((&self.root, true), self.fanout, (&mut tuples, &mut nodes));
        assert_eq!((tuples, nodes), (self.len, self.nodes));
    }

    /// How many nodes may have a tuple with this box.
    pub(crate) fn visited_to_find(&self, bounds: &[f64]) -> usize {
        fn under(node: &Node, bounds: &[f64], stride: usize) -> usize {
            let Node::Inner(inner) = node else { return 1 };
            let holding =
                (0..inner.len()).filter(|at| bounds::holds(inner.bounds(*at, stride), bounds));
            1 + holding.map(|at| under(&inner.items[at], bounds, stride)).sum::<usize>()
        }
        under(&self.root, bounds, self.fanout.stride)
    }
}

/// The height.
#[cfg(test)]
fn check_node(
    (node, is_root): (&Node, bool),
    fanout: Fanout,
    (tuples, nodes): (&mut u64, &mut usize),
) -> usize {
    assert!((is_root || node.len() > 0) && node.len() <= fanout.most);
    *nodes += 1;
    match node {
        Node::Leaf(leaf) => {
            *tuples += leaf.len() as u64;
            0
        }
        Node::Inner(inner) => {
            assert!(!is_root || inner.len() > 1);
            let mut heights = Vec::new();
            for (at, child) in inner.items.iter().enumerate() {
                let around = inner.bounds(at, fanout.stride);
                assert_eq!(around, &child.around(fanout.stride)[..]);
                heights.push(check_node((child, false), fanout, (&mut *tuples, &mut *nodes)));
            }
            assert!(heights.iter().all(|height| *height == heights[0]));
            heights[0] + 1
        }
    }
}
