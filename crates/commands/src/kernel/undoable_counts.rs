//! What a thread counts within an undoable transaction, to be taken back with it (`undo.rs`).

use crate::kernel::command_id::CommandId;
use crate::kernel::rng::Rng;
use crate::kernel::stats::ThreadStats;
use ladon_resp::Proto;

/// The state of a thread and a session when the transaction became undoable, and what was counted
/// since.
pub(crate) struct Begun {
    /// Commands that ran: how often, and for how many nanoseconds in total.
    pub(crate) counted: Vec<(CommandId, u64, u64)>,
    /// Errors that they were answered with.
    pub(crate) failed: Vec<(CommandId, String)>,
    /// Number of lines for monitoring clients,
    pub(crate) monitored: usize,
    /// and of messages to publish.
    pub(crate) unpublished: usize,
    pub(crate) rng: Rng,
    pub(crate) db: u16,
    pub(crate) proto: Proto,
}

impl Begun {
    /// A command failed.
    pub(crate) fn failed(&mut self, id: CommandId, text: &str) {
        self.failed.push((id, text.to_owned()));
    }

    /// A command ran so many times, for so long altogether.
    pub(crate) fn counted(&mut self, id: CommandId, times: u64, nanoseconds: u64) {
        match self.counted.iter_mut().find(|(other, ..)| *other == id) {
            Some((_, count, sum)) => (*count, *sum) = (*count + times, *sum + nanoseconds),
            None => self.counted.push((id, times, nanoseconds)),
        }
    }

    pub(crate) fn take_back(self, stats: &ThreadStats) {
        for (id, times, nanoseconds) in self.counted {
            stats.command(id).calls.take_back(times);
            stats.command(id).nanoseconds.take_back(nanoseconds);
            stats.commands_processed.take_back(times);
        }
        for (id, text) in self.failed {
            stats.command(id).failed.take_back(1);
            stats.take_back_error(text.as_bytes());
        }
    }
}
