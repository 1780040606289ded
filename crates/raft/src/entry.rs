//! Entries: what a frame of the log says about everything in front of it.

use crate::frame::{BadEntry, decode_entry};
use crate::types::{EntryId, MemberId, Reign};
use bytes::Bytes;
use ladon_log::frame::{FRAME_HEADER_BYTES, FrameHeader, FrameKind};
use ladon_record::Lsn;
use openraft::entry::{RaftEntry, RaftPayload};
use openraft::{EntryPayload, Membership};
use std::fmt;

/// A proposal: what is in the log up to now. It carries nothing, because the log already has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cut;

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cut")
    }
}

/// A member, as the membership entries carry it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Member {
    /// `HOST:PORT` where the other members reach it.
    pub address: String,
    /// `HOST:PORT` where clients of Redis' protocol reach it.
    pub client: String,
    /// It votes and keeps the log, and has no data.
    pub is_witness: bool,
    /// It has the data, and never votes.
    pub is_replica: bool,
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.address)?;
        if self.is_witness { f.write_str(" (witness)") } else { Ok(()) }
    }
}

/// Why there is an entry: a cut, a leader's first, or a change of the members.
pub type Payload = EntryPayload<Cut, MemberId, Member>;

/// A part of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// End of the entry before.
    pub from: Lsn,
    /// End of the entry's frame.
    pub to: Lsn,
}

impl Extent {
    /// Its size in bytes.
    pub fn bytes(self) -> u64 {
        self.to.0 - self.from.0
    }
}

/// An entry of the group's log.
#[derive(Clone, PartialEq)]
pub struct Entry {
    /// Term and index.
    pub id: EntryId,
    /// What its own frame says.
    pub payload: Payload,
    /// Where it is in the log; `None` while it is a leader's proposal, whose end is decided when it
    /// is appended.
    pub extent: Option<Extent>,
    /// The log's bytes, on their way to a follower's log.
    pub frames: Bytes,
}

impl Entry {
    /// The entry whose extent these bytes of a log are: whole frames in their places, of which the
    /// last one is the entry's, and no other is an entry's. Checksums are left to the log.
    ///
    /// # Errors
    /// [`BadEntry`].
    pub fn of_frames(from: Lsn, frames: Bytes) -> Result<Entry, BadEntry> {
        let (mut rest, mut at) = (&frames[..], from.0);
        let (id, payload) = loop {
            let header = rest.first_chunk().ok_or(BadEntry("its frame is not there"))?;
            let header = FrameHeader::decode(header);
            let length = header.frame_bytes();
            if at.checked_add(length) != Some(header.lsn.0) {
                return Err(BadEntry("a frame is not in its place"));
            }
            let length = usize::try_from(length).ok();
            let whole = length.and_then(|length| rest.split_at_checked(length));
            let (frame, behind) = whole.ok_or(BadEntry("a frame is cut"))?;
            match (FrameKind::from_u8(header.kind), behind) {
                (Some(FrameKind::Entry), []) => break decode_entry(&frame[FRAME_HEADER_BYTES..])?,
                (Some(FrameKind::Entry), _) => return Err(BadEntry("an entry within one")),
                (None, _) => return Err(BadEntry("a frame of an unknown kind")),
                (Some(_), _) => (rest, at) = (behind, header.lsn.0),
            }
        };
        let extent = Extent { from, to: Lsn(from.0 + frames.len() as u64) };
        Ok(Entry { id, payload, extent: Some(extent), frames })
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.id, self.payload)?;
        match self.extent {
            Some(extent) => write!(f, " ({} to {})", extent.from, extent.to),
            None => Ok(()),
        }
    }
}

impl RaftEntry for Entry {
    type CommittedLeaderId = Reign;
    type Payload = Payload;

    fn new(id: EntryId, payload: Payload) -> Entry {
        Entry { id, payload, extent: None, frames: Bytes::new() }
    }

    fn log_id_parts(&self) -> (&Reign, u64) {
        (&self.id.leader_id, self.id.index)
    }

    fn set_log_id(&mut self, id: EntryId) {
        self.id = id;
    }

    fn get_membership(&self) -> Option<Membership<MemberId, Member>> {
        self.payload.get_membership()
    }
}
