//! What a log is: each time that a server begins to write, a *run* of the log begins, with an identity
//! of its own. A server that has the same run up to some position has the same bytes up to there.
//!
//! ```text
//! runs:
//! ladon-runs 1
//! replica                                            only in a replica's directory
//! run 5f0c0a0fa1...(40 hexadecimal digits) 0         it began there, and ends where the next one begins
//! run 91d2e77a02... 4096
//! sum 8a9136aa                                       CRC-32C of the lines before
//! ```
//!
//! Positions alone would not do: what a power cut or an operator takes back is written anew, with other
//! bytes, at the same positions. A file that cannot be read counts as none: replicas then get all data
//! anew.

use crate::random::random_hex;
use ladon_log::{Log, crc32c};
use ladon_platform::Disk;
use ladon_raft::RUNS_NAME;
use ladon_record::Lsn;
use std::fmt::Write as _;
use std::io;
use std::path::Path;

const HEAD: &str = "ladon-runs 1";
const IDENTITY_DIGITS: usize = 40;
/// A replica whose last run is older gets all data anew.
const RUNS_KEPT: usize = 64;
/// A longer file is none.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// The runs of a log, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Runs {
    list: Vec<(String, Lsn)>,
    /// The directory is a replica's.
    pub(crate) is_replica: bool,
}

impl Runs {
    /// Those of another server, in its words; `None` if they are none.
    pub(crate) fn of_list(list: Vec<(String, Lsn)>) -> Option<Runs> {
        let is_identity = |text: &str| {
            let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
            text.len() == IDENTITY_DIGITS && text.bytes().all(is_digit)
        };
        let in_order = list.is_sorted_by_key(|(_, begin)| *begin);
        let is_fit = in_order && list.len() <= RUNS_KEPT;
        let is_list = is_fit && list.iter().all(|(identity, _)| is_identity(identity));
        is_list.then_some(Runs { list, is_replica: false })
    }

    /// All of them.
    pub(crate) fn list(&self) -> &[(String, Lsn)] {
        &self.list
    }

    /// The one that is written, or followed, now.
    pub(crate) fn last(&self) -> Option<&str> {
        self.list.last().map(|(identity, _)| &**identity)
    }

    /// The one before, and its end.
    pub(crate) fn before_last(&self) -> Option<(String, Lsn)> {
        let [.., (before, _), (_, end)] = &self.list[..] else { return None };
        Some((before.clone(), *end))
    }

    /// The run to which a log belongs that ends there.
    pub(crate) fn at_end(&self, end: Lsn) -> Option<&str> {
        let mut runs = self.list.iter().rev();
        runs.find(|(_, begin)| *begin <= end).map(|(identity, _)| &**identity)
    }

    /// A run begins at the log's end.
    pub(crate) fn begin(&mut self, end: Lsn) {
        self.forget_behind(end);
        self.list.push((random_hex(), end));
        let surplus = self.list.len().saturating_sub(RUNS_KEPT);
        self.list.drain(..surplus);
        self.is_replica = false;
    }

    /// The log ends there: what began later is not in it.
    pub(crate) fn forget_behind(&mut self, end: Lsn) {
        self.list.retain(|(_, begin)| *begin <= end);
    }

    /// Whether a log of `run` that ends at `end` is a part of this one, which ends at `own_end`.
    pub(crate) fn has(&self, run: &str, end: Lsn, own_end: Lsn) -> bool {
        let Some(at) = self.list.iter().position(|(identity, _)| identity == run) else {
            return false;
        };
        let run_end = self.list.get(at + 1).map_or(own_end, |(_, next)| *next);
        (self.list[at].1..=run_end).contains(&end)
    }

    /// The file's bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut text = format!("{HEAD}\n");
        if self.is_replica {
            text.push_str("replica\n");
        }
        for (identity, begin) in &self.list {
            let _ = writeln!(text, "run {identity} {begin}");
        }
        let sum = crc32c(text.as_bytes());
        let _ = writeln!(text, "sum {sum:08x}");
        text.into_bytes()
    }

    fn decode(bytes: &[u8]) -> Option<Runs> {
        let text = std::str::from_utf8(bytes).ok()?;
        let (lines, sum) = text.rsplit_once("sum ")?;
        let sum = u32::from_str_radix(sum.strip_suffix('\n')?, 16).ok()?;
        if sum != crc32c(lines.as_bytes()) {
            return None;
        }
        let mut lines = lines.lines().peekable();
        if lines.next() != Some(HEAD) {
            return None;
        }
        let is_replica = lines.next_if_eq(&"replica").is_some();
        let run = |line: &str| {
            let (identity, begin) = line.strip_prefix("run ")?.split_once(' ')?;
            Some((identity.to_owned(), Lsn(begin.parse().ok()?)))
        };
        let list: Option<Vec<_>> = lines.map(run).collect();
        Some(Runs { is_replica, ..Runs::of_list(list?)? })
    }

    /// Those of a directory.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn load(disk: &dyn Disk, dir: &Path) -> io::Result<Runs> {
        let path = dir.join(RUNS_NAME);
        let file = match disk.open_read_only(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Runs::default()),
            Err(error) => return Err(error),
        };
        let mut bytes = vec![0; file.len()?.min(FILE_BYTES_MAX) as usize];
        let read = ladon_log::reader::read_full(&*file, &mut bytes, 0)?;
        Ok(Runs::decode(&bytes[..read]).unwrap_or_else(|| {
            tracing::warn!("{} is damaged: replicas get all data anew", path.display());
            Runs::default()
        }))
    }

    /// Those of a plain server that starts with this log, with a new run, unless it follows another
    /// server. That is on the disk when this returns.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn at_start(disk: &dyn Disk, log: &Log, follows: bool) -> io::Result<Runs> {
        let mut runs = Runs::load(disk, log.dir())?;
        if follows {
            runs.is_replica = true;
        } else {
            if runs.is_replica {
                tracing::warn!(
                    "{} was a replica's: this server follows nobody, and takes writes",
                    log.dir().display()
                );
            }
            runs.begin(log.reserved());
        }
        runs.save(disk, log.dir())?;
        Ok(runs)
    }

    /// Replaces those of a directory, durably.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn save(&self, disk: &dyn Disk, dir: &Path) -> io::Result<()> {
        disk.replace(&dir.join(RUNS_NAME), &dir.join("runs.tmp"), &self.encode())
    }

    /// Removes those of a directory.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn remove(disk: &dyn Disk, dir: &Path) -> io::Result<()> {
        match disk.remove(&dir.join(RUNS_NAME)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Err(_) => Ok(()),
            Ok(()) => disk.sync_dir(dir),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(list: &[(char, u64)]) -> Runs {
        let list = list.iter().map(|&(name, begin)| (name.to_string().repeat(40), Lsn(begin)));
        Runs::of_list(list.collect()).unwrap()
    }

    fn name(name: char) -> String {
        name.to_string().repeat(40)
    }

    #[test]
    fn a_log_is_a_part_of_another_one_up_to_the_end_of_its_run() {
        let all = runs(&[('a', 0), ('b', 100), ('c', 100), ('d', 250)]);
        for (run, end, is_part) in [
            ('a', 0, true),
            ('a', 100, true),
            // The server lost what this one has, and wrote something else there.
            ('a', 101, false),
            ('b', 100, true),
            ('b', 101, false),
            ('c', 99, false),
            ('c', 250, true),
            ('d', 300, true),
            ('d', 301, false),
            ('e', 0, false),
        ] {
            assert_eq!(all.has(&name(run), Lsn(end), Lsn(300)), is_part, "{run} {end}");
        }
    }

    #[test]
    fn an_end_belongs_to_the_last_run_that_began_by_then() {
        let all = runs(&[('a', 0), ('b', 100)]);
        assert_eq!(all.at_end(Lsn(99)), Some(&*name('a')));
        assert_eq!(all.at_end(Lsn(100)), Some(&*name('b')));
        assert_eq!(runs(&[('b', 100)]).at_end(Lsn(99)), None);
    }

    #[test]
    fn a_new_run_takes_the_place_of_those_that_the_log_has_not() {
        let mut all = runs(&[('a', 0), ('b', 100)]);
        all.is_replica = true;
        all.begin(Lsn(60));
        assert_eq!((all.list().len(), all.is_replica), (2, false));
        assert_eq!(all.before_last(), Some((name('a'), Lsn(60))));
        (0..200).for_each(|at| all.begin(Lsn(100 + at)));
        assert_eq!(all.list().len(), RUNS_KEPT);
    }

    #[test]
    fn a_file_reads_back_and_nothing_else_is_one() {
        let mut all = runs(&[('a', 0), ('b', 100)]);
        assert_eq!(Runs::decode(&all.encode()), Some(all.clone()));
        all.is_replica = true;
        let good = all.encode();
        assert_eq!(Runs::decode(&good), Some(all));
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 4;
            assert_eq!(Runs::decode(&bad), None, "byte {at}");
            assert_eq!(Runs::decode(&good[..at]), None, "{at} bytes");
        }
        let list = |list: &[(&str, u64)]| {
            Runs::of_list(list.iter().map(|&(it, begin)| (it.to_owned(), Lsn(begin))).collect())
        };
        assert_eq!(list(&[("a", 0)]), None);
        assert_eq!(list(&[(&name('a'), 2), (&name('b'), 1)]), None);
    }
}
