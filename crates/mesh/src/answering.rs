//! The end of a link that answers.

use crate::frame::BadFrame;
use crate::identity::Peer;
use crate::inbox::{Inbox, Message, Side};
use crate::mesh::{Limits, Service};
use crate::outbox::{Outbox, Outgoing};
use crate::pump::{self, Ended, READ_BYTES};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{AbortHandle, JoinSet};

struct Answering<V> {
    peer: Arc<Peer>,
    service: Arc<V>,
    outbox: Outbox,
    /// Questions that the service has.
    running: Mutex<HashMap<u32, AbortHandle>>,
    /// Of questions under way.
    questions: Arc<Semaphore>,
    /// Of those that have several frames.
    bytes: Arc<Semaphore>,
    limits: Limits,
}

/// Answers until the link ends. What the service has not answered by then is dropped.
pub(crate) async fn answer<S, V>(stream: S, peer: Peer, service: Arc<V>, limits: &Limits) -> Ended
where
    S: AsyncRead + AsyncWrite,
    V: Service,
{
    let answering = Arc::new(Answering {
        peer: Arc::new(peer),
        service,
        outbox: Outbox::new(limits.link_bytes_max),
        running: Mutex::default(),
        questions: Arc::new(Semaphore::new(limits.questions_max)),
        bytes: Arc::new(Semaphore::new(limits.link_permits())),
        limits: limits.clone(),
    });
    let (mut from, mut to) = tokio::io::split(stream);
    let reader = async |from: &mut _| answering.take_questions(from).await;
    pump::drive((&mut from, &mut to), &answering.outbox, limits, reader).await
}

impl<V: Service> Answering<V> {
    async fn take_questions<R: AsyncRead + Unpin>(self: &Arc<Self>, from: &mut R) -> Ended {
        let limits = &self.limits;
        let mut inbox = Inbox::new(Side::Answers, limits.message_bytes_max, limits.link_bytes_max);
        let mut buffer = vec![0; READ_BYTES];
        // Aborts what is in it when the link ends.
        let mut tasks = JoinSet::new();
        loop {
            let read = match pump::read(from, &mut buffer, limits.silence_max).await {
                Ok(read) => read,
                Err(ended) => return ended,
            };
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
                    let answer = answering.service.answer(peer, kind, group, body).await;
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

    async fn admit(&self, bytes: usize) -> Vec<OwnedSemaphorePermit> {
        let mut held = Vec::with_capacity(2);
        if let Some(permits) = self.limits.permits_of(bytes) {
            held.extend(self.bytes.clone().acquire_many_owned(permits).await);
        }
        held.extend(self.questions.clone().acquire_owned().await);
        held
    }
}
