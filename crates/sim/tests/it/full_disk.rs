//! A disk that the log of a small data set has filled comes back without an operator: the
//! checkpointer's own thread, the log's writer and the simulated disk, at full speed.

use ladon_log::{DataDir, Log, LogOptions};
use ladon_platform::{Clock, SystemClock};
use ladon_record::{Change, ChangeBuffer, ValueKind};
use ladon_server::{Checkpointer, recover};
use ladon_settings::Settings;
use ladon_sim_disk::SimDisk;
use std::path::Path;
use std::sync::Arc;
use std::thread::{scope, sleep};
use std::time::Duration;

const CAPACITY: u64 = 600 << 10;

/// Starts, writes that many bytes of the same key over and over, and is killed.
fn live(disk: &SimDisk, bytes: u64) {
    let options = LogOptions { reserve_bytes: 16 << 20, ..LogOptions::default() };
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let path = Path::new("/data");
    let dir = DataDir::open(Arc::new(disk.clone()), clock.clone(), path, options, 42);
    let dir = dir.unwrap_or_else(|error| panic!("{error}"));
    let recovered = recover(dir, 16, clock.unix_ms(), 1, |_| {}, &|_| {}, None);
    let recovered = recovered.unwrap_or_else(|error| panic!("{error}"));
    let log = recovered.log;
    let settings = Arc::new(Settings::new());
    let dirty = Box::new(|| 0);
    let checkpointer =
        Checkpointer::new(recovered.keyspace, Arc::clone(&log), settings, clock, dirty);
    let writer = log.spawn_writer().expect("a thread");
    scope(|threads| {
        threads.spawn(|| checkpointer.run());
        write(&log, bytes);
        checkpointer.stop();
    });
    writer.stop();
    disk.kill();
}

/// Ends only if the log takes records again whenever it has refused them.
fn write(log: &Arc<Log>, bytes: u64) {
    let mut changes = ChangeBuffer::new();
    let body = [b'v'; 1000];
    let kind = ValueKind::String;
    changes.push(Change::Put { db: 0, key: b"the only one", expire_at: 0, kind, body: &body });
    let mut appender = log.appender();
    let begin = log.reserved().0;
    while log.reserved().0 < begin + bytes {
        while !log.accepts_writes() {
            sleep(Duration::from_millis(1));
        }
        let lsn = appender.append(changes.as_bytes(), 0);
        appender.publish();
        log.write_soon();
        if log.is_backlogged() {
            sleep(Duration::from_millis(1));
        }
        if log.reserved().0 >= begin + bytes {
            while log.written() < lsn {
                sleep(Duration::from_millis(1));
            }
        }
    }
}

#[test]
fn the_log_of_one_key_may_be_many_times_as_large_as_the_disk() {
    let disk = SimDisk::new(1);
    disk.set_capacity(Some(CAPACITY));
    live(&disk, 8 * CAPACITY);
    assert!(disk.used_bytes() <= CAPACITY);
}

#[test]
fn a_start_on_a_full_disk_comes_back_too() {
    let disk = SimDisk::new(2);
    // Filled without anybody who makes checkpoints.
    let options = LogOptions { reserve_bytes: 16 << 20, ..LogOptions::default() };
    disk.set_capacity(Some(CAPACITY));
    let (clock, path) = (Arc::new(SystemClock), Path::new("/data"));
    let dir = DataDir::open(Arc::new(disk.clone()), clock, path, options, 42);
    let dir = dir.unwrap_or_else(|error| panic!("{error}"));
    let recovered = recover(dir, 16, 0, 1, |_| {}, &|_| {}, None);
    let log = recovered.unwrap_or_else(|error| panic!("{error}")).log;
    let mut changes = ChangeBuffer::new();
    let (kind, body) = (ValueKind::String, [b'v'; 1000]);
    changes.push(Change::Put { db: 0, key: b"the only one", expire_at: 0, kind, body: &body });
    let mut appender = log.appender();
    while log.accepts_writes() {
        appender.append(changes.as_bytes(), 0);
        appender.publish();
        let _ = log.write_published();
    }
    drop((appender, log));
    disk.kill();
    live(&disk, CAPACITY);
}
