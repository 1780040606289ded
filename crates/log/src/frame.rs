//! One record's frame in the log.
//!
//! ```text
//!  0      4            9            16               22     24
//!  | crc  | payload    | lsn        | time and kind  | node | payload ...
//!  | u32  | length u40 | u56        | u48            | u16  |
//! ```
//! Little endian. The CRC-32C covers everything behind it, payload included. The LSN is the end
//! of the frame, so a whole frame anywhere but in its own place is never taken for
//! valid. The time is Unix milliseconds in the low 44 bits; the kind is the high 4 bits.

use crate::crc::crc32c;
use ladon_record::Lsn;

/// Bytes in front of the payload.
pub const FRAME_HEADER_BYTES: usize = 24;

/// The longest payload that the 40-bit length can express (1 TiB).
pub const PAYLOAD_BYTES_MAX: u64 = (1 << 40) - 1;

/// What a frame carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FrameKind {
    /// Encoded changes: one transaction.
    Changes = 0,
    /// Eight bytes: the log was durable up to this LSN when the mark was written. After a crash,
    /// the mark proves that a bad frame below that LSN is damage and not a torn tail.
    SyncMark = 1,
    /// As `SyncMark`, and the log was closed cleanly here.
    CleanEnd = 2,
    /// An entry of a group's log: everything behind the entry before belongs to it. The payload is
    /// the group's (`ladon-raft`, `frame.rs`).
    Entry = 3,
}

impl FrameKind {
    /// The inverse of `kind as u8`.
    pub const fn from_u8(byte: u8) -> Option<FrameKind> {
        match byte {
            0 => Some(FrameKind::Changes),
            1 => Some(FrameKind::SyncMark),
            2 => Some(FrameKind::CleanEnd),
            3 => Some(FrameKind::Entry),
            _ => None,
        }
    }

    /// The name in `ladon dump`.
    pub const fn name(self) -> &'static str {
        match self {
            FrameKind::Changes => "changes",
            FrameKind::SyncMark => "sync-mark",
            FrameKind::CleanEnd => "clean-end",
            FrameKind::Entry => "entry",
        }
    }
}

/// A frame's header, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// CRC-32C of the rest of the frame.
    pub crc: u32,
    /// Size of the payload, which follows the header.
    pub payload_bytes: u64,
    /// End of the frame in the log.
    pub lsn: Lsn,
    /// When the record was appended, Unix milliseconds.
    pub unix_ms: u64,
    /// A [`FrameKind`], unchecked.
    pub kind: u8,
    /// The node on which the record originated.
    pub node: u16,
}

const TIME_BITS: u32 = 44;

impl FrameHeader {
    /// The 24 bytes, with the CRC from `self`.
    #[inline]
    pub fn encode(&self) -> [u8; FRAME_HEADER_BYTES] {
        let low = u64::from(self.crc) | self.payload_bytes << 32;
        let middle = (self.payload_bytes >> 32) & 0xff | self.lsn.0 << 8;
        let time = self.unix_ms & ((1 << TIME_BITS) - 1);
        let high = time | u64::from(self.kind & 0xf) << TIME_BITS | u64::from(self.node) << 48;
        let mut out = [0; FRAME_HEADER_BYTES];
        out[0..8].copy_from_slice(&low.to_le_bytes());
        out[8..16].copy_from_slice(&middle.to_le_bytes());
        out[16..24].copy_from_slice(&high.to_le_bytes());
        out
    }

    /// Decodes the header without validating it.
    #[inline]
    pub fn decode(bytes: &[u8; FRAME_HEADER_BYTES]) -> FrameHeader {
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let (low, middle, high) = (word(0), word(8), word(16));
        FrameHeader {
            crc: low as u32,
            payload_bytes: low >> 32 | (middle & 0xff) << 32,
            lsn: Lsn(middle >> 8),
            unix_ms: high & ((1 << TIME_BITS) - 1),
            kind: (high >> TIME_BITS) as u8 & 0xf,
            node: (high >> 48) as u16,
        }
    }

    /// Header and payload together, in bytes.
    #[inline]
    pub fn frame_bytes(&self) -> u64 {
        FRAME_HEADER_BYTES as u64 + self.payload_bytes
    }
}

/// Encodes a complete frame, for tests and tools; the log itself encodes in place.
pub fn encode_frame(
    kind: FrameKind,
    node: u16,
    unix_ms: u64,
    start: Lsn,
    payload: &[u8],
) -> Vec<u8> {
    let payload_bytes = payload.len() as u64;
    let lsn = Lsn(start.0 + FRAME_HEADER_BYTES as u64 + payload_bytes);
    let header = FrameHeader { crc: 0, payload_bytes, lsn, unix_ms, kind: kind as u8, node };
    let mut frame = header.encode().to_vec();
    frame.extend_from_slice(payload);
    let crc = crc32c(&frame[4..]);
    frame[..4].copy_from_slice(&crc.to_le_bytes());
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_reads_back() {
        for header in [
            FrameHeader { crc: 1, payload_bytes: 0, lsn: Lsn(24), unix_ms: 0, kind: 0, node: 0 },
            FrameHeader {
                crc: u32::MAX,
                payload_bytes: PAYLOAD_BYTES_MAX,
                lsn: Lsn((1 << 56) - 1),
                unix_ms: (1 << 44) - 1,
                kind: 15,
                node: u16::MAX,
            },
            FrameHeader {
                crc: 7,
                payload_bytes: 5 << 32,
                lsn: Lsn(6 << 32),
                unix_ms: 1_800_000_000_000,
                kind: 2,
                node: 513,
            },
        ] {
            assert_eq!(FrameHeader::decode(&header.encode()), header);
        }
    }
}
