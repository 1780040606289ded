//! Every interleaving (up to a bound) of appending, publishing, writing, syncing, waiting and
//! resting.
//!
//! `RUSTFLAGS="--cfg loom" cargo test --release -p ladon-log --test it`; the chunk's bytes are
//! watched one by one, so a byte that is read before it is published fails here.

use crate::common::{DIR, ManualClock, MemorySink};
use ladon_log::{DataDir, Log, LogOptions};
use ladon_record::{LargeRecord, Lsn, Record, RecordPart};
use ladon_sim_disk::SimDisk;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

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
        let waiter = {
            let woken = woken.clone();
            log.add_waiter(Arc::new(move || woken.store(true, Ordering::SeqCst)))
        };
        let lsn = batch(&log, &[b"x"]);
        let other = {
            let log = log.clone();
            thread::spawn(move || {
                log.want_durable(lsn);
                log.step();
            })
        };
        let reached = waiter.await_durable(lsn);
        other.join().unwrap();
        assert!(log.durable() >= lsn);
        assert!(reached || woken.load(Ordering::SeqCst));
    });
}

/// A record is written beside a background writer that goes to rest, and `everysec`'s last second
/// was over long ago: the writer has seen the record, or is woken.
fn sees_what_is_written_beside_its_rest(begin: fn(&Log), promise: fn(&Log, Lsn)) {
    model(move || {
        let disk = SimDisk::new(5);
        let (log, _) = open(&disk, 64, 1 << 20);
        begin(&log);
        let other = {
            let log = log.clone();
            thread::spawn(move || {
                let lsn = batch(&log, &[b"x"]);
                log.write_published().unwrap();
                promise(&log, lsn);
                lsn
            })
        };
        let mut rest = log.work_then_rest();
        let lsn = other.join().unwrap();
        while !log.is_resting() && log.durable() < lsn {
            rest = log.work_then_rest();
        }
        // After a nap it looks by itself.
        let naps = rest <= Duration::from_millis(2);
        assert!(log.durable() >= lsn || naps, "it sleeps for {rest:?}");
    });
}

#[test]
fn a_writer_at_rest_overlooks_no_promised_sync() {
    sees_what_is_written_beside_its_rest(|_| {}, |log, lsn| log.sync_soon(lsn));
}

#[test]
fn a_writer_at_rest_overlooks_nothing_that_its_timer_is_for() {
    let begin = |log: &Log| log.set_sync_every(Some(Duration::from_secs(1)));
    sees_what_is_written_beside_its_rest(begin, |_, _| {});
}

/// A publisher sees that somebody waits and writes, or the waiting thread sees what is published.
#[test]
fn a_wait_that_begins_beside_a_publication_is_served() {
    model(|| {
        let disk = SimDisk::new(6);
        let (log, _) = open(&disk, 64, 1 << 20);
        let woken = Arc::new(AtomicBool::new(false));
        let waiter = {
            let woken = woken.clone();
            log.add_waiter(Arc::new(move || woken.store(true, Ordering::SeqCst)))
        };
        let mut appender = log.appender();
        let lsn = appender.append_record(Record::Changes(b"x"), 1);
        let other = {
            let log = log.clone();
            thread::spawn(move || {
                // As an IO thread that registers what its connections wait for.
                waiter.await_written(lsn)
                    || log.has_unwritten() && log.write_published().unwrap() >= lsn
            })
        };
        appender.publish_in_between();
        let reached = other.join().unwrap();
        assert!(log.written() >= lsn, "neither has written it");
        assert!(reached || woken.load(Ordering::SeqCst), "nobody has said so");
    });
}

/// A wait that is replaced in the moment in which it is served leaves the count of waits right.
#[test]
fn a_wait_is_counted_once() {
    model(|| {
        let disk = SimDisk::new(7);
        let (log, _) = open(&disk, 64, 1 << 20);
        let waiter = log.add_waiter(Arc::new(|| {}));
        let first = batch(&log, &[b"x"]);
        assert!(!waiter.await_written(first));
        let other = {
            let log = log.clone();
            thread::spawn(move || log.write_published().unwrap())
        };
        let second = batch(&log, &[b"y"]);
        waiter.await_written(second);
        other.join().unwrap();
        // It waits, and is seen to wait: an LSN that is not reached is written in between.
        let awaits = log.written() < second;
        let mut appender = log.appender();
        let last = appender.append_record(Record::Changes(b"z"), 1);
        appender.publish_in_between();
        assert_eq!(log.written() >= last, awaits);
        // By now nobody waits.
        log.write_published().unwrap();
        let last = appender.append_record(Record::Changes(b"z"), 1);
        appender.publish_in_between();
        assert!(log.written() < last, "somebody is still counted");
    });
}
