//! A disk that reports slow writes and syncs to `LATENCY`, the lengths of its syncs to the metrics,
//! and very slow syncs to the server's log.

use ladon_kernel::statistics::latency_events::LatencyEvents;
use ladon_kernel::statistics::sync_times::SyncTimes;
use ladon_platform::{Clock, Disk, DiskFile, DiskLock, Seldom, seldom};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A sync that takes longer is worth a line of the log: at gate `fsync`, every writer has waited for
/// it.
const SLOW_SYNC_NS: u64 = 1_000_000_000;

/// Another disk, timed.
pub(crate) struct TimedDisk<D> {
    disk: D,
    watch: Watch,
}

#[derive(Clone)]
struct Watch {
    clock: Arc<dyn Clock>,
    events: Arc<LatencyEvents>,
    syncs: Arc<SyncTimes>,
}

impl Watch {
    fn time<R>(&self, event: &str, run: impl FnOnce() -> R) -> R {
        if !self.events.is_on() {
            return run();
        }
        let began_ns = self.clock.monotonic_ns();
        let result = run();
        let milliseconds = (self.clock.monotonic_ns() - began_ns) / 1_000_000;
        self.events.note(event, milliseconds, self.clock.unix_ms() / 1000);
        result
    }

    /// As `time`, of a sync of `what`.
    fn time_sync<R>(&self, what: &str, run: impl FnOnce() -> R) -> R {
        let began_ns = self.clock.monotonic_ns();
        let result = self.time("fsync", run);
        let took_ns = self.clock.monotonic_ns().saturating_sub(began_ns);
        self.syncs.record(took_ns);
        if took_ns >= SLOW_SYNC_NS {
            self.tell_of_slow_sync(what, took_ns);
        }
        result
    }

    #[cold]
    fn tell_of_slow_sync(&self, what: &str, took_ns: u64) {
        /// A disk that is slow once is slow for a while.
        static SELDOM: Seldom = Seldom::new(5, Duration::from_secs(60));
        if let Some(left_out) = SELDOM.may_say(self.clock.unix_ms()) {
            tracing::warn!(
                "the disk took {:.1} s to sync {what}: replies at gate fsync waited for it{}",
                took_ns as f64 / 1e9,
                seldom::left_out(left_out)
            );
        }
    }
}

impl<D> TimedDisk<D> {
    pub(crate) fn new(
        disk: D,
        clock: Arc<dyn Clock>,
        events: Arc<LatencyEvents>,
        syncs: Arc<SyncTimes>,
    ) -> TimedDisk<D> {
        TimedDisk { disk, watch: Watch { clock, events, syncs } }
    }

    fn watched(&self, file: Box<dyn DiskFile>) -> Box<dyn DiskFile> {
        Box::new(TimedFile { file, watch: self.watch.clone() })
    }
}

impl<D: Disk> Disk for TimedDisk<D> {
    fn create_dir_all(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        self.disk.create_dir_all(path)
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(self.watched(self.disk.create_new(path)?))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(self.watched(self.disk.open(path)?))
    }

    fn open_read_only(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.disk.open_read_only(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        self.disk.list(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.disk.remove(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.watch.time_sync("a directory", || self.disk.sync_dir(path))
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn DiskLock>> {
        self.disk.lock(path)
    }

    fn free_bytes(&self, path: &Path) -> io::Result<Option<u64>> {
        self.disk.free_bytes(path)
    }

    fn is_locked(&self, path: &Path) -> io::Result<bool> {
        self.disk.is_locked(path)
    }
}

struct TimedFile {
    file: Box<dyn DiskFile>,
    watch: Watch,
}

impl DiskFile for TimedFile {
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.watch.time("disk-write", || self.file.write_all_at(bytes, offset))
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buffer, offset)
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.file.set_len(length)
    }

    fn allocate(&self, length: u64) -> io::Result<()> {
        self.watch.time("disk-write", || self.file.allocate(length))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.watch.time_sync("a file", || self.file.sync_data())
    }

    fn is_named(&self, path: &Path) -> io::Result<bool> {
        self.file.is_named(path)
    }

    fn start_writing(&self, offset: u64, length: u64) {
        self.file.start_writing(offset, length);
    }

    fn drop_cache(&self, offset: u64, length: u64) {
        self.file.drop_cache(offset, length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ladon_platform::{SystemClock, SystemDisk};
    use ladon_settings::Settings;

    #[test]
    fn long_syncs_are_noticed() {
        let settings = Arc::new(Settings::new());
        let events = Arc::new(LatencyEvents::new(Arc::clone(&settings)));
        let syncs = Arc::<SyncTimes>::default();
        let clock = Arc::new(SystemClock);
        let disk = TimedDisk::new(SystemDisk, clock, Arc::clone(&events), Arc::clone(&syncs));
        let slow = || std::thread::sleep(Duration::from_millis(3));
        disk.watch.time_sync("a file", slow);
        assert_eq!(events.all(), []);
        let (counts, nanoseconds) = syncs.sum();
        assert!(counts.count() == 1 && nanoseconds >= 3_000_000);
        settings.set_many(&[("latency-monitor-threshold", "2")]).expect("a setting");
        disk.watch.time_sync("a file", slow);
        assert!(events.history("fsync").expect("noticed").milliseconds_max >= 3);
    }
}
