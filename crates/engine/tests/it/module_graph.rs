//! Which file of this crate imports which: the circle of values, the objects that hold them and the
//! table that holds both, and is what sets and hashes are made of, does not grow; nor does that of
//! transactions, the keyspace and the spaces, which is the next one.

use ladon_testkit::module_graph::Graph;

/// Lower it when the circle shrinks.
const CIRCLE_FILES_MAX: usize = 16;

#[test]
fn circles_do_not_grow() {
    Graph::of_crate(env!("CARGO_MANIFEST_DIR")).check_circle(CIRCLE_FILES_MAX);
}
