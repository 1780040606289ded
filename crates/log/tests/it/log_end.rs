//! `log-end` under crashes: it holds a whole note at any time, and none refuses a good start.
//!
//! Every check is made with a known bug as well, and must fail then: the harness works.

use crate::common::*;
use ladon_log::{LogOptions, Planted, RecoverError};
use ladon_platform::Disk;
use ladon_sim_disk::{Fault, SimDisk};
use std::path::Path;

const SEEDS: u64 = 40;
/// More changes of the disk than a start makes.
const OPERATIONS: u64 = 14;

fn options(planted: Planted) -> LogOptions {
    LogOptions { planted, ..small() }
}

fn start(disk: &SimDisk, planted: Planted) -> Node {
    try_open(disk, options(planted), 1).unwrap_or_else(|error| panic!("{error}"))
}

/// A record that fills most of a segment, synced.
fn put_durably(node: &mut Node, byte: u8) {
    let lsn = node.put(&[byte; 600]);
    node.log.make_durable(lsn).unwrap();
}

/// A second is over: the newest note is synced.
fn let_a_second_pass(node: &Node) {
    node.clock.advance_ns(SECOND_NS);
    node.log.step();
}

/// After all that, a start finds a note and goes on.
fn starts_well(disk: &SimDisk) -> bool {
    try_open(disk, small(), 1).is_ok_and(|node| node.report.log_end_fault.is_none())
}

/// The check holds, and notices the bug.
fn check(planted: Planted, holds: impl Fn(u64, u64, Planted) -> bool) {
    let all = || (0..SEEDS).flat_map(|seed| (1..=OPERATIONS).map(move |at| (seed, at)));
    for (seed, at) in all() {
        assert!(holds(seed, at, Planted::Nothing), "seed {seed}, operation {at}");
    }
    assert!(!all().all(|(seed, at)| holds(seed, at, planted)), "{planted:?} is not noticed");
}

/// A note that could be written in part only is none: the next one goes to its place, not over
/// the only whole one.
#[test]
fn a_torn_note_endangers_no_other() {
    check(Planted::TornNotes, |seed, at, planted| {
        let disk = SimDisk::new(seed);
        let mut node = start(&disk, planted);
        put_durably(&mut node, 1);
        let_a_second_pass(&node);
        let lsn = node.put(b"a");
        node.log.write_published().unwrap();
        // The next write is the note's.
        disk.fail_next(Fault::Write, 1);
        node.log.make_durable(lsn).unwrap();
        let_a_second_pass(&node);
        let lsn = node.put(b"b");
        node.log.write_published().unwrap();
        disk.cut_power_after(at);
        let _ = node.log.make_durable(lsn);
        drop(node);
        disk.power_cut();
        starts_well(&disk)
    });
}

/// What a start reads need not be on the disk: a sync of it may have failed.
#[test]
fn a_note_that_a_failed_sync_has_lost_is_not_relied_on() {
    check(Planted::TrustedNote, |seed, at, planted| {
        let disk = SimDisk::new(seed);
        let mut node = start(&disk, planted);
        put_durably(&mut node, 1);
        let_a_second_pass(&node);
        put_durably(&mut node, 2);
        node.log.write_published().unwrap();
        disk.fail_next(Fault::Sync, 1);
        let_a_second_pass(&node);
        drop(node);
        disk.heal();
        disk.kill();
        disk.cut_power_after(at);
        let _ = try_open(&disk, options(planted), 1);
        disk.power_cut();
        starts_well(&disk)
    });
}

/// A segment whose name is in the page cache only, when the process was killed, is noted once the
/// name is on the disk.
#[test]
fn a_segment_is_noted_once_its_name_is_on_the_disk() {
    check(Planted::NoteOfAnUnsyncedName, |seed, at, planted| {
        let disk = SimDisk::new(seed);
        let mut node = start(&disk, planted);
        put_durably(&mut node, 1);
        node.put(&[2; 600]);
        node.log.write_published().unwrap();
        drop(node);
        disk.kill();
        disk.cut_power_after(at);
        let _ = try_open(&disk, options(planted), 1);
        disk.power_cut();
        starts_well(&disk)
    });
}

/// Removes the newest segment that holds a record; a start then names the loss.
fn lose_the_end(disk: &SimDisk) -> Option<Box<dyn Fn(Planted) -> LogOptions>> {
    let files = disk.list(Path::new(DIR)).unwrap();
    let newest = files.iter().filter(|path| path.extension().is_some_and(|e| e == "log")).max();
    let newest = newest.expect("there is a log").clone();
    disk.remove(&newest).unwrap();
    match try_open(disk, small(), 1) {
        Err(RecoverError::Damaged(damage)) => {
            let accept_loss_after = ladon_log::segment::segment_base(&damage.path);
            Some(Box::new(move |planted| LogOptions { accept_loss_after, ..options(planted) }))
        }
        _ => None,
    }
}

/// Every sync is noted, so that a lost end of the log is noticed.
#[test]
fn a_lost_end_is_noticed() {
    check(Planted::NoNote, |seed, _, planted| {
        let disk = SimDisk::new(seed);
        let mut node = start(&disk, planted);
        put_durably(&mut node, 1);
        put_durably(&mut node, 2);
        drop(node);
        disk.kill();
        lose_the_end(&disk).is_some()
    });
}

/// A user who has accepted the loss of the end need not say so again once the start is done,
/// whenever the power failed meanwhile.
#[test]
fn an_accepted_loss_leaves_no_stale_note() {
    check(Planted::NoNote, |seed, at, planted| {
        let disk = SimDisk::new(seed);
        let mut node = start(&disk, Planted::Nothing);
        put_durably(&mut node, 1);
        put_durably(&mut node, 2);
        let_a_second_pass(&node);
        drop(node);
        disk.kill();
        let accepting = lose_the_end(&disk).expect("it is noticed");
        disk.cut_power_after(at);
        let was_cut = try_open(&disk, accepting(planted), 1).is_err();
        disk.power_cut();
        if was_cut && try_open(&disk, accepting(planted), 1).is_err() {
            return false;
        }
        disk.power_cut();
        starts_well(&disk)
    });
}
