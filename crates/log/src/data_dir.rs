//! A data directory: its lock, its identity, and its files.
//!
//! ```text
//! LOCK                             held while a server (or a tool that writes) uses the directory
//! meta                             identity: 64 bytes, below
//! backup                           in a backup only: the list of its files
//! log-end                          how far the log had come: log_end.rs
//! 00000000000000000000.log         segments, named by the LSN at which they begin
//! 00000000000000004096.checkpoint  the newest complete checkpoint, named by where replay begins
//!
//! meta:
//!  0        8        12     14     16       24          32        40      60    64
//!  | magic  | format | node | zero | dir id | hash seed | created | zeros | crc |
//! ```

use crate::crc::crc32c;
use crate::damage::Damage;
use crate::log_end::log_end_path;
use crate::options::LogOptions;
use crate::planted::Planted;
use crate::reader::read_full;
use crate::segment::{HeaderFault, checked_header, segment_base};
use crate::unfinished::unfinished;
use ladon_platform::{Clock, Disk, DiskLock};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;

/// The directory format that this version writes, and the newest that it reads.
pub const DIR_FORMAT: u32 = 1;

/// The file that is locked while a server uses the directory.
pub const LOCK_NAME: &str = "LOCK";

/// The file with the directory's identity.
pub(crate) const META_NAME: &str = "meta";

/// The file that a backup has, and no data directory: it lists the backup's files.
pub const BACKUP_NAME: &str = "backup";

const MAGIC: [u8; 8] = *b"LADONDIR";
pub(crate) const META_BYTES: usize = 64;

/// Why a data directory cannot be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// Another process holds it.
    #[error(
        "the data directory {0} is in use by another server; stop that one, or use another directory"
    )]
    Locked(PathBuf),
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
    /// A program that brings its data from elsewhere was interrupted.
    #[error(
        "the data directory {path} has a part of its data only: {what} began and was not finished; \
         do it again, or remove the directory"
    )]
    Unfinished {
        /// The directory.
        path: PathBuf,
        /// What was being done.
        what: String,
    },
    /// A backup, which a server would change.
    #[error("{0} is a backup, and no data directory: 'ladon restore {0} --to DIR' makes one of it")]
    Backup(PathBuf),
    /// A newer Ladon wrote it.
    #[error(
        "{path} has format {found}, and this version reads up to format {supported}: \
         use the newer version of Ladon that wrote it"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format number.
        found: u32,
        /// The newest that this version reads.
        supported: u32,
    },
    /// The meta file is not usable, or is missing although there is data.
    #[error(transparent)]
    Damaged(Damage),
    /// The directory was created by another node.
    #[error("the data directory {path} belongs to node {found}, but this is node {wanted}")]
    OtherNode {
        /// The directory.
        path: PathBuf,
        /// Its node.
        found: u16,
        /// The node in the settings.
        wanted: u16,
    },
}

/// The content of the meta file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meta {
    /// The node that created the directory.
    pub node: u16,
    /// A random identity, written into every file of the directory.
    pub dir_id: u64,
    /// Seed of the key hash.
    pub hash_seed: u64,
    /// When it was created, Unix milliseconds.
    pub created_ms: u64,
}

impl Meta {
    /// The file's bytes.
    pub fn encode(&self) -> [u8; META_BYTES] {
        let mut out = [0; META_BYTES];
        out[0..8].copy_from_slice(&MAGIC);
        out[8..12].copy_from_slice(&DIR_FORMAT.to_le_bytes());
        out[12..14].copy_from_slice(&self.node.to_le_bytes());
        out[16..24].copy_from_slice(&self.dir_id.to_le_bytes());
        out[24..32].copy_from_slice(&self.hash_seed.to_le_bytes());
        out[32..40].copy_from_slice(&self.created_ms.to_le_bytes());
        let crc = crc32c(&out[..60]);
        out[60..64].copy_from_slice(&crc.to_le_bytes());
        out
    }

    /// Reads the file's bytes.
    pub fn decode(bytes: &[u8]) -> Result<Meta, HeaderFault> {
        let fields = checked_header(bytes, &MAGIC, DIR_FORMAT)?;
        Ok(Meta {
            node: fields.u16(12),
            dir_id: fields.u64(16),
            hash_seed: fields.u64(24),
            created_ms: fields.u64(32),
        })
    }
}

/// A locked data directory, ready for [`DataDir::recover`].
pub struct DataDir {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) dir: PathBuf,
    pub(crate) options: LogOptions,
    pub(crate) meta: Meta,
    pub(crate) lock: Box<dyn DiskLock>,
}

impl DataDir {
    /// Creates the directory if necessary, locks it, and reads its identity. A new directory gets
    /// `fresh_seed`, which should be random, as the seed of its key hash.
    ///
    /// # Errors
    /// See [`OpenError`]; a refused directory is left unchanged.
    pub fn open(
        disk: Arc<dyn Disk>,
        clock: Arc<dyn Clock>,
        path: &Path,
        options: LogOptions,
        fresh_seed: u64,
    ) -> Result<DataDir, OpenError> {
        let made = disk.create_dir_all(path).map_err(io_error("create the directory", path))?;
        let lock_path = path.join(LOCK_NAME);
        let lock = disk.lock(&lock_path).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => OpenError::Locked(path.to_owned()),
            _ => io_error("lock", &lock_path)(error),
        })?;
        if !options.may_be_unfinished
            && let Some(what) =
                unfinished(&*disk, path).map_err(io_error("read what is unfinished in", path))?
        {
            return Err(OpenError::Unfinished { path: path.to_owned(), what });
        }
        let list_path = path.join(BACKUP_NAME);
        match disk.open_read_only(&list_path) {
            Ok(_) => return Err(OpenError::Backup(path.to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(io_error("look at", &list_path)(error)),
        }
        let meta = match read_meta(&*disk, path)? {
            Some(meta) => meta,
            None => {
                let created_ms = clock.unix_ms();
                let dir_id =
                    fresh_seed.rotate_left(29) ^ created_ms.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let node = options.node_id;
                let meta = Meta { node, dir_id, hash_seed: fresh_seed, created_ms };
                let meta_path = path.join(META_NAME);
                if options.planted != Planted::UnsyncedDirectory {
                    sync_names(&*disk, path, &made)?;
                }
                write_meta(&*disk, path, &meta).map_err(io_error("write", &meta_path))?;
                meta
            }
        };
        if meta.node != options.node_id {
            let (found, wanted) = (meta.node, options.node_id);
            return Err(OpenError::OtherNode { path: path.to_owned(), found, wanted });
        }
        Ok(DataDir { disk, clock, dir: path.to_owned(), options, meta, lock })
    }

    /// The seed of the key hash, drawn when the directory was created.
    pub fn hash_seed(&self) -> u64 {
        self.meta.hash_seed
    }

    /// The content of the meta file.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.dir
    }
}

/// Reads the meta file; `None` in a directory without data.
pub(crate) fn read_meta(disk: &dyn Disk, dir: &Path) -> Result<Option<Meta>, OpenError> {
    let path = dir.join(META_NAME);
    let damaged = |found: &str| {
        OpenError::Damaged(Damage {
            path: path.clone(),
            offset: 0,
            found: found.to_owned(),
            advice: "restore this file from a backup of the directory: without its hash seed the \
                     data cannot be read"
                .to_owned(),
        })
    };
    let file = match disk.open_read_only(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let files = disk.list(dir).map_err(io_error("list", dir))?;
            let data = files.iter().any(|file| {
                segment_base(file).is_some()
                    || *file == log_end_path(dir)
                    || crate::checkpoint::format::checkpoint_begin(file).is_some()
            });
            return if data { Err(damaged("it is missing, but data is here")) } else { Ok(None) };
        }
        Err(error) => return Err(io_error("open", &path)(error)),
    };
    let mut bytes = [0; META_BYTES];
    let read = read_full(&*file, &mut bytes, 0).map_err(io_error("read", &path))?;
    match Meta::decode(&bytes[..read]) {
        Ok(meta) => Ok(Some(meta)),
        Err(HeaderFault::Bad(found)) => Err(damaged(found)),
        Err(HeaderFault::Newer(found)) => {
            Err(OpenError::Newer { path: path.clone(), found, supported: DIR_FORMAT })
        }
    }
}

/// Makes the name of a new data directory safe, and those of the directories that were `made` for it:
/// with it, all that is in it would be lost. Also if an earlier start has made it, and ended before it
/// wrote anything.
fn sync_names(disk: &dyn Disk, dir: &Path, made: &[PathBuf]) -> Result<(), OpenError> {
    let around = made.iter().filter_map(|made| made.parent()).chain(dir.parent());
    for around in around.collect::<BTreeSet<_>>() {
        match disk.sync_dir(around) {
            // A directory whose owner lets nobody read it, and that somebody else has filled.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            outcome => outcome.map_err(io_error("sync the directory", around))?,
        }
    }
    Ok(())
}

fn write_meta(disk: &dyn Disk, dir: &Path, meta: &Meta) -> io::Result<()> {
    disk.replace(&dir.join(META_NAME), &dir.join("meta.tmp"), &meta.encode())
}

fn io_error(doing: &'static str, path: &Path) -> impl Fn(io::Error) -> OpenError + use<> {
    let path = path.to_owned();
    move |error| OpenError::Io { doing, path: path.clone(), error }
}
