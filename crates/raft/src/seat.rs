//! A member's seat in its group: openraft, running, in the words that a server needs.

use crate::entry::{Cut, Member};
use crate::group_log::GroupLog;
use crate::machine::{Applier, Machine};
use crate::network::{Network, Node, Transport};
use crate::storage::Storage;
use crate::types::{EntryId, Group, MemberId, group_config};
use openraft::async_runtime::WatchReceiver;
use openraft::errors::{ClientWriteError, RaftError};
use openraft::type_config::alias::WatchReceiverOf;
use openraft::{
    AsyncRuntime, ChangeMembers, Instant, OptionalSend, OptionalSync, RaftMetrics, ServerState,
};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// How long the end of a seat may take: what openraft does when it is told may wait for the disk.
const LEAVE_MAX: Duration = Duration::from_secs(2);

/// Why a change was not made. A leader that does not hear most members makes none either.
fn told<RT: AsyncRuntime>(error: RaftError<Group<RT>, ClientWriteError<Group<RT>>>) -> String {
    match error.forward_to_leader() {
        Some(_) => "this node does not lead its cluster, or does not hear most members".to_owned(),
        None => error.to_string(),
    }
}

/// A running member.
pub struct Seat<A: Applier, RT: AsyncRuntime>
where
    Machine<A, RT>: OptionalSend + OptionalSync,
{
    node: Node<A, RT>,
    metrics: WatchReceiverOf<Group<RT>, RaftMetrics<Group<RT>>>,
}

/// How a member stands at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Whether it leads.
    pub leads: bool,
    /// The present term.
    pub term: u64,
    /// Who leads, as far as it knows.
    pub leader: Option<MemberId>,
    /// The last entry of its log.
    pub last_index: u64,
    /// The last entry that its data has.
    pub applied_index: u64,
    /// How long ago the questions were asked that most members have answered; of a leader.
    pub agreed_ago: Option<Duration>,
    /// Why it takes part no more, if it does not.
    pub stopped: Option<String>,
}

/// A member, as another one sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Its number.
    pub id: MemberId,
    /// Its addresses.
    pub member: Member,
    /// Whether it votes.
    pub votes: bool,
    /// The last entry that it is known to have; a leader knows.
    pub matched: Option<u64>,
    /// How long ago it was heard of; a leader knows.
    pub silent: Option<Duration>,
}

/// Whether nobody else has a vote, whatever of the members is committed.
fn is_alone<RT: AsyncRuntime>(metrics: &RaftMetrics<Group<RT>>) -> bool {
    [&metrics.membership_config, &metrics.committed_membership_config].iter().all(|stored| {
        let mut configs = stored.membership().get_joint_config().iter();
        configs.all(|voters| voters.len() == 1 && voters.contains(&metrics.id))
    })
}

impl<A: Applier, RT: AsyncRuntime> Clone for Seat<A, RT>
where
    Machine<A, RT>: OptionalSend + OptionalSync,
{
    fn clone(&self) -> Self {
        Seat { node: self.node.clone(), metrics: self.metrics.clone() }
    }
}

impl<A: Applier, RT: AsyncRuntime> Seat<A, RT>
where
    Machine<A, RT>: OptionalSend + OptionalSync,
{
    /// Takes the seat of the member `id`, whose data has everything up to the entry `applied`. A
    /// leader is given up `failover` after its last word, about.
    ///
    /// # Errors
    /// What the disk says, or the library of its settings.
    pub async fn take<T: Transport>(
        id: MemberId,
        failover: Duration,
        transport: Arc<T>,
        log: Arc<GroupLog>,
        (applier, applied): (Arc<A>, Option<EntryId>),
    ) -> io::Result<Self> {
        let config = group_config(failover).validate().map_err(io::Error::other)?;
        let network = Network::new(transport, log.clone());
        let machine = Machine::new(log.clone(), applier, applied)?;
        let node = Node::new(id, Arc::new(config), network, Storage::new(log), machine);
        let node = node.await.map_err(io::Error::other)?;
        let metrics = node.metrics();
        Ok(Seat { node, metrics })
    }

    /// What [`crate::answer`] needs.
    pub fn node(&self) -> &Node<A, RT> {
        &self.node
    }

    /// Begins a new group, of this member alone.
    ///
    /// # Errors
    /// Why not.
    pub async fn begin(&self, id: MemberId, member: Member) -> Result<(), String> {
        let members = BTreeMap::from([(id, member)]);
        self.node.initialize(members).await.map_err(|error| error.to_string())
    }

    /// Whether the group has ever been begun, as far as this member knows.
    ///
    /// # Errors
    /// The member takes part no more.
    pub async fn has_begun(&self) -> Result<bool, String> {
        self.node.is_initialized().await.map_err(|error| error.to_string())
    }

    /// Waits until [`Seat::now`] may be another. Returns false once the member takes part no more.
    pub async fn changed(&mut self) -> bool {
        self.metrics.changed().await.is_ok()
    }

    /// How the member stands.
    pub fn now(&self) -> Now {
        let metrics = self.metrics.borrow_watched();
        Now {
            leads: metrics.state == ServerState::Leader,
            term: metrics.current_term,
            leader: metrics.current_leader,
            last_index: metrics.last_log_index.unwrap_or(0),
            applied_index: metrics.last_applied.map_or(0, |id| id.index),
            agreed_ago: match metrics.state == ServerState::Leader && is_alone(&metrics) {
                // Nobody is asked.
                true => Some(Duration::ZERO),
                false => metrics.last_quorum_acked.map(|at| at.into_inner().elapsed()),
            },
            stopped: metrics.running_state.as_ref().err().map(ToString::to_string),
        }
    }

    /// All members.
    pub fn members(&self) -> Vec<Seen> {
        let metrics = self.metrics.borrow_watched();
        let stored = &metrics.membership_config;
        let voters: BTreeSet<_> = stored.membership().voter_ids().collect();
        let seen = |(id, member): (&MemberId, &Member)| {
            let matched = metrics.replication.as_ref().and_then(|all| *all.get(id)?);
            let heard = metrics.heartbeat.as_ref().and_then(|all| *all.get(id)?);
            Seen {
                id: *id,
                member: member.clone(),
                votes: voters.contains(id),
                matched: matched.map(|entry| entry.index),
                silent: heard.map(|at| at.into_inner().elapsed()),
            }
        };
        stored.membership().nodes().map(seen).collect()
    }

    /// Whether a change of the members is under way.
    pub fn is_changing(&self) -> bool {
        let metrics = self.metrics.borrow_watched();
        metrics.membership_config != metrics.committed_membership_config
            || metrics.membership_config.membership().get_joint_config().len() > 1
    }

    /// Proposes what is in the log by now; waits for nothing.
    ///
    /// # Errors
    /// The member takes part no more.
    pub async fn propose(&self) -> Result<(), String> {
        self.node.client_write_ff(Cut, None).await.map_err(|error| error.to_string())
    }

    /// Adds a member that learns.
    ///
    /// # Errors
    /// Why not.
    pub async fn add(&self, id: MemberId, member: Member) -> Result<(), String> {
        let added = self.node.add_learner(id, member, false).await;
        added.map(drop).map_err(told)
    }

    /// Lets a member vote.
    ///
    /// # Errors
    /// Why not.
    pub async fn promote(&self, id: MemberId) -> Result<(), String> {
        self.change(ChangeMembers::AddVoterIds(BTreeSet::from([id]))).await
    }

    /// Removes a member: first its vote, then itself.
    ///
    /// # Errors
    /// Why not.
    pub async fn remove(&self, id: MemberId) -> Result<(), String> {
        if self.members().iter().any(|member| member.id == id && member.votes) {
            self.change(ChangeMembers::RemoveVoters(BTreeSet::from([id]))).await?;
        }
        self.change(ChangeMembers::RemoveNodes(BTreeSet::from([id]))).await
    }

    async fn change(&self, change: ChangeMembers<MemberId, Member>) -> Result<(), String> {
        let changed = self.node.change_membership(change, true).await;
        changed.map(drop).map_err(told)
    }

    /// Asks another member to lead. This one's lease is over from now on.
    ///
    /// # Errors
    /// The member takes part no more.
    pub async fn let_lead(&self, id: MemberId) -> Result<(), String> {
        self.node.trigger().transfer_leader(id).await.map_err(|error| error.to_string())
    }

    /// There is a newer checkpoint: entries up to `purge` may go, as far as it has them.
    ///
    /// # Errors
    /// The member takes part no more.
    pub async fn note_checkpoint(&self, purge: u64) -> Result<(), String> {
        let trigger = self.node.trigger();
        trigger.snapshot().await.map_err(|error| error.to_string())?;
        trigger.purge_log(purge).await.map_err(|error| error.to_string())
    }

    /// Whether the member tries to lead when it hears of no leader.
    pub fn may_stand(&self, may: bool) {
        self.node.runtime_config().elect(may);
    }

    /// Leaves the seat. A log that cannot be written, as on a full disk, holds nobody here.
    pub async fn leave(&self) {
        // It may have stopped already, and said why in its state.
        let _ = RT::timeout(LEAVE_MAX, self.node.shutdown()).await;
    }
}
