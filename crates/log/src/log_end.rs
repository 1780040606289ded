//! The file `log-end`: the log's end, noted outside the log's own files.
//!
//! A sync mark proves that the log before it was on the disk, but the mark is lost together with
//! the end of the log: a newest segment that was deleted or cut looks like one that ended there. So
//! every sync also notes its position here.
//!
//! ```text
//!  0                 4096              8192              12288
//!  | header ... zeros | slot ... zeros  | slot ... zeros  |
//!
//! header:
//!  0        8        12     14     16       24       60    64
//!  | magic  | format | node | zero | dir id | zeros  | crc |
//!
//! slot:
//!  0          8             16               24      60    64
//!  | sequence | durable LSN | newest segment | zeros | crc |
//! ```
//! **Invariants:** a note is written after the sync that it describes, so it is true even if it is
//! old. One of the two slots is complete on the disk at any time: notes go to the other one until a
//! sync of this file has succeeded. The slot with the higher sequence counts.
//!
//! A note costs one `pwrite` into a file that does not grow. The background writer syncs it about
//! once a second. No reply waits for it.

use crate::crc::crc32c;
use crate::damage::Damage;
use crate::planted::Planted;
use crate::reader::read_full;
use crate::segment::{HeaderFault, checked_header};
use ladon_platform::{Disk, DiskFile};
use ladon_record::Lsn;
use std::io;
use std::path::{Path, PathBuf};

/// The format that this version writes, and the newest that it reads.
pub const LOG_END_FORMAT: u32 = 1;

/// How long a note may wait for its sync.
pub(crate) const SYNC_EVERY_NS: u64 = 1_000_000_000;

const MAGIC: [u8; 8] = *b"LADONEND";
/// Header and slots are in separate disk blocks, so that a torn write of one spares the others.
const BLOCK_BYTES: u64 = 4096;
const SLOT_BYTES: usize = 64;
const FILE_BYTES: u64 = 3 * BLOCK_BYTES;
/// Means "no segment".
const NO_SEGMENT: u64 = u64::MAX;

/// The noted end of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogEnd {
    /// Complete frames up to here were on the disk.
    pub durable: Lsn,
    /// The newest segment file whose name was on the disk.
    pub segment: Option<Lsn>,
}

/// The content of the file.
#[derive(Debug)]
pub(crate) enum Noted {
    /// The directory has no such file: an older version wrote it, or the file was removed.
    Missing,
    /// The newest complete note.
    End(LogEnd),
    /// The file is not usable.
    Unusable(Damage),
    /// A newer version wrote it: its format number.
    Newer(u32),
}

impl Noted {
    /// The note, if there is one.
    pub(crate) fn end(&self) -> Option<LogEnd> {
        match self {
            Noted::End(end) => Some(*end),
            _ => None,
        }
    }
}

/// `log-end` in this directory.
pub fn log_end_path(dir: &Path) -> PathBuf {
    dir.join("log-end")
}

fn log_end_temporary_path(dir: &Path) -> PathBuf {
    dir.join("log-end.tmp")
}

/// Reads the newest note.
///
/// # Errors
/// Only system errors; invalid bytes are [`Noted::Unusable`].
pub(crate) fn read_log_end(disk: &dyn Disk, dir: &Path, dir_id: Option<u64>) -> io::Result<Noted> {
    let path = log_end_path(dir);
    let file = match disk.open_read_only(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Noted::Missing),
        Err(error) => return Err(error),
    };
    let unusable = |offset: u64, found: &str| {
        Ok(Noted::Unusable(Damage {
            path: path.clone(),
            offset,
            found: found.to_owned(),
            advice: "no data is in this file, and the next start writes it anew: nothing is to be \
                     done, but until then nobody can tell whether the end of the log is missing"
                .to_owned(),
        }))
    };
    let mut header = [0; SLOT_BYTES];
    let read = read_full(&*file, &mut header, 0)?;
    match checked_header(&header[..read], &MAGIC, LOG_END_FORMAT) {
        Ok(fields) if dir_id.is_some_and(|dir_id| dir_id != fields.u64(16)) => {
            return unusable(0, "it belongs to another data directory");
        }
        Ok(_) => {}
        Err(HeaderFault::Bad(found)) => return unusable(0, found),
        Err(HeaderFault::Newer(format)) => return Ok(Noted::Newer(format)),
    }
    match read_slots(&*file)?.into_iter().flatten().max_by_key(|slot| slot.sequence) {
        Some(slot) => Ok(Noted::End(slot.end)),
        None => unusable(BLOCK_BYTES, "neither of its two notes is whole"),
    }
}

#[derive(Clone, Copy)]
struct Slot {
    sequence: u64,
    end: LogEnd,
}

impl Slot {
    fn encode(self) -> [u8; SLOT_BYTES] {
        let mut out = [0; SLOT_BYTES];
        let segment = self.end.segment.map_or(NO_SEGMENT, |segment| segment.0);
        out[0..8].copy_from_slice(&self.sequence.to_le_bytes());
        out[8..16].copy_from_slice(&self.end.durable.0.to_le_bytes());
        out[16..24].copy_from_slice(&segment.to_le_bytes());
        let crc = crc32c(&out[..60]);
        out[60..64].copy_from_slice(&crc.to_le_bytes());
        out
    }

    /// `None` unless every byte is as it was written.
    fn decode(bytes: &[u8; SLOT_BYTES]) -> Option<Slot> {
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let crc = u32::from_le_bytes(std::array::from_fn(|i| bytes[60 + i]));
        // Sequences begin at one, so that zeros are not a note.
        if word(0) == 0 || crc != crc32c(&bytes[..60]) {
            return None;
        }
        let segment = (word(16) != NO_SEGMENT).then_some(Lsn(word(16)));
        Some(Slot { sequence: word(0), end: LogEnd { durable: Lsn(word(8)), segment } })
    }
}

fn slot_offset(index: usize) -> u64 {
    BLOCK_BYTES * (1 + index as u64)
}

fn read_slots(file: &dyn DiskFile) -> io::Result<[Option<Slot>; 2]> {
    let mut slots = [None; 2];
    for (index, slot) in slots.iter_mut().enumerate() {
        let mut bytes = [0; SLOT_BYTES];
        let read = read_full(file, &mut bytes, slot_offset(index))?;
        *slot = (read == SLOT_BYTES).then(|| Slot::decode(&bytes)).flatten();
    }
    Ok(slots)
}

/// The file, open for notes.
pub(crate) struct LogEndFile {
    file: Box<dyn DiskFile>,
    /// The slot that takes notes; the other one is on the disk.
    slot: usize,
    sequence: u64,
    /// `slot` holds a complete note that may not be on the disk.
    is_dirty: bool,
    /// What was noted last since the file was opened.
    noted: Lsn,
    pub(crate) synced_at_ns: u64,
    planted: Planted,
}

impl LogEndFile {
    /// Opens the file and makes `end` durable in it. Creates a new file if there is no usable one.
    pub(crate) fn open(
        disk: &dyn Disk,
        dir: &Path,
        (dir_id, node): (u64, u16),
        noted: &Noted,
        end: LogEnd,
        now_ns: u64,
        planted: Planted,
    ) -> io::Result<LogEndFile> {
        let mut this = match noted {
            Noted::End(_) => LogEndFile::reopen(disk, dir, planted)?,
            _ => LogEndFile::create(disk, dir, dir_id, node, end)?,
        };
        this.planted = planted;
        this.note(end)?;
        this.sync(now_ns)?;
        Ok(this)
    }

    fn reopen(disk: &dyn Disk, dir: &Path, planted: Planted) -> io::Result<LogEndFile> {
        let file = disk.open(&log_end_path(dir))?;
        let slots = read_slots(&*file)?;
        let sequence = |index: usize| slots[index].map_or(0, |slot: Slot| slot.sequence);
        let newest = usize::from(sequence(1) > sequence(0));
        if let Some(slot) = slots[newest].filter(|_| planted != Planted::TrustedNote) {
            // After a failed sync the page cache may hold what the disk does not.
            file.write_all_at(&slot.encode(), slot_offset(newest))?;
        }
        file.sync_data()?;
        let (slot, sequence) = (1 - newest, sequence(newest));
        Ok(LogEndFile {
            file,
            slot,
            sequence,
            is_dirty: false,
            noted: Lsn::ZERO,
            synced_at_ns: 0,
            planted,
        })
    }

    fn create(
        disk: &dyn Disk,
        dir: &Path,
        dir_id: u64,
        node: u16,
        end: LogEnd,
    ) -> io::Result<LogEndFile> {
        let temporary = log_end_temporary_path(dir);
        let file = disk.create_empty(&temporary)?;
        // Zeros instead of a hole, so that no later note needs disk space.
        let mut bytes = vec![0; FILE_BYTES as usize];
        bytes[0..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&LOG_END_FORMAT.to_le_bytes());
        bytes[12..14].copy_from_slice(&node.to_le_bytes());
        bytes[16..24].copy_from_slice(&dir_id.to_le_bytes());
        let crc = crc32c(&bytes[..60]);
        bytes[60..64].copy_from_slice(&crc.to_le_bytes());
        let slot = Slot { sequence: 1, end }.encode();
        bytes[BLOCK_BYTES as usize..][..SLOT_BYTES].copy_from_slice(&slot);
        file.write_all_at(&bytes, 0)?;
        file.sync_data()?;
        disk.rename(&temporary, &log_end_path(dir))?;
        disk.sync_dir(dir)?;
        let planted = Planted::Nothing;
        Ok(LogEndFile {
            file,
            slot: 1,
            sequence: 1,
            is_dirty: false,
            noted: Lsn::ZERO,
            synced_at_ns: 0,
            planted,
        })
    }

    /// Notes what the log's sync has made durable. The note itself is not durable yet.
    pub(crate) fn note(&mut self, end: LogEnd) -> io::Result<()> {
        let LogEnd { durable, segment } = end;
        assert!(
            self.noted <= durable && segment.is_none_or(|base| base <= durable),
            "a note of {end:?} after one of {}",
            self.noted
        );
        self.noted = durable;
        let slot = Slot { sequence: self.sequence + 1, end };
        if self.planted == Planted::NoNote {
            return Ok(());
        }
        // A failed write may be partial: then there is no note, and no reason to switch slots.
        self.is_dirty = self.planted == Planted::TornNotes;
        self.file.write_all_at(&slot.encode(), slot_offset(self.slot))?;
        self.is_dirty = true;
        self.sequence = slot.sequence;
        Ok(())
    }

    /// Notes, durably, that the log may end before what was noted.
    pub(crate) fn lower(&mut self, end: LogEnd, now_ns: u64) -> io::Result<()> {
        // A newer note may be waiting for its sync in the slot that this one would take.
        self.sync(now_ns)?;
        self.noted = end.durable;
        self.note(end)?;
        self.sync(now_ns)
    }

    /// Nanoseconds until the newest note has to be synced; `None` if it is on the disk.
    pub(crate) fn sync_due_in_ns(&self, now_ns: u64) -> Option<u64> {
        self.is_dirty.then(|| (self.synced_at_ns + SYNC_EVERY_NS).saturating_sub(now_ns))
    }

    /// Makes the newest note durable.
    pub(crate) fn sync(&mut self, now_ns: u64) -> io::Result<()> {
        self.synced_at_ns = now_ns;
        if self.is_dirty {
            // After a failure, notes keep going to the same slot, because its content cannot be
            // trusted.
            self.file.sync_data()?;
            self.is_dirty = false;
            self.slot = 1 - self.slot;
        }
        Ok(())
    }
}
