//! The thread `ladon-raft`: it sits in the group for this node.
//!
//! One thread with a runtime of its own has all connections to other members. It proposes what
//! clients wait for, tells the log what is committed and until when this node may answer for the
//! group, and sets the node's role. Nothing here decides who leads: openraft does, behind the crate
//! `raft`.

use super::handle::{Asked, Handle};
use super::standing::Standing;
use super::transport::{Answers, ByMesh};
use ladon_kernel::cluster::Order;
use ladon_kernel::pubsub::published::Kind;
use ladon_kernel::replication::Place as ClientPlace;
use ladon_kernel::role::Role;
use ladon_kernel::shared::Shared;
use ladon_log::Log;
use ladon_mesh::{Identity, Limits, Mesh};
use ladon_raft::{ExtentLog, GroupLog, GroupState, Index, Member, Now, Planted, Seat, Writers};
use ladon_record::Lsn;
use openraft_rt_tokio::TokioRuntime;
use parking_lot::Mutex;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedReceiver;

/// A node of the group, for those who answer the others.
pub(crate) type RaftNode = ladon_raft::Node<Standing, TokioRuntime>;

/// The seat of this node.
pub(crate) type OwnSeat = Seat<Standing, TokioRuntime>;

/// Proposals under way, so that entries grow with the load.
const PROPOSALS_MAX: u64 = 4;
/// What nobody waits for is proposed after so long.
const PROPOSE_EVERY: Duration = Duration::from_millis(5);
/// The same, while nothing comes.
const QUIET: Duration = Duration::from_millis(50);
/// A member that lacks no more than this may vote.
const NEAR_BYTES: u64 = 1 << 20;
/// Log in front of a checkpoint that is kept for members who are behind; who is further behind gets
/// the checkpoint.
const KEPT_BYTES: u64 = 64 << 20;
const LOOK_FOR_CHECKPOINT_EVERY: Duration = Duration::from_secs(1);
/// How long an order waits for another change of the members.
const CHANGE_WAIT_MAX: Duration = Duration::from_secs(5);
/// How often to look for members that may vote.
const LOOK_FOR_NEAR_EVERY: Duration = Duration::from_millis(100);

/// A recovered directory of a node that may be a member.
pub(crate) struct Place {
    pub(crate) shared: Arc<Shared>,
    pub(crate) log: Arc<Log>,
    pub(crate) standing: Arc<Standing>,
    pub(crate) index: Index,
    pub(crate) state: GroupState,
}

/// How the thread ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It was told to.
    Stopped,
    /// The data has what the group has not, and must be read anew.
    Diverged,
    /// Another member's data has come, and takes the place of this one's.
    Replaced,
}

/// What goes on while the node is a member.
struct Sitting {
    shared: Arc<Shared>,
    log: Arc<Log>,
    group_log: Arc<GroupLog>,
    standing: Arc<Standing>,
    handle: Arc<Handle>,
    seat: OwnSeat,
    failover: Duration,
    /// What was proposed last, and when.
    proposed: (Lsn, Instant),
    looked_for_near: Instant,
    looked_for_checkpoint: Instant,
    quiet_since: Instant,
    /// The leader answers for the group no more, because another one is to lead.
    hands_over: Arc<AtomicBool>,
    is_promoting: Arc<AtomicBool>,
    numbers: Arc<AtomicU64>,
    elects_from: Option<Instant>,
    replaced: Arc<AtomicBool>,
    /// What the last checkpoint needs that the group knows of.
    checkpoint: Lsn,
}

/// Runs until it is told to end.
pub(crate) fn run(
    place: Place,
    handle: &Arc<Handle>,
    listener: &TcpListener,
    orders: &mut UnboundedReceiver<Asked>,
) -> io::Result<Ended> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let listener = listener.try_clone()?;
    let ended = runtime.block_on(take_part(place, handle, listener, orders));
    runtime.shutdown_background();
    ended
}

async fn take_part(
    mut place: Place,
    handle: &Arc<Handle>,
    listener: TcpListener,
    orders: &mut UnboundedReceiver<Asked>,
) -> io::Result<Ended> {
    let identity = Arc::new(Mutex::new(Identity {
        cluster: place.state.cluster(),
        node: place.state.member(),
        incarnation: crate::random::random_u64(),
        address: handle.address.clone(),
        version: 1,
        features: 0,
    }));
    let mesh = Mesh::new(Arc::clone(&identity), handle.security(), Limits::default());
    let answers = Answers::new(Arc::clone(&handle.heard_leader));
    let service = Arc::clone(&answers);
    let listening = mesh.clone();
    tokio::spawn(async move {
        if let Err(error) = listening.listen(listener, service).await {
            tracing::error!("other members cannot reach this node: {error}");
        }
    });
    if place.state.member() == 0 && !await_membership(&mut place, handle, &identity, orders).await?
    {
        return Ok(Ended::Stopped);
    }
    let mut sitting = sit_down(place, handle, mesh, &answers).await?;
    let ended = sitting.run(orders).await;
    if let (Ended::Diverged, Some((from, to))) = (ended, sitting.standing.diverged()) {
        tracing::warn!(
            "another leader's log lacks what this node had at LSN {from} to {to}, which was not \
             committed: it is taken back, and the data is read anew"
        );
        handle.rewinds(to.0.saturating_sub(from.0));
    }
    answers.end();
    sitting.shared.role.set(Role::Follows);
    sitting.log.answer_for_group_until(0);
    sitting.log.others_reach(&[]);
    sitting.shared.good_replicas.store(0, SeqCst);
    sitting.seat.leave().await;
    handle.left();
    Ok(ended)
}

/// Waits until the node becomes a member; returns false if it stops first.
async fn await_membership(
    place: &mut Place,
    handle: &Arc<Handle>,
    identity: &Mutex<Identity>,
    orders: &mut UnboundedReceiver<Asked>,
) -> io::Result<bool> {
    place.shared.role.set(Role::Outside);
    handle.left();
    while let Some(Asked { order, answer }) = orders.recv().await {
        let joined = match order {
            None => return Ok(false),
            Some(Order::Create { cluster }) => Ok((cluster, 1)),
            Some(Order::Join { .. }) if place.log.reserved() > Lsn::ZERO => {
                Err("this node has data, and would get the cluster's instead: begin with an empty \
                     directory"
                    .to_owned())
            }
            Some(Order::Join { cluster, member }) if member > 1 => Ok((cluster, member)),
            Some(Order::Join { .. }) => Err("a member that joins has a number above 1".to_owned()),
            Some(_) => Err("this node is no member of a cluster".to_owned()),
        };
        match joined {
            Err(text) => answer(Err(text)),
            Ok((cluster, member)) => {
                // What is in the log came before the group.
                let begins = place.log.reserved();
                place.index = Index::after(None, begins);
                place.state.set_member(cluster, member, begins)?;
                let mut identity = identity.lock();
                (identity.cluster, identity.node) = (cluster, member);
                answer(Ok("OK".to_owned()));
                return Ok(true);
            }
        }
    }
    Ok(false)
}

async fn sit_down(
    place: Place,
    handle: &Arc<Handle>,
    mesh: Mesh,
    answers: &Arc<Answers>,
) -> io::Result<Sitting> {
    let Place { shared, log, standing, index, state } = place;
    let (cluster, id) = (state.cluster(), state.member());
    // Whoever has given a vote, or heard a leader, may not elect another one before that leader's
    // word is old.
    let may_have_promised = state.vote().is_some();
    let failover = Duration::from_millis(shared.settings.failover_timeout());
    let wake = Arc::new(Notify::new());
    let notify = {
        let wake = Arc::clone(&wake);
        Arc::new(move || wake.notify_one())
    };
    log.belongs_to_group(notify.clone());
    let writers = Arc::clone(&standing) as Arc<dyn Writers>;
    let clock = Arc::clone(&shared.clock);
    let made = GroupLog::new(Arc::clone(&log), clock, writers, (index, state), Planted::Nothing);
    let group_log = Arc::new(made?);
    group_log.wake_with(notify);
    // What a checkpoint holds is committed, and so is the rest of the entry that covers it.
    standing.catch_up(group_log.begin())?;
    // What was known to be committed, and is not in the data.
    let applied = group_log.committed()?;
    let (purged, _) = group_log.bounds();
    let first = purged.map_or(0, |purged| purged.index + 1);
    for entry in group_log.entries(first, applied.map_or(0, |applied| applied.index + 1))? {
        ladon_raft::Applier::apply(&*standing, &entry)?;
    }
    shared.role.set(Role::Follows);
    let patience = failover.max(Duration::from_millis(100));
    let transport = Arc::new(ByMesh { mesh, patience });
    let log_and_data = (Arc::clone(&standing), applied);
    let seat = OwnSeat::take(id, failover, transport, Arc::clone(&group_log), log_and_data).await?;
    let lease = ladon_raft::lease(failover);
    let elects_from = may_have_promised.then(|| Instant::now() + lease + lease / 5);
    seat.may_stand(elects_from.is_none());
    let replaced = Arc::new(AtomicBool::new(false));
    let signals = (Arc::clone(&replaced), Arc::clone(&wake));
    answers.begin(seat.node().clone(), Arc::clone(&group_log), elects_from, signals);
    if id == 1 && !seat.has_begun().await.map_err(io::Error::other)? {
        let (address, client) = (handle.address.clone(), handle.client.clone());
        let member = Member { address, client, ..Member::default() };
        seat.begin(id, member).await.map_err(io::Error::other)?;
    }
    handle.sits((cluster, id), seat.clone(), (&group_log, &standing), wake);
    let now = Instant::now();
    Ok(Sitting {
        shared,
        log,
        group_log,
        standing,
        handle: Arc::clone(handle),
        seat,
        failover,
        proposed: (Lsn::ZERO, now),
        looked_for_near: now,
        looked_for_checkpoint: now,
        quiet_since: now,
        hands_over: Arc::default(),
        is_promoting: Arc::default(),
        numbers: Arc::default(),
        elects_from,
        replaced,
        checkpoint: Lsn::ZERO,
    })
}

impl Sitting {
    async fn run(&mut self, orders: &mut UnboundedReceiver<Asked>) -> Ended {
        let wake = self.handle.wake();
        let mut seat = self.seat.clone();
        loop {
            tokio::select! {
                () = wake.notified() => {}
                goes_on = seat.changed() => if !goes_on {
                    // Its state says why. Nothing can be proposed or learnt any more.
                    tokio::time::sleep(QUIET).await;
                },
                asked = orders.recv() => match asked {
                    Some(Asked { order: Some(order), answer }) => self.obey(order, answer),
                    Some(Asked { order: None, .. }) | None => return Ended::Stopped,
                },
                () = tokio::time::sleep(self.pause()) => {}
            }
            if self.standing.diverged().is_some() {
                return Ended::Diverged;
            }
            if self.replaced.load(SeqCst) {
                // Who has sent it is still to hear that it is here.
                tokio::time::sleep(QUIET).await;
                return Ended::Replaced;
            }
            self.group_log.serve();
            let now = self.seat.now();
            if let Some(why) = &now.stopped {
                self.handle.has_stopped(why);
            }
            self.elect_from_now_on();
            self.take_role(&now);
            let members = self.seat.members();
            self.look_at_others(&now, &members);
            self.tell_of_leader(&now, &members);
            self.propose(&now).await;
            self.look_for_near(&now);
            self.look_for_checkpoint().await;
            // The connections and the library run on this thread too.
            tokio::task::yield_now().await;
        }
    }

    fn pause(&self) -> Duration {
        match self.shared.role.get() {
            Role::Leads if self.quiet_since.elapsed() < QUIET * 4 => PROPOSE_EVERY,
            _ => QUIET.min(self.failover / 6),
        }
    }

    fn elect_from_now_on(&mut self) {
        if self.elects_from.is_some_and(|from| from <= Instant::now()) {
            self.elects_from = None;
            self.seat.may_stand(true);
        }
    }

    /// Tells the log how long this node answers for the group, and requests what it may do.
    fn take_role(&self, now: &Now) {
        let lease = ladon_raft::lease(self.failover);
        // Clocks may differ by a fifth.
        let left = now.agreed_ago.map(|ago| (lease - lease / 5).saturating_sub(ago));
        let leads = now.leads && self.standing.writes() && !self.hands_over.load(SeqCst);
        let left = left.filter(|_| leads && now.stopped.is_none());
        let until_ns = match left {
            None => 0,
            // It leads, and may not answer.
            Some(Duration::ZERO) => 1,
            Some(left) => self.shared.clock.monotonic_ns() + left.as_nanos() as u64,
        };
        self.log.answer_for_group_until(until_ns);
        let role = match left {
            None => Role::Follows,
            Some(Duration::ZERO) => Role::CutOff,
            Some(_) => Role::Leads,
        };
        let before = self.shared.role.get();
        if before != role {
            self.shared.role.set(role);
            tracing::info!("term {}: this node {}", now.term, told(role));
            self.handle.role_changed();
        }
    }

    /// Tells subscribers of another leader, as sentinels of Redis do.
    fn tell_of_leader(&self, now: &Now, members: &[ladon_raft::Seen]) {
        let is_own = now.leads && self.shared.role.get() == Role::Leads;
        let Some(leader) = now.leader.filter(|_| is_own || !now.leads) else { return };
        let Some(leading) = members.iter().find(|it| it.id == leader) else { return };
        let Some(before) = self.handle.leader_is_at(&leading.member.client) else { return };
        let (before, new) = (ClientPlace::of(&before), ClientPlace::of(&leading.member.client));
        let name = self.shared.settings.sentinel_master_name();
        let text = format!("{name} {} {} {} {}", before.host, before.port, new.host, new.port);
        let pubsub = &self.shared.pubsub;
        pubsub.publish(Kind::Channel, b"+switch-master", text.as_bytes(), Lsn::ZERO);
        // No IO thread is this one.
        pubsub.wake(usize::MAX);
    }

    /// Tells the log what the other members have, for `WAIT`, and counts those that were heard of
    /// lately, for `min-replicas-to-write`.
    fn look_at_others(&self, now: &Now, members: &[ladon_raft::Seen]) {
        let others = members.iter().filter(|member| now.leads && Some(member.id) != now.leader);
        let has = others.clone().filter_map(|member| self.group_log.end_of(member.matched?));
        self.log.others_reach(&has.collect::<Vec<_>>());
        let lag = Duration::from_secs(self.shared.settings.min_replicas_max_lag().into());
        let good = others.filter(|member| member.silent.is_some_and(|silent| silent <= lag));
        self.shared.good_replicas.store(good.count() as u64, SeqCst);
    }

    async fn propose(&mut self, now: &Now) {
        if !now.leads || !self.standing.writes() {
            return;
        }
        let (end, records) = (self.group_log.end(), self.log.records_end());
        let (upto, at) = self.proposed;
        // The library may have dropped it, and says nothing.
        let proposed = if at.elapsed() < QUIET { end.max(upto) } else { end };
        let is_wanted = self.log.wanted_committed() > proposed;
        if records > proposed {
            self.quiet_since = Instant::now();
        }
        let is_due = records > proposed && at.elapsed() >= PROPOSE_EVERY;
        let under_way = now.last_index.saturating_sub(now.applied_index);
        if (is_wanted || is_due) && under_way < PROPOSALS_MAX {
            self.proposed = (self.log.reserved(), Instant::now());
            // If it takes part no more, its state says so.
            let _ = self.seat.propose().await;
        }
    }

    /// Entries that a checkpoint holds may go, but for some that members lack who are a little
    /// behind.
    async fn look_for_checkpoint(&mut self) {
        if self.looked_for_checkpoint.elapsed() < LOOK_FOR_CHECKPOINT_EVERY {
            return;
        }
        self.looked_for_checkpoint = Instant::now();
        let newest = self.log.last_checkpoint().map_or(Lsn::ZERO, |info| info.newest);
        // Without the members as of it, it is no snapshot for the group.
        let is_known = || matches!(self.group_log.snapshot(), Ok(Some(_)));
        // The library drops entries that a checkpoint holds which it has noted before.
        let is_due = newest > self.checkpoint || self.group_log.lacks_begin();
        if is_due && is_known() {
            self.checkpoint = newest;
            let kept = Lsn(newest.0.saturating_sub(KEPT_BYTES));
            let purge = self.group_log.covering(kept).map_or(0, |entry| entry.index);
            // If it takes part no more, its state says so.
            let _ = self.seat.note_checkpoint(purge).await;
        }
    }

    /// Lets members vote that have nearly the whole log, one at a time.
    fn look_for_near(&mut self, now: &Now) {
        if !now.leads || self.looked_for_near.elapsed() < LOOK_FOR_NEAR_EVERY {
            return;
        }
        self.looked_for_near = Instant::now();
        if self.is_promoting.load(SeqCst) || self.seat.is_changing() {
            return;
        }
        let end = self.group_log.end();
        let is_near = |matched: Option<u64>| {
            let has = matched.and_then(|index| self.group_log.end_of(index));
            has.is_some_and(|has| end.0 - has.0 <= NEAR_BYTES)
        };
        let removed = self.handle.removed();
        let near = self.seat.members().into_iter().find(|member| {
            let may = !member.votes && !member.member.is_replica;
            may && is_near(member.matched) && !removed.contains(&member.id)
        });
        let Some(near) = near else { return };
        self.is_promoting.store(true, SeqCst);
        let (seat, is_promoting) = (self.seat.clone(), Arc::clone(&self.is_promoting));
        tokio::spawn(async move {
            match seat.promote(near.id).await {
                Ok(()) => tracing::info!("member {} at {} votes", near.id, near.member),
                Err(error) => tracing::warn!("member {} does not vote yet: {error}", near.id),
            }
            is_promoting.store(false, SeqCst);
        });
    }

    fn obey(&self, order: Order, answer: Box<dyn FnOnce(Result<String, String>) + Send>) {
        let now = self.seat.now();
        if !now.leads {
            let leader = self.handle.leader_told();
            return answer(Err(format!("this node does not lead its cluster{leader}")));
        }
        let (seat, handle) = (self.seat.clone(), Arc::clone(&self.handle));
        let is_promoting = Arc::clone(&self.is_promoting);
        let group_log = Arc::clone(&self.group_log);
        match order {
            Order::Create { .. } | Order::Join { .. } => {
                answer(Err("this node is a member of a cluster already".to_owned()));
            }
            Order::Number => {
                // The log only grows, and each new member is an entry of it.
                let number = self.numbers.load(SeqCst).max(now.last_index) + 1;
                self.numbers.store(number, SeqCst);
                answer(Ok(number.to_string()));
            }
            Order::Add { member, address, client, is_replica } => {
                tokio::spawn(async move {
                    if seat.members().iter().any(|other| other.id == member) {
                        return answer(Err(format!("there is a member {member} already")));
                    }
                    let added = Member { address, client, is_replica, is_witness: false };
                    await_members(&seat, &is_promoting).await;
                    if group_log.lacks_begin() {
                        let text = "what this node had before the cluster is in no checkpoint yet \
                                    that a new member could be sent: BGSAVE, and try again";
                        return answer(Err(text.to_owned()));
                    }
                    answer(seat.add(member, added).await.map(|()| "OK".to_owned()));
                });
            }
            Order::Remove { member } => {
                if now.leader == Some(member) {
                    let text = "the leader cannot be removed: let another member lead first";
                    return answer(Err(text.to_owned()));
                }
                tokio::spawn(async move {
                    await_members(&seat, &is_promoting).await;
                    // It learns for a moment, and is not to vote again.
                    handle.removes(member);
                    let removed = seat.remove(member).await;
                    if removed.is_err() {
                        handle.removes_not(member);
                    }
                    answer(removed.map(|()| "OK".to_owned()));
                });
            }
            Order::Lead { member } => self.hand_over(member, answer),
        }
    }

    /// Lets another member lead. Writes wait meanwhile, so that none is lost on the way.
    fn hand_over(
        &self,
        wanted: Option<u64>,
        answer: Box<dyn FnOnce(Result<String, String>) + Send>,
    ) {
        let members = self.seat.members();
        let own = self.seat.now().leader;
        let may = |seen: &&ladon_raft::Seen| {
            seen.votes && Some(seen.id) != own && wanted.is_none_or(|wanted| wanted == seen.id)
        };
        let Some(target) = members.iter().filter(may).max_by_key(|seen| seen.matched) else {
            return answer(Err("there is no such voting member".to_owned()));
        };
        let (id, patience) = (target.id, self.failover * 4);
        let (seat, shared, log) =
            (self.seat.clone(), Arc::clone(&self.shared), Arc::clone(&self.log));
        let (hands_over, clock) = (Arc::clone(&self.hands_over), Arc::clone(&self.shared.clock));
        let wake = self.handle.wake();
        tokio::spawn(async move {
            let deadline = Instant::now() + patience;
            let until_ms = clock.unix_ms() + patience.as_millis() as u64;
            let pause = shared.pause(until_ms, ladon_kernel::shared::Paused::Writes);
            let step = Duration::from_millis(2);
            let is_quiet = || shared.is_pause_seen(pause, usize::MAX);
            while !is_quiet() && Instant::now() < deadline {
                tokio::time::sleep(step).await;
            }
            log.want_committed(log.records_end());
            let matches = || {
                let now = seat.now();
                let matched = seat.members().into_iter().find(|seen| seen.id == id);
                log.committed() >= log.records_end()
                    && matched.is_some_and(|seen| seen.matched == Some(now.last_index))
            };
            while !matches() && Instant::now() < deadline {
                tokio::time::sleep(step).await;
            }
            let mut told = Err(format!("member {id} did not catch up in time"));
            if matches() {
                hands_over.store(true, SeqCst);
                log.answer_for_group_until(0);
                told = seat.let_lead(id).await.map(|()| format!("member {id} leads"));
                while told.is_ok() && seat.now().leader != Some(id) {
                    if Instant::now() >= deadline {
                        told = Err(format!("member {id} does not lead yet"));
                    }
                    tokio::time::sleep(step).await;
                }
                hands_over.store(false, SeqCst);
            }
            shared.unpause();
            wake.notify_one();
            answer(told);
        });
    }
}

/// Waits, for a while, until no change of the members is under way: there is one at a time.
async fn await_members(seat: &OwnSeat, is_promoting: &AtomicBool) {
    let began = Instant::now();
    while (is_promoting.load(SeqCst) || seat.is_changing()) && began.elapsed() < CHANGE_WAIT_MAX {
        tokio::time::sleep(PROPOSE_EVERY).await;
    }
}

fn told(role: Role) -> &'static str {
    match role {
        Role::Alone | Role::Leads => "leads",
        Role::Follows => "follows",
        Role::CutOff => "leads and does not hear most members: clients have to wait",
        Role::Outside => "is no member of a cluster",
    }
}
