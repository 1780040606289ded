//! Reads a checkpoint, its parts in parallel if wished.
//!
//! The reader threads share a cursor. The next thread reads a part's header under the cursor's
//! lock, which says where the next part begins. It then reads, checks and uses the payload outside
//! the lock.

use super::CheckpointInfo;
use super::format::{
    BlockHeader, CHECKPOINT_HEADER_BYTES, CheckpointHeader, PART_HEADER_BYTES, PartHeader,
    PartKind, part_crc,
};
use crate::damage::Damage;
use crate::reader::read_full;
use crate::segment::HeaderFault;
use crate::sync_primitives::Mutex;
use ladon_platform::{Disk, DiskFile};
use std::io;
use std::path::{Path, PathBuf};

/// Why a checkpoint cannot be read.
#[derive(Debug)]
pub enum CheckpointError {
    /// The system refused a read.
    Io(io::Error),
    /// The file is damaged.
    Damaged(Damage),
    /// Written by a newer version: its format number.
    Newer(u32),
}

impl From<io::Error> for CheckpointError {
    fn from(error: io::Error) -> Self {
        CheckpointError::Io(error)
    }
}

/// One part, whole and checked.
#[derive(Debug)]
pub struct Part {
    /// Block or metadata. The end is checked and not returned.
    pub kind: PartKind,
    /// A block's range, LSN and keys. For metadata, only the LSN is meaningful.
    pub header: BlockHeader,
    /// Offset of the part in the file.
    pub offset: u64,
    /// Encoded changes, or the metadata.
    pub payload: Vec<u8>,
}

/// An open checkpoint; threads may share it.
pub struct CheckpointReader {
    file: Box<dyn DiskFile>,
    path: PathBuf,
    header: CheckpointHeader,
    length: u64,
    cursor: Mutex<Cursor>,
}

struct Cursor {
    at: u64,
    sums: CheckpointInfo,
    payload_bytes: u64,
    ended: bool,
}

impl CheckpointReader {
    /// Opens the file and reads its header.
    pub fn open(disk: &dyn Disk, path: &Path) -> Result<CheckpointReader, CheckpointError> {
        let file = disk.open_read_only(path)?;
        let length = file.len()?;
        let mut bytes = [0; CHECKPOINT_HEADER_BYTES as usize];
        let read = read_full(&*file, &mut bytes, 0)?;
        let header = CheckpointHeader::decode(&bytes[..read]).map_err(|fault| match fault {
            HeaderFault::Newer(format) => CheckpointError::Newer(format),
            HeaderFault::Bad(found) => CheckpointError::Damaged(damage(path, 0, found)),
        })?;
        let sums = CheckpointInfo {
            path: path.to_owned(),
            begin: header.begin,
            newest: header.begin,
            keys: 0,
            blocks: 0,
            bytes: length,
            created_ms: header.created_ms,
        };
        let cursor = Cursor { at: CHECKPOINT_HEADER_BYTES, sums, payload_bytes: 0, ended: false };
        let path = path.to_owned();
        Ok(CheckpointReader { file, path, header, length, cursor: Mutex::new(cursor) })
    }

    /// The file's header.
    pub fn header(&self) -> &CheckpointHeader {
        &self.header
    }

    /// The file's length.
    pub fn file_bytes(&self) -> u64 {
        self.length
    }

    /// Position of the readers, in bytes of the file.
    pub fn position_bytes(&self) -> u64 {
        self.cursor.lock().at
    }

    /// Sums over all parts read so far; over the whole file once the end was read.
    pub fn info(&self) -> CheckpointInfo {
        self.cursor.lock().sums.clone()
    }

    /// Returns the next part for this thread. `None` after the end, which has then been checked.
    pub fn next_part(&self) -> Result<Option<Part>, CheckpointError> {
        let Some((offset, bytes, header, kind)) = self.claim()? else { return Ok(None) };
        let mut payload = vec![0; header.payload_bytes as usize];
        let read = read_full(&*self.file, &mut payload, offset + PART_HEADER_BYTES as u64)?;
        if read < payload.len() {
            return Err(self.damaged(offset, "the file became shorter while it was read"));
        }
        let crc = part_crc(&bytes, &payload);
        if crc != header.crc {
            let found = format!(
                "a part of {} bytes whose checksum is {crc:08x}, not {:08x} as it says",
                payload.len(),
                header.crc
            );
            return Err(self.damaged(offset, &found));
        }
        Ok(Some(Part { kind, header: header.block, offset, payload }))
    }

    /// Reserves the next part for this thread, under the lock.
    #[allow(clippy::type_complexity, reason = "used once, right above")]
    fn claim(
        &self,
    ) -> Result<Option<(u64, [u8; PART_HEADER_BYTES], PartHeader, PartKind)>, CheckpointError> {
        let mut cursor = self.cursor.lock();
        if cursor.ended {
            return Ok(None);
        }
        let offset = cursor.at;
        let mut bytes = [0; PART_HEADER_BYTES];
        if read_full(&*self.file, &mut bytes, offset)? < bytes.len() {
            return Err(self.damaged(offset, "the file ends without its end part"));
        }
        let header = PartHeader::decode(&bytes);
        let Some(kind) = header.kind() else {
            return Err(self.damaged(offset, &format!("a part of unknown kind {}", header.kind)));
        };
        let left = self.length.saturating_sub(offset + PART_HEADER_BYTES as u64);
        if header.payload_bytes > left {
            let found = format!("a part of {} bytes, but {left} are left", header.payload_bytes);
            return Err(self.damaged(offset, &found));
        }
        cursor.at = offset + PART_HEADER_BYTES as u64 + header.payload_bytes;
        if kind == PartKind::End {
            self.check_end(&mut cursor, offset, &bytes, &header)?;
            return Ok(None);
        }
        let sums = &mut cursor.sums;
        sums.newest = sums.newest.max(header.block.lsn);
        if kind == PartKind::Block {
            sums.blocks += 1;
            sums.keys = sums.keys.wrapping_add(header.block.keys);
        }
        cursor.payload_bytes += header.payload_bytes;
        Ok(Some((offset, bytes, header, kind)))
    }

    fn check_end(
        &self,
        cursor: &mut Cursor,
        offset: u64,
        bytes: &[u8; PART_HEADER_BYTES],
        header: &PartHeader,
    ) -> Result<(), CheckpointError> {
        cursor.ended = true;
        let sums = &cursor.sums;
        let expected = BlockHeader {
            db: 0,
            hash_first: sums.blocks,
            hash_last: cursor.payload_bytes,
            lsn: sums.newest,
            keys: sums.keys,
        };
        if header.payload_bytes != 0 || header.crc != part_crc(bytes, &[]) {
            return Err(self.damaged(offset, "an end part whose checksum does not match"));
        }
        if header.block != expected {
            return Err(self.damaged(offset, "an end part that does not sum up the parts before"));
        }
        if cursor.at != self.length {
            return Err(self.damaged(cursor.at, "bytes behind the end part"));
        }
        Ok(())
    }

    fn damaged(&self, offset: u64, found: &str) -> CheckpointError {
        CheckpointError::Damaged(damage(&self.path, offset, found))
    }
}

fn damage(path: &Path, offset: u64, found: &str) -> Damage {
    // alternative.rs replaces this advice where it knows the other files.
    let advice = "restore the directory from a backup".to_owned();
    Damage { path: path.to_owned(), offset, found: found.to_owned(), advice }
}
