//! The figures of README.md and of lab/results/README.md are what the checked-in results of `lab/results` give, and nothing else.

use std::path::{Path, PathBuf};

use ladon_lab::report::markdown;
use ladon_lab::results::{file, merge::merge};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every run below `lab/results`, in the order of their names.
fn checked_in() -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(root().join("lab/results")) else { return Vec::new() };
    let folders = entries.flatten().map(|entry| entry.path().join("results.json"));
    let mut runs: Vec<PathBuf> = folders.filter(|path| path.is_file()).collect();
    runs.sort();
    runs
}

#[test]
fn readme_cites_the_checked_in_results() {
    let paths = checked_in();
    assert!(!paths.is_empty(), "no run is checked in below lab/results");
    let runs = merge(paths.iter().map(|path| file::read(path).unwrap()).collect());
    for name in ["README.md", "lab/results/README.md"] {
        let document = std::fs::read_to_string(root().join(name)).unwrap();
        let right = markdown::replaced(&document, &runs).expect("a measured section");
        assert!(
            document == right,
            "{name}'s measured section is not what lab/results gives; make it anew with\n\
             ladon-lab report lab/results/*/ --markdown README.md --markdown lab/results/README.md"
        );
    }
}

#[test]
fn the_command_makes_the_section_that_the_test_wants() {
    let fixture =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/results-format-1.json");
    let folder = tempfile::tempdir().unwrap();
    let document = folder.path().join("some.md");
    let marks = format!("before\n{}\nstale\n{}\nafter\n", markdown::BEGIN, markdown::END);
    std::fs::write(&document, marks).unwrap();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_ladon-lab"))
        .arg("report")
        .arg(&fixture)
        .arg("--markdown")
        .arg(&document)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let made = std::fs::read_to_string(&document).unwrap();
    let runs = merge(vec![file::read(&fixture).unwrap()]);
    assert_eq!(markdown::replaced(&made, &runs).as_deref(), Some(made.as_str()));
    assert!(made.starts_with("before\n") && made.ends_with("after\n") && !made.contains("stale"));
}
