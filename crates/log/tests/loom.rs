//! Every interleaving (up to a bound) of appending, publishing, writing, syncing and waiting.
//!
//! `RUSTFLAGS="--cfg loom" cargo test --release -p ladon-log --test loom`; the chunk's bytes are
//! watched one by one, so a byte that is read before it is published fails here.
#![cfg(loom)]

mod common;

use common::{DIR, ManualClock, MemorySink};
use ladon_log::{DataDir, Log, LogOptions};
use ladon_model::{LargeRecord, Lsn, Record, RecordPart};
use ladon_sim_disk::SimDisk;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;
use std::path::Path;
use std::sync::Arc;

fn open(disk: &SimDisk, chunk_bytes: usize, segment_bytes: u64) -> (Arc<Log>, MemorySink) {
    let options = LogOptions { chunk_bytes, segment_bytes, ..LogOptions::default() };
    let clock = Arc::new(ManualClock::default());
    let disk = Arc::new(disk.clone());
    let dir = DataDir::open(disk, clock, Path::new(DIR), options, 42).unwrap();
    let sink = MemorySink::new(1);
    let (log, _) = dir.recover(&sink, 1, &|_| {}).unwrap();
    (log, sink)
}

fn model(check: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    // Almost every race shows with two or three forced switches; more takes hours.
    builder.preemption_bound = builder.preemption_bound.or(Some(3));
    builder.check(check);
}

fn batch(log: &Arc<Log>, payloads: &[&[u8]]) -> Lsn {
    batch_of(log, payloads.iter().map(|payload| Record::Changes(payload)))
}

fn batch_of<'a>(log: &Arc<Log>, records: impl IntoIterator<Item = Record<'a>>) -> Lsn {
    let mut appender = log.appender();
    let mut last = Lsn::ZERO;
    for record in records {
        last = appender.append_record(record, 1);
    }
    appender.publish();
    last
}

/// What each thread published is written once both are done, though each made only one attempt and
/// may have found the other at it.
#[test]
fn two_threads_leave_nothing_unwritten() {
    model(|| {
        let disk = SimDisk::new(1);
        let (log, _) = open(&disk, 64, 1 << 20);
        let other = {
            let log = log.clone();
            thread::spawn(move || {
                batch(&log, &[b"a"]);
                log.write_published().unwrap();
            })
        };
        batch(&log, &[b"b"]);
        log.write_published().unwrap();
        other.join().unwrap();
        assert_eq!(log.written(), log.reserved());
        drop(log);
        disk.kill();
        let (_, sink) = open(&disk, 64, 1 << 20);
        let mut payloads = sink.payloads();
        payloads.sort();
        assert_eq!(payloads, [b"a", b"b"]);
    });
}

/// A writer beside appenders sees whole frames only, in tiny chunks that are reused and in segments
/// that turn.
#[test]
fn the_writer_sees_whole_frames_only() {
    model(|| {
        let disk = SimDisk::new(2);
        let (log, _) = open(&disk, 30, 64 + 30);
        let other = {
            let log = log.clone();
            thread::spawn(move || batch(&log, &[b"one", b"two"]))
        };
        log.step();
        let last = batch(&log, &[b"three"]);
        log.step();
        let last = last.max(other.join().unwrap());
        log.step();
        assert!(log.written() >= last);
        drop(log);
        disk.kill();
        let (_, sink) = open(&disk, 30, 64 + 30);
        let payloads = sink.payloads();
        let place = |wanted: &[u8]| payloads.iter().position(|payload| payload == wanted);
        assert_eq!(payloads.len(), 3);
        assert!(place(b"one") < place(b"two") && place(b"three").is_some());
    });
}

/// A record that brings its memory is written whole, header first, beside appenders and a writer
/// that releases what it has written; what comes behind it begins in memory of its own.
#[test]
fn a_large_record_is_written_whole() {
    model(|| {
        let disk = SimDisk::new(4);
        let (log, _) = open(&disk, 32, 1 << 20);
        let other = {
            let log = log.clone();
            thread::spawn(move || {
                let own = RecordPart::Own((*b"lar").into());
                let shared = RecordPart::Shared(std::sync::Arc::new(b"ge".to_vec()));
                let large = Record::Large(LargeRecord::of(vec![own, shared]));
                batch_of(&log, [large, Record::Changes(b"a")]);
                log.write_published().unwrap();
            })
        };
        batch(&log, &[b"b"]);
        log.write_published().unwrap();
        other.join().unwrap();
        assert_eq!(log.written(), log.reserved());
        drop(log);
        disk.kill();
        let (_, sink) = open(&disk, 32, 1 << 20);
        let payloads = sink.payloads();
        let place = |wanted: &[u8]| payloads.iter().position(|payload| payload == wanted);
        assert_eq!(payloads.len(), 3);
        assert!(place(b"large") < place(b"a") && place(b"b").is_some());
    });
}

/// Who waits for a position is woken, or finds that it is reached.
#[test]
fn no_wake_up_is_lost() {
    model(|| {
        let disk = SimDisk::new(3);
        let (log, _) = open(&disk, 64, 1 << 20);
        let woken = Arc::new(AtomicBool::new(false));
        let listener = {
            let woken = woken.clone();
            log.add_listener(Arc::new(move || woken.store(true, Ordering::SeqCst)))
        };
        let lsn = batch(&log, &[b"x"]);
        let other = {
            let log = log.clone();
            thread::spawn(move || {
                log.want_durable(lsn);
                log.step();
            })
        };
        let reached = listener.await_durable(lsn);
        other.join().unwrap();
        assert!(log.durable() >= lsn);
        assert!(reached || woken.load(Ordering::SeqCst));
    });
}
