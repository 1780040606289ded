//! A node of the cluster: its disk and clock, and its life from recovery to its end.
//!
//! A life is the server's own: worker, commands, engine, log, checkpoints, recovery, and what
//! `ladon_server::group` decides for a member, on a runtime in virtual time. The runtime's time follows
//! the node's clock: where a node stood still, its runtime comes to what it missed one after the other,
//! at the times at which it would have been.

use super::net::{Lack, Post, Postman};
use super::{ClusterCanary, Plan};
use crate::clock::SimClock;
use crate::threads::{Threads, Woken};
use ladon_engine::Keyspace;
use ladon_kernel::cluster::{Cluster, MemberKind, Order};
use ladon_kernel::message::ThreadHandle;
use ladon_kernel::node::Node;
use ladon_kernel::role::Role;
use ladon_kernel::shared::Shared;
use ladon_log::{DataDir, Log, LogOptions};
use ladon_platform::{Clock, Disk};
use ladon_raft::{AsyncRuntime, GroupState};
use ladon_server::group::{self, Answers, Ended, Handle, Sitting, Standing};
use ladon_server::{
    Applied, Assembly, CheckpointRun, Recovered, Worker, WorkerParts, dataset, finish_incoming,
    node_over, recover,
};
use ladon_settings::Loader;
use ladon_sim_disk::SimDisk;
use ladon_testkit::Random;
use openraft_rt_sim::{SimInstant, SimRuntime};
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::mpsc::unbounded_channel;

const DIR: &str = "/data";
/// The cluster's id.
const CLUSTER: [u8; 16] = *b"a simulated one.";
/// Looks at a finished checkpoint before it is given up because the group does not commit.
const COMMIT_LOOKS_MAX: u32 = 200;

/// A machine, and the node that may run on it.
pub(super) struct Place {
    /// Its number in the group; zero: it has none.
    pub(super) id: u64,
    /// Whoever is here has no data.
    pub(super) is_witness: bool,
    pub(super) disk: SimDisk,
    pub(super) clock: Arc<SimClock>,
    /// How fast its clock goes, millionths.
    pub(super) rate_ppm: u64,
    pub(super) life: Option<Life>,
    /// How many lives it has had.
    pub(super) lives: u64,
    /// The process stands still until this moment of the world.
    pub(super) stopped_until_us: u64,
    /// The disk is full until this moment of the world.
    pub(super) full_until_us: u64,
    /// The thread of the group gets no time until this moment of the world.
    pub(super) raft_rests_until_us: u64,
}

/// A node that runs.
pub(super) struct Life {
    pub(super) threads: Arc<Threads>,
    pub(super) shared: Arc<Shared>,
    pub(super) keyspace: Arc<Keyspace>,
    pub(super) log: Arc<Log>,
    pub(super) standing: Arc<Standing>,
    sitting: Sitting<SimRuntime>,
    answers: Arc<Answers<SimRuntime>>,
    runtime: SimRuntime,
    clock: Arc<SimClock>,
    /// How far the runtime has come.
    runtime_us: u64,
    checkpoint: Option<(CheckpointRun, u32)>,
    /// It is about what is committed no more than that: it leads, or has led.
    pub(super) has_led: bool,
    /// The reign under way, if it leads and writes.
    pub(super) reign: Option<u64>,
    checkpoint_ahead: bool,
    lack: Lack,
}

impl Place {
    pub(super) fn new(random: &mut Random) -> Place {
        let clock = Arc::new(SimClock::new());
        clock.advance_us(random.below(20_000_000));
        Place {
            id: 0,
            is_witness: false,
            disk: SimDisk::new(random.next_u64()),
            clock,
            // With the microseconds that each look at a clock takes, two of them differ by less than a
            // fifth.
            rate_ppm: 950_000 + random.below(100_000),
            life: None,
            lives: 0,
            stopped_until_us: 0,
            full_until_us: 0,
            raft_rests_until_us: 0,
        }
    }

    /// Recovers and runs. With a `join`, the directory is new and becomes a member's by this order.
    pub(super) fn start(
        &mut self,
        join: Option<Order>,
        plan: &Plan,
        random: &mut Random,
        post: &Post,
        canary: ClusterCanary,
    ) -> Result<(), String> {
        let seed = random.next_u64();
        let life = Life::start(self, join, plan, &mut Random::new(seed), post, canary)?;
        self.life = Some(life);
        self.lives += 1;
        Ok(())
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        self.sitting.let_go();
    }
}

impl Life {
    fn start(
        place: &mut Place,
        join: Option<Order>,
        plan: &Plan,
        random: &mut Random,
        post: &Post,
        canary: ClusterCanary,
    ) -> Result<Life, String> {
        let disk: Arc<dyn Disk> = Arc::new(place.disk.clone());
        let clock = Arc::clone(&place.clock);
        let mut recovered = open(&disk, &clock, plan, random.next_u64())?;
        recovered.log.set_follower(true);
        recovered.keyspace.set_follower(true);
        place.id = match &join {
            Some(Order::Create { .. }) => 1,
            Some(Order::Join { member, .. }) => *member,
            _ => recovered.group.as_ref().map_or(0, |group| group.state.member()),
        };
        let (node, handle, threads) = assemble(place.id, &recovered, &clock, plan, random, canary)?;
        let rest = rest_of(Arc::downgrade(&threads), &clock);
        let shared = node.shared();
        let mut placed =
            group::stand(shared, &mut recovered, disk, (None, rest), canary.of_group());
        // As at a server: it runs, and belongs to no cluster, when it is told to join.
        if let Some(order) = join {
            let joined = group::join(order, &placed.log, (&mut placed.index, &mut placed.state));
            joined.map_err(|error| failed("join", &error))??;
        }
        let (standing, log) = (Arc::clone(&placed.standing), Arc::clone(&placed.log));
        let patience = Duration::from_millis(plan.failover_ms.max(100));
        let lack = Lack::default();
        let postman =
            Postman { from: place.id, post: Arc::clone(post), patience, lack: lack.clone() };
        let answers = Answers::new(Arc::default());
        let mut runtime = SimRuntime::with_seed(random.next_u64());
        clock.begin_runtime();
        let taken = runtime.block_on(Sitting::take(placed, &handle, Arc::new(postman), &answers));
        let mut sitting = taken.map_err(|error| failed("sit down", &error))?;
        sitting.amounts = plan.amounts;
        Ok(Life {
            threads,
            shared: Arc::clone(shared),
            keyspace: Arc::clone(&recovered.keyspace),
            log,
            standing,
            sitting,
            answers,
            runtime,
            clock,
            runtime_us: 0,
            checkpoint: None,
            has_led: false,
            reign: None,
            checkpoint_ahead: canary == ClusterCanary::CheckpointAhead,
            lack,
        })
    }

    /// Runs this on the node's runtime, once that has come to the present, and lets its tasks run.
    pub(super) fn run<R>(&mut self, work: impl AsyncFnOnce(&mut Sitting<SimRuntime>) -> R) -> R {
        let behind_us = self.clock.runtime_us().saturating_sub(self.runtime_us);
        let sitting = &mut self.sitting;
        let (result, us) = self.runtime.block_on(async {
            SimRuntime::sleep(Duration::from_micros(behind_us)).await;
            let result = work(sitting).await;
            // Longer than no time: all that can run has run by then.
            SimRuntime::sleep(Duration::from_micros(1)).await;
            let now = <SimInstant as ladon_raft::RuntimeInstant>::now();
            (result, now.elapsed_since_start().as_micros() as u64)
        });
        self.runtime_us = us;
        self.clock.runtime_is_at(us);
        result
    }

    /// The group's thread takes a turn. Returns how the seat was left, if it was.
    pub(super) fn take_part(&mut self) -> Option<Ended> {
        let ended = self.run(async |sitting| sitting.turn().await);
        self.has_led |= self.standing.writes();
        ended
    }

    /// The seat is left, and the directory is let go for the next life.
    pub(super) fn leave(mut self, ended: Ended) {
        let answers = Arc::clone(&self.answers);
        self.run(async |sitting| sitting.leave(ended, &answers).await);
        self.log.let_go();
    }

    /// What this node says of another one that lacks what it had on its disk.
    pub(super) fn lack(&self) -> Option<String> {
        self.lack.lock().expect("nothing panics with it").clone()
    }

    pub(super) fn answers(&self) -> Arc<Answers<SimRuntime>> {
        Arc::clone(&self.answers)
    }

    /// Members, and whether each votes.
    pub(super) fn members(&mut self) -> Vec<(u64, bool)> {
        let members = self.run(async |sitting| sitting.seat().members());
        members.into_iter().map(|seen| (seen.id, seen.votes)).collect()
    }

    /// Whether a change of the members is not committed yet.
    pub(super) fn is_changing(&mut self) -> bool {
        self.run(async |sitting| sitting.seat().is_changing())
    }

    /// The last entry of its log, and the last one that the library has applied.
    pub(super) fn entries(&mut self) -> (u64, u64) {
        let now = self.run(async |sitting| sitting.seat().now());
        (now.last_index, now.applied_index)
    }

    /// How it stands in its group, for somebody who looks for a bug.
    pub(super) fn show(&mut self) -> String {
        let now = self.run(async |sitting| sitting.seat().now());
        let members = self.members();
        let (applied, end) = (self.standing.applied(), self.log.reserved());
        let (role, state) = (self.shared.role.get(), self.log.state());
        format!("{role:?}, applied {applied}, log to {end}, {state:?}, {now:?}, {members:?}")
    }

    /// Whether it takes part no more until it is restarted.
    pub(super) fn has_stopped(&mut self) -> bool {
        self.why_stopped().is_some()
    }

    /// Why the library does nothing any more for this member, if that is so.
    pub(super) fn why_stopped(&mut self) -> Option<String> {
        self.run(async |sitting| sitting.seat().now().stopped)
    }

    pub(super) fn leads(&self) -> bool {
        self.shared.role.get() == Role::Leads && self.standing.writes()
    }

    /// One step of the checkpoint in the making, or the beginning of one.
    pub(super) fn step_checkpoint(&mut self) -> bool {
        // Errors of the disk are part of the world; the checkpoint is lost then, no more.
        let Some((mut run, looks)) = self.checkpoint.take() else {
            let applied = Arc::clone(&self.standing) as Arc<dyn Applied>;
            let begun = CheckpointRun::begin_at(&self.keyspace, &self.log, Some(applied)).ok();
            self.checkpoint = begun.map(|mut run| {
                run.ahead_canary = self.checkpoint_ahead;
                (run, 0)
            });
            return false;
        };
        if looks == 0 {
            match run.step() {
                Ok(true) => {
                    self.checkpoint = Some((run, 0));
                    return false;
                }
                Ok(false) => {}
                Err(_) => return false,
            }
        }
        if run.is_committed() {
            return run.finish(0).is_ok();
        }
        if looks < COMMIT_LOOKS_MAX {
            self.checkpoint = Some((run, looks + 1));
        }
        false
    }
}

fn failed(what: &str, error: &dyn std::fmt::Display) -> String {
    format!("cannot {what}: {error}")
}

/// Recovers the data of a node of a cluster.
fn open(
    disk: &Arc<dyn Disk>,
    clock: &Arc<SimClock>,
    plan: &Plan,
    seed: u64,
) -> Result<Recovered, String> {
    let path = Path::new(DIR);
    finish_incoming(disk, path).map_err(|error| failed("finish", &error))?;
    let options = LogOptions {
        segment_bytes: plan.segment_bytes,
        chunk_bytes: 4096,
        ..LogOptions::default()
    };
    let shared_clock: Arc<dyn Clock> = Arc::<SimClock>::clone(clock);
    let dir = DataDir::open(Arc::clone(disk), shared_clock, path, options, seed);
    let dir = dir.map_err(|error| failed("open", &error))?;
    let state = GroupState::open(Arc::clone(disk), path, dir.meta().dir_id);
    let state = state.map_err(|error| failed("read the group's state", &error))?;
    let recovered = recover(dir, 1, clock.unix_ms(), 1, |_| {}, &|_| {}, Some(state));
    recovered.map_err(|error| failed("recover", &error))
}

type Assembled = (Arc<Node>, Arc<Handle<SimRuntime>>, Arc<Threads>);

/// A node over this data, and its threads.
fn assemble(
    id: u64,
    recovered: &Recovered,
    clock: &Arc<SimClock>,
    plan: &Plan,
    random: &mut Random,
    canary: ClusterCanary,
) -> Result<Assembled, String> {
    let mut loader = Loader::new();
    loader.flag("cluster-enabled", "yes");
    loader.flag("failover-timeout", &plan.failover_ms.to_string());
    let (settings, _) = loader.finish().map_err(|error| failed("set", &error))?;
    let woken: Vec<Woken> = (0..plan.workers).map(|_| Woken::default()).collect();
    let wake = |woken: &Woken| {
        let woken = Arc::clone(woken);
        move || woken.store(true, Relaxed)
    };
    let assembly = Assembly {
        settings: Arc::new(settings),
        clock: Arc::<SimClock>::clone(clock),
        threads: woken.iter().map(|woken| ThreadHandle::new(wake(woken))).collect(),
        run_id: "0".repeat(40),
        io_backend: "sim".to_owned(),
    };
    let mut shared = assembly.shared();
    let (orders, _) = unbounded_channel();
    let address = |port: u64| format!("node{id}:{port}");
    let known = Arc::clone(&shared.threads);
    let handle = Handle::<SimRuntime>::new((address(16379), address(6379)), orders, known);
    shared.cluster = Some(Arc::clone(&handle) as Arc<dyn Cluster>);
    let (data, _) = dataset(&shared, recovered, 0, Arc::default());
    let node = Arc::new(node_over(shared, data));
    let workers = (0..plan.workers).map(|thread| {
        let mut worker = Worker::new(WorkerParts {
            node: Arc::clone(&node),
            thread,
            seed: random.next_u64(),
            wake: Arc::new(wake(&woken[thread])),
            dropper: None,
            aside: None,
        });
        if canary == ClusterCanary::LaxFollower {
            worker.planted = ladon_server::Planted::LaxFollower;
        }
        worker
    });
    let workers = workers.collect();
    let threads = Threads::new(workers, woken.clone(), &recovered.log, clock, random);
    threads.never_rest();
    Ok((node, handle, threads))
}

/// What lets a node's threads go on while its group's thread waits for them.
fn rest_of(others: Weak<Threads>, clock: &Arc<SimClock>) -> group::Rest {
    let clock = Arc::clone(clock);
    Box::new(move |_| {
        let Some(threads) = others.upgrade() else { return };
        clock.set_outside(true);
        for at in 0..threads.len() {
            threads.turn(at, false);
        }
        clock.set_outside(false);
    })
}

/// The order that makes a node the first member of the cluster.
pub(super) fn create() -> Order {
    Order::Create { cluster: CLUSTER }
}

/// The order that makes a node this member.
pub(super) fn join(member: u64, is_witness: bool) -> Order {
    Order::Join { cluster: CLUSTER, member, is_witness }
}

/// The order that adds a member.
pub(super) fn add(member: u64, is_witness: bool) -> Order {
    let kind = if is_witness { MemberKind::Witness } else { MemberKind::Voter };
    let address = |port: u64| format!("node{member}:{port}");
    Order::Add { member, address: address(16379), client: address(6379), kind }
}
