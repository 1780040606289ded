//! What a thread notes of its batch's time, which `timing.rs` shares out.

use crate::command::command_id::CommandId;

/// A thread's time accounting.
#[derive(Debug, Default)]
pub(crate) struct Timing {
    /// The batch's last clock read, monotonic nanoseconds; `None` outside a batch.
    pub(crate) since_ns: Option<u64>,
    /// When the batch began, and how many commands had run then.
    pub(crate) began: (u64, u64),
    /// Every command is measured.
    pub(crate) exact: bool,
    /// Quick commands since then, and how often each ran.
    pub(crate) pending: Vec<(CommandId, u64)>,
    /// How many of them scripts ran.
    pub(crate) by_scripts: u32,
    /// When the script that runs began, if it turned out not to be quick.
    pub(crate) script_began_ns: Option<u64>,
    /// Requests of another protocol ran since the batch began.
    pub(crate) ran_other: bool,
}

impl Timing {
    /// A quick command has run.
    #[inline]
    pub(crate) fn count(&mut self, id: CommandId) {
        match self.pending.last_mut() {
            Some((last, count)) if *last == id => *count += 1,
            _ => self.count_another(id),
        }
    }

    /// A different command than the previous one. If two commands alternate (LPUSH and RPOP), each
    /// is settled only once.
    fn count_another(&mut self, id: CommandId) {
        match self.pending.iter_mut().find(|(other, _)| *other == id) {
            Some((_, count)) => *count += 1,
            None => self.pending.push((id, 1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_take_turns_are_counted_together() {
        let mut timing = Timing::default();
        for number in [3, 5, 3, 3, 5, 7, 3] {
            timing.count(CommandId(number));
        }
        assert_eq!(timing.pending, [(CommandId(3), 4), (CommandId(5), 2), (CommandId(7), 1)]);
    }
}
