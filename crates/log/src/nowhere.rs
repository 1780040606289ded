//! A log that keeps nothing, for a node that has no data yet.

use crate::log::{Log, Opened, Place};
use crate::options::LogOptions;
use crate::reserve::Reserve;
use crate::write::OpenSegment;
use ladon_platform::{Clock, Disk, DiskFile, DiskLock};
use ladon_record::Lsn;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

impl Log {
    /// A log without a directory. It ends where it begins: its positions are all zero, which every
    /// gate has passed. A record would not be written, and that is the log's failure.
    pub fn nowhere(clock: Arc<dyn Clock>) -> Arc<Log> {
        let place = Place {
            disk: Arc::new(Nowhere),
            clock,
            dir: PathBuf::new(),
            dir_id: 0,
            node: LogOptions::default().node_id,
        };
        let path = place.segment_path(Lsn::ZERO);
        Log::new(Opened {
            reserve: Reserve::open(&Nowhere, Path::new(""), 0, 0),
            place,
            options: LogOptions::default(),
            lock: Box::new(Nowhere),
            segment: OpenSegment { file: Box::new(Nowhere), path, base: Lsn::ZERO },
            segments: BTreeSet::from([0]),
            checkpoint: None,
            log_end: None,
            has_entries: false,
        })
    }
}

/// A disk, a file and a lock that are not there.
struct Nowhere;

fn absent<T>() -> io::Result<T> {
    Err(io::Error::new(io::ErrorKind::NotFound, "there is no data directory yet"))
}

impl DiskLock for Nowhere {}

impl DiskFile for Nowhere {
    fn write_all_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        absent()
    }

    fn read_at(&self, _: &mut [u8], _: u64) -> io::Result<usize> {
        absent()
    }

    fn len(&self) -> io::Result<u64> {
        absent()
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        absent()
    }

    fn sync_data(&self) -> io::Result<()> {
        absent()
    }

    fn is_named(&self, _: &Path) -> io::Result<bool> {
        absent()
    }
}

impl Disk for Nowhere {
    fn create_dir_all(&self, _: &Path) -> io::Result<Vec<PathBuf>> {
        absent()
    }

    fn create_new(&self, _: &Path) -> io::Result<Box<dyn DiskFile>> {
        absent()
    }

    fn open(&self, _: &Path) -> io::Result<Box<dyn DiskFile>> {
        absent()
    }

    fn open_read_only(&self, _: &Path) -> io::Result<Box<dyn DiskFile>> {
        absent()
    }

    fn list(&self, _: &Path) -> io::Result<Vec<PathBuf>> {
        absent()
    }

    fn rename(&self, _: &Path, _: &Path) -> io::Result<()> {
        absent()
    }

    fn remove(&self, _: &Path) -> io::Result<()> {
        absent()
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        absent()
    }

    fn lock(&self, _: &Path) -> io::Result<Box<dyn DiskLock>> {
        absent()
    }

    fn free_bytes(&self, _: &Path) -> io::Result<Option<u64>> {
        absent()
    }

    fn is_locked(&self, _: &Path) -> io::Result<bool> {
        absent()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use ladon_platform::SystemClock;

    #[test]
    fn it_has_passed_every_gate_and_takes_nothing() {
        let log = Log::nowhere(Arc::new(SystemClock));
        assert_eq!([log.reserved(), log.written(), log.durable()], [Lsn::ZERO; 3]);
        assert!(log.accepts_writes() && !log.is_backlogged() && !log.has_unwritten());
        let mut appender = log.appender();
        assert!(!appender.publish());
        let lsn = appender.append(b"record", 0);
        assert!(appender.publish());
        assert!(log.write_published().is_err());
        assert!(!log.accepts_writes() && log.written() < lsn);
    }
}
