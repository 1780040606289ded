//! A backup of a running server, over Redis' protocol: its files as they are, up to one position of
//! the log.
//!
//! ```text
//! note that the folder is unfinished -> LADON.BACKUP BEGIN, READ ..., END
//!     -> every byte is checked -> the list of files -> the note is removed
//! ```
//!
//! A kill anywhere before the last step leaves the note, and nobody takes the folder for a backup.

use crate::backup_list::{BackupList, ListError, ListedFile, is_name};
use ladon_log::verify::verify_dir;
use ladon_log::{
    BACKUP_NAME, Damage, OpenError, begin_unfinished, crc32c, crc32c_of_both, end_unfinished,
    note_copied_end, unfinished,
};
use ladon_peers::{Client, ClientError, Reply, ServerOptions};
use ladon_platform::{Clock, Disk, SystemClock, SystemDisk};
use ladon_record::Lsn;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;
use thiserror::Error;

const COMMAND: &[u8] = b"LADON.BACKUP";
/// Bytes of a piece: the most that a server gives at once.
pub(crate) const PIECE_BYTES: u64 = 1 << 20;
/// So many pieces are asked for before the first has come.
const PIECES_ASKED: u64 = 4;
/// How the note of an unfinished backup begins.
const NOTE: &str = "a backup of ";

/// Why there is no backup, or nothing made of one.
#[derive(Debug, Error)]
pub enum BackupError {
    /// A system call failed.
    #[error("cannot {doing} {path}: {error}")]
    Io {
        /// What was attempted.
        doing: &'static str,
        /// The path it was attempted on.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The running server.
    #[error("the server at {address}: {why}")]
    Server {
        /// Its address.
        address: String,
        /// What is wrong.
        why: String,
    },
    /// There is something in the folder.
    #[error("{0} is not empty: name a new folder")]
    NotEmpty(PathBuf),
    /// The folder is none that a backup was made in.
    #[error("{0} is no backup: it has no file named 'backup', which lists one's files")]
    NoBackup(PathBuf),
    /// It was interrupted.
    #[error("{path} is a part of a backup only: {what} began and was not finished")]
    Unfinished {
        /// The folder.
        path: PathBuf,
        /// What was being done.
        what: String,
    },
    /// The list of files cannot be used.
    #[error("{path}: {error}")]
    List {
        /// The list.
        path: PathBuf,
        /// Why.
        error: ListError,
    },
    /// A file is not as it was.
    #[error("{path} is damaged: {found}")]
    Changed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        found: String,
    },
    /// Data is damaged.
    #[error("{}", said(.0))]
    Damaged(Vec<Damage>),
    /// The folder cannot be read as a data directory.
    #[error(transparent)]
    Open(#[from] OpenError),
}

fn said(damages: &[Damage]) -> String {
    let lines: Vec<String> = damages.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

/// How far a backup or a restore is.
#[derive(Clone, Copy, Debug)]
pub enum BackupProgress {
    /// The server makes a checkpoint first.
    Checkpoint,
    /// Files are being copied.
    Copying {
        /// Bytes that were.
        bytes_done: u64,
        /// Of so many.
        bytes_total: u64,
    },
    /// Every byte is read and checked.
    Checking,
}

/// What was copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copied {
    /// Files.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
    /// The end of the log in them.
    pub end: Lsn,
    /// The file of users, if there is one among them.
    pub users: Option<PathBuf>,
}

/// Copies all data of a running server to `dir`, which is new or empty, or has a part of a backup
/// that was interrupted. With `checkpoint`, the server makes a checkpoint first, so that less log is
/// copied and replayed.
///
/// # Errors
/// See [`BackupError`]. The folder then says that it is unfinished, unless it was refused.
pub fn back_up(
    dir: &Path,
    options: &ServerOptions,
    checkpoint: bool,
    progress: &mut dyn FnMut(BackupProgress),
) -> Result<Copied, BackupError> {
    let what = format!("{NOTE}{}", options.address);
    let mut source = Source::connect(options)?;
    begin_in(dir, &what, NOTE)?;
    let (end, files) = source.fetch(dir, checkpoint, progress)?;
    progress(BackupProgress::Checking);
    check(dir)?;
    let (made_ms, version) = (SystemClock.unix_ms(), env!("CARGO_PKG_VERSION").to_owned());
    let copied = copied(dir, &files, end);
    let list = BackupList { made_ms, version, end, files };
    write_list(dir, &list)?;
    finish_in(dir)?;
    Ok(copied)
}

/// Summary of these files.
pub(crate) fn copied(dir: &Path, files: &[ListedFile], end: Lsn) -> Copied {
    let bytes = files.iter().map(|file| file.bytes).sum();
    let users = files.iter().find(|file| file.name == USERS_NAME);
    let users = users.map(|file| dir.join(&file.name));
    Copied { files: files.len(), bytes, end, users }
}

/// The name that servers give the file of users in a backup.
const USERS_NAME: &str = "users.acl";

pub(crate) fn io_error(doing: &'static str, path: &Path) -> impl Fn(io::Error) -> BackupError {
    move |error| BackupError::Io { doing, path: path.to_owned(), error }
}

/// Makes a folder, or empties one that has a part of what `note` names, and notes what begins in it.
pub(crate) fn begin_in(dir: &Path, what: &str, note: &str) -> Result<(), BackupError> {
    let disk = SystemDisk;
    disk.create_dir_all(dir).map_err(io_error("make the folder", dir))?;
    let before = unfinished(&disk, dir).map_err(io_error("look into", dir))?;
    // On a full disk, a note has no text, and nothing is there besides.
    let may_be_emptied = before.is_some_and(|it| it.is_empty() || it.starts_with(note));
    let is_ours = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        is_name(&name) || matches!(&*name, "backup" | "log-end" | "LOCK" | "unfinished")
    };
    for entry in fs::read_dir(dir).map_err(io_error("list", dir))? {
        let path = entry.map_err(io_error("list", dir))?.path();
        if !may_be_emptied || !is_ours(&path) {
            return Err(BackupError::NotEmpty(dir.to_owned()));
        }
        // The note goes last: without it, the rest would be in the way of the next attempt.
        if !path.ends_with("unfinished") {
            fs::remove_file(&path).map_err(io_error("remove", &path))?;
        }
    }
    begin_unfinished(&disk, dir, what).map_err(io_error("prepare", dir))
}

pub(crate) fn finish_in(dir: &Path) -> Result<(), BackupError> {
    let ended = end_unfinished(&SystemDisk, dir);
    ended.map_err(io_error("remove the note 'unfinished' in", dir))
}

/// Reads every byte of a copy.
pub(crate) fn check(dir: &Path) -> Result<(), BackupError> {
    let report = verify_dir(&SystemDisk, dir)?;
    // The note is no damage here.
    let note = dir.join("unfinished");
    let damages = report.damages.into_iter().chain(report.not_needed);
    let damages: Vec<Damage> = damages.filter(|damage| damage.path != note).collect();
    if damages.is_empty() { Ok(()) } else { Err(BackupError::Damaged(damages)) }
}

fn write_list(dir: &Path, list: &BackupList) -> Result<(), BackupError> {
    let (disk, path) = (SystemDisk, dir.join(BACKUP_NAME));
    let file = disk.create_new(&path).map_err(io_error("create", &path))?;
    let written = file.write_all_at(list.encode().as_bytes(), 0);
    written.and_then(|()| file.sync_data()).map_err(io_error("write", &path))
}

/// A server whose files are fetched.
pub(crate) struct Source {
    client: Client,
    address: String,
}

impl Source {
    pub(crate) fn connect(options: &ServerOptions) -> Result<Source, BackupError> {
        let address = options.address.clone();
        match Client::connect(options) {
            Ok(client) => Ok(Source { client, address }),
            Err(error) => Err(BackupError::Server { address, why: error.to_string() }),
        }
    }

    /// Copies the files into a folder. Returns the end of the log in them, and what they are.
    pub(crate) fn fetch(
        &mut self,
        dir: &Path,
        checkpoint: bool,
        progress: &mut dyn FnMut(BackupProgress),
    ) -> Result<(Lsn, Vec<ListedFile>), BackupError> {
        if checkpoint {
            self.make_checkpoint(progress)?;
        }
        let (id, end, files) = self.begin()?;
        let bytes_total = files.iter().map(|(_, bytes)| bytes).sum();
        let (mut listed, mut done) = (Vec::new(), 0);
        for (index, (name, bytes)) in files.into_iter().enumerate() {
            let mut tell = |bytes_here| {
                let bytes_done = done + bytes_here;
                progress(BackupProgress::Copying { bytes_done, bytes_total });
            };
            let crc = self.fetch_file(&dir.join(&name), (&id, index, bytes), &mut tell)?;
            done += bytes;
            listed.push(ListedFile { name, bytes, crc });
        }
        self.ask(&[COMMAND, b"END", &id])?;
        SystemDisk.sync_dir(dir).map_err(io_error("sync the folder", dir))?;
        note_copied_end(&SystemDisk, dir, end).map_err(io_error("note the log's end in", dir))?;
        Ok((end, listed))
    }

    fn wrong(&self, error: impl ToString) -> BackupError {
        BackupError::Server { address: self.address.clone(), why: error.to_string() }
    }

    fn ask(&mut self, words: &[&[u8]]) -> Result<Reply, BackupError> {
        self.client.ask(words).map_err(|error| self.wrong(error))
    }

    /// Databases that the server has.
    pub(crate) fn databases(&mut self) -> Result<u16, BackupError> {
        let reply = self.ask(&[b"CONFIG", b"GET", b"databases"])?;
        let Reply::Array(parts) = reply else { return Err(self.wrong(ClientError::Malformed)) };
        let number = match parts.get(1) {
            Some(Reply::Bulk(Some(text))) => str::from_utf8(text).ok(),
            _ => None,
        };
        let number = number.and_then(|number| number.parse().ok());
        number.ok_or_else(|| self.wrong(ClientError::Malformed))
    }

    /// Bytes of memory that the server uses for its data.
    pub(crate) fn memory(&mut self) -> Result<u64, BackupError> {
        let text = self.info(b"memory")?;
        let bytes = text.lines().find_map(|line| line.strip_prefix("used_memory_dataset:"));
        let bytes = bytes.and_then(|bytes| bytes.parse().ok());
        bytes.ok_or_else(|| self.wrong(ClientError::Malformed))
    }

    fn info(&mut self, section: &[u8]) -> Result<String, BackupError> {
        match self.ask(&[b"INFO", section])? {
            Reply::Bulk(Some(text)) => Ok(String::from_utf8_lossy(&text).into_owned()),
            _ => Err(self.wrong(ClientError::Malformed)),
        }
    }

    /// Waits for a checkpoint that began after this.
    fn make_checkpoint(
        &mut self,
        progress: &mut dyn FnMut(BackupProgress),
    ) -> Result<(), BackupError> {
        const LOOK_EVERY: Duration = Duration::from_millis(100);
        while let Err(error) = self.client.ask(&[b"BGSAVE"]) {
            match error {
                // It began before this, so that another has to follow it.
                ClientError::Refused(text) if text.contains("already in progress") => {}
                error => return Err(self.wrong(error)),
            }
            progress(BackupProgress::Checkpoint);
            thread::sleep(LOOK_EVERY);
        }
        loop {
            let text = self.info(b"persistence")?;
            let has = |line: &str| text.lines().any(|found| found == line);
            if has("rdb_bgsave_in_progress:0") {
                return match has("rdb_last_bgsave_status:ok") {
                    true => Ok(()),
                    false => Err(self.wrong("the checkpoint failed: its log says why")),
                };
            }
            progress(BackupProgress::Checkpoint);
            thread::sleep(LOOK_EVERY);
        }
    }

    fn begin(&mut self) -> Result<Begun, BackupError> {
        let reply = self.ask(&[COMMAND, b"BEGIN"]).map_err(|error| match error {
            BackupError::Server { address, why } if why.contains("unknown command") => {
                let why = format!("it is no Ladon that makes backups ({why})");
                BackupError::Server { address, why }
            }
            error => error,
        })?;
        begun_of(reply).ok_or_else(|| self.wrong(ClientError::Malformed))
    }

    /// Copies a file, and returns its checksum.
    fn fetch_file(
        &mut self,
        path: &Path,
        (id, index, bytes): (&[u8], usize, u64),
        tell: &mut dyn FnMut(u64),
    ) -> Result<u32, BackupError> {
        let file = SystemDisk.create_new(path).map_err(io_error("create", path))?;
        let index = index.to_string();
        let (mut asked, mut got, mut crc) = (0, 0, crc32c(&[]));
        while got < bytes {
            while asked < bytes && asked - got < PIECES_ASKED * PIECE_BYTES {
                let (at, count) = (asked.to_string(), PIECE_BYTES.to_string());
                let words: [&[u8]; 6] =
                    [COMMAND, b"READ", id, index.as_bytes(), at.as_bytes(), count.as_bytes()];
                self.client.send(&words).map_err(|error| self.wrong(error))?;
                asked += PIECE_BYTES;
            }
            let reply = self.client.reply().map_err(|error| self.wrong(error))?;
            let piece = match reply {
                Reply::Bulk(Some(piece)) => piece,
                Reply::Error(text) => return Err(self.wrong(text)),
                _ => return Err(self.wrong(ClientError::Malformed)),
            };
            if piece.len() as u64 != PIECE_BYTES.min(bytes - got) {
                return Err(self.wrong("it sent less of a file than it has"));
            }
            file.write_all_at(&piece, got).map_err(io_error("write", path))?;
            crc = crc32c_of_both(crc, crc32c(&piece), piece.len());
            got += piece.len() as u64;
            tell(got);
        }
        file.sync_data().map_err(io_error("sync", path))?;
        file.drop_cache(0, bytes);
        Ok(crc)
    }
}

/// The backup's number, the log's end, and name and bytes of each file.
type Begun = (Vec<u8>, Lsn, Vec<(String, u64)>);

fn begun_of(reply: Reply) -> Option<Begun> {
    let Reply::Array(parts) = reply else { return None };
    let [Reply::Bulk(Some(id)), Reply::Integer(end), Reply::Array(files)] = &parts[..] else {
        return None;
    };
    let file = |file: &Reply| match file {
        Reply::Array(parts) => match &parts[..] {
            [Reply::Bulk(Some(name)), Reply::Integer(bytes)] => {
                let name = String::from_utf8(name.clone()).ok().filter(|name| is_name(name))?;
                Some((name, u64::try_from(*bytes).ok()?))
            }
            _ => None,
        },
        _ => None,
    };
    let files = files.iter().map(file).collect::<Option<Vec<_>>>()?;
    Some((id.clone(), Lsn(u64::try_from(*end).ok()?), files))
}
