//! The figures of README.md, docs/measured.md and lab/results/README.md are those of the checked-in
//! results below `lab/results`.

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
fn documents_cite_the_checked_in_results() {
    let paths = checked_in();
    assert!(!paths.is_empty(), "no run is checked in below lab/results");
    let runs = merge(paths.iter().map(|path| file::read(path).unwrap()).collect());
    for name in ["docs/measured.md", "lab/results/README.md"] {
        let document = std::fs::read_to_string(root().join(name)).unwrap();
        let right = markdown::replaced(&document, &runs).expect("a measured section");
        assert!(
            document == right,
            "{name}'s measured section differs from lab/results; regenerate it with\n\
             ladon-lab report lab/results/*/ --markdown docs/measured.md --markdown lab/results/README.md"
        );
    }
}

/// The figures of a table's row, without its first cell.
fn figures(row: &str) -> Option<&str> {
    let (_, figures) = row.strip_prefix("| ")?.split_once(" | ")?;
    figures.contains(char::is_numeric).then_some(figures.trim_end_matches([' ', '|']))
}

#[test]
fn every_row_of_the_readme_is_a_measured_one() {
    let read = |name: &str| std::fs::read_to_string(root().join(name)).unwrap();
    let (readme, measured) = (read("README.md"), read("docs/measured.md"));
    let known: Vec<&str> = measured.lines().filter_map(figures).collect();
    let (_, readme) = readme.split_once("\n## Ten figures\n").expect("a section of figures");
    let (section, _) = readme.split_once("\n## ").expect("a section after it");
    let rows: Vec<&str> = section.lines().filter_map(figures).collect();
    assert_eq!(rows.len(), 11, "the heading and ten rows");
    for row in rows {
        let is_in = |known: &&&str| {
            // The documents have more systems.
            let mut cells = known.split(" | ");
            row.split(" | ").all(|wanted| cells.any(|cell| cell == wanted))
        };
        assert!(known.iter().any(|known| is_in(&known)), "docs/measured.md has no row with {row}");
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
