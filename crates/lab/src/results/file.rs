//! `results.json` on the disk.
//!
//! **Invariants:** readers always see a complete file: it is written under another name and
//! renamed. Results are meant to be shown, so paths below the home directory begin with `~`, as a
//! shell understands them.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::schema::{FORMAT, Results};

/// The file's name in a run's folder.
pub const NAME: &str = "results.json";

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The operating system refused.
    #[error("{path}: {source}")]
    Io {
        /// Which file.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// Not JSON at all, or cut off.
    #[error("{path}: damaged or cut off, it is not whole JSON: {source}")]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// Line, column and what is wrong there.
        source: serde_json::Error,
    },
    /// JSON of somebody else.
    #[error("{path}: not a results file of ladon-lab: {what}")]
    Foreign {
        /// Which file.
        path: PathBuf,
        /// What is missing.
        what: String,
    },
    /// Another shape.
    #[error("{path}: format {found} of results.json; this ladon-lab reads format {FORMAT}{hint}")]
    Format {
        /// Which file.
        path: PathBuf,
        /// The number in the file.
        found: u64,
        /// What to do.
        hint: &'static str,
    },
    /// The right shape, but a field is not.
    #[error("{path}: results of format {FORMAT}, but with a broken field: {source}")]
    Field {
        /// Which file.
        path: PathBuf,
        /// Which field.
        source: serde_json::Error,
    },
}

/// Reads one file.
///
/// # Errors
/// Whatever keeps it from being used, with the path.
pub fn read(path: &Path) -> Result<Results, ReadError> {
    // A run's folder means the file in it.
    let path = if path.is_dir() { path.join(NAME) } else { path.to_owned() };
    let bytes =
        std::fs::read(&path).map_err(|source| ReadError::Io { path: path.clone(), source })?;
    parse(&path, &bytes)
}

fn parse(path: &Path, bytes: &[u8]) -> Result<Results, ReadError> {
    let path = path.to_owned();
    let value: serde_json::Value = match serde_json::from_slice(bytes) {
        Ok(value) => value,
        Err(source) => return Err(ReadError::Damaged { path, source }),
    };
    let foreign = |what: &str| ReadError::Foreign { path: path.clone(), what: what.to_owned() };
    let number = value.get("format").ok_or_else(|| foreign("it has no field `format`"))?;
    let found = number.as_u64().ok_or_else(|| foreign("its `format` is no number"))?;
    if value.get("lab_version").is_none() {
        return Err(foreign("it has no field `lab_version`"));
    }
    if found != u64::from(FORMAT) {
        let hint = if found > u64::from(FORMAT) {
            "; a newer ladon-lab wrote it, use that one"
        } else {
            ""
        };
        return Err(ReadError::Format { path, found, hint });
    }
    serde_json::from_value(value).map_err(|source| ReadError::Field { path, source })
}

/// Writes `results` to `folder`, which is made if it is not there. Returns the file's path.
///
/// # Errors
/// What the file system says.
pub fn write(folder: &Path, results: &Results) -> io::Result<PathBuf> {
    std::fs::create_dir_all(folder)?;
    let path = folder.join(NAME);
    let mut text = serde_json::to_string(results).map_err(io::Error::other)?;
    text.push('\n');
    replace(&path, &text)?;
    Ok(path)
}

/// Puts `text` at `path`, all or nothing, without the name of the home directory.
///
/// # Errors
/// What the file system says.
pub fn replace(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let mut file = tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;
    let text = without_home(text, std::env::var("HOME").ok().as_deref());
    io::Write::write_all(&mut file, text.as_bytes())?;
    // The temporary file is for its owner only; results are to be shown.
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    file.as_file().set_permissions(mode)?;
    file.persist(path)?;
    Ok(())
}

fn without_home<'a>(text: &'a str, home: Option<&str>) -> Cow<'a, str> {
    match home.map(|home| home.trim_end_matches('/')) {
        Some(home) if home.len() > 1 => text.replace(&format!("{home}/"), "~/").into(),
        _ => text.into(),
    }
}

/// Now, in seconds since 1970.
#[must_use]
pub fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        parse(Path::new("x.json"), text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn what_was_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let results = Results { format: FORMAT, seed: 7, ..Results::default() };
        let path = write(&folder.path().join("new"), &results).unwrap();
        assert_eq!(read(&path).unwrap(), results);
        assert_eq!(read(path.parent().unwrap()).unwrap(), results);
        let others = std::fs::read_dir(path.parent().unwrap()).unwrap().count();
        assert_eq!(others, 1, "nothing temporary is left");
    }

    #[test]
    fn the_home_directory_is_not_named() {
        assert_eq!(without_home("\"/home/me/bin/x\"", Some("/home/me/")), "\"~/bin/x\"");
        assert_eq!(without_home("/home/menu/x", Some("/home/me")), "/home/menu/x");
        assert_eq!(without_home("/usr/bin/x", Some("/")), "/usr/bin/x");
        assert_eq!(without_home("/usr/bin/x", None), "/usr/bin/x");
    }

    #[test]
    fn errors_say_what_is_wrong() {
        let whole = serde_json::to_string(&Results { format: 1, ..Results::default() }).unwrap();
        let cut = &whole[..whole.len() / 2];
        assert!(error(cut).contains("damaged or cut off"), "{}", error(cut));
        assert!(error("").contains("damaged or cut off"));
        assert!(
            error("{\"hello\": 1}").contains("not a results file of ladon-lab: it has no field")
        );
        assert!(error("[1, 2]").contains("not a results file"));
        assert!(error("{\"format\": \"x\"}").contains("is no number"));
        let newer = error(&whole.replace("\"format\":1", "\"format\":99"));
        assert!(newer.contains("format 99") && newer.contains("newer ladon-lab"), "{newer}");
        let older = error(&whole.replace("\"format\":1", "\"format\":0"));
        assert!(older.contains("format 0"), "{older}");
        let broken = error(&whole.replace("\"seed\":0", "\"seed\":\"x\""));
        assert!(broken.contains("broken field") && broken.contains("x.json"), "{broken}");
        let missing = read(Path::new("/nonexistent/results.json")).unwrap_err().to_string();
        assert!(missing.contains("/nonexistent/results.json: No such file"), "{missing}");
    }
}
