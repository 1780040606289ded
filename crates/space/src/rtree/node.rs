//! The nodes of an R-tree, and how they are divided.
//!
//! **Invariants:** no node below the root is empty; all leaves have one depth; the box that an
//! inner node keeps of a child holds all boxes in the child.

use super::bounds::{self, Bounds, Margin};
use crate::left_behind::note_clone;
use crate::tuple::Tuple;
use std::sync::Arc;

/// About how many bytes a node has: few enough to copy one for a change that others do not see.
const NODE_BYTES: usize = 2048;

/// Of so many dimensions: how many entries a node has at most, and how few it may be left with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fanout {
    pub(super) most: usize,
    pub(super) least: usize,
    /// Numbers of a box.
    pub(super) stride: usize,
}

impl Fanout {
    pub(super) fn new(dimensions: u32) -> Fanout {
        let stride = 2 * (dimensions as usize + 1);
        let entry_bytes = stride * size_of::<f64>() + size_of::<usize>();
        let most = (NODE_BYTES / entry_bytes).clamp(8, 40);
        Fanout { most, least: most * 2 / 5, stride }
    }

    /// Bytes of memory of a node.
    pub(super) fn node_bytes(self) -> usize {
        // In front are the counts of owners.
        let entry_bytes = self.stride * size_of::<f64>() + size_of::<Node>();
        2 * size_of::<usize>() + size_of::<Entries<Node>>() + (self.most + 1) * entry_bytes
    }
}

/// Boxes, and what is in them.
pub(super) struct Entries<T> {
    bounds: Vec<f64>,
    pub(super) items: Vec<T>,
}

/// A clone shares what is under the node.
#[derive(Clone)]
pub(super) enum Node {
    Leaf(Arc<Entries<Tuple>>),
    Inner(Arc<Entries<Node>>),
}

impl<T: Clone> Clone for Entries<T> {
    /// With room for what is to be changed.
    fn clone(&self) -> Entries<T> {
        note_clone(size_of_val(&self.bounds[..]) + size_of_val(&self.items[..]));
        let stride = self.bounds.len() / self.items.len().max(1);
        let mut copy = Entries::with_room(self.items.len() + 1, stride);
        copy.bounds.extend_from_slice(&self.bounds);
        copy.items.extend_from_slice(&self.items);
        copy
    }
}

impl<T> Entries<T> {
    pub(super) fn with_room(count: usize, stride: usize) -> Entries<T> {
        Entries { bounds: Vec::with_capacity(count * stride), items: Vec::with_capacity(count) }
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    pub(super) fn bounds(&self, at: usize, stride: usize) -> &[f64] {
        &self.bounds[at * stride..(at + 1) * stride]
    }

    pub(super) fn bounds_mut(&mut self, at: usize, stride: usize) -> &mut [f64] {
        &mut self.bounds[at * stride..(at + 1) * stride]
    }

    pub(super) fn push(&mut self, bounds: &[f64], item: T) {
        self.bounds.extend_from_slice(bounds);
        self.items.push(item);
    }

    /// Takes one out; the last takes its place.
    pub(super) fn take(&mut self, at: usize, stride: usize) -> T {
        let last = self.bounds.len() - stride;
        self.bounds.copy_within(last.., at * stride);
        self.bounds.truncate(last);
        self.items.swap_remove(at)
    }

    /// The box around all.
    pub(super) fn around(&self, stride: usize) -> Bounds {
        let mut all = self.bounds.chunks_exact(stride);
        let mut around = all.next().map(bounds::around).unwrap_or_default();
        all.for_each(|other| bounds::extend(&mut around, other));
        around
    }
}

impl<T: Clone> Entries<T> {
    /// Divides these, of which there are too many for a node, into two that each have enough: along
    /// the axis and at the place where the two boxes have the shortest sides.
    pub(super) fn divide(&mut self, fanout: Fanout) -> Entries<T> {
        let Fanout { most, least, stride } = fanout;
        let count = self.len();
        let places = least.max(count.saturating_sub(most))..=(count - least).min(most);
        let mut best: Option<(Margin, usize, Vec<usize>)> = None;
        for axis in 0..stride / 2 {
            let mut order: Vec<usize> = (0..count).collect();
            let side = |at: &usize| {
                let bounds = bounds::around(self.bounds(*at, stride));
                (bounds[2 * axis], bounds[2 * axis + 1])
            };
            order.sort_by(|a, b| {
                let (a, b) = (side(a), side(b));
                a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))
            });
            let forward = self.margins(order.iter(), stride);
            let backward = self.margins(order.iter().rev(), stride);
            for place in places.clone() {
                let margin = forward[place - 1].plus(backward[count - place - 1]);
                if best.as_ref().is_none_or(|(least, ..)| margin.compare(*least).is_lt()) {
                    best = Some((margin, place, order.clone()));
                }
            }
        }
        let (_, place, order) = best.expect("there is a place between enough and enough");
        let mut parts =
            [Entries::with_room(most + 1, stride), Entries::with_room(most + 1, stride)];
        for (rank, at) in order.into_iter().enumerate() {
            parts[usize::from(rank >= place)].push(self.bounds(at, stride), self.items[at].clone());
        }
        let [first, second] = parts;
        *self = first;
        second
    }

    /// The sides of the boxes around the first one, the first two and so on.
    fn margins<'a>(&self, order: impl Iterator<Item = &'a usize>, stride: usize) -> Vec<Margin> {
        let mut around = Bounds::new();
        let grown = order.map(|at| {
            let next = self.bounds(*at, stride);
            if around.is_empty() {
                around = bounds::around(next);
            } else {
                bounds::extend(&mut around, next);
            }
            Margin::of(&around)
        });
        grown.collect()
    }
}

impl Node {
    pub(super) fn len(&self) -> usize {
        match self {
            Node::Leaf(leaf) => leaf.len(),
            Node::Inner(inner) => inner.len(),
        }
    }

    pub(super) fn around(&self, stride: usize) -> Bounds {
        match self {
            Node::Leaf(leaf) => leaf.around(stride),
            Node::Inner(inner) => inner.around(stride),
        }
    }
}
