//! What a turn may take before replies leave, sockets are read again, and whoever came meanwhile is
//! served.
//!
//! Connections with requests stand in a line. The first fills a batch, up to the batch's size, and
//! goes to the line's end; when the turn's time or bytes are used up, whoever did not get to run
//! stays in front. So a connection waits for one batch of each other connection at most, and a
//! request that arrives waits for the rest of one turn before it is even read.

use super::Worker;
use crate::connection::Positions;
use ladon_log::Appender;

/// Bounds of a turn; the simulator has smaller ones.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Requests of a batch.
    pub batch_requests: usize,
    /// Nanoseconds after which a turn begins no further request, or no further batch where requests
    /// are quick.
    pub turn_ns: u64,
    /// Bytes of replies, likewise.
    pub turn_output_bytes: usize,
    /// Bytes of requests that wait in memory, above which their connection is not read: about what
    /// one turn can run of short requests.
    pub unread_bytes_max: usize,
    /// Nanoseconds of expiry or eviction in one turn.
    pub housekeeping_ns: u64,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace {
            batch_requests: crate::batch::REQUESTS_MAX,
            // Hundreds of requests: a turn's system calls are still a small part of it.
            turn_ns: 200_000,
            turn_output_bytes: 1 << 20,
            unread_bytes_max: 128 << 10,
            housekeeping_ns: 100_000,
        }
    }
}

/// Where another thread may come in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// Before a request: for a moment.
    Between,
    /// Before a command that may take long: for as long as it takes. Nobody else may have to wait
    /// for it.
    BeforeSlow,
}

/// Testing only: what other threads do meanwhile.
pub type Interrupt = Box<dyn FnMut(Point) + Send>;

/// Testing only: a bug that the simulator must notice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Planted {
    /// None.
    #[default]
    Nothing,
    /// Whoever has requests left stays in front of the line.
    StarvedConnections,
    /// Records are published at the end of the turn only.
    LatePublication,
    /// What is published is neither written nor is the writer told.
    SkippedWakeUp,
    /// Reading is never paused.
    ReadsOn,
    /// A wait for the log ends once what it waits for is written.
    EarlyWait,
    /// A wait for the log asks for no sync.
    UnaskedWait,
}

impl Planted {
    /// Publishes what was appended, and serves whoever waits for it; whether there was anything.
    #[inline]
    pub(super) fn publish(self, appender: &mut Appender) -> bool {
        match self {
            Planted::LatePublication => false,
            Planted::SkippedWakeUp => appender.publish(),
            _ => appender.publish_in_between(),
        }
    }

    /// How far the log has got for those who wait for it (`WAITAOF`).
    #[inline]
    pub(super) fn positions_for_waits(self, positions: Positions) -> Positions {
        match self {
            Planted::EarlyWait => Positions { durable: positions.written, ..positions },
            _ => positions,
        }
    }
}

/// One turn, so far.
#[derive(Debug, Default)]
pub(super) struct Turn {
    pub(super) began_ns: u64,
    /// What expiry and eviction took of it, which requests do not pay for.
    pub(super) housekeeping_ns: u64,
    /// Replies written.
    pub(super) output_bytes: usize,
}

impl Worker {
    /// Whether the turn ends here, given the time.
    #[inline]
    pub(super) fn turn_is_spent(&self, now_ns: u64) -> bool {
        let begin_ns = self.turn.began_ns + self.turn.housekeeping_ns;
        now_ns.saturating_sub(begin_ns) >= self.pace.turn_ns
            || self.turn.output_bytes >= self.pace.turn_output_bytes
    }
}
