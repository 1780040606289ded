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
use ladon_engine::{FilledFacts, FilledValue, Filling, Keyspace, KeyspaceOptions};
use ladon_kernel::limits;
use ladon_log::{DataDir, LogOptions, begin_unfinished, end_unfinished, unfinished};
use ladon_platform::{Clock, Disk, SystemClock, SystemDisk};
use ladon_rdb::Key;
use ladon_server::{CheckpointRun, Recovered, databases, random_u64, recover};
use ladon_settings::Settings;
use ladon_transfer::{Builder, Built};
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
        filling: Filling::new(&recovered.keyspace, now_ms),
        recovered: &recovered,
        executor: None,
        now_ms,
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
    let mut recovered = recover(data, databases, now_ms, 1, prepare, &|_| {})?;
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
    /// Segments between two reports.
    const STEPS: usize = 256;
    let Recovered { keyspace, log, .. } = recovered;
    let mut run = CheckpointRun::begin(keyspace, log)?;
    let mut more = true;
    while more {
        for _ in 0..STEPS {
            more = run.step()?;
            if !more {
                break;
            }
        }
        let saved = Some(run.progress());
        progress(Progress { bytes_total: 0, bytes_done: 0, imported, saved });
    }
    run.finish(0)?;
    log.close()?;
    Ok(())
}

struct Directory<'r> {
    settings: Arc<Settings>,
    recovered: &'r Recovered,
    filling: Filling<'r>,
    executor: Option<Executor>,
    now_ms: u64,
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
        let keyspace = &self.recovered.keyspace;
        let databases = keyspace.databases();
        let number = u16::try_from(db).ok().filter(|&number| number < databases);
        let Some(number) = number else {
            let why = format!("there are {databases} databases: raise 'databases'");
            return Err(TargetError::This(why));
        };
        let expire_at = match key.expires_at_ms {
            None => 0,
            // Redis does not load such a key either.
            Some(at) if at <= self.now_ms.cast_signed() => return Ok(Taken::NoKey),
            Some(at) => at.cast_unsigned(),
        };
        let mut builder = Builder::new(key.encoding, keyspace.env());
        for element in elements {
            builder.push(element?)?;
        }
        let Some(built) = builder.finish()? else { return Ok(Taken::NoKey) };
        let value = match &built {
            Built::String(bytes) => FilledValue::String(bytes),
            Built::Object(_) => FilledValue::Object(built.into_object()),
        };
        let facts = FilledFacts { expire_at, idle_s: key.idle_s, frequency: key.frequency };
        match self.filling.put(keyspace.select(number), &key.name, value, facts) {
            true => Ok(Taken::Here),
            false => Err(TargetError::This("the key is there twice".to_owned())),
        }
    }

    fn function(&mut self, code: &[u8]) -> Result<(), TargetError> {
        self.run(&[b"FUNCTION", b"LOAD", code])
    }

    fn command(&mut self, words: &[Vec<u8>]) -> Result<(), TargetError> {
        let args: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        self.run(&args)
    }
}
