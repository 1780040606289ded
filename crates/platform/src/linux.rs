//! The real disk.

use crate::disk::{Disk, DiskFile, DiskLock};
use crate::page_cache;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A process that checks whether a file is locked holds the lock for a moment. So a lock is tried
/// this often,
const LOCK_ATTEMPTS: u32 = 5;
/// with this delay between attempts.
const LOCK_RETRY_AFTER: Duration = Duration::from_millis(10);

/// Only the user that runs the server may read or write what it makes: all data is in these files.
const FILE_MODE: u32 = 0o600;
const DIRECTORY_MODE: u32 = 0o700;

/// The machine's file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemDisk;

impl Disk for SystemDisk {
    fn create_dir_all(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        let missing = path.ancestors().take_while(|at| !at.as_os_str().is_empty() && !at.exists());
        let mut missing: Vec<PathBuf> = missing.map(Path::to_owned).collect();
        missing.reverse();
        DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(path)?;
        Ok(missing)
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(FILE_MODE);
        let file = options.open(path)?;
        Ok(Box::new(SystemFile(file)))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(SystemFile(OpenOptions::new().read(true).write(true).open(path)?)))
    }

    fn open_read_only(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(SystemFile(File::open(path)?)))
    }

    fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                files.push(entry.path());
            }
        }
        Ok(files)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        // The directory around a relative path of one part.
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        File::open(path)?.sync_all()
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn DiskLock>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(FILE_MODE);
        let file = options.open(path)?;
        let mut attempts = LOCK_ATTEMPTS;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Box::new(SystemLock(file))),
                Err(TryLockError::WouldBlock) if attempts > 1 => {
                    attempts -= 1;
                    std::thread::sleep(LOCK_RETRY_AFTER);
                }
                Err(TryLockError::WouldBlock) => return Err(io::ErrorKind::WouldBlock.into()),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }

    fn free_bytes(&self, path: &Path) -> io::Result<Option<u64>> {
        let space = nix::sys::statvfs::statvfs(path)?;
        #[allow(clippy::unnecessary_cast, reason = "the types are other ones on other systems")]
        let (blocks, bytes) = (space.blocks_available() as u64, space.fragment_size() as u64);
        Ok(Some(blocks.saturating_mul(bytes)))
    }

    fn is_locked(&self, path: &Path) -> io::Result<bool> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        // Closing the file releases the lock.
        match file.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

struct SystemFile(File);

impl DiskFile for SystemFile {
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(buffer, offset)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }

    #[cfg(target_os = "linux")]
    fn allocate(&self, length: u64) -> io::Result<()> {
        use nix::errno::Errno;
        use nix::fcntl::{FallocateFlags, fallocate};
        let bytes = i64::try_from(length).unwrap_or(i64::MAX);
        match fallocate(&self.0, FallocateFlags::empty(), 0, bytes) {
            Ok(()) => Ok(()),
            // Not every file system supports it; writing bytes is as good.
            Err(Errno::EOPNOTSUPP | Errno::ENOSYS) => Written(self).allocate(length),
            Err(error) => Err(error.into()),
        }
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    /// Not every file system keeps its inodes' numbers (some in user space do not). There, a file
    /// under the same name is another one only if it is shorter: a log grows.
    fn is_named(&self, path: &Path) -> io::Result<bool> {
        let own = self.0.metadata()?;
        let named = match fs::metadata(path) {
            Ok(named) => named,
            Err(error) => {
                let is_gone = [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory];
                return if is_gone.contains(&error.kind()) { Ok(false) } else { Err(error) };
            }
        };
        let is_same = (own.dev(), own.ino()) == (named.dev(), named.ino());
        Ok(own.nlink() != 0 && (is_same || named.len() >= own.len()))
    }

    fn start_writing(&self, offset: u64, length: u64) {
        page_cache::start_writing(&self.0, offset, length);
    }

    fn drop_cache(&self, offset: u64, length: u64) {
        page_cache::drop_range(&self.0, offset, length);
    }
}

/// A file without its own way to allocate.
#[cfg(target_os = "linux")]
struct Written<'a>(&'a SystemFile);

#[cfg(target_os = "linux")]
impl DiskFile for Written<'_> {
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(buffer, offset)
    }

    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn is_named(&self, path: &Path) -> io::Result<bool> {
        self.0.is_named(path)
    }
}

/// Holds the file open: closing it releases the lock, also when the process dies.
struct SystemLock(#[allow(dead_code, reason = "held for its drop")] File);

impl DiskLock for SystemLock {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn scratch(name: &str) -> PathBuf {
        let path =
            std::env::temp_dir().join(format!("ladon-platform-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        path
    }

    #[test]
    fn only_the_owner_reads_what_is_made() {
        let dir = scratch("modes");
        let made = SystemDisk.create_dir_all(&dir.join("a/b")).unwrap();
        assert_eq!(made, [dir.clone(), dir.join("a"), dir.join("a/b")]);
        assert!(SystemDisk.create_dir_all(&dir.join("a/b")).unwrap().is_empty());
        let (file, lock) = (dir.join("a/b/file"), dir.join("a/b/LOCK"));
        SystemDisk.create_new(&file).unwrap();
        let _held = SystemDisk.lock(&lock).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&file), mode(&lock), mode(&dir.join("a"))), (0o600, 0o600, 0o700));
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_file_that_was_taken_away_has_no_name() {
        let dir = scratch("names");
        SystemDisk.create_dir_all(&dir).unwrap();
        let path = dir.join("file");
        let file = SystemDisk.create_new(&path).unwrap();
        file.write_all_at(b"some bytes", 0).unwrap();
        assert!(file.is_named(&path).unwrap());
        fs::rename(&path, dir.join("away")).unwrap();
        assert!(!file.is_named(&path).unwrap());
        fs::write(&path, "other").unwrap();
        assert!(!file.is_named(&path).unwrap(), "another one");
        fs::remove_file(dir.join("away")).unwrap();
        assert!(!file.is_named(&dir.join("away")).unwrap());
        fs::remove_dir_all(&dir).unwrap();
        assert!(!file.is_named(&path).unwrap(), "nor is the directory there");
    }
}
