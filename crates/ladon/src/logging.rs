//! The server's messages: one line each, to the standard error output or to the file that `logfile`
//! names.
//!
//! | destination | a line |
//! |---|---|
//! | terminal, file, pipe | UTC time, level, message |
//! | the journal | `<6>` and the message: systemd's levels, and its own time |
//! | any of them, with `logformat json` | an object of JSON, with `time`, `level`, `message` |
//!
//! `loglevel` is read for each message, so that `CONFIG SET loglevel` works at once. The file is
//! opened for every message: there are few messages, and logrotate can move the file without
//! notifying the server.

use ladon_settings::{LogFormat, LogLevel, Settings};
use serde_json::{Map, Value};
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tracing::field::{Field, Visit};
use tracing::subscriber::Interest;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::dynamic_filter_fn;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, MakeWriter};
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::registry::{LookupSpan, Registry};

/// Starts logging; an error if the file cannot be written.
pub fn start(settings: Arc<Settings>) -> io::Result<()> {
    let file = Some(PathBuf::from(settings.logfile())).filter(|path| !path.as_os_str().is_empty());
    if let Some(path) = &file {
        append(path)?;
    }
    let ansi = file.is_none() && io::stderr().is_terminal();
    let lines = Lines {
        is_json: settings.logformat() == LogFormat::Json,
        has_priority: file.is_none() && is_journal(),
    };
    let layer = tracing_subscriber::fmt::layer()
        .with_ansi(ansi)
        .event_format(lines)
        .with_writer(Destination { file })
        .with_filter(
            dynamic_filter_fn(move |metadata, _| {
                let loglevel = settings.loglevel();
                let least = match metadata.target().starts_with("openraft") {
                    true => shown_of_consensus(loglevel),
                    false => shown(loglevel),
                };
                least.is_some_and(|level| *metadata.level() <= level)
            })
            // No line shows a span, and the library that elects leaders opens dozens for each entry.
            .with_callsite_filter(|metadata| match metadata.is_span() {
                true => Interest::never(),
                false => Interest::sometimes(),
            }),
        );
    // It is set once per process, right at the start; a second time is a mistake of this program.
    tracing::subscriber::set_global_default(Registry::default().with(layer))
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

/// The same, of the library that elects leaders: it tells of each step, and of each heartbeat that is
/// not answered. What matters to operators the server says itself.
fn shown_of_consensus(level: LogLevel) -> Option<Level> {
    match level {
        LogLevel::Debug => Some(Level::TRACE),
        LogLevel::Verbose => Some(Level::INFO),
        LogLevel::Notice | LogLevel::Warning => Some(Level::ERROR),
        LogLevel::Nothing => None,
    }
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

/// Whether the standard error output is the journal: systemd names it by device and file number.
fn is_journal() -> bool {
    let Ok(named) = std::env::var("JOURNAL_STREAM") else { return false };
    let metadata = || File::from(io::stderr().as_fd().try_clone_to_owned()?).metadata();
    metadata().is_ok_and(|file| named == format!("{}:{}", file.dev(), file.ino()))
}

/// How a message becomes a line.
#[derive(Clone, Copy)]
struct Lines {
    is_json: bool,
    /// A number of syslog's in front: see sd-daemon(3).
    has_priority: bool,
}

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut out: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let level = *event.metadata().level();
        let mut message = Message::default();
        event.record(&mut message);
        if self.has_priority {
            write!(out, "<{}>", priority(level))?;
        }
        if self.is_json {
            return writeln!(out, "{}", message.json(level, &time()));
        }
        let text = message.text.replace('\n', " ");
        match (self.has_priority, out.has_ansi_escapes()) {
            (true, _) => writeln!(out, "{text}"),
            (_, false) => writeln!(out, "{} {level:>5} {text}", time()),
            (_, true) => {
                let color = color(level);
                writeln!(out, "\x1b[2m{}\x1b[0m \x1b[{color}m{level:>5}\x1b[0m {text}", time())
            }
        }
    }
}

fn time() -> String {
    let mut time = String::new();
    // Writing to a string cannot fail.
    let _ = SystemTime.format_time(&mut Writer::new(&mut time));
    time
}

fn priority(level: Level) -> u8 {
    match level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        _ => 7,
    }
}

fn color(level: Level) -> u8 {
    match level {
        Level::ERROR => 31,
        Level::WARN => 33,
        Level::INFO => 32,
        _ => 34,
    }
}

/// An event's fields.
#[derive(Default)]
struct Message {
    text: String,
    others: Map<String, Value>,
}

impl Message {
    fn json(self, level: Level, time: &str) -> Value {
        let mut object = Map::new();
        object.insert("time".to_owned(), Value::from(time));
        object.insert("level".to_owned(), Value::from(level.as_str().to_ascii_lowercase()));
        object.insert("message".to_owned(), Value::from(self.text));
        object.extend(self.others);
        Value::Object(object)
    }
}

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "message" => self.text = format!("{value:?}"),
            other => {
                self.others.insert(other.to_owned(), Value::from(format!("{value:?}")));
            }
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("no panic").write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn lines(lines: Lines, say: impl FnOnce()) -> String {
        let kept = Kept::default();
        let writer = kept.clone();
        let layer = tracing_subscriber::fmt::layer()
            .with_ansi(false)
            .event_format(lines)
            .with_writer(move || writer.clone());
        tracing::subscriber::with_default(Registry::default().with(layer), say);
        let bytes = kept.0.lock().expect("no panic").clone();
        String::from_utf8(bytes).expect("text")
    }

    #[test]
    fn the_journal_gets_levels_and_no_second_time() {
        let journal = Lines { is_json: false, has_priority: true };
        let text = lines(journal, || {
            tracing::error!("broken");
            tracing::warn!("slow");
            tracing::info!("two\nlines");
        });
        assert_eq!(text, "<3>broken\n<4>slow\n<6>two lines\n");
    }

    #[test]
    fn json_is_one_object_a_line() {
        let json = Lines { is_json: true, has_priority: false };
        let text = lines(json, || tracing::warn!(client = 7, "a \"name\"\nof two lines"));
        let object: Value = serde_json::from_str(text.trim_end()).expect("JSON");
        assert_eq!(object["level"], "warn");
        assert_eq!(object["message"], "a \"name\"\nof two lines");
        assert_eq!(object["client"], "7");
        assert!(object["time"].as_str().is_some_and(|time| time.ends_with('Z')), "{text}");
        assert_eq!(text.lines().count(), 1);
    }

    #[test]
    fn a_line_for_people_has_time_and_level() {
        let plain = Lines { is_json: false, has_priority: false };
        let text = lines(plain, || tracing::info!("ready"));
        assert!(text.ends_with("  INFO ready\n") && text.starts_with("20"), "{text}");
    }
}
