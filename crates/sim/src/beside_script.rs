//! Clients of spaces beside a script that runs long: is each answered, and does what they were
//! answered outlive the process?
//!
//! Its own small world: one IO thread, nothing fails. While a script runs, the thread lets the
//! network be served; requests of IPROTO then run on another workbench than the script's
//! (`crates/server/src/worker/long_scripts.rs`). Once the scripts are over, everything has to come
//! to its end, as without them.

use crate::clock::SimClock;
use crate::node::{SimNode, Wire};
use crate::plan::{Canary, Plan};
use crate::run::{Report, Trouble};
use crate::spaces::Spaces;
use crate::threads::Threads;
use ladon_net::{ConnId, Outgoing};
use ladon_resp::client::write_request;
use ladon_server::{Net, Worker};
use ladon_sim_disk::SimDisk;
use ladon_testkit::Random;
use std::sync::{Arc, MutexGuard};

/// Scripts, one after the other.
const SCRIPTS: u64 = 3;

/// Some dozen checks whether the network is to be served: one each 4096 instructions.
const SCRIPT: &[u8] = b"local n = 0 for i = 1, 60000 do n = n + 1 end return n";

/// Time between two of these checks: some of them pass before the script counts as long.
const SCRIPT_STEP_US: u64 = 300;

/// Slots of the spaces' clients: behind the script's.
const SPACES_SLOT: u32 = 1;

/// A run without trouble.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BesideScript {
    /// How often the network was served while a script ran.
    pub pumps: u64,
    /// How often replies came meanwhile.
    pub answers: u64,
}

/// Runs a seed.
///
/// # Errors
/// A request that is never answered, or an acknowledged one that is lost.
pub fn run_beside_script(seed: u64, canary: Canary) -> Result<BesideScript, Trouble> {
    run(&mut Random::new(seed), canary).map_err(|what| Trouble { seed, what })
}

fn run(random: &mut Random, canary: Canary) -> Result<BesideScript, String> {
    let plan = Plan::beside_script(random);
    let (disk, clock) = (SimDisk::new(random.next_u64()), Arc::new(SimClock::new()));
    let mut node = SimNode::start(&disk, &clock, &plan, random, canary)?;
    let mut spaces = Spaces::new(random.next_u64(), &plan);
    let mut report = Report::default();
    spaces.recovered(&mut node, &plan, SPACES_SLOT, &mut report)?;
    let script = node.connect(0, 0);
    let (step, seen) = live(&node, &mut spaces, &plan, (script, &clock), random)?;
    if let Some(what) = spaces.trouble_at_rest(&node.keyspace) {
        return Err(format!("{what}\n{}", spaces.history()));
    }
    drop(node);
    disk.kill();
    spaces.crash(false, step);
    let mut node = SimNode::start(&disk, &clock, &plan, random, canary)?;
    let judged = spaces.recovered(&mut node, &plan, SPACES_SLOT, &mut report);
    judged.map_err(|what| format!("{what}\n{}", spaces.history()))?;
    if node.data().keys.is_empty() {
        return Err("what was set after the scripts is lost".to_owned());
    }
    Ok(seen)
}

/// Runs the scripts, and what comes beside them. Returns the last step as well.
fn live(
    node: &SimNode,
    spaces: &mut Spaces,
    plan: &Plan,
    (script, clock): (ConnId, &SimClock),
    random: &mut Random,
) -> Result<(u64, BesideScript), String> {
    let mut world = World {
        threads: &node.threads,
        clock,
        wire: node.threads.wire(0),
        plan,
        spaces,
        script,
        random,
        step: 0,
        asks: true,
        replies: 0,
        trouble: None,
        seen: BesideScript::default(),
    };
    let mut request = Vec::new();
    write_request(&mut request, &[&b"EVAL"[..], SCRIPT, b"0"]);
    for _ in 0..SCRIPTS {
        node.threads.receive(0, script, &request);
        clock.set_step_us(SCRIPT_STEP_US);
        world.turn()?;
        clock.set_step_us(1);
    }
    // A write of the scripts' client, after all of them.
    node.threads.receive(0, script, b"SET a 1\r\n");
    world.come_to_rest()?;
    Ok((world.step, world.seen))
}

/// The network and its clients, as the thread sees them in its turns and during a script.
struct World<'a> {
    threads: &'a Threads,
    clock: &'a SimClock,
    wire: MutexGuard<'a, Wire>,
    plan: &'a Plan,
    spaces: &'a mut Spaces,
    /// The connection of the scripts' client.
    script: ConnId,
    random: &'a mut Random,
    step: u64,
    /// Clients send more.
    asks: bool,
    /// Replies that the scripts' client has got.
    replies: u64,
    trouble: Option<String>,
    seen: BesideScript,
}

impl World<'_> {
    /// A turn of the thread, with all that comes of it.
    fn turn(&mut self) -> Result<(), String> {
        let threads = self.threads;
        threads.turn_on(0, self);
        self.serve(&mut threads.worker(0));
        self.trouble.take().map_or(Ok(()), |what| Err(self.explain(&what)))
    }

    /// Until everybody is answered.
    fn come_to_rest(&mut self) -> Result<(), String> {
        self.asks = false;
        for _ in 0..100 {
            self.clock.advance_us(1_200_000);
            self.turn()?;
            if self.replies == SCRIPTS + 1 && self.spaces.owed().is_empty() {
                return Ok(());
            }
        }
        let owed = self.spaces.owed();
        let owed: Vec<String> = owed.iter().map(|&at| self.spaces.show(at)).collect();
        let what = format!(
            "{} of {} replies to the scripts' client; never answered: {}",
            self.replies,
            SCRIPTS + 1,
            owed.join("\n")
        );
        Err(self.explain(&what))
    }

    /// Passes on what clients send and what they are sent, and lets the log's writer work.
    fn serve(&mut self, worker: &mut Worker) {
        self.step += 1;
        self.clock.advance_us(self.random.below(4_000));
        let (step, gate) = (self.step, self.plan.gate);
        let packets = if self.asks { self.spaces.packets(step, gate) } else { self.spaces.rest() };
        for (conn, bytes) in packets {
            worker.received(conn, &bytes);
        }
        self.threads.write();
        let ran = self.spaces.note_ran(self.threads.take_packets());
        self.note(ran);
        for (conn, bytes) in std::mem::take(&mut self.wire.sent) {
            if conn == self.script {
                self.replies += bytes.iter().filter(|&&byte| byte == b'\n').count() as u64;
            } else {
                let heard = self.spaces.receive((0, conn), &bytes, step);
                self.note(heard.map(drop));
                self.seen.answers += u64::from(self.asks);
            }
            worker.sent(conn, bytes);
        }
        let closed = std::mem::take(&mut self.wire.closed);
        self.note(if closed.is_empty() { Ok(()) } else { Err("hung up".to_owned()) });
    }

    fn note(&mut self, done: Result<(), String>) {
        if let Err(what) = done {
            self.trouble.get_or_insert(what);
        }
    }

    fn explain(&self, what: &str) -> String {
        format!("{what}\nplan: {:?}\n{}", self.plan, self.spaces.history())
    }
}

impl Net for World<'_> {
    fn send(&mut self, conn: ConnId, outgoing: Outgoing, more: bool) {
        self.wire.send(conn, outgoing, more);
    }

    fn close(&mut self, conn: ConnId) {
        self.wire.close(conn);
    }

    fn pause_receive(&mut self, conn: ConnId, paused: bool) {
        self.wire.pause_receive(conn, paused);
    }

    fn poll(&mut self, worker: &mut Worker) -> bool {
        self.seen.pumps += 1;
        self.serve(worker);
        true
    }
}
