//! The file that an export writes: it gets its name once it is complete.

use crate::backup::BackupError;
use crate::import::shown;
use ladon_log::{OpenError, RecoverError};
use ladon_rdb::{Fault, Version, Writer};
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why there is no file, or a part of one under another name.
#[derive(Debug, Error)]
pub enum ExportError {
    /// The file is there.
    #[error("{0} is there already: name a new file")]
    Exists(PathBuf),
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
    /// The directory has the log of a cluster and no data.
    #[error("{0} is a witness's directory: it has the end of the log and no data")]
    Witness(PathBuf),
    /// A key cannot be written.
    #[error("key '{key}' in database {db}: {fault}")]
    Key {
        /// The key, readably.
        key: String,
        /// Its database.
        db: u64,
        /// Why.
        fault: Fault,
    },
    /// The rest of the file cannot be written.
    #[error("cannot write {path}: {fault}")]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        fault: Fault,
    },
    /// There is no data.
    #[error("there is no data in {0}")]
    NoData(PathBuf),
    /// The data directory cannot be used.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The data directory cannot be recovered.
    #[error(transparent)]
    Recover(#[from] RecoverError),
    /// The running server's data cannot be fetched.
    #[error(transparent)]
    Fetch(#[from] BackupError),
    /// Its data does not fit into this machine's memory.
    #[error(
        "the server's data takes {needed} MB of memory, which an export at one moment needs here, \
         too, and there are {available} MB: use '--online scan', which needs none"
    )]
    Memory {
        /// Megabytes that the server's data takes.
        needed: u64,
        /// Megabytes that are available here.
        available: u64,
    },
    /// The running server.
    #[error("the server at {address}: {why}")]
    Server {
        /// Its address.
        address: String,
        /// What is wrong.
        why: String,
    },
}

/// How far an export is.
#[derive(Clone, Copy, Debug)]
pub enum ExportProgress {
    /// The running server's files are being fetched.
    Fetching {
        /// Bytes that were.
        bytes_done: u64,
        /// Of so many.
        bytes_total: u64,
    },
    /// The data is being loaded.
    Loading {
        /// Bytes that were.
        bytes_done: u64,
        /// Of so many.
        bytes_total: u64,
    },
    /// Keys are being written.
    Writing(Exported),
}

/// What was exported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// Keys.
    pub keys: u64,
    /// Libraries of functions.
    pub functions: u64,
}

/// A file that gets its name once it is complete.
pub(crate) struct Target<'p> {
    path: &'p Path,
    temporary: PathBuf,
    writer: Writer<BufWriter<File>>,
    exported: Exported,
    db: Option<u64>,
    progress: &'p mut (dyn FnMut(ExportProgress) + Send),
}

/// Keys between two reports.
const TELL_EVERY: u64 = 4096;

impl<'p> Target<'p> {
    pub(crate) fn create(
        path: &'p Path,
        version: Version,
        progress: &'p mut (dyn FnMut(ExportProgress) + Send),
    ) -> Result<Target<'p>, ExportError> {
        if path.exists() {
            return Err(ExportError::Exists(path.to_owned()));
        }
        let mut name = path.as_os_str().to_owned();
        name.push(".part");
        let temporary = PathBuf::from(name);
        let file = File::create(&temporary).map_err(|error| ExportError::Io {
            doing: "create",
            path: temporary.clone(),
            error,
        })?;
        let write = |fault| ExportError::Write { path: temporary.clone(), fault };
        let mut writer = Writer::new(BufWriter::new(file), version).map_err(write)?;
        writer.aux(b"ladon-ver", env!("CARGO_PKG_VERSION").as_bytes()).map_err(write)?;
        writer.aux(b"redis-bits", b"64").map_err(write)?;
        let (exported, db) = (Exported::default(), None);
        Ok(Target { path, temporary, writer, exported, db, progress })
    }

    fn wrong(&self, fault: Fault) -> ExportError {
        ExportError::Write { path: self.temporary.clone(), fault }
    }

    pub(crate) fn function(&mut self, code: &[u8]) -> Result<(), ExportError> {
        self.exported.functions += 1;
        self.writer.function(code).map_err(|fault| self.wrong(fault))
    }

    /// Writes a key of a database, after all keys of those before.
    pub(crate) fn key(
        &mut self,
        db: u64,
        name: &[u8],
        write: impl FnOnce(&mut Writer<BufWriter<File>>) -> Result<(), Fault>,
    ) -> Result<(), ExportError> {
        if self.db != Some(db) {
            self.writer.select_db(db).map_err(|fault| self.wrong(fault))?;
            self.db = Some(db);
        }
        write(&mut self.writer).map_err(|fault| ExportError::Key {
            key: shown(name),
            db,
            fault,
        })?;
        self.exported.keys += 1;
        if self.exported.keys.is_multiple_of(TELL_EVERY) {
            (self.progress)(ExportProgress::Writing(self.exported));
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<Exported, ExportError> {
        let Target { path, temporary, writer, exported, .. } = self;
        let io = |doing| {
            let path = temporary.clone();
            move |error| ExportError::Io { doing, path, error }
        };
        let file = writer
            .finish()
            .map_err(|fault| ExportError::Write { path: temporary.clone(), fault })?;
        let file = file.into_inner().map_err(|error| io("write")(error.into_error()))?;
        file.sync_all().map_err(io("sync"))?;
        fs::rename(&temporary, path).map_err(io("rename"))?;
        let around = path.parent().filter(|around| !around.as_os_str().is_empty());
        let around = around.unwrap_or(Path::new("."));
        let synced = File::open(around).and_then(|directory| directory.sync_all());
        synced.map_err(|error| ExportError::Io {
            doing: "sync the directory",
            path: around.to_owned(),
            error,
        })?;
        Ok(exported)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ladon_rdb::KeyFacts;

    #[test]
    fn a_file_that_is_there_is_not_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("there.rdb");
        fs::write(&path, "mine").unwrap();
        let created = Target::create(&path, Version::Redis10, &mut |_| {}).map(drop);
        assert!(matches!(created, Err(ExportError::Exists(_))));
        assert_eq!(fs::read(&path).unwrap(), b"mine");
    }

    #[test]
    fn a_file_gets_its_name_at_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new.rdb");
        let mut tell = |_| {};
        let mut target = Target::create(&path, Version::Redis10, &mut tell).unwrap();
        let facts = KeyFacts::default();
        let value = ladon_rdb::Value::String(b"v".to_vec());
        target.key(3, b"k", |writer| writer.key(b"k", &facts, &value)).unwrap();
        assert!(!path.exists());
        assert_eq!(target.finish().unwrap().keys, 1);
        let events = ladon_rdb::Reader::new(File::open(&path).unwrap());
        assert!(events.last().unwrap().is_ok());
    }
}
