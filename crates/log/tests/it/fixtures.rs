//! Directories written by released formats still read: `fixtures/v1/clean` has a checkpoint and
//! three segments and was closed in good order; `fixtures/v1/torn` ends in the middle of a record.
//! Both are from before there was a `log-end`; `fixtures/v1-log-end/clean` has one. In
//! `fixtures/v1-libraries/clean`, checkpoint and log have libraries of functions; in
//! `fixtures/v1-set-times/clean`, they have sets whose members expire (what these bytes mean is the
//! engine's to test: `types/set/timed/tests.rs`).
//!
//! `cargo test -p ladon-log --test it fixtures::write -- --ignored` writes the newest format's
//! fixtures; do that only for a new format, into a new folder.

use crate::common::{ManualClock, MemorySink};
use ladon_log::{BlockHeader, DataDir, Log, LogOptions, RecoveryReport, verify};
use ladon_platform::SystemDisk;
use ladon_record::{Change, ChangeBuffer, Changes, FunctionFacts, LibraryBody, ValueKind};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
}

/// Where the newest format's fixtures are.
const NEWEST: &str = "v1-set-times";

fn open(path: &Path) -> (Arc<Log>, MemorySink, RecoveryReport) {
    let options = LogOptions { segment_bytes: 1000, node_id: 5, ..LogOptions::default() };
    let clock = Arc::new(ManualClock::default());
    let dir = DataDir::open(Arc::new(SystemDisk), clock, path, options, 0x5eed).unwrap();
    assert_eq!(dir.hash_seed(), 0x5eed);
    let sink = MemorySink::new(2);
    let (log, report) = dir.recover(&sink, 2, &|_| {}).unwrap();
    (log, sink, report)
}

fn record(number: u8) -> Vec<u8> {
    let mut changes = ChangeBuffer::new();
    let key = [b'k', number];
    let body = vec![number; usize::from(number) * 3];
    let (db, kind) = (u16::from(number % 2), ValueKind::String);
    changes.push(Change::Put { db, key: &key, expire_at: u64::from(number), kind, body: &body });
    match number % 4 {
        0 => changes.push(Change::Delete { db: 0, key: b"gone" }),
        1 => changes.push(Change::Expire { db: 1, key: &key, expire_at: 1 << 40 }),
        2 => changes.push(Change::Update { db: 0, key: b"s", kind: ValueKind::Set, op: b"\x01" }),
        _ => changes.push(Change::SwapDb { first: 0, second: 1 }),
    }
    changes.as_bytes().to_vec()
}

/// Changes of libraries.
fn library_record(number: u8) -> Vec<u8> {
    let mut changes = ChangeBuffer::new();
    match number % 5 {
        3 => changes.push(Change::DeleteLibrary { name: b"library2" }),
        4 => changes.push(Change::FlushLibraries),
        _ => {
            let name = format!("library{number}");
            let mut body = Vec::new();
            library(number).encode(&mut body);
            changes.push(Change::Library { name: name.as_bytes(), body: &body });
        }
    }
    changes.as_bytes().to_vec()
}

fn library(number: u8) -> LibraryBody {
    let function = |n: u8| FunctionFacts {
        name: format!("function{n}").into_bytes(),
        description: n.is_multiple_of(2).then(|| vec![0xc3, b'd', n]),
        flags: u64::from(n) * 7,
    };
    let code = format!("#!lua name=library{number}\n-- \u{7f}").into_bytes();
    LibraryBody { code, functions: (0..=number % 3).map(function).collect() }
}

/// Changes of sets whose members expire.
fn set_times_record(number: u8) -> Vec<u8> {
    let (db, key, kind) = (0, &[b's', number % 5][..], ValueKind::Set);
    let mut changes = ChangeBuffer::new();
    if number.is_multiple_of(5) {
        let body = b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x04a\0\x09bc\0\x02\x01\0\0\0\0\0\0";
        changes.push(Change::Put { db, key, expire_at: 0, kind, body });
    } else {
        let op = b"\x03\x0bbc\x02\x01\0\0\0\0\0\0\x05d\0\x03\0\0\0\0\0\0\0\x04a\0\x06d";
        changes.push(Change::Update { db, key, kind, op });
    }
    changes.as_bytes().to_vec()
}

#[test]
fn set_times_of_format_1_read() {
    let copy = copy_of("v1-set-times/clean");
    let (_log, sink, report) = open(copy.path());
    assert!(report.clean && report.torn.is_none());
    assert_eq!(sink.payloads(), (10..30).map(set_times_record).collect::<Vec<_>>());
    let blocks = sink.blocks.lock().unwrap();
    assert_eq!(blocks.len(), 1);
    assert_eq!(blocks[0].1, set_times_record(0));
}

#[test]
#[ignore = "writes the fixtures of the newest format"]
fn write_fixtures() {
    let path = folder(NEWEST).join("clean");
    let _ = fs::remove_dir_all(&path);
    let (log, ..) = open(&path);
    let mut appender = log.appender();
    for number in 0..30 {
        if number == 10 {
            let mut writer = log.begin_checkpoint().unwrap();
            let lsn = writer.begin_lsn();
            let block = BlockHeader { db: 0, hash_first: 0, hash_last: 0, lsn, keys: 0 };
            writer.block(&block, &set_times_record(0)).unwrap();
            writer.finish(lsn, b"meta").unwrap();
        }
        appender.append(&set_times_record(number), 1_800_000_000_000 + u64::from(number));
        appender.publish();
        log.write_published().unwrap();
    }
    log.close().unwrap();
    let _ = fs::remove_file(path.join("LOCK"));
}

#[test]
fn libraries_of_format_1_read() {
    let copy = copy_of("v1-libraries/clean");
    let (_log, sink, report) = open(copy.path());
    assert!(report.clean && report.torn.is_none());
    assert_eq!(sink.payloads(), (10..30).map(library_record).collect::<Vec<_>>());
    let blocks = sink.blocks.lock().unwrap();
    assert_eq!(blocks.len(), 1);
    assert_eq!(blocks[0].1, library_record(1));
    let read = |payload: &[u8]| match Changes::new(payload).next().unwrap().unwrap() {
        Change::Library { name, body } => {
            format!("{} {:?}", name.escape_ascii(), LibraryBody::decode(body).unwrap())
        }
        other => format!("{other:?}"),
    };
    let expected = format!("library11 {:?}", library(11));
    assert_eq!(read(&sink.payloads()[1]), expected);
    assert_eq!(
        read(&sink.payloads()[3]),
        "DeleteLibrary { name: [108, 105, 98, 114, 97, 114, 121, 50] }"
    );
    assert_eq!(read(&sink.payloads()[4]), "FlushLibraries");
}

/// Recovery writes, so it gets a copy.
fn copy_of(name: &str) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(folder(name)).unwrap() {
        let from = entry.unwrap().path();
        fs::copy(&from, copy.path().join(from.file_name().unwrap())).unwrap();
    }
    copy
}

#[test]
fn a_directory_of_format_1_reads() {
    let copy = copy_of("v1/clean");
    let report = verify::verify_dir(&SystemDisk, copy.path()).unwrap();
    assert!(report.is_sound() && report.clean && report.torn.is_none(), "{report:?}");
    assert_eq!((report.checkpoints.len(), report.segments.len()), (1, 3));
    let (_log, sink, report) = open(copy.path());
    assert!(report.clean && report.torn.is_none());
    assert_eq!(sink.payloads(), (10..30).map(record).collect::<Vec<_>>());
    let blocks = sink.blocks.lock().unwrap();
    assert_eq!(blocks.len(), 2);
    assert!(blocks.iter().all(|(block, changes)| *changes == record(block.db as u8)));
    assert_eq!(sink.metas.lock().unwrap()[0].1, b"meta");
    for payload in sink.payloads() {
        assert!(Changes::new(&payload).all(|change| change.is_ok()));
    }
}

#[test]
fn a_torn_directory_of_format_1_reads() {
    let copy = copy_of("v1/torn");
    let (_log, sink, report) = open(copy.path());
    assert_eq!(sink.payloads(), (0..29).map(record).collect::<Vec<_>>());
    assert!(report.torn.is_some_and(|torn| torn.found.contains("the file ends after")));
}

#[test]
fn a_directory_without_log_end_gets_one() {
    let copy = copy_of("v1/clean");
    let end = |path: &Path| fs::read(ladon_log::log_end_path(path)).map(|bytes| bytes.len()).ok();
    assert_eq!(end(copy.path()), None);
    let (log, ..) = open(copy.path());
    log.close().unwrap();
    assert_eq!(end(copy.path()), Some(3 * 4096));
    drop(log);
    assert!(open(copy.path()).2.clean);
}

#[test]
fn log_end_of_format_1_reads() {
    let copy = copy_of("v1-log-end/clean");
    let report = verify::verify_dir(&SystemDisk, copy.path()).unwrap();
    assert!(report.is_sound() && report.clean && report.torn.is_none(), "{report:?}");
    let newest = report.segments.last().unwrap().path.clone();
    fs::remove_file(&newest).unwrap();
    let report = verify::verify_dir(&SystemDisk, copy.path()).unwrap();
    assert_eq!(report.damages.len(), 1, "{report:?}");
    assert_eq!(report.damages[0].path, newest);
}
