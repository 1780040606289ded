//! One IO thread's state machine: bytes in, batches, replies out when the gate lets them.
//!
//! A turn takes requests from the queue of connections (`turn.rs`) in batches of up to 64: gather,
//! prefetch, execute, publish to the log. At its end, replies that have passed the gate are sent.
//!
//! **Invariants:** replies of a connection leave in the order of its requests; over IPROTO, those of
//! a stream do. A reply leaves only when its gate has passed the highest LSN that it depends on.
//! Nothing here blocks. Nothing slow runs between a record and its publication, because that would
//! hold back every thread's gate.

/// What commands run on, borrowed from a worker field by field: its connections stay free, as they
/// would not with a method.
macro_rules! thread_parts {
    ($worker:expr) => {
        ladon_kernel::thread_parts::ThreadParts {
            node: &$worker.node,
            local: &mut $worker.bench.local,
            scratch: &mut $worker.bench.scratch,
            now_ms: $worker.now_ms,
            append: &mut |record| $worker.bench.appender.append_record(record, $worker.now_ms),
            pump: None,
        }
    };
}

mod allocator_collect;
mod audit;
mod blocked;
mod buffers;
mod compaction;
mod everysec;
mod exchange;
mod fan_out;
mod inbox;
mod invalidate;
mod jobs;
mod leader_reads;
mod long_replies;
mod long_scripts;
mod network;
mod packets;
mod pieces;
mod reading;
mod release;
mod reply_backlog;
mod requests;
mod set_aside;
mod strangers;
mod time;
mod turn;
mod users;

use crate::aside::{Aside, Task};
use crate::batch::Batch;
use crate::client_memory::ClientMemory;
use crate::connection::Connection;
use crate::counters;
use crate::dropper::Dropper;
use crate::positions::Positions;
use crate::queues::Queues;
use crate::waiting::Awaited;
use buffers::Buffers;
use fan_out::FanOuts;
use ladon_engine::{CommitLimits, PreparationLimits, Scratch};
use ladon_kernel::blocking::SendNow;
use ladon_kernel::local::Local;
use ladon_kernel::node::Node;
use ladon_kernel::persistent::PlantedInCalls;
use ladon_kernel::rng::Rng;
use ladon_kernel::shared::Paused;
use ladon_log::{Appender, Log, PositionWaiter};
use ladon_net::{ConnId, Outgoing};
use ladon_record::{Gate, Lsn};
use ladon_resp::Limits;
use reply_backlog::ReplyBacklog;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use time::Housekeeping;
use turn::Turn;
pub use turn::{Interrupt, Pace, PacketRan, Planted, Point};

/// Where a worker sends bytes: a backend, or the simulator's network.
pub trait Net {
    /// Sends all of it; one buffer at a time per connection. `Worker::sent` may be called late,
    /// together with the next event, unless `more` output waits for the connection.
    fn send(&mut self, conn: ConnId, outgoing: Outgoing, more: bool);
    /// Closes the connection; `Worker::closed` must follow.
    fn close(&mut self, conn: ConnId);
    /// Pauses or resumes reading. What was read before may still arrive.
    fn pause_receive(&mut self, conn: ConnId, paused: bool);
    /// Whether the peer of a connection whose reading is paused has closed it.
    fn has_ended(&mut self, _conn: ConnId) -> bool {
        false
    }
    /// Serves the network in the middle of a long script: passes its events to the worker without
    /// waiting for any. Returns `false` if the server is about to stop.
    fn poll(&mut self, _worker: &mut Worker) -> bool {
        true
    }
    /// A handle for sending on the connection from any thread, if the backend has one.
    fn send_now(&mut self, _conn: ConnId) -> Option<SendNow> {
        None
    }
}

impl Net for &mut dyn Net {
    fn send(&mut self, conn: ConnId, outgoing: Outgoing, more: bool) {
        (**self).send(conn, outgoing, more);
    }

    fn close(&mut self, conn: ConnId) {
        (**self).close(conn);
    }

    fn pause_receive(&mut self, conn: ConnId, paused: bool) {
        (**self).pause_receive(conn, paused);
    }

    fn has_ended(&mut self, conn: ConnId) -> bool {
        (**self).has_ended(conn)
    }

    fn poll(&mut self, worker: &mut Worker) -> bool {
        (**self).poll(worker)
    }

    fn send_now(&mut self, conn: ConnId) -> Option<SendNow> {
        (**self).send_now(conn)
    }
}

/// The network, where a long script may let it be served.
pub(super) type Wire<'a> = Option<&'a mut dyn Net>;

/// What a worker is created from.
pub struct WorkerParts {
    /// The node.
    pub node: Arc<Node>,
    /// This thread's number, and its index in `node.threads`.
    pub thread: usize,
    /// Seed of the worker's random numbers.
    pub seed: u64,
    /// Wakes the thread when the log reaches an awaited position.
    pub wake: Arc<dyn Fn() + Send + Sync>,
    /// Drops large values; `None` drops them at once.
    pub dropper: Option<Dropper>,
    /// Runs the jobs of requests; `None` runs them on this thread, one per turn.
    pub aside: Option<Aside>,
}

/// What commands run on. A script that runs long keeps it, and another one serves meanwhile.
struct Workbench {
    node: Arc<Node>,
    local: Local,
    scratch: Scratch,
    appender: Appender,
}

impl Workbench {
    /// Whether nothing that requests have left on it has to be passed on.
    fn is_settled(&self) -> bool {
        let Workbench { local, scratch, appender, .. } = self;
        !appender.has_unpublished() && local.answers.is_empty() && scratch.garbage.is_empty()
    }
}

/// One IO thread's state machine.
pub struct Worker {
    node: Arc<Node>,
    log: Arc<Log>,
    position_waiter: Arc<PositionWaiter>,
    wake: Arc<dyn Fn() + Send + Sync>,
    /// Other threads may still run requests on the data before.
    awaits_others: bool,
    bench: Box<Workbench>,
    dropper: Option<Dropper>,
    aside: Option<Aside>,
    /// Jobs to run on this thread.
    jobs: VecDeque<Task>,
    connections: Vec<Option<Box<Connection>>>,
    open: usize,
    queues: Queues,
    /// When those who wait to write looked last whether they may go on, in Unix milliseconds.
    looked_at_ms: u64,
    /// Deadlines of connections that wait for a key: (Unix milliseconds, connection).
    deadlines: BTreeSet<(u64, u32)>,
    /// The pause that holds them back, and whether it has ended since the last check.
    paused_by: Option<Paused>,
    unpaused: bool,
    /// Users have changed: the first connection that was not looked after since.
    unseen_users_from: Option<usize>,
    /// Connections with an unfinished long reply, in the order in which they get a slice.
    long_replies: VecDeque<u32>,
    fan_outs: FanOuts,
    /// There is more to do for the table of what clients have read.
    is_tidying: bool,
    batch: Batch,
    /// What the batch's packets share.
    packets: ladon_tarantool::Batch,
    limits: Limits,
    limits_generation: u64,
    buffers: Buffers,
    now_ms: u64,
    next_tick_ms: u64,
    turns_since_tick: u32,
    housekeeping: Housekeeping,
    /// Begin of the previous turn, Unix milliseconds.
    turn_before_ms: u64,
    /// When all connections were last checked, Unix seconds.
    looked_at_second: u64,
    /// Largest data size since the last collection of freed memory.
    most_bytes: u64,
    client_memory: ClientMemory,
    replies: ReplyBacklog,
    turn: Turn,
    /// Records were published since the log was last notified or written.
    published: bool,
    /// The log was far behind when the batch began.
    log_is_behind: bool,
    /// The rest of the batch was put back.
    batch_is_over: bool,
    /// The connection whose script runs.
    away: Option<long_scripts::Away>,
    spare: Option<Box<Workbench>>,
    seen: Positions,
    /// What the waiting connections need of the log, and how much of it was requested.
    awaited: Awaited,
    registered: Awaited,
    /// A connection waits for a position that the log had reached before the request.
    some_wait_is_over: bool,
    /// The default gate when the turn began.
    turn_gate: Gate,
    /// The highest LSN that replies leaving at `everysec` in this turn depend on.
    everysec_lsn: Lsn,
    stopping: bool,
    /// Turns so far, for the checks between them.
    turns: u32,
    /// Limits of a turn.
    pub pace: Pace,
    /// Testing only: called at points where other threads may intervene.
    pub interrupt: Option<Interrupt>,
    /// Testing only: says which packets have run.
    pub packet_ran: Option<PacketRan>,
    /// Testing only.
    pub planted: Planted,
    /// Testing only: replies leave without waiting for the gate, which the simulator must notice.
    pub early_reply_canary: bool,
    /// Testing only: the same for replies sent directly by a serving thread.
    pub early_hand_over_canary: bool,
    /// Testing only: replies that leave at `everysec` request no sync, which the simulator must
    /// notice.
    pub unsynced_everysec_canary: bool,
}

impl Worker {
    /// Creates a worker without connections.
    pub fn new(parts: WorkerParts) -> Worker {
        let log = Arc::clone(&parts.node.log);
        let position_waiter = log.add_waiter(Arc::clone(&parts.wake));
        let stats = Arc::clone(&parts.node.stats[parts.thread]);
        let mut local = Local::new(parts.thread, stats, Rng::new(parts.seed));
        local.replies_later = true;
        parts.node.see_pauses(parts.thread);
        parts.node.note_taken(parts.thread);
        let node = Arc::clone(&parts.node);
        let (scratch, appender) = (Scratch::default(), log.appender());
        Worker {
            bench: Box::new(Workbench { node, local, scratch, appender }),
            seen: Positions::of(&log),
            node: parts.node,
            log,
            position_waiter,
            wake: parts.wake,
            awaits_others: true,
            dropper: parts.dropper,
            aside: parts.aside,
            jobs: VecDeque::new(),
            connections: Vec::new(),
            open: 0,
            queues: Queues::default(),
            looked_at_ms: 0,
            deadlines: BTreeSet::new(),
            paused_by: None,
            unpaused: false,
            unseen_users_from: None,
            long_replies: VecDeque::new(),
            fan_outs: FanOuts::default(),
            is_tidying: false,
            batch: Batch::default(),
            packets: ladon_tarantool::Batch::default(),
            limits: Limits::default(),
            limits_generation: u64::MAX,
            buffers: Buffers::default(),
            now_ms: 0,
            next_tick_ms: 0,
            turns_since_tick: 0,
            housekeeping: Housekeeping::default(),
            turn_before_ms: 0,
            looked_at_second: 0,
            most_bytes: 0,
            client_memory: ClientMemory::default(),
            replies: ReplyBacklog::default(),
            turn: Turn::default(),
            published: false,
            log_is_behind: false,
            batch_is_over: false,
            away: None,
            spare: None,
            awaited: Awaited::default(),
            registered: Awaited::default(),
            some_wait_is_over: false,
            turn_gate: Gate::default(),
            everysec_lsn: Lsn::ZERO,
            stopping: false,
            turns: 0,
            pace: Pace::default(),
            interrupt: None,
            packet_ran: None,
            planted: Planted::Nothing,
            early_reply_canary: false,
            early_hand_over_canary: false,
            unsynced_everysec_canary: false,
        }
    }

    /// Testing only: stores do not check whether their sources have changed, which the simulator
    /// must notice.
    pub fn plant_stale_stores(&mut self) {
        self.bench.local.stale_store_canary = true;
    }

    /// Testing only: a subscription misses the first message after its acknowledgement.
    pub fn plant_late_subscriptions(&mut self) {
        self.bench.local.late_subscription_canary = true;
    }

    /// Testing only: a library's load is answered before its record is where the gate wants it.
    pub fn plant_early_loads(&mut self) {
        self.bench.local.early_load_canary = true;
    }

    /// Testing only: who waits for a stream's entries without a group is not woken.
    pub fn plant_unwoken_readers(&mut self) {
        self.bench.local.unwoken_reader_canary = true;
    }

    /// Testing only: the commit of a transaction on spaces does not look at the first thing that it
    /// has read, which the simulator must notice.
    pub fn plant_skipped_reads(&mut self) {
        self.bench.scratch.skipped_read_canary = true;
    }

    /// Testing only: a commit on spaces does not check the foreign keys of what it repeats.
    pub fn plant_unchecked_keys(&mut self) {
        self.bench.scratch.skipped_keys_canary = true;
    }

    /// Testing only: writes in transactions on spaces need no right, which the simulator must
    /// notice.
    pub fn plant_unchecked_rights(&mut self) {
        self.bench.local.unchecked_rights_canary = true;
    }

    /// Testing only: a statement of SQL loses the row at which a slice of it ends, which the
    /// simulator must notice.
    pub fn plant_lost_rows(&mut self) {
        self.bench.local.lost_row_canary = true;
    }

    /// Testing only: a bug in calls of functions.
    pub fn plant_in_calls(&mut self, planted: PlantedInCalls) {
        self.bench.local.planted_in_calls = planted;
    }

    /// Testing only: the lock that each call asks for in this place, from 1 on, is refused at first.
    pub fn refuse_lock_of_calls(&mut self, place: Option<u32>) {
        self.bench.local.refused_lock = place;
    }

    /// Testing only: limits of commits on spaces.
    pub fn set_commit_limits(&mut self, limits: CommitLimits) {
        self.bench.scratch.commit_limits = Some(limits);
    }

    /// Testing only: limits of preparations of definitions of spaces.
    pub fn set_preparation_limits(&mut self, limits: PreparationLimits) {
        self.bench.scratch.preparation_limits = Some(limits);
    }

    /// Testing only: what is taken back is not all that was done, which the simulator must notice.
    pub fn plant_forgetful_undo(&mut self) {
        self.bench.scratch.forgetful_undo_canary = true;
    }

    /// Testing only, with debug assertions: every command on data first runs in a transaction that
    /// is taken back, which nobody must notice.
    pub fn rehearse_changes(&mut self) {
        self.bench.local.rehearses = true;
    }

    /// Number of open connections.
    pub fn open_connections(&self) -> usize {
        self.open
    }

    /// Runs no further requests; replies still leave.
    pub fn stop(&mut self) {
        self.stopping = true;
    }

    /// Whether every owed reply has been sent.
    pub fn is_drained(&self) -> bool {
        self.connections.iter().flatten().all(|c| c.replies.is_drained() || c.closed)
    }

    /// Runs requests within the turn's limits, then sends replies.
    pub fn turn(&mut self, net: &mut impl Net) {
        self.run_requests_on(&mut Some(net as &mut dyn Net));
        self.release(net);
        let spent_ns = self.node.clock.monotonic_ns().saturating_sub(self.turn.began_ns);
        self.bench.local.stats.count_cycle(spent_ns);
    }

    /// First half of a turn: runs requests and publishes to the log.
    pub fn run_requests(&mut self) {
        self.run_requests_on(&mut None);
    }

    fn run_requests_on(&mut self, net: &mut Wire<'_>) {
        let has_data = self.has_data();
        self.node.see_pauses(self.bench.local.thread);
        self.turn = Turn { began_ns: self.node.clock.monotonic_ns(), ..Turn::default() };
        self.now_ms = self.node.clock.unix_ms();
        self.turn_gate = self.node.settings.gate();
        self.refresh_limits();
        self.read_inbox();
        self.turns_since_tick += 1;
        if self.is_tick_due() {
            self.tick();
        } else {
            self.tick_soon();
            self.keep_house();
        }
        self.catch_up();
        self.resume_paused();
        self.resume_readers();
        self.resume_held();
        self.resume_publishers();
        self.publish();
        if has_data && !self.stopping {
            self.run_batches(net);
        }
        // After the received requests, which may serve a wait.
        self.end_overdue();
        self.do_job();
        self.compact_memory();
        self.go_on_with_long_replies();
        if self.planted == Planted::LatePublication {
            self.published |= self.bench.appender.publish();
        }
        self.publish();
        self.deliver_answers();
        self.tidy_trackers();
        self.fan_out();
        self.settle_counters();
    }

    /// Publishes the records appended so far. Also writes them if a connection of any thread waits
    /// for that.
    #[inline]
    fn publish(&mut self) {
        self.published |= self.planted.publish(&mut self.bench.appender);
    }

    #[inline]
    fn interrupt(&mut self, point: Point) {
        if let Some(interrupt) = &mut self.interrupt {
            interrupt(point);
        }
    }

    /// Whether a reply of one of its connections waits for the log.
    pub fn waits_for_log(&self) -> bool {
        self.connections.iter().flatten().any(|connection| connection.replies.awaits().is_some())
    }

    /// Bytes of requests that wait on the connection.
    pub fn unread(&self, conn: ConnId) -> usize {
        self.connections[conn.slot as usize].as_ref().map_or(0, |connection| connection.unread())
    }

    fn positions(&self) -> Positions {
        Positions::of(&self.log)
    }

    fn settle_counters(&mut self) {
        counters::settle(&self.node, &self.bench.local.stats, &mut self.bench.scratch);
        if !self.bench.scratch.garbage.is_empty() {
            let garbage = std::mem::take(&mut self.bench.scratch.garbage);
            if let Some(dropper) = &self.dropper {
                dropper.drop_later(garbage);
            }
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.node.ends_running(self.bench.local.thread);
        self.log.remove_waiter(&self.position_waiter);
    }
}
