//! An export of a running server as of one moment: its newest checkpoint and the log behind it are
//! fetched, as for a backup, into a folder beside the new file, and that is exported as a directory.
//!
//! The server does nothing else for it: no key is frozen, nobody waits. This process holds the data in
//! memory, as a server does.

use crate::backup::{BackupProgress, Source, begin_in};
use crate::export::export_from;
use crate::export_target::{ExportError, ExportProgress, Exported};
use crate::memory_available::memory_available;
use ladon_peers::ServerOptions;
use ladon_rdb::Version;
use ladon_settings::Settings;
use std::fs;
use std::path::{Path, PathBuf};

/// How the note of an unfinished export begins.
const NOTE: &str = "an export of ";

/// Exports a running Ladon as of one moment.
///
/// # Errors
/// See [`ExportError`].
pub fn export_snapshot(
    path: &Path,
    version: Version,
    options: &ServerOptions,
    settings: &Settings,
    progress: &mut (dyn FnMut(ExportProgress) + Send),
) -> Result<Exported, ExportError> {
    if path.exists() {
        return Err(ExportError::Exists(path.to_owned()));
    }
    let mut source = Source::connect(options)?;
    let needed = source.memory()?;
    if let Some(available) = memory_available().filter(|&available| available < needed) {
        let (needed, available) = (needed >> 20, available >> 20);
        return Err(ExportError::Memory { needed, available });
    }
    let databases = source.databases()?;
    let mut name = path.as_os_str().to_owned();
    name.push(".data");
    let dir = PathBuf::from(name);
    begin_in(&dir, &format!("{NOTE}{}", options.address), NOTE)?;
    let fetched = Fetched(dir);
    source.fetch(&fetched.0, false, &mut |told| {
        if let BackupProgress::Copying { bytes_done, bytes_total } = told {
            progress(ExportProgress::Fetching { bytes_done, bytes_total });
        }
    })?;
    export_from(&fetched.0, (path, version), settings, databases, progress)
}

/// The folder with what was fetched; it goes when the export ends, whichever way. What a kill leaves
/// says that it is unfinished, and the next export to the same file takes it away.
struct Fetched(PathBuf);

impl Drop for Fetched {
    fn drop(&mut self) {
        // What cannot be removed stays where it is, under a name that says what it is.
        let _ = fs::remove_dir_all(&self.0);
    }
}
