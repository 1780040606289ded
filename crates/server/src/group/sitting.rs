//! A member's seat, and all that it decides from turn to turn: proposals, the lease, the role, who may
//! vote, which checkpoint the group knows of.
//!
//! No thread, socket or clock of its own: whoever has a runtime calls [`Sitting::turn`] whenever
//! something may have changed, and after [`Sitting::pause`] at the latest. The server does so on the
//! thread `ladon-raft`, the simulator in virtual time.

use super::answers::{Answers, KINDS_DIFFER, Signals};
use super::handle::Handle;
use super::planted::Planted;
use super::read_index::ReadIndex;
use super::standing::{Rest, Standing};
use crate::dropper::Dropper;
use crate::recovery::{Recovered, RecoveredGroup};
use ladon_kernel::pubsub::published::Kind;
use ladon_kernel::replication::Place as ClientPlace;
use ladon_kernel::role::Role;
use ladon_kernel::shared::Shared;
use ladon_log::Log;
use ladon_platform::Disk;
use ladon_raft::{
    AsyncRuntime, EntryId, ExtentLog, GroupLog, GroupState, Index, Machine, Member, Now, Payload,
    RuntimeInstant, Seat, Transport, Writers,
};
use ladon_record::Lsn;
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;
use tokio::sync::Notify;

/// Proposals under way, so that entries grow with the load.
const PROPOSALS_MAX: u64 = 4;
/// So much is proposed at once, also beside others under way: an entry travels in one message, which
/// takes memory at both ends, and the time of those who read and write it.
const ENTRY_BYTES: u64 = 1 << 20;
/// Proposals under way, those of so much among them.
const FULL_PROPOSALS_MAX: u64 = 1024;
/// What nobody waits for is proposed after so long.
pub(super) const PROPOSE_EVERY: Duration = Duration::from_millis(5);
/// The same, while nothing comes.
pub(super) const QUIET: Duration = Duration::from_millis(50);
/// A member that lacks no more than this may vote.
const NEAR_BYTES: u64 = 1 << 20;
/// Log in front of a checkpoint that is kept for members who are behind; who is further behind gets
/// the checkpoint.
const KEPT_BYTES: u64 = 64 << 20;
const LOOK_FOR_CHECKPOINT_EVERY: Duration = Duration::from_secs(1);
/// The same of a witness: a member with data that lacks more than that can be helped by the others with
/// data alone.
const KEPT_BY_WITNESS_BYTES: u64 = 1 << 30;
/// A witness stands for election once it has heard of no leader for so many times `failover-timeout`:
/// members with data have tried by then, and most of them lack something that it has.
const WITNESS_WAITS: u32 = 4;
/// How often to look for members that may vote.
const LOOK_FOR_NEAR_EVERY: Duration = Duration::from_millis(100);

/// A recovered directory of a node that may be a member.
pub struct Place {
    /// What is not about data.
    pub shared: Arc<Shared>,
    /// The log.
    pub log: Arc<Log>,
    /// What of the group's log the data has.
    pub standing: Arc<Standing>,
    /// Where the group's entries are.
    pub index: Index,
    /// The vote, the members, what is committed.
    pub state: GroupState,
    /// Where the directory is.
    pub disk: Arc<dyn Disk>,
    /// Testing only.
    pub planted: Planted,
}

/// Lets a recovered node follow, until its cluster says otherwise. Waits for the node's threads by
/// `rest`.
///
/// # Panics
/// If the directory is not that of a node of a cluster, or if this was called before.
pub fn stand(
    shared: &Arc<Shared>,
    recovered: &mut Recovered,
    disk: Arc<dyn Disk>,
    (dropper, rest): (Option<Dropper>, Rest),
    planted: Planted,
) -> Place {
    let RecoveredGroup { index, state, has } = match recovered.group.take() {
        Some(group) => group,
        None => unreachable!("the directory of a node of a cluster has a state"),
    };
    let (keyspace, log) = (Arc::clone(&recovered.keyspace), Arc::clone(&recovered.log));
    let is_member = state.member() != 0;
    keyspace.set_follower(true);
    log.set_follower(true);
    let data = (keyspace, Arc::clone(&log));
    let has = (has, state.is_witness());
    let standing = Standing::new(Arc::clone(shared), data, has, (dropper, rest), planted);
    shared.role.set(if is_member { standing.role_of_follower() } else { Role::Outside });
    Place { shared: Arc::clone(shared), log, standing, index, state, disk, planted }
}

/// How the thread ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It was told to.
    Stopped,
    /// The data has what the group has not, and must be read anew.
    Diverged,
    /// Another member's data has come, and takes the place of this one's.
    Replaced,
}

/// Bytes of the log.
#[derive(Clone, Copy, Debug)]
pub struct Amounts {
    /// See [`KEPT_BYTES`].
    pub kept: u64,
    /// See [`ENTRY_BYTES`].
    pub entry: u64,
}

impl Amounts {
    fn of(is_witness: bool) -> Amounts {
        let kept = if is_witness { KEPT_BY_WITNESS_BYTES } else { KEPT_BYTES };
        Amounts { kept, entry: ENTRY_BYTES }
    }
}

/// What goes on while the node is a member.
pub struct Sitting<RT: AsyncRuntime>
where
    Machine<Standing, RT>: Send + Sync,
{
    pub(super) shared: Arc<Shared>,
    pub(super) log: Arc<Log>,
    pub(super) group_log: Arc<GroupLog>,
    standing: Arc<Standing>,
    pub(super) handle: Arc<Handle<RT>>,
    pub(super) seat: Seat<Standing, RT>,
    pub(super) failover: Duration,
    read_index: ReadIndex<RT>,
    /// What was proposed last, and when.
    proposed: (Lsn, RT::Instant),
    looked_for_near: RT::Instant,
    looked_for_checkpoint: RT::Instant,
    quiet_since: RT::Instant,
    /// The leader answers for the group no more, because another one is to lead.
    pub(super) hands_over: Arc<AtomicBool>,
    pub(super) is_promoting: Arc<AtomicBool>,
    pub(super) numbers: Arc<AtomicU64>,
    elects_from: Option<RT::Instant>,
    /// It has no data, and never leads but to bring a member that has some up to its log.
    pub(super) is_witness: bool,
    /// When a leader's word came last.
    heard: Arc<Mutex<RT::Instant>>,
    /// When a witness that leads has let another member lead.
    handed_on: Option<RT::Instant>,
    replaced: Arc<AtomicBool>,
    /// What the last checkpoint needs that the group knows of.
    checkpoint: Lsn,
    /// Others than the usual ones in tests only.
    pub amounts: Amounts,
    planted: Planted,
}

impl<RT: AsyncRuntime> Sitting<RT>
where
    Machine<Standing, RT>: Send + Sync,
{
    /// Takes the seat that the directory says, in a new group if it is the first member of one.
    ///
    /// # Errors
    /// What the disk says, or the library.
    pub async fn take<T: Transport>(
        place: Place,
        handle: &Arc<Handle<RT>>,
        transport: Arc<T>,
        answers: &Arc<Answers<RT>>,
    ) -> io::Result<Self> {
        let Place { shared, log, standing, index, state, disk, planted } = place;
        let (cluster, id) = (state.cluster(), state.member());
        let is_witness = state.is_witness();
        standing.keeps_the_log_alone(is_witness);
        // Whoever has given a vote, or heard a leader, may not elect another one before that leader's
        // word is old.
        let may_have_promised = state.vote().is_some() && planted != Planted::LeaseForgotten;
        let failover = Duration::from_millis(shared.settings.failover_timeout());
        let wake = Arc::new(Notify::new());
        let woken = Arc::clone(&wake);
        let notify = Arc::new(move || woken.notify_one());
        log.belongs_to_group(notify.clone());
        let writers = Arc::clone(&standing) as Arc<dyn Writers>;
        let clock = Arc::clone(&shared.clock);
        let made =
            GroupLog::new(Arc::clone(&log), clock, writers, (index, state), planted.in_log());
        let group_log = Arc::new(made?);
        group_log.wake_with(notify);
        // What a checkpoint holds is committed, and so is the rest of the entry that covers it.
        standing.catch_up(group_log.begin())?;
        let applied = apply_committed(&group_log, &standing)?;
        shared.role.set(standing.role_of_follower());
        let log_and_data = (Arc::clone(&standing), applied);
        let read_index =
            ReadIndex::new((&shared, &standing), &transport, (&wake, failover), planted);
        let seat = Seat::take(id, failover, transport, Arc::clone(&group_log), log_and_data);
        let seat = seat.await?;
        let lease = ladon_raft::lease(failover);
        let elects_from = may_have_promised.then(|| RT::Instant::now() + lease + lease / 5);
        seat.may_stand(elects_from.is_none() && !is_witness);
        let heard = Arc::new(Mutex::new(RT::Instant::now()));
        let replaced = Arc::new(AtomicBool::new(false));
        let signals = Signals {
            replaced: Arc::clone(&replaced),
            heard: Arc::clone(&heard),
            wake: Arc::clone(&wake),
        };
        let log_of_answers = (Arc::clone(&group_log), disk);
        answers.begin(seat.node().clone(), log_of_answers, elects_from, (signals, planted));
        if id == 1 && !seat.has_begun().await.map_err(io::Error::other)? {
            let (address, client) = (handle.address.clone(), handle.client.clone());
            let member = Member { address, client, ..Member::default() };
            seat.begin(id, member).await.map_err(io::Error::other)?;
        }
        handle.sits((cluster, id), seat.clone(), (&group_log, &standing), wake);
        let now = RT::Instant::now();
        Ok(Sitting {
            shared,
            log,
            group_log,
            standing,
            handle: Arc::clone(handle),
            seat,
            failover,
            read_index,
            proposed: (Lsn::ZERO, now),
            looked_for_near: now,
            looked_for_checkpoint: now,
            quiet_since: now,
            hands_over: Arc::default(),
            is_promoting: Arc::default(),
            numbers: Arc::default(),
            elects_from,
            is_witness,
            heard,
            handed_on: None,
            replaced,
            checkpoint: Lsn::ZERO,
            amounts: Amounts::of(is_witness),
            planted,
        })
    }

    /// Tells the seat's changes, and takes part.
    pub fn seat(&self) -> &Seat<Standing, RT> {
        &self.seat
    }

    /// Looks at everything once, and does what is to be done. Returns how the seat has to be left, if
    /// it has to.
    pub async fn turn(&mut self) -> Option<Ended> {
        if self.standing.diverged().is_some() && self.planted != Planted::RewindSkipped {
            return Some(Ended::Diverged);
        }
        if self.replaced.load(SeqCst) {
            // Who has sent it is still to hear that it is here.
            RT::sleep(QUIET).await;
            return Some(Ended::Replaced);
        }
        self.group_log.serve();
        let now = self.seat.now();
        if let Some(why) = &now.stopped {
            self.handle.has_stopped(why);
        }
        self.elect_from_now_on();
        self.take_role(&now);
        let members = self.seat.members();
        if self.is_witness {
            self.hand_on(&now, &members).await;
        }
        self.read_index.turn(now.leader.filter(|_| !now.leads), &members);
        self.look_at_own(&now, &members);
        self.look_at_others(&now, &members);
        self.tell_of_leader(&now, &members);
        self.propose(&now).await;
        self.look_for_near(&now);
        self.look_for_checkpoint().await;
        None
    }

    /// When to take the next turn if nothing is heard of.
    pub fn pause(&self) -> Duration {
        let usual = match self.shared.role.get() {
            Role::Leads if self.quiet_since.elapsed() < QUIET * 4 => PROPOSE_EVERY,
            _ => QUIET.min(self.failover / 6),
        };
        self.read_index.pause().map_or(usual, |pause| usual.min(pause))
    }

    /// Leaves the seat: nobody is answered, and this node answers for nobody.
    pub async fn leave(&self, ended: Ended, answers: &Answers<RT>) {
        if let (Ended::Diverged, Some((from, to))) = (ended, self.standing.diverged()) {
            tracing::warn!(
                "another leader's log lacks what this node had at LSN {from} to {to}, which was not \
                 committed: it is taken back, and the data is read anew"
            );
            self.handle.rewinds(to.0.saturating_sub(from.0));
        }
        answers.end();
        self.shared.leader_reads.begin_epoch();
        self.shared.role.set(self.standing.role_of_follower());
        self.log.answer_for_group_until(0);
        self.log.others_reach(&[]);
        self.shared.good_replicas.store(0, SeqCst);
        self.seat.leave().await;
        self.handle.left();
    }

    /// The node ends without leaving, as if it were killed: what knows each other lets go.
    pub fn let_go(&self) {
        self.handle.left();
    }

    fn elect_from_now_on(&mut self) {
        if self.elects_from.is_some_and(|from| from <= RT::Instant::now()) {
            self.elects_from = None;
            self.seat.may_stand(!self.is_witness);
        }
        if self.is_witness && self.elects_from.is_none() {
            let silent = self.heard.lock().elapsed();
            self.seat.may_stand(silent > self.failover * WITNESS_WAITS);
        }
    }

    /// A witness that leads has what no other member had that could be elected. Lets the first one lead
    /// that has the data and all of its log.
    async fn hand_on(&mut self, now: &Now, members: &[ladon_raft::Seen]) {
        let has_just = self.handed_on.is_some_and(|at| at.elapsed() < self.failover);
        if !now.leads || has_just {
            return;
        }
        let has_all = |seen: &&ladon_raft::Seen| {
            seen.votes && !seen.member.is_witness && seen.matched == Some(now.last_index)
        };
        if let Some(seen) = members.iter().find(has_all) {
            tracing::info!("member {} has what this witness has, and is to lead", seen.id);
            self.handed_on = Some(RT::Instant::now());
            // If it takes part no more, its state says so.
            let _ = self.seat.let_lead(seen.id).await;
        }
    }

    /// Who takes this node for a member with data, while it is a witness, or the other way round, is
    /// told that it is no use.
    fn look_at_own(&self, now: &Now, members: &[ladon_raft::Seen]) {
        let own = self.group_log.with_state(|state| state.member());
        let as_member = members.iter().find(|seen| seen.id == own && now.stopped.is_none());
        if as_member.is_some_and(|seen| seen.member.is_witness != self.is_witness) {
            self.handle.has_stopped(KINDS_DIFFER);
            self.seat.may_stand(false);
        }
    }

    /// Tells the log how long this node answers for the group, and requests what it may do.
    fn take_role(&self, now: &Now) {
        let lease = ladon_raft::lease(self.failover);
        // Clocks may differ by a fifth.
        let left = now.agreed_ago.map(|ago| (lease - lease / 5).saturating_sub(ago));
        let left = match self.planted {
            Planted::LeaseIgnored => left.map(|_| lease * 100),
            _ => left,
        };
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
            None => self.standing.role_of_follower(),
            Some(Duration::ZERO) => Role::CutOff,
            Some(_) => Role::Leads,
        };
        let before = self.shared.role.get();
        if before != role {
            self.shared.role.set(role);
            tracing::info!("term {}: this node {}", now.term, told(role));
            self.handle.role_changed();
        }
        if self.planted == Planted::EarlyQuorum && leads {
            self.log.advance_committed(self.log.durable());
        }
    }

    /// Tells subscribers of another leader, as sentinels of Redis do.
    fn tell_of_leader(&self, now: &Now, members: &[ladon_raft::Seen]) {
        let is_own = now.leads && self.shared.role.get() == Role::Leads;
        let Some(leader) = now.leader.filter(|_| is_own || !now.leads) else { return };
        let is_it = |it: &&ladon_raft::Seen| it.id == leader && !it.member.is_witness;
        let Some(leading) = members.iter().find(is_it) else { return };
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
        let is_copy = |member: &&ladon_raft::Seen| {
            !member.member.is_witness || self.planted == Planted::WitnessCounted
        };
        let others = members.iter().filter(|member| now.leads && Some(member.id) != now.leader);
        let others = others.filter(is_copy);
        let has = others.clone().filter_map(|member| match self.planted {
            Planted::EarlyCount => Some(self.group_log.end()),
            _ => self.group_log.end_of(member.matched?),
        });
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
            self.quiet_since = RT::Instant::now();
        }
        let is_due = records > proposed && at.elapsed() >= PROPOSE_EVERY;
        let under_way = now.last_index.saturating_sub(now.applied_index);
        let is_full = records.0.saturating_sub(proposed.0) >= self.amounts.entry;
        let most = if is_full { FULL_PROPOSALS_MAX } else { PROPOSALS_MAX };
        if (is_wanted || is_due || is_full) && under_way < most {
            self.proposed = (self.log.reserved(), RT::Instant::now());
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
        self.looked_for_checkpoint = RT::Instant::now();
        let newest = self.log.last_checkpoint().map_or(Lsn::ZERO, |info| info.newest);
        // Without the members as of it, it is no snapshot for the group.
        let is_known = || matches!(self.group_log.snapshot(), Ok(Some(_)));
        // The library drops entries that a checkpoint holds which it has noted before.
        let is_due = newest > self.checkpoint || self.group_log.lacks_begin();
        if is_due && is_known() {
            self.checkpoint = newest;
            let kept = Lsn(newest.0.saturating_sub(self.amounts.kept));
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
        self.looked_for_near = RT::Instant::now();
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
        drop(RT::spawn(async move {
            match seat.promote(near.id).await {
                Ok(()) => tracing::info!("member {} at {} votes", near.id, near.member),
                Err(error) => tracing::warn!("member {} does not vote yet: {error}", near.id),
            }
            is_promoting.store(false, SeqCst);
        }));
    }
}

/// Applies what was known to be committed, and is not in the data. Returns the last entry of that.
fn apply_committed(group_log: &GroupLog, standing: &Standing) -> io::Result<Option<EntryId>> {
    let applied = group_log.committed()?;
    let (purged, _) = group_log.bounds();
    let first = purged.map_or(0, |purged| purged.index + 1);
    for entry in group_log.entries(first, applied.map_or(0, |applied| applied.index + 1))? {
        ladon_raft::Applier::apply(standing, &entry)?;
        if matches!(entry.payload, Payload::Membership(_)) {
            // Noted, as of every entry that is applied: the log may purge it.
            group_log.members_at(entry.id)?;
        }
    }
    Ok(applied)
}

fn told(role: Role) -> &'static str {
    match role {
        Role::Alone | Role::Leads => "leads",
        Role::Follows | Role::Stale => "follows",
        Role::CutOff => "leads and does not hear most members: clients have to wait",
        Role::Outside => "is no member of a cluster",
        Role::Witness => "is a witness",
    }
}
