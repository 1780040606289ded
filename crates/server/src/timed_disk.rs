//! A disk that reports slow writes and syncs to `LATENCY`.

use ladon_kernel::statistics::latency_events::LatencyEvents;
use ladon_platform::{Clock, Disk, DiskFile, DiskLock};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Another disk, timed.
pub(crate) struct TimedDisk<D> {
    disk: D,
    watch: Watch,
}

#[derive(Clone)]
struct Watch {
    clock: Arc<dyn Clock>,
    events: Arc<LatencyEvents>,
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
}

impl<D> TimedDisk<D> {
    pub(crate) fn new(disk: D, clock: Arc<dyn Clock>, events: Arc<LatencyEvents>) -> TimedDisk<D> {
        TimedDisk { disk, watch: Watch { clock, events } }
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
        self.watch.time("fsync", || self.disk.sync_dir(path))
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
        self.watch.time("fsync", || self.file.sync_data())
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
    use std::time::Duration;

    #[test]
    fn long_syncs_are_noticed() {
        let settings = Arc::new(Settings::new());
        let events = Arc::new(LatencyEvents::new(Arc::clone(&settings)));
        let disk = TimedDisk::new(SystemDisk, Arc::new(SystemClock), Arc::clone(&events));
        let slow = || std::thread::sleep(Duration::from_millis(3));
        disk.watch.time("fsync", slow);
        assert_eq!(events.all(), []);
        settings.set_many(&[("latency-monitor-threshold", "2")]).expect("a setting");
        disk.watch.time("fsync", slow);
        assert!(events.history("fsync").expect("noticed").milliseconds_max >= 3);
    }
}
