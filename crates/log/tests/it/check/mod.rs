//! What the fuzz targets check; the ordinary tests replay the kept corpus through the same code.
#![allow(dead_code, reason = "each user takes its own part")]

pub mod checkpoint;
pub mod log;

use ladon_log::reader::Batch;
use ladon_log::{
    BlockHeader, DataDir, LogOptions, Meta, RecoverError, RecoveryReport, RecoverySink,
};
use ladon_platform::{Clock, Disk};
use ladon_record::Lsn;
use ladon_sim_disk::SimDisk;
use std::path::Path;
use std::sync::{Arc, Mutex};

pub const DIR: &str = "/data";
pub const DIR_ID: u64 = 0x1ad0;

struct StoppedClock;

impl Clock for StoppedClock {
    fn unix_us(&self) -> u64 {
        0
    }

    fn monotonic_ns(&self) -> u64 {
        0
    }
}

/// Remembers what was recovered, in one form that can be compared.
#[derive(Default)]
struct Seen(Mutex<Vec<(Lsn, Vec<u8>)>>);

impl Seen {
    fn push(&self, lsn: Lsn, bytes: &[u8]) -> Result<(), String> {
        match self.0.lock() {
            Ok(mut seen) => seen.push((lsn, bytes.to_vec())),
            Err(_) => return Err("poisoned".to_owned()),
        }
        Ok(())
    }
}

impl RecoverySink for Seen {
    fn block(&self, block: &BlockHeader, changes: &[u8]) -> Result<(), String> {
        self.push(block.lsn, changes)
    }

    fn meta(&self, lsn: Lsn, meta: &[u8]) -> Result<(), String> {
        self.push(lsn, meta)
    }

    fn records(&self, _: usize, batch: &Batch) -> Result<(), (Lsn, String)> {
        let mut records = batch.records();
        records.try_for_each(|(lsn, changes)| self.push(lsn, changes).map_err(|fault| (lsn, fault)))
    }
}

/// A directory with these files and a good meta file.
pub fn disk(files: &[(&Path, &[u8])]) -> SimDisk {
    let disk = SimDisk::new(0);
    let meta = Meta { node: 0, dir_id: DIR_ID, hash_seed: 1, created_ms: 0 };
    disk.set_contents(&Path::new(DIR).join("meta"), &meta.encode());
    for (path, bytes) in files {
        disk.set_contents(path, bytes);
    }
    disk
}

type Recovered = (Vec<(Lsn, Vec<u8>)>, RecoveryReport);

pub fn recover(disk: &SimDisk) -> Result<Recovered, RecoverError> {
    let (files, clock) = (Arc::new(disk.clone()), Arc::new(StoppedClock));
    let dir = DataDir::open(files, clock, Path::new(DIR), LogOptions::default(), 1);
    let dir = dir.unwrap_or_else(|error| panic!("the meta file is good: {error}"));
    let seen = Seen::default();
    let (_, report) = dir.recover(&seen, 1, &|_| {})?;
    let seen = seen.0.into_inner().unwrap_or_default();
    Ok((seen, report))
}

/// Recovery either takes the files, and then takes them again with the same result and nothing more
/// to cut; or it refuses them, changes nothing, and refuses them again. `verify` agrees.
pub fn judge(disk: &SimDisk) {
    let verified = ladon_log::verify::verify_dir(disk, Path::new(DIR));
    let files_before = all_files(disk);
    match recover(disk) {
        Ok((seen, report)) => {
            let verified = verified.unwrap_or_else(|error| panic!("recovery starts, but {error}"));
            assert_eq!(verified.torn, report.torn);
            assert_eq!(verified.clean, report.clean);
            assert!(seen.iter().all(|(lsn, _)| *lsn <= report.end || report.checkpoint.is_some()));
            disk.power_cut();
            let (again, second) = recover(disk).unwrap_or_else(|e| panic!("the second time: {e}"));
            assert_eq!(again, seen);
            assert_eq!((second.torn, second.end), (None, report.end));
        }
        Err(error) => {
            if let Ok(report) = verified {
                assert!(!report.is_sound(), "verify finds nothing, but {error}");
            }
            assert_eq!(all_files(disk), files_before, "refused files stay as they are");
            let again = recover(disk).err().map(|error| error.to_string());
            assert_eq!(again, Some(error.to_string()));
        }
    }
}

fn all_files(disk: &SimDisk) -> Vec<(std::path::PathBuf, Option<Vec<u8>>)> {
    let mut paths = disk.list(Path::new(DIR)).unwrap_or_default();
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), disk.contents(&path))).collect()
}

/// Takes bytes off the front of the fuzzer's input; zeros when it is used up.
pub struct Input<'a>(pub &'a [u8]);

impl<'a> Input<'a> {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    pub fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }
}
