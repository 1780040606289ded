//! Real Ladon processes as the nodes of one cluster.

use super::network::Network;
use crate::client::Client;
use ladon_resp::client::Value;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a cluster may take to become whole again on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);
const CONNECT: Duration = Duration::from_millis(500);
const STATUS: Duration = Duration::from_secs(1);
/// The end of a node's log that a failure shows.
const SHOWN_BYTES: usize = 3000;

/// What must not be in a node's log.
const ALARMS: [&str; 2] = ["panicked", "takes part in its cluster no more"];

/// How to start a cluster.
#[derive(Clone, Debug)]
pub struct Shape {
    /// The server's binary.
    pub program: PathBuf,
    /// Where the nodes' files are.
    pub dir: PathBuf,
    /// How many members.
    pub count: usize,
    /// The last of them is a witness: it votes, and has no data.
    pub has_witness: bool,
    /// Milliseconds: the setting `failover-timeout`.
    pub failover_ms: u64,
    /// A network namespace for each node; this process is inside of its own.
    pub in_namespaces: bool,
}

/// What a node says of itself and of the members.
#[derive(Clone, Debug, Default)]
pub(crate) struct Status {
    own: BTreeMap<String, String>,
    pub(crate) members: Vec<BTreeMap<String, String>>,
}

impl Status {
    pub(crate) fn fact(&self, name: &str) -> &str {
        self.own.get(name).map_or("", |text| text)
    }

    fn leads(&self) -> bool {
        self.fact("role") == "leader"
    }
}

#[derive(Default)]
struct Process {
    child: Option<Child>,
    /// It was told to stop, or its disk is full: its end is no surprise.
    may_end: bool,
    is_stopped: bool,
}

/// The nodes. Killed, and their network removed, when dropped.
pub(crate) struct Nodes {
    shape: Shape,
    pub(crate) network: Network,
    processes: Vec<Mutex<Process>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// A connection whose replies may take so long.
pub(crate) fn connect(address: SocketAddr, patience: Duration) -> io::Result<Client> {
    let mut client = Client::on(TcpStream::connect_timeout(&address, CONNECT)?)?;
    client.stream().set_read_timeout(Some(patience))?;
    Ok(client)
}

/// Looks until it is so, or [`PATIENCE`] is over.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> Result<T, String> {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return Ok(found);
        }
        if began.elapsed() > PATIENCE {
            return Err(format!("{what}: not within {} s", PATIENCE.as_secs()));
        }
        sleep(Duration::from_millis(20));
    }
}

fn text(value: &Value) -> Option<String> {
    value.as_bytes().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
}

impl Nodes {
    /// Starts them and makes them a cluster.
    pub(crate) fn start(shape: &Shape) -> Result<Nodes, String> {
        let nodes = Nodes::launch_all(shape)?;
        let addresses: Vec<String> =
            (0..shape.count).map(|node| nodes.network.address(node).to_string()).collect();
        let mut words = vec!["create", "--timeout", "90"];
        let replicas = shape.count.saturating_sub(2).to_string();
        if shape.has_witness {
            words.extend(["--shards", "1", "--replicas", &replicas]);
        }
        words.extend(addresses.iter().map(|address| &address[..]));
        nodes.cluster(&words)?;
        Ok(nodes)
    }

    fn launch_all(shape: &Shape) -> Result<Nodes, String> {
        let network = match shape.in_namespaces {
            true => Network::namespaces(shape.count, &shape.dir)?,
            false => Network::loopback(shape.count)?,
        };
        let processes = (0..shape.count).map(|_| Mutex::default()).collect();
        let nodes = Nodes { shape: shape.clone(), network, processes };
        (0..shape.count).try_for_each(|node| nodes.launch(node))?;
        Ok(nodes)
    }

    pub(crate) fn count(&self) -> usize {
        self.shape.count
    }

    /// The members that have data: all but a witness.
    pub(crate) fn with_data(&self) -> std::ops::Range<usize> {
        0..self.shape.count - usize::from(self.shape.has_witness)
    }

    pub(crate) fn failover(&self) -> Duration {
        Duration::from_millis(self.shape.failover_ms)
    }

    pub(crate) fn address(&self, node: usize) -> SocketAddr {
        self.network.address(node)
    }

    /// The folder of a node's disk.
    pub(crate) fn disk(&self, node: usize) -> PathBuf {
        self.shape.dir.join(format!("node-{node}"))
    }

    pub(crate) fn data(&self, node: usize) -> PathBuf {
        self.disk(node).join("data")
    }

    fn log(&self, node: usize) -> PathBuf {
        self.shape.dir.join(format!("log-{node}"))
    }

    /// Starts a node, and waits until it answers.
    pub(crate) fn launch(&self, node: usize) -> Result<(), String> {
        self.spawn(node)?;
        until(&format!("an answer of node {node}"), || {
            let pong = connect(self.address(node), STATUS).ok()?.call(&["PING"]).ok()?;
            (pong == Value::Simple("PONG".into())).then_some(())
        })
        .map_err(|error| format!("{error}\n{}", self.log_end(node)))
    }

    /// Starts a node, and waits until it answers (`true`) or has ended.
    pub(crate) fn launch_or_end(&self, node: usize) -> Result<bool, String> {
        self.spawn(node)?;
        self.may_end(node);
        until(&format!("an answer or the end of node {node}"), || {
            if !self.runs(node) {
                return Some(false);
            }
            let pong = connect(self.address(node), STATUS).ok()?.call(&["PING"]).ok()?;
            (pong == Value::Simple("PONG".into())).then_some(true)
        })
    }

    fn spawn(&self, node: usize) -> Result<(), String> {
        let told = |error: io::Error| format!("node {node} does not start: {error}");
        fs::create_dir_all(self.disk(node)).map_err(told)?;
        let log = OpenOptions::new().create(true).append(true).open(self.log(node));
        let log = log.map_err(told)?;
        let child = self
            .network
            .command(node, &self.shape.program)
            .args(["serve", "--resp", &self.address(node).to_string(), "--io-threads", "1"])
            .args(["--cluster-enabled", "yes", "--cluster-secret", "the crash rounds'"])
            .args(["--cluster-port", &self.network.mesh_port(node).to_string()])
            .args(["--failover-timeout", &self.shape.failover_ms.to_string()])
            .args(["--enable-debug-command", "yes", "--protected-mode", "no", "--data"])
            .arg(self.data(node))
            .env_remove(super::inside::INSIDE)
            .stdin(Stdio::null())
            .stdout(log.try_clone().map_err(told)?)
            .stderr(log)
            .spawn()
            .map_err(told)?;
        *lock(&self.processes[node]) = Process { child: Some(child), ..Process::default() };
        Ok(())
    }

    /// Starts all that do not run, and lets all that stand still go on.
    pub(crate) fn restore(&self) -> Result<(), String> {
        for node in 0..self.count() {
            self.go_on(node);
            if !self.runs(node) {
                self.spawn(node)?;
            }
        }
        Ok(())
    }

    /// Whether its process is there.
    pub(crate) fn runs(&self, node: usize) -> bool {
        let mut process = lock(&self.processes[node]);
        process.child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }

    /// `kill -9`.
    pub(crate) fn kill(&self, node: usize) {
        let mut process = lock(&self.processes[node]);
        if let Some(mut child) = process.child.take() {
            // It may have ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// SIGTERM, and its end.
    pub(crate) fn terminate(&self, node: usize) -> Result<(), String> {
        self.may_end(node);
        self.signal(node, Signal::SIGTERM);
        let ended = until(&format!("the end of node {node}"), || (!self.runs(node)).then_some(()));
        self.kill(node);
        ended
    }

    /// From now on, its end is no surprise.
    pub(crate) fn may_end(&self, node: usize) {
        lock(&self.processes[node]).may_end = true;
    }

    fn signal(&self, node: usize, signal: Signal) {
        let mut process = lock(&self.processes[node]);
        process.is_stopped = signal == Signal::SIGSTOP;
        if let Some(child) = &process.child {
            // It may have ended.
            let _ = kill(Pid::from_raw(child.id() as i32), signal);
        }
    }

    /// SIGSTOP. When this returns, no thread of it runs any more, or it has ended: on a busy machine one
    /// may go on for a while after the signal, and the kernel tells a parent of a stop once all have
    /// (waitpid(2), `WUNTRACED`).
    pub(crate) fn stand_still(&self, node: usize) {
        self.signal(node, Signal::SIGSTOP);
        let Some(id) = lock(&self.processes[node]).child.as_ref().map(Child::id) else { return };
        // The end of it stays to be waited for by others.
        let either = WaitPidFlag::WSTOPPED | WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
        let _ = waitid(Id::Pid(Pid::from_raw(id as i32)), either);
    }

    /// SIGCONT.
    pub(crate) fn go_on(&self, node: usize) {
        if lock(&self.processes[node]).is_stopped {
            self.signal(node, Signal::SIGCONT);
        }
    }

    /// `ladon cluster ...`.
    pub(crate) fn cluster(&self, arguments: &[&str]) -> Result<String, String> {
        let ran = Command::new(&self.shape.program)
            .arg("cluster")
            .args(arguments)
            .env_remove(super::inside::INSIDE)
            .output();
        let ran = ran.map_err(|error| error.to_string())?;
        let told = String::from_utf8_lossy(&ran.stderr).into_owned();
        match ran.status.success() {
            true => Ok(told),
            false => Err(format!("ladon cluster {}: {told}", arguments.join(" "))),
        }
    }

    /// What a node says now.
    pub(crate) fn status(&self, node: usize) -> Option<Status> {
        let mut client = connect(self.address(node), STATUS).ok()?;
        let Value::Array(said) = client.call(&["LADON.CLUSTER", "STATUS"]).ok()? else {
            return None;
        };
        let mut status = Status::default();
        for pair in said.chunks_exact(2) {
            match &pair[1] {
                Value::Array(members) => {
                    for member in members {
                        let Value::Array(facts) = member else { return None };
                        let facts = facts.chunks_exact(2);
                        let facts = facts.map(|pair| Some((text(&pair[0])?, text(&pair[1])?)));
                        status.members.push(facts.collect::<Option<_>>()?);
                    }
                }
                value => drop(status.own.insert(text(&pair[0])?, text(value)?)),
            }
        }
        Some(status)
    }

    /// The node that leads and may answer, if one does now. Nodes that stand still are not asked.
    pub(crate) fn leader_now(&self) -> Option<usize> {
        let leads = |node: &usize| self.status(*node).is_some_and(|status| status.leads());
        let awake = |node: &usize| {
            let stopped = lock(&self.processes[*node]).is_stopped;
            !stopped && self.runs(*node)
        };
        (0..self.count()).filter(awake).find(leads)
    }

    /// Waits for one that leads.
    pub(crate) fn leader(&self) -> Result<usize, String> {
        until("a leader", || self.leader_now()).map_err(|error| format!("{error}\n{}", self.logs()))
    }

    /// Waits for one of these that leads.
    pub(crate) fn leader_among(&self, among: &[usize]) -> Result<usize, String> {
        until("a leader", || {
            let leads = |node: &&usize| self.status(**node).is_some_and(|status| status.leads());
            among.iter().find(leads).copied()
        })
        .map_err(|error| format!("{error}\n{}", self.logs()))
    }

    pub(crate) fn others(&self, node: usize) -> Vec<usize> {
        (0..self.count()).filter(|&other| other != node).collect()
    }

    /// A connection to a node, at a gate.
    pub(crate) fn client(&self, node: usize, gate: &str) -> Result<Client, String> {
        until(&format!("a connection to node {node}"), || {
            let mut client = connect(self.address(node), Duration::from_secs(5)).ok()?;
            let ok = client.call(&["CLIENT", "GATE", gate]).ok()?;
            (ok == Value::Simple("OK".into())).then_some(client)
        })
    }

    /// A request at the gate `quorum` on a connection of its own: where most members are away, even the
    /// order to use that gate is not answered.
    pub(crate) fn ask_at_quorum(
        &self,
        node: usize,
        words: &[&str],
        patience: Duration,
    ) -> io::Result<Value> {
        let mut client = connect(self.address(node), patience)?;
        client.request(&["CLIENT", "GATE", "quorum"])?;
        client.request(words)?;
        client.reply()?;
        client.reply()
    }

    /// Takes a node's data away while it does not run, and has it belong again as a new member.
    pub(crate) fn replace(&self, node: usize) -> Result<(), String> {
        self.kill(node);
        let address = self.address(node).to_string();
        let data = self.data(node);
        fs::remove_dir_all(&data).map_err(|error| format!("{}: {error}", data.display()))?;
        let old = self.members_at(self.leader()?, &address);
        self.launch(node)?;
        until(&format!("node {node} to be replaced"), || {
            let leader = self.leader_now()?;
            let there = self.members_at(leader, &address);
            let asked = self.address(leader).to_string();
            let goes = |number: &&String| there.contains(number);
            for number in old.iter().filter(goes) {
                self.cluster(&["replace-node", &asked, number, &address, "--timeout", "20"])
                    .ok()?;
            }
            let is_new = |number: &String| !old.contains(number);
            let there = self.members_at(leader, &address);
            (!there.is_empty() && there.iter().all(is_new)).then_some(())
        })
        .map_err(|error| format!("{error}\n{}", self.logs()))
    }

    /// Numbers of the members that clients reach there.
    fn members_at(&self, asked: usize, address: &str) -> Vec<String> {
        let members = self.status(asked).unwrap_or_default().members;
        let there = members.into_iter().filter(|member| member["client"] == *address);
        there.filter_map(|member| member.get("member").cloned()).collect()
    }

    /// Waits until all members that have data have the same, and compares.
    pub(crate) fn are_equal(&self) -> Result<(), String> {
        let mut last = Vec::new();
        until("equal data of all members", || {
            last = self.with_data().map(|node| self.digest(node)).collect();
            let first = last[0].clone()?;
            last.iter().all(|digest| digest.as_ref() == Some(&first)).then_some(())
        })
        .map_err(|error| format!("{error}: {last:?}\n{}", self.logs()))
    }

    /// Waits until all members run, and follow or lead closely.
    pub(crate) fn are_equal_but_for_writes(&self) -> Result<(), String> {
        until("all members to follow closely", || {
            let leader = self.leader_now()?;
            let committed: u64 = self.status(leader)?.fact("committed").parse().ok()?;
            let has = |node: usize| self.status(node)?.fact("applied").parse::<u64>().ok();
            self.with_data().all(|node| has(node) >= Some(committed)).then_some(())
        })
    }

    fn digest(&self, node: usize) -> Option<String> {
        let mut client = connect(self.address(node), Duration::from_secs(10)).ok()?;
        client
            .call(&["DEBUG", "DIGEST"])
            .ok()
            .filter(|reply| !reply.is_error())
            .and_then(|it| text(&it))
    }

    /// What is wrong with the processes: one that has ended by itself, or a word of alarm.
    pub(crate) fn look_for_alarms(&self) -> Result<(), String> {
        for node in 0..self.count() {
            let mut process = lock(&self.processes[node]);
            let may_end = process.may_end;
            if let Some(child) = &mut process.child
                && let Ok(Some(status)) = child.try_wait()
                && !may_end
            {
                return Err(format!("node {node} has ended: {status}\n{}", self.log_end(node)));
            }
            let log = fs::read_to_string(self.log(node)).unwrap_or_default();
            let alarm = log.lines().find(|line| ALARMS.iter().any(|alarm| line.contains(alarm)));
            if let Some(alarm) = alarm {
                return Err(format!("node {node} says: {alarm}\n{}", self.log_end(node)));
            }
        }
        Ok(())
    }

    /// What a node has written so far.
    pub(crate) fn log_text(&self, node: usize) -> String {
        fs::read_to_string(self.log(node)).unwrap_or_default()
    }

    fn log_end(&self, node: usize) -> String {
        let log = self.log_text(node);
        let from = log.len().saturating_sub(SHOWN_BYTES);
        let from = (from..=log.len()).find(|&at| log.is_char_boundary(at)).unwrap_or(0);
        format!("node {node}: {}", &log[from..])
    }

    fn logs(&self) -> String {
        (0..self.count()).map(|node| self.log_end(node) + "\n").collect()
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        (0..self.count()).for_each(|node| self.kill(node));
        self.network.remove(self.count(), &self.shape.dir);
    }
}
