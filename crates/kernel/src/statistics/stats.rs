//! Counters of one IO thread, which only that thread writes and any thread's `INFO` reads.

use crate::command::command_id::CommandId;
use crate::statistics::counter::Counter;
use crate::statistics::histogram::{Durations, Histogram};
use crate::statistics::item_counts::ItemCounts;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// The figures of one command in `INFO commandstats`.
#[derive(Debug, Default)]
pub struct CommandStats {
    /// Times it ran.
    pub calls: Counter,
    /// Nanoseconds that it took.
    pub nanoseconds: Counter,
    /// Times it was refused before it ran.
    pub rejected: Counter,
    /// Times it ran and failed.
    pub failed: Counter,
    /// How long it took; made when it first runs.
    pub latency: OnceLock<Histogram>,
}

/// Counters of one IO thread.
#[derive(Debug, Default)]
#[allow(missing_docs, reason = "INFO's names")]
pub struct ThreadStats {
    pub commands_processed: Counter,
    pub connections_received: Counter,
    /// Connections that were closed because they had been idle for `timeout`.
    pub idle_kicks: Counter,
    pub keyspace_hits: Counter,
    pub keyspace_misses: Counter,
    pub expired_keys: Counter,
    pub evicted_keys: Counter,
    pub expired_subkeys: Counter,
    pub net_input_bytes: Counter,
    pub net_output_bytes: Counter,
    pub reads_processed: Counter,
    pub writes_processed: Counter,
    pub error_replies: Counter,
    pub dirty: Counter,
    /// Turns of the thread's loop.
    pub eventloop_cycles: Counter,
    /// Duration of the turns, without the time spent waiting.
    pub eventloop_nanoseconds: Counter,
    pub eventloop_nanoseconds_max: Counter,
    /// Most commands in one batch.
    pub eventloop_commands_max: Counter,
    /// How long replies waited for the gate, those that had to wait.
    pub gate_waits: Durations,
    /// Duration of the commands in them.
    pub commands_nanoseconds: Counter,
    /// What memcached's protocols count.
    pub items: ItemCounts,
    per_command: Box<[CommandStats]>,
    /// Error replies by code.
    pub errors: Mutex<BTreeMap<String, u64>>,
}

impl ThreadStats {
    /// All zero, with counters for so many commands.
    pub(crate) fn new(commands: usize) -> ThreadStats {
        let per_command = (0..commands).map(|_| CommandStats::default()).collect();
        ThreadStats { per_command, ..ThreadStats::default() }
    }

    /// Counts a turn of the thread's loop that took this long, waiting not included.
    #[inline]
    pub fn count_cycle(&self, nanoseconds: u64) {
        self.eventloop_cycles.add(1);
        self.eventloop_nanoseconds.add(nanoseconds);
        self.eventloop_nanoseconds_max.raise(nanoseconds);
    }

    /// A command's counters.
    #[inline]
    pub fn command(&self, id: CommandId) -> &CommandStats {
        &self.per_command[usize::from(id.0)]
    }

    /// Counts an error reply by its code: the first word of its first line.
    pub fn count_error(&self, text: &[u8]) {
        self.error_replies.add(1);
        let mut errors = self.errors.lock();
        // Bounded, because a script can make up error codes; Redis 8 has as many.
        const CODES_MAX: usize = 128;
        let code = error_code(text);
        let full = errors.len() >= CODES_MAX && !errors.contains_key(&code);
        *errors.entry(if full { OVERFLOW.to_owned() } else { code }).or_default() += 1;
    }

    /// Takes back that error replies with this code were counted.
    pub(crate) fn take_back_errors(&self, mut code: String, times: u64) {
        self.error_replies.take_back(times);
        let mut errors = self.errors.lock();
        if !errors.contains_key(&code) {
            code = OVERFLOW.to_owned();
        }
        if let Some(count) = errors.get_mut(&code) {
            *count = count.saturating_sub(times);
            if *count == 0 {
                errors.remove(&code);
            }
        }
    }

    /// Back to zero (`CONFIG RESETSTAT`).
    pub fn reset(&self) {
        for counter in [
            &self.commands_processed,
            &self.connections_received,
            &self.idle_kicks,
            &self.keyspace_hits,
            &self.keyspace_misses,
            &self.expired_keys,
            &self.evicted_keys,
            &self.expired_subkeys,
            &self.net_input_bytes,
            &self.net_output_bytes,
            &self.reads_processed,
            &self.writes_processed,
            &self.error_replies,
            &self.eventloop_cycles,
            &self.eventloop_nanoseconds,
            &self.eventloop_nanoseconds_max,
            &self.eventloop_commands_max,
            &self.commands_nanoseconds,
        ] {
            counter.reset();
        }
        self.gate_waits.reset();
        self.items.reset();
        for stats in &self.per_command {
            stats.calls.reset();
            stats.nanoseconds.reset();
            stats.rejected.reset();
            stats.failed.reset();
            if let Some(latency) = stats.latency.get() {
                latency.reset();
            }
        }
        self.errors.lock().clear();
    }
}

/// What counts the codes for which there is no room, as in Redis 8.
const OVERFLOW: &str = "ERRORSTATS_OVERFLOW";

/// The code of an error reply, as Redis finds it: the first word, if it is short and not all of the
/// text. What would end a field's name or line in `INFO` is replaced.
pub(crate) fn error_code(text: &[u8]) -> String {
    /// With the minus before it, Redis looks at 32 bytes.
    const LOOKED_AT: usize = 31;
    let head = &text[..text.len().min(LOOKED_AT)];
    let Some(end) = head.iter().position(|&byte| byte == b' ') else { return "ERR".to_owned() };
    let replaced =
        |letter: char| if "#:".contains(letter) || letter.is_control() { '_' } else { letter };
    String::from_utf8_lossy(&head[..end]).chars().map(replaced).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_code_is_one_word_of_one_line() {
        for (text, code) in [
            ("WRONGTYPE Operation", "WRONGTYPE"),
            ("X", "ERR"),
            ("", "ERR"),
            ("X\r\nrole:slave x", "X__role_slave"),
            ("A:B x", "A_B"),
            ("My#E:r\t foo", "My_E_r_"),
            ("@user x", "@user"),
            ("-DASH x", "-DASH"),
            ("A_WORD_OF_THIRTY_LETTERS_HERE_ x", "A_WORD_OF_THIRTY_LETTERS_HERE_"),
            ("A_WORD_OF_THIRTY_ONE_LETTERS_IS x", "ERR"),
        ] {
            assert_eq!(error_code(text.as_bytes()), code, "{text}");
        }
    }

    #[test]
    fn codes_that_scripts_make_up_are_bounded() {
        let stats = ThreadStats::new(0);
        for number in 0..1000 {
            stats.count_error(format!("E{number} x").as_bytes());
        }
        stats.count_error(b"E5 x");
        let errors = stats.errors.lock();
        assert_eq!((errors.len(), errors["E5"], errors[OVERFLOW]), (129, 2, 872));
    }
}
