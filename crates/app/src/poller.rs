//! The sockets of a program, and which fibers wait for them.

use ladon_fibers::{FiberId, Scheduler};
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

/// The token of who wakes the loop from other threads; sockets have their numbers.
pub(crate) const WAKER: Token = Token(usize::MAX);

const EVENTS_A_TURN: usize = 1024;

/// The fibers that wait for a socket: to read, to write.
type Waiting = [Option<FiberId>; 2];

/// The sockets, and the loop's sleep.
pub(crate) struct Poller {
    poll: RefCell<Poll>,
    events: RefCell<Events>,
    waiting: RefCell<HashMap<RawFd, Waiting>>,
    /// Those that are no sockets of the program, and are known while somebody waits for them.
    borrowed: RefCell<HashSet<RawFd>>,
}

impl Poller {
    pub(crate) fn new(poll: Poll) -> Poller {
        let events = RefCell::new(Events::with_capacity(EVENTS_A_TURN));
        Poller {
            poll: RefCell::new(poll),
            events,
            waiting: RefCell::default(),
            borrowed: RefCell::default(),
        }
    }

    /// Adds a socket.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn add(&self, fd: RawFd) -> io::Result<()> {
        let both = Interest::READABLE | Interest::WRITABLE;
        let token = Token(usize::try_from(fd).map_err(io::Error::other)?);
        self.poll.borrow().registry().register(&mut SourceFd(&fd), token, both)?;
        self.waiting.borrow_mut().insert(fd, [None; 2]);
        Ok(())
    }

    /// Whether it is one of its sockets.
    pub(crate) fn has(&self, fd: RawFd) -> bool {
        self.waiting.borrow().contains_key(&fd)
    }

    /// Forgets a socket. Returns who waited for it, if it was there.
    pub(crate) fn remove(&self, fd: RawFd) -> Option<Waiting> {
        let waiting = self.waiting.borrow_mut().remove(&fd)?;
        // One that the system has forgotten is gone as well.
        let _ = self.poll.borrow().registry().deregister(&mut SourceFd(&fd));
        Some(waiting)
    }

    /// A fiber waits for a socket. Returns whether no other one did.
    pub(crate) fn waits(&self, fd: RawFd, writes: bool, fiber: FiberId) -> bool {
        match self.waiting.borrow_mut().get_mut(&fd) {
            Some(waiting) if waiting[usize::from(writes)].is_none() => {
                waiting[usize::from(writes)] = Some(fiber);
                true
            }
            _ => false,
        }
    }

    pub(crate) fn waits_no_more(&self, fd: RawFd, writes: bool, fiber: FiberId) {
        if let Some(waiting) = self.waiting.borrow_mut().get_mut(&fd) {
            waiting[usize::from(writes)].take_if(|of| *of == fiber);
        }
    }

    /// A fiber waits for any descriptor, to read, to write or both. Returns whether no other one
    /// did.
    ///
    /// # Errors
    /// The system's: of a file, which is always ready, `EPERM`.
    pub(crate) fn waits_for_any(
        &self,
        fd: RawFd,
        ways: [bool; 2],
        fiber: FiberId,
    ) -> io::Result<bool> {
        if !self.has(fd) {
            self.add(fd)?;
            self.borrowed.borrow_mut().insert(fd);
        }
        let mut waiting = self.waiting.borrow_mut();
        let of = waiting.entry(fd).or_default();
        let is_free = ways.iter().zip(of.iter()).all(|(asked, of)| !asked || of.is_none());
        if is_free {
            ways.iter().zip(of).filter(|it| *it.0).for_each(|(_, of)| *of = Some(fiber));
        }
        Ok(is_free)
    }

    /// The fiber waits no more; the descriptor is forgotten if nobody else does.
    pub(crate) fn waits_for_none(&self, fd: RawFd, fiber: FiberId) {
        self.waits_no_more(fd, false, fiber);
        self.waits_no_more(fd, true, fiber);
        let is_left = self.waiting.borrow().get(&fd) == Some(&[None; 2]);
        if is_left && self.borrowed.borrow_mut().remove(&fd) {
            self.remove(fd);
        }
    }

    /// Sleeps until a socket is ready, somebody wakes the loop, or the time is over; wakes the
    /// fibers whose sockets are ready.
    pub(crate) fn sleep(&self, most: Duration, scheduler: &Scheduler) {
        let mut events = self.events.borrow_mut();
        // An interrupted sleep is over.
        let _ = self.poll.borrow_mut().poll(&mut events, Some(most));
        for event in events.iter().filter(|event| event.token() != WAKER) {
            let fd = event.token().0 as RawFd;
            let Some([reads, writes]) = self.waiting.borrow().get(&fd).copied() else { continue };
            let is_over = event.is_error() || event.is_read_closed() || event.is_write_closed();
            let woken = [
                reads.filter(|_| is_over || event.is_readable()),
                writes.filter(|_| is_over || event.is_writable()),
            ];
            for fiber in woken.into_iter().flatten() {
                scheduler.wake(fiber);
            }
        }
    }
}
