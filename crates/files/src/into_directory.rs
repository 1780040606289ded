//! An import into a data directory that has no data yet.
//!
//! ```text
//! note that the directory is unfinished -> keyspace in memory -> checkpoint -> log closed
//!                                                                     -> the note is removed
//! ```
//!
//! A kill anywhere before the last step leaves the note: a server refuses the directory, and the next
//! import begins there anew. Nothing is logged; the checkpoint has everything.

use crate::executor::Executor;
use crate::import::{
    Elements, ImportError, Imported, Progress, Taken, Target, TargetError, fill, shown,
};
use crate::parallel::place_file;
use crate::places::Places;
use ladon_engine::{Keyspace, KeyspaceOptions};
use ladon_kernel::limits;
use ladon_log::{DataDir, LogOptions, begin_unfinished, end_unfinished, unfinished};
use ladon_platform::{Clock, Disk, SystemClock, SystemDisk};
use ladon_rdb::Key;
use ladon_server::{CheckpointRun, Recovered, databases, random_u64, recover};
use ladon_settings::Settings;
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// Imports `path` into the data directory that the settings name, which gets a checkpoint of it.
///
/// # Errors
/// See [`ImportError`]. The directory then says that it is unfinished, unless it was refused.
pub fn import_into_directory(
    path: &Path,
    settings: &Arc<Settings>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Imported, ImportError> {
    let data = settings.data();
    let dir = Path::new(&data);
    let recovered = begin(path, dir, settings)?;
    let now_ms = SystemClock.unix_ms();
    let mut target = Directory {
        settings: Arc::clone(settings),
        places: Places { keyspace: &recovered.keyspace, now_ms },
        recovered: &recovered,
        executor: None,
    };
    let imported = fill(path, &mut target, progress)?;
    drop(target);
    save(&recovered, imported, progress)?;
    end_unfinished(&SystemDisk, dir).map_err(|error| ImportError::Io {
        doing: "remove the note 'unfinished' in",
        path: dir.to_owned(),
        error,
    })?;
    Ok(imported)
}

/// An empty keyspace and the log of a directory, in which what begins is noted.
fn begin(path: &Path, dir: &Path, settings: &Settings) -> Result<Recovered, ImportError> {
    let io = |error| ImportError::Io { doing: "prepare", path: dir.to_owned(), error };
    let disk: Arc<dyn Disk> = Arc::new(SystemDisk);
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    // An error here is one of the file's, before anything is changed.
    fs::metadata(path).map_err(|error| ImportError::Io {
        doing: "read",
        path: path.to_owned(),
        error,
    })?;
    let begins_anew = dir.exists() && unfinished(&*disk, dir).map_err(io)?.is_some();
    let what = format!("an import of {}", path.display());
    if is_empty(dir) {
        // Before there is anything that a server could begin with.
        fs::create_dir_all(dir).and_then(|()| begin_unfinished(&*disk, dir, &what)).map_err(io)?;
    }
    let options = LogOptions {
        segment_bytes: settings.log_segment_bytes(),
        may_be_unfinished: true,
        ..LogOptions::default()
    };
    let data = DataDir::open(disk, Arc::clone(&clock), dir, options, random_u64())?;
    let (hash_seed, databases) = (data.hash_seed(), databases(settings));
    let now_ms = clock.unix_ms();
    let prepare = |keyspace: &Keyspace| limits::apply(keyspace, settings);
    let mut recovered = recover(data, databases, now_ms, 1, prepare, &|_| {}, None)?;
    let has_data = recovered.report.checkpoint.is_some() || recovered.report.records > 0;
    if has_data && !begins_anew {
        return Err(ImportError::NotEmpty(dir.to_owned()));
    }
    begin_unfinished(&SystemDisk, dir, &what).map_err(io)?;
    if has_data {
        // What an import before had saved; its last step was missing.
        recovered.keyspace = Arc::new(Keyspace::new(KeyspaceOptions { hash_seed, databases }));
        limits::apply(&recovered.keyspace, settings);
    }
    Ok(recovered)
}

/// Whether a directory is not there, or has nothing in it.
fn is_empty(dir: &Path) -> bool {
    match fs::read_dir(dir) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

/// Makes the checkpoint and closes the log.
fn save(
    recovered: &Recovered,
    imported: Imported,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), ImportError> {
    let Recovered { keyspace, log, .. } = recovered;
    let run = CheckpointRun::begin(keyspace, log)?.run_with_thread(&mut |saved| {
        let saved = Some(saved);
        progress(Progress { bytes_total: 0, bytes_done: 0, imported, saved });
    })?;
    run.finish(0)?;
    log.close()?;
    Ok(())
}

struct Directory<'r> {
    settings: Arc<Settings>,
    recovered: &'r Recovered,
    places: Places<'r>,
    executor: Option<Executor>,
}

impl Directory<'_> {
    fn run(&mut self, args: &[&[u8]]) -> Result<(), TargetError> {
        let executor =
            self.executor.get_or_insert_with(|| Executor::new(&self.settings, self.recovered));
        let reply = executor.run(args);
        match reply.strip_prefix(b"-") {
            None => Ok(()),
            Some(error) => {
                let (command, error) = (shown(args[0]), shown(error.trim_ascii_end()));
                Err(TargetError::This(format!("{command} was refused: {error}")))
            }
        }
    }
}

impl Target for Directory<'_> {
    fn key(&mut self, db: u64, key: &Key, elements: Elements<'_>) -> Result<Taken, TargetError> {
        let mut placer = self.places.placer();
        let taken = placer.key(db, key, elements).map_err(|not_put| not_put.error)?;
        placer.put_all().map_err(|not_put| not_put.error)?;
        Ok(taken)
    }

    fn file(
        &mut self,
        path: &Path,
        tell: &mut dyn FnMut(u64, Imported),
    ) -> Option<Result<(u64, Imported), ImportError>> {
        let places = self.places;
        let mut function = |code: &[u8]| {
            self.function(code).map_err(|error| ImportError::Function {
                path: path.to_owned(),
                why: error.to_string(),
            })
        };
        Some(place_file(path, places, &mut function, tell))
    }

    fn function(&mut self, code: &[u8]) -> Result<(), TargetError> {
        self.run(&[b"FUNCTION", b"LOAD", code])
    }

    fn command(&mut self, words: &[Vec<u8>]) -> Result<(), TargetError> {
        let args: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        self.run(&args)
    }
}
