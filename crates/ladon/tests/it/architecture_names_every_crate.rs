//! `ARCHITECTURE.md` names every crate, and its layers are the ones that cargo knows.
//!
//! The document's `layers` block is the rule: a crate may depend on crates of lower lines only,
//! for running code as well as for building; what tests need is their own affair.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

fn architecture() -> String {
    std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md can be read")
}

/// The lines of the code block that begins with three backticks and `name`.
fn block<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let begin = format!("```{name}");
    text.lines()
        .skip_while(|line| *line != begin)
        .skip(1)
        .take_while(|line| *line != "```")
        .collect()
}

/// Folder of every workspace crate, and the folders of those that it depends on.
fn crates() -> BTreeMap<String, Vec<String>> {
    let cargo = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version=1"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(cargo.status.success(), "{}", String::from_utf8_lossy(&cargo.stderr));
    let metadata: Value = serde_json::from_slice(&cargo.stdout).expect("metadata is JSON");
    let folder = |path: &str| {
        let name = Path::new(path).file_name().expect("a folder has a name");
        name.to_string_lossy().into_owned()
    };
    let packages = metadata["packages"].as_array().expect("packages");
    let dependencies = |package: &Value| {
        let all = package["dependencies"].as_array().expect("dependencies");
        // A path makes it one of ours; a kind of "dev" is for tests.
        let ours = all.iter().filter(|dependency| dependency["kind"] != "dev");
        ours.filter_map(|dependency| dependency["path"].as_str()).map(folder).collect()
    };
    let crates = packages.iter().map(|package| {
        let manifest = Path::new(package["manifest_path"].as_str().expect("a path"));
        let home = manifest.parent().expect("a manifest lies in a folder");
        (folder(&home.to_string_lossy()), dependencies(package))
    });
    crates.collect()
}

#[test]
fn every_crate_has_a_paragraph() {
    let text = architecture();
    for name in crates().keys() {
        let head = format!("\n**`{name}`**: ");
        assert!(text.contains(&head), "ARCHITECTURE.md has no paragraph that begins {head:?}");
    }
}

#[test]
fn dependencies_point_downwards_only() {
    let text = architecture();
    let layers = block(&text, "layers");
    let outside = block(&text, "outside").join(" ");
    assert!(layers.len() > 1, "ARCHITECTURE.md has no block of layers");
    let line_of = |name: &str| {
        let lines = layers.iter().enumerate();
        let mut found = lines.filter(|(_, line)| line.split_whitespace().any(|word| word == name));
        let first = found.next().map(|(line, _)| line);
        assert!(found.next().is_none(), "{name} is in two layers");
        first
    };
    for (name, dependencies) in crates() {
        let Some(line) = line_of(&name) else {
            let is_outside = outside.split_whitespace().any(|word| word == name);
            assert!(is_outside, "{name} is in no layer of ARCHITECTURE.md");
            continue;
        };
        for dependency in dependencies {
            let below = line_of(&dependency);
            assert!(
                below.is_some_and(|below| below > line),
                "{name} depends on {dependency}, which is not below it in ARCHITECTURE.md"
            );
        }
    }
}

/// Every use of another crate of ours in the sources of a crate: `ladon_testkit::Ports`.
fn uses_of_ours(folder: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            uses_of_ours(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).expect("a source");
            let uses = text.lines().filter_map(|line| line.trim().strip_prefix("use ladon_"));
            found.extend(uses.map(|rest| format!("ladon_{}", rest.trim_end_matches(';'))));
        }
    }
}

/// What judges Ladon from outside shares no code with it, nor with the other judges.
#[test]
fn judges_from_outside_share_nothing_but_ports() {
    for name in ["lab", "conformance"] {
        let mut found = Vec::new();
        uses_of_ours(&root().join("crates").join(name).join("src"), &mut found);
        found.retain(|path| *path != "ladon_testkit::Ports");
        // A program's `main.rs` uses its own library.
        found.retain(|path| !path.starts_with(&format!("ladon_{name}::")));
        assert!(found.is_empty(), "{name} uses {found:?}");
    }
}
