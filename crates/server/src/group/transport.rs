//! The way to the other members: questions of the raft crate as messages of the mesh.

use super::thread::RaftNode;
use bytes::Bytes;
use ladon_mesh::{Mesh, Peer, Service};
use ladon_platform::SystemDisk;
use ladon_raft::{
    DataFile, ExtentLog, GroupLog, Incoming, Member, MemberId, MembersChange, Request, Response,
    Transport, Vote, answer, decode_request, decode_response, encode_request, encode_response,
};
use ladon_record::Lsn;
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// The mesh's kind of a question of the group.
const GROUP_QUESTION: u8 = 16;

/// The first group of a cluster; there is one so far.
const GROUP: u16 = 0;

/// Other members, through the mesh.
pub(crate) struct ByMesh {
    pub(crate) mesh: Mesh,
    /// How long to wait for an answer.
    pub(crate) patience: Duration,
}

impl Transport for ByMesh {
    async fn ask(&self, to: MemberId, member: &Member, request: Request) -> io::Result<Response> {
        let body = encode_request(&request);
        // A large entry takes as long as it takes; the mesh ends a link that stands still.
        let patience = self.patience.max(Duration::from_millis(body.len() as u64 >> 13));
        let address = &member.address;
        let asked = self.mesh.ask(address, Some(to), GROUP_QUESTION, GROUP, body, patience);
        let answer = asked.await?;
        decode_response(&answer).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }
}

/// Answers the other members, while this node sits in the group.
pub(crate) struct Answers {
    seated: Mutex<Option<Seated>>,
    /// When a leader's word came last.
    heard_leader: Arc<Mutex<Option<Instant>>>,
}

struct Seated {
    node: RaftNode,
    group_log: Arc<GroupLog>,
    /// Before this moment, the node gives no vote: before it was started, it may have promised a
    /// leader not to elect another one for a while, and does not know any more.
    silent_until: Option<Instant>,
    incoming: Option<Incoming>,
    /// Another member's data is here as a whole.
    replaced: Arc<AtomicBool>,
    wake: Arc<Notify>,
}

impl Answers {
    pub(crate) fn new(heard_leader: Arc<Mutex<Option<Instant>>>) -> Arc<Answers> {
        Arc::new(Answers { seated: Mutex::new(None), heard_leader })
    }

    pub(crate) fn begin(
        &self,
        node: RaftNode,
        group_log: Arc<GroupLog>,
        silent_until: Option<Instant>,
        (replaced, wake): (Arc<AtomicBool>, Arc<Notify>),
    ) {
        let incoming = None;
        let seated = Seated { node, group_log, silent_until, incoming, replaced, wake };
        *self.seated.lock() = Some(seated);
    }

    pub(crate) fn end(&self) {
        *self.seated.lock() = None;
    }

    /// Takes another member's data, part by part. Returns `None` if the request is about something
    /// else.
    fn take_data(&self, request: &Request) -> Option<Result<Response, String>> {
        let mut all = self.seated.lock();
        let seated = all.as_mut()?;
        let taken = match request {
            Request::SnapshotBegin { vote, end, files } => seated.begin_data(vote, *end, files),
            Request::SnapshotPart { file, at, bytes } => match &mut seated.incoming {
                Some(incoming) => {
                    let taken = incoming.part(*file as usize, *at, bytes);
                    taken.map(|()| Response::SnapshotTaken)
                }
                None => Err(io::Error::other("nothing was begun")),
            },
            Request::SnapshotEnd { vote, members } => seated.end_data(vote, members),
            _ => return None,
        };
        let taken = taken.map_err(|error| {
            seated.incoming = None;
            error.to_string()
        });
        if seated.replaced.load(SeqCst) {
            // What this node has in memory is not what it has said to have.
            *all = None;
        }
        Some(taken)
    }
}

impl Seated {
    fn must_not_vote(&self) -> bool {
        self.silent_until.is_some_and(|until| Instant::now() < until)
    }

    /// The vote of this member, if it follows somebody newer than who has this one.
    fn newer_than(&self, vote: &Vote) -> io::Result<Option<Vote>> {
        let own = self.group_log.vote()?;
        Ok(own.filter(|own| own.leader_id.term > vote.leader_id.term))
    }

    fn begin_data(&mut self, vote: &Vote, end: Lsn, files: &[DataFile]) -> io::Result<Response> {
        if let Some(own) = self.newer_than(vote)? {
            return Ok(Response::HigherVote(own));
        }
        tracing::info!(
            "this member is far behind: it gets the data of member {}",
            vote.leader_id.voted_for
        );
        let dir = self.group_log.log().dir();
        let begun = Incoming::begin(Arc::new(SystemDisk), dir, files.to_vec(), end)?;
        self.incoming = Some(begun);
        Ok(Response::SnapshotTaken)
    }

    fn end_data(&mut self, vote: &Vote, members: &MembersChange) -> io::Result<Response> {
        if let Some(own) = self.newer_than(vote)? {
            return Ok(Response::HigherVote(own));
        }
        let incoming = self.incoming.take();
        let incoming = incoming.ok_or_else(|| io::Error::other("nothing was begun"))?;
        let own = self.group_log.vote()?;
        if own.is_none_or(|own| own.leader_id.term < vote.leader_id.term) {
            self.group_log.save_vote(vote)?;
        }
        self.group_log.with_state(|state| state.save_change(members.clone()))?;
        incoming.end()?;
        self.replaced.store(true, SeqCst);
        self.wake.notify_one();
        Ok(Response::SnapshotTaken)
    }
}

impl Service for Answers {
    fn knows(&self, kind: u8) -> bool {
        kind == GROUP_QUESTION
    }

    async fn answer(&self, peer: &Peer, _: u8, group: u16, body: Bytes) -> Result<Vec<u8>, String> {
        if group != GROUP {
            return Err(format!("this node has no group {group}"));
        }
        if peer.identity.node == 0 {
            return Err("only members of the cluster take part in it".to_owned());
        }
        let request = decode_request(&body).map_err(|error| error.to_string())?;
        if let Some(taken) = self.take_data(&request) {
            return taken.map(|response| encode_response(&response));
        }
        if matches!(request, Request::Append { .. }) {
            *self.heard_leader.lock() = Some(Instant::now());
        }
        let node = {
            let seated = self.seated.lock();
            let none = || "this node takes no part at the moment".to_owned();
            let seated = seated.as_ref().ok_or_else(none)?;
            if matches!(request, Request::Vote { .. }) && seated.must_not_vote() {
                return Err("this node has just started, and gives no vote yet".to_owned());
            }
            seated.node.clone()
        };
        // Not dropped half-way if the other one waits no longer.
        let answered = tokio::spawn(async move { answer(&node, request).await });
        let answered = answered.await.map_err(|error| error.to_string())?;
        answered.map(|response| encode_response(&response))
    }
}
