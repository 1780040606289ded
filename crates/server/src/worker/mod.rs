//! One IO thread's state machine: bytes in, batches, replies out when the gate lets them.
//!
//! A turn: take every connection that has input, gather up to 64 requests at a time, prefetch,
//! execute, publish to the log once, then let out what the gate has passed.
//!
//! **Invariants:** replies of a connection leave in the order of its requests; a reply leaves only
//! when its gate has passed the highest LSN that it depends on; nothing here waits.

mod blocked;
mod buffers;
mod inbox;
mod jobs;
mod long_replies;
mod network;
mod release;
mod requests;
mod time;
mod unused;

use crate::aside::{Aside, Task};
use crate::batch::Batch;
use crate::client_memory::ClientMemory;
use crate::connection::{Connection, Positions};
use crate::dropper::Dropper;
use buffers::Buffers;
use ladon_commands::blocking::SendNow;
use ladon_commands::ctx::Local;
use ladon_commands::rng::Rng;
use ladon_commands::{Node, Paused};
use ladon_engine::Scratch;
use ladon_log::{Appender, Listener, Log};
use ladon_model::Gate;
use ladon_net::{ConnId, Outgoing};
use ladon_resp::Limits;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// Where a worker's bytes go; a backend, or the simulator's network.
pub trait Net {
    /// Sends all of it; one at a time for each connection. `Worker::sent` may come late, with the
    /// next event, unless `more` waits to be sent on the connection.
    fn send(&mut self, conn: ConnId, outgoing: Outgoing, more: bool);
    /// Hangs up; `Worker::closed` must follow.
    fn close(&mut self, conn: ConnId);
    /// A way to send on the connection from any thread, if there is one.
    fn send_now(&mut self, _conn: ConnId) -> Option<SendNow> {
        None
    }
}

/// What a worker is made from.
pub struct WorkerParts {
    /// The node.
    pub node: Arc<Node>,
    /// The log.
    pub log: Arc<Log>,
    /// This thread's number, and its place in `node.threads`.
    pub thread: usize,
    /// Seeds what is random.
    pub seed: u64,
    /// Wakes the thread when the log has got as far as somebody waits for.
    pub wake: Arc<dyn Fn() + Send + Sync>,
    /// Where large values are dropped; `None`: on the spot.
    pub dropper: Option<Dropper>,
    /// Where requests' jobs are done; `None`: here, one a turn.
    pub aside: Option<Aside>,
}

/// One IO thread's state machine.
pub struct Worker {
    node: Arc<Node>,
    log: Arc<Log>,
    listener: Arc<Listener>,
    appender: Appender,
    local: Local,
    scratch: Scratch,
    dropper: Option<Dropper>,
    aside: Option<Aside>,
    /// Jobs to be done here.
    jobs: VecDeque<Task>,
    connections: Vec<Option<Box<Connection>>>,
    open: usize,
    /// Connections with something to run.
    ready: Vec<u32>,
    /// Connections whose output or state changed this turn.
    touched: Vec<u32>,
    /// Connections that wait at the gate, or by their own wish.
    waiting: Vec<u32>,
    /// When connections that wait for a key give up: (Unix milliseconds, connection).
    deadlines: BTreeSet<(u64, u32)>,
    /// Connections held back by `CLIENT PAUSE`.
    paused: Vec<u32>,
    /// What pause holds them back, and whether it was ended since the last look.
    paused_by: Option<Paused>,
    unpaused: bool,
    /// Connections whose last reply is not made yet, in the order in which they get a slice.
    long_replies: VecDeque<u32>,
    batch: Batch,
    limits: Limits,
    limits_generation: u64,
    buffers: Buffers,
    now_ms: u64,
    next_tick_ms: u64,
    turns_since_tick: u32,
    /// When the turn before began, Unix milliseconds.
    turn_before_ms: u64,
    /// When all connections were last looked at, Unix seconds.
    looked_at_second: u64,
    /// Of data since the last look for unused memory.
    most_bytes: u64,
    client_memory: ClientMemory,
    turn_output_bytes: usize,
    seen: Positions,
    /// The default gate when the turn began.
    turn_gate: Gate,
    stopping: bool,
    /// Testing only: replies leave without waiting, which the simulator must notice.
    pub early_reply_canary: bool,
    /// Testing only: the same of replies that go the short way.
    pub early_hand_over_canary: bool,
}

impl Worker {
    /// A worker without connections.
    pub fn new(parts: WorkerParts) -> Worker {
        let listener = parts.log.add_listener(parts.wake);
        let stats = Arc::clone(&parts.node.stats[parts.thread]);
        let mut local = Local::new(parts.thread, stats, Rng::new(parts.seed));
        local.replies_later = true;
        Worker {
            appender: parts.log.appender(),
            local,
            seen: Positions { written: parts.log.written(), durable: parts.log.durable() },
            node: parts.node,
            log: parts.log,
            listener,
            scratch: Scratch::default(),
            dropper: parts.dropper,
            aside: parts.aside,
            jobs: VecDeque::new(),
            connections: Vec::new(),
            open: 0,
            ready: Vec::new(),
            touched: Vec::new(),
            waiting: Vec::new(),
            deadlines: BTreeSet::new(),
            paused: Vec::new(),
            paused_by: None,
            unpaused: false,
            long_replies: VecDeque::new(),
            batch: Batch::default(),
            limits: Limits::default(),
            limits_generation: u64::MAX,
            buffers: Buffers::default(),
            now_ms: 0,
            next_tick_ms: 0,
            turns_since_tick: 0,
            turn_before_ms: 0,
            looked_at_second: 0,
            most_bytes: 0,
            client_memory: ClientMemory::default(),
            turn_output_bytes: 0,
            turn_gate: Gate::default(),
            stopping: false,
            early_reply_canary: false,
            early_hand_over_canary: false,
        }
    }

    /// Testing only: stores do not look whether their sources have changed, which the simulator must
    /// notice.
    pub fn plant_stale_stores(&mut self) {
        self.local.stale_store_canary = true;
    }

    /// Number of open connections.
    pub fn open_connections(&self) -> usize {
        self.open
    }

    /// No further requests are run; replies still leave.
    pub fn stop(&mut self) {
        self.stopping = true;
    }

    /// Whether every reply that was owed has left.
    pub fn is_drained(&self) -> bool {
        self.connections.iter().flatten().all(|c| c.is_drained() || c.closed)
    }

    /// Runs everything that can run and lets replies out.
    pub fn turn(&mut self, net: &mut impl Net) {
        self.run_requests();
        self.release(net);
    }

    /// First half of a turn: runs what can run and publishes to the log.
    pub fn run_requests(&mut self) {
        self.now_ms = self.node.clock.unix_ms();
        self.turn_gate = self.node.settings.gate();
        self.refresh_limits();
        self.read_inbox();
        self.turns_since_tick += 1;
        if self.is_tick_due() {
            self.tick();
        } else {
            self.tick_soon();
        }
        self.resume_paused();
        if !self.stopping {
            self.run_batches();
        }
        // After what has arrived, which may serve a wait.
        self.end_overdue();
        self.do_job();
        self.go_on_with_long_replies();
        self.appender.publish();
        self.deliver_answers();
        self.settle_counters();
    }

    fn positions(&self) -> Positions {
        Positions { written: self.log.written(), durable: self.log.durable() }
    }

    fn settle_counters(&mut self) {
        let counters = std::mem::take(&mut self.scratch.counters);
        let stats = &self.local.stats;
        stats.keyspace_hits.add(counters.hits);
        stats.keyspace_misses.add(counters.misses);
        stats.expired_keys.add(counters.expired);
        stats.evicted_keys.add(counters.evicted);
        stats.expired_subkeys.add(counters.expired_elements);
        self.node.keyspace.add_used_bytes(counters.bytes_delta);
        if !self.scratch.garbage.is_empty() {
            let garbage = std::mem::take(&mut self.scratch.garbage);
            if let Some(dropper) = &self.dropper {
                dropper.drop_later(garbage);
            }
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.log.remove_listener(&self.listener);
    }
}
