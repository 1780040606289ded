//! Which file of this crate imports which: how large circles are.

use ladon_testkit::module_graph::Graph;

/// The largest circle of files that import each other: node, table, spec, ctx and what a thread has
/// for itself, as a handler gets the node that has its table. Lower it when the circle shrinks.
const CIRCLE_FILES_MAX: usize = 6;

#[test]
fn circles_do_not_grow() {
    Graph::of_crate(env!("CARGO_MANIFEST_DIR")).check_circle(CIRCLE_FILES_MAX);
}
