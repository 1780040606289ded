//! A full disk, failing writes, failing syncs, strange directories.

use crate::common::*;
use ladon_log::frame::FRAME_HEADER_BYTES;
use ladon_log::{
    DataDir, LogError, LogOptions, LogState, OpenError, Planted, RecoverError, verify,
};
use ladon_platform::Disk;
use ladon_record::{LargeRecord, Lsn, Record};
use ladon_sim_disk::{Fault, SimDisk};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn a_full_disk_refuses_writes_and_heals_by_itself() {
    let disk = SimDisk::new(1);
    let mut node = open(&disk);
    let woken = Arc::new(AtomicUsize::new(0));
    let waiter = {
        let woken = woken.clone();
        node.log.add_waiter(Arc::new(move || {
            woken.fetch_add(1, Ordering::Relaxed);
        }))
    };
    disk.set_capacity(Some(disk.used_bytes() + 50));
    let lsn = node.put(&[5; 100]);
    assert!(!waiter.await_written(lsn));
    let error = node.log.write_published().unwrap_err();
    assert!(matches!(&error, LogError::WriteFailed { .. }) && error.to_string().contains("space"));
    assert!(!node.log.accepts_writes());
    assert!(matches!(node.log.state(), LogState::WriteFailed { .. }));
    assert_eq!(woken.load(Ordering::Relaxed), 1, "told of the state");
    // No attempt before its time, and none from the IO threads.
    disk.set_capacity(None);
    assert!(node.log.write_published().is_err());
    let due = node.log.step().due_in_ns;
    assert_eq!(due, Some(SECOND_NS));
    assert!(!node.log.accepts_writes());
    node.clock.advance_ns(SECOND_NS);
    assert!(node.log.step().worked);
    assert!(node.log.accepts_writes() && node.log.written() == lsn);
    assert_eq!(woken.load(Ordering::Relaxed), 3, "told of the position, then of the state");
    node.log.close().unwrap();
    drop(node);
    assert_eq!(open(&disk).sink.payloads(), [vec![5; 100]]);
}

#[test]
fn a_new_segment_that_cannot_be_made_is_made_later() {
    let disk = SimDisk::new(2);
    let mut node = open(&disk);
    node.put(&[1; 600]);
    disk.fail_next(Fault::Create, 1);
    node.put(&[2; 600]);
    assert!(node.log.write_published().is_err());
    node.clock.advance_ns(SECOND_NS);
    disk.fail_next(Fault::Write, 1);
    node.log.step();
    assert!(!node.log.accepts_writes(), "the file is there, its header is not");
    node.clock.advance_ns(SECOND_NS);
    node.log.step();
    assert!(node.log.accepts_writes());
    node.log.close().unwrap();
    drop(node);
    assert_eq!(open(&disk).sink.payloads(), [[1; 600], [2; 600]]);
}

#[test]
fn a_failed_sync_is_never_believed_again() {
    for fault in [Fault::Sync, Fault::SyncDir] {
        let disk = SimDisk::new(3);
        let mut node = open(&disk);
        let first = node.put(&[1; 600]);
        node.log.make_durable(first).unwrap();
        // The second record needs a second file, so that the directory is synced too.
        let second = node.put(&[2; 600]);
        disk.fail_next(fault, 1);
        node.log.want_durable(second);
        node.log.step();
        assert!(matches!(node.log.state(), LogState::SyncFailed { .. }), "{fault:?}");
        assert!(!node.log.accepts_writes());
        assert!(node.log.state().error().unwrap().to_string().contains("restart"));
        node.clock.advance_ns(10 * SECOND_NS);
        node.put(&[3; 10]);
        node.log.want_durable(node.log.reserved());
        node.log.step();
        assert!(matches!(node.log.make_durable(second), Err(LogError::SyncFailed { .. })));
        assert!(node.log.close().is_err());
        assert_eq!(node.log.durable(), first);
        assert_eq!(node.log.written(), node.log.reserved(), "what can be written still is");
        assert!(node.log.begin_checkpoint().is_err());
        // The restart finds it in the page cache, and does not trust that: it writes it again.
        drop(node);
        disk.kill();
        let node = open(&disk);
        assert_eq!(node.sink.payloads().len(), 3);
        drop(node);
        disk.power_cut();
        assert_eq!(open(&disk).sink.payloads().len(), 3, "{fault:?}");
    }
}

#[test]
fn a_checkpoint_that_fails_leaves_the_log_well() {
    let disk = SimDisk::new(4);
    let mut node = open(&disk);
    let lsn = node.put(b"x");
    node.log.write_published().unwrap();
    for fault in [Fault::Write, Fault::Sync, Fault::SyncDir] {
        let writer = node.log.begin_checkpoint().unwrap();
        disk.fail_next(fault, 1);
        let error = writer.finish(lsn, b"").unwrap_err();
        assert!(matches!(error, LogError::Checkpoint { .. }), "{fault:?}: {error}");
        assert!(node.log.accepts_writes() && node.log.last_checkpoint().is_none());
        disk.heal();
    }
    let info = node.log.begin_checkpoint().unwrap().finish(lsn, b"").unwrap();
    assert_eq!(node.log.last_checkpoint(), Some(info));
    let files = disk.list(Path::new(DIR)).unwrap();
    assert!(files.iter().all(|file| !file.to_string_lossy().ends_with(".tmp")));
}

/// A large record is written in two pieces. What was synced between them is the first piece, and no
/// record: nothing may say later that the log had been on the disk up to there.
#[test]
fn a_sync_in_the_middle_of_a_record_proves_nothing() {
    for seed in 0..100 {
        let disk = SimDisk::new(seed);
        let mut node = open(&disk);
        disk.set_capacity(Some(disk.used_bytes() + FRAME_HEADER_BYTES as u64));
        let record = Record::Large(LargeRecord::new(vec![1; 3000]));
        let lsn = node.appender.append_record(record, 7);
        node.appender.publish();
        assert!(node.log.write_published().is_err());
        node.log.want_durable(lsn);
        node.log.step();
        assert!(node.log.durable() < lsn);
        disk.set_capacity(None);
        node.clock.advance_ns(SECOND_NS);
        // The rest is written, and what the log says of itself; a crash takes back any part of
        // both.
        disk.cut_power_after(2 + seed % 4);
        node.log.step();
        drop(node);
        disk.power_cut();
        let node = try_open(&disk, small(), 1);
        assert!(node.is_ok(), "seed {seed}: {}", node.err().unwrap());
    }
}

/// Fills the disk with the log of one record; the number of the last one that was taken.
fn fill(node: &mut Node) -> u64 {
    for number in 0.. {
        node.put(&files::put(number));
        let _ = node.log.write_published();
        if !node.log.accepts_writes() {
            return number;
        }
    }
    unreachable!()
}

/// A checkpoint with one record in it, and nothing kept before it.
fn checkpoint(node: &Node, number: u64) -> Result<(), LogError> {
    node.log.turn_segment()?;
    let mut writer = node.log.begin_checkpoint()?;
    let (lsn, hash_last) = (node.log.reserved(), u64::MAX);
    let block = ladon_log::BlockHeader { db: 0, hash_first: 0, hash_last, lsn, keys: 1 };
    writer.block(&block, &files::put(number))?;
    writer.finish(lsn, b"meta")?;
    node.log.delete_obsolete().unwrap();
    Ok(())
}

const CAPACITY: u64 = 200_000;

fn with_reserve() -> LogOptions {
    LogOptions { segment_bytes: 1 << 20, reserve_bytes: 16 << 20, ..small() }
}

#[test]
fn a_disk_filled_by_the_log_comes_back_after_a_checkpoint() {
    let disk = SimDisk::new(11);
    disk.set_capacity(Some(CAPACITY));
    let mut node = try_open(&disk, with_reserve(), 1).unwrap();
    for _ in 0..3 {
        let last = fill(&mut node);
        assert!(node.log.is_out_of_space());
        node.clock.advance_ns(SECOND_NS);
        node.log.step();
        assert_eq!(node.log.written(), node.log.reserved(), "what was taken is written");
        assert!(!node.log.accepts_writes(), "but there is no room for more");
        checkpoint(&node, last).unwrap();
        node.clock.advance_ns(SECOND_NS);
        node.log.step();
        assert!(node.log.accepts_writes(), "the log is gone, and so is the want of room");
        assert!(disk.used_bytes() < CAPACITY / 4);
    }
}

#[test]
fn a_full_disk_comes_back_after_a_restart_too() {
    for seed in 0..20 {
        let disk = SimDisk::new(seed);
        disk.set_capacity(Some(CAPACITY));
        let mut node = try_open(&disk, with_reserve(), 1).unwrap();
        let last = fill(&mut node);
        // Killed at once, after a while, or in the middle of the checkpoint.
        if seed % 3 > 0 {
            node.clock.advance_ns(SECOND_NS);
            node.log.step();
        }
        if seed % 3 > 1 {
            node.log.turn_segment().unwrap();
            let mut writer = node.log.begin_checkpoint().unwrap();
            let (lsn, hash_last) = (node.log.reserved(), u64::MAX);
            let block = ladon_log::BlockHeader { db: 0, hash_first: 0, hash_last, lsn, keys: 1 };
            writer.block(&block, &vec![0; 4_000]).unwrap();
            std::mem::forget(writer);
        }
        drop(node);
        disk.kill();
        let mut node = try_open(&disk, with_reserve(), 1)
            .unwrap_or_else(|error| panic!("seed {seed}: the disk is full, and {error}"));
        checkpoint(&node, last).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        node.clock.advance_ns(SECOND_NS);
        node.log.step();
        let lsn = node.put(&files::put(1));
        node.log.make_durable(lsn).unwrap();
        assert!(node.log.accepts_writes() && disk.used_bytes() < CAPACITY / 4, "seed {seed}");
    }
}

#[test]
fn a_log_that_takes_no_records_holds_nobody_back() {
    let disk = SimDisk::new(12);
    let options = LogOptions { backlog_bytes_max: 1000, ..small() };
    let mut node = try_open(&disk, options, 1).unwrap();
    disk.set_capacity(Some(disk.used_bytes()));
    for _ in 0..20 {
        node.put(&[7; 100]);
    }
    assert!(node.log.is_backlogged());
    assert!(node.log.write_published().is_err());
    assert!(node.log.backlog_bytes() > 1000);
    assert!(!node.log.is_backlogged(), "writes are refused, and nothing else has to wait");
    disk.set_capacity(None);
    node.clock.advance_ns(SECOND_NS);
    node.log.step();
    assert!(node.log.accepts_writes() && !node.log.is_backlogged());
}

fn data_dir(disk: &SimDisk, node_id: u16) -> Result<DataDir, OpenError> {
    let options = LogOptions { node_id, ..small() };
    let clock = Arc::new(ManualClock::default());
    DataDir::open(Arc::new(disk.clone()), clock, Path::new(DIR), options, 77)
}

#[test]
fn a_directory_keeps_its_lock_its_seed_and_its_node() {
    let disk = SimDisk::new(5);
    let dir = data_dir(&disk, 3).unwrap();
    assert_eq!(dir.hash_seed(), 77);
    let Err(OpenError::Locked(locked)) = data_dir(&disk, 3) else { panic!("not locked") };
    assert_eq!(locked, Path::new(DIR));
    drop(dir);
    let Err(error) = data_dir(&disk, 4) else { panic!("another node's directory") };
    assert!(error.to_string().contains("belongs to node 3"), "{error}");
    disk.power_cut();
    let clock = Arc::new(ManualClock::default());
    let options = LogOptions { node_id: 3, ..small() };
    let reopened = DataDir::open(Arc::new(disk.clone()), clock, Path::new(DIR), options, 1);
    assert_eq!(reopened.unwrap().hash_seed(), 77);
}

/// Raises the format number in a file's header and makes the checksum right again.
fn make_newer(disk: &SimDisk, path: &Path) {
    let mut bytes = disk.contents(path).unwrap();
    bytes[8] += 1;
    let crc = ladon_log::crc32c(&bytes[..60]);
    bytes[60..64].copy_from_slice(&crc.to_le_bytes());
    disk.set_contents(path, &bytes);
}

#[test]
fn files_of_a_newer_version_are_refused_by_name() {
    let disk = SimDisk::new(6);
    let mut node = open(&disk);
    let lsn = node.put(b"x");
    let info = node.log.begin_checkpoint().unwrap().finish(lsn, b"").unwrap();
    drop(node);
    let segment = ladon_log::segment::segment_path(Path::new(DIR), Lsn::ZERO);
    // A segment has the older of two formats until there are entries.
    make_newer(&disk, &segment);
    for (path, newer) in [(info.path, 2), (segment, 3), (Path::new(DIR).join("meta"), 2)] {
        let before = disk.contents(&path).unwrap();
        make_newer(&disk, &path);
        let Err(error) = try_open(&disk, small(), 1) else { panic!("{path:?} accepted") };
        let told = error.to_string();
        let format = format!("has format {newer}");
        assert!(told.contains(&format) && told.contains(&*path.to_string_lossy()), "{told}");
        assert!(verify::verify_dir(&disk, Path::new(DIR)).is_err());
        disk.set_contents(&path, &before);
    }
    assert!(try_open(&disk, small(), 1).is_ok());
}

#[test]
fn data_without_its_meta_file_is_refused() {
    let disk = SimDisk::new(7);
    drop(open(&disk));
    disk.remove(&Path::new(DIR).join("meta")).unwrap();
    assert!(matches!(data_dir(&disk, 0), Err(OpenError::Damaged(_))));
}

#[test]
fn a_file_of_another_directory_is_refused() {
    let (disk, other) = (SimDisk::new(8), SimDisk::new(9));
    drop(open(&disk));
    let options = LogOptions { node_id: 0, ..small() };
    let clock = Arc::new(ManualClock::default());
    let dir = DataDir::open(Arc::new(other.clone()), clock, Path::new(DIR), options, 99).unwrap();
    drop(dir.recover(&MemorySink::new(1), 1, &|_| {}).unwrap());
    let segment = ladon_log::segment::segment_path(Path::new(DIR), Lsn::ZERO);
    disk.set_contents(&segment, &other.contents(&segment).unwrap());
    let Err(RecoverError::Damaged(damage)) = try_open(&disk, small(), 1) else { panic!() };
    assert!(damage.found.contains("another data directory"), "{damage}");
}

#[test]
fn check_reads_beside_a_running_server() {
    let disk = SimDisk::new(10);
    let mut node = open(&disk);
    for number in 0..30 {
        node.put(&files::put(number));
    }
    let durable = node.put(&files::put(30));
    node.log.make_durable(durable).unwrap();
    // Behind that the server is writing: a record is there in part, another one whole.
    let path = ladon_log::segment::segment_path(Path::new(DIR), Lsn::ZERO);
    node.put(&files::put(31));
    node.log.write_published().unwrap();
    let report = verify::verify_dir(&disk, Path::new(DIR)).unwrap();
    assert!(report.in_use && report.is_sound() && report.torn.is_none(), "{report:?}");
    assert!(report.end >= durable && report.behind_the_end.is_empty());
    // Damage in what is on the disk is damage all the same.
    let mut bytes = disk.contents(&path).unwrap();
    bytes[200] ^= 1;
    disk.set_contents(&path, &bytes);
    let report = verify::verify_dir(&disk, Path::new(DIR)).unwrap();
    assert!(report.in_use && !report.damages.is_empty());
    bytes[200] ^= 1;
    disk.set_contents(&path, &bytes);
    drop(node);
    let report = verify::verify_dir(&disk, Path::new(DIR)).unwrap();
    assert!(!report.in_use && report.is_sound());
}

/// Whether a log notices that another program has taken files away, and acknowledges nothing more.
fn notices_removal(planted: Planted, syncs: bool, taken: &str) -> bool {
    let disk = SimDisk::new(5);
    let mut node = try_open(&disk, LogOptions { planted, ..small() }, 1).unwrap();
    // Three segments; the checkpoint needs two of them.
    let first = node.put(&[1; 900]);
    node.log.make_durable(first).unwrap();
    let second = node.put(&[2; 600]);
    node.log.begin_checkpoint().unwrap().finish(second, b"").unwrap();
    let third = node.put(&[3; 600]);
    node.log.make_durable(third).unwrap();
    assert_eq!(node.log.delete_obsolete().unwrap().segments, 1);
    for file in disk.list(Path::new(DIR)).unwrap() {
        if file.to_str().unwrap().ends_with(taken) {
            disk.take_away(&file);
        }
    }
    node.clock.advance_ns(SECOND_NS);
    let last = node.put(&[4; 10]);
    if syncs {
        node.log.want_durable(last);
    }
    node.log.step();
    let LogState::SyncFailed { error } = node.log.state() else {
        assert!(node.log.accepts_writes() && (!syncs || node.log.durable() >= last));
        return false;
    };
    assert!(matches!(&error, LogError::Removed { .. }), "{error}");
    assert!(!node.log.accepts_writes() && node.log.durable() < last);
    assert!(node.log.make_durable(last).is_err() && node.log.begin_checkpoint().is_err());
    true
}

#[test]
fn files_that_are_gone_stop_the_log() {
    // The end of their names.
    for taken in ["", ".log", ".checkpoint", "meta"] {
        for syncs in [false, true] {
            assert!(notices_removal(Planted::Nothing, syncs, taken), "{taken} {syncs}");
            assert!(!notices_removal(Planted::UnseenRemoval, syncs, taken), "{taken} {syncs}");
        }
    }
    for syncs in [false, true] {
        assert!(!notices_removal(Planted::Nothing, syncs, "none"), "nothing is gone");
    }
}

#[test]
fn a_checkpoint_into_a_directory_without_its_files_fails() {
    let disk = SimDisk::new(6);
    let mut node = open(&disk);
    let lsn = node.put(b"x");
    node.log.make_durable(lsn).unwrap();
    let begun = node.log.begin_checkpoint().unwrap();
    disk.list(Path::new(DIR)).unwrap().iter().for_each(|file| disk.take_away(file));
    let error = begun.finish(lsn, b"").unwrap_err();
    assert!(matches!(error, LogError::Removed { .. }), "{error}");
    assert!(!node.log.accepts_writes() && node.log.last_checkpoint().is_none());
}

/// A power cut takes the names that are not synced, also that of the directory itself.
#[test]
fn a_new_directory_outlives_a_power_cut() {
    let survives = |planted: Planted| {
        (0..20).all(|seed| {
            let disk = SimDisk::new(seed);
            let mut node = try_open(&disk, LogOptions { planted, ..small() }, 1).unwrap();
            let lsn = node.put(b"x");
            node.log.make_durable(lsn).unwrap();
            drop(node);
            disk.power_cut();
            open(&disk).sink.payloads() == [b"x"]
        })
    };
    assert!(survives(Planted::Nothing) && !survives(Planted::UnsyncedDirectory));
}
