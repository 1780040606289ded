//! Messages on their way out of a link: small ones overtake large ones, and large ones take turns.

use crate::body::{Batch, Body};
use crate::frame::{
    ALIVE, ANSWER, BODY_BYTES_MAX, FAILURE, GIVEN_UP, HEAD_BYTES, Head, LARGE_MAX, MORE, REFUSAL,
};
use crate::memory;
use parking_lot::Mutex;
use std::collections::VecDeque;
use tokio::sync::{Notify, OwnedSemaphorePermit};

/// Bytes of small messages that go before a piece of a large one.
const SMALL_BYTES: usize = BODY_BYTES_MAX;

/// A message on its way out.
#[derive(Debug)]
pub(crate) struct Outgoing {
    head: Head,
    /// What is still to be sent.
    body: Body,
    bytes: usize,
    /// All of a message whose memory is much: held until the message goes, as the last that holds it.
    kept: Option<Body>,
    /// Released once the last byte is on its way.
    _held: Vec<OwnedSemaphorePermit>,
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        if let Some(kept) = self.kept.take() {
            self.body = Body::default();
            memory::free(kept, self.bytes);
        }
    }
}

impl Outgoing {
    pub(crate) fn question(kind: u8, group: u16, id: u32, body: Body) -> Outgoing {
        Outgoing::new(Head { length: 0, kind, flags: 0, group, id }, body, Vec::new())
    }

    /// The answer to a question of this kind, group and id.
    pub(crate) fn answer(
        (kind, group, id): (u8, u16, u32),
        answer: Result<Vec<u8>, String>,
        held: Vec<OwnedSemaphorePermit>,
    ) -> Outgoing {
        let (flags, body) = match answer {
            Ok(body) => (ANSWER, body),
            // A text that has several frames would be strange, and could not end another answer.
            Err(mut text) => {
                text.truncate(text.floor_char_boundary(1024));
                (ANSWER | FAILURE, text.into_bytes())
            }
        };
        Outgoing::new(Head { length: 0, kind, flags, group, id }, body.into(), held)
    }

    fn new(head: Head, body: Body, held: Vec<OwnedSemaphorePermit>) -> Outgoing {
        let bytes = body.len();
        let kept = (bytes > memory::FREED_HERE_MAX).then(|| body.clone());
        Outgoing { head, body, bytes, kept, _held: held }
    }

    fn is_begun(&self) -> bool {
        self.body.len() < self.bytes
    }

    fn own(kind: u8, id: u32, body: Body, held: Vec<OwnedSemaphorePermit>) -> Outgoing {
        Outgoing::new(Head::own(kind, id, 0), body, held)
    }

    fn is_large(&self) -> bool {
        self.body.len() > BODY_BYTES_MAX
    }

    /// Writes the next frame. Returns the message unless that was its last one.
    fn write(mut self, out: &mut Batch) -> Option<Outgoing> {
        let length = self.body.len().min(BODY_BYTES_MAX);
        let is_last = length == self.body.len();
        let flags = self.head.flags | if is_last { 0 } else { MORE };
        let head = Head { length: length as u32, flags, ..self.head };
        out.put(&head.encode());
        self.body.move_to(out, length);
        if !is_last {
            return Some(self);
        }
        out.end(self);
        None
    }
}

#[derive(Debug, Default)]
struct Queues {
    small: VecDeque<Outgoing>,
    /// Take turns.
    active: VecDeque<Outgoing>,
    /// Of all of each of them: the other side keeps a message until its end.
    active_bytes: usize,
    /// Wait until they may begin.
    large: VecDeque<Outgoing>,
    /// The last frame of the link.
    refusal: Option<String>,
}

/// What goes out of a link.
#[derive(Debug)]
pub(crate) struct Outbox {
    queues: Mutex<Queues>,
    wake: Notify,
    link_bytes_max: usize,
}

impl Outbox {
    /// Large messages of so many bytes take turns, or a single one.
    pub(crate) fn new(link_bytes_max: usize) -> Outbox {
        Outbox { queues: Mutex::default(), wake: Notify::new(), link_bytes_max }
    }

    pub(crate) fn push(&self, message: Outgoing) {
        let mut queues = self.queues.lock();
        match message.is_large() {
            true => queues.large.push_back(message),
            false => queues.small.push_back(message),
        }
        drop(queues);
        self.wake.notify_one();
    }

    /// Ends the link once this text is out; what else is queued stays behind.
    pub(crate) fn refuse(&self, text: String) {
        self.queues.lock().refusal.get_or_insert(text);
        self.wake.notify_one();
    }

    /// A question for whose answer nobody waits any more. The other side learns it if it may have
    /// begun with it.
    pub(crate) fn withdraw(&self, id: u32, held: Vec<OwnedSemaphorePermit>) {
        if !self.remove(id) {
            self.push(Outgoing::own(GIVEN_UP, id, Body::default(), held));
        }
    }

    /// An answer for which nobody waits any more. If part of it is out, a failure ends it.
    pub(crate) fn drop_answer(&self, id: u32) {
        let queues = self.queues.lock();
        let begun =
            queues.active.iter().find(|message| message.head.id == id && message.is_begun());
        let begun = begun.map(|message| (message.head.kind, message.head.group, id));
        drop(queues);
        self.remove(id);
        if let Some(of) = begun {
            self.push(Outgoing::answer(of, Err("nobody waits for it".to_owned()), Vec::new()));
        }
    }

    /// Whether the message was here and had not begun.
    fn remove(&self, id: u32) -> bool {
        let mut guard = self.queues.lock();
        let queues = &mut *guard;
        let of_id = |message: &Outgoing| message.head.id == id && message.head.kind != GIVEN_UP;
        for queue in [&mut queues.small, &mut queues.large] {
            if let Some(at) = queue.iter().position(of_id) {
                queue.remove(at);
                return true;
            }
        }
        let Some(at) = queues.active.iter().position(of_id) else { return false };
        let Some(message) = queues.active.remove(at) else { return false };
        queues.active_bytes -= message.bytes;
        !message.is_begun()
    }

    /// Writes what goes next: some small messages, then one frame of a large one. Nothing, if there
    /// is nothing; whether that was the link's last frame.
    pub(crate) fn fill(&self, out: &mut Batch) -> bool {
        let mut guard = self.queues.lock();
        let queues = &mut *guard;
        if let Some(text) = queues.refusal.take() {
            let mut text = text.into_bytes();
            text.truncate(1024);
            Outgoing::own(REFUSAL, 0, text.into(), Vec::new()).write(out);
            return true;
        }
        while out.len() < SMALL_BYTES
            && let Some(message) = queues.small.pop_front()
        {
            message.write(out);
        }
        while queues.active.len() < LARGE_MAX
            && let Some(next) = queues.large.front()
        {
            let bytes = queues.active_bytes + next.bytes;
            if bytes > self.link_bytes_max && !queues.active.is_empty() {
                break;
            }
            queues.active_bytes = bytes;
            queues.active.extend(queues.large.pop_front());
        }
        if let Some(message) = queues.active.pop_front() {
            let bytes = message.bytes;
            match message.write(out) {
                None => queues.active_bytes -= bytes,
                Some(message) => queues.active.push_back(message),
            }
        }
        false
    }

    /// Ends when there may be something to send.
    pub(crate) async fn wait(&self) {
        self.wake.notified().await;
    }
}

/// A frame that only says that this side is there.
pub(crate) fn alive() -> [u8; HEAD_BYTES] {
    Head::own(ALIVE, 0, 0).encode()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use tokio::sync::Semaphore;

    const KIND: u8 = 16;

    fn question(id: u32, bytes: usize) -> Outgoing {
        Outgoing::question(KIND, 0, id, vec![0; bytes].into())
    }

    fn answer(id: u32, bytes: usize) -> Outgoing {
        Outgoing::answer((KIND, 0, id), Ok(vec![0; bytes]), Vec::new())
    }

    /// Id, kind and flags of each frame in what is written at once.
    fn filled(outbox: &Outbox) -> Vec<(u32, u8, u8)> {
        let mut out = Batch::default();
        outbox.fill(&mut out);
        let out = out.to_vec();
        let mut rest = out.as_slice();
        let mut frames = Vec::new();
        while let Some((head, body)) = rest.split_first_chunk() {
            let head = Head::decode(head).expect("a head");
            frames.push((head.id, head.kind, head.flags));
            rest = &body[head.length as usize..];
        }
        frames
    }

    #[test]
    fn a_small_message_goes_before_the_next_frame_of_large_ones() {
        let outbox = Outbox::new(1 << 30);
        outbox.push(question(1, 3 * BODY_BYTES_MAX));
        outbox.push(question(2, 2 * BODY_BYTES_MAX));
        assert_eq!(filled(&outbox), [(1, KIND, MORE)]);
        outbox.push(question(3, 10));
        assert_eq!(filled(&outbox), [(3, KIND, 0), (2, KIND, MORE)]);
        assert_eq!(filled(&outbox), [(1, KIND, MORE)]);
        assert_eq!(filled(&outbox), [(2, KIND, 0)]);
        assert_eq!(filled(&outbox), [(1, KIND, 0)]);
        assert_eq!(filled(&outbox), []);
    }

    #[test]
    fn small_messages_do_not_keep_a_large_one_waiting() {
        let outbox = Outbox::new(1 << 30);
        outbox.push(question(1, 2 * BODY_BYTES_MAX));
        (10..100).for_each(|id| outbox.push(question(id, BODY_BYTES_MAX)));
        assert_eq!(filled(&outbox), [(10, KIND, 0), (1, KIND, MORE)]);
        assert_eq!(filled(&outbox), [(11, KIND, 0), (1, KIND, 0)]);
    }

    #[test]
    fn large_messages_begin_as_far_as_the_other_side_keeps_them() {
        let outbox = Outbox::new(5 * BODY_BYTES_MAX);
        (1..4).for_each(|id| outbox.push(question(id, 2 * BODY_BYTES_MAX)));
        outbox.push(question(4, 9 * BODY_BYTES_MAX));
        let mut order = Vec::new();
        while let [(id, _, _)] = filled(&outbox)[..] {
            order.push(id);
        }
        // The third waits for the end of one of both before; the fourth has to be alone.
        assert_eq!(order, [1, 2, 1, 2, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4, 4]);
        let outbox = Outbox::new(1 << 30);
        (0..20).for_each(|id| outbox.push(question(id, 2 * BODY_BYTES_MAX)));
        let begun: Vec<u32> = (0..LARGE_MAX).flat_map(|_| filled(&outbox)).map(|it| it.0).collect();
        assert_eq!(begun, Vec::from_iter(0..LARGE_MAX as u32));
        assert_eq!(filled(&outbox), [(0, KIND, 0)], "no ninth one");
    }

    #[test]
    fn what_is_withdrawn_is_named_only_if_it_may_have_begun_there() {
        let places = Arc::new(Semaphore::new(1));
        let held = || vec![places.clone().try_acquire_owned().expect("a place")];
        let outbox = Outbox::new(1 << 30);
        outbox.push(question(1, 10));
        outbox.withdraw(1, held());
        assert_eq!((filled(&outbox), places.available_permits()), (vec![], 1));
        outbox.push(question(2, 3 * BODY_BYTES_MAX));
        filled(&outbox);
        outbox.withdraw(2, held());
        assert_eq!(places.available_permits(), 0, "so that not too many wait to be named");
        assert_eq!(filled(&outbox), [(2, GIVEN_UP, 0)]);
        assert_eq!(places.available_permits(), 1);
        outbox.push(question(3, 10));
        filled(&outbox);
        outbox.withdraw(3, held());
        assert_eq!(filled(&outbox), [(3, GIVEN_UP, 0)]);
        assert_eq!(filled(&outbox), []);
    }

    #[test]
    fn an_answer_that_has_begun_is_ended() {
        let outbox = Outbox::new(1 << 30);
        outbox.push(answer(1, 10));
        outbox.push(answer(2, 3 * BODY_BYTES_MAX));
        outbox.push(answer(3, 3 * BODY_BYTES_MAX));
        outbox.drop_answer(1);
        assert_eq!(filled(&outbox), [(2, KIND, ANSWER | MORE)]);
        outbox.drop_answer(2);
        outbox.drop_answer(3);
        assert_eq!(filled(&outbox), [(2, KIND, ANSWER | FAILURE)]);
        assert_eq!(filled(&outbox), []);
    }
}
