//! The queues in which a thread's connections wait.
//!
//! **Invariant:** a connection is in a queue once if it says so ([`WaitSet`]), and otherwise not at
//! all. So it never waits twice for one thing, and leaves only the queues that it is in.

use crate::connection::Connection;
use std::collections::VecDeque;

/// A queue: its connections wait for this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitsFor {
    /// Their turn: they have requests to run.
    Turn,
    /// The next turn of the thread, when they queue for theirs.
    NextTurn,
    /// The second half of this turn: their output or state has changed.
    Release,
    /// The gate, or the position of a `WAIT` or `WAITAOF`.
    Gate,
    /// The end of a `CLIENT PAUSE` that holds back their next request.
    Pause,
    /// The delivery of messages: their next request publishes, and too many are undelivered.
    Delivery,
    /// The leader's position: their next request reads at the gate `quorum`.
    Leader,
    /// Room in the log, or a commit that has asked writers to wait: one of their requests writes.
    WriteRoom,
    /// The next batch: one of their requests has done a part of its work in this one.
    NextBatch,
}

impl WaitsFor {
    const ALL: [WaitsFor; 9] = [
        WaitsFor::Turn,
        WaitsFor::NextTurn,
        WaitsFor::Release,
        WaitsFor::Gate,
        WaitsFor::Pause,
        WaitsFor::Delivery,
        WaitsFor::Leader,
        WaitsFor::WriteRoom,
        WaitsFor::NextBatch,
    ];

    const fn bit(self) -> u16 {
        1 << self as u8
    }
}

/// The queues that a connection is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WaitSet(u16);

impl WaitSet {
    #[inline]
    pub(crate) fn has(self, queue: WaitsFor) -> bool {
        self.0 & queue.bit() != 0
    }

    /// Whether it is in one of two queues.
    #[inline]
    pub(crate) fn has_either(self, one: WaitsFor, other: WaitsFor) -> bool {
        self.0 & (one.bit() | other.bit()) != 0
    }

    /// Whether its next request is held back.
    #[inline]
    pub(crate) fn holds_back(self) -> bool {
        const HELD: u16 = WaitsFor::Pause.bit() | WaitsFor::Delivery.bit() | WaitsFor::Leader.bit();
        self.0 & HELD != 0
    }

    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Notes that the connection was taken out of a queue. Returns whether it was in it.
    #[inline]
    pub(crate) fn remove(&mut self, queue: WaitsFor) -> bool {
        let had = self.has(queue);
        self.0 &= !queue.bit();
        had
    }

    /// Returns whether it was not in the queue.
    #[inline]
    fn insert(&mut self, queue: WaitsFor) -> bool {
        let had = self.has(queue);
        self.0 |= queue.bit();
        !had
    }
}

/// A thread's queues of connections, by their slots.
#[derive(Default)]
pub(crate) struct Queues([VecDeque<u32>; WaitsFor::ALL.len()]);

impl Queues {
    #[inline]
    pub(crate) fn is_empty(&self, queue: WaitsFor) -> bool {
        self.0[queue as usize].is_empty()
    }

    #[inline]
    pub(crate) fn len(&self, queue: WaitsFor) -> usize {
        self.0[queue as usize].len()
    }

    /// Appends the connection, unless it is in the queue.
    #[inline]
    pub(crate) fn push(&mut self, queue: WaitsFor, connection: &mut Connection) {
        if connection.waits.insert(queue) {
            self.0[queue as usize].push_back(connection.conn.slot);
        }
    }

    /// As `push`, to the front.
    pub(crate) fn push_front(&mut self, queue: WaitsFor, connection: &mut Connection) {
        if connection.waits.insert(queue) {
            self.0[queue as usize].push_front(connection.conn.slot);
        }
    }

    /// The first one.
    #[inline]
    pub(crate) fn first(&self, queue: WaitsFor) -> Option<u32> {
        self.0[queue as usize].front().copied()
    }

    /// Takes out the first one. Its connection has to be told ([`WaitSet::remove`]).
    #[inline]
    pub(crate) fn pop(&mut self, queue: WaitsFor) -> Option<u32> {
        self.0[queue as usize].pop_front()
    }

    /// As `pop`, of all of them.
    #[inline]
    pub(crate) fn take(&mut self, queue: WaitsFor) -> VecDeque<u32> {
        std::mem::take(&mut self.0[queue as usize])
    }

    /// Gives back the memory of what was taken, for those that come.
    #[inline]
    pub(crate) fn reuse(&mut self, queue: WaitsFor, mut taken: VecDeque<u32>) {
        debug_assert!(self.is_empty(queue), "some came meanwhile");
        taken.clear();
        self.0[queue as usize] = taken;
    }

    /// Takes the connection out of a queue, if it is in it.
    pub(crate) fn leave(&mut self, queue: WaitsFor, connection: &mut Connection) {
        if connection.waits.remove(queue) {
            let (list, slot) = (&mut self.0[queue as usize], connection.conn.slot);
            // One that has just queued is at the end.
            if let Some(at) = list.iter().rposition(|&other| other == slot) {
                list.remove(at);
            }
        }
    }

    /// Takes the connection out of every queue. Thousands may close at once, so only those that it
    /// is in are searched.
    pub(crate) fn leave_all(&mut self, connection: &mut Connection) {
        for queue in WaitsFor::ALL {
            self.leave(queue, connection);
        }
    }

    /// Testing only: the last one comes first.
    pub(crate) fn let_last_come_first(&mut self, queue: WaitsFor) {
        self.0[queue as usize].rotate_right(1);
    }

    /// Checks that the connection is in the queues that it says, once in each.
    pub(crate) fn assert_sound(&self, connection: &Connection) {
        let slot = connection.conn.slot;
        for queue in WaitsFor::ALL {
            let times = self.0[queue as usize].iter().filter(|&&other| other == slot).count();
            let expected = usize::from(connection.waits.has(queue));
            assert_eq!(times, expected, "client {slot} waits for {queue:?}");
        }
    }
}
