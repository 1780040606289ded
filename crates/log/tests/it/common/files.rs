//! A directory as a list of files, to damage them and to see what becomes of it.

use super::*;
use ladon_log::verify;
use ladon_platform::Disk;
use ladon_record::{Change, ChangeBuffer, ValueKind};
use std::path::PathBuf;

pub fn put(number: u64) -> Vec<u8> {
    let mut changes = ChangeBuffer::new();
    let (key, body) = (number.to_le_bytes(), vec![b'v'; number as usize * 7 % 40]);
    let kind = ValueKind::String;
    changes.push(Change::Put { db: 0, key: &key, expire_at: 0, kind, body: &body });
    changes.as_bytes().to_vec()
}

pub type Files = Vec<(PathBuf, Vec<u8>)>;

pub fn files(disk: &SimDisk) -> Files {
    let mut paths = disk.list(Path::new(DIR)).unwrap();
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), disk.contents(&path).unwrap())).collect()
}

pub fn disk_of(files: &[(PathBuf, Vec<u8>)]) -> SimDisk {
    let disk = SimDisk::new(0);
    for (path, bytes) in files {
        disk.set_contents(path, bytes);
    }
    disk
}

/// Recovered payloads, or the error; `verify` has to come to the same verdict.
pub fn verdict(files: &[(PathBuf, Vec<u8>)]) -> Result<Node, RecoverError> {
    let disk = disk_of(files);
    let report = verify::verify_dir(&disk, Path::new(DIR));
    let outcome = try_open(&disk, small(), 1);
    match (&outcome, &report) {
        (Ok(node), Ok(report)) => {
            let (damages, not_needed) = (&report.damages, &report.not_needed);
            assert!(damages.is_empty(), "recovery starts, verify says {damages:?}");
            let of_log_end = |d: &ladon_log::Damage| d.path.ends_with("log-end");
            assert_eq!(node.report.log_end_fault.is_some(), not_needed.iter().any(of_log_end));
            assert_eq!(node.report.torn, report.torn);
            assert_eq!(node.report.clean, report.clean);
        }
        (Err(RecoverError::Damaged(damage)), Ok(report)) => {
            let place = |d: &ladon_log::Damage| (d.path.clone(), d.offset);
            let found: Vec<_> = report.damages.iter().map(place).collect();
            assert!(!report.is_sound(), "recovery: {damage}");
            assert!(found.contains(&place(damage)), "{damage} but {found:?}");
        }
        (Err(_), Err(_)) => {}
        (outcome, report) => panic!("{:?} against {report:?}", outcome.as_ref().map(|_| ())),
    }
    outcome
}

/// Three segments, no clean end, the first two records synced with a mark behind them.
pub fn synced_then_not() -> (Files, Vec<Vec<u8>>, usize) {
    let disk = SimDisk::new(0);
    let mut node = open(&disk);
    let payloads: Vec<Vec<u8>> = (0..40).map(put).collect();
    let synced = 30;
    for payload in &payloads[..synced] {
        node.put(payload);
    }
    node.log.make_durable(node.log.reserved()).unwrap();
    for payload in &payloads[synced..] {
        node.put(payload);
    }
    node.log.write_published().unwrap();
    drop(node);
    let files = files(&disk);
    assert!(files.len() >= 3);
    (files, payloads, synced)
}
