//! The gate's waiting room: connections whose replies wait for the log, and connections in `WAIT`
//! and `WAITAOF`.

use crate::connection::Connection;
use crate::positions::Positions;
use ladon_kernel::client::session::{BlockedKind, LogWait};
use ladon_log::{Log, LogError, LogState, PositionWaiter};
use ladon_record::{Gate, Lsn};
use ladon_resp::Reply;
use std::sync::Arc;

/// The lowest positions that connections of this thread wait for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Awaited {
    pub(crate) written: Lsn,
    pub(crate) durable_lowest: Lsn,
    pub(crate) durable_highest: Lsn,
    pub(crate) agreed_lowest: Lsn,
    pub(crate) agreed_highest: Lsn,
    /// The highest position that is to be on other nodes' disks, if any is.
    pub(crate) others_highest: Lsn,
    /// How often what those have had changed when it was looked at; `u64::MAX`: nobody waits.
    pub(crate) others_seen: u64,
}

impl Default for Awaited {
    fn default() -> Self {
        Awaited {
            written: Lsn::MAX,
            durable_lowest: Lsn::MAX,
            durable_highest: Lsn::ZERO,
            agreed_lowest: Lsn::MAX,
            agreed_highest: Lsn::ZERO,
            others_highest: Lsn::ZERO,
            others_seen: u64::MAX,
        }
    }
}

impl Awaited {
    pub(crate) fn add(&mut self, gate: Gate, lsn: Lsn) {
        match gate {
            Gate::None => {}
            Gate::Write | Gate::EverySec => self.written = self.written.min(lsn),
            Gate::Fsync => {
                self.durable_lowest = self.durable_lowest.min(lsn);
                self.durable_highest = self.durable_highest.max(lsn);
            }
            Gate::Quorum => {
                self.agreed_lowest = self.agreed_lowest.min(lsn);
                self.agreed_highest = self.agreed_highest.max(lsn);
            }
        }
    }

    /// A connection waits for other nodes to have its changes.
    pub(crate) fn add_others(&mut self, lsn: Lsn, positions: Positions) {
        self.others_highest = self.others_highest.max(lsn);
        self.others_seen = self.others_seen.min(positions.others());
    }

    /// Whether what other nodes have has changed since a waiting connection looked.
    pub(crate) fn have_others_moved(&self, positions: Positions) -> bool {
        self.others_seen < positions.others()
    }

    /// Registers what is awaited with the log. Returns true if some of it is already reached, in
    /// which case the waiting room must be checked again.
    pub(crate) fn register(self, log: &Log, waiter: &Arc<PositionWaiter>) -> bool {
        let mut reached = false;
        if self.written != Lsn::MAX {
            reached |= waiter.await_written(self.written);
            // Another thread may have published the awaited records just before it could see this
            // registration.
            if !reached && log.accepts_writes() && log.has_unwritten() {
                let written = log.write_published();
                reached |= written.is_ok_and(|written| written >= self.written);
            }
        }
        if self.durable_lowest != Lsn::MAX {
            // The order matters: the writer looks for published records after this call.
            reached |= waiter.await_durable(self.durable_lowest);
            log.want_durable(self.durable_highest);
        }
        if self.agreed_lowest != Lsn::MAX {
            log.want_committed(self.agreed_highest);
            // What is committed waits for the lease, which wakes everybody.
            let is_committed = waiter.await_committed(self.agreed_lowest);
            reached |= is_committed && log.agreed() >= self.agreed_lowest;
        }
        if self.others_seen != u64::MAX {
            log.want_committed(self.others_highest);
            reached |= waiter.await_others(self.others_seen);
        }
        reached
    }
}

/// Whether the log has reached what a blocked connection waits for.
pub(crate) fn is_reached(blocked: &LogWait, positions: Positions, log: &Log) -> bool {
    let is_local = !blocked.local || positions.durable() >= blocked.durable;
    is_local && (blocked.replicas <= 0 || others_have(blocked, log) >= blocked.replicas)
}

fn others_have(blocked: &LogWait, log: &Log) -> i64 {
    log.others_have(blocked.written) as i64
}

/// Why replies that wait at a gate never will pass it.
pub(crate) enum Hopeless {
    /// A sync has failed: what is not durable now never will be.
    SyncFailed(LogError),
    /// Another node may lead the group: it decides what is kept.
    NotLeader,
}

/// Whether waiting at some gate is in vain.
pub(crate) fn hopeless(log: &Log) -> Option<Hopeless> {
    if log.is_led_elsewhere() {
        return Some(Hopeless::NotLeader);
    }
    if log.accepts_writes() {
        return None;
    }
    match log.state() {
        LogState::SyncFailed { error } => Some(Hopeless::SyncFailed(error)),
        _ => None,
    }
}

/// Sends an error to a connection whose wait cannot succeed, and closes it. The number of replies
/// that it awaits is unknown here, and it must not wait forever.
pub(crate) fn give_up(connection: &mut Connection, positions: Positions, why: &Hopeless) {
    let reply = connection.replies.awaits();
    let blocked = connection.log_wait().map(|blocked| (Gate::Fsync, blocked.durable));
    let is_in_vain = |(gate, lsn)| {
        let gate_is = match why {
            Hopeless::SyncFailed(_) => gate == Gate::Fsync,
            Hopeless::NotLeader => gate == Gate::Quorum,
        };
        gate_is && !positions.passed(gate, lsn)
    };
    if !reply.or(blocked).is_some_and(is_in_vain) {
        return;
    }
    if connection.log_wait().is_some() {
        connection.blocked = None;
    }
    connection.give_up(&match why {
        Hopeless::SyncFailed(error) => {
            format!("MISCONF It is not known whether the change is safe: {error}")
        }
        Hopeless::NotLeader => "UNKNOWNOUTCOME This node does not lead its cluster any more; \
             whether the change is kept is for the leader to say"
            .to_owned(),
    });
}

/// Answers a connection whose wait is over.
pub(crate) fn answer(
    connection: &mut Connection,
    blocked: &LogWait,
    positions: Positions,
    log: &Log,
) {
    let others = others_have(blocked, log);
    let proto = connection.session.proto;
    let mut reply = Reply::new(&mut connection.replies.output, proto);
    match blocked.finish {
        BlockedKind::Wait => reply.integer(others),
        BlockedKind::WaitAof => {
            reply.array(2);
            reply.integer(i64::from(positions.durable() >= blocked.durable));
            reply.integer(others);
        }
    }
}
