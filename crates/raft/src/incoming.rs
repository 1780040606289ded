//! Another member's data, on its way into this node's directory.
//!
//! ```text
//! NAME.incoming ...   files as they come
//! incoming            all of them are here, and on the disk: from now on they are the directory's
//! ```
//! The list `incoming` is the moment at which the directory becomes another one. Who opens the
//! directory next finishes what the list says, as often as it takes ([`finish_incoming`]); files
//! without a list are nothing.
//!
//! ```text
//! ladon-incoming 1
//! end 4096
//! file meta 64
//! ...
//! sum 8a9136aa                   CRC-32C of the lines before
//! ```

use crate::state::{GroupState, read_file};
use ladon_log::checkpoint::format::checkpoint_begin;
use ladon_log::segment::segment_base;
use ladon_log::{crc32c, note_copied_end};
use ladon_platform::{Disk, DiskFile};
use ladon_record::Lsn;
use std::fmt::Write as _;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The file in which a server without a cluster notes what its log is (crate `server`).
pub const RUNS_NAME: &str = "runs";

const LIST: &str = "incoming";
const SUFFIX: &str = ".incoming";
const HEAD: &str = "ladon-incoming 1";

/// A longer list is none.
const LIST_BYTES_MAX: u64 = 64 << 20;
/// A directory has no more files than a log of many terabytes.
const FILES_MAX: usize = 1 << 20;

/// Name and bytes of a file of a member's data.
pub type DataFile = (String, u64);

/// Files that are being received.
pub struct Incoming {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    files: Vec<DataFile>,
    end: Lsn,
    open: Option<(usize, Box<dyn DiskFile>)>,
    /// What is here of each file.
    received: Vec<u64>,
}

fn bad(text: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text.into())
}

/// Whether a member's data may have a file of this name.
fn is_of_data(name: &str) -> bool {
    let path = Path::new(name);
    let is_plain = path.file_name().is_some_and(|last| last == name);
    is_plain
        && (name == "meta"
            || name == RUNS_NAME
            || segment_base(path).or(checkpoint_begin(path)).is_some())
}

impl Incoming {
    /// Begins to receive these files, of data up to `end`; what was received before goes.
    ///
    /// # Errors
    /// `InvalidData` if they are not those of a member's data; what the system says.
    pub fn begin(
        disk: Arc<dyn Disk>,
        dir: &Path,
        files: Vec<DataFile>,
        end: Lsn,
    ) -> io::Result<Incoming> {
        if files.len() > FILES_MAX || !files.iter().any(|(name, _)| name == "meta") {
            return Err(bad("these are not the files of a member's data"));
        }
        if let Some((name, _)) = files.iter().find(|(name, _)| !is_of_data(name)) {
            return Err(bad(format!("a member's data has no file '{}'", name.escape_debug())));
        }
        clear(&*disk, dir)?;
        let received = vec![0; files.len()];
        Ok(Incoming { disk, dir: dir.to_owned(), files, end, open: None, received })
    }

    /// A part of a file: each file comes from its begin to its end.
    ///
    /// # Errors
    /// `InvalidData` if it is not the next part; what the system says.
    pub fn part(&mut self, file: usize, at: u64, bytes: &[u8]) -> io::Result<()> {
        let (name, whole) = self.files.get(file).ok_or_else(|| bad("there is no such file"))?;
        let end = at + bytes.len() as u64;
        if self.received[file] != at || end > *whole {
            return Err(bad(format!("bytes {at} to {end} of {name} are not the next ones")));
        }
        if self.open.as_ref().is_none_or(|(open, _)| *open != file) {
            if let Some((_, before)) = self.open.take() {
                before.sync_data()?;
            }
            let path = self.dir.join(format!("{name}{SUFFIX}"));
            self.open = Some((file, self.disk.create_empty(&path)?));
        }
        if let Some((_, open)) = &self.open {
            open.write_all_at(bytes, at)?;
            open.start_writing(at, bytes.len() as u64);
        }
        self.received[file] = end;
        Ok(())
    }

    /// Everything has come: from now on the directory is this data's.
    ///
    /// # Errors
    /// `InvalidData` if something has not; what the system says.
    pub fn end(self) -> io::Result<()> {
        let Incoming { disk, dir, files, end, open, received } = self;
        for ((name, bytes), received) in files.iter().zip(received) {
            if *bytes != received {
                return Err(bad(format!("{received} of {bytes} bytes of {name} have come")));
            }
        }
        if let Some((_, last)) = open {
            last.sync_data()?;
        }
        disk.sync_dir(&dir)?;
        let mut list = format!("{HEAD}\nend {end}\n");
        for (name, bytes) in &files {
            let _ = writeln!(list, "file {name} {bytes}");
        }
        let sum = crc32c(list.as_bytes());
        let _ = writeln!(list, "sum {sum:08x}");
        disk.replace(&dir.join(LIST), &dir.join("incoming.tmp"), list.as_bytes())
    }
}

impl Incoming {
    /// Nothing more comes: what is here goes.
    ///
    /// # Errors
    /// What the system says; the next start removes it then.
    pub fn abandon(self) -> io::Result<()> {
        let Incoming { disk, dir, open, .. } = self;
        drop(open);
        clear(&*disk, &dir)
    }
}

/// Removes files of data that never came as a whole.
fn clear(disk: &dyn Disk, dir: &Path) -> io::Result<()> {
    let is_part = |path: &PathBuf| path.to_string_lossy().ends_with(SUFFIX);
    for path in disk.list(dir)?.into_iter().filter(is_part) {
        remove(disk, &path)?;
    }
    Ok(())
}

fn remove(disk: &dyn Disk, path: &Path) -> io::Result<()> {
    match disk.remove(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Whether there is anything of another member's data in a directory, which may not be there itself.
///
/// # Errors
/// What the system says.
pub fn has_incoming(disk: &dyn Disk, dir: &Path) -> io::Result<bool> {
    let is_of_it = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name == LIST)
            || path.to_string_lossy().ends_with(SUFFIX)
    };
    match disk.list(dir) {
        // Whoever opens the directory says what is wrong with it.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(false)
        }
        files => Ok(files?.iter().any(is_of_it)),
    }
}

/// Makes the directory that of the data which was received, if there is a list of it. The caller
/// holds the directory's lock, and has not opened it. Returns whether it has become another one.
///
/// # Errors
/// `InvalidData` if the list is damaged; what the system says. Try again.
pub fn finish_incoming(disk: &Arc<dyn Disk>, dir: &Path) -> io::Result<bool> {
    let path = dir.join(LIST);
    let Some(bytes) = read_file(&**disk, &path, LIST_BYTES_MAX)? else {
        return clear(&**disk, dir).map(|()| false);
    };
    let damaged = |found| bad(format!("{} is damaged: {found}", path.display()));
    let (end, files) = decode(&bytes).map_err(damaged)?;
    // The vote and the members stay, under the new directory's identity.
    let at = |name: &str| dir.join(name);
    let is_here = |path: &Path| match disk.open_read_only(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    };
    let new_meta = at(&format!("meta{SUFFIX}"));
    let meta = if is_here(&new_meta)? { new_meta } else { at("meta") };
    GroupState::adopt(&**disk, dir, &meta)?;
    let coming: Vec<PathBuf> = files.iter().map(|(name, _)| at(name)).collect();
    for old in disk.list(dir)? {
        let name = old.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_data =
            is_of_data(&name) && name != "meta" || name == "log-end" || name == "committed";
        let has_come = coming.contains(&old) && !is_here(&at(&format!("{name}{SUFFIX}")))?;
        if is_data && !has_come {
            remove(&**disk, &old)?;
        }
    }
    disk.sync_dir(dir)?;
    for (name, _) in &files {
        match disk.rename(&at(&format!("{name}{SUFFIX}")), &at(name)) {
            // It was, before a crash.
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    disk.sync_dir(dir)?;
    note_copied_end(&**disk, dir, end)?;
    remove(&**disk, &path)?;
    disk.sync_dir(dir)?;
    Ok(true)
}

fn decode(bytes: &[u8]) -> Result<(Lsn, Vec<DataFile>), &'static str> {
    let text = std::str::from_utf8(bytes).map_err(|_| "it is no text")?;
    let (lines, sum) = text.rsplit_once("sum ").ok_or("its sum is missing")?;
    let sum = u32::from_str_radix(sum.trim_end_matches('\n'), 16).map_err(|_| "its sum is none")?;
    if sum != crc32c(lines.as_bytes()) {
        return Err("its sum does not match");
    }
    let mut lines = lines.lines();
    if lines.next() != Some(HEAD) {
        return Err("another version wrote it");
    }
    let end = lines.next().and_then(|line| line.strip_prefix("end ")?.parse().ok());
    let end = Lsn(end.ok_or("its end is missing")?);
    let file = |line: &str| {
        let (name, bytes) = line.strip_prefix("file ")?.rsplit_once(' ')?;
        Some((name.to_owned(), bytes.parse().ok()?)).filter(|_| is_of_data(name))
    };
    let files: Option<Vec<DataFile>> = lines.map(file).collect();
    Ok((end, files.ok_or("a line of it is no file's")?))
}
