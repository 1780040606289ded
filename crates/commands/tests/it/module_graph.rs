//! Which file of this crate imports which: layers.
//!
//! ```text
//! lib.rs, families.rs, compat.rs   know every family
//!   └─▶ a family (string/, admin/) knows itself
//!         └─▶ shared/              what several families use
//! ```

use ladon_testkit::module_graph::Graph;

/// Whether a module of the first folder may import one of the second.
fn may_import(from: &str, to: &str) -> bool {
    match (from, to) {
        (from, to) if from == to => true,
        ("" | "families" | "compat", _) => true,
        ("shared", _) => false,
        (_family, to) => to == "shared",
    }
}

#[test]
fn no_import_leads_up() {
    Graph::of_crate(env!("CARGO_MANIFEST_DIR")).check_folders(may_import);
}
