//! Files, as traits: what a log and its checkpoints need.
//!
//! Positions are always explicit (`pwrite`, `pread`), so that a retried write after a full disk
//! goes to the same place. A crash may lose what [`DiskFile::sync_data`] has not covered, in any
//! order. A name that was created, renamed or removed is safe only after [`Disk::sync_dir`].

use std::io;
use std::path::{Path, PathBuf};

/// A file system.
pub trait Disk: Send + Sync {
    /// Creates `path` and its parents as directories. Returns those that were not there, outermost
    /// first: their names are safe only after a [`Disk::sync_dir`] of the directory around each.
    fn create_dir_all(&self, path: &Path) -> io::Result<Vec<PathBuf>>;
    /// Creates a file; an error if it exists.
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    /// Creates a file, or empties what an earlier attempt has left under its name.
    fn create_empty(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        match self.create_new(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let file = self.open(path)?;
                file.set_len(0)?;
                Ok(file)
            }
            other => other,
        }
    }
    /// Gives a file these bytes as a whole, and on the disk: after a crash at any time it has all of
    /// them, or is as it was. `temporary` is in the same directory.
    fn replace(&self, path: &Path, temporary: &Path, bytes: &[u8]) -> io::Result<()> {
        let file = self.create_empty(temporary)?;
        file.write_all_at(bytes, 0)?;
        file.sync_data()?;
        self.rename(temporary, path)?;
        path.parent().map_or(Ok(()), |dir| self.sync_dir(dir))
    }
    /// Opens an existing file for reading and writing.
    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    /// Opens an existing file for reading.
    fn open_read_only(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    /// The files (not directories) in `path`, in no particular order.
    fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>>;
    /// Renames a file, replacing an existing one.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes the names in `path` survive a crash of the machine.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
    /// Takes the exclusive lock on `path` (creating it), or fails with `WouldBlock`.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn DiskLock>>;
    /// Bytes that this process may still write to the file system of `path`; `None` if unknown.
    fn free_bytes(&self, path: &Path) -> io::Result<Option<u64>>;
    /// Whether a process holds the lock on `path`; changes nothing, and creates nothing.
    fn is_locked(&self, path: &Path) -> io::Result<bool>;
}

/// An open file.
pub trait DiskFile: Send + Sync {
    /// Writes all of `bytes` at `offset`.
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Reads at most `buffer.len()` bytes at `offset`; zero at the end of the file.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Length in bytes.
    fn len(&self) -> io::Result<u64>;
    /// Whether the file has no bytes.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
    /// Cuts or zero-extends the file.
    fn set_len(&self, length: u64) -> io::Result<()>;
    /// Grows the file to `length` with allocated disk space; the new content is undefined. After an
    /// error the file may have grown in part.
    fn allocate(&self, length: u64) -> io::Result<()> {
        const PIECE_BYTES: u64 = 64 << 10;
        // Data that a file system cannot compress.
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        let mut at = self.len()?;
        while at < length {
            let piece: Vec<u8> = (0..PIECE_BYTES.min(length - at))
                .map(|_| {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    state as u8
                })
                .collect();
            self.write_all_at(&piece, at)?;
            at += piece.len() as u64;
        }
        Ok(())
    }
    /// Makes the bytes (and the length) survive a crash of the machine: `fdatasync`.
    fn sync_data(&self) -> io::Result<()>;
    /// Whether `path` still names this file: not once another program has removed, moved or replaced
    /// the file, or a directory around it. Bytes written to it would then be found by nobody.
    fn is_named(&self, path: &Path) -> io::Result<bool>;
    /// Tells the system to begin moving the bytes in this range to the disk; does not wait, and
    /// promises nothing.
    fn start_writing(&self, _offset: u64, _length: u64) {}
    /// Tells the system that the bytes in this range will not be read again soon.
    fn drop_cache(&self, _offset: u64, _length: u64) {}
}

/// A held file lock; dropping it releases the lock.
pub trait DiskLock: Send + Sync {}
