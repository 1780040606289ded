//! The end of a link that asks: many questions under way, answers in any order.

use crate::body::Body;
use crate::identity::{Identity, Peer};
use crate::inbox::{Inbox, Message, Side};
use crate::mesh::Limits;
use crate::outbox::{Outbox, Outgoing};
use crate::pump::{self, Ended, READ_BYTES, Turn};
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::task::AbortHandle;

/// An error that many get.
#[derive(Clone, Debug)]
pub(crate) struct LinkError {
    pub(crate) kind: io::ErrorKind,
    pub(crate) text: Arc<str>,
}

impl LinkError {
    pub(crate) fn error(&self) -> io::Error {
        io::Error::new(self.kind, self.text.to_string())
    }
}

impl From<&Ended> for LinkError {
    fn from(ended: &Ended) -> LinkError {
        let kind = match ended {
            Ended::Io(error) => error.kind(),
            Ended::Closed => io::ErrorKind::ConnectionReset,
            Ended::Silent(_) | Ended::Stalled(_) => io::ErrorKind::TimedOut,
            Ended::Refused(_) => io::ErrorKind::ConnectionRefused,
            Ended::Bad(_) => io::ErrorKind::InvalidData,
            Ended::Told(_) | Ended::Said => io::ErrorKind::ConnectionAborted,
        };
        LinkError { kind, text: ended.to_string().into() }
    }
}

type Answer = Result<Bytes, String>;

/// Who waits for an answer, by the question's id.
#[derive(Debug)]
struct Waiting {
    answers: HashMap<u32, oneshot::Sender<Answer>>,
    next: u32,
    ended: Option<LinkError>,
}

#[derive(Debug)]
struct Shared {
    outbox: Outbox,
    waiting: Mutex<Waiting>,
    /// Of questions under way.
    questions: Arc<Semaphore>,
    /// Of questions that have several frames.
    bytes: Arc<Semaphore>,
    limits: Limits,
}

/// A link to a node that answers.
#[derive(Debug)]
pub(crate) struct Link {
    shared: Arc<Shared>,
    task: AbortHandle,
    /// Who answers.
    pub(crate) peer: Peer,
    /// What this node has said of itself.
    pub(crate) ours: Identity,
}

impl Drop for Link {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Link {
    /// A link over a connection on which both sides know each other.
    pub(crate) fn start<S>(stream: S, peer: Peer, ours: Identity, limits: &Limits) -> Link
    where
        S: AsyncRead + AsyncWrite + Send + 'static,
    {
        let waiting = Waiting { answers: HashMap::new(), next: 0, ended: None };
        let shared = Arc::new(Shared {
            outbox: Outbox::new(limits.link_bytes_max),
            waiting: Mutex::new(waiting),
            questions: Arc::new(Semaphore::new(limits.questions_max)),
            bytes: Arc::new(Semaphore::new(limits.link_permits())),
            limits: limits.clone(),
        });
        let task = tokio::spawn(run(stream, shared.clone())).abort_handle();
        Link { shared, task, peer, ours }
    }

    /// Why the link is of no use any more.
    pub(crate) fn ended(&self) -> Option<LinkError> {
        self.shared.waiting.lock().ended.clone()
    }

    /// Asks, and waits for the answer; the outer error is the link's. A caller that stops waiting
    /// frees its place.
    pub(crate) async fn ask(&self, kind: u8, group: u16, body: Body) -> Result<Answer, LinkError> {
        let held = self.shared.admit(body.len()).await?;
        let (sender, receiver) = oneshot::channel();
        let id = self.shared.waiting.lock().insert(sender)?;
        let mut question = Question { shared: &self.shared, id, held, is_answered: false };
        self.shared.outbox.push(Outgoing::question(kind, group, id, body));
        let answer = receiver.await;
        question.is_answered = true;
        answer.map_err(|_| self.shared.error())
    }
}

impl Waiting {
    fn insert(&mut self, sender: oneshot::Sender<Answer>) -> Result<u32, LinkError> {
        if let Some(error) = &self.ended {
            return Err(error.clone());
        }
        // After four billion questions an old one may still be there.
        while self.answers.contains_key(&self.next) {
            self.next = self.next.wrapping_add(1);
        }
        let id = self.next;
        self.next = id.wrapping_add(1);
        self.answers.insert(id, sender);
        Ok(id)
    }
}

impl Shared {
    /// Waits until there is room for a question of so many bytes.
    async fn admit(&self, bytes: usize) -> Result<Vec<OwnedSemaphorePermit>, LinkError> {
        let mut held = Vec::with_capacity(2);
        if let Some(permits) = self.limits.permits_of(bytes) {
            let bytes = self.bytes.clone().acquire_many_owned(permits).await;
            held.push(bytes.map_err(|_| self.error())?);
        }
        let question = self.questions.clone().acquire_owned().await;
        held.push(question.map_err(|_| self.error())?);
        Ok(held)
    }

    fn error(&self) -> LinkError {
        let ended = self.waiting.lock().ended.clone();
        ended.unwrap_or_else(|| LinkError::from(&Ended::Said))
    }

    /// Nobody will get an answer any more.
    fn end(&self, error: LinkError) {
        let mut waiting = self.waiting.lock();
        waiting.ended = Some(error);
        waiting.answers.clear();
        drop(waiting);
        self.questions.close();
        self.bytes.close();
    }
}

/// A question under way.
struct Question<'a> {
    shared: &'a Shared,
    id: u32,
    held: Vec<OwnedSemaphorePermit>,
    is_answered: bool,
}

impl Drop for Question<'_> {
    fn drop(&mut self) {
        if !self.is_answered && self.shared.waiting.lock().answers.remove(&self.id).is_some() {
            self.shared.outbox.withdraw(self.id, std::mem::take(&mut self.held));
        }
    }
}

async fn run<S: AsyncRead + AsyncWrite>(stream: S, shared: Arc<Shared>) {
    let (mut from, mut to) = tokio::io::split(stream);
    let reader = async |from: &mut _| take_answers(from, &shared).await;
    let ended = pump::drive((&mut from, &mut to), &shared.outbox, &shared.limits, reader).await;
    shared.end(LinkError::from(&ended));
}

async fn take_answers<R: AsyncRead + Unpin>(from: &mut R, shared: &Shared) -> Ended {
    let limits = &shared.limits;
    let mut inbox = Inbox::new(Side::Asks, limits.sizes());
    let mut buffer = vec![0; READ_BYTES];
    let mut turn = Turn::default();
    loop {
        let read = match pump::read(from, &mut buffer, limits.silence_max).await {
            Ok(read) => read,
            Err(ended) => return ended,
        };
        turn.moved(read).await;
        let mut input = &buffer[..read];
        loop {
            match inbox.next(&mut input) {
                Err(error) => return error.into(),
                Ok(None) => break,
                Ok(Some(Message::Refusal(text))) => return Ended::Refused(text),
                Ok(Some(Message::Answer { id, body })) => {
                    let sender = shared.waiting.lock().answers.remove(&id);
                    // Without one, or if it does not wait any more: it has given up.
                    let _ = sender.map(|sender| sender.send(body));
                }
                Ok(Some(Message::Alive | Message::Question { .. } | Message::GivenUp(_))) => {}
            }
        }
    }
}
