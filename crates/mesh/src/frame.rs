//! Frames: the pieces in which messages travel.
//!
//! ```text
//!  0        4      5       6       8      12
//!  +--------+------+-------+-------+------+------------------+
//!  | length | kind | flags | group | id   | body             |
//!  | u32    | u8   | u8    | u16   | u32  | `length` bytes   |
//!  +--------+------+-------+-------+------+------------------+
//! ```
//! Little endian. A body has 64 KiB at most; a longer message goes on in frames with the same head,
//! all but the last full and flagged [`MORE`], so that others' frames can go between them.

use thiserror::Error;

/// Bytes before a body.
pub const HEAD_BYTES: usize = 12;
/// Bytes of a frame's body: on a link of 1 Gbit/s they take half a millisecond, and another message
/// waits no longer for its turn.
pub const BODY_BYTES_MAX: usize = 64 << 10;
/// Messages of several frames that may be on their way at once, in one direction of a link.
pub const LARGE_MAX: usize = 8;
/// Kinds below are the mesh's own; those from here on are a service's.
pub const FIRST_SERVICE_KIND: u8 = 16;

pub(crate) const GREETING: u8 = 1;
pub(crate) const HELLO: u8 = 2;
/// A text for people; the link ends behind it.
pub(crate) const REFUSAL: u8 = 3;
/// Only says that the sender is there.
pub(crate) const ALIVE: u8 = 4;
/// Who asked the question of this id does not wait any more.
pub(crate) const GIVEN_UP: u8 = 5;

/// The message goes on in another frame.
pub const MORE: u8 = 1;
/// An answer to the question of this id.
pub const ANSWER: u8 = 2;
/// With [`ANSWER`]: it is a text that says why there is none.
pub const FAILURE: u8 = 4;

/// What stands before a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Bytes of the body.
    pub length: u32,
    /// What the message is.
    pub kind: u8,
    /// [`MORE`], [`ANSWER`], [`FAILURE`].
    pub flags: u8,
    /// The group that it is for.
    pub group: u16,
    /// The question that it is, or belongs to.
    pub id: u32,
}

/// Why a link's bytes cannot be understood. The text goes to the other side, and the link ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BadFrame {
    /// A frame announces more than fits into one.
    #[error("a frame of {0} bytes; it may have 65,536")]
    Long(u32),
    /// No such kind, or not at this time.
    #[error("unknown kind {0} of a message")]
    Kind(u8),
    /// A body where there is none.
    #[error("a body in a message of kind {0}, which has none")]
    Body(u8),
    /// Flags that this version does not know, or not together.
    #[error("unknown flags {0:#x} of a message")]
    Flags(u8),
    /// A question to who asks, or an answer to who answers.
    #[error("a message of kind {0} in the wrong direction")]
    Direction(u8),
    /// A frame that is not the last one has room left.
    #[error("a frame that is not its message's last one has {0} bytes instead of 65,536")]
    Partial(u32),
    /// Frames of one id belong to different messages.
    #[error("frames of different messages under the id {0}")]
    Mixed(u32),
    /// Too many messages are half here.
    #[error("more than 8 messages at once that have several frames")]
    Many,
    /// A message is longer than the limit.
    #[error("a message longer than {0} bytes")]
    MessageBytes(usize),
    /// The messages that are half here are longer than the limit.
    #[error("messages of more than {0} bytes at once")]
    LinkBytes(usize),
    /// The question of this id has no answer yet.
    #[error("question {0} is asked twice")]
    Twice(u32),
}

impl Head {
    /// The bytes of it.
    pub fn encode(&self) -> [u8; HEAD_BYTES] {
        let mut bytes = [0; HEAD_BYTES];
        bytes[..4].copy_from_slice(&self.length.to_le_bytes());
        (bytes[4], bytes[5]) = (self.kind, self.flags);
        bytes[6..8].copy_from_slice(&self.group.to_le_bytes());
        bytes[8..].copy_from_slice(&self.id.to_le_bytes());
        bytes
    }

    /// The inverse of [`Head::encode`].
    ///
    /// # Errors
    /// A length beyond a frame's.
    pub fn decode(bytes: &[u8; HEAD_BYTES]) -> Result<Head, BadFrame> {
        let [a, b, c, d, kind, flags, e, f, g, h, i, j] = *bytes;
        let length = u32::from_le_bytes([a, b, c, d]);
        if length as usize > BODY_BYTES_MAX {
            return Err(BadFrame::Long(length));
        }
        let (group, id) = (u16::from_le_bytes([e, f]), u32::from_le_bytes([g, h, i, j]));
        Ok(Head { length, kind, flags, group, id })
    }

    /// A frame of the mesh's own.
    pub(crate) fn own(kind: u8, id: u32, length: usize) -> Head {
        Head { length: length as u32, kind, flags: 0, group: 0, id }
    }
}
