//! Bytes of a link to messages. Memory grows as bytes come: a length that is only announced costs
//! nothing.

use crate::frame::{
    ALIVE, ANSWER, BadFrame, FAILURE, FIRST_SERVICE_KIND, GIVEN_UP, HEAD_BYTES, Head, LARGE_MAX,
    MORE, REFUSAL,
};
use crate::memory;
use bytes::Bytes;

/// Which end of a link this is. Who has connected asks, the other one answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Has connected.
    Asks,
    /// Has accepted.
    Answers,
}

/// What has arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Asks for an answer.
    Question {
        /// What kind, for the service.
        kind: u8,
        /// Which group.
        group: u16,
        /// By which the answer is known.
        id: u32,
        /// What the service is to answer.
        body: Bytes,
    },
    /// The answer to a question.
    Answer {
        /// Of the question.
        id: u32,
        /// The service's answer, or a text that says why there is none.
        body: Result<Bytes, String>,
    },
    /// Nobody waits for this question's answer any more.
    GivenUp(u32),
    /// The other side is there.
    Alive,
    /// The other side ends the link, and says why.
    Refusal(String),
}

/// A message of which a frame is here and more will come.
#[derive(Debug)]
struct Part {
    head: Head,
    bytes: Vec<u8>,
}

impl Part {
    fn new(head: Head) -> Part {
        Part { head, bytes: Vec::new() }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        let length = bytes.len();
        memory::free(bytes, length);
    }
}

/// Bytes at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Of a frame's body. [`crate::BODY_BYTES_MAX`] on every link; fewer where inputs have to be short.
    pub frame: usize,
    /// Of a message.
    pub message: usize,
    /// Of all messages that are half here.
    pub link: usize,
}

/// Takes a link's bytes.
#[derive(Debug)]
pub struct Inbox {
    side: Side,
    sizes: Sizes,
    head: [u8; HEAD_BYTES],
    head_length: usize,
    /// The message that the present frame belongs to, once its head is here.
    now: Option<Part>,
    /// Bytes of the present frame's body that are to come.
    left: usize,
    parts: Vec<Part>,
}

/// A text from the other side for logs and errors: no control characters, and not long.
pub(crate) fn text_of(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(1024)]);
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

impl Inbox {
    /// Bytes that come to this side of a link.
    pub fn new(side: Side, sizes: Sizes) -> Inbox {
        Inbox {
            side,
            sizes,
            head: [0; HEAD_BYTES],
            head_length: 0,
            now: None,
            left: 0,
            parts: Vec::new(),
        }
    }

    /// Bytes that are kept until the rest of their messages comes.
    pub fn bytes(&self) -> usize {
        self.parts.iter().chain(&self.now).map(|part| part.bytes.len()).sum()
    }

    /// The next message that ends in `input`, of which it takes the bytes up to there; `None` if
    /// all of it is taken and no message has ended.
    ///
    /// # Errors
    /// [`BadFrame`]; the link is of no use any more.
    pub fn next(&mut self, input: &mut &[u8]) -> Result<Option<Message>, BadFrame> {
        loop {
            if self.now.is_none() {
                let taken = input.split_off(..input.len().min(HEAD_BYTES - self.head_length));
                let taken = taken.unwrap_or_default();
                self.head[self.head_length..][..taken.len()].copy_from_slice(taken);
                self.head_length += taken.len();
                if self.head_length < HEAD_BYTES {
                    return Ok(None);
                }
                self.head_length = 0;
                self.begin(Head::decode(&self.head)?)?;
            }
            let Some(now) = &mut self.now else { continue };
            let taken = input.split_off(..input.len().min(self.left)).unwrap_or_default();
            memory::append(&mut now.bytes, taken, self.sizes.message);
            self.left -= taken.len();
            if self.left > 0 {
                return Ok(None);
            }
            if let Some(message) = self.end() {
                return Ok(Some(message));
            }
        }
    }

    /// A frame's head is here.
    fn begin(&mut self, head: Head) -> Result<(), BadFrame> {
        self.check(&head)?;
        let same = self.parts.iter().position(|part| part.head.id == head.id);
        let own = head.kind < FIRST_SERVICE_KIND;
        let mut part = match same.map(|at| self.parts.swap_remove(at)) {
            Some(part) if own => {
                // The rest of the question will not come.
                if head.kind != GIVEN_UP {
                    self.parts.push(part);
                }
                Part::new(head)
            }
            Some(part) => {
                let is_end = head.flags & FAILURE != 0 && part.head.flags & FAILURE == 0;
                let is_same = (part.head.kind, part.head.group) == (head.kind, head.group)
                    && (part.head.flags | MORE) == (head.flags | MORE);
                match (is_end, is_same) {
                    // The rest of the answer will not come.
                    (true, _) => Part::new(head),
                    (_, true) => part,
                    _ => return Err(BadFrame::Mixed(head.id)),
                }
            }
            None => Part::new(head),
        };
        part.head = head;
        if head.flags & MORE != 0 && self.parts.len() >= LARGE_MAX {
            return Err(BadFrame::Many);
        }
        if part.bytes.len() + head.length as usize > self.sizes.message {
            return Err(BadFrame::MessageBytes(self.sizes.message));
        }
        let is_large = head.flags & MORE != 0 || !part.bytes.is_empty();
        if is_large && self.bytes() + part.bytes.len() + head.length as usize > self.sizes.link {
            return Err(BadFrame::LinkBytes(self.sizes.link));
        }
        self.left = head.length as usize;
        self.now = Some(part);
        Ok(())
    }

    /// Whether a frame may have such a head.
    fn check(&self, head: &Head) -> Result<(), BadFrame> {
        if head.length as usize > self.sizes.frame {
            return Err(BadFrame::Long(head.length));
        }
        match head.kind {
            GIVEN_UP if self.side == Side::Asks => return Err(BadFrame::Direction(head.kind)),
            REFUSAL | ALIVE | GIVEN_UP if head.flags != 0 => {
                return Err(BadFrame::Flags(head.flags));
            }
            ALIVE | GIVEN_UP if head.length > 0 => return Err(BadFrame::Body(head.kind)),
            REFUSAL | ALIVE | GIVEN_UP => return Ok(()),
            own if own < FIRST_SERVICE_KIND => return Err(BadFrame::Kind(own)),
            _ => {}
        }
        let is_known = head.flags <= (MORE | ANSWER | FAILURE);
        if !is_known || head.flags & (ANSWER | FAILURE) == FAILURE {
            return Err(BadFrame::Flags(head.flags));
        }
        if (head.flags & ANSWER != 0) != (self.side == Side::Asks) {
            return Err(BadFrame::Direction(head.kind));
        }
        if head.flags & MORE != 0 && head.length as usize != self.sizes.frame {
            return Err(BadFrame::Partial(head.length));
        }
        Ok(())
    }

    /// A frame is here; its message, if this was the last one.
    fn end(&mut self) -> Option<Message> {
        let mut part = self.now.take()?;
        let Head { kind, flags, group, id, .. } = part.head;
        if flags & MORE != 0 {
            self.parts.push(part);
            return None;
        }
        let bytes = std::mem::take(&mut part.bytes);
        Some(match kind {
            ALIVE => Message::Alive,
            GIVEN_UP => Message::GivenUp(id),
            REFUSAL => Message::Refusal(text_of(&bytes)),
            _ if flags & FAILURE != 0 => Message::Answer { id, body: Err(text_of(&bytes)) },
            _ if flags & ANSWER != 0 => Message::Answer { id, body: Ok(bytes.into()) },
            _ => Message::Question { kind, group, id, body: bytes.into() },
        })
    }
}
