//! How fast recovery reads: `cargo run --release -p ladon-log --example replay_speed`.
//!
//! Writes ten million small records (400 MB) and a checkpoint of as many bytes, then recovers both
//! into a sink that only counts. Everything comes from the page cache: this is the crate's own
//! cost.

use ladon_log::reader::Batch;
use ladon_log::{BlockHeader, DataDir, LogOptions, RecoverySink};
use ladon_platform::{SystemClock, SystemDisk};
use ladon_record::Lsn;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

#[derive(Default)]
struct Count(AtomicU64);

impl RecoverySink for Count {
    fn block(&self, _: &BlockHeader, changes: &[u8]) -> Result<(), String> {
        self.0.fetch_add(changes.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn meta(&self, _: Lsn, _: &[u8]) -> Result<(), String> {
        Ok(())
    }

    fn records(&self, worker: usize, batch: &Batch) -> Result<(), (Lsn, String)> {
        if worker == 0 {
            let bytes: usize = batch.records().map(|(_, changes)| changes.len()).sum();
            self.0.fetch_add(bytes as u64, Ordering::Relaxed);
        }
        Ok(())
    }
}

const RECORDS: usize = 10_000_000;

fn open(path: &Path) -> Result<DataDir, ladon_log::OpenError> {
    DataDir::open(Arc::new(SystemDisk), Arc::new(SystemClock), path, LogOptions::default(), 1)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::temp_dir().join(format!("ladon-replay-speed-{}", std::process::id()));
    let (log, _) = open(&path)?.recover(&Count::default(), 1, &|_| {})?;
    let mut appender = log.appender();
    for record in 0..RECORDS {
        appender.append(&[7; 16], 1);
        if record % 64 == 0 {
            appender.publish();
            log.write_published()?;
        }
    }
    appender.publish();
    log.close()?;
    drop((appender, log));
    for workers in [1, 2] {
        let began = Instant::now();
        let (log, report) = open(&path)?.recover(&Count::default(), workers, &|_| {})?;
        let seconds = began.elapsed().as_secs_f64();
        println!(
            "log, {workers} workers: {:.1} M records/s, {:.0} MB/s",
            report.records as f64 / seconds / 1e6,
            report.log_bytes as f64 / seconds / 1e6
        );
        log.close()?;
    }
    let (log, _) = open(&path)?.recover(&Count::default(), 1, &|_| {})?;
    let mut writer = log.begin_checkpoint()?;
    let lsn = writer.begin_lsn();
    let changes = vec![7; 64 << 10];
    let began = Instant::now();
    for _ in 0..6000 {
        writer.block(
            &BlockHeader { db: 0, hash_first: 0, hash_last: 0, lsn, keys: 3000 },
            &changes,
        )?;
    }
    let info = writer.finish(lsn, b"")?;
    let megabytes = info.bytes as f64 / 1e6;
    println!(
        "checkpoint written and synced: {:.0} MB/s",
        megabytes / began.elapsed().as_secs_f64()
    );
    drop(log);
    for workers in [1, 2] {
        let began = Instant::now();
        let (log, _) = open(&path)?.recover(&Count::default(), workers, &|_| {})?;
        let seconds = began.elapsed().as_secs_f64();
        println!("checkpoint, {workers} workers: {:.0} MB/s", megabytes / seconds);
        drop(log);
    }
    std::fs::remove_dir_all(&path)?;
    Ok(())
}
