//! `ladon check` and `ladon dump` on sound, damaged and missing directories.

use crate::common::{ladon, write_data};
use ladon_log::verify::verify_dir;
use ladon_platform::SystemDisk;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn data() -> TempDir {
    let dir = TempDir::new().expect("a directory");
    write_data(dir.path());
    dir
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// The last file with this extension that holds more than its header.
fn file(dir: &TempDir, extension: &str) -> PathBuf {
    let entries =
        fs::read_dir(dir.path()).expect("lists").map(|entry| entry.expect("entry").path());
    let mut files: Vec<PathBuf> = entries
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .filter(|path| fs::metadata(path).expect("metadata").len() > 64)
        .collect();
    files.sort();
    files.pop().expect("such a file")
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).expect("reads");
    bytes[at] ^= 1;
    fs::write(path, bytes).expect("writes");
}

#[test]
fn a_sound_directory() {
    let dir = data();
    let run = ladon(&["check", text(dir.path())]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{}", run.stdout);
    assert!(run.stdout.ends_with("sound; closed in good order\n"), "{}", run.stdout);
    assert!(run.stdout.contains("1 keys in 1 blocks"), "{}", run.stdout);
    let totals = run.stdout.lines().find(|line| line.starts_with("checked ")).expect("totals");
    let size = |extension| fs::metadata(file(&dir, extension)).expect("metadata").len();
    assert!(totals.contains(&format!("(1 keys, 1 changes, {} bytes)", size("checkpoint"))));
    // A key, then two changes, one, two, and three.
    assert!(totals.contains("(5 records, 9 changes, "), "{totals}");
}

#[test]
fn a_directory_without_data_is_not_sound() {
    let dir = TempDir::new().expect("a directory");
    fs::write(dir.path().join("notes.txt"), "mine").expect("writes");
    for command in ["check", "dump"] {
        let run = ladon(&[command, text(dir.path())]);
        assert_eq!(run.code, 3, "{command}: {}", run.stdout);
        assert!(run.stderr.contains("there is no data in"), "{command}: {}", run.stderr);
        assert!(!run.stdout.contains("sound"), "{command}: {}", run.stdout);
    }
}

#[test]
fn every_single_byte_counts() {
    let dir = data();
    for extension in ["log", "checkpoint"] {
        let path = file(&dir, extension);
        let length = fs::metadata(&path).expect("metadata").len() as usize;
        // Behind the last whole frame damage cannot be told from a torn tail, but it is told.
        for at in 0..length {
            flip(&path, at);
            let noticed = match verify_dir(&SystemDisk, dir.path()) {
                Ok(report) => !report.is_sound() || report.torn.is_some(),
                Err(_) => true,
            };
            assert!(noticed, "byte {at} of {extension}");
            flip(&path, at);
        }
    }
    assert_eq!(ladon(&["check", text(dir.path())]).code, 0, "and it is whole again");
}

#[test]
fn what_is_not_read_is_named() {
    let dir = data();
    fs::write(dir.path().join("notes.txt"), "mine").expect("writes");
    let run = ladon(&["check", text(dir.path())]);
    assert_eq!(run.code, 0);
    assert!(run.stdout.contains("notes.txt: none of Ladon's files"), "{}", run.stdout);
}

#[test]
fn damage_is_named_with_file_offset_and_way_out() {
    // In the log, behind the first record: that one is in the checkpoint, too.
    let ways = [
        ("log", 64 + 43 + 30, "restore the directory from a backup; or start the server with"),
        ("checkpoint", 64 + 50, "remove this file: the log still begins at LSN 0"),
    ];
    for (extension, at, way_out) in ways {
        let dir = data();
        let path = file(&dir, extension);
        flip(&path, at);
        let run = ladon(&["check", text(dir.path())]);
        assert_eq!(run.code, 1, "{extension}: {}", run.stdout);
        let name = path.file_name().unwrap().to_str().unwrap();
        let line = run.stdout.lines().find(|line| line.contains("is damaged at byte"));
        let line = line.unwrap_or_else(|| panic!("{extension}: {}", run.stdout));
        assert!(line.contains(name) && line.contains(way_out), "{line}");
        assert_eq!(ladon(&["dump", text(dir.path())]).code, 1, "{extension}");
        if extension == "checkpoint" {
            fs::remove_file(&path).expect("removes");
            assert_eq!(ladon(&["check", text(dir.path())]).code, 0, "the advice helps");
        }
    }
}

#[test]
fn a_torn_end_is_ordinary() {
    let dir = data();
    let path = file(&dir, "log");
    let bytes = fs::read(&path).expect("reads");
    // A record that was not written to its end.
    fs::write(&path, [&bytes[..], &[1, 2, 3, 4, 5]].concat()).expect("writes");
    let run = ladon(&["check", text(dir.path())]);
    assert_eq!(run.code, 0, "{}", run.stdout);
    assert!(run.stdout.ends_with("sound; not closed in good order\n"), "{}", run.stdout);
    assert!(run.stdout.contains("a start cuts off"), "{}", run.stdout);
    let run = ladon(&["dump", text(dir.path())]);
    assert_eq!(run.code, 0);
    assert!(run.stderr.contains("at byte"), "{}", run.stderr);
}

#[test]
fn an_end_that_had_been_on_the_disk_is_missed() {
    let dir = data();
    let path = file(&dir, "log");
    let bytes = fs::read(&path).expect("reads");
    for length in [bytes.len() - 5, 64 + 43, 0] {
        fs::write(&path, &bytes[..length]).expect("writes");
        let run = ladon(&["check", text(dir.path())]);
        assert_eq!(run.code, 1, "{}", run.stdout);
        assert!(run.stdout.contains("the log had been on the disk up to LSN"), "{}", run.stdout);
    }
    // All of the log: the checkpoint alone is not enough.
    fs::remove_file(&path).expect("removes");
    assert_eq!(ladon(&["check", text(dir.path())]).code, 1);
}

#[test]
fn damage_that_no_start_needs_has_an_exit_code_of_its_own() {
    let dir = data();
    let path = file(&dir, "log");
    // In the record that the checkpoint holds.
    flip(&path, 64 + 30);
    let run = ladon(&["check", text(dir.path())]);
    assert_eq!(run.code, 5, "{}", run.stdout);
    assert!(run.stdout.contains("nothing is lost. Leave the file"), "{}", run.stdout);
    assert!(run.stdout.contains("nothing is lost: damaged in 1 place that no start needs"));
    assert_eq!(ladon(&["dump", text(dir.path())]).code, 5);
}

#[test]
fn a_newer_format_and_a_missing_directory_are_refused_by_name() {
    let dir = data();
    let meta = dir.path().join("meta");
    let mut bytes = fs::read(&meta).expect("reads");
    bytes[8] += 1;
    let crc = ladon_log::crc32c(&bytes[..60]);
    bytes[60..].copy_from_slice(&crc.to_le_bytes());
    fs::write(&meta, &bytes).expect("writes");
    let run = ladon(&["check", text(dir.path())]);
    assert_eq!(run.code, 3, "{}", run.stdout);
    assert!(run.stderr.contains("meta has format 2"), "{}", run.stderr);

    flip(&meta, 20);
    let run = ladon(&["check", text(dir.path())]);
    assert_eq!(run.code, 1, "{}", run.stdout);
    assert!(run.stderr.contains("meta is damaged at byte 0"), "{}", run.stderr);

    let missing = text(dir.path()).to_owned() + "/nowhere";
    for command in ["check", "dump"] {
        let run = ladon(&[command, &missing]);
        assert_eq!(run.code, 3, "{command}: {}", run.stdout);
        assert!(run.stderr.contains("nowhere"), "{}", run.stderr);
    }
}

#[test]
fn dump_as_text() {
    let dir = data();
    let run = ladon(&["dump", text(dir.path())]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    for expected in [
        "  put 0 \"greeting\" string \"hello\"\n",
        "metadata as of LSN",
        " keys\n",
        "at 2023-11-14T22:13:20.123Z, node 0\n",
        "  put 3 \"tags\" set {\"a\" \"\\xff\\xfe\"} expires 2023-11-14T22:13:29.000Z\n",
        "  update 3 \"tags\" set remove {\"a\"}\n",
        "  delete 0 \"greeting\"\n",
        "  flushdb 3\n  swapdb 0 3\n",
        "  library \"numbers\" functions {\"double\"} code \"#!lua name=numbers\\n\"\n",
        "  delete library \"numbers\"\n  flush libraries\n",
        ": clean-end, on the disk up to ",
    ] {
        assert!(run.stdout.contains(expected), "{expected:?} in\n{}", run.stdout);
    }
}

#[test]
fn dump_as_json_lines() {
    let dir = data();
    let run = ladon(&["dump", "--json", text(dir.path())]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    let lines: Vec<Value> =
        run.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let of = |kind: &str| lines.iter().filter(|line| line["type"] == kind).collect::<Vec<_>>();
    assert_eq!(of("checkpoint").len(), 1);
    assert_eq!(of("block")[0]["keys"], 1);
    assert_eq!(of("key")[0]["value"], "hello");
    assert_eq!(of("metadata")[0]["bytes"].as_str().map(str::len), Some(17));
    let changes = of("changes");
    let tags = changes.iter().find(|line| line["changes"][0]["key"] == "tags").expect("tags");
    assert_eq!(tags["time_ms"], 1_700_000_000_123u64);
    assert_eq!(tags["changes"][0]["value"], serde_json::json!(["a", { "hex": "fffe" }]));
    assert_eq!(tags["changes"][1]["remove"], serde_json::json!(["a"]));
    let library = changes.iter().find(|line| line["changes"][0]["op"] == "library");
    let library = &library.expect("a library")["changes"];
    assert_eq!(library[0]["code"], "#!lua name=numbers\n");
    let function = serde_json::json!({ "name": "double", "description": null, "flags": 1 });
    assert_eq!(library[0]["functions"], serde_json::json!([function]));
    assert_eq!(library[1], serde_json::json!({ "op": "delete-library", "name": "numbers" }));
    assert_eq!(library[2], serde_json::json!({ "op": "flush-libraries" }));
    assert_eq!(of("clean-end").len(), 1);
}
