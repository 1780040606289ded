//! One run: a seed's schedule of clients, workers, log, checkpoints, faults and crashes.

use crate::client::Client;
use crate::clock::SimClock;
use crate::history::{AskedGate, Operation};
use crate::listener::{self, Listener};
use crate::node::{Ran, SimNode};
use crate::oracle::{Verdict, judge};
use crate::oracle_commands::{Datum, State, readable};
use crate::plan::{Canary, Plan};
use crate::producers::{self, Producer};
use crate::{functions, scripts, streams};
use ladon_log::LogState;
use ladon_model::Gate;
use ladon_net::ConnId;
use ladon_platform::Clock as _;
use ladon_resp::client::Value;
use ladon_sim_disk::{Fault, SimDisk};
use ladon_testkit::Random;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

/// What a run did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Operations of clients.
    pub operations: u64,
    /// Crashes, each followed by a recovery.
    pub crashes: u64,
    /// Checkpoints begun.
    pub checkpoints: u64,
    /// Keys evicted.
    pub evictions: u64,
    /// Commands refused for want of memory.
    pub refusals: u64,
    /// Replies sent directly to a waiting client.
    pub hand_overs: u64,
    /// Changes that no gate promised to keep, and a wait did.
    pub waits_kept: u64,
    /// Scripts that ran by their hashes.
    pub scripts_by_hash: u64,
    /// Hashes whose script the node did not know.
    pub scripts_unknown: u64,
    /// Waits without a group that ended with entries.
    pub entries_awaited: u64,
    /// Entries whose id the node made.
    pub ids_made: u64,
    /// Entries that producers have sent again.
    pub sent_again: u64,
    /// Entries that streams had not added again, as they said at crashes.
    pub duplicates: u64,
    /// How often the clock was set back.
    pub clock_steps: u64,
    /// Loads of functions, and other changes of libraries, that were done.
    pub libraries_changed: u64,
    /// Functions that ran.
    pub functions_run: u64,
    /// Messages that subscribers got.
    pub messages: u64,
    /// Turns after which somebody waited until messages are delivered.
    pub congested_turns: u64,
    /// Crashes after which the oracle's search grew too large to decide.
    pub undecided: u64,
}

impl Report {
    /// Adds what another run did.
    pub fn add(&mut self, run: &Report) {
        self.operations += run.operations;
        self.crashes += run.crashes;
        self.checkpoints += run.checkpoints;
        self.evictions += run.evictions;
        self.refusals += run.refusals;
        self.hand_overs += run.hand_overs;
        self.waits_kept += run.waits_kept;
        self.scripts_by_hash += run.scripts_by_hash;
        self.scripts_unknown += run.scripts_unknown;
        self.entries_awaited += run.entries_awaited;
        self.ids_made += run.ids_made;
        self.sent_again += run.sent_again;
        self.duplicates += run.duplicates;
        self.clock_steps += run.clock_steps;
        self.libraries_changed += run.libraries_changed;
        self.functions_run += run.functions_run;
        self.messages += run.messages;
        self.congested_turns += run.congested_turns;
        self.undecided += run.undecided;
    }
}

/// What failed, with the seed that repeats it.
#[derive(Debug)]
pub struct Trouble {
    /// The seed.
    pub seed: u64,
    /// The failure, and the history that led to it.
    pub what: String,
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "seed {}: {}", self.seed, self.what)
    }
}

/// Runs one seed to its end.
///
/// # Errors
/// The first thing that the oracle cannot explain.
pub fn run_seed(seed: u64, canary: Canary) -> Result<Report, Trouble> {
    let mut run = Run::new(seed, canary).map_err(|what| Trouble { seed, what })?;
    run.run().map_err(|what| Trouble { seed, what })
}

struct Run {
    random: Random,
    plan: Plan,
    canary: Canary,
    disk: SimDisk,
    clock: Arc<SimClock>,
    node: Option<SimNode>,
    clients: Vec<Client>,
    listeners: Vec<Listener>,
    /// The producers, by the slots of the clients that they use.
    producers: Vec<producers::Shared>,
    listening: Option<Random>,
    /// When and how far the clock is set back, if it ever is.
    backwards: Option<Random>,
    history: Vec<Operation>,
    /// Positions in the history, in the order in which the node ran them.
    order: Vec<usize>,
    /// The operation of the last script, and whether it has changed something; `None`: in a
    /// transaction that is not complete.
    last_script: (Option<usize>, bool),
    before: State,
    step: u64,
    names: u64,
    /// The default gate, and the requested one that may be in force.
    default_gate: Gate,
    next_default_gate: Option<Gate>,
    /// Steps with the time at their end, since the last that `everysec` answers for.
    times: VecDeque<(u64, u64)>,
    /// Everything answered at `everysec` up to this step has been synced.
    synced_step: u64,
    report: Report,
}

impl Run {
    fn new(seed: u64, canary: Canary) -> Result<Run, String> {
        let mut random = Random::new(seed);
        let plan = Plan::new(&mut random, canary);
        let mut run = Run {
            default_gate: plan.gate,
            next_default_gate: None,
            times: VecDeque::new(),
            synced_step: 0,
            disk: SimDisk::new(random.next_u64()),
            random,
            plan,
            canary,
            clock: Arc::new(SimClock::new()),
            node: None,
            clients: Vec::new(),
            listeners: Vec::new(),
            producers: Vec::new(),
            listening: None,
            backwards: None,
            history: Vec::new(),
            order: Vec::new(),
            last_script: (None, false),
            before: State::new(),
            step: 0,
            names: 0,
            report: Report::default(),
        };
        run.listening = run.plan.listens.map(Random::new);
        run.backwards = run.plan.streams.map(|seed| Random::new(!seed));
        if let Some(seed) = run.plan.producers {
            run.producers = (0..run.plan.clients).map(|at| Producer::new(seed, at)).collect();
        }
        run.begin_life()?;
        Ok(run)
    }

    fn run(&mut self) -> Result<Report, String> {
        while self.step < self.plan.steps {
            self.begin_step();
            self.clock.advance_us(self.random.below(2_000));
            let node = self.node.as_mut().expect("a node lives between crashes");
            match self.random.below(100) {
                0..40 => self.client_sends(),
                40..65 => self.worker_turns()?,
                65..80 => self.log_steps(),
                80..92 => {
                    self.report.checkpoints += u64::from(node.checkpoint.is_none());
                    node.step_checkpoint();
                }
                92..97 => self.fault(),
                97 => self.clock.advance_us(1_500_000),
                _ if self.random.chance(1, 4) => self.crash()?,
                _ => {}
            }
        }
        self.settle()?;
        self.crash()?;
        let sent_again = self.producers.iter().map(|producer| producer.borrow().sent_again);
        self.report.sent_again = sent_again.sum();
        Ok(self.report)
    }

    fn begin_step(&mut self) {
        self.times.push_back((self.step, self.clock.unix_us()));
        self.step += 1;
    }

    /// The background writer's step. It syncs what was answered at `everysec` a second ago, unless
    /// the disk fails.
    fn log_steps(&mut self) {
        const SECOND_US: u64 = 1_000_000;
        let node = self.node();
        node.threads.write();
        if self.disk.power_is_off() || matches!(node.log.state(), LogState::SyncFailed { .. }) {
            return;
        }
        let now_us = self.clock.unix_us();
        while let Some((step, _)) = self.times.pop_front_if(|(_, at)| *at + SECOND_US <= now_us) {
            self.synced_step = step;
        }
    }

    /// The laxest default gate that may be in force.
    fn laxest_default(&self) -> Gate {
        self.next_default_gate.unwrap_or(self.default_gate).min(self.default_gate)
    }

    /// Requests another default gate: replies in progress may leave at that one.
    fn ask_for_default(&mut self, gate: Gate) {
        self.next_default_gate = Some(gate);
        for operation in self.history.iter_mut().filter(|operation| operation.end.is_none()) {
            if let AskedGate::Default(asked) = &mut operation.gate {
                *asked = gate.min(*asked);
            }
        }
    }

    fn client_sends(&mut self) {
        self.listener_asks();
        let at = self.random.below(self.clients.len() as u64) as usize;
        let threads = Arc::clone(&self.node().threads);
        let default_gate = self.laxest_default();
        let at_time = (self.step, self.clock.unix_us());
        let Some(client) = self.clients.get_mut(at) else { return };
        let bytes = match client.take_unsent() {
            Some(bytes) => bytes,
            None if client.may_send() => {
                let gates = self.plan.default_gates;
                if !gates.is_empty()
                    && self.next_default_gate.is_none()
                    && self.random.chance(1, 32)
                {
                    let gate = gates[self.random.below(gates.len() as u64) as usize];
                    let bytes = client.set_default(gate);
                    self.ask_for_default(gate);
                    bytes
                } else {
                    self.report.operations += 1;
                    client.send(&mut self.random, at_time, default_gate, &mut self.history)
                }
            }
            None => return,
        };
        let Some(client) = self.clients.get_mut(at) else { return };
        if threads.is_paused(client.worker, client.conn) {
            client.keep_unsent(&bytes);
            return;
        }
        // A request may arrive in pieces, with anything in between.
        let cut = self.random.below(bytes.len() as u64 + 1) as usize;
        let (piece, rest) = bytes.split_at(cut);
        if !piece.is_empty() {
            threads.receive(client.worker, client.conn, piece);
        }
        if self.random.chance(1, 3) {
            client.keep_unsent(rest);
        } else if !rest.is_empty() {
            threads.receive(client.worker, client.conn, rest);
        }
    }

    /// A subscriber asks for more, at times.
    fn listener_asks(&mut self) {
        let Some(random) = self.listening.as_mut().filter(|_| !self.listeners.is_empty()) else {
            return;
        };
        let at = random.below(self.listeners.len() as u64) as usize;
        let has_own_gate = !self.plan.own_gates.is_empty();
        if random.chance(1, 3)
            && let Some(bytes) = self.listeners[at].ask(has_own_gate)
        {
            let Listener { worker, conn, .. } = self.listeners[at];
            self.node().threads.receive(worker, conn, &bytes);
        }
    }

    fn node(&self) -> &SimNode {
        self.node.as_ref().expect("a node lives between crashes")
    }

    fn worker_turns(&mut self) -> Result<(), String> {
        let at = self.random.below(self.plan.workers as u64) as usize;
        self.flood(at)?;
        // The halves of a turn apart, so that others come in between.
        let half = self.random.below(3) == 0;
        self.node().threads.turn(at, half);
        (0..self.plan.workers).try_for_each(|worker| self.deliver(worker))
    }

    /// More than a turn can run, from a client that takes no breath.
    fn flood(&mut self, at: usize) -> Result<(), String> {
        /// Bytes at a time.
        const REQUESTS: &[u8] = b"PING\r\nPING\r\nPING\r\nPING\r\nPING\r\nPING\r\n";
        if !self.plan.floods {
            return Ok(());
        }
        let conn = self.flooder();
        let threads = &self.node().threads;
        let unread = threads.worker(at).unread(conn);
        if unread > self.plan.pace.unread_bytes_max + 2 * REQUESTS.len() {
            return Err(self.explain(&format!("worker {at} reads on with {unread} bytes unread")));
        }
        let hears = !threads.is_paused(at, conn) && !threads.is_half_way(at);
        if hears && unread < 10 * REQUESTS.len() {
            threads.receive(at, conn, REQUESTS);
        }
        Ok(())
    }

    /// The connection of each worker that sends without end.
    fn flooder(&self) -> ConnId {
        ConnId { slot: self.plan.clients as u32, generation: 0 }
    }

    /// Takes in what the node says to have run.
    fn note_ran(&mut self) {
        for ran in self.node().ran() {
            let (worker, slot, call) = match ran {
                Ran::Call { worker, slot, call } => (worker, slot, Some(call)),
                Ran::Served { worker, slot } => (worker, slot, None),
                Ran::InScript => {
                    self.last_script.1 = true;
                    if let (Some(at), _) = self.last_script {
                        self.history[at].script_is_idle = false;
                    }
                    continue;
                }
                Ran::Eviction(key) => {
                    self.report.evictions += 1;
                    self.order.push(self.history.len());
                    self.history.push(Operation::eviction(&key, self.step));
                    continue;
                }
            };
            let mut clients = self.clients.iter_mut();
            let Some(client) = clients.find(|c| c.worker == worker && c.conn.slot == slot) else {
                continue;
            };
            match call {
                Some(call) => {
                    let ran = client.ran(&call, &self.history);
                    self.order.extend(ran);
                    if let Some(at) = ran {
                        self.history[at].ran = Some(self.step);
                    }
                    if scripts::is_run(&call) {
                        self.last_script = (ran, false);
                    }
                    let is_script = |&at: &usize| self.history[at].runs_script();
                    if let Some(at) = ran.filter(is_script)
                        && !self.last_script.1
                    {
                        self.history[at].script_is_idle = true;
                    }
                }
                None => {
                    // Not when it came, but now.
                    let served = client.last_ran();
                    self.order.retain(|&at| Some(at) != served);
                    self.order.extend(served);
                }
            }
        }
    }

    fn deliver(&mut self, worker: usize) -> Result<(), String> {
        self.note_ran();
        let threads = Arc::clone(&self.node().threads);
        if let Some(what) = threads.take_trouble() {
            return Err(self.explain(&what));
        }
        self.report.congested_turns += u64::from(threads.worker(worker).has_waiting_publishers());
        let at_time = (self.step, self.clock.unix_us());
        let direct: Vec<_> =
            (0..threads.len()).flat_map(|at| threads.wire(at).take_direct()).collect();
        for (conn, bytes) in direct {
            self.report.hand_overs += 1;
            let client = self.clients.iter_mut().find(|client| client.conn == conn);
            client
                .ok_or("a reply for nobody")?
                .receive(&bytes, at_time, &mut self.history)
                .map_err(|what| self.explain(&what))?;
        }
        let (sent, closed) = {
            let mut wire = threads.wire(worker);
            (std::mem::take(&mut wire.sent), std::mem::take(&mut wire.closed))
        };
        for (conn, bytes) in sent {
            if !self.hears(worker, conn, &bytes)? && conn != self.flooder() {
                let client = self.clients.iter_mut().find(|c| c.worker == worker && c.conn == conn);
                let client = client.ok_or("a reply for nobody")?;
                client
                    .receive(&bytes, at_time, &mut self.history)
                    .map_err(|what| self.explain(&what))?;
            }
            threads.worker(worker).sent(conn, bytes);
        }
        if let Some(gate) = self.clients.iter_mut().find_map(Client::take_default_set) {
            (self.default_gate, self.next_default_gate) = (gate, None);
        }
        for conn in closed {
            // Only a failed sync is a reason to hang up on these clients.
            if !matches!(self.node().log.state(), LogState::SyncFailed { .. }) {
                return Err(self.explain(&format!("worker {worker} hung up on {conn:?}")));
            }
            threads.worker(worker).closed(conn);
            self.listeners.retain(|it| (it.worker, it.conn) != (worker, conn));
            self.clients.retain(|client| client.worker != worker || client.conn != conn);
        }
        Ok(())
    }

    /// Gives bytes to the subscriber that they are for; whether there is one.
    fn hears(&mut self, worker: usize, conn: ConnId, bytes: &[u8]) -> Result<bool, String> {
        let mut listeners = self.listeners.iter_mut();
        let Some(listener) = listeners.find(|it| (it.worker, it.conn) == (worker, conn)) else {
            return Ok(false);
        };
        for payload in listener.receive(bytes, self.step)? {
            self.shown(&payload);
        }
        Ok(true)
    }

    /// A subscriber has got a message: no crash may take back what its publisher did before.
    fn shown(&mut self, payload: &[u8]) {
        let has =
            |op: &Operation| op.calls.iter().any(|call| listener::is_publication(call, payload));
        let Some(at) = self.history.iter().position(has) else { return };
        self.report.messages += 1;
        self.history[at].is_shown = true;
        for client in &self.clients {
            client.shown(at, &mut self.history);
        }
    }

    fn fault(&mut self) {
        let times = 1 + self.random.below(3);
        if self.plan.write_errors && self.random.chance(1, 2) {
            self.disk.fail_next(Fault::Write, times);
        } else if self.plan.sync_errors && self.random.chance(1, 4) {
            self.disk.fail_next(Fault::Sync, 1);
        } else if self.plan.power_cuts && self.random.chance(1, 4) {
            self.disk.cut_power_after(1 + self.random.below(10));
        }
    }

    /// Delivers everything that is owed, as far as a broken disk allows.
    fn settle(&mut self) -> Result<(), String> {
        self.disk.heal();
        self.come_to_rest()?;
        let threads = Arc::clone(&self.node().threads);
        // A client may have sent several consecutive waits of five seconds.
        let waiting = self.history.iter().filter(|operation| operation.end.is_none()).count();
        for _ in 0..20 + 5 * waiting {
            self.begin_step();
            self.clock.advance_us(1_200_000);
            self.send_the_rest();
            self.log_steps();
            // A long reply gets an element a turn.
            for turn in 0..10 * self.plan.workers {
                let worker = turn % self.plan.workers;
                threads.turn(worker, false);
                self.deliver(worker)?;
            }
        }
        let node = self.node.as_ref().expect("a node lives between crashes");
        if !self.disk.power_is_off() && node.log.accepts_writes() {
            let is_open = |it: &&Operation| it.end.is_none() && it.by_itself.is_none();
            if let Some(open) = self.history.iter().find(is_open) {
                return Err(self.explain(&format!("never answered: {}", open.show())));
            }
            let all = true;
            if let Some(what) = listener::trouble(&self.listeners, &self.history, all) {
                return Err(self.explain(&what));
            }
            if let Some(what) = streams::overlooked(&self.history, Some(self.clock.unix_us())) {
                return Err(self.explain(&what));
            }
            let data = node.data();
            let mut history = self.history.clone();
            streams::resolve(&mut history, &data);
            if judge(&history, &self.order, &self.before, &data) == Verdict::Unexplained {
                return Err(
                    self.explain(&format!("not linearizable; the data: {}", readable(&data)))
                );
            }
        }
        Ok(())
    }

    /// What clients have kept of their requests.
    fn send_the_rest(&mut self) {
        let threads = Arc::clone(&self.node().threads);
        for client in &mut self.clients {
            if !threads.is_paused(client.worker, client.conn)
                && let Some(bytes) = client.take_unsent()
            {
                threads.receive(client.worker, client.conn, &bytes);
            }
        }
    }

    /// Runs every thread as long as it is awake, while almost no time passes. Every client that
    /// does not wait for a key must get its reply; otherwise a wake-up is missing or a client
    /// starves.
    fn come_to_rest(&mut self) -> Result<(), String> {
        /// Turns of a worker in a millisecond: a flooded one always has something to do.
        const TURNS_MAX: usize = 50;
        const ROUNDS: usize = 40;
        let mut owed_before = Vec::new();
        let threads = Arc::clone(&self.node().threads);
        let well = !self.disk.power_is_off() && self.node().log.accepts_writes();
        for round in 0..ROUNDS {
            self.step += 1;
            self.clock.advance_us(1_000);
            if round == ROUNDS / 2 {
                owed_before = self.owed();
            }
            self.send_the_rest();
            for _ in 0..TURNS_MAX {
                let mut any = threads.write();
                for worker in 0..threads.len() {
                    self.flood(worker)?;
                    any |= threads.turn(worker, false);
                }
                (0..threads.len()).try_for_each(|worker| self.deliver(worker))?;
                if !any {
                    break;
                }
            }
        }
        if well && self.node().log.accepts_writes() {
            // Requests that only a just-ended wait held up do not count.
            let owed = self.owed();
            if let Some(&at) = owed.iter().find(|at| owed_before.contains(at)) {
                let what = format!("held up: {}", self.history[at].show());
                return Err(self.explain(&what));
            }
            // Half of the rounds ago, so that it came to its waiters since.
            let then_us = self.clock.unix_us() - ROUNDS as u64 / 2 * 1_000;
            if let Some(what) = streams::overlooked(&self.history, Some(then_us)) {
                return Err(self.explain(&what));
            }
        }
        Ok(())
    }

    /// What clients wait for, without any reason that is their own.
    fn owed(&self) -> Vec<usize> {
        self.clients.iter().filter_map(|client| client.owed(&self.history)).collect()
    }

    fn crash(&mut self) -> Result<(), String> {
        self.report.crashes += 1;
        if let Some(what) = listener::trouble(&self.listeners, &self.history, false) {
            return Err(self.explain(&what));
        }
        self.node = None;
        self.clients.clear();
        self.listeners.clear();
        // If there is one gate, it must be one that allows this.
        let is_cut =
            self.plan.power_cuts && (self.plan.own_gates.is_empty() || self.random.chance(2, 3));
        let is_cut = is_cut || self.disk.power_is_off();
        if is_cut {
            self.disk.power_cut();
        } else {
            self.disk.kill();
        }
        for operation in &mut self.history {
            let end = operation.end.as_ref().map_or(0, |(end, _)| *end);
            let may_be_lost = match operation.gate.gate() {
                Gate::None => true,
                Gate::Write => is_cut,
                Gate::EverySec => is_cut && end > self.synced_step,
                Gate::Fsync => false,
            };
            operation.may_be_lost = may_be_lost && !operation.is_durable && !operation.is_shown;
            self.report.waits_kept += u64::from(may_be_lost && operation.is_durable);
        }
        (self.default_gate, self.next_default_gate) = (self.plan.gate, None);
        self.times.clear();
        self.synced_step = self.step;
        self.disk.heal();
        if let Some(random) = &mut self.backwards
            && random.chance(1, 3)
        {
            self.clock.set_back_us(random.below(10_000_000));
            self.report.clock_steps += 1;
        }
        let before = std::mem::take(&mut self.before);
        let mut history = std::mem::take(&mut self.history);
        let order = std::mem::take(&mut self.order);
        self.begin_life()?;
        let refused = || history.iter().filter(|operation| operation.found_no_memory());
        self.report.refusals += refused().count() as u64;
        self.count(&history);
        let listeners = if self.plan.listens.is_some() { 2 * self.plan.workers } else { 0 };
        let connections = (self.plan.clients + self.plan.workers + listeners) as u64;
        if self.plan.memory.is_none_or(|limit| limit.is_enough(connections))
            && let Some(refused) = refused().next()
        {
            return Err(self.explain(&format!("refused with keys to evict: {}", refused.show())));
        }
        let overlooked = streams::overlooked(&history, None);
        if let Some(what) = overlooked.or_else(|| producers::twice(&self.before)) {
            self.history = history;
            return Err(self.explain(&what));
        }
        streams::resolve(&mut history, &self.before);
        let verdict = judge(&history, &order, &before, &self.before);
        self.report.undecided += u64::from(verdict == Verdict::Undecided);
        if verdict == Verdict::Unexplained {
            let found = self.before.clone();
            (self.history, self.before) = (history, before);
            return Err(self.explain(&format!(
                "after the crash at step {}: {}",
                self.step,
                readable(&found)
            )));
        }
        Ok(())
    }

    /// What the operations of a life were.
    fn count(&mut self, history: &[Operation]) {
        for datum in self.before.keys.values() {
            if let Datum::Stream(stream) = datum {
                self.report.duplicates += stream.sent.duplicates;
            }
        }
        for (call, reply) in history.iter().flat_map(Operation::answered) {
            let is_done = !matches!(reply, Value::Error(_));
            self.report.libraries_changed +=
                u64::from(call[0] == b"FUNCTION" && call[1] != b"DUMP" && is_done);
            self.report.functions_run += u64::from(functions::is_run(call) && is_done);
            let got_entries = streams::may_wait(call) && matches!(reply, Value::Array(_));
            self.report.entries_awaited += u64::from(call[0] == b"XREAD" && got_entries);
            self.report.ids_made += u64::from(streams::is_id_made(call, reply));
            let is_unknown = scripts::is_unknown(call, reply);
            self.report.scripts_unknown += u64::from(is_unknown);
            self.report.scripts_by_hash += u64::from(call[0] == b"EVALSHA" && !is_unknown);
        }
    }

    fn begin_life(&mut self) -> Result<(), String> {
        let node =
            SimNode::start(&self.disk, &self.clock, &self.plan, &mut self.random, self.canary);
        let mut node = node.map_err(|what| self.explain(&what))?;
        self.before = node.data();
        for slot in 0..self.plan.clients {
            let worker = slot % self.plan.workers;
            let conn = node.connect(worker, slot as u32);
            self.names += 1;
            let producer = self.producers.get(slot).map(Rc::clone);
            self.clients.push(Client::new(self.names, conn, worker, &self.plan, producer));
        }
        for worker in 0..self.plan.workers {
            node.connect(worker, self.plan.clients as u32);
            for more in (1..=2).filter(|_| self.plan.listens.is_some()) {
                let conn = node.connect(worker, self.plan.clients as u32 + more);
                self.listeners.push(Listener::new(conn, worker));
            }
        }
        self.node = Some(node);
        Ok(())
    }

    fn explain(&self, what: &str) -> String {
        let history: Vec<String> = self.history.iter().map(Operation::show).collect();
        let (plan, before) = (&self.plan, readable(&self.before));
        format!("{what}\nplan: {plan:?}\nbefore: {before}\n{}", history.join("\n"))
    }
}
