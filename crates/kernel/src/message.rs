//! What other threads tell an IO thread, and how to reach it.

use crate::long::aside_job::Computed;
use crate::pubsub::published::ForThread;
use crate::tracking::batch::{ForTrackers, Redirected};
use crate::untaken::Counted;
use ladon_engine::{ReadyKey, Waiter};
use ladon_record::Lsn;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A message to an IO thread.
#[derive(Debug)]
pub enum Message {
    /// Bytes for one of its connections, outside the order of replies (`MONITOR`).
    Deliver {
        /// The connection.
        client: u64,
        /// The connection's place in the thread.
        slot: u32,
        /// What to send.
        bytes: Arc<[u8]>,
        /// They may leave when the receiver's gate has passed this.
        depends: Lsn,
    },
    /// A message for the subscribers among its connections.
    Publish(ForThread),
    /// What became invalid, for those of its connections that are tracked.
    Invalidate(ForTrackers),
    /// The same, for one of its connections that a tracked one has chosen to get it.
    Redirect(Redirected),
    /// A connection that waited was served.
    Answer(Answer),
    /// Ends a connection's wait, whose claim is already taken.
    Unblock {
        /// The connection.
        client: u64,
        /// The connection's place in the thread.
        slot: u32,
        /// Which reply to send.
        how: Unserved,
    },
    /// The job of one of its connections' requests is done.
    Computed {
        /// The connection.
        client: u64,
        /// The connection's place in the thread.
        slot: u32,
        /// The job's result.
        computed: Computed,
    },
    /// A value that the program sends one of its connections ahead of an answer.
    Pushed {
        /// The connection.
        client: u64,
        /// The connection's place in the thread.
        slot: u32,
        /// A packet.
        bytes: Vec<u8>,
        /// It may leave when the receiver's gate has passed this.
        depends: Lsn,
        /// It is untaken until it is delivered.
        counted: Counted,
    },
    /// The program has answered a request of one of its connections.
    ProgramAnswered {
        /// The connection.
        client: u64,
        /// The connection's place in the thread.
        slot: u32,
    },
    /// Check for connections that were killed.
    Kill,
    /// A connection of its was killed.
    Evict {
        /// The connection.
        client: u64,
        /// The connection's place in the thread.
        slot: u32,
    },
    /// The pause of clients changed.
    Pause,
    /// Keys came for which clients wait, by a change that no thread made.
    Ready(Vec<ReadyKey>),
    /// The node's place in its cluster is another.
    RoleChanged,
    /// Look what has become of the users of its connections.
    UsersChanged,
}

/// The messages that a thread has not read.
#[derive(Default)]
struct Inbox {
    messages: Vec<Message>,
    /// Published messages and invalidations that were left so far, the ones that were read
    /// included.
    published: u64,
}

/// How to reach an IO thread.
pub struct ThreadHandle {
    inbox: Mutex<Inbox>,
    /// Published messages were left without waking the thread.
    unwoken: AtomicBool,
    wake: Box<dyn Fn() + Send + Sync>,
}

impl ThreadHandle {
    /// A thread that `wake` wakes.
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> ThreadHandle {
        ThreadHandle {
            inbox: Mutex::default(),
            unwoken: AtomicBool::new(false),
            wake: Box::new(wake),
        }
    }

    /// Leaves a message and wakes the thread.
    pub fn send(&self, message: Message) {
        self.leave(message);
        self.wake();
    }

    /// Leaves a message for the thread's next turn, at the next tick at the latest.
    pub fn leave(&self, message: Message) {
        let mut inbox = self.inbox.lock();
        if matches!(message, Message::Publish(_) | Message::Invalidate(_) | Message::Redirect(_)) {
            inbox.published += 1;
            self.unwoken.store(true, Relaxed);
        }
        inbox.messages.push(message);
    }

    /// Number of published messages that were left so far.
    pub(crate) fn published(&self) -> u64 {
        self.inbox.lock().published
    }

    /// Whether a published message may be in the inbox.
    #[inline]
    pub fn has_mail(&self) -> bool {
        self.unwoken.load(Relaxed)
    }

    /// Whether published messages were left since the inbox was read or this was last called.
    pub(crate) fn take_unwoken(&self) -> bool {
        self.unwoken.load(Relaxed) && self.unwoken.swap(false, Relaxed)
    }

    /// Wakes the thread, or keeps it from sleeping.
    pub fn wake(&self) {
        (self.wake)();
    }

    /// Takes all messages.
    pub fn take(&self) -> Vec<Message> {
        let mut inbox = self.inbox.lock();
        self.unwoken.store(false, Relaxed);
        std::mem::take(&mut inbox.messages)
    }
}

/// A served waiter's reply, on its way to the thread that owns the connection.
#[derive(Debug)]
pub struct Answer {
    /// The thread.
    pub thread: usize,
    /// The connection.
    pub client: u64,
    /// The connection's place in its thread.
    pub slot: u32,
    /// The wait that is over.
    pub waiter: Arc<Waiter>,
    /// What to send.
    pub reply: Vec<u8>,
    /// The reply may leave when the gate has passed this LSN.
    pub depends: Lsn,
    /// The LSN of what the command changed, if it changed anything.
    pub wrote: Option<Lsn>,
}

/// How an unserved wait ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unserved {
    /// The deadline has passed, or another client ends the wait.
    Timeout,
    /// Another client makes the wait fail.
    Error,
    /// The client's user may not run the command any more.
    Denied,
    /// The node does not lead its cluster any more, and the command would change data.
    Follows,
}
