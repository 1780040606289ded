//! The bytes of a checkpoint file.
//!
//! ```text
//! file  := header (64 bytes), then parts; the last part is the end
//! header:
//!  0        8        12     14     16       24          32        40                60    64
//!  | magic  | format | node | zero | dir id | begin lsn | created | zeros           | crc |
//! part:
//!  0     4      5      6    8                16           24          32    40      48
//!  | crc | kind | zero | db | payload length | hash first | hash last | lsn | keys  | payload ...
//!  | u32 | u8   | u8   | u16| u64            | u64        | u64       | u64 | u64   |
//! ```
//! Little endian. A part's CRC-32C is over bytes 4 to 48 of its header followed by
//! the CRC-32C of its payload (4 bytes). Kinds: 1 block (payload:
//! encoded changes), 2 metadata (payload: the server's own bytes), 3 end, without payload,
//! where `hash first` is the number of blocks, `hash last` the bytes of all payloads, `lsn` the
//! newest LSN of any part and `keys` the number of keys. The end is what makes a file whole.

use crate::crc::crc32c;
use crate::segment::{HeaderFault, LSN_MAX, checked_header, position_in_name};
use ladon_record::{DbId, Lsn};
use std::path::{Path, PathBuf};

/// Bytes in front of the first part.
pub const CHECKPOINT_HEADER_BYTES: u64 = 64;

/// Bytes in front of a part's payload.
pub const PART_HEADER_BYTES: usize = 48;

/// The checkpoint format that this version writes, and the newest that it reads.
pub const CHECKPOINT_FORMAT: u32 = 1;

const MAGIC: [u8; 8] = *b"LADONCKP";

/// The header of a checkpoint file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckpointHeader {
    /// The node that wrote it.
    pub node: u16,
    /// The data directory's identity.
    pub dir_id: u64,
    /// Replay begins here.
    pub begin: Lsn,
    /// When it was begun, Unix milliseconds.
    pub created_ms: u64,
}

impl CheckpointHeader {
    /// The file's first 64 bytes.
    pub fn encode(&self) -> [u8; CHECKPOINT_HEADER_BYTES as usize] {
        let mut out = [0; CHECKPOINT_HEADER_BYTES as usize];
        out[0..8].copy_from_slice(&MAGIC);
        out[8..12].copy_from_slice(&CHECKPOINT_FORMAT.to_le_bytes());
        out[12..14].copy_from_slice(&self.node.to_le_bytes());
        out[16..24].copy_from_slice(&self.dir_id.to_le_bytes());
        out[24..32].copy_from_slice(&self.begin.0.to_le_bytes());
        out[32..40].copy_from_slice(&self.created_ms.to_le_bytes());
        let crc = crc32c(&out[..60]);
        out[60..64].copy_from_slice(&crc.to_le_bytes());
        out
    }

    /// Reads a header from the start of a file.
    pub fn decode(bytes: &[u8]) -> Result<CheckpointHeader, HeaderFault> {
        let fields = checked_header(bytes, &MAGIC, CHECKPOINT_FORMAT)?;
        if fields.u64(24) > LSN_MAX {
            return Err(HeaderFault::Bad("the header's position is beyond any log"));
        }
        Ok(CheckpointHeader {
            node: fields.u16(12),
            dir_id: fields.u64(16),
            begin: Lsn(fields.u64(24)),
            created_ms: fields.u64(32),
        })
    }
}

/// One block: the keys of one database whose hashes lie in a range, as of one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockHeader {
    /// The database.
    pub db: DbId,
    /// The lowest hash of the range.
    pub hash_first: u64,
    /// The highest hash of the range, inclusive.
    pub hash_last: u64,
    /// The log's reserved end when the block was saved. The block holds the effect of every record
    /// up to here, and of none after.
    pub lsn: Lsn,
    /// How many keys it holds.
    pub keys: u64,
}

/// What a part is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PartKind {
    /// A block of keys.
    Block = 1,
    /// The server's metadata.
    Meta = 2,
    /// The end of a complete file.
    End = 3,
}

/// A part's header, decoded; the fields' meaning depends on the kind, see the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartHeader {
    /// CRC-32C of the rest of the part.
    pub crc: u32,
    /// A [`PartKind`], unchecked.
    pub kind: u8,
    /// Size of the payload, which follows the header.
    pub payload_bytes: u64,
    /// The block's fields; for the end, counts in their place.
    pub block: BlockHeader,
}

impl PartHeader {
    /// The 48 bytes in front of `payload`, checksum included.
    pub fn encode(kind: PartKind, block: &BlockHeader, payload: &[u8]) -> [u8; PART_HEADER_BYTES] {
        PartHeader::encode_of(kind, block, payload.len() as u64, crc32c(payload))
    }

    /// The same, for a payload with this length and this checksum of its own.
    pub(crate) fn encode_of(
        kind: PartKind,
        block: &BlockHeader,
        payload_bytes: u64,
        payload_crc: u32,
    ) -> [u8; PART_HEADER_BYTES] {
        let mut out = [0; PART_HEADER_BYTES];
        out[4] = kind as u8;
        out[6..8].copy_from_slice(&block.db.to_le_bytes());
        out[8..16].copy_from_slice(&payload_bytes.to_le_bytes());
        out[16..24].copy_from_slice(&block.hash_first.to_le_bytes());
        out[24..32].copy_from_slice(&block.hash_last.to_le_bytes());
        out[32..40].copy_from_slice(&block.lsn.0.to_le_bytes());
        out[40..48].copy_from_slice(&block.keys.to_le_bytes());
        let crc = part_crc_of(&out, payload_crc);
        out[0..4].copy_from_slice(&crc.to_le_bytes());
        out
    }

    /// Decodes a header without validating it.
    pub fn decode(bytes: &[u8; PART_HEADER_BYTES]) -> PartHeader {
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        PartHeader {
            crc: word(0) as u32,
            kind: bytes[4],
            payload_bytes: word(8),
            block: BlockHeader {
                db: u16::from_le_bytes([bytes[6], bytes[7]]),
                hash_first: word(16),
                hash_last: word(24),
                lsn: Lsn(word(32)),
                keys: word(40),
            },
        }
    }

    /// The kind, if this version knows it.
    pub fn kind(&self) -> Option<PartKind> {
        match self.kind {
            1 => Some(PartKind::Block),
            2 => Some(PartKind::Meta),
            3 => Some(PartKind::End),
            _ => None,
        }
    }
}

/// The checksum over the header after its CRC field, followed by the payload's checksum. The
/// payload's own checksum replaces the payload, so that header and payload need not be contiguous.
pub fn part_crc(header: &[u8; PART_HEADER_BYTES], payload: &[u8]) -> u32 {
    part_crc_of(header, crc32c(payload))
}

fn part_crc_of(header: &[u8; PART_HEADER_BYTES], payload_crc: u32) -> u32 {
    let mut summed = [0; PART_HEADER_BYTES];
    summed[..PART_HEADER_BYTES - 4].copy_from_slice(&header[4..]);
    summed[PART_HEADER_BYTES - 4..].copy_from_slice(&payload_crc.to_le_bytes());
    crc32c(&summed)
}

/// `00000000000000000000.checkpoint`: the start position in decimal.
pub fn checkpoint_path(dir: &Path, begin: Lsn) -> PathBuf {
    dir.join(format!("{:020}.checkpoint", begin.0))
}

/// The start position in a checkpoint's file name; `None` for other files.
pub fn checkpoint_begin(path: &Path) -> Option<Lsn> {
    position_in_name(path, ".checkpoint")
}

/// The file's name while it is being written.
pub(crate) fn checkpoint_temporary_path(dir: &Path, begin: Lsn) -> PathBuf {
    dir.join(format!("{:020}.checkpoint.tmp", begin.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_read_back() {
        let header = CheckpointHeader { node: 1, dir_id: 2, begin: Lsn(3), created_ms: 4 };
        assert_eq!(CheckpointHeader::decode(&header.encode()), Ok(header));
        let block = BlockHeader {
            db: 513,
            hash_first: u64::MAX - 1,
            hash_last: u64::MAX,
            lsn: Lsn(7),
            keys: 8,
        };
        let bytes = PartHeader::encode(PartKind::Block, &block, b"payload");
        let part = PartHeader::decode(&bytes);
        assert_eq!((part.block, part.payload_bytes), (block, 7));
        assert_eq!(part.kind(), Some(PartKind::Block));
        assert_eq!(part.crc, part_crc(&bytes, b"payload"));
        assert_ne!(part.crc, part_crc(&bytes, b"paylobd"));
    }
}
