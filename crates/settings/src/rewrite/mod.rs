//! `CONFIG REWRITE`: the file that the server was started with, brought up to date.
//!
//! Comments, order and everything that was not understood stay. A setting's line gets its value
//! of now; settings that differ from their default and have no line are added at the end.

mod redis_conf;
pub(crate) mod toml_file;

use crate::settings::Settings;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// In which language a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Ladon's own.
    Toml,
    /// Redis'.
    RedisConf,
}

/// The file that a server was started with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Where it is.
    pub path: PathBuf,
    /// What is in it.
    pub format: Format,
}

/// Why no file was written; displays as the error reply, without its `ERR ` in front.
#[derive(Debug, Error)]
pub enum RewriteError {
    /// There is no file to bring up to date.
    #[error("The server is running without a config file")]
    NoFile,
    /// It could not be read or written; it is as it was.
    #[error("Rewriting config file: {0}")]
    Io(#[from] io::Error),
}

impl Settings {
    /// The file that the server was started with: the redis.conf if there were both.
    pub fn source(&self) -> Option<&Source> {
        self.source.as_ref()
    }

    /// Brings that file up to date. `users` are the lines of the users that it is to declare, each
    /// a name and rules: the present ones if there is no file of their own, else none.
    pub fn rewrite(&self, users: &[String]) -> Result<(), RewriteError> {
        let source = self.source().ok_or(RewriteError::NoFile)?;
        let present = match fs::read_to_string(&source.path) {
            Ok(text) => text,
            // As in Redis: a file that was removed meanwhile is created again.
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error.into()),
        };
        let next = match source.format {
            Format::RedisConf => redis_conf::rewritten(&present, &self.draft(), users),
            Format::Toml => toml_file::rewritten(&present, &self.draft(), users)?,
        };
        Ok(replace(&source.path, next.as_bytes())?)
    }
}

/// Either the old file or the new one exists, whenever the machine stops.
pub(crate) fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(name);
    let written = (|| {
        let mut file = fs::File::create(&temporary)?;
        if let Ok(metadata) = fs::metadata(path) {
            file.set_permissions(metadata.permissions())?;
        }
        file.write_all(text)?;
        file.sync_all()?;
        fs::rename(&temporary, path)?;
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        fs::File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
    })();
    if written.is_err() {
        // Best effort: the error that matters is the one that is returned.
        let _ = fs::remove_file(&temporary);
    }
    written
}
