//! Every relative link of every document leads somewhere, and the index leads to every document.

use std::fs;
use std::path::{Path, PathBuf};

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// All documents of the repository, build outputs aside.
fn documents(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).expect("a folder can be read") {
        let path = entry.expect("a folder can be read").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && name != "target" && name != "corpus" && !name.starts_with('.') {
            documents(&path, found);
        } else if name.ends_with(".md") {
            found.push(path);
        }
    }
}

fn all() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let root = root();
    for entry in fs::read_dir(&root).expect("the repository can be read") {
        let path = entry.expect("the repository can be read").path();
        if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
    for dir in ["docs", "crates", "fuzz"] {
        documents(&root.join(dir), &mut found);
    }
    found
}

/// The targets of `[text](target)` outside of code blocks.
fn links(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut in_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        for rest in line.split("](").skip(1) {
            if let Some((target, _)) = rest.split_once(')') {
                found.push(target.to_owned());
            }
        }
    }
    found
}

/// A heading's anchor: lower case, blanks to hyphens, punctuation gone.
fn anchors(text: &str) -> Vec<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings
        .map(|line| {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            let kept = title.chars().filter(|&c| c.is_alphanumeric() || " -_".contains(c));
            kept.map(|c| if c == ' ' { '-' } else { c }).collect()
        })
        .collect()
}

/// What is wrong with a link of a document in `dir`, if anything.
fn trouble(dir: &Path, document: &str, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = dir.join(path);
    if !path.exists() {
        return Some(format!("{} is not there", path.display()));
    }
    if anchor.is_empty() {
        return None;
    }
    let text = match target.starts_with('#') {
        true => document.to_owned(),
        false => fs::read_to_string(&path).unwrap_or_default(),
    };
    (!anchors(&text).iter().any(|known| known == anchor)).then(|| format!("no heading #{anchor}"))
}

#[test]
fn every_link_leads_somewhere() {
    let (mut seen, mut troubles) = (0, Vec::new());
    for document in all() {
        let text = fs::read_to_string(&document).expect("a document is UTF-8");
        let dir = document.parent().expect("a file lies in a folder");
        for target in links(&text) {
            seen += 1;
            if let Some(trouble) = trouble(dir, &text, &target) {
                troubles.push(format!("{}: ({target}): {trouble}", document.display()));
            }
        }
    }
    assert!(seen > 20, "only {seen} links were found: are they looked for in the right way?");
    assert!(troubles.is_empty(), "{}", troubles.join("\n"));
}

#[test]
fn every_document_is_in_the_index() {
    let docs = root().join("docs");
    let index = fs::read_to_string(docs.join("README.md")).expect("docs/README.md can be read");
    let mut listed: Vec<PathBuf> = links(&index)
        .iter()
        .filter_map(|target| docs.join(target.split('#').next()?).canonicalize().ok())
        .collect();
    listed.push(docs.join("README.md"));
    let mut found = Vec::new();
    documents(&docs, &mut found);
    for document in found {
        let folder = document.parent().expect("a file lies in a folder");
        let is_listed = listed.iter().any(|path| *path == document || path == folder);
        assert!(is_listed, "docs/README.md leads to neither {} nor its folder", document.display());
    }
}

#[test]
fn a_broken_link_is_noticed() {
    let docs = root().join("docs");
    assert_eq!(trouble(&docs, "", "README.md"), None);
    assert!(trouble(&docs, "", "nowhere.md").is_some());
    assert_eq!(trouble(&docs, "## What, and why\n", "#what-and-why"), None);
    assert!(trouble(&docs, "## What\n", "#whatever").is_some());
    assert_eq!(links("see [a](b.md#c) and [d](e)\n```\n[f](g)\n```\n"), ["b.md#c", "e"]);
}
