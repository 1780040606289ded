//! Reads at the gate `quorum` at a node that follows its cluster's leader: which of them may run.
//!
//! A follower's data is committed, and may be old. So a request waits *before* it runs: the leader is
//! asked how far the group has committed, and the request runs once the data has that much. One
//! question serves all requests that came before it was sent.
//!
//! ```text
//! IO threads                                  the thread of the group
//! take a ticket: the next round's number -->  begins the round: asks the leader
//! (the connection waits)                      <-- position
//! the round is granted: the request runs <--  the data has everything up to there
//! ```
//!
//! **Invariant:** a ticket's round begins after the ticket was taken. It is good within one *epoch*: a
//! time in which this node's data has nothing that is not committed, since it only follows. Whoever has
//! run under a ticket looks at the epoch once more: if it is the same, all that was read is committed.

use crate::message::ThreadHandle;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// Called when the leader is to be asked.
pub type AskLeader = Arc<dyn Fn() + Send + Sync>;

/// What a request that waits was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// The question that serves it.
    round: u64,
    /// The epoch in which it was taken.
    pub epoch: u64,
}

/// What has come of a ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TicketState {
    /// Nothing yet.
    Waits,
    /// The request may run.
    Granted,
    /// The node led meanwhile, or has other data: the leader is to be asked anew.
    Stale,
    /// The leader does not know the question.
    Unknown,
}

/// Why the leader's position did not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// Not within `failover-timeout`.
    Late,
    /// The leader is of a version that does not know the question.
    Unknown,
}

impl Unanswered {
    /// The error in the words of Redis.
    pub fn error(self) -> &'static str {
        match self {
            Unanswered::Late => {
                "NOQUORUM The leader was not heard, or this node did not catch up with it, within \
                 failover-timeout"
            }
            Unanswered::Unknown => {
                "NOQUORUM The leader is of a version that cannot be asked for its position: read at the \
                 leader, or update it"
            }
        }
    }

    /// The same in words of IPROTO.
    pub fn reason(self) -> &'static str {
        match self {
            Unanswered::Late => {
                "the leader was not heard, or it did not catch up with it, within failover-timeout"
            }
            Unanswered::Unknown => {
                "the leader is of a version that cannot be asked for its position"
            }
        }
    }
}

/// What is known of the present request, where it needs to know the leader's position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LeaderRead {
    /// The leader was not asked for it.
    #[default]
    Unasked,
    /// The data has what the leader had committed, and this is the epoch.
    Granted(u64),
    /// The leader was asked in vain.
    Refused(Unanswered),
}

/// A node's reads that need the leader's position.
pub struct LeaderReads {
    epoch: AtomicU64,
    /// The last round whose question was, or is about to be, sent.
    begun: AtomicU64,
    /// The last round that somebody has a ticket of.
    wanted: AtomicU64,
    granted: AtomicU64,
    /// The last round whose question the leader did not know.
    unknown: AtomicU64,
    can_ask: AtomicBool,
    ask: Mutex<Option<AskLeader>>,
    /// For each IO thread, whether it has connections that wait.
    waiting: Box<[AtomicBool]>,
    threads: Arc<[ThreadHandle]>,
}

impl LeaderReads {
    /// That of a node which has nobody to ask.
    pub fn new(threads: Arc<[ThreadHandle]>) -> LeaderReads {
        LeaderReads {
            epoch: AtomicU64::new(0),
            begun: AtomicU64::new(0),
            wanted: AtomicU64::new(0),
            granted: AtomicU64::new(0),
            unknown: AtomicU64::new(0),
            can_ask: AtomicBool::new(false),
            ask: Mutex::default(),
            waiting: threads.iter().map(|_| AtomicBool::new(false)).collect(),
            threads,
        }
    }

    /// From now on, `ask` is called when somebody waits for the leader's position. It may come from
    /// any thread, must be cheap, and must not call back.
    pub fn asks_with(&self, ask: AskLeader) {
        *self.ask.lock() = Some(ask);
        self.can_ask.store(true, SeqCst);
    }

    /// Whether the node is a member of a cluster, and has a leader to ask.
    pub fn can_ask(&self) -> bool {
        self.can_ask.load(SeqCst)
    }

    /// The data begins, or ends, to have what is not committed: no ticket from before is good.
    pub fn begin_epoch(&self) {
        self.epoch.fetch_add(1, SeqCst);
        self.wake();
    }

    /// The present epoch.
    pub fn epoch(&self) -> u64 {
        self.epoch.load(SeqCst)
    }

    /// A ticket for a request of this IO thread that waits from now on.
    pub fn take_ticket(&self, thread: usize) -> Ticket {
        let epoch = self.epoch();
        let round = self.begun.load(SeqCst) + 1;
        self.waiting[thread].store(true, SeqCst);
        if self.wanted.fetch_max(round, SeqCst) < round {
            self.ask_soon();
        }
        Ticket { round, epoch }
    }

    fn ask_soon(&self) {
        if let Some(ask) = &*self.ask.lock() {
            ask();
        }
    }

    /// This IO thread has connections that wait, and is to be woken: to be called before it looks at
    /// their tickets.
    pub fn waits(&self, thread: usize) {
        self.waiting[thread].store(true, SeqCst);
    }

    /// What has come of a ticket.
    pub fn state(&self, ticket: Ticket) -> TicketState {
        let granted = self.granted.load(SeqCst) >= ticket.round;
        if self.epoch() != ticket.epoch {
            return TicketState::Stale;
        }
        match granted {
            true => TicketState::Granted,
            false if self.unknown.load(SeqCst) >= ticket.round => TicketState::Unknown,
            false => TicketState::Waits,
        }
    }

    /// Whether the data has what the leader named in this round.
    pub fn is_granted(&self, round: u64) -> bool {
        self.granted.load(SeqCst) >= round
    }

    /// Begins the next round, if anybody waits for one: its question is to be sent now.
    pub fn begin_round(&self) -> Option<u64> {
        let begun = self.begun.load(SeqCst);
        if self.wanted.load(SeqCst) <= begun {
            return None;
        }
        self.begun.store(begun + 1, SeqCst);
        Some(begun + 1)
    }

    /// The data has what the leader has named in answer to this round's question. The caller sees to
    /// it that the epoch is still that of the question.
    pub fn grant(&self, round: u64) {
        self.granted.fetch_max(round, SeqCst);
        self.wake();
        if self.wanted.load(SeqCst) > round {
            self.ask_soon();
        }
    }

    /// The leader does not know the question.
    pub fn note_unknown(&self, round: u64) {
        self.unknown.fetch_max(round, SeqCst);
        self.wake();
    }

    fn wake(&self) {
        for (waiting, thread) in self.waiting.iter().zip(&*self.threads) {
            if waiting.swap(false, SeqCst) {
                thread.wake();
            }
        }
    }
}

impl LeaderRead {
    /// Whether what a request reads, or has read, is all committed, and not older than what anybody
    /// knew when it came.
    pub fn is_in_force(self, reads: &LeaderReads) -> bool {
        matches!(self, LeaderRead::Granted(epoch) if reads.epoch() == epoch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    fn reads() -> (LeaderReads, Arc<AtomicUsize>) {
        let wakes = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&wakes);
        let wake = move || {
            counted.fetch_add(1, SeqCst);
        };
        (LeaderReads::new(Arc::new([ThreadHandle::new(wake)])), wakes)
    }

    #[test]
    fn a_round_serves_who_came_before_its_question() {
        let (reads, wakes) = reads();
        let early = [reads.take_ticket(0), reads.take_ticket(0)];
        assert_eq!(reads.begin_round(), Some(1));
        assert_eq!(reads.begin_round(), None, "nobody waits for another one");
        let late = reads.take_ticket(0);
        reads.grant(1);
        assert_eq!(wakes.load(SeqCst), 1);
        assert_eq!(early.map(|ticket| reads.state(ticket)), [TicketState::Granted; 2]);
        assert_eq!(reads.state(late), TicketState::Waits);
        reads.grant(1);
        assert_eq!(wakes.load(SeqCst), 1, "nobody said that he waits");
        assert_eq!(reads.begin_round(), Some(2));
        reads.note_unknown(2);
        assert_eq!(reads.state(late), TicketState::Unknown);
    }

    #[test]
    fn a_ticket_is_good_for_its_epoch() {
        let (reads, _) = reads();
        let ticket = reads.take_ticket(0);
        let granted = LeaderRead::Granted(ticket.epoch);
        assert_eq!(reads.begin_round(), Some(1));
        reads.grant(1);
        assert!(granted.is_in_force(&reads));
        reads.begin_epoch();
        assert_eq!(reads.state(ticket), TicketState::Stale);
        assert!(!granted.is_in_force(&reads));
        assert!(!LeaderRead::Unasked.is_in_force(&reads));
    }
}
