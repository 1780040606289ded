//! The rounds: start, load, end in one of several ways, check the files, restart, check the data.

use crate::bank::Bank;
use crate::client::Client;
use crate::iproto::IprotoClient;
use crate::lane::Lane;
use crate::process::{Launch, Server, ladon_check};
use crate::queue::SharedQueue;
use crate::shared::SharedCounter;
use crate::voices::{HttpClient, MemcachedClient};
use ladon_resp::client::{Value, write_request};
use ladon_testkit::{Ports, Random};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread::{ScopedJoinHandle, scope, sleep};
use std::time::Duration;

/// What to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The binary.
    pub program: PathBuf,
    /// Where the data directory and the server's output go; empty at first.
    pub dir: PathBuf,
    /// Rounds.
    pub rounds: u64,
    /// Names the run: operations, times and settings follow from it. The schedule of the
    /// threads does not, so a failure need not come again.
    pub seed: u64,
    /// Connections with their own keys.
    pub lanes: u64,
    /// Keys that make checkpoints and recoveries last.
    pub filler_keys: u64,
    /// IO backends to take turns with.
    pub backends: Vec<String>,
    /// Gates to take turns with.
    pub gates: Vec<String>,
    /// Takes the gate `none` at its word for one that loses nothing, which is wrong: proves that
    /// the checks would notice a loss.
    pub trust_none: bool,
    /// Says what each round does.
    pub verbose: bool,
}

/// `none` may lose acknowledged operations, so most rounds use gates that may not.
pub const GATES: [&str; 7] = ["write", "fsync", "everysec", "fsync", "write", "everysec", "none"];

/// What was run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Summary {
    /// Rounds.
    pub rounds: u64,
    /// Servers killed, those in recovery included.
    pub kills: u64,
    /// Servers that were asked to stop.
    pub stops: u64,
    /// Operations that the lanes had acknowledged, and found again.
    pub operations: u64,
    /// Transfers between accounts that were acknowledged, and found again.
    pub transfers: u64,
    /// Transfers that were refused because they met another.
    pub conflicts: u64,
    /// Definitions of a space that were acknowledged.
    pub definitions: u64,
    /// Elements of the queue that consumers waited for and got.
    pub handed_over: u64,
    /// Increments that memcached's clients had acknowledged.
    pub memcached: u64,
    /// Increments that clients of HTTP had acknowledged.
    pub http: u64,
}

/// How a round ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Kill,
    KillInCheckpoint,
    KillInRecovery,
    Terminate,
    Shutdown(&'static str),
}

/// How a round's server is set up.
#[derive(Clone, Debug)]
struct Setup {
    ending: Ending,
    gate: String,
    backend: String,
    threads: u64,
    checkpoint_bytes: &'static str,
    load_ms: u64,
}

impl Setup {
    fn new(plan: &Plan, round: u64, random: &mut Random) -> Setup {
        let ending = match random.below(10) {
            0..3 => Ending::Kill,
            3..6 => Ending::KillInCheckpoint,
            6..8 => Ending::KillInRecovery,
            8 => Ending::Terminate,
            _ => Ending::Shutdown(random.pick(&["NOSAVE", "SAVE"])),
        };
        Setup {
            ending,
            gate: plan.gates[round as usize % plan.gates.len()].clone(),
            backend: plan.backends[round as usize % plan.backends.len()].clone(),
            threads: 1 + random.below(3),
            checkpoint_bytes: random.pick(&["1mb", "4mb", "1gb"]),
            load_ms: 30 + random.below(400),
        }
    }

    fn arguments(&self, ports: OtherPorts) -> Vec<String> {
        let threads = self.threads.to_string();
        let [iproto, memcached, http] =
            [ports.iproto, ports.memcached, ports.http].map(|port| format!("127.0.0.1:{port}"));
        let pairs = [
            ("--gate", self.gate.as_str()),
            ("--io-backend", &self.backend),
            ("--io-threads", &threads),
            ("--log-segment-bytes", "1mb"),
            ("--checkpoint-log-bytes", self.checkpoint_bytes),
            ("--iproto", &iproto),
            ("--memcached", &memcached),
            ("--http", &http),
            ("--iproto-admin-password", PASSWORD),
        ];
        pairs.iter().flat_map(|&(flag, value)| [flag.to_owned(), value.to_owned()]).collect()
    }
}

/// What all connections share.
#[derive(Default)]
struct Shared {
    counter: SharedCounter,
    queue: SharedQueue,
    bank: Bank,
    ports: OtherPorts,
    memcached: AtomicU64,
    http: AtomicU64,
}

/// Where other dialects than RESP listen.
#[derive(Clone, Copy, Debug, Default)]
struct OtherPorts {
    iproto: u16,
    memcached: u16,
    http: u16,
}

/// Connections that wait for the queue's elements.
const CONSUMERS: usize = 3;

/// Connections that move money.
const TELLERS: u64 = 3;

/// `admin`'s password.
const PASSWORD: &str = "secret";

/// Runs the rounds.
///
/// # Errors
/// The first thing that is not as it should be, with the round it happened in.
pub fn run(plan: &Plan) -> Result<Summary, String> {
    let mut lanes: Vec<Lane> = (0..plan.lanes).map(|n| Lane::new(plan.seed, n)).collect();
    let taken = Ports::take(3).map_err(text)?;
    let [iproto, memcached, http] = [0, 1, 2].map(|n| taken.numbers()[n]);
    let ports = OtherPorts { iproto, memcached, http };
    let shared = Shared { ports, ..Shared::default() };
    let mut random = Random::stream(plan.seed, u64::MAX);
    let mut summary = Summary::default();
    let mut launch = Launch::new(&plan.program, &plan.dir, &[]);
    for round in 0..plan.rounds {
        let setup = Setup::new(plan, round, &mut random);
        if plan.verbose {
            println!("round {round}: {setup:?}");
        }
        launch.arguments = setup.arguments(ports);
        let outcome = one(plan, &launch, &setup, &mut random, &mut lanes, &shared, &mut summary);
        outcome.map_err(|error| {
            let output = std::fs::read_to_string(&launch.output).unwrap_or_default();
            format!("round {round} of seed {}, {setup:?}: {error}\n{output}", plan.seed)
        })?;
        summary.rounds += 1;
    }
    summary.operations = lanes.iter().map(Lane::acknowledged).sum();
    summary.handed_over = shared.queue.given();
    summary.transfers = shared.bank.committed();
    summary.conflicts = shared.bank.conflicts();
    summary.memcached = shared.memcached.load(SeqCst);
    summary.http = shared.http.load(SeqCst);
    summary.definitions = shared.bank.definitions.acknowledged();
    Ok(summary)
}

fn one(
    plan: &Plan,
    launch: &Launch,
    setup: &Setup,
    random: &mut Random,
    lanes: &mut [Lane],
    shared: &Shared,
    summary: &mut Summary,
) -> Result<(), String> {
    let mut server = launch.start().map_err(|error| error.to_string())?;
    let mut client = server.connect().map_err(text)?;
    if summary.rounds == 0 {
        fill(&mut client, plan.filler_keys).map_err(text)?;
        open(&shared.bank, shared.ports.iproto, &mut client)?;
    }
    // At `none` the most recent acknowledged operations may be lost, but no more: what existed
    // before the round stays, and the rest is the state after some operation.
    let lossy = setup.gate == "none" && !plan.trust_none;
    let before: Vec<_> = lanes.iter().map(Lane::mark).collect();
    load(&mut server, setup, random, lanes, shared)?;
    let clean = matches!(setup.ending, Ending::Terminate | Ending::Shutdown(_));
    if clean {
        summary.stops += 1;
    } else {
        summary.kills += 1;
    }
    if setup.ending == Ending::KillInRecovery {
        for _ in 0..1 + random.below(3) {
            let mut server = launch.spawn().map_err(text)?;
            sleep(Duration::from_millis(random.below(60)));
            server.kill().map_err(text)?;
            summary.kills += 1;
        }
    }
    let (code, report) = ladon_check(&launch.program, &launch.data).map_err(text)?;
    if code != Some(0) {
        return Err(format!("ladon check ends with {code:?}:\n{report}"));
    }
    if clean && !report.contains("sound; closed in good order") {
        return Err(format!("ladon check does not find a clean end:\n{report}"));
    }
    let server = launch.start().map_err(|error| error.to_string())?;
    let mut client = server.connect().map_err(text)?;
    shared.counter.check(&mut client, lossy)?;
    shared.queue.check(&mut client, lossy)?;
    let mut auditor = IprotoClient::connect(shared.ports.iproto, PASSWORD).map_err(text)?;
    shared.bank.check(&mut auditor, lossy)?;
    for (lane, before) in lanes.iter_mut().zip(&before) {
        if lossy && !clean {
            lane.check_prefix(before, &mut client)?;
        } else {
            lane.check(&mut client)?;
        }
    }
    check_filler(&mut client, plan.filler_keys)
}

/// Lets all connections work until the server ends as the round has it.
fn load(
    server: &mut Server,
    setup: &Setup,
    random: &mut Random,
    lanes: &mut [Lane],
    shared: &Shared,
) -> Result<(), String> {
    // Connected before the load begins, so that its own refusal cannot look like the crash.
    let mut clients = Vec::new();
    for _ in 0..lanes.len() + 3 + 1 + CONSUMERS {
        clients.push(server.connect().map_err(text)?);
    }
    let mut control = server.connect().map_err(text)?;
    let Shared { counter, queue, bank, ports, .. } = shared;
    let mut tellers = Vec::new();
    for _ in 0..TELLERS {
        tellers.push(IprotoClient::connect(ports.iproto, PASSWORD).map_err(text)?);
    }
    let mut definer = IprotoClient::connect(ports.iproto, PASSWORD).map_err(text)?;
    let mut memcached = MemcachedClient::connect(ports.memcached).map_err(text)?;
    let mut http = HttpClient::connect(ports.http).map_err(text)?;
    scope(|scope| {
        let mut workers: Vec<ScopedJoinHandle<'_, Result<(), String>>> = Vec::new();
        let mut take = || clients.pop().ok_or("a client for each");
        let (mut first, mut second, mut watcher) = (take()?, take()?, take()?);
        workers.push(scope.spawn(move || counter.count(&mut first, &AtomicU64::new(0))));
        workers.push(scope.spawn(move || counter.count(&mut second, &AtomicU64::new(0))));
        workers.push(scope.spawn(move || counter.count(&mut memcached, &shared.memcached)));
        workers.push(scope.spawn(move || counter.count(&mut http, &shared.http)));
        workers.push(scope.spawn(move || counter.watch(&mut watcher)));
        let mut producer = take()?;
        workers.push(scope.spawn(move || queue.produce(&mut producer)));
        for _ in 0..CONSUMERS {
            let mut consumer = take()?;
            workers.push(scope.spawn(move || queue.consume(&mut consumer)));
        }
        for mut teller in tellers {
            let seed = random.next_u64();
            workers.push(scope.spawn(move || bank.work(&mut teller, seed)));
        }
        let seed = random.next_u64();
        workers.push(scope.spawn(move || bank.definitions.work(&mut definer, seed)));
        for (lane, pipeline_max) in lanes.iter_mut().zip([1, 8, 64, 200].into_iter().cycle()) {
            let mut client = take()?;
            workers.push(scope.spawn(move || lane.load(&mut client, pipeline_max)));
        }
        sleep(Duration::from_millis(setup.load_ms));
        let ended = end(server, setup, random, &mut control);
        // Whatever failed, the workers end only with the server.
        let killed = server.kill();
        for worker in workers {
            worker.join().map_err(|_| "a panic, printed above".to_owned())??;
        }
        ended.and(killed.map_err(text))
    })
}

fn end(
    server: &mut Server,
    setup: &Setup,
    random: &mut Random,
    control: &mut Client,
) -> Result<(), String> {
    let status = match setup.ending {
        Ending::Kill | Ending::KillInRecovery => return server.kill().map_err(text),
        Ending::KillInCheckpoint => {
            let reply = control.call(&["BGSAVE"]).map_err(text)?;
            // An automatic checkpoint may be in progress.
            let busy = matches!(&reply, Value::Error(text) if text.ends_with(b"in progress"));
            if reply.is_error() && !busy {
                return Err(format!("BGSAVE answered {reply:?}"));
            }
            sleep(Duration::from_micros(random.below(40_000)));
            return server.kill().map_err(text);
        }
        Ending::Terminate => server.terminate(),
        Ending::Shutdown(how) => {
            control.request(&["SHUTDOWN", how]).map_err(text)?;
            server.wait()
        }
    };
    let status = status.map_err(text)?;
    if !status.success() {
        return Err(format!("the server ends with {status} and says:\n{}", server.output()));
    }
    Ok(())
}

/// Opens the bank; all of it is on the disk then, whatever the gate.
fn open(bank: &Bank, iproto: u16, client: &mut Client) -> Result<(), String> {
    bank.open(&mut IprotoClient::connect(iproto, PASSWORD).map_err(text)?)?;
    let saved = client.call(&["SAVE"]).map_err(text)?;
    if saved.is_error() { Err(format!("SAVE answered {saved:?}")) } else { Ok(()) }
}

/// Keys that no lane touches: checkpoints carry them from round to round.
fn fill(client: &mut Client, keys: u64) -> io::Result<()> {
    const PIPELINE: u64 = 1000;
    for first in (0..keys).step_by(PIPELINE as usize) {
        let mut bytes = Vec::new();
        let last = keys.min(first + PIPELINE);
        for key in first..last {
            write_request(&mut bytes, &["SET".to_owned(), filler(key), format!("{key:0100}")]);
        }
        client.send(&bytes)?;
        for _ in first..last {
            client.reply()?;
        }
    }
    Ok(())
}

/// Checks a few hundred of them.
fn check_filler(client: &mut Client, keys: u64) -> Result<(), String> {
    for key in (0..keys).step_by((keys / 300).max(1) as usize) {
        let value = client.call(&["GET".to_owned(), filler(key)]).map_err(text)?;
        if value != Value::Bulk(format!("{key:0100}").into_bytes()) {
            return Err(format!("{} holds {value:?}", filler(key)));
        }
    }
    Ok(())
}

fn filler(key: u64) -> String {
    format!("filler:{key}")
}

fn text(error: io::Error) -> String {
    error.to_string()
}
