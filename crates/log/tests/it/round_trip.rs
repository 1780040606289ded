//! What was appended comes back, through segments, checkpoints and restarts.

use crate::common::*;
use ladon_log::{BlockHeader, Deleted, LogOptions};
use ladon_record::{LargeRecord, Lsn, Record};
use ladon_sim_disk::SimDisk;
use std::time::Duration;

fn payload(number: usize) -> Vec<u8> {
    vec![number as u8; (number * 31) % 400]
}

#[test]
fn records_come_back_in_order_after_a_clean_end() {
    let disk = SimDisk::new(1);
    let mut expected = Vec::new();
    for restart in 0..4 {
        for workers in [1, 3] {
            let mut node = try_open(&disk, small(), workers).unwrap();
            assert_eq!(node.sink.payloads(), expected);
            assert_eq!(node.report.torn, None);
            assert_eq!(node.report.clean, !expected.is_empty());
            assert_eq!(node.report.records, expected.len() as u64);
            for number in 0..20 {
                expected.push(payload(number + restart));
                node.put(&payload(number + restart));
            }
            node.log.close().unwrap();
            assert_eq!(node.log.durable(), node.log.reserved());
            drop(node);
            disk.power_cut();
        }
    }
}

#[test]
fn gate_positions_follow_write_and_sync() {
    let disk = SimDisk::new(2);
    let mut node = open(&disk);
    let lsn = node.appender.append(b"record", 7);
    assert_eq!(node.log.write_published().unwrap(), Lsn::ZERO, "not published yet");
    assert_eq!(node.log.backlog_bytes(), lsn.0);
    node.appender.publish();
    assert_eq!(node.log.write_published().unwrap(), lsn);
    assert_eq!((node.log.written(), node.log.durable()), (lsn, Lsn::ZERO));
    node.log.step();
    assert_eq!(node.log.durable(), Lsn::ZERO, "nobody wants it");
    node.log.want_durable(lsn);
    assert!(node.log.step().worked);
    assert_eq!(node.log.durable(), lsn);
    // The sync mark is written, and is no reason for another sync.
    assert!(node.log.step().worked);
    assert!(!node.log.step().worked);
    assert_eq!(node.log.durable(), lsn);
}

#[test]
fn a_large_record_is_left_to_the_writer_and_reads_back() {
    let disk = SimDisk::new(2);
    let mut node = open(&disk);
    let changes: Vec<u8> = (0..3_000_000u32).map(|n| (n % 253) as u8).collect();
    let record = LargeRecord::new(changes.clone());
    node.appender.append(b"before", 7);
    node.appender.append_record(Record::Large(record), 7);
    let lsn = node.appender.append_record(Record::Changes(b"behind"), 7);
    node.appender.publish();
    assert_eq!(node.log.write_published().unwrap(), Lsn::ZERO, "too much for this thread");
    assert!(node.log.step().worked);
    assert_eq!(node.log.written(), lsn);
    drop(node);
    disk.kill();
    assert_eq!(open(&disk).sink.payloads(), [&b"before"[..], &changes, b"behind"]);
}

#[test]
fn one_large_record_is_no_backlog_and_several_are() {
    let disk = SimDisk::new(2);
    let options =
        LogOptions { chunk_bytes: 1024, backlog_bytes_max: 1000, ..LogOptions::default() };
    let mut node = try_open(&disk, options, 1).unwrap();
    node.appender.append_record(Record::Large(LargeRecord::new(vec![1; 6000])), 7);
    assert!(!node.log.is_backlogged());
    node.appender.append_record(Record::Large(LargeRecord::new(vec![1; 6000])), 7);
    assert!(node.log.is_backlogged());
    node.appender.publish();
    node.log.step();
    assert!(!node.log.is_backlogged());
    node.appender.append(&[1; 2000], 7);
    assert!(node.log.is_backlogged());
}

#[test]
fn everysec_syncs_once_a_second_while_there_is_something() {
    let disk = SimDisk::new(3);
    let mut node = open(&disk);
    node.log.set_sync_every(Some(std::time::Duration::from_secs(1)));
    let first = node.put(b"a");
    node.log.step();
    assert_eq!(node.log.durable(), first, "the last sync is long ago");
    let second = node.put(b"b");
    assert_eq!(node.log.step().due_in_ns, Some(SECOND_NS));
    assert_eq!(node.log.durable(), first);
    node.clock.advance_ns(SECOND_NS);
    node.log.step();
    assert_eq!(node.log.durable(), second);
    node.clock.advance_ns(5 * SECOND_NS);
    node.log.step();
    let step = node.log.step();
    assert!(!step.worked && step.due_in_ns.is_none(), "idle: {step:?}");
}

/// A connection may ask for `everysec` where the log has no clock of its own.
/// The writer is woken for what it has to sync within the second, and sleeps beside it no longer.
#[test]
fn a_record_behind_a_sync_mark_wakes_the_writer() {
    let mut node = open(&SimDisk::new(14));
    node.log.set_sync_every(Some(Duration::from_secs(1)));
    let lsn = node.put(b"a");
    node.log.write_published().unwrap();
    while node.log.durable() < lsn || !node.log.is_resting() || node.log.has_unwritten() {
        node.log.work_then_rest();
    }
    // By now only the mark of that sync is written and not synced, which is no reason for another.
    node.log.work_then_rest();
    assert!(node.log.is_resting());
    node.clock.advance_ns(SECOND_NS);
    node.put(b"b");
    node.log.write_published().unwrap();
    assert!(!node.log.is_resting(), "its second is over");
}

#[test]
fn what_is_promised_soon_is_synced_within_a_second_and_the_rest_is_not() {
    let disk = SimDisk::new(3);
    let mut node = open(&disk);
    let first = node.put(b"a");
    node.clock.advance_ns(5 * SECOND_NS);
    assert_eq!(node.log.step().due_in_ns, None, "nobody wants it");
    node.log.sync_soon(first);
    node.log.step();
    assert_eq!(node.log.durable(), first, "the last sync is long ago");
    let second = node.put(b"b");
    node.log.sync_soon(second);
    let third = node.put(b"c");
    assert_eq!(node.log.step().due_in_ns, Some(SECOND_NS));
    node.log.set_sync_every(None);
    node.clock.advance_ns(SECOND_NS);
    node.log.step();
    assert_eq!(node.log.durable(), third, "what else is there goes with it");
    node.put(b"d");
    node.clock.advance_ns(5 * SECOND_NS);
    node.log.step();
    assert_eq!(node.log.step().due_in_ns, None);
    assert_eq!(node.log.durable(), third);
}

#[test]
fn a_record_far_larger_than_chunk_and_segment() {
    let disk = SimDisk::new(4);
    let options = LogOptions { segment_bytes: 1 << 20, ..LogOptions::default() };
    let huge: Vec<u8> = (0..40usize << 20).map(|at| (at % 251) as u8).collect();
    let mut node = try_open(&disk, options, 1).unwrap();
    node.put(b"before");
    node.put(&huge);
    node.put(b"after");
    node.log.close().unwrap();
    drop(node);
    let node = try_open(&disk, options, 2).unwrap();
    assert_eq!(node.sink.payloads(), [b"before".to_vec(), huge, b"after".to_vec()]);
}

fn block(lsn: Lsn, first: u64, last: u64) -> BlockHeader {
    BlockHeader { db: 0, hash_first: first, hash_last: last, lsn, keys: 3 }
}

#[test]
fn a_checkpoint_replaces_the_log_before_it() {
    let disk = SimDisk::new(5);
    let mut node = open(&disk);
    for number in 0..30 {
        node.put(&payload(number));
    }
    let mut writer = node.log.begin_checkpoint().unwrap();
    let begin = writer.begin_lsn();
    let during = node.put(b"during");
    writer.block(&block(begin, 0, 99), b"low keys").unwrap();
    writer.block(&block(during, 100, u64::MAX), &vec![9; 3 << 20]).unwrap();
    let after = node.put(b"after");
    let info = writer.finish(after, b"select map").unwrap();
    assert_eq!((info.begin, info.newest, info.keys, info.blocks), (begin, after, 6, 2));
    assert!(node.log.durable() >= after, "the log is durable up to what the checkpoint shows");
    let segments_before = node.log.oldest();
    let deleted = node.log.delete_obsolete().unwrap();
    assert!(deleted.segments >= 5 && deleted.checkpoints == 0, "{deleted:?}");
    assert!(segments_before < node.log.oldest() && node.log.oldest() <= begin);
    assert_eq!(node.log.delete_obsolete().unwrap(), Deleted::default());
    drop(node);
    disk.power_cut();

    let node = try_open(&disk, small(), 2).unwrap();
    assert_eq!(node.sink.payloads(), [b"during".to_vec(), b"after".to_vec()]);
    let mut blocks = node.sink.blocks.lock().unwrap().clone();
    blocks.sort_by_key(|(header, _)| header.hash_first);
    assert_eq!(blocks[0], (block(begin, 0, 99), b"low keys".to_vec()));
    assert_eq!(blocks[1], (block(during, 100, u64::MAX), vec![9; 3 << 20]));
    assert_eq!(*node.sink.metas.lock().unwrap(), [(after, b"select map".to_vec())]);
    assert_eq!(node.report.checkpoint.as_ref(), Some(&info));
    assert_eq!(node.log.last_checkpoint(), Some(info));
}

#[test]
fn a_block_in_pieces_reads_back_as_any_other() {
    let disk = SimDisk::new(7);
    let node = open(&disk);
    let mut writer = node.log.begin_checkpoint().unwrap();
    let begin = writer.begin_lsn();
    let pieces = [&b"a"[..], b"", &[7; 3 << 20], &[8; 100], &[9; 40 << 10]];
    let whole = pieces.concat();
    writer.block(&block(begin, 0, 9), b"before").unwrap();
    let give = |take: &mut dyn FnMut(&[u8])| pieces.iter().for_each(|piece| take(piece));
    writer.block_in_pieces(&block(begin, 10, 19), whole.len() as u64, give).unwrap();
    writer.block(&block(begin, 20, u64::MAX), b"after").unwrap();
    let info = writer.finish(begin, b"").unwrap();
    assert_eq!((info.keys, info.blocks), (9, 3));
    drop(node);
    disk.power_cut();

    let node = try_open(&disk, small(), 1).unwrap();
    let blocks = node.sink.blocks.lock().unwrap().clone();
    let payloads: Vec<&[u8]> = blocks.iter().map(|(_, payload)| &payload[..]).collect();
    assert_eq!(payloads, [b"before", &whole[..], b"after"]);
    assert_eq!(node.report.checkpoint, Some(info));
}

#[test]
fn a_pin_and_an_unfinished_checkpoint_keep_their_segments() {
    let disk = SimDisk::new(6);
    let mut node = open(&disk);
    for number in 0..30 {
        node.put(&payload(number));
    }
    let pin = node.log.pin(Lsn(1200));
    let checkpoint = |node: &Node| {
        let writer = node.log.begin_checkpoint().unwrap();
        let begin = writer.begin_lsn();
        writer.finish(begin, b"").unwrap()
    };
    let first = checkpoint(&node);
    node.log.delete_obsolete().unwrap();
    assert!(node.log.oldest() <= Lsn(1200));
    drop(pin);
    let unfinished = node.log.begin_checkpoint().unwrap();
    for number in 0..30 {
        node.put(&payload(number));
    }
    let second = checkpoint(&node);
    assert!(second.begin > first.begin);
    assert_eq!(node.log.delete_obsolete().unwrap().checkpoints, 1);
    assert!(node.log.oldest() <= unfinished.begin_lsn());
    unfinished.abort();
    node.log.delete_obsolete().unwrap();
    assert!(node.log.oldest() > first.begin);
    let files = ladon_platform::Disk::list(&disk, DIR.as_ref()).unwrap();
    assert!(files.iter().all(|file| !file.to_string_lossy().ends_with(".tmp")), "{files:?}");
}
