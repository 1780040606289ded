//! Connections whose handshake is not done: what they have sent, what they wait for, and the bounds
//! of both.

use crate::handshake::Handshake;
use crate::sources::{Source, Sources};
use ladon_net::{CloseReason, ConnId, ConnInfo, Outgoing, Sink};
use ladon_platform::{Clock as _, Seldom, SystemClock, seldom};
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// How long a peer may take to begin its handshake, and then to end it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Connections whose handshake is not done, at most. Each has a descriptor.
pub const HALF_OPEN_MAX: usize = 1024;

/// How long a peer may take to send something, and to go on, before it can be closed for others. A
/// crowd of clients on a slow machine needs it; sources that look like a storm do not get it.
const GRACE: Duration = Duration::from_secs(2);

/// Connections of few that are passed over in a search for one of many, so that it ends soon.
const LOOKED_AT_MAX: usize = 32;

/// Bytes of a peer that may wait for the thread; a read of the backend and more than a handshake
/// needs.
const WAITING_BYTES_MAX: usize = 96 << 10;

/// Bytes of all peers together. When they are more, a peer may have no more than its share: the
/// next one that has is closed.
const HELD_BYTES_MAX: usize = 16 << 20;

/// A record, in which nearly all handshakes' messages have room.
const SHARE_BYTES: usize = (16 << 10) + 5;

/// A connection whose handshake is not done.
pub(crate) struct HalfOpen {
    pub(crate) conn: ConnId,
    pub(crate) info: ConnInfo,
    pub(crate) source: Source,
    /// Bytes that the handshake has not seen.
    pub(crate) bytes: Vec<u8>,
    /// Once it has begun.
    pub(crate) handshake: Option<Box<Handshake>>,
    /// It is in a queue.
    pub(crate) is_queued: bool,
    /// It is in [`Table::answered`].
    pub(crate) is_answered: bool,
    /// What has to be sent after what is on its way.
    pub(crate) out: Vec<u8>,
    pub(crate) is_sending: bool,
    pub(crate) ends: Option<End>,
    pub(crate) deadline: Instant,
    /// Its part of [`Table::held_bytes`].
    held_bytes: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Established,
    Failed,
}

/// Connections by the slots of the backend, and the queues that they are in.
#[derive(Default)]
pub(crate) struct Table {
    pub(crate) by_slot: Vec<Option<Box<HalfOpen>>>,
    pub(crate) count: usize,
    /// Where they come from, and those that have sent something for the first time.
    pub(crate) sources: Sources,
    /// Have answered.
    pub(crate) to_go_on: VecDeque<ConnId>,
    /// What they were sent has left.
    pub(crate) sent: Vec<ConnId>,
    /// Deadlines, in their order, of those that have sent nothing, and of the others. Connections
    /// that are gone stay until their deadline.
    pub(crate) silent: VecDeque<(Instant, ConnId)>,
    pub(crate) begun: VecDeque<(Instant, ConnId)>,
    /// When those of the others were answered that had sent nothing after it then, each once.
    pub(crate) answered: VecDeque<(Instant, ConnId)>,
    pub(crate) accepted: Vec<(OwnedFd, ConnInfo)>,
    /// Bytes of all peers that wait for more.
    held_bytes: usize,
}

impl Table {
    pub(crate) fn get(&mut self, conn: ConnId) -> Option<&mut HalfOpen> {
        let half_open = self.by_slot.get_mut(conn.slot as usize)?.as_deref_mut()?;
        // The slot may have another user by now.
        if half_open.conn == conn { Some(half_open) } else { None }
    }

    pub(crate) fn insert(&mut self, conn: ConnId, info: ConnInfo) {
        let slot = conn.slot as usize;
        if self.by_slot.len() <= slot {
            self.by_slot.resize_with(slot + 1, || None);
        }
        let deadline = Instant::now() + PATIENCE;
        let source = Source::of(&info.peer);
        self.sources.insert(source);
        self.by_slot[slot] = Some(Box::new(HalfOpen {
            conn,
            info,
            source,
            bytes: Vec::new(),
            handshake: None,
            is_queued: false,
            is_answered: false,
            out: Vec::new(),
            is_sending: false,
            ends: None,
            deadline,
            held_bytes: 0,
        }));
        self.count += 1;
        self.silent.push_back((deadline, conn));
    }

    pub(crate) fn remove(&mut self, conn: ConnId) -> Option<Box<HalfOpen>> {
        let removed = self.by_slot.get_mut(conn.slot as usize)?.take();
        if let Some(removed) = &removed {
            self.count -= 1;
            self.sources.remove(removed.source);
            self.held_bytes -= removed.held_bytes;
        }
        removed
    }

    /// How many wait for the thread.
    fn queued(&self) -> usize {
        self.sources.to_begin() + self.to_go_on.len()
    }

    /// How many may be let in without harm to those who only need more time.
    pub(crate) fn room(&mut self, now: Instant) -> usize {
        if self.sources.is_a_storm(HALF_OPEN_MAX) && self.queued() < 2 * HALF_OPEN_MAX {
            // Those behind the storm have to be reached. The storm makes room itself.
            return HALF_OPEN_MAX;
        }
        while let Some((at, conn)) = self.silent.front().copied()
            && self.get(conn).is_none_or(|half_open| half_open.deadline != at)
        {
            self.silent.pop_front();
        }
        while let Some((_, conn)) = self.answered.front().copied()
            && self.get(conn).is_none_or(|half_open| half_open.is_queued)
        {
            self.leave_answered();
        }
        let silent = self.silent.partition_point(|(at, _)| *at + GRACE <= now + PATIENCE);
        let answered = self.answered.partition_point(|(at, _)| *at + GRACE <= now);
        // Those that hung up are still in the queues.
        let taken = self.count.max(self.queued());
        HALF_OPEN_MAX.saturating_sub(taken) + silent + answered
    }

    fn leave_answered(&mut self) {
        if let Some((_, conn)) = self.answered.pop_front()
            && let Some(half_open) = self.get(conn)
        {
            half_open.is_answered = false;
        }
    }

    /// The one to close for another of this source, if there is one: the oldest that has sent
    /// nothing for a while, else of those that were answered and do not go on; of these first one
    /// whose source has more than others have. Else, if the newcomer's has not, one that waits and
    /// whose source has the most.
    pub(crate) fn one_to_close(&mut self, newcomer: Source, now: Instant) -> Option<ConnId> {
        let mut queue = std::mem::take(&mut self.silent);
        let of = |(at, conn): &(Instant, ConnId)| (*conn, *at - PATIENCE + GRACE);
        let found = self.first_of_many(&mut queue, now, of, |half_open, ends| {
            half_open.deadline == ends - GRACE + PATIENCE
        });
        self.silent = queue;
        if found.is_some() {
            return found;
        }
        let mut queue = std::mem::take(&mut self.answered);
        let of = |(at, conn): &(Instant, ConnId)| (*conn, *at + GRACE);
        let found = self.first_of_many(&mut queue, now, of, |half_open, _| {
            half_open.is_answered &= !half_open.is_queued;
            half_open.is_answered
        });
        self.answered = queue;
        if found.is_some() || self.sources.has_more_than_others(newcomer, HALF_OPEN_MAX) {
            return found;
        }
        self.sources.last_of_most(HALF_OPEN_MAX)
    }

    /// Takes out of a queue the first whose grace is over and whose source has more than others
    /// have, or else the first whose grace is over. A source that looks like a storm has no grace.
    /// `of` says an entry's connection and the grace's end, `is_current` whether it is still true.
    fn first_of_many(
        &mut self,
        queue: &mut VecDeque<(Instant, ConnId)>,
        now: Instant,
        of: impl Fn(&(Instant, ConnId)) -> (ConnId, Instant),
        is_current: impl Fn(&mut HalfOpen, Instant) -> bool,
    ) -> Option<ConnId> {
        let (mut left, mut found) = (Vec::new(), None);
        while left.len() < LOOKED_AT_MAX
            && let Some(entry) = queue.pop_front()
        {
            let (conn, grace_ends) = of(&entry);
            let Some(half_open) = self.get(conn) else { continue };
            if !is_current(half_open, grace_ends) {
                continue;
            }
            let source = half_open.source;
            if self.sources.has_more_than_others(source, HALF_OPEN_MAX)
                && (grace_ends <= now || self.sources.is_suspect(source))
            {
                found = Some(conn);
                break;
            }
            left.push(entry);
        }
        let is_over = |entry: &(Instant, ConnId)| of(entry).1 <= now;
        if found.is_none() && left.first().is_some_and(is_over) {
            found = Some(of(&left.remove(0)).0);
        }
        for entry in left.into_iter().rev() {
            queue.push_front(entry);
        }
        if let Some(half_open) = found.and_then(|conn| self.get(conn)) {
            half_open.is_answered = false;
        }
        found
    }

    /// Counts what a connection's peer has sent and nobody could use yet. Returns whether that is
    /// too much while others hold as much as they do.
    pub(crate) fn recount(&mut self, conn: ConnId) -> bool {
        let Some(half_open) = self.get(conn) else { return false };
        let in_handshake = half_open.handshake.as_ref().map_or(0, |it| it.held_bytes());
        let bytes = half_open.bytes.len() + in_handshake;
        let before = std::mem::replace(&mut half_open.held_bytes, bytes);
        self.held_bytes = self.held_bytes - before + bytes;
        bytes > SHARE_BYTES && self.held_bytes > HELD_BYTES_MAX
    }

    /// Ends a connection that sends more than it may.
    fn refuse(&mut self, conn: ConnId) {
        if let Some(half_open) = self.get(conn) {
            tell_of_refusal(&half_open.info, "it sends more than a handshake needs");
            half_open.ends = Some(End::Failed);
            half_open.bytes = Vec::new();
            half_open.handshake = None;
            let source = half_open.source;
            self.sources.given_up(source);
            self.recount(conn);
            self.sent.push(conn);
        }
    }
}

impl Sink for Table {
    fn incoming(&mut self, socket: OwnedFd, info: ConnInfo) {
        self.accepted.push((socket, info));
    }

    fn received(&mut self, conn: ConnId, bytes: &[u8]) {
        let Some(half_open) = self.get(conn) else { return };
        if half_open.ends == Some(End::Failed) {
            return;
        }
        if half_open.bytes.len() + bytes.len() > WAITING_BYTES_MAX {
            return self.refuse(conn);
        }
        let begins = half_open.handshake.is_none();
        let is_first = begins && half_open.bytes.is_empty() && !half_open.is_queued;
        half_open.bytes.extend_from_slice(bytes);
        if self.recount(conn) {
            return self.refuse(conn);
        }
        let Some(half_open) = self.get(conn) else { return };
        if half_open.ends.is_some() {
            return;
        }
        if std::mem::replace(&mut half_open.is_queued, true) {
            return;
        }
        let source = half_open.source;
        if is_first {
            let deadline = Instant::now() + PATIENCE;
            half_open.deadline = deadline;
            self.begun.push_back((deadline, conn));
        }
        match begins {
            true => self.sources.push(source, conn),
            false => self.to_go_on.push_back(conn),
        }
    }

    fn sent(&mut self, conn: ConnId, _buffer: Outgoing) {
        if let Some(half_open) = self.get(conn) {
            half_open.is_sending = false;
            self.sent.push(conn);
        }
    }

    fn closed(&mut self, conn: ConnId, _reason: CloseReason) {
        self.remove(conn);
    }
}

/// Says in the server's log why a client was not let in.
#[cold]
pub(crate) fn tell_of_refusal(info: &ConnInfo, why: &str) {
    /// Thousands may be refused for the same.
    static SELDOM: Seldom = Seldom::new(20, Duration::from_secs(10));
    if let Some(left_out) = SELDOM.may_say(SystemClock.unix_ms()) {
        tracing::warn!(
            "closing the TLS connection of {} before its handshake is done: {why}{}",
            info.peer,
            seldom::left_out(left_out)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ladon_net::PeerAddr;

    fn info() -> ConnInfo {
        info_of(1)
    }

    fn info_of(host: u8) -> ConnInfo {
        let address = || PeerAddr::Tcp(([127, 0, 0, host], 1).into());
        ConnInfo { peer: address(), local: address(), fd: 0, listener: 0 }
    }

    #[test]
    fn who_has_more_than_others_makes_room_first() {
        let mut table = Table::default();
        let conn = |slot: u32| ConnId { slot, generation: 0 };
        table.insert(conn(0), info_of(2));
        for slot in 1..HALF_OPEN_MAX as u32 {
            table.insert(conn(slot), info_of(1));
        }
        let (few, many) = (Source::of(&info_of(2).peer), Source::of(&info_of(1).peer));
        let now = Instant::now();
        assert_eq!(
            (table.room(now), table.one_to_close(few, now)),
            (0, None),
            "all have just come"
        );
        let later = now + GRACE;
        assert_eq!(table.room(later), HALF_OPEN_MAX);
        for expected in 1..4 {
            assert_eq!(table.one_to_close(many, later), Some(conn(expected)));
            table.remove(conn(expected));
        }
        // All that are left wait for the thread but the one that has few.
        for slot in 4..HALF_OPEN_MAX as u32 {
            table.received(conn(slot), b"hello");
        }
        assert_eq!(table.one_to_close(few, now), Some(conn(HALF_OPEN_MAX as u32 - 1)));
        assert_eq!(table.one_to_close(many, now), None, "it may not take from those with few");
        assert_eq!(table.one_to_close(many, later), Some(conn(0)));
    }

    #[test]
    fn who_does_nothing_makes_room_first() {
        let mut table = Table::default();
        let ids: Vec<ConnId> = (0..4).map(|slot| ConnId { slot, generation: 0 }).collect();
        for &conn in &ids {
            table.insert(conn, info());
        }
        // 0 waits for the thread, 1 was answered, 2 as well and has gone on, 3 is silent.
        for &conn in &ids[..3] {
            table.received(conn, b"hello");
        }
        let now = Instant::now();
        for &conn in &ids[1..3] {
            let half_open = table.get(conn).unwrap();
            (half_open.is_queued, half_open.is_answered) = (false, true);
            table.answered.push_back((now, conn));
        }
        table.received(ids[2], b"more");
        let source = Source::of(&info().peer);
        let mut order = Vec::new();
        while let Some(conn) = table.one_to_close(source, now + GRACE) {
            table.remove(conn);
            order.push(conn.slot);
        }
        assert_eq!(order, [3, 1], "those that wait for the thread stay");
    }

    #[test]
    fn peers_that_never_end_a_message_hold_a_bounded_sum() {
        let mut table = Table::default();
        for slot in 0..1024 {
            let conn = ConnId { slot, generation: 0 };
            table.insert(conn, info());
            for _ in 0..3 {
                table.received(conn, &[0; 16 << 10]);
            }
        }
        assert!(table.held_bytes <= HELD_BYTES_MAX + 1024 * SHARE_BYTES, "{}", table.held_bytes);
        let refused = table.by_slot.iter().flatten().filter(|it| it.ends == Some(End::Failed));
        assert!(refused.count() > 512, "those that came when there was no room");
        // Whoever is gone gives its share back.
        for slot in 0..1024 {
            table.remove(ConnId { slot, generation: 0 });
        }
        assert_eq!((table.held_bytes, table.count), (0, 0));
    }
}
