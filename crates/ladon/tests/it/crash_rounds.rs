//! A few rounds of `cargo run --release -p ladon-crash`: load, `kill -9`, restart, check.

use ladon_crash::{GATES, Plan, Summary, run};
use std::path::Path;

fn rounds(count: u64, gates: &[&str], trust_none: bool) -> Result<Summary, String> {
    let dir = tempfile::tempdir().expect("a directory");
    run(&Plan {
        program: env!("CARGO_BIN_EXE_ladon").into(),
        dir: Path::new(dir.path()).to_owned(),
        rounds: count,
        seed: 7,
        lanes: 3,
        filler_keys: 3000,
        backends: vec!["auto".to_owned(), "mio".to_owned()],
        gates: gates.iter().map(|&gate| gate.to_owned()).collect(),
        trust_none,
        verbose: false,
    })
}

#[test]
fn what_was_acknowledged_survives_and_nothing_is_half_there() {
    let summary = rounds(8, &GATES, false).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(summary.rounds, 8);
    assert!(summary.kills >= 4 && summary.operations > 100, "{summary:?}");
    assert!(summary.handed_over > 10, "{summary:?}");
}

/// The canary: at `none` acknowledged operations are lost by design, and the check must say so.
#[test]
fn the_check_notices_what_the_gate_none_loses() {
    let error = rounds(40, &["none"], true).expect_err("forty kills at `none` lose something");
    // Of a counter, a key, or the queue.
    let losses = ["acknowledged", "went back", "are gone", "is gone", "is still in"];
    assert!(losses.iter().any(|loss| error.contains(loss)), "{error}");
}
