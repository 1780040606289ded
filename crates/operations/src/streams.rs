//! Responses that last (server-sent events): how many there are, and how each one ends.
//!
//! A stream is exempt from the lifetime of connections. Instead, there are [`STREAMS_MAX`] at a time,
//! the oldest leaves for a new one, and one whose client takes nothing for [`UNREAD_MAX`] ends.

use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Streams at a time.
pub(crate) const STREAMS_MAX: usize = 16;

/// Events that wait for a client; what comes when there are so many is left out.
const WAITING_MAX: usize = 64;

/// How long a client may leave events unread.
const UNREAD_MAX: Duration = Duration::from_secs(30);

/// The end of a stream: asked for by anybody, seen by its connection.
#[derive(Default)]
pub(crate) struct Ending {
    is_over: AtomicBool,
    notify: Notify,
}

impl Ending {
    fn end(&self) {
        self.is_over.store(true, Relaxed);
        self.notify.notify_waiters();
    }

    /// Returns once the stream has to end.
    pub(crate) async fn wait(&self) {
        loop {
            let notified = self.notify.notified();
            if self.is_over.load(Relaxed) {
                return;
            }
            notified.await;
        }
    }
}

/// In a response's extensions: its connection lives until this ends.
#[derive(Clone)]
pub(crate) struct Lasting(pub(crate) Arc<Ending>);

/// All streams, oldest first.
#[derive(Default)]
pub(crate) struct Streams(Mutex<VecDeque<Arc<Ending>>>);

impl Streams {
    /// Begins one; the oldest ends if there are too many.
    pub(crate) fn begin(self: &Arc<Self>) -> (Events, Receiver<Bytes>) {
        let ending = Arc::new(Ending::default());
        let mut all = self.0.lock();
        if all.len() == STREAMS_MAX
            && let Some(oldest) = all.pop_front()
        {
            oldest.end();
        }
        all.push_back(Arc::clone(&ending));
        let (sender, receiver) = channel(WAITING_MAX);
        let events = Events { sender, ending, streams: Arc::clone(self), unread_since: None };
        (events, receiver)
    }
}

/// The sending end of a stream.
pub(crate) struct Events {
    sender: Sender<Bytes>,
    ending: Arc<Ending>,
    streams: Arc<Streams>,
    unread_since: Option<Instant>,
}

/// What became of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    Yes,
    /// The client has to catch up first.
    LeftOut,
    /// There is nobody any more.
    Gone,
}

impl Events {
    /// What the response needs to outlive others.
    pub(crate) fn lasting(&self) -> Lasting {
        Lasting(Arc::clone(&self.ending))
    }

    /// Sends an event of this name; `data` has no line breaks. Never waits.
    pub(crate) fn send(&mut self, name: &str, data: &[u8]) -> Sent {
        let mut event = Vec::with_capacity(name.len() + data.len() + 16);
        event.extend_from_slice(b"event: ");
        event.extend_from_slice(name.as_bytes());
        event.extend_from_slice(b"\ndata: ");
        event.extend_from_slice(data);
        event.extend_from_slice(b"\n\n");
        self.send_bytes(event.into())
    }

    /// A line that means nothing, so that a connection whose client has vanished ends.
    pub(crate) fn beat(&mut self) -> Sent {
        self.send_bytes(Bytes::from_static(b":\n\n"))
    }

    fn send_bytes(&mut self, event: Bytes) -> Sent {
        if self.ending.is_over.load(Relaxed) {
            return Sent::Gone;
        }
        match self.sender.try_send(event) {
            Ok(()) => {
                self.unread_since = None;
                Sent::Yes
            }
            Err(TrySendError::Closed(_)) => Sent::Gone,
            Err(TrySendError::Full(_)) => {
                let since = *self.unread_since.get_or_insert_with(Instant::now);
                if since.elapsed() < UNREAD_MAX {
                    return Sent::LeftOut;
                }
                self.ending.end();
                Sent::Gone
            }
        }
    }

    /// Returns once the client has left or the stream has to end.
    pub(crate) async fn gone(&self) {
        tokio::select! {
            () = self.sender.closed() => {}
            () = self.ending.wait() => {}
        }
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.streams.0.lock().retain(|ending| !Arc::ptr_eq(ending, &self.ending));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_stream_ends_for_a_new_one() {
        let streams = Arc::new(Streams::default());
        let mut all: Vec<_> = (0..=STREAMS_MAX).map(|_| streams.begin()).collect();
        assert_eq!(all[0].0.send("x", b"1"), Sent::Gone);
        assert_eq!(all[1].0.send("x", b"1"), Sent::Yes);
        let event = all[1].1.try_recv().expect("an event");
        assert_eq!(&event[..], b"event: x\ndata: 1\n\n");
        all.truncate(3);
        assert_eq!(streams.0.lock().len(), 2);
    }

    #[test]
    fn what_nobody_reads_is_left_out() {
        let streams = Arc::new(Streams::default());
        let (mut events, receiver) = streams.begin();
        let sent: Vec<Sent> = (0..WAITING_MAX + 2).map(|_| events.send("x", b"1")).collect();
        assert!(sent[..WAITING_MAX].iter().all(|sent| *sent == Sent::Yes));
        assert_eq!(sent[WAITING_MAX..], [Sent::LeftOut, Sent::LeftOut]);
        drop(receiver);
        assert_eq!(events.send("x", b"1"), Sent::Gone);
    }
}
