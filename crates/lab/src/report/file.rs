//! Where a run's results go.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

/// Writes `results` as JSON and `text` beside it: to `json` if given, else into `folder` under a
/// name made of `work` and the time. Returns the JSON file's path.
///
/// # Errors
/// What the file system says.
pub fn write(
    work: &str,
    folder: &Path,
    json: Option<&Path>,
    results: &impl Serialize,
    text: &str,
) -> io::Result<PathBuf> {
    let path =
        json.map_or_else(|| folder.join(format!("{work}-{}.json", unix_seconds())), Path::to_owned);
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        std::fs::create_dir_all(parent)?;
    }
    let mut bytes = serde_json::to_vec_pretty(results).map_err(io::Error::other)?;
    bytes.push(b'\n');
    std::fs::write(&path, bytes)?;
    std::fs::write(path.with_extension("txt"), text)?;
    Ok(path)
}

/// Now, in seconds since 1970.
#[must_use]
pub fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
