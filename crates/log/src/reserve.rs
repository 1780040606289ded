//! The file `reserve`: room that is let go when the disk is full.
//!
//! The log of a small data set may fill a disk. What would help is a checkpoint, after which the log
//! can go, but that needs room itself. So some room is held in a file of no content. The first write
//! that finds no space lets half of it go, for what is already appended, and from then on the log
//! takes no more records; the checkpoint that is then due lets go the rest. When there is room for the
//! whole file again, the log takes records again.

use crate::sync_primitives::Mutex;
use ladon_platform::Disk;
use std::io;
use std::path::{Path, PathBuf};

/// At most this part of the room that the log has.
const SHARE_OF_ROOM: u64 = 8;
/// Less is no use to anybody.
const BYTES_MIN: u64 = 8 << 10;

pub(crate) struct Reserve {
    path: PathBuf,
    bytes_max: u64,
    size: Mutex<Size>,
}

#[derive(Clone, Copy)]
struct Size {
    /// What it shall be; zero while there is none.
    wanted: u64,
    /// What the file has.
    held: u64,
}

impl Reserve {
    /// Takes over the file, or makes one of at most `bytes_max`, as far as there is room.
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

    /// Makes the file as large as the room allows, if it is far from that.
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

    /// Brings the file to its full size; whether it has it now.
    pub(crate) fn make(&self, disk: &dyn Disk) -> bool {
        let mut size = self.size.lock();
        if size.held >= size.wanted {
            return true;
        }
        // A growth that cannot end would take the last room for that moment.
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
                // It may have grown in part.
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

    /// Makes room for what is appended already; whether that made any.
    pub(crate) fn let_half_go(&self, disk: &dyn Disk) -> bool {
        let mut size = self.size.lock();
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

    /// Makes all the room there is; whether that made any.
    pub(crate) fn let_go(&self, disk: &dyn Disk) -> bool {
        let mut size = self.size.lock();
        let held = std::mem::take(&mut size.held);
        held > 0 && empty(disk, &self.path).is_ok()
    }

    /// Bytes that it shall have.
    pub(crate) fn wanted(&self) -> u64 {
        self.size.lock().wanted
    }
}

/// Lets go of the file in this directory, before it is opened.
pub(crate) fn let_reserve_go(disk: &dyn Disk, dir: &Path) -> io::Result<()> {
    empty(disk, &reserve_path(dir))
}

/// Cut first: a removed name may keep its blocks until the directory is synced.
fn empty(disk: &dyn Disk, path: &Path) -> io::Result<()> {
    disk.open(path)?.set_len(0)?;
    disk.remove(path)
}

fn reserve_path(dir: &Path) -> PathBuf {
    dir.join("reserve")
}
