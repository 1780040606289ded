//! Which file imports which, in every crate: files that import each other can only be understood
//! together, so no crate has a large circle of them.

use ladon_testkit::module_graph::Graph;
use std::path::Path;

/// Files of a circle.
const FILES_MAX: usize = 12;

/// Of these crates another number: larger ones that are there still, and small ones that stay so.
/// Lower it when a circle shrinks.
const OTHERS: &[(&str, usize)] = &[
    // Values, the objects that hold them, and the table that holds objects and is what sets, hashes
    // and sorted sets are made of.
    ("engine", 17),
    // The grammar of random programs.
    ("conformance", 16),
    // A run and what its parts know of it, with the parts of the journal of spaces.
    ("sim", 17),
    // A handler gets the node that has its table and its users: node, shared, table, spec, ctx, a
    // thread's own state, a session and its user's access.
    ("kernel", 16),
    // The tree of an update's changes, whose nodes hold one another.
    ("space", 6),
    ("commands", 5),
    ("lab", 3),
];

#[test]
fn no_crate_has_a_large_circle() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut seen = 0;
    for entry in std::fs::read_dir(&crates).expect("the folder of crates") {
        let folder = entry.expect("an entry").path();
        if !folder.join("src").is_dir() {
            continue;
        }
        let name = folder.file_name().expect("a name").to_str().expect("a plain name");
        let other = OTHERS.iter().find(|(other, _)| *other == name);
        println!("{name}");
        Graph::of_crate(folder.to_str().expect("a plain path"))
            .check_circle(other.map_or(FILES_MAX, |(_, files)| *files));
        seen += 1;
    }
    assert!(seen > 20, "{seen} crates");
}
