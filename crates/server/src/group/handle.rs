//! What the rest of the server knows of the thread that sits in the group.

use super::orders::kind_of;
use super::standing::Standing;
use ladon_kernel::cluster::{Cluster, ClusterId, MemberView, Order, Orders, View};
use ladon_kernel::message::{Message, ThreadHandle};
use ladon_raft::{AsyncRuntime, GroupLog, Machine, Seat};
use ladon_record::Lsn;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedSender;

/// How long an operator's order may take.
const ORDER_TIME: Duration = Duration::from_secs(10);

/// An operator's order, or `None`: the thread has to end.
pub struct Asked {
    /// What is to be done.
    pub order: Option<Order>,
    /// Gets what came of it.
    pub answer: Box<dyn FnOnce(Result<String, String>) + Send>,
}

/// The node's side of its cluster.
pub struct Handle<RT: AsyncRuntime>
where
    Machine<Standing, RT>: Send + Sync,
{
    /// Where other members reach this node.
    pub(crate) address: String,
    /// Where clients reach it.
    pub(crate) client: String,
    /// When a leader's word came last.
    pub(crate) heard_leader: Arc<Mutex<Option<Instant>>>,
    /// Where clients reach the leader of whom they were told last.
    told_leader: Mutex<Option<String>>,
    orders: UnboundedSender<Asked>,
    under_way: Orders,
    threads: Arc<[ThreadHandle]>,
    inner: Mutex<Inner<RT>>,
}

struct Inner<RT: AsyncRuntime>
where
    Machine<Standing, RT>: Send + Sync,
{
    seat: Option<Sits<RT>>,
    wake: Arc<Notify>,
    stopped: Option<String>,
    removed: BTreeSet<u64>,
    rewinds: u64,
    taken_back_bytes: u64,
}

struct Sits<RT: AsyncRuntime>
where
    Machine<Standing, RT>: Send + Sync,
{
    cluster: ClusterId,
    member: u64,
    seat: Seat<Standing, RT>,
    group_log: Arc<GroupLog>,
    standing: Arc<Standing>,
}

impl<RT: AsyncRuntime> Handle<RT>
where
    Machine<Standing, RT>: Send + Sync,
{
    /// That of a node which other members and clients reach there. Orders go to `orders`.
    pub fn new(
        (address, client): (String, String),
        orders: UnboundedSender<Asked>,
        threads: Arc<[ThreadHandle]>,
    ) -> Arc<Handle<RT>> {
        Arc::new(Handle {
            address,
            client,
            heard_leader: Arc::default(),
            told_leader: Mutex::default(),
            orders,
            under_way: Orders::default(),
            threads,
            inner: Mutex::new(Inner {
                seat: None,
                wake: Arc::default(),
                stopped: None,
                removed: BTreeSet::new(),
                rewinds: 0,
                taken_back_bytes: 0,
            }),
        })
    }

    pub(crate) fn sits(
        &self,
        (cluster, member): (ClusterId, u64),
        seat: Seat<Standing, RT>,
        (group_log, standing): (&Arc<GroupLog>, &Arc<Standing>),
        wake: Arc<Notify>,
    ) {
        let (group_log, standing) = (Arc::clone(group_log), Arc::clone(standing));
        let mut inner = self.inner.lock();
        inner.seat = Some(Sits { cluster, member, seat, group_log, standing });
        (inner.wake, inner.stopped) = (wake, None);
    }

    /// The seat is free: the node stops, or reads its data anew.
    pub(crate) fn left(&self) {
        self.inner.lock().seat = None;
    }

    pub(crate) fn wake(&self) -> Arc<Notify> {
        Arc::clone(&self.inner.lock().wake)
    }

    /// The node takes part no more.
    pub(crate) fn has_stopped(&self, why: &str) {
        let mut inner = self.inner.lock();
        if inner.stopped.is_none() {
            tracing::error!("this node takes part in its cluster no more: {why}");
            inner.stopped = Some(why.to_owned());
        }
    }

    /// The data is read anew, because it had so much that the group has not.
    pub(crate) fn rewinds(&self, bytes: u64) {
        let mut inner = self.inner.lock();
        inner.rewinds += 1;
        inner.taken_back_bytes += bytes;
    }

    pub(crate) fn removes(&self, member: u64) {
        self.inner.lock().removed.insert(member);
    }

    /// It belongs after all.
    pub(crate) fn removes_not(&self, member: u64) {
        self.inner.lock().removed.remove(&member);
    }

    pub(crate) fn removed(&self) -> BTreeSet<u64> {
        self.inner.lock().removed.clone()
    }

    /// Clients wait for what this role does not give.
    pub(crate) fn role_changed(&self) {
        self.threads.iter().for_each(|thread| thread.send(Message::RoleChanged));
    }

    /// Notes where clients reach the leader. Returns where they did before, if that was elsewhere.
    pub(crate) fn leader_is_at(&self, client: &str) -> Option<String> {
        let mut told = self.told_leader.lock();
        if told.as_deref() == Some(client) {
            return None;
        }
        told.replace(client.to_owned())
    }

    /// For errors: where the leader is, if that is known.
    pub(crate) fn leader_told(&self) -> String {
        let view = self.view();
        let leading = view.leading();
        leading.map_or(String::new(), |it| format!(": member {} at {} does", it.id, it.client))
    }

    /// The thread has to end.
    pub(crate) fn stop(&self) {
        // Where it has ended, nobody listens.
        let _ = self.orders.send(Asked { order: None, answer: Box::new(|_| ()) });
    }
}

impl<RT: AsyncRuntime> Cluster for Handle<RT>
where
    Machine<Standing, RT>: Send + Sync,
{
    fn view(&self) -> View {
        let inner = self.inner.lock();
        let (address, client) = (self.address.clone(), self.client.clone());
        let (rewinds, taken_back_bytes) = (inner.rewinds, inner.taken_back_bytes);
        let stopped = inner.stopped.clone();
        let outside =
            View { address, client, rewinds, taken_back_bytes, stopped, ..View::default() };
        let Some(sits) = &inner.seat else { return outside };
        let now = sits.seat.now();
        let end_of = |index| sits.group_log.end_of(index);
        let own = (sits.member, sits.group_log.log().durable());
        let member = |seen: ladon_raft::Seen| MemberView {
            id: seen.id,
            kind: kind_of(&seen.member),
            address: seen.member.address,
            client: seen.member.client,
            votes: seen.votes,
            has: if seen.id == own.0 { Some(own.1) } else { seen.matched.and_then(end_of) },
            silent: if seen.id == own.0 { Some(Duration::ZERO) } else { seen.silent },
        };
        View {
            cluster: sits.cluster.iter().map(|byte| format!("{byte:02x}")).collect(),
            member: sits.member,
            term: now.term,
            leader: now.leader,
            members: sits.seat.members().into_iter().map(member).collect(),
            end: sits.group_log.end().max(match now.leads {
                true => sits.group_log.log().records_end(),
                false => Lsn::ZERO,
            }),
            committed: sits.group_log.log().committed(),
            applied: sits.standing.applied(),
            heard_leader: self.heard_leader.lock().map(|at| at.elapsed()),
            ..outside
        }
    }

    fn orders(&self) -> &Orders {
        &self.under_way
    }

    fn order(&self, order: Order) -> Result<String, String> {
        let (sender, answer) = channel();
        let asked = Asked {
            order: Some(order),
            // Who asked may wait no more.
            answer: Box::new(move |answer| drop(sender.send(answer))),
        };
        self.orders.send(asked).map_err(|_| "the node stops".to_owned())?;
        match answer.recv_timeout(ORDER_TIME) {
            Ok(answer) => answer,
            Err(RecvTimeoutError::Timeout) => {
                Err(format!("it is not done after {} s, and may still be", ORDER_TIME.as_secs()))
            }
            Err(RecvTimeoutError::Disconnected) => Err("the node stops".to_owned()),
        }
    }
}
