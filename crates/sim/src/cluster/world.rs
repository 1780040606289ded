//! The world of a cluster: what comes next, drawn from the seed.

use super::client::{Asked, Client, Operation, Outcome};
use super::net::{Envelope, Post, Posted};
use super::place::{Place, create};
use super::report::ClusterReport;
use super::{ClusterCanary, Plan};
use ladon_platform::Clock as _;
use ladon_raft::{AsyncRuntime, decode_request, decode_response, encode_response};
use ladon_record::Gate;
use ladon_server::group::Ended;
use ladon_server::{ConnectionStart, Protocol};
use ladon_testkit::Random;
use openraft_rt_sim::SimRuntime;
use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// The last events that a failure shows.
const EVENTS_MAX: usize = 120;

/// So many steps of those who are quick count as one.
const QUICK_STEPS: u64 = 8;

/// What came of an operator's order, once that is known.
pub(super) type Answer = Arc<Mutex<Option<Result<String, String>>>>;

/// Of a group of three: one member does not hear the leader from a moment on, so that it stands for
/// election, and the third one restarts, so that its promise not to vote meanwhile is at risk.
#[derive(Clone, Copy)]
pub(super) struct Forgetting {
    pub(super) cuts_us: u64,
    pub(super) restarts_us: u64,
    /// The place of the leader.
    pub(super) leader: usize,
    /// The place of the member that does not hear it.
    pub(super) one: usize,
}

/// One of two members with the data lacks what the other one and the witness commit. Then the witness
/// restarts from its checkpoint, and the one that has it all is gone for a while.
#[derive(Clone, Copy)]
pub(super) struct Stranding {
    /// When the next thing happens.
    pub(super) next_us: u64,
    /// How much of it has happened.
    pub(super) phase: u8,
    /// The place of the leader.
    pub(super) leader: usize,
    /// The place of the witness.
    pub(super) witness: usize,
}

pub(super) struct World {
    pub(super) random: Random,
    pub(super) plan: Plan,
    pub(super) canary: ClusterCanary,
    pub(super) places: Vec<Place>,
    pub(super) post: Post,
    /// Ways that nothing gets through, by numbers of members, and until when.
    pub(super) cut: BTreeSet<(u64, u64)>,
    pub(super) cut_until_us: u64,
    /// As long as the cut lasts, only who changes nothing asks this place.
    pub(super) quiet: Option<usize>,
    /// When everybody is quick, in microseconds, so that much happens within a lease.
    pub(super) quick_us: Range<u64>,
    /// A promise that is about to be forgotten.
    pub(super) restart: Option<Forgetting>,
    /// What the witness alone will have.
    pub(super) strand: Option<Stranding>,
    pub(super) now_us: u64,
    pub(super) step: u64,
    pub(super) clients: Vec<Client>,
    pub(super) history: Vec<Operation>,
    connections: u64,
    /// The order under way, and when it was given.
    pub(super) order: Option<(Answer, u64)>,
    /// Faults come.
    pub(super) faults: bool,
    pub(super) report: ClusterReport,
    pub(super) events: VecDeque<String>,
}

impl World {
    pub(super) fn new(seed: u64, canary: ClusterCanary) -> World {
        let mut random = Random::new(seed);
        let plan = Plan::new(&mut random, seed);
        let mut places: Vec<Place> = (0..plan.members).map(|_| Place::new(&mut random)).collect();
        if let Some(last) = places.last_mut() {
            last.is_witness = plan.has_witness;
        }
        let others = plan.members as u64 / 2 + 1;
        let clients = (0..plan.clients).map(|number| {
            let gate = match number {
                0 | 1 => Gate::Quorum,
                2 => Gate::Write,
                _ => random.pick(&[Gate::Quorum, Gate::Quorum, Gate::Write, Gate::Fsync]),
            };
            Client::new(number, gate, others)
        });
        let reader = Client::reader(plan.clients, others);
        let anywhere = Client::reader_anywhere(plan.clients + 1, others);
        let clients = clients.chain([reader, anywhere]).collect();
        World {
            random,
            plan,
            canary,
            places,
            post: Post::default(),
            cut: BTreeSet::new(),
            cut_until_us: 0,
            quiet: None,
            restart: None,
            strand: None,
            quick_us: 0..0,
            now_us: 0,
            step: 0,
            clients,
            history: Vec::new(),
            connections: 0,
            order: None,
            faults: false,
            report: ClusterReport::default(),
            events: VecDeque::new(),
        }
    }

    pub(super) fn run(&mut self) -> Result<ClusterReport, String> {
        self.begin()?;
        self.faults = true;
        let mut left = self.plan.steps * QUICK_STEPS;
        while left > 0 {
            left = left.saturating_sub(if self.is_quick() { 1 } else { QUICK_STEPS });
            self.one_step()?;
        }
        self.settle()?;
        Ok(self.report)
    }

    /// Makes the cluster: the first node begins it, the others join.
    fn begin(&mut self) -> Result<(), String> {
        let random = &mut self.random;
        self.places[0].start(Some(create()), &self.plan, random, &self.post, self.canary)?;
        self.come_together()
    }

    fn is_quick(&self) -> bool {
        self.quick_us.contains(&self.now_us)
    }

    fn is_disk_busy(&mut self) -> bool {
        self.plan.slow_disks > 1 && !self.random.chance(1, self.plan.slow_disks)
    }

    /// Nothing else fails before a promise is forgotten and what comes of it.
    pub(super) fn is_calm(&self) -> bool {
        self.restart.is_some() || self.strand.is_some() || self.is_quick()
    }

    fn one_step(&mut self) -> Result<(), String> {
        let us = self.random.below(if self.is_quick() { 150 } else { 1_500 });
        self.pass(us);
        let at = self.random.below(self.places.len() as u64) as usize;
        match self.random.below(100) {
            0..24 => self.client_acts()?,
            24..42 => self.worker_turns(at)?,
            42..53 if self.is_disk_busy() => {}
            42..53 => self.log_step(at),
            53..68 => self.take_part(at)?,
            68..92 => {
                for _ in 0..=self.random.below(4) {
                    self.deliver()?;
                }
            }
            92..95 => self.step_checkpoint(at),
            95..98 if self.is_calm() => {}
            95 => self.cut_or_heal(),
            96 => self.fault(at),
            97 => self.start_the_dead(at)?,
            _ => self.operate(),
        }
        self.forget_a_promise();
        self.strand()?;
        self.go_on_forgetting()?;
        self.look();
        Ok(())
    }

    pub(super) fn note(&mut self, what: impl FnOnce() -> String) {
        if self.events.len() == EVENTS_MAX {
            self.events.pop_front();
        }
        let event = format!("step {}, {} ms: {}", self.step, self.now_us / 1000, what());
        tracing::info!("{event}");
        self.events.push_back(event);
    }

    /// Time passes, at each place by its own clock.
    pub(super) fn pass(&mut self, us: u64) {
        self.step += 1;
        self.now_us += us;
        for place in &self.places {
            place.clock.advance_us(us * place.rate_ppm / 1_000_000);
            if place.full_until_us <= self.now_us {
                place.disk.set_capacity(None);
            }
        }
        if self.cut_until_us <= self.now_us {
            self.cut.clear();
            self.quiet = None;
        }
    }

    /// Whether the node at this place runs now.
    pub(super) fn runs(&self, at: usize) -> bool {
        let place = &self.places[at];
        place.life.is_some() && place.stopped_until_us <= self.now_us
    }

    fn client_acts(&mut self) -> Result<(), String> {
        let number = self.random.below(self.clients.len() as u64) as usize;
        let Some(connection) = &self.clients[number].connection else {
            self.connect(number);
            return Ok(());
        };
        let (place, worker, conn) = (connection.place, connection.worker, connection.conn);
        let stays = self.quiet == Some(place) && self.clients[number].only_reads;
        if !stays && self.random.chance(1, 50) {
            self.hang_up(number);
            return Ok(());
        }
        // Who does not hear the leader is to have all of its log, or nobody would vote for it.
        let is_still = self.restart.is_some() && !self.clients[number].only_reads;
        if is_still || !self.clients[number].may_send() {
            return Ok(());
        }
        let at = self.history.len();
        let (asked, bytes) = self.clients[number].ask(&mut self.random, at);
        self.sends(number, asked);
        let life = self.places[place].life.as_ref();
        let threads = &life.ok_or("a client of nobody")?.threads;
        threads.receive(worker, conn, &bytes);
        Ok(())
    }

    /// Notes what a client asks for.
    pub(super) fn sends(&mut self, number: usize, asked: Asked) {
        let client = &self.clients[number];
        let Some(connection) = &client.connection else { return };
        self.report.operations += 1;
        let reign = self.places[connection.place].life.as_ref().and_then(|life| life.reign);
        self.history.push(Operation {
            client: number,
            connection: connection.number,
            place: connection.place,
            gate: client.gate,
            asked,
            begin: self.step,
            end: None,
            reign: (reign, None),
            by_follower: false,
            is_firm: false,
        });
    }

    /// Mostly to a node that leads, or believes so.
    pub(super) fn connect(&mut self, number: usize) {
        let mut at = self.random.below(self.places.len() as u64) as usize;
        let leads = |place: &Place| place.life.as_ref().is_some_and(|life| life.leads());
        if !self.clients[number].is_anywhere && self.random.chance(3, 4) {
            let count = self.places.len();
            at = (0..count)
                .map(|it| (at + it) % count)
                .find(|&it| leads(&self.places[it]))
                .unwrap_or(at);
        }
        if let Some(quiet) = self.quiet {
            at = match self.clients[number].only_reads {
                true => quiet,
                false if at == quiet => (at + 1) % self.places.len(),
                false => at,
            };
        }
        let place = &self.places[at];
        let Some(life) = &place.life else { return };
        self.connections += 1;
        let worker = self.random.below(self.plan.workers as u64) as usize;
        let to = (self.connections, at, place.lives);
        let (conn, bytes) = self.clients[number].connect(to, worker);
        let addr = format!("sim:{worker}.{}", conn.slot);
        let start = ConnectionStart {
            conn,
            laddr: addr.clone(),
            addr,
            fd: 0,
            unix: false,
            protocol: Protocol::Resp,
            certificate: None,
            user: None,
            transport_bytes: 0,
        };
        life.threads.wire(worker).paused.remove(&conn.slot);
        life.threads.worker(worker).opened(start, None);
        life.threads.receive(worker, conn, &bytes);
    }

    /// The client ends its connection.
    pub(super) fn hang_up(&mut self, number: usize) {
        let Some(connection) = &self.clients[number].connection else { return };
        let place = &self.places[connection.place];
        if let Some(life) = place.life.as_ref().filter(|_| place.lives == connection.life) {
            life.threads.worker(connection.worker).closed(connection.conn);
        }
        self.clients[number].hang_up(self.step, &mut self.history);
    }

    /// All connections to a place have ended.
    pub(super) fn hang_up_all(&mut self, at: usize) {
        for client in &mut self.clients {
            if client.connection.as_ref().is_some_and(|it| it.place == at) {
                client.hang_up(self.step, &mut self.history);
            }
        }
    }

    pub(super) fn worker_turns(&mut self, at: usize) -> Result<(), String> {
        if !self.runs(at) {
            return Ok(());
        }
        let worker = self.random.below(self.plan.workers as u64) as usize;
        let half = self.random.below(4) == 0;
        if let Some(life) = &self.places[at].life {
            life.threads.turn(worker, half);
        }
        self.collect(at)
    }

    /// Takes in what the workers of a place have sent.
    pub(super) fn collect(&mut self, at: usize) -> Result<(), String> {
        let Some(life) = &self.places[at].life else { return Ok(()) };
        let threads = Arc::clone(&life.threads);
        let (reign, is_follower) = (life.reign, !life.has_led);
        if let Some(what) = threads.take_trouble() {
            return Err(what);
        }
        for worker in 0..threads.len() {
            let (sent, closed, direct) = {
                let mut wire = threads.wire(worker);
                let direct = wire.take_direct();
                (std::mem::take(&mut wire.sent), std::mem::take(&mut wire.closed), direct)
            };
            let step = self.step;
            for (conn, bytes) in direct {
                self.hears((at, worker), conn, &bytes, (reign, is_follower))?;
            }
            for (conn, bytes) in sent {
                self.hears((at, worker), conn, &bytes, (reign, is_follower))?;
                threads.worker(worker).sent(conn, bytes);
            }
            for conn in closed {
                threads.worker(worker).closed(conn);
                for client in &mut self.clients {
                    let is_it = |it: &super::client::Connection| {
                        (it.place, it.worker, it.conn) == (at, worker, conn)
                    };
                    if client.connection.as_ref().is_some_and(is_it) {
                        client.hang_up(step, &mut self.history);
                    }
                }
            }
        }
        Ok(())
    }

    /// Gives bytes to the client that they are for, if it still listens.
    fn hears(
        &mut self,
        (at, worker): (usize, usize),
        conn: ladon_net::ConnId,
        bytes: &[u8],
        (reign, is_follower): (Option<u64>, bool),
    ) -> Result<(), String> {
        let client = self.clients.iter_mut().find(|client| {
            let connection = client.connection.as_ref();
            connection.is_some_and(|it| (it.place, it.worker, it.conn) == (at, worker, conn))
        });
        let Some(client) = client else { return Ok(()) };
        let answered = client.receive(bytes, self.step, &mut self.history)?;
        let others = self.plan.members as u64 / 2 + 1;
        for operation in answered {
            let it = &mut self.history[operation];
            it.reign.1 = reign;
            it.by_follower = is_follower;
            let (connection, outcome) = (it.connection, it.end.as_ref().map(|(_, it)| it.clone()));
            let is_read = matches!(outcome, Some(Outcome::List(_)));
            let is_told = is_read || matches!(outcome, Some(Outcome::Length(_)));
            self.report.quorum_answers += u64::from(is_told && it.gate == Gate::Quorum);
            self.report.follower_reads += u64::from(is_read && is_follower);
            let is_asked = is_read && is_follower && it.gate == Gate::Quorum;
            self.report.follower_quorum_reads += u64::from(is_asked);
            let voters = self.plan.members as u64;
            if self.plan.has_witness
                && matches!(outcome, Some(Outcome::Count(count)) if count >= voters - 1)
            {
                return Err(format!("a wait has counted the witness: {}", it.show()));
            }
            if matches!(outcome, Some(Outcome::Count(count)) if count >= others) {
                self.report.waits_confirmed += 1;
                let earlier = &mut self.history[..operation];
                earlier.iter_mut().filter(|it| it.connection == connection).for_each(|it| {
                    it.is_firm |= matches!(it.end, Some((_, Outcome::Length(_))));
                });
            }
        }
        Ok(())
    }

    pub(super) fn log_step(&mut self, at: usize) {
        if self.runs(at)
            && let Some(life) = &self.places[at].life
        {
            life.threads.write();
        }
    }

    /// The group's thread of a node takes a turn.
    pub(super) fn take_part(&mut self, at: usize) -> Result<(), String> {
        if !self.runs(at) || self.places[at].raft_rests_until_us > self.now_us {
            return Ok(());
        }
        let Some(life) = &mut self.places[at].life else { return Ok(()) };
        let ended = life.take_part();
        if let Some(told) = life.lack() {
            return Err(told);
        }
        let writes = life.standing.writes();
        if writes != life.reign.is_some() {
            self.report.reigns += u64::from(writes);
            life.reign = writes.then_some(self.report.reigns);
            let (id, reigns) = (self.places[at].id, self.report.reigns);
            self.note(|| format!("member {id} writes: {writes} (reign {reigns})"));
            // What it takes for committed, most have on their disks.
            if writes && self.faults && !self.is_calm() && self.may_lose_all_power(3) {
                self.collect(at)?;
                self.lose_all_power();
                return Ok(());
            }
        }
        self.collect(at)?;
        let Some(ended) = ended else { return Ok(()) };
        match ended {
            Ended::Diverged => self.report.rewinds += 1,
            Ended::Replaced => self.report.replacements += 1,
            Ended::Stopped => return Err("the seat was left for no reason".to_owned()),
        }
        let id = self.places[at].id;
        self.note(|| format!("member {id} reads its data anew: {ended:?}"));
        self.hang_up_all(at);
        if let Some(life) = self.places[at].life.take() {
            life.leave(ended);
        }
        self.start(at)
    }

    /// The node at this place starts; it may lose its power meanwhile.
    pub(super) fn start(&mut self, at: usize) -> Result<(), String> {
        let place = &mut self.places[at];
        // Room is made first.
        place.full_until_us = 0;
        place.disk.set_capacity(None);
        let random = &mut self.random;
        match place.start(None, &self.plan, random, &self.post, self.canary) {
            Ok(()) => Ok(()),
            Err(_) if place.disk.power_is_off() => {
                self.end(at, true);
                Ok(())
            }
            // The disk may have refused something: the next start finds it well.
            Err(_) if self.faults && self.plan.disk_errors => {
                self.end(at, false);
                Ok(())
            }
            Err(what) => Err(format!("member {}: {what}", self.places[at].id)),
        }
    }

    /// The life at a place ends without a word.
    pub(super) fn end(&mut self, at: usize, power: bool) {
        self.hang_up_all(at);
        let place = &mut self.places[at];
        let id = place.id;
        drop(place.life.take());
        place.stopped_until_us = 0;
        place.raft_rests_until_us = 0;
        if power {
            place.disk.power_cut();
        } else {
            place.disk.kill();
        }
        place.disk.heal();
        let mut post = self.post.lock().expect("nothing panics with it");
        post.retain(|posted| posted.from != id && posted.to != id);
    }

    fn step_checkpoint(&mut self, at: usize) {
        if self.runs(at)
            && let Some(life) = &mut self.places[at].life
        {
            self.report.checkpoints += u64::from(life.step_checkpoint());
        }
    }

    /// Whose power is off is gone.
    pub(super) fn look(&mut self) {
        for at in 0..self.places.len() {
            if self.places[at].life.is_some() && self.places[at].disk.power_is_off() {
                self.report.power_cuts += 1;
                let id = self.places[at].id;
                self.note(|| format!("member {id} has lost its power"));
                self.end(at, true);
            }
        }
    }

    /// Delivers one of the messages that are due, mostly the oldest.
    pub(super) fn deliver(&mut self) -> Result<(), String> {
        let Some(posted) = self.take_message() else { return Ok(()) };
        let Posted { from, to, envelope, .. } = posted;
        let Some(at) = self.places.iter().position(|place| place.id == to) else { return Ok(()) };
        let post = Arc::clone(&self.post);
        let Some(life) = &mut self.places[at].life else { return Ok(()) };
        match envelope {
            Envelope::Question(request, reply) => {
                let request = decode_request(&request).map_err(|error| error.to_string())?;
                let answers = life.answers();
                life.run(async move |_| {
                    SimRuntime::spawn(async move {
                        // A member that takes no part says nothing.
                        if let Ok(response) = answers.respond(request).await {
                            let envelope =
                                Envelope::Answer(encode_response(&response).into(), reply);
                            let posted = Posted { from: to, to: from, envelope, due_us: None };
                            post.lock().expect("nothing panics with it").push(posted);
                        }
                    });
                });
            }
            Envelope::Answer(response, reply) => {
                let response = decode_response(&response).map_err(|error| error.to_string())?;
                life.run(async move |_| drop(reply.send(Ok(response))));
            }
        }
        self.collect(at)
    }

    fn take_message(&mut self) -> Option<Posted> {
        let (loss, late) = match self.faults {
            true => (self.plan.loss, self.plan.late),
            false => (0, 0),
        };
        let post = Arc::clone(&self.post);
        let mut post = post.lock().expect("nothing panics with it");
        for posted in post.iter_mut().filter(|posted| posted.due_us.is_none()) {
            let delay_us = match late > 0 && self.random.chance(1, late) {
                true => self.random.below(3 * self.plan.failover_ms * 1000),
                false => self.random.below(1_000),
            };
            posted.due_us = Some(self.now_us + delay_us);
        }
        let may_come = |posted: &Posted| {
            posted.due_us <= Some(self.now_us)
                && self.places.iter().position(|place| place.id == posted.to).is_none_or(|at| {
                    self.places[at].life.is_none()
                        || self.runs(at) && self.places[at].raft_rests_until_us <= self.now_us
                })
        };
        let due: Vec<usize> = (0..post.len()).filter(|&at| may_come(&post[at])).collect();
        let last = due.len().checked_sub(1)?;
        let at = match self.random.chance(1, 5) {
            true => due[self.random.below(last as u64 + 1) as usize],
            false => due[0],
        };
        let posted = post.remove(at);
        let is_lost = loss > 0 && self.random.chance(1, loss);
        (!is_lost && !self.cut.contains(&(posted.from, posted.to))).then_some(posted)
    }

    pub(super) fn explain(&mut self, what: &str) -> String {
        let places = self.places.iter_mut().map(|place| {
            let life = place.life.as_mut().map(|life| life.show());
            let (ms, id) = (place.clock.unix_ms(), place.id);
            format!("member {id}, {} lives, at {ms} ms: {life:?}\n", place.lives)
        });
        let places: String = places.collect();
        let events: Vec<&str> = self.events.iter().map(String::as_str).collect();
        let history: Vec<String> = self.history.iter().map(Operation::show).collect();
        let (plan, events, history) = (&self.plan, events.join("\n"), history.join("\n"));
        format!("{what}\nplan: {plan:?}\n{places}{events}\n{history}")
    }
}
