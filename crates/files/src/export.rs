//! A data directory, or a running server, to a file of RDB.
//!
//! A directory is recovered into memory first, as a start does it, and nothing in it changes. A
//! running server is asked for key after key: nobody waits for the export, and each key is as of its
//! own moment.

use crate::import::shown;
use crate::server_client::{Client, ClientError, Reply, ServerOptions};
use ladon_engine::{EntryRef, Keyspace, Locks, Scratch};
use ladon_kernel::limits;
use ladon_log::{DataDir, LogOptions, OpenError, RecoverError};
use ladon_platform::{Clock, SystemClock, SystemDisk};
use ladon_rdb::{Fault, KeyFacts, Version, Writer};
use ladon_server::{Recovered, databases, recover};
use ladon_settings::Settings;
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
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
    /// The running server.
    #[error("the server at {address}: {why}")]
    Server {
        /// Its address.
        address: String,
        /// What is wrong.
        why: String,
    },
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
struct Target<'p> {
    path: &'p Path,
    temporary: PathBuf,
    writer: Writer<BufWriter<File>>,
    exported: Exported,
    db: Option<u64>,
    progress: &'p mut dyn FnMut(Exported),
}

/// Keys between two reports.
const TELL_EVERY: u64 = 4096;

impl<'p> Target<'p> {
    fn create(
        path: &'p Path,
        version: Version,
        progress: &'p mut dyn FnMut(Exported),
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

    fn function(&mut self, code: &[u8]) -> Result<(), ExportError> {
        self.exported.functions += 1;
        self.writer.function(code).map_err(|fault| self.wrong(fault))
    }

    /// Writes a key of a database, after all keys of those before.
    fn key(
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
            (self.progress)(self.exported);
        }
        Ok(())
    }

    fn finish(self) -> Result<Exported, ExportError> {
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

/// Exports the data directory that the settings name, which no server uses.
///
/// # Errors
/// See [`ExportError`].
pub fn export_directory(
    path: &Path,
    version: Version,
    settings: &Settings,
    progress: &mut dyn FnMut(Exported),
) -> Result<Exported, ExportError> {
    let data = settings.data();
    let dir = Path::new(&data);
    if !dir.join("meta").exists() {
        return Err(ExportError::NoData(dir.to_owned()));
    }
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let options =
        LogOptions { segment_bytes: settings.log_segment_bytes(), ..LogOptions::default() };
    let data = DataDir::open(Arc::new(SystemDisk), Arc::clone(&clock), dir, options, 0)?;
    let databases = databases(settings);
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let prepare = |keyspace: &Keyspace| limits::apply(keyspace, settings);
    let recovered = recover(data, databases, clock.unix_ms(), workers, prepare, &|_| {})?;
    let mut target = Target::create(path, version, progress)?;
    write_all(&recovered, &mut target, clock.unix_ms())?;
    target.finish()
}

fn write_all(
    recovered: &Recovered,
    target: &mut Target<'_>,
    now_ms: u64,
) -> Result<(), ExportError> {
    let keyspace = &recovered.keyspace;
    let mut scratch = Scratch::default();
    let mut tx = keyspace.begin(Locks::All, &mut scratch, now_ms);
    for library in tx.libraries() {
        target.function(&library.body.code)?;
    }
    for number in 0..keyspace.databases() {
        let db = keyspace.select(number);
        let mut result = Ok(());
        tx.for_each(db, |entry| {
            if result.is_ok() {
                result = target.key(number.into(), entry.key(), |writer| write_key(writer, entry));
            }
        });
        result?;
    }
    Ok(())
}

fn write_key(writer: &mut Writer<BufWriter<File>>, entry: EntryRef<'_>) -> Result<(), Fault> {
    let expires_at_ms = i64::try_from(entry.expire_at()).ok().filter(|&at| at != 0);
    let facts = KeyFacts { expires_at_ms, ..KeyFacts::default() };
    let value = entry.value();
    let head = ladon_transfer::head_of(value)?;
    ladon_transfer::write(value, writer.begin_key(entry.key(), &facts, head)?)
}

/// Exports a running Ladon over Redis' protocol.
///
/// # Errors
/// See [`ExportError`].
pub fn export_server(
    path: &Path,
    version: Version,
    options: &ServerOptions,
    progress: &mut dyn FnMut(Exported),
) -> Result<Exported, ExportError> {
    let told = |error: ClientError| ExportError::Server {
        address: options.address.clone(),
        why: error.to_string(),
    };
    let mut client = Client::connect(options).map_err(told)?;
    let info = text_of(client.ask(&[b"INFO", b"server"]).map_err(told)?);
    if !info.contains("ladon_version:") {
        // The SCAN of another may show a key twice, and no server loads a file with that.
        return Err(ExportError::Server {
            address: options.address.clone(),
            why: "it is no Ladon: it can save a file of RDB by itself".to_owned(),
        });
    }
    let keyspace = text_of(client.ask(&[b"INFO", b"keyspace"]).map_err(told)?);
    let mut target = Target::create(path, version, progress)?;
    for code in libraries(&mut client).map_err(told)? {
        target.function(&code)?;
    }
    let name = |line: &str| line.strip_prefix("db")?.split_once(':')?.0.parse::<u64>().ok();
    for db in keyspace.lines().filter_map(name) {
        client.ask(&[b"SELECT", db.to_string().as_bytes()]).map_err(told)?;
        let mut cursor = b"0".to_vec();
        loop {
            let (next, keys) = scan(&mut client, &cursor).map_err(told)?;
            for key in &keys {
                let sent = client.send(&[b"DUMP", key]);
                sent.and_then(|()| client.send(&[b"PEXPIRETIME", key]))
                    .map_err(|error| told(error.into()))?;
            }
            for key in &keys {
                let (payload, at) = (client.reply().map_err(told)?, client.reply().map_err(told)?);
                let facts = KeyFacts { expires_at_ms: time_of(&at), ..KeyFacts::default() };
                match payload {
                    // It is gone meanwhile.
                    Reply::Bulk(None) => {}
                    _ if at == Reply::Integer(-2) => {}
                    Reply::Bulk(Some(payload)) => {
                        target.key(db, key, |writer| writer.payload_key(key, &facts, &payload))?
                    }
                    Reply::Error(error) => {
                        return Err(ExportError::Key {
                            key: shown(key),
                            db,
                            fault: Fault::Unsupported(error),
                        });
                    }
                    _ => return Err(told(ClientError::Malformed)),
                }
            }
            cursor = next;
            if cursor == b"0" {
                break;
            }
        }
    }
    target.finish()
}

fn text_of(reply: Reply) -> String {
    match reply {
        Reply::Bulk(Some(bytes)) => String::from_utf8_lossy(&bytes).into_owned(),
        _ => String::new(),
    }
}

fn time_of(reply: &Reply) -> Option<i64> {
    match reply {
        Reply::Integer(at) => Some(*at).filter(|&at| at > 0),
        _ => None,
    }
}

/// A step of the walk over a database.
fn scan(client: &mut Client, cursor: &[u8]) -> Result<(Vec<u8>, Vec<Vec<u8>>), ClientError> {
    let reply = client.ask(&[b"SCAN", cursor, b"COUNT", b"128"])?;
    let Reply::Array(mut parts) = reply else { return Err(ClientError::Malformed) };
    let (Some(Reply::Array(keys)), Some(Reply::Bulk(Some(next)))) = (parts.pop(), parts.pop())
    else {
        return Err(ClientError::Malformed);
    };
    let key = |reply| match reply {
        Reply::Bulk(Some(key)) => Ok(key),
        _ => Err(ClientError::Malformed),
    };
    Ok((next, keys.into_iter().map(key).collect::<Result<_, _>>()?))
}

fn libraries(client: &mut Client) -> Result<Vec<Vec<u8>>, ClientError> {
    let Reply::Array(libraries) = client.ask(&[b"FUNCTION", b"LIST", b"WITHCODE"])? else {
        return Err(ClientError::Malformed);
    };
    let mut codes = Vec::new();
    for library in libraries {
        let Reply::Array(parts) = library else { return Err(ClientError::Malformed) };
        let at = parts.iter().position(|part| *part == Reply::Bulk(Some(b"library_code".to_vec())));
        match at.and_then(|at| parts.into_iter().nth(at + 1)) {
            Some(Reply::Bulk(Some(code))) => codes.push(code),
            _ => return Err(ClientError::Malformed),
        }
    }
    Ok(codes)
}

#[cfg(test)]
mod tests {
    use super::*;

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
