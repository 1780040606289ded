//! Which file of this crate imports which.
//!
//! ```text
//!   report/ ──▶ results/                            reads files, never a run
//!   run/    ──▶ systems/, works/, report/, ...      the only folder that knows all others
//!   works/  ──▶ work.rs ──▶ traffic/, results/      operations, never a stage, a protocol or a system
//! ```

use ladon_testkit::module_graph::Graph;

/// Whether a module of the first folder may import one of the second.
fn may_import(from: &str, to: &str) -> bool {
    match from {
        // What a run is made of. `load` holds the shapes of data that works choose from.
        "work" | "works" => {
            matches!(
                to,
                "work" | "works" | "load" | "operation" | "results" | "topology" | "traffic"
            )
        }
        "results" => matches!(to, "results" | "load" | "measure"),
        "report" => matches!(to, "report" | "results" | "systems"),
        "operation" | "topology" | "measure" => to == from,
        "main" | "doctor" | "run" => true,
        // Nothing below a run knows it, or what becomes of its results.
        _ => !matches!(to, "main" | "doctor" | "run" | "report" | "results" | "work" | "works"),
    }
}

#[test]
fn no_import_leads_up() {
    Graph::of_crate(env!("CARGO_MANIFEST_DIR")).check_folders(may_import);
}
