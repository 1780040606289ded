//! What one append costs: `cargo run --release -p ladon-log --example append_cost`.
//!
//! Prints nanoseconds per record for several sizes and thread counts, with `publish` after every 16
//! records and the written memory released by `write_published` to a file in `/dev/shm` or the
//! temporary directory. The last column is the bare copy and checksum of as many bytes.

use ladon_log::reader::Batch;
use ladon_log::{BlockHeader, DataDir, LogOptions, RecoverySink};
use ladon_platform::{SystemClock, SystemDisk};
use ladon_record::Lsn;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

struct NoData;

impl RecoverySink for NoData {
    fn block(&self, _: &BlockHeader, _: &[u8]) -> Result<(), String> {
        Ok(())
    }

    fn meta(&self, _: Lsn, _: &[u8]) -> Result<(), String> {
        Ok(())
    }

    fn records(&self, _: usize, _: &Batch) -> Result<(), (Lsn, String)> {
        Ok(())
    }
}

const BATCHES: usize = 20_000;
const BATCH: usize = 16;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("bytes threads append_ns write_ns_per_record copy_and_crc_ns");
    for bytes in [16, 40, 100, 400, 4000] {
        for threads in [1, 2] {
            let (append, write) = measure(bytes, threads)?;
            println!("{bytes} {threads} {append:.1} {write:.1} {:.1}", bare(bytes));
        }
    }
    Ok(())
}

fn measure(bytes: usize, threads: usize) -> Result<(f64, f64), Box<dyn std::error::Error>> {
    let dir = std::env::temp_dir().join(format!("ladon-append-cost-{}", std::process::id()));
    let opened =
        DataDir::open(Arc::new(SystemDisk), Arc::new(SystemClock), &dir, LogOptions::default(), 1)?;
    let (log, _) = opened.recover(&NoData, 1, &|_| {})?;
    let times: Vec<(Duration, Duration)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                let mut appender = log.appender();
                let log = &log;
                scope.spawn(move || {
                    let payload = vec![7u8; bytes];
                    let (mut appending, mut writing) = (Duration::ZERO, Duration::ZERO);
                    for _ in 0..BATCHES {
                        let began = Instant::now();
                        for _ in 0..BATCH {
                            black_box(appender.append(black_box(&payload), 1));
                        }
                        appender.publish();
                        appending += began.elapsed();
                        let began = Instant::now();
                        let _ = log.write_published();
                        writing += began.elapsed();
                    }
                    (appending, writing)
                })
            })
            .collect();
        workers.into_iter().filter_map(|worker| worker.join().ok()).collect()
    });
    drop(log);
    std::fs::remove_dir_all(&dir)?;
    let records = (BATCHES * BATCH * threads) as f64;
    let (append, write) = times.iter().fold((0.0, 0.0), |(append, write), (a, w)| {
        (append + a.as_nanos() as f64, write + w.as_nanos() as f64)
    });
    Ok((append / records, write / records))
}

fn bare(bytes: usize) -> f64 {
    let payload = vec![7u8; bytes];
    let mut frame = vec![0u8; bytes + 24];
    let began = Instant::now();
    let records = BATCHES * BATCH;
    for _ in 0..records {
        frame[24..].copy_from_slice(black_box(&payload));
        black_box(ladon_log::crc32c(black_box(&frame[4..])));
    }
    began.elapsed().as_nanos() as f64 / records as f64
}
