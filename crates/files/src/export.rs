//! A data directory that no server uses to a file of RDB: it is recovered into memory first, as a start
//! does it, and none of its data changes.

use crate::export_target::{ExportError, ExportProgress, Exported, Target};
use ladon_engine::{EntryRef, Keyspace, Locks, Scratch};
use ladon_kernel::limits;
use ladon_log::{DataDir, LogOptions, Progress};
use ladon_platform::{Clock, SystemClock, SystemDisk};
use ladon_rdb::{Fault, KeyFacts, Version, Writer};
use ladon_server::{Recovered, databases, is_of_witness, recover};
use ladon_settings::Settings;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Exports the data directory that the settings name, which no server uses.
///
/// # Errors
/// See [`ExportError`].
pub fn export_directory(
    path: &Path,
    version: Version,
    settings: &Settings,
    progress: &mut (dyn FnMut(ExportProgress) + Send),
) -> Result<Exported, ExportError> {
    let data = settings.data();
    let dir = Path::new(&data);
    if !dir.join("meta").exists() {
        return Err(ExportError::NoData(dir.to_owned()));
    }
    export_from(dir, (path, version), settings, databases(settings), progress)
}

/// Exports a data directory, unfinished or not, to a file.
pub(crate) fn export_from(
    dir: &Path,
    (path, version): (&Path, Version),
    settings: &Settings,
    databases: u16,
    progress: &mut (dyn FnMut(ExportProgress) + Send),
) -> Result<Exported, ExportError> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let options = LogOptions {
        segment_bytes: settings.log_segment_bytes(),
        may_be_unfinished: dir.join("unfinished").exists(),
        ..LogOptions::default()
    };
    let data = DataDir::open(Arc::new(SystemDisk), Arc::clone(&clock), dir, options, 0)?;
    let failed = |error| ExportError::Io { doing: "read", path: dir.join("group"), error };
    if is_of_witness(&data).map_err(failed)? {
        return Err(ExportError::Witness(dir.to_owned()));
    }
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let prepare = |keyspace: &Keyspace| limits::apply(keyspace, settings);
    let shown = Mutex::new(&mut *progress);
    let tell = |Progress { bytes_done, bytes_total, .. }: Progress| {
        let mut shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
        shown(ExportProgress::Loading { bytes_done, bytes_total });
    };
    let recovered = recover(data, databases, clock.unix_ms(), workers, prepare, &tell, None)?;
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
