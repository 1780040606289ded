//! Every advice that a message gives is followed to the letter: the server then starts, and nothing
//! more is lost than the message says.

use crate::common::files::*;
use crate::common::*;
use ladon_log::{BlockHeader, Damage, LogOptions, OpenError, RecoverError, log_end_path, verify};
use ladon_platform::Disk;
use ladon_record::{Change, Changes, Lsn};
use ladon_sim_disk::SimDisk;
use std::collections::BTreeMap;
use std::path::Path;

/// A directory with everything that can stand in one: two checkpoints, segments before them, the
/// begin of the newest one within a segment, and several behind it; all of it on the disk.
struct Whole {
    files: Files,
    /// Every record's number and LSN.
    records: BTreeMap<u64, Lsn>,
    /// The newest checkpoint's begin.
    begin: Lsn,
}

fn whole() -> Whole {
    let disk = SimDisk::new(0);
    let mut node = open(&disk);
    let mut records = BTreeMap::new();
    let mut begin = Lsn::ZERO;
    for number in 0..80 {
        records.insert(number, node.put(&put(number)));
        if number == 20 || number == 50 {
            let mut writer = node.log.begin_checkpoint().unwrap();
            begin = writer.begin_lsn();
            let (lsn, keys) = (begin, number + 1);
            let block = BlockHeader { db: 0, hash_first: 0, hash_last: u64::MAX, lsn, keys };
            writer.block(&block, &(0..=number).flat_map(put).collect::<Vec<_>>()).unwrap();
            writer.finish(lsn, b"meta").unwrap();
        }
        node.log.make_durable(node.log.reserved()).unwrap();
    }
    node.log.close().unwrap();
    drop(node);
    let files = files(&disk);
    assert!(files.iter().filter(|(path, _)| is_log(path)).count() >= 5);
    Whole { files, records, begin }
}

fn is_log(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "log")
}

fn keys(changes: &[u8], into: &mut Vec<u64>) {
    for change in Changes::new(changes) {
        let Ok(Change::Put { key, .. }) = change else { panic!("{change:?}") };
        into.push(u64::from_le_bytes(key.try_into().unwrap()));
    }
}

/// The numbers that a start with these files finds.
fn found(files: &Files, options: LogOptions) -> Result<Vec<u64>, RecoverError> {
    let node = try_open(&disk_of(files), options, 1)?;
    let mut numbers = Vec::new();
    for (_, changes) in node.sink.blocks.lock().unwrap().iter() {
        keys(changes, &mut numbers);
    }
    for (_, changes) in node.sink.records[0].lock().unwrap().iter() {
        keys(changes, &mut numbers);
    }
    numbers.sort_unstable();
    numbers.dedup();
    Ok(numbers)
}

impl Whole {
    fn all(&self) -> Vec<u64> {
        self.records.keys().copied().collect()
    }

    fn up_to(&self, lsn: Lsn) -> Vec<u64> {
        self.records.iter().filter(|(_, at)| **at <= lsn).map(|(number, _)| *number).collect()
    }

    /// Does what the message says to these files, in every way that it names, and starts; how many
    /// ways there were.
    fn follow(&self, files: &Files, damage: &Damage) -> usize {
        let without = |path: &Path| -> Files {
            files.iter().filter(|(other, _)| other != path).cloned().collect()
        };
        let mut ways = 0;
        let advice = &damage.advice;
        if advice.contains("remove this file") || advice.contains("it may be removed") {
            let rest = without(&damage.path);
            let numbers = found(&rest, small()).unwrap_or_else(|error| panic!("{damage}: {error}"));
            assert_eq!(numbers, self.all(), "{damage}");
            ways += 1;
        }
        if advice.contains("restore the directory") || advice.contains("restore this file") {
            // The backup is the whole directory.
            assert_eq!(found(&self.files, small()).unwrap(), self.all());
            ways += 1;
        }
        if let Some((_, rest)) = advice.split_once("--accept-log-loss-after ") {
            let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
            let lsn = Lsn(digits.parse().unwrap());
            let options = LogOptions { accept_loss_after: Some(lsn), ..small() };
            let numbers = found(files, options).unwrap_or_else(|error| panic!("{damage}: {error}"));
            assert_eq!(numbers, self.up_to(lsn), "{damage}");
            assert!(advice.contains(&format!("gives up all changes after LSN {lsn}")));
            ways += 1;
        }
        if advice.contains("nothing is lost") || advice.contains("nothing is to be done") {
            assert_eq!(found(files, small()).expect("it starts"), self.all(), "{damage}");
            ways += 1;
        }
        ways
    }

    /// Follows whatever `check` and recovery say about these files.
    fn follow_all(&self, files: &Files, what: &str) {
        let disk = disk_of(files);
        let outcome = found(files, small());
        let report = match verify::verify_dir(&disk, Path::new(DIR)) {
            Ok(report) => report,
            Err(OpenError::Damaged(damage)) => {
                assert_eq!(self.follow(files, &damage), 1, "{what}: {damage}");
                return;
            }
            Err(error) => panic!("{what}: {error}"),
        };
        match &outcome {
            Ok(numbers) => {
                assert!(report.damages.is_empty(), "{what}: {:?}", report.damages);
                assert_eq!(*numbers, self.all(), "{what}: started with less");
            }
            Err(RecoverError::Damaged(damage)) => {
                assert!(report.damages.contains(damage), "{what}: {damage}\n{report:?}");
                assert!(self.follow(files, damage) > 0, "no way out: {damage}");
            }
            Err(error) => panic!("{what}: {error}"),
        }
        for damage in report.damages.iter().chain(&report.not_needed) {
            let points_on = damage.advice.contains("see there");
            assert!(self.follow(files, damage) > 0 || points_on, "no way out: {damage}");
        }
        for damage in &report.not_needed {
            assert!(damage.advice.contains("nothing is"), "{damage}");
            assert!(!damage.advice.contains("accept-log-loss"), "{damage}");
        }
    }
}

#[test]
fn every_flipped_byte() {
    let whole = whole();
    assert_eq!(found(&whole.files, small()).unwrap(), whole.all());
    for (index, (path, bytes)) in whole.files.iter().enumerate() {
        for at in 0..bytes.len().min(5000) {
            let mut files = whole.files.clone();
            files[index].1[at] ^= 1 << (at % 8);
            whole.follow_all(&files, &format!("{} flipped at {at}", path.display()));
        }
    }
}

#[test]
fn every_missing_and_every_cut_file() {
    let whole = whole();
    for (index, (path, bytes)) in whole.files.iter().enumerate() {
        let mut files = whole.files.clone();
        files.remove(index);
        whole.follow_all(&files, &format!("{} is missing", path.display()));
        for length in (0..bytes.len().min(5000)).step_by(7).chain([bytes.len() - 1]) {
            let mut files = whole.files.clone();
            files[index].1.truncate(length);
            whole.follow_all(&files, &format!("{} cut to {length}", path.display()));
        }
    }
}

#[test]
fn damage_before_the_newest_checkpoint_is_not_needed() {
    let whole = whole();
    let log = |path: &Path| is_log(path) && !path.ends_with("log-end");
    let first = whole.files.iter().position(|(path, _)| log(path)).unwrap();
    let mut files = whole.files.clone();
    files[first].1[200] ^= 1;
    let report = verify::verify_dir(&disk_of(&files), Path::new(DIR)).unwrap();
    assert!(report.damages.is_empty() && !report.is_sound(), "{report:?}");
    let [damage] = &report.not_needed[..] else { panic!("{report:?}") };
    assert!(damage.advice.contains("may be removed"), "{damage}");
    // In the segment that the newest checkpoint begins in, only the part before it is not needed.
    let bases = whole.files.iter().filter_map(|(path, _)| ladon_log::segment::segment_base(path));
    let base = bases.filter(|base| *base < whole.begin).max().unwrap();
    let path = ladon_log::segment::segment_path(Path::new(DIR), base);
    let at = whole.files.iter().position(|(other, _)| *other == path).unwrap();
    let mut files = whole.files.clone();
    files[at].1[64 + 30] ^= 1;
    let report = verify::verify_dir(&disk_of(&files), Path::new(DIR)).unwrap();
    let [damage] = &report.not_needed[..] else { panic!("{report:?}") };
    assert!(damage.advice.contains("Leave the file"), "{damage}");
}

#[test]
fn an_older_checkpoint_takes_the_place_of_a_damaged_one() {
    let whole = whole();
    let path = ladon_log::checkpoint::format::checkpoint_path(Path::new(DIR), whole.begin);
    let at = whole.files.iter().position(|(other, _)| *other == path).unwrap();
    let mut files = whole.files.clone();
    files[at].1[100] ^= 1;
    let Err(RecoverError::Damaged(damage)) = found(&files, small()) else { panic!("unnoticed") };
    assert!(damage.advice.contains("remove this file: the older checkpoint"), "{damage}");
    // Not if the log between the two is damaged: then nothing but a backup helps.
    let older = files.iter().position(|(path, _)| path.to_string_lossy().contains("checkpoint"));
    let begin = ladon_log::checkpoint::format::checkpoint_begin(&files[older.unwrap()].0).unwrap();
    let bases = files.iter().filter_map(|(path, _)| ladon_log::segment::segment_base(path));
    let base = bases.filter(|base| *base > begin && *base < whole.begin).min().unwrap();
    let between = ladon_log::segment::segment_path(Path::new(DIR), base);
    let index = files.iter().position(|(path, _)| *path == between).unwrap();
    files[index].1[100] ^= 1;
    let Err(RecoverError::Damaged(damage)) = found(&files, small()) else { panic!("unnoticed") };
    assert_eq!(damage.advice, "restore the directory from a backup");
}

#[test]
fn a_missing_or_cut_end_is_refused_by_name() {
    let whole = whole();
    let newest = whole.files.iter().rposition(|(path, _)| is_log(path)).unwrap();
    let (path, bytes) = &whole.files[newest];
    let mut files = whole.files.clone();
    files.remove(newest);
    let Err(RecoverError::Damaged(damage)) = found(&files, small()) else { panic!("unnoticed") };
    assert_eq!(damage.path, *path);
    assert!(damage.found.contains("this file is missing"), "{damage}");
    assert!(damage.found.contains("had been on the disk up to LSN"), "{damage}");
    for length in 0..bytes.len() {
        let mut files = whole.files.clone();
        files[newest].1.truncate(length);
        let Err(RecoverError::Damaged(damage)) = found(&files, small()) else {
            panic!("cut to {length}: unnoticed")
        };
        assert_eq!(damage.path, *path, "cut to {length}");
        let mut files = whole.files.clone();
        files[newest].1[length..].fill(0);
        let is_changed = files[newest].1 != *bytes;
        assert_eq!(found(&files, small()).is_err(), is_changed, "zeros from {length}");
    }
}

/// To accept one loss is not to accept another one.
#[test]
fn a_loss_is_accepted_once_and_for_one_place() {
    let whole = whole();
    let newest = whole.files.iter().rposition(|(path, _)| is_log(path)).unwrap();
    let mut files = whole.files.clone();
    files.remove(newest);
    let disk = disk_of(&files);
    let Err(RecoverError::Damaged(damage)) = try_open(&disk, small(), 1) else { panic!() };
    let lsn = ladon_log::segment::segment_base(&damage.path).unwrap();
    for other in [Lsn(lsn.0 - 1), Lsn(lsn.0 + 1), Lsn::ZERO] {
        let options = LogOptions { accept_loss_after: Some(other), ..small() };
        assert!(try_open(&disk, options, 1).is_err(), "{other}");
    }
    let options = LogOptions { accept_loss_after: Some(lsn), ..small() };
    let mut node = try_open(&disk, options, 1).unwrap();
    assert!(node.report.given_up.is_some());
    let after = node.put(&put(100));
    node.log.make_durable(after).unwrap();
    drop(node);
    disk.power_cut();
    let node = try_open(&disk, options, 1).unwrap();
    assert!(node.report.given_up.is_none(), "the setting may stay");
    assert_eq!(node.sink.payloads().last(), Some(&put(100)));
    let end = node.report.end;
    drop(node);
    disk.kill();
    disk.remove(&ladon_log::segment::segment_path(Path::new(DIR), end)).unwrap();
    assert!(try_open(&disk, options, 1).is_err(), "another loss");
}

#[test]
fn a_directory_without_its_log_end_starts_and_gets_one() {
    let whole = whole();
    let path = log_end_path(Path::new(DIR));
    for content in [None, Some(vec![]), Some(vec![0; 12288]), Some(b"nonsense".to_vec())] {
        let mut files: Files =
            whole.files.iter().filter(|(other, _)| *other != path).cloned().collect();
        files.extend(content.clone().map(|content| (path.clone(), content)));
        let report = verify::verify_dir(&disk_of(&files), Path::new(DIR)).unwrap();
        assert_eq!(report.not_needed.len(), usize::from(content.is_some()), "{report:?}");
        assert!(report.damages.is_empty());
        let disk = disk_of(&files);
        let node = open(&disk);
        assert_eq!(node.report.log_end_fault.is_some(), content.is_some());
        drop(node);
        disk.power_cut();
        assert!(open(&disk).report.log_end_fault.is_none());
        assert_eq!(disk.contents(&path).map(|bytes| bytes.len()), Some(12288));
    }
}
