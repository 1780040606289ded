//! The end of a link that answers.

use crate::frame::{BODY_BYTES_MAX, BadFrame};
use crate::identity::{Identity, Peer};
use crate::inbox::{Inbox, Message, Side};
use crate::memory;
use crate::mesh::{Inner, Service};
use crate::outbox::{Outbox, Outgoing};
use crate::pump::{self, Ended, READ_BYTES, Turn};
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{AbortHandle, JoinSet};

struct Answering<V> {
    mesh: Arc<Inner>,
    peer: Arc<Peer>,
    /// What this node has said of itself, or nearly so: judged again with the first question.
    judged: Mutex<Identity>,
    service: Arc<V>,
    outbox: Outbox,
    /// Questions that the service has.
    running: Mutex<HashMap<u32, AbortHandle>>,
    /// Of questions under way.
    questions: Arc<Semaphore>,
    /// Of those that have several frames.
    bytes: Arc<Semaphore>,
}

/// A question's body, so that the service does not give back its memory.
struct Kept(Bytes);

impl Drop for Kept {
    fn drop(&mut self) {
        let body = std::mem::take(&mut self.0);
        let length = body.len();
        memory::free(body, length);
    }
}

/// Answers until the link ends, at the latest when `ends` gives a text. What the service has not
/// answered by then is dropped.
pub(crate) async fn answer<S, V>(
    stream: S,
    peer: Peer,
    mesh: &Arc<Inner>,
    service: &Arc<V>,
    ends: impl Future<Output = String>,
) -> Ended
where
    S: AsyncRead + AsyncWrite,
    V: Service,
{
    let limits = &mesh.limits;
    let answering = Arc::new(Answering {
        mesh: mesh.clone(),
        peer: Arc::new(peer),
        judged: Mutex::default(),
        service: service.clone(),
        outbox: Outbox::new(limits.link_bytes_max),
        running: Mutex::default(),
        questions: Arc::new(Semaphore::new(limits.questions_max)),
        bytes: Arc::new(Semaphore::new(limits.link_permits())),
    });
    let (mut from, mut to) = tokio::io::split(stream);
    let reader = async |from: &mut _| {
        tokio::select! {
            ended = answering.take_questions(from) => ended,
            text = ends => Ended::Told(text),
        }
    };
    pump::drive((&mut from, &mut to), &answering.outbox, limits, reader).await
}

impl<V: Service> Answering<V> {
    async fn take_questions<R: AsyncRead + Unpin>(self: &Arc<Self>, from: &mut R) -> Ended {
        let limits = &self.mesh.limits;
        let mut inbox = Inbox::new(Side::Answers, limits.sizes());
        let mut buffer = vec![0; READ_BYTES];
        let mut turn = Turn::default();
        // Aborts what is in it when the link ends.
        let mut tasks = JoinSet::new();
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
                    Ok(Some(message)) => {
                        if let Err(ended) = self.take(message, &mut tasks).await {
                            return ended;
                        }
                    }
                }
            }
        }
    }

    async fn take(
        self: &Arc<Self>,
        message: Message,
        tasks: &mut JoinSet<()>,
    ) -> Result<(), Ended> {
        match message {
            Message::Question { kind, group, id, body } => {
                self.judge()?;
                if !self.service.knows(kind) {
                    return Err(BadFrame::Kind(kind).into());
                }
                // While all places are taken, the link is not read.
                let held = self.admit(body.len()).await;
                if self.running.lock().contains_key(&id) {
                    return Err(BadFrame::Twice(id).into());
                }
                while tasks.try_join_next().is_some() {}
                let answering = self.clone();
                let task = async move {
                    let peer = &answering.peer;
                    // The service's own part of it is mostly dropped earlier.
                    let kept = (body.len() > BODY_BYTES_MAX).then(|| Kept(body.clone()));
                    let mut answer = answering.service.answer(peer, kind, group, body).await;
                    let limit = answering.mesh.limits.message_bytes_max;
                    if let Ok(long) = &answer
                        && long.len() > limit
                    {
                        answer = Err(format!("an answer of {} bytes is too long", long.len()));
                    }
                    drop(kept);
                    answering.running.lock().remove(&id);
                    answering.outbox.push(Outgoing::answer((kind, group, id), answer, held));
                };
                let mut running = self.running.lock();
                running.insert(id, tasks.spawn(task));
            }
            Message::GivenUp(id) => {
                if let Some(task) = self.running.lock().remove(&id) {
                    task.abort();
                }
                self.outbox.drop_answer(id);
            }
            Message::Refusal(text) => return Err(Ended::Refused(text)),
            Message::Alive | Message::Answer { .. } => {}
        }
        Ok(())
    }

    /// This node may belong to another cluster, or be another member, than when the link was made.
    fn judge(&self) -> Result<(), Ended> {
        let mut judged = self.judged.lock();
        let now = self.mesh.identity.lock();
        if *now != *judged {
            let other = &self.peer.identity;
            now.judge(other).map_err(|error| Ended::Told(error.to_string()))?;
            *judged = now.clone();
        }
        Ok(())
    }

    async fn admit(&self, bytes: usize) -> Vec<OwnedSemaphorePermit> {
        let mut held = Vec::with_capacity(2);
        if let Some(permits) = self.mesh.limits.permits_of(bytes) {
            held.extend(self.bytes.clone().acquire_many_owned(permits).await);
        }
        held.extend(self.questions.clone().acquire_owned().await);
        held
    }
}
