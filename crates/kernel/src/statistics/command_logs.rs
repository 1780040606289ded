//! The logs of commands that took long or were large: what `SLOWLOG` and `COMMANDLOG` answer from.

use parking_lot::Mutex;
use std::collections::VecDeque;

/// As in Redis: the number of arguments kept of a command, and the bytes of each.
const ARGUMENTS_MAX: usize = 32;
const ARGUMENT_BYTES_MAX: usize = 128;

/// A command that was entered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedCommand {
    /// Increases by one with each entry, also when the log is emptied.
    pub id: u64,
    /// When it was entered, Unix seconds.
    pub unix_seconds: u64,
    /// Microseconds that it ran for, or bytes of its request or reply.
    pub amount: u64,
    /// The arguments, long ones and many of them cut short.
    pub args: Vec<Vec<u8>>,
    /// The client's address.
    pub addr: String,
    /// The client's name.
    pub name: Vec<u8>,
}

/// The logs of a node.
#[derive(Debug, Default)]
pub struct CommandLogs {
    /// Commands that took long.
    pub slow: CommandLog,
    /// Commands with a large request.
    pub large_request: CommandLog,
    /// Commands with a large reply.
    pub large_reply: CommandLog,
}

/// The newest commands of all threads that were entered for one reason.
#[derive(Debug, Default)]
pub struct CommandLog(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    next_id: u64,
    /// Newest first.
    newest: VecDeque<LoggedCommand>,
}

impl CommandLog {
    /// Adds a command; `args` are its arguments without secrets. The newest `keep` entries stay.
    pub(crate) fn push<'a>(
        &self,
        (addr, name): (&str, &[u8]),
        args: impl ExactSizeIterator<Item = &'a [u8]>,
        amount: u64,
        unix_seconds: u64,
        keep: usize,
    ) {
        let args = shortened(args);
        let (addr, name) = (addr.to_owned(), name.to_owned());
        let mut entries = self.0.lock();
        let id = entries.next_id;
        entries.next_id += 1;
        entries.newest.push_front(LoggedCommand { id, unix_seconds, amount, args, addr, name });
        entries.newest.truncate(keep);
    }

    /// The newest entries, newest first.
    pub fn newest(&self, count: usize) -> Vec<LoggedCommand> {
        self.0.lock().newest.iter().take(count).cloned().collect()
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.0.lock().newest.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Drops all entries.
    pub fn clear(&self) {
        self.0.lock().newest.clear();
    }
}

fn shortened<'a>(args: impl ExactSizeIterator<Item = &'a [u8]>) -> Vec<Vec<u8>> {
    let count = args.len();
    let kept = if count > ARGUMENTS_MAX { ARGUMENTS_MAX - 1 } else { count };
    let mut shown: Vec<Vec<u8>> = args
        .take(kept)
        .map(|arg| match arg.len().checked_sub(ARGUMENT_BYTES_MAX) {
            None | Some(0) => arg.to_vec(),
            Some(more) => {
                let mut cut = arg[..ARGUMENT_BYTES_MAX].to_vec();
                cut.extend_from_slice(format!("... ({more} more bytes)").as_bytes());
                cut
            }
        })
        .collect();
    if count > kept {
        shown.push(format!("... ({} more arguments)", count - kept).into_bytes());
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_cut_as_redis_cuts_them() {
        let many = vec![&b"x"[..]; 40];
        let shown = shortened(many.into_iter());
        assert_eq!(shown.len(), 32);
        assert_eq!(shown[31], b"... (9 more arguments)");
        assert_eq!(shortened(vec![&b"x"[..]; 32].into_iter()).len(), 32);

        let (long, fits) = (vec![b'a'; 130], vec![b'a'; 128]);
        let shown = shortened([&long[..], &fits[..]].into_iter());
        assert_eq!(shown[0], [&[b'a'; 128][..], b"... (2 more bytes)"].concat());
        assert_eq!(shown[1], fits);
    }
}
