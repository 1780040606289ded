//! A segment file's header and name.
//!
//! ```text
//!  0        8        12     14     16       24        32           40        48       60    64
//!  | magic  | format | node | zero | dir id | base    | durable at | created | zeros  | crc |
//!  | 8 bytes| u32    | u16  | u16  | u64    | lsn u64 | lsn u64    | ms u64  |        | u32 |
//! ```
//! Little endian; the CRC-32C covers bytes 0 to 60. The frame that begins at LSN `l` is at file
//! offset `64 + (l - base)`. `durable at` is how far the log was known to be on the disk when the
//! file was made: recovery uses it to tell damage from a torn tail.

use crate::crc::crc32c;
use ladon_record::Lsn;
use std::path::{Path, PathBuf};

/// Bytes in front of the first frame.
pub const SEGMENT_HEADER_BYTES: u64 = 64;

/// The newest format of segments that this version reads. It writes it where entries of a group may
/// follow, and else [`SEGMENT_FORMAT_PLAIN`], so that a directory that never had any stays readable
/// by the versions that do not know them.
pub const SEGMENT_FORMAT: u32 = 2;

/// The format of segments without entries.
pub const SEGMENT_FORMAT_PLAIN: u32 = 1;

const MAGIC: [u8; 8] = *b"LADONLOG";

/// The largest position that a frame's 56 bits can express; at 1 GB/s it is reached after two
/// years.
pub const LSN_MAX: u64 = (1 << 56) - 1;

/// The header of a segment file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentHeader {
    /// The node that wrote the file.
    pub node: u16,
    /// The data directory's identity, which reveals a file from another directory.
    pub dir_id: u64,
    /// Position in the log where the file begins.
    pub base: Lsn,
    /// How far the log was on the disk when the file was created.
    pub durable: Lsn,
    /// When, Unix milliseconds.
    pub created_ms: u64,
    /// Whether frames of kind `entry` may be in it.
    pub has_entries: bool,
}

/// Why a header is not usable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeaderFault {
    /// Shorter than a header, wrong magic, or a wrong CRC; says which.
    Bad(&'static str),
    /// Written by a newer version: its format number.
    Newer(u32),
}

impl SegmentHeader {
    /// The file's first 64 bytes.
    pub fn encode(&self) -> [u8; SEGMENT_HEADER_BYTES as usize] {
        let mut out = [0; SEGMENT_HEADER_BYTES as usize];
        out[0..8].copy_from_slice(&MAGIC);
        let format = if self.has_entries { SEGMENT_FORMAT } else { SEGMENT_FORMAT_PLAIN };
        out[8..12].copy_from_slice(&format.to_le_bytes());
        out[12..14].copy_from_slice(&self.node.to_le_bytes());
        out[16..24].copy_from_slice(&self.dir_id.to_le_bytes());
        out[24..32].copy_from_slice(&self.base.0.to_le_bytes());
        out[32..40].copy_from_slice(&self.durable.0.to_le_bytes());
        out[40..48].copy_from_slice(&self.created_ms.to_le_bytes());
        let crc = crc32c(&out[..60]);
        out[60..64].copy_from_slice(&crc.to_le_bytes());
        out
    }

    /// Reads a header from the start of a file.
    pub fn decode(bytes: &[u8]) -> Result<SegmentHeader, HeaderFault> {
        let fields = checked_header(bytes, &MAGIC, SEGMENT_FORMAT)?;
        if fields.u64(24) > LSN_MAX {
            return Err(HeaderFault::Bad("the header's position is beyond any log"));
        }
        Ok(SegmentHeader {
            node: fields.u16(12),
            dir_id: fields.u64(16),
            base: Lsn(fields.u64(24)),
            durable: Lsn(fields.u64(32)),
            created_ms: fields.u64(40),
            has_entries: fields.u32(8) > SEGMENT_FORMAT_PLAIN,
        })
    }
}

/// The 64 checked bytes that begin every file of a data directory.
pub(crate) struct HeaderBytes([u8; 64]);

impl HeaderBytes {
    pub(crate) fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes([self.0[at], self.0[at + 1]])
    }

    pub(crate) fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(std::array::from_fn(|i| self.0[at + i]))
    }

    pub(crate) fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|i| self.0[at + i]))
    }
}

/// Magic first, CRC second, format last. A newer version keeps the first two in place, so that an
/// older one can report what it cannot read.
pub(crate) fn checked_header(
    bytes: &[u8],
    magic: &[u8; 8],
    newest: u32,
) -> Result<HeaderBytes, HeaderFault> {
    let Some(bytes) = bytes.first_chunk::<64>() else {
        return Err(HeaderFault::Bad("the file ends inside its header"));
    };
    let header = HeaderBytes(*bytes);
    if bytes[..8] != magic[..] {
        return Err(HeaderFault::Bad("the file does not begin with its magic bytes"));
    }
    if header.u32(60) != crc32c(&bytes[..60]) {
        return Err(HeaderFault::Bad("the header's checksum does not match"));
    }
    match header.u32(8) {
        0 => Err(HeaderFault::Bad("the header's format number is zero")),
        format if format > newest => Err(HeaderFault::Newer(format)),
        _ => Ok(header),
    }
}

/// `00000000000000000000.log`: the base in decimal, so that names sort as positions.
pub fn segment_path(dir: &Path, base: Lsn) -> PathBuf {
    dir.join(format!("{:020}.log", base.0))
}

/// The base in a segment's file name; `None` for other files.
pub fn segment_base(path: &Path) -> Option<Lsn> {
    position_in_name(path, ".log")
}

pub(crate) fn position_in_name(path: &Path, suffix: &str) -> Option<Lsn> {
    let digits = path.file_name()?.to_str()?.strip_suffix(suffix)?;
    let whole = digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit());
    if whole { digits.parse().ok().map(Lsn) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_reads_back_and_every_flip_is_seen() {
        let header = SegmentHeader {
            node: 3,
            dir_id: 99,
            base: Lsn(1000),
            durable: Lsn(900),
            created_ms: 1_800_000_000_000,
            has_entries: true,
        };
        let bytes = header.encode();
        assert_eq!(SegmentHeader::decode(&bytes), Ok(header));
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(SegmentHeader::decode(&flipped).is_err(), "bit {bit}");
        }
        for cut in 0..bytes.len() {
            assert!(SegmentHeader::decode(&bytes[..cut]).is_err());
        }
    }

    #[test]
    fn names_sort_as_positions() {
        let dir = Path::new("d");
        assert_eq!(segment_base(&segment_path(dir, Lsn(42))), Some(Lsn(42)));
        assert!(segment_path(dir, Lsn(9)) < segment_path(dir, Lsn(10)));
        for other in ["1.log", "meta", "0000000000000000000x.log", "00000000000000000001.log.tmp"] {
            assert_eq!(segment_base(&dir.join(other)), None);
        }
    }
}
