//! `FAILOVER`: this server hands over to one of its replicas, and follows it from then on.
//!
//! ```text
//!  this server                                          the replica
//!  waiting-for-sync      writes wait
//!                                <---- FRAMES, durable   has everything on its disk
//!  failover-in-progress  it takes no records any more
//!                        TAKEOVER run end ------------>  has all up to there: a run begins, it writes
//!  no-failover           POSITION, FRAMES ------------>  as any replica asks
//! ```
//! **Invariant:** this server takes no writes from before the replica may until it is refused, or told
//! to abort. An answer that is lost is asked for again: who has taken over says so again.

use super::following::{Following, Inner, Wanted};
use super::place::FollowedData;
use ladon_kernel::replication::Place;
use ladon_kernel::shared::Paused;
use ladon_kernel::upstream::{FailoverOrder, FailoverState, ReplicaView, Replicas as _};
use ladon_record::Lsn;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often it is looked whether a replica has everything.
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// How long who takes over may take to get the rest of the log.
const TAKEOVER_WAIT_MAX: Duration = Duration::from_secs(5);

/// A failover that is under way.
pub(super) struct Handover {
    /// Tells it from others.
    id: u64,
    state: FailoverState,
}

impl Following {
    pub(super) fn begin_failover(&self, order: FailoverOrder) -> Result<(), String> {
        let this = self.this.upgrade();
        let data = self.data();
        let (Some(this), Some(data)) = (this, data) else {
            return Err("this server has no data yet".to_owned());
        };
        let mut inner = self.inner.lock();
        allows(&inner, &order, &data.replicas().list())?;
        let id = inner.handovers + 1;
        inner.handovers = id;
        inner.handover = Some(Handover { id, state: FailoverState::WaitingForSync });
        // Until it is over; who has the answer writes nothing any more.
        let pause = data.shared().pause(u64::MAX, Paused::Writes);
        let (shared, thread) = (Arc::clone(data.shared()), std::thread::Builder::new());
        let thread = thread.name("ladon-failover".to_owned());
        let spawned = thread.spawn(move || this.await_replica(&data, &order, (id, pause)));
        if let Err(error) = spawned {
            inner.handover = None;
            shared.unpause();
            return Err(format!("the system has no thread for it: {error}"));
        }
        tracing::info!("FAILOVER: writes wait until a replica has everything");
        Ok(())
    }

    /// Waits until a replica has everything, while nobody writes, and begins to follow it.
    fn await_replica(&self, data: &FollowedData, order: &FailoverOrder, (id, pause): (u64, u64)) {
        let began = Instant::now();
        let found = loop {
            if self.inner.lock().handover.as_ref().is_none_or(|it| it.id != id) {
                return;
            }
            if data.shared().is_pause_seen(pause, usize::MAX) {
                let end = data.log().reserved();
                // Replicas say at once what is on their disks.
                data.log().want_committed(end);
                let list = data.replicas().list();
                let fits = |replica: &&ReplicaView| {
                    let is_wanted = order.target.as_ref().is_none_or(|it| *it == replica.place);
                    is_wanted && replica.durable >= Some(end)
                };
                if let Some(replica) = list.iter().find(fits) {
                    break Some((replica.place.clone(), false));
                }
            }
            if order.timeout.is_some_and(|timeout| began.elapsed() >= timeout) {
                break order.target.clone().filter(|_| order.force).map(|target| (target, true));
            }
            std::thread::sleep(LOOK_EVERY);
        };
        match found {
            Some((target, is_forced)) => self.hand_over((data, id), target, is_forced),
            None => {
                let _ = self.end_failover(id, "no replica had everything in time");
                self.unpause(data);
            }
        }
    }

    /// Follows the replica, which is to take over first.
    fn hand_over(&self, (data, id): (&FollowedData, u64), target: Place, is_forced: bool) {
        let mut inner = self.inner.lock();
        let Some(handover) = inner.handover.as_mut().filter(|it| it.id == id) else { return };
        handover.state = FailoverState::InProgress;
        let Place { host, port } = &target;
        tracing::info!("FAILOVER: {host}:{port} is to take over");
        if let Err(why) = self.want(&mut inner, Some(target), Some(is_forced)) {
            drop(inner);
            let _ = self.end_failover(id, &why);
            self.unpause(data);
        }
    }

    /// Ends it; writes wait on. Returns whether the server has begun to follow the replica; `None`: it was
    /// over before.
    fn end_failover(&self, id: u64, why: &str) -> Option<bool> {
        let ended = {
            let mut inner = self.inner.lock();
            inner.handover.take_if(|it| it.id == id)?
        };
        tracing::warn!("FAILOVER ends: {why}");
        Some(ended.state == FailoverState::InProgress)
    }

    /// Unless another failover has begun.
    fn unpause(&self, data: &FollowedData) {
        let inner = self.inner.lock();
        if inner.handover.is_none() {
            data.shared().unpause();
        }
    }

    /// The replica has taken over.
    pub(super) fn has_handed_over(&self, wanted: &Wanted, data: &FollowedData) {
        {
            let mut inner = self.inner.lock();
            if inner.wanted.number != wanted.number {
                return;
            }
            inner.wanted.hands_over = None;
            inner.handover = None;
        }
        self.unpause(data);
        tracing::info!("FAILOVER is done: this server follows the one that took over");
    }

    /// The replica does not take over: this server leads on.
    pub(super) fn leads_on(&self, wanted: &Wanted, data: &FollowedData, why: &str) {
        tracing::error!("FAILOVER ends: the replica does not take over: {why}");
        {
            let mut inner = self.inner.lock();
            if inner.wanted.number != wanted.number {
                return;
            }
            inner.handover = None;
            if let Err(error) = self.want(&mut inner, None, None) {
                tracing::error!("the setting replicaof stays: {error}");
            }
        }
        // Who waits is not to find a replica still. If it fails, it is tried again.
        if let Err(error) = data.write() {
            tracing::error!("cannot write yet: {error}");
        }
        self.unpause(data);
    }

    /// Aborts it. For a thread that may wait.
    pub(super) fn stop_failover(&self) -> Result<(), String> {
        let id = self.inner.lock().handover.as_ref().map(|it| it.id);
        let none = || "No failover in progress.".to_owned();
        let has_begun = self.end_failover(id.ok_or_else(none)?, "it was aborted");
        // Who waits is not to find a replica still.
        let done = if has_begun == Some(true) { self.change(None) } else { Ok(()) };
        if let Some(data) = self.data() {
            self.unpause(&data);
        }
        has_begun.ok_or_else(none).and(done)
    }

    /// Takes over from the server that this one follows.
    pub(super) fn take_over_from(&self, run: &str, end: Lsn, force: bool) -> Result<(), String> {
        let data = self.data().ok_or("this server has no data yet")?;
        let began = Instant::now();
        loop {
            if !self.is_wanted() {
                return match data.has(run, end) {
                    true => Ok(()),
                    false => Err("this server follows nobody, and has another log".to_owned()),
                };
            }
            match data.position() {
                Some((own, own_end)) if own == run && (own_end >= end || force) => break,
                Some((own, _)) if own != run => {
                    return Err("this server follows another one".to_owned());
                }
                _ if began.elapsed() >= TAKEOVER_WAIT_MAX => {
                    return Err(format!("this server does not get the log up to LSN {end}"));
                }
                _ => std::thread::sleep(LOOK_EVERY),
            }
        }
        tracing::info!("FAILOVER: takes over from the server that it followed");
        self.change(None)
    }
}

impl Handover {
    pub(super) fn state(&self) -> FailoverState {
        self.state
    }
}

/// Whether a failover may begin, in Redis' words.
fn allows(inner: &Inner, order: &FailoverOrder, replicas: &[ReplicaView]) -> Result<(), String> {
    let FailoverOrder { target, force, timeout } = order;
    let known = target.as_ref().map(|target| replicas.iter().find(|it| it.place == *target));
    let refusal = if inner.handover.is_some() {
        "FAILOVER already in progress.".to_owned()
    } else if inner.wanted.place.is_some() {
        "FAILOVER is not valid when server is a replica.".to_owned()
    } else if replicas.is_empty() {
        "FAILOVER requires connected replicas.".to_owned()
    } else if *force && (target.is_none() || timeout.is_none()) {
        "FAILOVER with force option requires both a timeout and target HOST and IP.".to_owned()
    } else if known == Some(None) {
        "FAILOVER target HOST and PORT is not a replica.".to_owned()
    } else if known.flatten().is_some_and(|it| it.durable.is_none()) {
        "FAILOVER target replica is not online.".to_owned()
    } else {
        return Ok(());
    };
    Err(refusal)
}
