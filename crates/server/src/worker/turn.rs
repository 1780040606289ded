//! The limits of a turn: how much may run before replies are sent and sockets are read again.
//!
//! Connections with requests form a queue. The first connection fills a batch, up to the batch's
//! size, and goes to the end of the queue. When the turn's time or bytes are used up, connections
//! that did not run stay at the front. So a connection waits for at most one batch of each other
//! connection, and a request that arrives waits for the rest of one turn before it is read.

use super::Worker;
use crate::positions::Positions;
use ladon_log::Appender;
use ladon_record::{Changes, Lsn, Record};

/// Limits of a turn; the simulator uses smaller ones.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Requests of a batch.
    pub batch_requests: usize,
    /// Nanoseconds after which a turn begins no further request, or no further batch if its
    /// requests are quick.
    pub turn_ns: u64,
    /// Bytes of replies, likewise.
    pub turn_output_bytes: usize,
    /// Bytes of replies to one connection in a row, likewise: more of them leave the processor's
    /// cache, and their buffer is made larger, before they are sent.
    pub row_output_bytes: usize,
    /// Bytes of waiting requests above which a connection is not read: about as many short requests
    /// as one turn can run.
    pub unread_bytes_max: usize,
    /// Nanoseconds of expiry or eviction in one turn.
    pub housekeeping_ns: u64,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace {
            batch_requests: crate::batch::REQUESTS_MAX,
            // Long enough for hundreds of requests, so that a turn's system calls are a small part
            // of it.
            turn_ns: 200_000,
            turn_output_bytes: 1 << 20,
            row_output_bytes: 128 << 10,
            unread_bytes_max: 128 << 10,
            housekeeping_ns: 100_000,
        }
    }
}

/// Points at which another thread may intervene.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// Before a request, for a moment.
    Between,
    /// Before a command that may take long, for as long as it takes. No other thread may have to
    /// wait for this one.
    BeforeSlow,
}

/// Testing only: runs what other threads do meanwhile.
pub type Interrupt = Box<dyn FnMut(Point) + Send>;

/// Testing only: called with each packet of IPROTO that has run: its connection's slot, the packet,
/// and the reply, which is empty if it is made in slices. Without one, it is not done and runs again.
pub type PacketRan = Box<dyn FnMut(u32, &[u8], Option<&[u8]>) + Send>;

/// Testing only: a bug that the simulator must notice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Planted {
    /// None.
    #[default]
    Nothing,
    /// Connections with requests left stay at the front of the queue.
    StarvedConnections,
    /// Records are published only at the end of the turn.
    LatePublication,
    /// Published records are neither written nor reported to the writer.
    SkippedWakeUp,
    /// Reading is never paused.
    ReadsOn,
    /// A wait for the log ends once the position is written.
    EarlyWait,
    /// A wait for the log requests no sync.
    UnaskedWait,
    /// Who waits until messages are delivered goes on behind newer requests.
    NewerFirst,
    /// The first that waits until messages are delivered never goes on.
    ForgottenPublisher,
    /// Messages leave without waiting for what they depend on.
    EarlyMessage,
    /// A message overtakes those that are not delivered yet.
    MessageOvertakes,
    /// A script's record lacks its first change.
    HalfScript,
    /// Records of requests that run while a script does are not published.
    UnpublishedSpare,
    /// The changes of a request of IPROTO are logged as two records.
    SplitCommit,
    /// The record of a request of IPROTO that changes several tuples lacks the first change.
    HalfStatement,
    /// Replies of IPROTO leave without waiting for what they depend on.
    EarlyPacket,
    /// A request of IPROTO does not wait for those that were set aside, also in its own stream.
    OvertakenStream,
    /// Replies at `quorum` of a node that does not answer for its group leave at `fsync`.
    LaxFollower,
}

impl Planted {
    /// Publishes the appended records and serves those that wait for them. Returns whether there
    /// were any.
    #[inline]
    pub(super) fn publish(self, appender: &mut Appender) -> bool {
        match self {
            Planted::LatePublication => false,
            Planted::SkippedWakeUp => appender.publish(),
            _ => appender.publish_in_between(),
        }
    }

    /// Appends a script's record.
    #[inline]
    pub(super) fn append_of_script(
        self,
        appender: &mut Appender,
        record: Record<'_>,
        now_ms: u64,
    ) -> Lsn {
        if self != Planted::HalfScript {
            return appender.append_record(record, now_ms);
        }
        let changes = record.changes();
        let mut rest = Changes::new(&changes);
        rest.next();
        appender.append_record(Record::Changes(rest.rest()), now_ms)
    }

    /// Appends the record of a request of IPROTO.
    #[inline]
    pub(super) fn append_of_packet(
        self,
        appender: &mut Appender,
        record: Record<'_>,
        now_ms: u64,
    ) -> Lsn {
        if !matches!(self, Planted::SplitCommit | Planted::HalfStatement) {
            return appender.append_record(record, now_ms);
        }
        let changes = record.changes();
        let mut rest = Changes::new(&changes);
        rest.next();
        let rest = rest.rest();
        if self == Planted::HalfStatement && !rest.is_empty() {
            return appender.append_record(Record::Changes(rest), now_ms);
        }
        let first = &changes[..changes.len() - rest.len()];
        let lsn = appender.append_record(Record::Changes(first), now_ms);
        if rest.is_empty() { lsn } else { appender.append_record(Record::Changes(rest), now_ms) }
    }

    /// The log's position as `WAITAOF` sees it.
    #[inline]
    pub(super) fn positions_for_waits(self, positions: Positions) -> Positions {
        match self {
            Planted::EarlyWait => positions.with_durable(positions.written()),
            _ => positions,
        }
    }
}

/// The present turn so far.
#[derive(Debug, Default)]
pub(super) struct Turn {
    pub(super) began_ns: u64,
    /// The last clock read after a batch, monotonic nanoseconds; 0 before.
    pub(super) batch_ended_ns: u64,
    /// Time of expiry and eviction, which does not count against requests.
    pub(super) housekeeping_ns: u64,
    /// Bytes of replies written.
    pub(super) output_bytes: usize,
    /// The connection that was written to last, and bytes of replies to it since another's.
    pub(super) row: (u32, usize),
}

impl Turn {
    /// When its replies were made, about: monotonic nanoseconds.
    #[inline]
    pub(super) fn made_ns(&self) -> u64 {
        self.batch_ended_ns.max(self.began_ns)
    }

    /// Counts a reply of so many bytes to the connection in this slot.
    #[inline]
    pub(super) fn has_written(&mut self, slot: u32, bytes: usize) {
        self.output_bytes += bytes;
        self.row = match self.row {
            (last, before) if last == slot => (slot, before + bytes),
            _ => (slot, bytes),
        };
    }
}

impl Worker {
    /// Whether the turn ends now.
    #[inline]
    pub(super) fn turn_is_spent(&self, now_ns: u64) -> bool {
        let begin_ns = self.turn.began_ns + self.turn.housekeeping_ns;
        now_ns.saturating_sub(begin_ns) >= self.pace.turn_ns
            || self.turn.output_bytes >= self.pace.turn_output_bytes
            || self.turn.row.1 >= self.pace.row_output_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_in_a_row_are_those_to_one_connection() {
        let mut turn = Turn::default();
        for (slot, bytes, in_a_row) in [(3, 100, 100), (3, 50, 150), (0, 10, 10), (3, 1, 1)] {
            turn.has_written(slot, bytes);
            assert_eq!(turn.row, (slot, in_a_row));
        }
        assert_eq!(turn.output_bytes, 161);
    }
}
