//! The server's messages: one line each, with UTC time and level, to the standard error output or
//! to the file that `logfile` names.
//!
//! `loglevel` is read for each message, so that `CONFIG SET loglevel` works at once. The file is
//! opened for every message: there are few messages, and logrotate can move the file without
//! notifying the server.

use ladon_settings::{LogLevel, Settings};
use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tracing::Level;
use tracing_subscriber::filter::dynamic_filter_fn;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::registry::Registry;

/// Starts logging; an error if the file cannot be written.
pub fn start(settings: Arc<Settings>) -> io::Result<()> {
    let file = Some(PathBuf::from(settings.logfile())).filter(|path| !path.as_os_str().is_empty());
    if let Some(path) = &file {
        append(path)?;
    }
    let ansi = file.is_none() && io::stderr().is_terminal();
    let lines = tracing_subscriber::fmt::layer()
        .with_target(false)
        .with_ansi(ansi)
        .with_writer(Destination { file })
        .with_filter(dynamic_filter_fn(move |metadata, _| {
            shown(settings.loglevel()).is_some_and(|level| *metadata.level() <= level)
        }));
    // It is set once per process, right at the start; a second time is a mistake of this program.
    tracing::subscriber::set_global_default(Registry::default().with(lines))
        .map_err(io::Error::other)
}

/// The least important level that is shown.
fn shown(level: LogLevel) -> Option<Level> {
    match level {
        LogLevel::Debug => Some(Level::TRACE),
        LogLevel::Verbose => Some(Level::DEBUG),
        LogLevel::Notice => Some(Level::INFO),
        LogLevel::Warning => Some(Level::WARN),
        LogLevel::Nothing => None,
    }
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

struct Destination {
    file: Option<PathBuf>,
}

impl MakeWriter<'_> for Destination {
    type Writer = Box<dyn Write>;

    fn make_writer(&self) -> Box<dyn Write> {
        match self.file.as_deref().map(append) {
            Some(Ok(file)) => Box::new(file),
            // Better in the wrong place than lost.
            Some(Err(_)) | None => Box::new(io::stderr()),
        }
    }
}
