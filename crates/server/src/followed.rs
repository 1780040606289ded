//! Records of another node's log, applied to this one's data while clients read.

use crate::dropper::Dropper;
use ladon_engine::{Ahead, ApplyError, Followed, Keyspace, Lookahead, Scratch};
use ladon_kernel::message::Message;
use ladon_kernel::shared::Shared;
use ladon_log::frame::{FRAME_HEADER_BYTES, FrameHeader, FrameKind};
use ladon_record::{Changes, Lsn};
use std::io;
use std::sync::Arc;

/// The data, and who has to hear of its changes.
pub(crate) struct FollowedRecords {
    pub(crate) shared: Arc<Shared>,
    pub(crate) keyspace: Arc<Keyspace>,
    /// Frees large values: the applying thread has to be heard of. `None`: they are freed at once.
    pub(crate) dropper: Option<Dropper>,
}

/// So many records are applied at one look at the clock, which costs as much as a tenth of a record.
const RECORDS_PER_LOOK: usize = 64;

/// Records that are applied one after the other. The memory of their keys is fetched some records
/// ahead of their turn: whoever applies them waits for little else.
pub(crate) struct RecordRun<'k> {
    records: &'k FollowedRecords,
    /// The first key of each record.
    keys: Vec<Ahead>,
    next: usize,
    now_ms: u64,
    lookahead: Lookahead<'k>,
}

impl RecordRun<'_> {
    /// The next record of the frames is about to be applied, or passed over. Returns the time.
    #[inline]
    pub(crate) fn advance(&mut self) -> u64 {
        if self.next.is_multiple_of(RECORDS_PER_LOOK) {
            self.now_ms = self.records.shared.clock.unix_ms();
        }
        self.lookahead.advance(&self.keys, self.next);
        self.next += 1;
        self.now_ms
    }
}

impl FollowedRecords {
    /// The records in these frames, as far as they are whole.
    pub(crate) fn run(&self, frames: &[u8]) -> RecordRun<'_> {
        let (mut keys, mut rest) = (Vec::new(), frames);
        while let Some(header) = frame_header(rest)
            && let Some((frame, behind)) = rest.split_at_checked(header.frame_bytes() as usize)
        {
            rest = behind;
            if FrameKind::from_u8(header.kind) == Some(FrameKind::Changes) {
                let first = Changes::new(&frame[FRAME_HEADER_BYTES..]).next();
                let key = first.as_ref().and_then(|first| first.as_ref().ok()?.key());
                // One without a key has the place of some other one: that is fetched in vain.
                let (db, key) = key.unwrap_or_default();
                keys.push(Ahead { db, hash: self.keyspace.hash(key) });
            }
        }
        RecordRun { records: self, keys, next: 0, now_ms: 0, lookahead: self.keyspace.lookahead() }
    }

    /// Applies a record, the whole of which readers see at once.
    ///
    /// # Errors
    /// The record contradicts the data.
    pub(crate) fn apply(
        &self,
        (at, now_ms): (Lsn, u64),
        record: &[u8],
        scratch: &mut Scratch,
    ) -> io::Result<()> {
        let followed = self.keyspace.follow(at, record, scratch, now_ms);
        self.applied(at, followed, scratch)
    }

    /// Testing only: as [`FollowedRecords::apply`], change by change, and readers see each; calls
    /// `between` after each.
    pub(crate) fn apply_in_parts(
        &self,
        (at, now_ms): (Lsn, u64),
        record: &[u8],
        scratch: &mut Scratch,
        between: &dyn Fn(),
    ) -> io::Result<()> {
        let mut followed = Ok(Followed { defines: false });
        let (mut changes, mut rest) = (Changes::new(record), record);
        while changes.next().is_some() {
            let part = &rest[..rest.len() - changes.rest().len()];
            rest = changes.rest();
            let defined = self.keyspace.follow(at, part, scratch, now_ms);
            followed = followed.and_then(|before| {
                defined.map(|now| Followed { defines: before.defines | now.defines })
            });
            between();
        }
        self.applied(at, followed, scratch)
    }

    /// Does what a record left to do.
    pub(crate) fn applied(
        &self,
        at: Lsn,
        followed: Result<Followed, ApplyError>,
        scratch: &mut Scratch,
    ) -> io::Result<()> {
        let failed = |error| io::Error::other(format!("the record at LSN {at}: {error}"));
        if followed.map_err(failed)?.defines {
            ladon_tarantool::schema_changed(&self.shared, &self.keyspace, at);
        }
        let counters = std::mem::take(&mut scratch.counters);
        self.keyspace.add_used_bytes(counters.bytes_delta);
        if !scratch.garbage.is_empty() {
            let garbage = std::mem::take(&mut scratch.garbage);
            if let Some(dropper) = &self.dropper {
                dropper.drop_later(garbage);
            }
        }
        if !scratch.ready.is_empty() {
            let ready = std::mem::take(&mut scratch.ready);
            if let Some(thread) = self.shared.threads.first() {
                thread.send(Message::Ready(ready));
            }
        }
        Ok(())
    }
}

/// A frame's header.
pub(crate) fn frame_header(frame: &[u8]) -> Option<FrameHeader> {
    frame.first_chunk::<FRAME_HEADER_BYTES>().map(FrameHeader::decode)
}
