//! The outcome of a request.

use crate::client::session::Blocked;
use crate::long::aside_job::Job;
use crate::long::long_reply::LongReply;
use crate::long::slices::Slices;
use ladon_record::Lsn;

/// What happens to the connection.
#[derive(Clone, Debug, Default)]
pub enum Flow {
    /// Go on with the next request.
    #[default]
    Continue,
    /// Send what is there, then close.
    Close,
    /// Close now; nothing is sent (`SHUTDOWN`).
    Drop,
    /// No reply yet: the connection waits.
    Block(Blocked),
    /// No reply yet. The caller runs the job, gives the result to the session, and retries the
    /// request.
    Compute,
    /// Clients are paused: nothing was done, retry the request later.
    Paused,
    /// Nothing was done: retry the request in the next turn, because another thread is about to do
    /// what the answer depends on.
    Again,
    /// A part of the request is done, and there is no reply yet: retry it behind the requests of
    /// other connections.
    GoesOn,
    /// Nothing was done: retry the request in a moment, because a commit has asked writers to wait.
    AwaitsCommit,
    /// Nothing was done: retry the request once the long reply to an earlier one has been made.
    AwaitsReply,
    /// Nothing yet: retry the request once the program has answered it.
    AwaitsProgram,
    /// Nothing was done: retry the request once the cluster's leader has named its position, and the
    /// data has that much.
    AwaitsLeader,
}

impl Flow {
    /// Whether the request has no reply yet because it is retried.
    #[inline]
    pub fn runs_again(&self) -> bool {
        match self {
            Flow::Compute
            | Flow::Paused
            | Flow::Again
            | Flow::GoesOn
            | Flow::AwaitsCommit
            | Flow::AwaitsReply
            | Flow::AwaitsProgram
            | Flow::AwaitsLeader => true,
            Flow::Continue | Flow::Close | Flow::Drop | Flow::Block(_) => false,
        }
    }
}

/// What a request led to. Its reply, or the beginning of it, is in the buffer.
#[derive(Debug)]
pub struct Outcome {
    /// The reply may leave when the gate has passed this.
    pub depends: Lsn,
    /// What happens to the connection.
    pub flow: Flow,
    /// What is left to do; boxed, as most requests leave nothing.
    pub deferred: Option<Box<Deferred>>,
}

impl Outcome {
    /// Nothing is left to do.
    #[inline]
    pub fn new(depends: Lsn, flow: Flow) -> Outcome {
        Outcome { depends, flow, deferred: None }
    }

    /// The reply goes on after its request.
    pub fn with_long_reply(depends: Lsn, long_reply: LongReply) -> Outcome {
        let long_reply = Some(Box::new(long_reply));
        let deferred = Some(Box::new(Deferred { long_reply, ..Deferred::default() }));
        Outcome { depends, flow: Flow::Continue, deferred }
    }
}

/// What a job waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JobKind {
    /// For nothing: it computes.
    #[default]
    Computes,
    /// For another server.
    Errand,
    /// For what a replica waits for: as urgent as a request.
    Replica,
}

/// What a request leaves to do after its command.
#[derive(Default)]
pub struct Deferred {
    /// The rest of the reply.
    pub long_reply: Option<Box<LongReply>>,
    /// What computes the long reply, or what the request stores when it is retried.
    pub job: Option<Job>,
    /// What the job waits for.
    pub kind: JobKind,
    /// Which of the request's arguments the job takes.
    pub lend: Option<usize>,
    /// The parts of the long reply, as the handler gave them.
    pub slices: Option<Box<dyn Slices>>,
}

impl std::fmt::Debug for Deferred {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Deferred { long_reply, job, kind, lend, slices } = self;
        let (job, slices) = (job.is_some(), slices.is_some());
        let job = (job, kind);
        write!(f, "Deferred({long_reply:?}, job: {job:?}, lend: {lend:?}, slices: {slices})")
    }
}
