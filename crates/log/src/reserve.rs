//! The file `reserve`: disk space that is released when the disk is full.
//!
//! The log of a small data set may fill a disk. A checkpoint would allow the log to be deleted, but
//! needs space itself. So a file without content reserves some space. The first write that finds no
//! space releases half of it, for the records that are already appended. From then on the log takes
//! no more records. The checkpoint that is then due releases the rest. When there is space for the
//! whole file again, the log takes records again.

use crate::sync_primitives::Mutex;
use ladon_platform::Disk;
use std::io;
use std::path::{Path, PathBuf};

/// Largest share of the log's available space to reserve: one part in this many.
const SHARE_OF_ROOM: u64 = 8;
/// A smaller reserve is useless.
const BYTES_MIN: u64 = 8 << 10;

pub(crate) struct Reserve {
    path: PathBuf,
    bytes_max: u64,
    size: Mutex<Size>,
}

#[derive(Clone, Copy)]
struct Size {
    /// Intended size; zero while there is none.
    wanted: u64,
    /// Size of the file.
    held: u64,
}

impl Reserve {
    /// Adopts the existing file, or creates one of at most `bytes_max`, as far as there is space.
    pub(crate) fn open(disk: &dyn Disk, dir: &Path, bytes_max: u64, log_bytes: u64) -> Reserve {
        let path = reserve_path(dir);
        let held = match disk.open_read_only(&path).and_then(|file| file.len()) {
            Ok(bytes) if bytes_max > 0 => bytes,
            _ => 0,
        };
        let size = Mutex::new(Size { wanted: held, held });
        let reserve = Reserve { path, bytes_max, size };
        let free = disk.free_bytes(dir).ok().flatten();
        reserve.adapt(disk, free, log_bytes);
        reserve
    }

    /// Grows the file to what the free space allows, if that more than doubles it.
    pub(crate) fn adapt(&self, disk: &dyn Disk, free: Option<u64>, log_bytes: u64) {
        let (before, room) = {
            let size = self.size.lock();
            if self.bytes_max == 0 || size.held < size.wanted {
                return;
            }
            (size.wanted, free.map(|free| free.saturating_add(log_bytes + size.held)))
        };
        let room = room.unwrap_or(u64::MAX);
        let mut wanted = self.bytes_max.min(room / SHARE_OF_ROOM) & !4095;
        while wanted >= BYTES_MIN && wanted / 2 > before {
            self.size.lock().wanted = wanted;
            if self.make(disk) {
                return;
            }
            wanted = (wanted / 2) & !4095;
        }
        self.size.lock().wanted = before;
    }

    /// Grows the file to its intended size. Returns whether it has that size now.
    pub(crate) fn make(&self, disk: &dyn Disk) -> bool {
        let mut size = self.size.lock();
        if size.held >= size.wanted {
            return true;
        }
        // A growth that cannot complete would use up the last free space for a moment.
        let free = self.path.parent().and_then(|dir| disk.free_bytes(dir).ok().flatten());
        if free.is_some_and(|free| free < size.wanted - size.held) {
            return false;
        }
        let grow = || -> io::Result<()> {
            let file = match disk.create_new(&self.path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    disk.open(&self.path)?
                }
                other => other?,
            };
            file.allocate(size.wanted).inspect_err(|_| {
                // The file may have grown in part.
                let _ = file.set_len(size.held);
            })
        };
        match grow() {
            Ok(()) => {
                size.held = size.wanted;
                true
            }
            Err(_) if size.held == 0 => {
                let _ = disk.remove(&self.path);
                false
            }
            Err(_) => false,
        }
    }

    /// Releases half of the space, for records that are already appended. Returns whether that
    /// freed any.
    pub(crate) fn let_half_go(&self, disk: &dyn Disk) -> bool {
        let mut size = self.size.lock();
        debug_assert!(size.held <= size.wanted && size.wanted <= self.bytes_max.max(size.held));
        if size.held == 0 || size.held < size.wanted {
            return false;
        }
        let half = size.held / 2;
        let cut = disk.open(&self.path).and_then(|file| file.set_len(half));
        if cut.is_ok() {
            size.held = half;
        }
        cut.is_ok()
    }

    /// Releases all of the space. Returns whether that freed any.
    pub(crate) fn let_go(&self, disk: &dyn Disk) -> bool {
        let mut size = self.size.lock();
        let held = std::mem::take(&mut size.held);
        held > 0 && empty(disk, &self.path).is_ok()
    }

    /// Intended size in bytes.
    pub(crate) fn wanted(&self) -> u64 {
        self.size.lock().wanted
    }
}

/// Empties the file in this directory before the log is opened.
pub(crate) fn let_reserve_go(disk: &dyn Disk, dir: &Path) -> io::Result<()> {
    empty(disk, &reserve_path(dir))
}

/// Truncate first: a removed file may keep its blocks until the directory is synced.
fn empty(disk: &dyn Disk, path: &Path) -> io::Result<()> {
    disk.open(path)?.set_len(0)?;
    disk.remove(path)
}

fn reserve_path(dir: &Path) -> PathBuf {
    dir.join("reserve")
}
