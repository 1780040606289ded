//! What the tests of this crate share: a clock by hand, a sink that remembers, a node in one
//! struct.
#![allow(dead_code, reason = "each test file uses its own part")]

pub mod files;

use ladon_log::reader::Batch;
use ladon_log::{
    Appender, BlockHeader, DataDir, Log, LogOptions, RecoverError, RecoveryReport, RecoverySink,
};
use ladon_platform::Clock;
use ladon_record::Lsn;
use ladon_sim_disk::SimDisk;
use std::path::Path;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

pub const DIR: &str = "/data";
pub const SECOND_NS: u64 = 1_000_000_000;

/// Moves only when told.
#[derive(Default)]
pub struct ManualClock(AtomicU64);

impl ManualClock {
    pub fn advance_ns(&self, nanos: u64) {
        self.0.fetch_add(nanos, Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn unix_us(&self) -> u64 {
        1_800_000_000_000_000 + self.0.load(Ordering::Relaxed) / 1000
    }

    fn monotonic_ns(&self) -> u64 {
        10 * SECOND_NS + self.0.load(Ordering::Relaxed)
    }
}

type Kept<H> = Mutex<Vec<(H, Vec<u8>)>>;

/// Remembers everything, per worker.
pub struct MemorySink {
    pub records: Vec<Kept<Lsn>>,
    pub blocks: Kept<BlockHeader>,
    pub metas: Kept<Lsn>,
}

impl MemorySink {
    pub fn new(workers: usize) -> MemorySink {
        MemorySink {
            records: (0..workers).map(|_| Mutex::default()).collect(),
            blocks: Mutex::default(),
            metas: Mutex::default(),
        }
    }

    /// The records, after making sure that all workers saw the same.
    pub fn payloads(&self) -> Vec<Vec<u8>> {
        let first = self.records[0].lock().unwrap().clone();
        for other in &self.records[1..] {
            assert_eq!(*other.lock().unwrap(), first);
        }
        assert!(first.is_sorted_by(|a, b| a.0 < b.0));
        first.into_iter().map(|(_, payload)| payload).collect()
    }
}

impl RecoverySink for MemorySink {
    fn block(&self, block: &BlockHeader, changes: &[u8]) -> Result<(), String> {
        self.blocks.lock().unwrap().push((*block, changes.to_vec()));
        Ok(())
    }

    fn meta(&self, lsn: Lsn, meta: &[u8]) -> Result<(), String> {
        self.metas.lock().unwrap().push((lsn, meta.to_vec()));
        Ok(())
    }

    fn records(&self, worker: usize, batch: &Batch) -> Result<(), (Lsn, String)> {
        let records = batch.records().map(|(lsn, changes)| (lsn, changes.to_vec()));
        self.records[worker].lock().unwrap().extend(records);
        Ok(())
    }
}

/// Small enough that a test sees several segments and chunks.
pub fn small() -> LogOptions {
    LogOptions {
        segment_bytes: 1000,
        chunk_bytes: 256,
        zero_ahead_bytes: 300,
        ..LogOptions::default()
    }
}

pub struct Node {
    pub log: Arc<Log>,
    pub appender: Appender,
    pub clock: Arc<ManualClock>,
    pub report: RecoveryReport,
    pub sink: MemorySink,
}

/// Opens and recovers `DIR`.
pub fn try_open(disk: &SimDisk, options: LogOptions, workers: usize) -> Result<Node, RecoverError> {
    let clock = Arc::new(ManualClock::default());
    let dir = DataDir::open(Arc::new(disk.clone()), clock.clone(), Path::new(DIR), options, 42);
    let sink = MemorySink::new(workers);
    let dir = dir.map_err(|error| RecoverError::Io {
        doing: "open",
        path: DIR.into(),
        error: std::io::Error::other(error.to_string()),
    })?;
    let (log, report) = dir.recover(&sink, workers, &|_| {})?;
    let appender = log.appender();
    Ok(Node { log, appender, clock, report, sink })
}

pub fn open(disk: &SimDisk) -> Node {
    match try_open(disk, small(), 1) {
        Ok(node) => node,
        Err(error) => panic!("{error}"),
    }
}

impl Node {
    /// Appends and publishes one record.
    pub fn put(&mut self, payload: &[u8]) -> Lsn {
        let lsn = self.appender.append(payload, 7);
        self.appender.publish();
        lsn
    }
}
