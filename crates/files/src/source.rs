//! What a path given to an import is: one file, or a folder of append-only files with a manifest.
//!
//! ```text
//! manifest := "file" name "seq" number "type" ("b" | "i" | "h") newline ...
//!             b: what everything begins with, i: commands since, h: history, which is not needed
//! ```

use crate::import::ImportError;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// A file to be read, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) path: PathBuf,
    /// Its commands may end in the middle of one, because the server was killed.
    pub(crate) may_be_cut: bool,
    pub(crate) bytes: u64,
}

/// The files that `path` stands for.
pub(crate) fn parts(path: &Path) -> Result<Vec<Part>, ImportError> {
    let io = |error| ImportError::Io { doing: "read", path: path.to_owned(), error };
    if !fs::metadata(path).map_err(io)?.is_dir() {
        // A file of commands that nothing follows is one that may be cut.
        return Ok(vec![part(path.to_owned(), true)?]);
    }
    let mut manifests = Vec::new();
    for entry in fs::read_dir(path).map_err(io)? {
        let found = entry.map_err(io)?.path();
        if found.extension() == Some(OsStr::new("manifest")) {
            manifests.push(found);
        }
    }
    let [manifest] = &manifests[..] else {
        return Err(ImportError::Folder { path: path.to_owned(), manifests: manifests.len() });
    };
    let text = fs::read_to_string(manifest).map_err(|error| ImportError::Io {
        doing: "read",
        path: manifest.clone(),
        error,
    })?;
    let names = names(&text).ok_or_else(|| ImportError::Manifest { path: manifest.clone() })?;
    let last = names.len().saturating_sub(1);
    let files = names.into_iter().enumerate();
    files.map(|(at, name)| part(path.join(name), at == last)).collect()
}

fn part(path: PathBuf, may_be_cut: bool) -> Result<Part, ImportError> {
    let io = |error| ImportError::Io { doing: "read", path: path.clone(), error };
    let bytes = fs::metadata(&path).map_err(io)?.len();
    Ok(Part { path, may_be_cut, bytes })
}

/// The base file and those of commands, in order; `None` if the manifest is malformed.
fn names(text: &str) -> Option<Vec<String>> {
    let (mut base, mut increments) = (None, Vec::new());
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let words = words(line)?;
        let value = |name: &str| {
            let mut pairs = words.chunks_exact(2);
            pairs.find(|pair| pair[0] == name).map(|pair| pair[1].clone())
        };
        let (file, number) = (value("file")?, value("seq")?.parse::<u64>().ok()?);
        if file.contains('/') {
            return None;
        }
        match &*value("type")? {
            "b" if base.is_none() => base = Some(file),
            "i" => increments.push((number, file)),
            "h" => {}
            _ => return None,
        }
    }
    increments.sort();
    Some(base.into_iter().chain(increments.into_iter().map(|(_, file)| file)).collect())
}

/// The words of a line, of which some are in quotes.
fn words(line: &str) -> Option<Vec<String>> {
    let (mut words, mut rest) = (Vec::new(), line.trim_start());
    while !rest.is_empty() {
        let (word, after) = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => rest.split_once(' ').unwrap_or((rest, "")),
        };
        words.push(word.to_owned());
        rest = after.trim_start();
    }
    Some(words)
}

/// Whether the file begins as one of RDB; otherwise it holds commands.
pub(crate) fn is_rdb(path: &Path) -> Result<bool, ImportError> {
    let io = |error| ImportError::Io { doing: "read", path: path.to_owned(), error };
    let mut head = Vec::new();
    File::open(path).map_err(io)?.take(6).read_to_end(&mut head).map_err(io)?;
    Ok(head.starts_with(b"REDIS") || head == b"VALKEY")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_names_files_in_order() {
        let text = "file a.2.incr.aof seq 2 type i\nfile a.1.base.rdb seq 1 type b\n\
                    # a comment\nfile \"a b.1.incr.aof\" seq 1 type i\nfile old seq 1 type h\n";
        let expected = ["a.1.base.rdb", "a b.1.incr.aof", "a.2.incr.aof"];
        assert_eq!(names(text), Some(expected.map(str::to_owned).to_vec()));
        for wrong in [
            "file a seq 1",
            "file a seq x type b",
            "file ../a seq 1 type b",
            "file a seq 1 type z",
            "file a seq 1 type b\nfile b seq 2 type b",
            "file \"a seq 1 type b",
        ] {
            assert_eq!(names(wrong), None, "{wrong}");
        }
    }
}
