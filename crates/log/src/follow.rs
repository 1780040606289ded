//! A log that takes its records from another node's: the same bytes at the same positions.
//!
//! Only sync marks differ: they say how far *this* node's log was on the disk, so each one that
//! comes is a place of 32 bytes for one of this node's own. Recovery trusts every mark that it
//! finds, and therefore none of another node may be in the file.

use crate::Appender;
use crate::crc::crc32c;
use crate::frame::{FRAME_HEADER_BYTES, FrameHeader, FrameKind, encode_frame};
use crate::log::Log;
use crate::planted::Planted;
use crate::state::LogError;
use crate::sync_primitives::Ordering;
use crate::write::write_failed;
use ladon_record::Lsn;
use thiserror::Error;

/// Why foreign bytes are not the continuation of this log. None of them was appended.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the frames for LSN {at} are not its continuation: {found}")]
pub struct ForeignFault {
    /// Where the frame that is wrong would be.
    pub at: Lsn,
    /// What is there.
    pub found: String,
}

impl Log {
    /// Lets entries of a group follow from now on: they come into segments whose format says so,
    /// which an older version refuses by name. Cheap if that is already so.
    ///
    /// # Errors
    /// [`LogError::WriteFailed`].
    pub fn begin_entries(&self) -> Result<(), LogError> {
        let io = self.io.lock();
        if self.has_entries.load(Ordering::SeqCst) {
            return Ok(());
        }
        // A segment that holds anything is followed by another one.
        let next_record_in = self.buffer.turn_segment(1);
        if io.segment.base.0 == next_record_in {
            let failed = |error| write_failed(&io.segment.path, 0, error);
            io.segment.allow_entries().map_err(failed)?;
        }
        // Whoever begins a segment's file holds the same lock, and so sees this.
        self.has_entries.store(true, Ordering::SeqCst);
        Ok(())
    }

    /// From now on, the log takes its records from elsewhere ([`Log::append_frames`]) and none of
    /// this node, or the other way round. No batch may be open.
    pub fn set_follower(&self, is_follower: bool) {
        self.buffer.set_follower(is_follower);
    }

    /// End of the last record that this node itself has appended; sync marks may follow it.
    pub fn records_end(&self) -> Lsn {
        Lsn(self.buffer.records_end())
    }

    /// Whether a record of this node's own came while the log takes its records from elsewhere. It
    /// is not in the log; its position, which is beyond all others, is never reached. What the node
    /// has in memory is not what the log says any more.
    pub fn has_strays(&self) -> bool {
        self.buffer.has_strays()
    }

    /// Whether the log takes its records from elsewhere.
    pub fn is_follower(&self) -> bool {
        self.buffer.is_follower()
    }

    /// Appends whole frames of another node's log, which continue this one exactly at its end, and
    /// publishes them. Returns the end.
    ///
    /// # Errors
    /// [`ForeignFault`]: the first frame that does not belong there.
    ///
    /// # Panics
    /// Unless the log is a follower's.
    pub fn append_frames(
        &self,
        appender: &mut Appender,
        frames: &[u8],
    ) -> Result<Lsn, ForeignFault> {
        let mut end = self.reserved();
        self.check_frames(frames, end)?;
        let slot = appender.slot();
        let mut rest = frames;
        while let Some(header) = rest.first_chunk() {
            let header = FrameHeader::decode(header);
            let (frame, behind) = rest.split_at(header.frame_bytes() as usize);
            end = match FrameKind::from_u8(header.kind) {
                Some(FrameKind::SyncMark | FrameKind::CleanEnd)
                    if self.options.planted != Planted::ForeignMarkTrusted =>
                {
                    self.buffer.append_frame(slot, &self.own_mark(&header))
                }
                _ => self.buffer.append_frame(slot, frame),
            };
            rest = behind;
        }
        appender.publish();
        Ok(end)
    }

    /// This node's mark in the place of another node's.
    fn own_mark(&self, header: &FrameHeader) -> Vec<u8> {
        let durable = self.durable().0.to_le_bytes();
        let start = Lsn(header.lsn.0 - header.frame_bytes());
        encode_frame(FrameKind::SyncMark, self.place.node, header.unix_ms, start, &durable)
    }

    fn check_frames(&self, frames: &[u8], mut at: Lsn) -> Result<(), ForeignFault> {
        let mut rest = frames;
        while !rest.is_empty() {
            let fault = |found: String| Err(ForeignFault { at, found });
            let Some(header) = rest.first_chunk::<FRAME_HEADER_BYTES>() else {
                return fault(format!("{} bytes of a frame's header", rest.len()));
            };
            let header = FrameHeader::decode(header);
            let bytes = header.frame_bytes();
            if header.lsn.0 != at.0 + bytes {
                return fault(format!("a frame of {bytes} bytes that ends at LSN {}", header.lsn));
            }
            if bytes > rest.len() as u64 {
                return fault(format!("{} of a frame's {bytes} bytes", rest.len()));
            }
            let (frame, behind) = rest.split_at(bytes as usize);
            if crc32c(&frame[4..]) != header.crc {
                return fault(format!("a frame of {bytes} bytes with a wrong checksum"));
            }
            match FrameKind::from_u8(header.kind) {
                None => return fault(format!("a frame of unknown kind {}", header.kind)),
                Some(FrameKind::SyncMark | FrameKind::CleanEnd) if header.payload_bytes != 8 => {
                    return fault(format!("a sync mark of {bytes} bytes"));
                }
                Some(_) => {}
            }
            (at, rest) = (header.lsn, behind);
        }
        Ok(())
    }
}
