//! The direct way of a reply to a waiting client: sent by the thread that serves it, without the
//! thread that owns the connection.
//!
//! ```text
//!               open                take                    done
//!   CLOSED ─────────────▶ OPEN ──────────────▶ TAKEN ──────────────────▶ DONE
//!      ▲                   │                     │                         ▲
//!      └────── close ──────┘                     └─ close ─▶ AWAITED ─done─┘ wakes the owner
//! ```
//!
//! **Invariant:** while the way is not closed, the owner sends nothing on the connection. So the
//! owner opens it only when nothing is left to send, and closes it before it sends anything else; a
//! reply that another thread is then sending comes first. That thread notifies the owner by a
//! message that need not wake it: the client has its reply, and its next request wakes the owner
//! anyway.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering::AcqRel, Ordering::Acquire};

const CLOSED: u8 = 0;
const OPEN: u8 = 1;
const TAKEN: u8 = 2;
const AWAITED: u8 = 3;
const DONE: u8 = 4;

/// Passes bytes to the kernel without blocking; returns how many it took.
pub type SendNow = Box<dyn Fn(&[u8]) -> usize + Send + Sync>;

/// The direct way to one client, for one wait.
#[derive(Default)]
pub struct DirectReply {
    state: AtomicU8,
    send: OnceLock<SendNow>,
}

impl DirectReply {
    /// Allows the serving thread to send the reply. Called by the connection's thread when there is
    /// nothing to send.
    pub fn open(&self, send: impl FnOnce() -> Option<SendNow>) {
        if self.state.load(Acquire) != CLOSED {
            return;
        }
        if self.send.get().is_none() {
            let Some(send) = send() else { return };
            // Only one thread opens it.
            let _ = self.send.set(send);
        }
        let _ = self.state.compare_exchange(CLOSED, OPEN, AcqRel, Acquire);
    }

    /// Called by the connection's thread before it sends, or when it has more to do after the wait.
    /// Returns false if another thread is sending the reply. The message about that is in the
    /// thread's inbox or will arrive with a wake-up; nothing may be sent before that.
    pub fn close(&self) -> bool {
        if self.state.compare_exchange(OPEN, CLOSED, AcqRel, Acquire).is_ok() {
            return true;
        }
        let _ = self.state.compare_exchange(TAKEN, AWAITED, AcqRel, Acquire);
        self.state.load(Acquire) == CLOSED
    }

    /// Called by the serving thread: if the way is open, the caller takes it to send the reply.
    pub fn take(&self) -> Option<&SendNow> {
        let taken = self.state.compare_exchange(OPEN, TAKEN, AcqRel, Acquire).is_ok();
        if taken { self.send.get() } else { None }
    }

    /// Whether a reply, or a part of it, was sent directly; later output follows it.
    pub fn was_taken(&self) -> bool {
        matches!(self.state.load(Acquire), TAKEN | AWAITED | DONE)
    }

    /// Called by the sender once the message is in the owner's inbox. Returns whether to wake the
    /// owner.
    pub fn done(&self) -> bool {
        let before = self.state.swap(DONE, AcqRel);
        assert!(matches!(before, TAKEN | AWAITED), "done in state {before}, not by who took it");
        before == AWAITED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open() -> DirectReply {
        let way = DirectReply::default();
        way.open(|| Some(Box::new(<[u8]>::len)));
        way
    }

    #[test]
    fn closed_it_cannot_be_taken() {
        let way = DirectReply::default();
        assert!(way.take().is_none() && way.close());
        way.open(|| None);
        assert!(way.take().is_none() && way.close());
        let way = open();
        assert!(way.close() && way.take().is_none());
        way.open(|| unreachable!("it knows how to send"));
        assert_eq!(way.take().expect("open again")(b"abc"), 3);
    }

    #[test]
    fn who_did_not_ask_is_not_woken() {
        let way = open();
        assert!(!way.was_taken());
        assert!(way.take().is_some() && way.take().is_none());
        assert!(way.was_taken() && !way.done() && way.was_taken());
        assert!(!way.close(), "the message is in the inbox");
        way.open(|| unreachable!("it is over"));
        assert!(way.take().is_none());
    }

    #[test]
    fn who_asked_meanwhile_is_woken() {
        let way = open();
        assert!(way.take().is_some());
        assert!(!way.close() && !way.close());
        assert!(way.done());
    }

    /// Either the owner has closed it and no other thread sends, or another thread sends and the
    /// owner is notified.
    #[test]
    fn both_sides_agree_whoever_is_first() {
        for _ in 0..2000 {
            let way = open();
            let (taken, closed, woken) = std::thread::scope(|scope| {
                let server = scope.spawn(|| {
                    let taken = way.take().is_some();
                    (taken, taken && way.done())
                });
                let closed = way.close();
                let (taken, woken) = server.join().expect("no panic");
                (taken, closed, woken)
            });
            assert_ne!(taken, closed);
            assert!(!woken || taken);
        }
    }
}
