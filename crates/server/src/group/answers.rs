//! What other members ask this node, answered, while it sits in the group.

use super::planted::Planted;
use super::standing::Standing;
use ladon_platform::Disk;
use ladon_raft::{
    AsyncRuntime, DataFile, ExtentLog, GroupLog, Incoming, Machine, MembersChange, Node, Request,
    Response, RuntimeInstant, Vote, answer,
};
use ladon_record::Lsn;
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Instant;
use tokio::sync::Notify;

/// Where an operator has ordered the one at the node, and the other at the leader.
pub(super) const KINDS_DIFFER: &str = "this node joined as a witness and was added as a member with data, or the other way round: \
     remove it, and add an empty one";

/// Answers the other members, while this node sits in the group.
pub struct Answers<RT: AsyncRuntime>
where
    Machine<Standing, RT>: Send + Sync,
{
    seated: Mutex<Option<Seated<RT>>>,
    /// When a leader's word came last.
    heard_leader: Arc<Mutex<Option<Instant>>>,
}

/// How another member's data is told of, once it is here as a whole.
pub(super) struct Signals<RT: AsyncRuntime> {
    pub(super) replaced: Arc<AtomicBool>,
    /// When a leader's word came last, by the runtime's time.
    pub(super) heard: Arc<Mutex<RT::Instant>>,
    pub(super) wake: Arc<Notify>,
}

struct Seated<RT: AsyncRuntime>
where
    Machine<Standing, RT>: Send + Sync,
{
    node: Node<Standing, RT>,
    group_log: Arc<GroupLog>,
    disk: Arc<dyn Disk>,
    /// Before this moment, the node gives no vote: before it was started, it may have promised a
    /// leader not to elect another one for a while, and does not know any more.
    silent_until: Option<RT::Instant>,
    incoming: Option<Incoming>,
    signals: Signals<RT>,
    planted: Planted,
}

impl<RT: AsyncRuntime> Answers<RT>
where
    Machine<Standing, RT>: Send + Sync,
{
    /// Those of a node that does not sit yet.
    pub fn new(heard_leader: Arc<Mutex<Option<Instant>>>) -> Arc<Answers<RT>> {
        Arc::new(Answers { seated: Mutex::new(None), heard_leader })
    }

    pub(super) fn begin(
        &self,
        node: Node<Standing, RT>,
        (group_log, disk): (Arc<GroupLog>, Arc<dyn Disk>),
        silent_until: Option<RT::Instant>,
        (signals, planted): (Signals<RT>, Planted),
    ) {
        let incoming = None;
        let seated = Seated { node, group_log, disk, silent_until, incoming, signals, planted };
        *self.seated.lock() = Some(seated);
    }

    pub(super) fn end(&self) {
        *self.seated.lock() = None;
    }

    /// The answer to a question.
    ///
    /// # Errors
    /// A text: why there is none.
    pub async fn respond(&self, mut request: Request) -> Result<Response, String> {
        if let Some(taken) = self.take_data(&request) {
            return taken;
        }
        if matches!(request, Request::ReadIndex) {
            return self.position().await;
        }
        if matches!(request, Request::Append { .. }) {
            *self.heard_leader.lock() = Some(Instant::now());
        }
        let node = {
            let seated = self.seated.lock();
            let none = || "this node takes no part at the moment".to_owned();
            let seated = seated.as_ref().ok_or_else(none)?;
            seated.plant(&mut request);
            if matches!(request, Request::Append { .. }) {
                *seated.signals.heard.lock() = RT::Instant::now();
            }
            if matches!(request, Request::Vote { .. }) && seated.must_not_vote() {
                return Err("this node has just started, and gives no vote yet".to_owned());
            }
            seated.node.clone()
        };
        // Not dropped half-way if the other one waits no longer.
        let answered = RT::spawn(async move { answer(&node, request).await });
        answered.await.map_err(|error| error.to_string())?
    }

    /// How far the group has committed, if this member leads it and no other one can.
    async fn position(&self) -> Result<Response, String> {
        let (node, group_log, planted) = {
            let seated = self.seated.lock();
            let Some(seated) = &*seated else { return Ok(Response::Position(None)) };
            (seated.node.clone(), Arc::clone(&seated.group_log), seated.planted)
        };
        // Not what the data here has of it: other followers may have been told of more.
        let committed = node.with_raft_state(|state| state.local_committed().map(|id| id.index));
        let committed = committed.await.map_err(|error| error.to_string())?;
        let position = committed.and_then(|index| group_log.end_of(index));
        // The lease last: if it holds now, nobody else had committed more before.
        // It holds for nobody who has not committed an entry of its own reign.
        let may_answer = match planted {
            Planted::ReadIndexUnleased => !group_log.log().is_led_elsewhere(),
            _ => group_log.log().agreed() > Lsn::ZERO,
        };
        Ok(Response::Position(position.filter(|_| may_answer)))
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
        if seated.signals.replaced.load(SeqCst) {
            // What this node has in memory is not what it has said to have.
            *all = None;
        }
        Some(taken)
    }
}

impl<RT: AsyncRuntime> Seated<RT>
where
    Machine<Standing, RT>: Send + Sync,
{
    /// See [`Planted::WitnessElectsAnybody`].
    fn plant(&self, request: &mut Request) {
        if self.planted == Planted::WitnessElectsAnybody
            && self.is_witness()
            && let Request::Vote { last, .. } = request
        {
            *last = self.group_log.bounds().1.max(*last);
        }
    }

    fn is_witness(&self) -> bool {
        self.group_log.with_state(|state| state.is_witness())
    }

    fn must_not_vote(&self) -> bool {
        self.silent_until.is_some_and(|until| RT::Instant::now() < until)
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
        let begun = Incoming::begin(Arc::clone(&self.disk), dir, files.to_vec(), end)?;
        self.incoming = Some(begun);
        Ok(Response::SnapshotTaken)
    }

    fn end_data(&mut self, vote: &Vote, members: &MembersChange) -> io::Result<Response> {
        if let Some(own) = self.newer_than(vote)? {
            return Ok(Response::HigherVote(own));
        }
        let own = self.group_log.with_state(|state| state.member());
        let as_member = members.1.get_node(&own);
        if as_member.is_some_and(|member| member.is_witness != self.is_witness()) {
            // Without data where some are expected, or the other way round.
            return Err(io::Error::other(KINDS_DIFFER));
        }
        let incoming = self.incoming.take();
        let incoming = incoming.ok_or_else(|| io::Error::other("nothing was begun"))?;
        let own = self.group_log.vote()?;
        if own.is_none_or(|own| own.leader_id.term < vote.leader_id.term) {
            self.group_log.save_vote(vote)?;
        }
        self.group_log.save_change(members.clone())?;
        incoming.end()?;
        self.signals.replaced.store(true, SeqCst);
        self.signals.wake.notify_one();
        Ok(Response::SnapshotTaken)
    }
}
