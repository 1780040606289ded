//! One run: a seed's schedule of clients, workers, log, checkpoints, faults and crashes.
//!
//! This file chooses what comes next. `delivery.rs` takes in what came of it, `rest.rs` lets
//! everything come to its end, `crash.rs` ends a life and judges what the next one finds.

mod crash;
mod delivery;
mod report;
mod rest;

use crate::client::Client;
use crate::clock::SimClock;
use crate::history::{AskedGate, Operation};
use crate::node::SimNode;
use crate::oracle_commands::{State, readable};
use crate::plan::{Canary, Plan};
use crate::producers::{self, Producer};
use crate::spaces::Spaces;
use crate::subscriber::Subscriber;
use ladon_log::LogState;
use ladon_net::ConnId;
use ladon_platform::Clock as _;
use ladon_record::Gate;
use ladon_sim_disk::{Fault, SimDisk};
use ladon_testkit::Random;
use std::collections::VecDeque;
use std::sync::Arc;

pub use report::Report;

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
    subscribers: Vec<Subscriber>,
    /// The producers, by the slots of the clients that they use.
    producers: Vec<producers::Shared>,
    listening: Option<Random>,
    spaces: Option<Spaces>,
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
            subscribers: Vec::new(),
            producers: Vec::new(),
            listening: None,
            spaces: None,
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
        run.spaces = run.plan.spaces.map(|seed| Spaces::new(seed, &run.plan));
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
        self.spaces.iter_mut().for_each(|spaces| spaces.ask_for_default(gate));
        for operation in self.history.iter_mut().filter(|operation| operation.end.is_none()) {
            if let AskedGate::Default(asked) = &mut operation.gate {
                *asked = gate.min(*asked);
            }
        }
    }

    fn client_sends(&mut self) {
        self.subscriber_asks();
        if let Some(mut spaces) = self.spaces.take() {
            spaces.send(&self.node().threads, self.step, self.laxest_default());
            self.spaces = Some(spaces);
        }
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
    fn subscriber_asks(&mut self) {
        let Some(random) = self.listening.as_mut().filter(|_| !self.subscribers.is_empty()) else {
            return;
        };
        let at = random.below(self.subscribers.len() as u64) as usize;
        let has_own_gate = !self.plan.own_gates.is_empty();
        if random.chance(1, 3)
            && let Some(bytes) = self.subscribers[at].ask(has_own_gate)
        {
            let Subscriber { worker, conn, .. } = self.subscribers[at];
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

    fn explain(&self, what: &str) -> String {
        let history: Vec<String> = self.history.iter().map(Operation::show).collect();
        let (plan, before) = (&self.plan, readable(&self.before));
        let spaces = self.spaces.as_ref().map_or_else(String::new, Spaces::history);
        format!("{what}\nplan: {plan:?}\nbefore: {before}\n{}\n{spaces}", history.join("\n"))
    }
}
