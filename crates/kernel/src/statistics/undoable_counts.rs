//! What a thread counts within an undoable transaction, to be taken back with it (`undo.rs`).

use crate::command::command_id::CommandId;
use crate::rng::Rng;
use crate::statistics::stats::{ThreadStats, error_code};
use ladon_resp::Proto;
use smallvec::SmallVec;

/// The state of a thread and a session when the transaction became undoable, and what was counted
/// since.
pub(crate) struct Begun {
    /// Quick commands of the batch that were not counted yet.
    pub(crate) pending: SmallVec<[(CommandId, u64); 4]>,
    pub(crate) counted: Vec<Counted>,
    /// Errors that they were answered with; a script may make millions of the same kind.
    pub(crate) errors: Vec<CountedError>,
    /// Number of lines for monitoring clients,
    pub(crate) monitored: usize,
    /// and of messages to publish.
    pub(crate) unpublished: usize,
    pub(crate) rng: Rng,
    pub(crate) db: u16,
    pub(crate) proto: Proto,
}

/// A command that ran: how often, and for how many nanoseconds in total.
pub(crate) type Counted = (CommandId, u64, u64);

/// An error that was counted so many times.
pub(crate) struct CountedError {
    /// `None` if there is no such command.
    command: Option<CommandId>,
    was_rejected: bool,
    code: String,
    times: u64,
}

impl Begun {
    /// A command failed.
    pub(crate) fn failed(&mut self, id: CommandId, text: &str) {
        self.error(Some(id), false, text);
    }

    /// A command was refused.
    pub(crate) fn rejected(&mut self, id: Option<CommandId>, text: &str) {
        self.error(id, true, text);
    }

    fn error(&mut self, command: Option<CommandId>, was_rejected: bool, text: &str) {
        let code = error_code(text.as_bytes());
        let same = self.errors.iter_mut().find(|error| {
            (error.command, error.was_rejected) == (command, was_rejected) && error.code == code
        });
        match same {
            Some(error) => error.times += 1,
            None => self.errors.push(CountedError { command, was_rejected, code, times: 1 }),
        }
    }

    /// A command ran so many times, for so long altogether.
    pub(crate) fn counted(&mut self, id: CommandId, times: u64, nanoseconds: u64) {
        if times == 0 {
            return;
        }
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
        for CountedError { command, was_rejected, code, times } in self.errors {
            if let Some(id) = command {
                let of_command = stats.command(id);
                let counter = if was_rejected { &of_command.rejected } else { &of_command.failed };
                counter.take_back(times);
            }
            stats.take_back_errors(code, times);
        }
    }
}
