//! How far the log is, as the gate sees it.

use ladon_log::Log;
use ladon_record::{Gate, Lsn};

/// For each gate, the LSN up to which it has passed, at one moment; and how often what other nodes
/// have had changed then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Positions([Lsn; Gate::ALL.len()], u64);

impl Positions {
    /// The log's present ones.
    pub(crate) fn of(log: &Log) -> Positions {
        let others = log.others_news();
        Positions(Positions::new(log.written(), log.durable(), log.agreed()).0, others)
    }

    pub(crate) fn new(written: Lsn, durable: Lsn, agreed: Lsn) -> Positions {
        // Of the data that is there from the beginning, only other nodes can have more.
        let (written, durable) = (written.max(Lsn::DATA), durable.max(Lsn::DATA));
        Positions([Lsn::MAX, written, written, durable, agreed], 0)
    }

    #[inline]
    pub(crate) fn passed(self, gate: Gate, lsn: Lsn) -> bool {
        self.0[gate as usize] >= lsn
    }

    /// Up to where the log was handed to the operating system.
    #[inline]
    pub(crate) fn written(self) -> Lsn {
        self.0[Gate::Write as usize]
    }

    /// Up to where the log is on the disk.
    #[inline]
    pub(crate) fn durable(self) -> Lsn {
        self.0[Gate::Fsync as usize]
    }

    /// How often what other nodes have had changed.
    #[inline]
    pub(crate) fn others(self) -> u64 {
        self.1
    }

    /// The same, with everything up to `durable` on the disk.
    pub(crate) fn with_durable(mut self, durable: Lsn) -> Positions {
        self.0[Gate::Fsync as usize] = durable;
        self
    }

    /// Whether a gate has passed more than at an earlier moment.
    #[inline]
    pub(crate) fn have_moved_since(self, before: Positions) -> bool {
        self.0.iter().zip(before.0).any(|(now, before)| *now > before)
    }
}
