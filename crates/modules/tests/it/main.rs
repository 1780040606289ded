//! What the modules answer, beside recorded answers and beside the installed Tarantool 2.6.
//!
//! `LADON_UPDATE_TRANSCRIPTS=1` records them anew.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Lines that differ from Tarantool 2.6's, at most, by transcript, and why.
const DIFFERENCES: &[(&str, usize)] = &[
    // Wrong types are named; MD4 is not there, here or there; OpenSSL's numbers of errors.
    ("digest", 8),
    // No offset is the first one.
    ("msgpack", 1),
    // A code that is none is refused; the first bad byte of a text is named.
    ("utf8", 3),
    // A number is no path; an owner that is not known is an error with a text.
    ("fio", 2),
    // `string.endswith` of wrong types: arguments are named, where 2.6 fails by chance.
    ("string", 3),
    // Comparison by `<` is that of later versions; a wrong digit at a text's end is refused.
    ("uuid", 4),
    // A character beyond U+FFFF is written as it is; tags come before the document as in 2.6.
    ("yaml", 2),
    // Texts of blanks only are no document; a document after `...` needs no `---`; a tab after a
    // colon, and `?` alone, are refused; `:` alone is a map. That is YAML 1.2.
    ("yaml_decode", 6),
];

fn transcripts() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder of transcripts")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "lua"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "there are transcripts");
    files
}

fn run(program: &str, file: &Path) -> Option<String> {
    let folder = file.parent().expect("a folder");
    let name = file.file_name().expect("a name");
    let output = Command::new(program).arg(name).current_dir(folder).output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn assert_near(name: &str, expected: &str, found: &str, differing_max: usize) {
    let (expected, found): (Vec<_>, Vec<_>) = (expected.lines().collect(), found.lines().collect());
    assert_eq!(expected.len(), found.len(), "{name}: as many lines");
    let differing: Vec<_> = expected.iter().zip(&found).filter(|(a, b)| a != b).collect();
    assert!(differing.len() <= differing_max, "{name}: {differing:#?}");
}

#[test]
fn modules_answer_what_was_recorded() {
    for file in transcripts() {
        let found = run(env!("CARGO_BIN_EXE_modules-lua"), &file).expect("the program runs");
        let record = file.with_extension("txt");
        if std::env::var_os("LADON_UPDATE_TRANSCRIPTS").is_some() {
            std::fs::write(&record, &found).expect("the record is written");
        }
        let recorded = std::fs::read(&record).expect("a record");
        let name = file.file_stem().expect("a name").to_string_lossy().into_owned();
        assert_near(&name, &String::from_utf8_lossy(&recorded), &found, 0);
    }
}

#[test]
fn modules_answer_what_tarantool_does() {
    let is_there = Command::new("tarantool").arg("--version").output();
    if !is_there.is_ok_and(|output| output.stdout.starts_with(b"Tarantool 2.6")) {
        return;
    }
    for file in transcripts() {
        let name = file.file_stem().expect("a name").to_string_lossy().into_owned();
        let known = DIFFERENCES.iter().find(|(known, _)| *known == name);
        let expected = run("tarantool", &file).expect("tarantool runs");
        let found = run(env!("CARGO_BIN_EXE_modules-lua"), &file).expect("the program runs");
        assert_near(&name, &expected, &found, known.map_or(0, |(_, lines)| *lines));
    }
}
