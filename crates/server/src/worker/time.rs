//! Work by the clock: sleep times, expiry, idle clients, pauses.
//!
//! A busy worker ticks `hz` times a second. An idle worker sleeps longer, but not past the next
//! expiry, so that an idle server is silent. No other thread has to wake it: a thread that sets an
//! expiry is awake, and checks all partitions at its own next tick.

use super::Worker;
use crate::connection::Connection;
use crate::input;
use crate::queues::WaitsFor;
use ladon_engine::{Locks, PARTITIONS};
use ladon_kernel::blocking;
use ladon_kernel::memory::eviction;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// How often a blocked backlog is checked again.
const BACKLOG_RETRY: Duration = Duration::from_millis(1);

/// Longest time between two ticks. It bounds the delay of anything that no wake-up covers, and how
/// late a client that exceeds `timeout` is noticed.
const QUIET_TICK_MS: u64 = 1000;

/// Expired keys removed from a partition per lock, so that the lock is held briefly.
const EXPIRE_MAX: usize = 64;

/// How often a partition's lock is waited for, some milliseconds each time, before its expired keys
/// are left to the next tick.
const EXPIRE_WAITS: u32 = 1;

/// Time that expiry and eviction may still use before the next tick. Each turn uses a little of it,
/// so that no client waits for all of it.
#[derive(Debug, Default)]
pub(super) struct Housekeeping {
    expiry_ns: u64,
    eviction_ns: u64,
}

impl Housekeeping {
    fn is_due(&self) -> bool {
        self.expiry_ns != 0 || self.eviction_ns != 0
    }
}

impl Worker {
    /// How long to wait for the network; `None` waits until something arrives.
    pub fn timeout(&self) -> Duration {
        if !self.jobs.is_empty()
            || self.has_slice_to_make()
            || !self.queues.is_empty(WaitsFor::Release)
            || !(self.stopping
                || self.awaits_others
                || self.queues.is_empty(WaitsFor::Turn) && self.queues.is_empty(WaitsFor::NextTurn))
            || self.housekeeping.is_due()
            || self.is_tidying
            || self.unseen_users_from.is_some()
            || self.has_messages()
            || !self.queues.is_empty(WaitsFor::Delivery)
        {
            return Duration::ZERO;
        }
        if !self.queues.is_empty(WaitsFor::WriteRoom) {
            return BACKLOG_RETRY;
        }
        let mut until_ms = self.next_tick_ms;
        if !self.queues.is_empty(WaitsFor::Pause) {
            until_ms = until_ms.min(self.node.pause_until_ms());
        }
        if let Some(&(deadline_ms, _)) = self.deadlines.first() {
            until_ms = until_ms.min(deadline_ms.saturating_add(1));
        }
        let sleep_ms = until_ms.saturating_sub(self.node.clock.unix_ms());
        let sleep = Duration::from_millis(sleep_ms.min(QUIET_TICK_MS));
        let until_late = self.until_reader_is_late().unwrap_or(sleep);
        self.until_next_slice(sleep.min(until_late))
    }

    /// Whether a tick is due. The clock may have been set back since the last one.
    pub(super) fn is_tick_due(&self) -> bool {
        self.now_ms >= self.next_tick_ms || self.next_tick_ms - self.now_ms > QUIET_TICK_MS
    }

    /// Shortens the next tick to the usual interval after an event.
    pub(super) fn tick_soon(&mut self) {
        self.next_tick_ms = self.next_tick_ms.min(self.now_ms + self.tick_interval_ms());
    }

    /// Does what a long script has held up, and serves who waited for the loss of a key that has
    /// expired or was evicted between two requests.
    pub(super) fn catch_up(&mut self) {
        if self.bench.local.is_held_up() || !self.bench.scratch.ready.is_empty() {
            blocking::catch_up(&mut thread_parts!(self));
        }
    }

    fn tick_interval_ms(&self) -> u64 {
        (1000 / u64::from(self.node.settings.hz().max(1))).max(1)
    }

    /// When the next tick is due if nothing happens before.
    fn after_a_quiet_tick(&self) -> u64 {
        let expires = self.node.active_expire.load(Relaxed);
        let next_due = (0..PARTITIONS).map(|partition| self.node.keyspace.next_due(partition));
        let next_due = next_due.min().filter(|_| expires).unwrap_or(u64::MAX);
        let usual_ms = self.now_ms + self.tick_interval_ms();
        next_due.min(self.now_ms + QUIET_TICK_MS).max(usual_ms)
    }

    /// Periodic work (`hz`): expiry, idle clients, unused buffers, peaks.
    pub(super) fn tick(&mut self) {
        let interval_ms = self.tick_interval_ms();
        self.forgive_standstill();
        self.housekeeping = Housekeeping {
            expiry_ns: expiry_ns_max(interval_ms, self.node.settings.active_expire_effort()),
            eviction_ns: interval_ms * 250_000,
        };
        self.keep_house();
        ladon_memcached::flush_if_due(&mut thread_parts!(self));
        let is_evicting = self.log.is_backlogged() || self.housekeeping.eviction_ns != 0;
        self.look_at_connections();
        self.look_at_transactions();
        self.buffers.trim();
        self.node.sample();
        // One turn is that of the tick itself.
        let is_quiet = std::mem::take(&mut self.turns_since_tick) <= 1
            && !is_evicting
            && self.buffers.is_empty()
            && self.queues.is_empty(WaitsFor::Release);
        self.next_tick_ms =
            if is_quiet { self.after_a_quiet_tick() } else { self.now_ms + interval_ms };
        self.node.keyspace.begin_compaction(self.now_ms);
        self.collect_freed_memory(is_quiet);
    }

    /// Excludes time in which this thread could not run (the process or its machine was stopped)
    /// from the time that a client had to take its output.
    fn forgive_standstill(&mut self) {
        let late_ms = match self.next_tick_ms {
            0 => 0,
            due_ms => self.now_ms.saturating_sub(due_ms),
        };
        if late_ms <= QUIET_TICK_MS {
            return;
        }
        for connection in self.connections.iter_mut().flatten() {
            if connection.over_soft_limit_ms != 0 {
                connection.over_soft_limit_ms += late_ms;
            }
        }
    }

    /// Finds clients that are idle for too long or take their output too slowly, and input buffers
    /// with much unused capacity.
    fn look_at_connections(&mut self) {
        let timeout_ms = self.node.settings.timeout() * 1000;
        let is_second_over = self.now_ms / 1000 != self.looked_at_second;
        if timeout_ms == 0 && !is_second_over {
            return;
        }
        self.looked_at_second = self.now_ms / 1000;
        for connection in self.connections.iter_mut().flatten() {
            if timeout_ms != 0 && is_idle(connection, self.now_ms, timeout_ms) {
                if !std::mem::replace(&mut connection.aborted, true) {
                    self.bench.local.stats.idle_kicks.add(1);
                }
                if let Some(memcached) = connection.dialect.memcached_mut() {
                    memcached.is_idle = true;
                }
                self.queues.push(WaitsFor::Release, connection);
            }
            if !is_second_over {
                continue;
            }
            if connection.receive_paused && connection.waiter().is_some() {
                self.queues.push(WaitsFor::Release, connection);
            }
            if connection.over_soft_limit_ms != 0
                && Self::is_over_limit(&self.node, connection, self.now_ms)
            {
                connection.aborted = true;
                self.queues.push(WaitsFor::Release, connection);
            }
            if input::trim(connection, self.now_ms) {
                self.client_memory.count(&self.node, &connection.session.info);
            }
        }
    }

    /// Ends transactions for which too much memory is kept. Each thread asks, and ends those of its
    /// own connections.
    fn look_at_transactions(&mut self) {
        self.node.look_at_transactions();
        if !self.node.keyspace.spaces.asks_transactions_to_end() {
            return;
        }
        for connection in self.connections.iter_mut().flatten() {
            if let Some(iproto) = connection.dialect.iproto_mut() {
                iproto.session.end_asked(&mut self.bench.scratch);
            }
        }
    }

    /// Continues expiry and eviction, within the time left to them.
    pub(super) fn keep_house(&mut self) {
        if self.housekeeping.expiry_ns != 0 {
            let left_ns = self.housekeeping.expiry_ns;
            self.housekeeping.expiry_ns = 0;
            if self.node.active_expire.load(Relaxed) && self.node.paused(self.now_ms).is_none() {
                let began_ns = self.node.clock.monotonic_ns();
                let is_done = self.expire_due(began_ns, left_ns.min(self.pace.housekeeping_ns));
                let spent_ns = self.node.clock.monotonic_ns() - began_ns;
                self.turn.housekeeping_ns += spent_ns;
                self.node.latency_events.note(
                    "expire-cycle",
                    spent_ns / 1_000_000,
                    self.now_ms / 1000,
                );
                if !is_done {
                    self.housekeeping.expiry_ns = left_ns.saturating_sub(spent_ns.max(1));
                }
            }
        }
        if self.housekeeping.eviction_ns != 0 {
            let left_ns = self.housekeeping.eviction_ns;
            self.housekeeping.eviction_ns = 0;
            if !self.log.is_backlogged() {
                let began_ns = self.node.clock.monotonic_ns();
                let mut thread = thread_parts!(self);
                let limit_ns = left_ns.min(self.pace.housekeeping_ns);
                let goes_on = eviction::make_room_in_between(&mut thread, limit_ns);
                let spent_ns = self.node.clock.monotonic_ns() - began_ns;
                self.turn.housekeeping_ns += spent_ns;
                if goes_on {
                    self.housekeeping.eviction_ns = left_ns.saturating_sub(spent_ns.max(1));
                }
            }
        }
    }

    /// Removes expired keys for about `most_ns`, from this thread's share of the partitions first,
    /// then from the others' shares, whose threads may be asleep. Returns whether none is left that
    /// could be removed now.
    fn expire_due(&mut self, begin_ns: u64, most_ns: u64) -> bool {
        if self.node.keyspace.is_follower() {
            return true;
        }
        self.bench.scratch.read_only = !self.node.may_change();
        let (first, threads) = (self.bench.local.thread, self.node.threads.len());
        let shares = (0..threads).map(|share| (first + share) % threads);
        for partition in shares.flat_map(|share| (share..PARTITIONS).step_by(threads)) {
            while self.node.keyspace.next_due(partition) <= self.now_ms {
                if self.log.is_backlogged() {
                    return true;
                }
                let (node, now_ms) = (&self.node, self.now_ms);
                // To hold the partition for longer than this would hold up the thread.
                let tries = std::cell::Cell::new(0);
                let is_busy = |_| tries.replace(tries.get() + 1) == EXPIRE_WAITS;
                let locks = Locks::Partition(partition);
                let Some(mut tx) =
                    node.keyspace.begin_or_busy(locks, &mut self.bench.scratch, now_ms, is_busy)
                else {
                    break;
                };
                let removed = tx.expire_due(partition, EXPIRE_MAX);
                let appender = &mut self.bench.appender;
                tx.commit(|record| appender.append_record(record, now_ms));
                // Whoever finds a key gone may ask how many have expired.
                self.settle_counters();
                self.publish();
                if self.node.clock.monotonic_ns() - begin_ns > most_ns {
                    return false;
                }
                if removed < EXPIRE_MAX {
                    break;
                }
            }
        }
        true
    }

    pub(super) fn resume_paused(&mut self) {
        let now = self.node.paused(self.now_ms);
        if !std::mem::take(&mut self.unpaused) && now == self.paused_by {
            // The held-back connections stay so. Appearing busy for a moment would be visible to
            // clients.
            return;
        }
        self.paused_by = now;
        for slot in self.queues.take(WaitsFor::Pause) {
            let Some(connection) = &mut self.connections[slot as usize] else { continue };
            connection.waits.remove(WaitsFor::Pause);
            connection.session.info.blocked.store(false, Relaxed);
            self.queues.push(WaitsFor::Turn, connection);
        }
    }
}

/// Whether a client was idle for `timeout_ms`. It has to be found so twice, with a read of its
/// socket in between: a request that arrived while the process was stopped is not read yet.
fn is_idle(connection: &mut Connection, now_ms: u64, timeout_ms: u64) -> bool {
    let active_ms = connection.session.info.last_active_ms.load(Relaxed);
    let exempt = connection.session.monitor
        || connection.session.is_subscribed()
        || connection.blocked.is_some()
        || connection.replies.long.is_some()
        || connection.computing.is_some()
        || connection.input_waits
        || connection.dialect.has_set_aside()
        || connection.closing
        || !connection.waits.is_empty();
    if exempt || active_ms + timeout_ms > now_ms {
        return false;
    }
    std::mem::replace(&mut connection.seen_idle_since_ms, active_ms) == active_ms
}

/// Longest time for expiry between two ticks: a quarter of the interval, and as in Redis a fiftieth
/// more for each step of effort, 1 to 10.
fn expiry_ns_max(interval_ms: u64, effort: u32) -> u64 {
    interval_ms * (250_000 + 20_000 * u64::from(effort.saturating_sub(1)))
}

#[cfg(test)]
mod tests {
    use super::expiry_ns_max;

    #[test]
    fn effort_buys_time() {
        assert_eq!(expiry_ns_max(100, 1), 25_000_000);
        assert_eq!(expiry_ns_max(100, 2), 27_000_000);
        assert_eq!(expiry_ns_max(100, 10), 43_000_000);
    }
}
