//! Which file of this crate imports which: the circle of values, the objects that hold them and the
//! table that holds both, and is what sets and hashes are made of, does not grow.

#[path = "../../../commands/tests/it/common/graph.rs"]
mod graph;

/// Lower it when the circle shrinks.
const CIRCLE_FILES_MAX: usize = 33;

#[test]
fn circles_do_not_grow() {
    graph::Graph::of_this_crate().check_circle(CIRCLE_FILES_MAX);
}
