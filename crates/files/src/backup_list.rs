//! The file `backup`: what a backup consists of (`docs/format/backup.md`).
//!
//! ```text
//! ladon-backup 1
//! made 1796119425113 by 0.1.0
//! end 4096
//! file meta 64 e3069283
//! ...
//! sum 8a9136aa
//! ```

use ladon_log::crc32c;
use ladon_record::Lsn;
use std::fmt::Write as _;

/// The format that this version writes, and the newest that it reads.
const FORMAT: u32 = 1;
/// A longer list is none.
pub(crate) const LIST_BYTES_MAX: u64 = 64 << 20;
/// A file system has no longer names.
const NAME_BYTES_MAX: usize = 255;

/// A file of a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListedFile {
    pub(crate) name: String,
    pub(crate) bytes: u64,
    pub(crate) crc: u32,
}

/// The list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BackupList {
    pub(crate) made_ms: u64,
    /// The version that made it.
    pub(crate) version: String,
    /// The end of the log in it.
    pub(crate) end: Lsn,
    pub(crate) files: Vec<ListedFile>,
}

/// Why a list cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListError {
    /// Its bytes are not as they were written.
    #[error("at byte {at}: {found}")]
    Damaged {
        /// Where.
        at: usize,
        /// What is wrong.
        found: &'static str,
    },
    /// A newer version wrote it.
    #[error(
        "it has format {0}, and this version reads up to format {FORMAT}: use the newer version of \
         Ladon that wrote it"
    )]
    Newer(u32),
}

impl BackupList {
    pub(crate) fn encode(&self) -> String {
        let BackupList { made_ms, version, end, files } = self;
        let mut text = format!("ladon-backup {FORMAT}\nmade {made_ms} by {version}\nend {end}\n");
        for ListedFile { name, bytes, crc } in files {
            let _ = writeln!(text, "file {name} {bytes} {crc:08x}");
        }
        let sum = crc32c(text.as_bytes());
        let _ = writeln!(text, "sum {sum:08x}");
        text
    }

    pub(crate) fn decode(text: &[u8]) -> Result<BackupList, ListError> {
        let damaged = |at, found| ListError::Damaged { at, found };
        let text =
            str::from_utf8(text).map_err(|error| damaged(error.valid_up_to(), "it is no text"))?;
        let format = text.strip_prefix("ladon-backup ").and_then(|rest| rest.split('\n').next());
        let format = format.and_then(|format| format.parse().ok());
        match format {
            None => return Err(damaged(0, "it does not begin as the list of a backup")),
            Some(FORMAT) => {}
            Some(newer) => return Err(ListError::Newer(newer)),
        }
        let Some(at) = text.trim_end_matches('\n').rfind('\n').map(|at| at + 1) else {
            return Err(damaged(text.len(), "it ends too early"));
        };
        let sum = text[at..].strip_prefix("sum ").map(str::trim_end);
        let Some(sum) = sum.and_then(|sum| u32::from_str_radix(sum, 16).ok()) else {
            return Err(damaged(at, "its last line is no sum: its end is missing"));
        };
        if crc32c(&text.as_bytes()[..at]) != sum {
            return Err(damaged(at, "its checksum does not match"));
        }
        parse(&text[..at]).ok_or_else(|| damaged(0, "a line of it is none that is known"))
    }
}

fn parse(text: &str) -> Option<BackupList> {
    let (mut lines, mut files) = (text.lines().skip(1), Vec::new());
    let (made, version) = lines.next()?.strip_prefix("made ")?.split_once(" by ")?;
    let end = lines.next()?.strip_prefix("end ")?;
    for line in lines {
        let mut words = line.strip_prefix("file ")?.split(' ');
        let (name, bytes, crc) = (words.next()?, words.next()?, words.next()?);
        if words.next().is_some() || !is_name(name) {
            return None;
        }
        let (name, crc) = (name.to_owned(), u32::from_str_radix(crc, 16).ok()?);
        files.push(ListedFile { name, bytes: bytes.parse().ok()?, crc });
    }
    let (made_ms, end) = (made.parse().ok()?, Lsn(end.parse().ok()?));
    Some(BackupList { made_ms, version: version.to_owned(), end, files })
}

/// Whether this may be the name of a file in a backup, and of no other place.
pub(crate) fn is_name(name: &str) -> bool {
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'-';
    let own = ["backup", "unfinished", "log-end", "LOCK"];
    !name.is_empty()
        && name.len() <= NAME_BYTES_MAX
        && !name.starts_with('.')
        && name.bytes().all(is_fit)
        && !own.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list() -> BackupList {
        let file = |name: &str, bytes, crc| ListedFile { name: name.to_owned(), bytes, crc };
        BackupList {
            made_ms: 1_796_119_425_113,
            version: "0.1.0".to_owned(),
            end: Lsn(4096),
            files: vec![file("meta", 64, 0xe306_9283), file("00000000000000000000.log", 9, 7)],
        }
    }

    #[test]
    fn a_list_reads_back_and_every_change_and_cut_is_seen() {
        let text = list().encode();
        assert_eq!(BackupList::decode(text.as_bytes()), Ok(list()));
        let bytes = text.as_bytes();
        // Without the last line's end it says the same.
        for cut in 0..bytes.len() - 1 {
            assert!(BackupList::decode(&bytes[..cut]).is_err(), "cut at {cut}");
        }
        for at in 0..bytes.len() - 1 {
            let mut changed = bytes.to_vec();
            changed[at] ^= 1;
            assert!(BackupList::decode(&changed).is_err(), "changed at {at}");
        }
    }

    #[test]
    fn a_newer_list_and_names_of_other_places_are_refused() {
        let newer = list().encode().replace("ladon-backup 1", "ladon-backup 2");
        assert_eq!(BackupList::decode(newer.as_bytes()), Err(ListError::Newer(2)));
        for name in ["", "..", "../meta", "/etc/passwd", "a b", ".hidden", "backup", "unfinished"] {
            assert!(!is_name(name), "{name}");
        }
        assert!(is_name("users.acl") && is_name("00000000000000004096.checkpoint"));
    }
}
