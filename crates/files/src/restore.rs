//! A data directory out of a backup.
//!
//! ```text
//! the backup is whole? every byte is as it was? -> note that the directory is unfinished
//!     -> files are copied, their checksums compared -> the note is removed
//! ```

use crate::backup::{
    BackupError, BackupProgress, Copied, PIECE_BYTES, begin_in, check, copied, finish_in, io_error,
};
use crate::backup_list::{BackupList, LIST_BYTES_MAX, ListedFile};
use ladon_log::{BACKUP_NAME, crc32c, crc32c_of_both, note_copied_end, unfinished};
use ladon_platform::{Disk, SystemDisk};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// How the note of an unfinished restore begins.
const NOTE: &str = "a restore of ";

/// Makes the data directory `target`, which is new or empty, out of the backup in `dir`.
///
/// # Errors
/// See [`BackupError`]. A target that was begun says that it is unfinished.
pub fn restore(
    dir: &Path,
    target: &Path,
    progress: &mut dyn FnMut(BackupProgress),
) -> Result<Copied, BackupError> {
    let list = read_list(dir)?;
    progress(BackupProgress::Checking);
    for file in &list.files {
        check_length(&dir.join(&file.name), file.bytes)?;
    }
    check(dir)?;
    begin_in(target, &format!("{NOTE}{}", dir.display()), NOTE)?;
    let bytes_total = list.files.iter().map(|file| file.bytes).sum();
    let mut bytes_done = 0;
    for file in &list.files {
        copy(dir, target, file, &mut |bytes| {
            bytes_done += bytes;
            progress(BackupProgress::Copying { bytes_done, bytes_total });
        })?;
    }
    SystemDisk.sync_dir(target).map_err(io_error("sync the directory", target))?;
    let noted = note_copied_end(&SystemDisk, target, list.end);
    noted.map_err(io_error("note the log's end in", target))?;
    finish_in(target)?;
    Ok(copied(target, &list.files, list.end))
}

/// The list of a backup that is whole.
fn read_list(dir: &Path) -> Result<BackupList, BackupError> {
    let what = unfinished(&SystemDisk, dir).map_err(io_error("look into", dir))?;
    if let Some(what) = what {
        return Err(BackupError::Unfinished { path: dir.to_owned(), what });
    }
    let path = dir.join(BACKUP_NAME);
    let mut text = Vec::new();
    match File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(BackupError::NoBackup(dir.to_owned()));
        }
        file => file.and_then(|file| file.take(LIST_BYTES_MAX).read_to_end(&mut text)),
    }
    .map_err(io_error("read", &path))?;
    BackupList::decode(&text).map_err(|error| BackupError::List { path, error })
}

fn check_length(path: &Path, bytes: u64) -> Result<(), BackupError> {
    let found = match path.metadata() {
        Ok(metadata) if metadata.len() == bytes => return Ok(()),
        Ok(metadata) => format!("it has {} bytes, not {bytes}", metadata.len()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => "it is missing".to_owned(),
        Err(error) => return Err(io_error("look at", path)(error)),
    };
    Err(BackupError::Changed { path: path.to_owned(), found })
}

fn copy(
    dir: &Path,
    target: &Path,
    listed: &ListedFile,
    tell: &mut dyn FnMut(u64),
) -> Result<(), BackupError> {
    let (from, to) = (dir.join(&listed.name), target.join(&listed.name));
    let mut source = File::open(&from).map_err(io_error("open", &from))?;
    let file = SystemDisk.create_new(&to).map_err(io_error("create", &to))?;
    let (mut at, mut crc) = (0, crc32c(&[]));
    loop {
        let mut piece = Vec::new();
        let read = (&mut source).take(PIECE_BYTES).read_to_end(&mut piece);
        if read.map_err(io_error("read", &from))? == 0 {
            break;
        }
        file.write_all_at(&piece, at).map_err(io_error("write", &to))?;
        crc = crc32c_of_both(crc, crc32c(&piece), piece.len());
        at += piece.len() as u64;
        tell(piece.len() as u64);
    }
    if (at, crc) != (listed.bytes, listed.crc) {
        let found = format!(
            "its {at} bytes have the checksum {crc:08x}, and {} bytes with {:08x} were written",
            listed.bytes, listed.crc
        );
        return Err(BackupError::Changed { path: from, found });
    }
    file.sync_data().map_err(io_error("sync", &to))
}
