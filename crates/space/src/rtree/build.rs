//! Builds a tree of many tuples at once: they are halved along the axis on which they are furthest
//! apart, until each part fits a node.

use super::bounds::{self, Bounds};
use super::node::{Entries, Fanout, Node};
use super::{Rtree, empty};
use crate::tuple::Tuple;
use std::sync::Arc;

/// A tuple and its box.
type Boxed = (Bounds, Tuple);

impl Rtree {
    /// A tree of these tuples, with a little room in every node.
    pub(crate) fn of(dimensions: u32, mut entries: Vec<Boxed>) -> Rtree {
        let fanout = Fanout::new(dimensions);
        let filled = fanout.most - fanout.most / 8;
        let (mut height, mut holds) = (0, filled);
        while holds < entries.len() {
            height += 1;
            holds = holds.saturating_mul(filled);
        }
        let (len, mut nodes) = (entries.len() as u64, 0);
        let root = match entries.is_empty() {
            true => {
                nodes += 1;
                empty(fanout)
            }
            false => build(&mut entries, (height, holds), filled, fanout, &mut nodes),
        };
        Rtree { root, fanout, len, nodes }
    }
}

/// The node of entries; a node of its height holds `holds` at most.
fn build(
    entries: &mut [Boxed],
    (height, holds): (usize, usize),
    filled: usize,
    fanout: Fanout,
    nodes: &mut usize,
) -> Node {
    *nodes += 1;
    if height == 0 {
        let mut leaf = Entries::with_room(fanout.most + 1, fanout.stride);
        entries.iter().for_each(|(bounds, tuple)| leaf.push(bounds, tuple.clone()));
        return Node::Leaf(Arc::new(leaf));
    }
    let holds = holds / filled;
    let mut inner = Entries::with_room(fanout.most + 1, fanout.stride);
    let count = entries.len().div_ceil(holds).max(2);
    part(entries, count, &mut |entries| {
        let child = build(entries, (height - 1, holds), filled, fanout, nodes);
        inner.push(&child.around(fanout.stride), child);
    });
    Node::Inner(Arc::new(inner))
}

/// Divides entries into so many parts of about the same length.
fn part(entries: &mut [Boxed], count: usize, visit: &mut dyn FnMut(&mut [Boxed])) {
    if count == 1 {
        return visit(entries);
    }
    let middle = entries.len() * (count / 2) / count;
    let axis = widest_axis(entries);
    let center = |entry: &Boxed| {
        let around = bounds::around(&entry.0[2 * axis..2 * axis + 2]);
        // Halves first: the sum of two large ones is infinite.
        let center = around[0] / 2.0 + around[1] / 2.0;
        if center.is_nan() { 0.0 } else { center }
    };
    entries.select_nth_unstable_by(middle, |a, b| center(a).total_cmp(&center(b)));
    let (low, high) = entries.split_at_mut(middle);
    part(low, count / 2, visit);
    part(high, count - count / 2, visit);
}

fn widest_axis(entries: &[Boxed]) -> usize {
    let mut around = entries.first().map(|(first, _)| bounds::around(first)).unwrap_or_default();
    entries.iter().for_each(|(other, _)| bounds::extend(&mut around, other));
    let axes = around.chunks_exact(2).map(|axis| bounds::side((axis[0], axis[1]))).enumerate();
    axes.max_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(axis, _)| axis)
}
