//! A directory whose data is being brought from elsewhere, by a program that may be killed meanwhile.
//!
//! The file `unfinished` says what is being done. It is there before the first of the data and until
//! all of it is safe, and [`DataDir::open`](crate::DataDir::open) refuses a directory that has it:
//! a part of the data must not look like all of it.

use ladon_platform::Disk;
use std::io;
use std::path::{Path, PathBuf};

/// A longer text is cut.
const TEXT_BYTES_MAX: usize = 4096;

fn path_in(dir: &Path) -> PathBuf {
    dir.join("unfinished")
}

/// What is unfinished in a directory, if something is.
///
/// # Errors
/// If the file is there and cannot be read.
pub fn unfinished(disk: &dyn Disk, dir: &Path) -> io::Result<Option<String>> {
    let file = match disk.open_read_only(&path_in(dir)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let mut bytes = vec![0; TEXT_BYTES_MAX];
    let read = crate::reader::read_full(&*file, &mut bytes, 0)?;
    Ok(Some(String::from_utf8_lossy(&bytes[..read]).trim_end().to_owned()))
}

/// Notes that `what` begins in a directory, which is there.
///
/// # Errors
/// The system's.
pub fn begin_unfinished(disk: &dyn Disk, dir: &Path, what: &str) -> io::Result<()> {
    let path = path_in(dir);
    let file = match disk.create_new(&path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => disk.open(&path),
        file => file,
    }?;
    file.set_len(0)?;
    file.write_all_at(what.as_bytes(), 0)?;
    file.sync_data()?;
    disk.sync_dir(dir)
}

/// Notes that it is finished.
///
/// # Errors
/// The system's.
pub fn end_unfinished(disk: &dyn Disk, dir: &Path) -> io::Result<()> {
    disk.remove(&path_in(dir))?;
    disk.sync_dir(dir)
}
