//! The network between the nodes: questions and answers on their way, late, lost or held up.

use bytes::Bytes;
use ladon_raft::AsyncRuntime;
use ladon_raft::{Member, MemberId, Request, Response, Transport, encode_request};
use openraft_rt_sim::SimRuntime;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::oneshot;

/// A message's bytes, and who waits for the answer.
pub(super) enum Envelope {
    Question(Bytes, oneshot::Sender<io::Result<Response>>),
    Answer(Bytes, oneshot::Sender<io::Result<Response>>),
}

/// A message on its way.
pub(super) struct Posted {
    pub(super) from: MemberId,
    pub(super) to: MemberId,
    pub(super) envelope: Envelope,
    /// Not before this moment, microseconds of the world; `None`: it was just sent.
    pub(super) due_us: Option<u64>,
}

/// All messages on their way.
pub(super) type Post = Arc<Mutex<Vec<Posted>>>;

/// The way from one member to the others.
pub(super) struct Postman {
    pub(super) from: MemberId,
    pub(super) post: Post,
    /// After so long, a question counts as unanswered.
    pub(super) patience: Duration,
    /// A member that lacks what it had on its disk. A machine whose disk is lost gets another number, so
    /// there must be none.
    pub(super) lack: Lack,
}

/// What is told of a member that lacks something.
pub(super) type Lack = Arc<Mutex<Option<String>>>;

impl Transport for Postman {
    async fn ask(&self, to: MemberId, _: &Member, request: Request) -> io::Result<Response> {
        let (sender, receiver) = oneshot::channel();
        let envelope = Envelope::Question(encode_request(&request).into(), sender);
        let posted = Posted { from: self.from, to, envelope, due_us: None };
        self.post.lock().expect("nothing panics with it").push(posted);
        match SimRuntime::timeout(self.patience, receiver).await {
            Ok(Ok(answer)) => answer,
            _ => Err(io::ErrorKind::TimedOut.into()),
        }
    }

    fn lacks(&self, _: MemberId, told: &str) {
        self.lack.lock().expect("nothing panics with it").get_or_insert_with(|| told.to_owned());
    }
}
