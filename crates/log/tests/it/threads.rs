//! Real threads on a real disk: nobody waits for ever, nothing is lost or out of order.

use crate::common::MemorySink;
use ladon_log::{DataDir, Log, LogOptions};
use ladon_platform::{SystemClock, SystemDisk};
use ladon_record::{Gate, LargeRecord, Lsn, Record};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const THREADS: u64 = 3;
const BATCHES: u64 = 150;

fn open(path: &Path, workers: usize) -> (Arc<Log>, MemorySink) {
    let options = LogOptions { segment_bytes: 50_000, chunk_bytes: 4096, ..LogOptions::default() };
    let clock = Arc::new(SystemClock);
    let dir = DataDir::open(Arc::new(SystemDisk), clock, path, options, 42).unwrap();
    let sink = MemorySink::new(workers);
    let (log, _) = dir.recover(&sink, workers, &|_| {}).unwrap();
    (log, sink)
}

/// One IO thread: batches of records, each waited for at its gate.
fn work(log: &Arc<Log>, thread: u64, gate: Gate) {
    let mut appender = log.appender();
    let this = std::thread::current();
    let waiter = log.add_waiter(Arc::new(move || this.unpark()));
    for batch in 0..BATCHES {
        let mut last = Lsn::ZERO;
        for record in 0..=batch % 5 {
            let number = thread << 32 | batch << 8 | record;
            let mut payload = number.to_le_bytes().to_vec();
            payload.resize(8 + (number % 700) as usize, 1);
            // Every third brings its memory with it.
            last = match number % 3 {
                0 => appender.append_record(Record::Large(LargeRecord::new(payload)), 1),
                _ => appender.append(&payload, 1),
            };
        }
        appender.publish();
        match gate {
            Gate::None => log.write_soon(),
            Gate::Write | Gate::EverySec => drop(log.write_published().unwrap()),
            Gate::Fsync => log.want_durable(last),
            Gate::Quorum => log.want_committed(last),
        }
        let began = Instant::now();
        let passed = || match gate {
            Gate::Fsync => waiter.await_durable(last),
            Gate::Quorum => waiter.await_committed(last),
            _ => waiter.await_written(last),
        };
        while !passed() {
            std::thread::park_timeout(Duration::from_secs(20));
            assert!(began.elapsed() < Duration::from_secs(20), "a lost wake-up at {gate}");
        }
    }
    log.remove_waiter(&waiter);
}

/// A group that commits whatever it is asked for.
fn spawn_group(log: &Arc<Log>, is_over: Arc<AtomicBool>) -> JoinHandle<()> {
    let group = std::thread::spawn({
        let log = log.clone();
        move || {
            while !is_over.load(Ordering::SeqCst) {
                std::thread::park();
                log.advance_committed(log.wanted_committed());
            }
        }
    });
    let thread = group.thread().clone();
    log.belongs_to_group(Arc::new(move || thread.unpark()));
    group
}

#[test]
fn who_waits_for_other_members_is_woken_when_they_have_more() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = open(dir.path(), 1);
    let woken = Arc::new(AtomicUsize::new(0));
    let waiter = log.add_waiter({
        let woken = woken.clone();
        Arc::new(move || {
            woken.fetch_add(1, Ordering::SeqCst);
        })
    });
    assert_eq!(log.others_have(Lsn::ZERO), 0);
    log.others_reach(&[Lsn(10), Lsn(30)]);
    let have = |lsn| log.others_have(Lsn(lsn));
    assert_eq!((have(10), have(11), have(30), have(31)), (2, 1, 1, 0));
    assert!(waiter.await_others(0), "they have changed since");
    assert!(!waiter.await_others(log.others_news()));
    log.others_reach(&[Lsn(10), Lsn(30)]);
    assert_eq!(woken.load(Ordering::SeqCst), 0, "nothing changed");
    // The one that is behind, as well as the one that is ahead.
    log.others_reach(&[Lsn(20), Lsn(30)]);
    log.others_reach(&[Lsn(25), Lsn(30)]);
    assert_eq!(woken.load(Ordering::SeqCst), 1, "once for each request");
    assert!(!waiter.await_others(log.others_news()));
    log.others_reach(&[]);
    assert_eq!((woken.load(Ordering::SeqCst), have(0)), (2, 0));
    log.remove_waiter(&waiter);
}

#[test]
fn every_gate_opens_for_every_thread() {
    for gate in Gate::ALL {
        let dir = tempfile::tempdir().unwrap();
        let (log, _) = open(dir.path(), 1);
        let writer = log.spawn_writer().unwrap();
        if gate == Gate::EverySec {
            log.set_sync_every(Some(Duration::from_millis(20)));
        }
        let is_over = Arc::new(AtomicBool::new(false));
        let group = (gate == Gate::Quorum).then(|| spawn_group(&log, is_over.clone()));
        std::thread::scope(|threads| {
            for thread in 0..THREADS {
                let log = &log;
                threads.spawn(move || work(log, thread, gate));
            }
        });
        is_over.store(true, Ordering::SeqCst);
        if let Some(group) = group {
            group.thread().unpark();
            group.join().unwrap();
            assert_eq!(log.committed(), log.wanted_committed());
        }
        let end = log.reserved();
        if gate == Gate::EverySec {
            let began = Instant::now();
            while log.durable() < end && began.elapsed() < Duration::from_secs(10) {
                std::thread::sleep(Duration::from_millis(5));
            }
            assert!(log.durable() >= end);
        }
        writer.stop();
        log.close().unwrap();
        drop(log);
        let (_, sink) = open(dir.path(), 2);
        check(&sink.payloads());
    }
}

/// Every record of every thread, each thread's in its order.
fn check(payloads: &[Vec<u8>]) {
    let mut next = [(0, 0); THREADS as usize];
    for payload in payloads {
        let number = u64::from_le_bytes(*payload.first_chunk().unwrap());
        let (batch, record) = (number >> 8 & 0xff_ffff, number & 0xff);
        let place = &mut next[(number >> 32) as usize];
        assert_eq!(*place, (batch, record));
        *place = if record < batch % 5 { (batch, record + 1) } else { (batch + 1, 0) };
    }
    assert_eq!(next, [(BATCHES, 0); THREADS as usize]);
}
