//! The files of a Redis or Valkey server, key by key and command by command, into a target.

use crate::aof::{self, Commands};
use crate::events::Events;
use crate::source::{self, Part};
use ladon_log::{LogError, OpenError, RecoverError};
use ladon_rdb::{Element, Event, Key};
use ladon_transfer::Refused;
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use thiserror::Error;

/// Why an import ended early.
#[derive(Debug, Error)]
pub enum ImportError {
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
    /// A folder without a manifest, or with several.
    #[error(
        "{path} has {manifests} files named *.manifest, and one is needed: name a file of RDB, a \
         file of commands, or a folder as Redis' appendonlydir"
    )]
    Folder {
        /// The folder.
        path: PathBuf,
        /// How many manifests it has.
        manifests: usize,
    },
    /// The manifest is malformed.
    #[error("{path} is no manifest that can be read")]
    Manifest {
        /// The manifest.
        path: PathBuf,
    },
    /// The bytes of a file are no RDB that can be read.
    #[error("{path}: {error}")]
    Rdb {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        error: ladon_rdb::Error,
    },
    /// A key cannot be taken.
    #[error("{path}: key '{key}' of type {of_type} in database {db}: {why}")]
    Key {
        /// The file.
        path: PathBuf,
        /// The key, readably.
        key: String,
        /// Its type and encoding.
        of_type: String,
        /// Its database.
        db: u64,
        /// Why.
        why: String,
    },
    /// A file of commands is malformed.
    #[error("{path}, at byte {at}: {why}")]
    Commands {
        /// The file.
        path: PathBuf,
        /// Where.
        at: u64,
        /// What is wrong.
        why: String,
    },
    /// A library of functions cannot be taken.
    #[error("{path}: a library of functions: {why}")]
    Function {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// The directory has data.
    #[error(
        "the data directory {0} has data already: name another with --data, or a running server with \
         --into"
    )]
    NotEmpty(PathBuf),
    /// The data directory cannot be used.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The data directory cannot be recovered.
    #[error(transparent)]
    Recover(#[from] RecoverError),
    /// The log or the checkpoint cannot be written.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The running server.
    #[error("the server at {address}: {why}")]
    Server {
        /// Its address.
        address: String,
        /// What is wrong.
        why: String,
    },
}

/// Why a target does not take something.
#[derive(Debug, Error)]
pub(crate) enum TargetError {
    /// This key, command or library is wrong.
    #[error("{0}")]
    This(String),
    /// The reader of the file found something wrong.
    #[error(transparent)]
    Source(ladon_rdb::Error),
}

impl From<Refused> for TargetError {
    fn from(refused: Refused) -> TargetError {
        TargetError::This(refused.to_string())
    }
}

/// The elements of a value, of which a target takes all.
pub(crate) type Elements<'e> = &'e mut dyn Iterator<Item = Result<Element, TargetError>>;

/// What takes keys and commands.
pub(crate) trait Target {
    /// Takes a key of a database, and the elements of its value.
    fn key(&mut self, db: u64, key: &Key, elements: Elements<'_>) -> Result<Taken, TargetError>;
    /// Takes a library of functions.
    fn function(&mut self, code: &[u8]) -> Result<(), TargetError>;
    /// Takes a command.
    fn command(&mut self, words: &[Vec<u8>]) -> Result<(), TargetError>;
    /// Takes all of a file of RDB by itself; returns where that ends. `None`: key by key.
    fn file(
        &mut self,
        _path: &Path,
        _tell: &mut dyn FnMut(u64, Imported),
    ) -> Option<Result<(u64, Imported), ImportError>> {
        None
    }
}

/// What became of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// It is in the target.
    Here,
    /// It had expired, or it had no elements: as in Redis, it is no key.
    NoKey,
}

/// What was imported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Keys out of RDB.
    pub keys: u64,
    /// Keys that had expired, or had no elements, and were left out, as Redis does.
    pub expired: u64,
    /// Libraries of functions.
    pub functions: u64,
    /// Commands.
    pub commands: u64,
    /// Bytes of a last command that the file holds a part of only: the server was killed while it
    /// wrote it. They were left out, as Redis does.
    pub cut_bytes: u64,
}

impl Imported {
    /// This and what another file had.
    fn with(self, other: Imported) -> Imported {
        Imported {
            keys: self.keys + other.keys,
            expired: self.expired + other.expired,
            functions: self.functions + other.functions,
            commands: self.commands + other.commands,
            cut_bytes: self.cut_bytes + other.cut_bytes,
        }
    }
}

/// How far an import is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Bytes of all files.
    pub bytes_total: u64,
    /// Those that were read.
    pub bytes_done: u64,
    /// What was imported so far.
    pub imported: Imported,
    /// Everything is read, and is being made safe: the share of keys that is.
    pub saved: Option<f64>,
}

/// What an import does beside filling its target.
pub(crate) struct Import<'p> {
    total: u64,
    /// Bytes of the files before this one.
    before: u64,
    imported: Imported,
    progress: &'p mut dyn FnMut(Progress),
    told: Instant,
}

/// Progress is told this often.
const TELL_EVERY: Duration = Duration::from_millis(200);
/// Keys or commands between two looks at the clock.
const LOOK_EVERY: u64 = 1024;

/// Fills a target with all that `path` stands for.
pub(crate) fn fill(
    path: &Path,
    target: &mut impl Target,
    progress: &mut dyn FnMut(Progress),
) -> Result<Imported, ImportError> {
    let parts = source::parts(path)?;
    let total = parts.iter().map(|part| part.bytes).sum();
    let (before, imported, told) = (0, Imported::default(), Instant::now());
    let mut import = Import { total, before, imported, progress, told };
    for part in &parts {
        let mut offset = 0;
        if source::is_rdb(&part.path)? {
            offset = import.rdb(part, target)?;
        }
        // Redis before 7.0 wrote commands behind an RDB, into the same file.
        if offset < part.bytes {
            import.commands(part, offset, target)?;
        }
        import.before += part.bytes;
    }
    import.tell(0);
    Ok(import.imported)
}

impl Import<'_> {
    fn tell(&mut self, offset: u64) {
        self.told = Instant::now();
        (self.progress)(Progress {
            bytes_total: self.total,
            bytes_done: self.before + offset,
            imported: self.imported,
            saved: None,
        });
    }

    fn tell_now_and_then(&mut self, count: u64, offset: impl FnOnce() -> u64) {
        if count.is_multiple_of(LOOK_EVERY) && self.told.elapsed() >= TELL_EVERY {
            self.tell(offset());
        }
    }

    /// Imports a file of RDB; returns where it ends.
    fn rdb(&mut self, part: &Part, target: &mut impl Target) -> Result<u64, ImportError> {
        let path = &part.path;
        let before = self.imported;
        let taken = target.file(path, &mut |offset, imported| {
            self.imported = before.with(imported);
            if self.told.elapsed() >= TELL_EVERY {
                self.tell(offset);
            }
        });
        if let Some(taken) = taken {
            let (end, imported) = taken?;
            self.imported = before.with(imported);
            return Ok(end);
        }
        let io = |error| ImportError::Io { doing: "read", path: path.clone(), error };
        let wrong = |error| ImportError::Rdb { path: path.clone(), error };
        let offset = Arc::new(AtomicU64::new(0));
        let file = File::open(path).map_err(io)?;
        let mut events = Events::new(file, Arc::clone(&offset)).map_err(io)?;
        let mut db = 0;
        while let Some(event) = events.next() {
            match event.map_err(wrong)? {
                Event::SelectDb(number) => db = number,
                Event::Function(code) => {
                    target.function(&code).map_err(|error| match error {
                        TargetError::This(why) => ImportError::Function { path: path.clone(), why },
                        TargetError::Source(error) => wrong(error),
                    })?;
                    self.imported.functions += 1;
                }
                Event::Key(key) => {
                    let taken = self.one_key(part, (db, &key), &mut events, target)?;
                    match taken {
                        Taken::Here => self.imported.keys += 1,
                        Taken::NoKey => self.imported.expired += 1,
                    }
                    let count = self.imported.keys + self.imported.expired;
                    self.tell_now_and_then(count, || offset.load(Relaxed));
                }
                Event::Header { .. }
                | Event::Aux { .. }
                | Event::ResizeDb { .. }
                | Event::End { .. } => {}
                Event::Element(_) | Event::KeyEnd => unreachable!("they were taken with their key"),
            }
        }
        Ok(offset.load(Relaxed))
    }

    fn one_key(
        &mut self,
        part: &Part,
        (db, key): (u64, &Key),
        events: &mut Events,
        target: &mut impl Target,
    ) -> Result<Taken, ImportError> {
        let mut is_over = false;
        let mut elements = std::iter::from_fn(|| {
            if is_over {
                return None;
            }
            match events.next() {
                Some(Ok(Event::Element(element))) => return Some(Ok(element)),
                Some(Err(error)) => {
                    is_over = true;
                    return Some(Err(TargetError::Source(error)));
                }
                _ => {}
            }
            is_over = true;
            None
        });
        let taken = target.key(db, key, &mut elements);
        if let Ok(Taken::NoKey) = taken {
            // Its elements are no part of the next key.
            for element in elements {
                if let Err(TargetError::Source(error)) = element {
                    return Err(ImportError::Rdb { path: part.path.clone(), error });
                }
            }
        }
        taken.map_err(|error| match error {
            TargetError::Source(error) => ImportError::Rdb { path: part.path.clone(), error },
            TargetError::This(why) => ImportError::Key {
                path: part.path.clone(),
                key: shown(&key.name),
                of_type: key.encoding.to_string(),
                db,
                why,
            },
        })
    }

    /// Runs the commands of a file from `offset` on.
    fn commands(
        &mut self,
        part: &Part,
        offset: u64,
        target: &mut impl Target,
    ) -> Result<(), ImportError> {
        let path = &part.path;
        let io = |error| ImportError::Io { doing: "read", path: path.clone(), error };
        let wrong = |at, why: String| ImportError::Commands { path: path.clone(), at, why };
        let mut file = File::open(path).map_err(io)?;
        file.seek(SeekFrom::Start(offset)).map_err(io)?;
        let mut commands = Commands::new(file, offset);
        // A transaction that the file has a part of was not executed.
        let mut transaction: Option<(u64, Vec<Vec<Vec<u8>>>)> = None;
        loop {
            let at = commands.end;
            let words = match commands.next() {
                Ok(Some(words)) => words,
                Ok(None) => break,
                Err(aof::Fault::Io(error)) => return Err(io(error)),
                Err(aof::Fault::Malformed(why)) => return Err(wrong(at, why.to_owned())),
                Err(aof::Fault::Cut) if part.may_be_cut => break,
                Err(aof::Fault::Cut) => {
                    return Err(wrong(at, "the file ends in the middle of a command".to_owned()));
                }
            };
            let name = words[0].to_ascii_lowercase();
            match (&name[..], &mut transaction) {
                (b"multi", None) => {
                    transaction = Some((at, vec![words]));
                    continue;
                }
                (b"exec", Some((_, queued))) => {
                    queued.push(words);
                    let (at, queued) = transaction.take().expect("it was just there");
                    for words in queued {
                        self.command(&words, target).map_err(|error| error.at(path, at))?;
                    }
                }
                (_, Some((_, queued))) => {
                    queued.push(words);
                    continue;
                }
                (_, None) => self.command(&words, target).map_err(|error| error.at(path, at))?,
            }
            self.tell_now_and_then(self.imported.commands, || commands.end);
        }
        let end = transaction.map_or(commands.end, |(at, _)| at);
        if end < part.bytes && !part.may_be_cut {
            return Err(wrong(end, "the file ends in the middle of a transaction".to_owned()));
        }
        self.imported.cut_bytes += part.bytes - end;
        Ok(())
    }

    fn command(&mut self, words: &[Vec<u8>], target: &mut impl Target) -> Result<(), TargetError> {
        self.imported.commands += 1;
        target.command(words)
    }
}

impl TargetError {
    fn at(self, path: &Path, at: u64) -> ImportError {
        ImportError::Commands { path: path.to_owned(), at, why: self.to_string() }
    }
}

/// Bytes for a message, at most so many.
pub(crate) fn shown(bytes: &[u8]) -> String {
    const BYTES_SHOWN: usize = 128;
    let more = if bytes.len() > BYTES_SHOWN { "..." } else { "" };
    format!("{}{more}", bytes[..bytes.len().min(BYTES_SHOWN)].escape_ascii())
}
