//! A running system: one or more nodes, each of one or more processes, children of this one, each
//! node in a temporary directory of its own, pinned, on free ports of 127.0.0.1.
//!
//! **Invariant:** nothing of it outlives the lab: dropping kills all processes and removes all
//! directories, and [`cleanup`] does the same after a signal.

use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ladon_testkit::Ports;
use tempfile::TempDir;

use super::cleanup;
use super::registry::Found;
use super::system::{Launch, Process, Role, Setting, System};
use crate::measure::cores;
use crate::measure::usage::Usage;
use crate::topology::Topology;

/// What a system is started for.
#[derive(Clone, Debug)]
pub struct Want {
    /// One of the system's settings.
    pub setting: Setting,
    /// How many nodes and how they stand to each other.
    pub topology: Topology,
    /// Threads that serve clients, of every node, where the system can be told.
    pub io_threads: usize,
    /// Further arguments for the last process of every node.
    pub extra: Vec<String>,
}

impl Want {
    /// One node, one thread, nothing extra.
    #[must_use]
    pub const fn new(setting: Setting) -> Self {
        Self { setting, topology: Topology::Single, io_threads: 1, extra: Vec::new() }
    }
}

/// Why a system is not up.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// It cannot be started that way.
    #[error("{label}: {reason}")]
    Cannot {
        /// The system.
        label: String,
        /// Why not.
        reason: String,
    },
    /// Starting a program or making its directory failed.
    #[error("cannot start {label}: {source}")]
    Start {
        /// The system.
        label: String,
        /// What the operating system says.
        source: io::Error,
    },
    /// It ended, or did not answer in time, or the nodes did not come together.
    #[error("{label} {what}; it wrote:\n{output}")]
    NotUp {
        /// The system.
        label: String,
        /// What happened.
        what: String,
        /// The end of what it wrote.
        output: String,
    },
}

struct Node {
    address: SocketAddr,
    processes: Vec<Process>,
    children: Vec<Child>,
    directory: TempDir,
    starts: u32,
}

/// A started system. Dropping it kills it and removes its directories.
pub struct Instance {
    /// Its name in tables.
    pub label: String,
    /// The system.
    pub system: &'static dyn System,
    /// What it was started for.
    pub want: Want,
    nodes: Vec<Node>,
    cores: Vec<usize>,
    patience: Duration,
    /// Held while its nodes may be started again.
    _ports: Ports,
}

impl Instance {
    /// Starts what was found, with all directories below `data_root` and all threads on `cores`,
    /// and waits until every node answers and they are one system, for up to `patience` each.
    ///
    /// # Errors
    /// When it cannot be started, ends, or does not answer in time; with the end of its output.
    pub fn start(
        found: &Found,
        want: &Want,
        data_root: &Path,
        cores: &[usize],
        patience: Duration,
    ) -> Result<Self, StartError> {
        let label = found.program.label.clone();
        let cannot = |reason| StartError::Cannot { label: label.clone(), reason };
        let failed = |source| StartError::Start { label: label.clone(), source };
        found.system.can(super::system::Capability::Nodes(want.topology)).map_err(cannot)?;
        let count = want.topology.nodes();
        let held = Ports::take(count * found.system.ports()).map_err(failed)?;
        let numbers = held.numbers().to_vec();
        let ports: Vec<&[u16]> = numbers.chunks(found.system.ports()).collect();
        let mut instance = Self {
            label: label.clone(),
            system: found.system,
            want: want.clone(),
            nodes: Vec::new(),
            cores: cores.to_vec(),
            patience,
            _ports: held,
        };
        let addresses: Vec<SocketAddr> =
            ports.iter().map(|ports| SocketAddr::from((Ipv4Addr::LOCALHOST, ports[0]))).collect();
        for number in 0..count {
            let directory = tempfile::Builder::new()
                .prefix("ladon-lab-")
                .tempdir_in(data_root)
                .map_err(failed)?;
            let data = directory.path().join("data");
            std::fs::create_dir(&data).map_err(failed)?;
            let launch = Launch {
                setting: want.setting,
                directory: &data,
                ports: ports[number],
                io_threads: want.io_threads,
                role: role(want.topology, number, &addresses),
                extra: &want.extra,
            };
            let processes = found.system.launch(&found.program, &launch).map_err(cannot)?;
            for (path, contents) in processes.iter().flat_map(|process| &process.files) {
                std::fs::write(path, contents).map_err(failed)?;
            }
            let address = addresses[number];
            instance.nodes.push(Node {
                address,
                processes,
                children: Vec::new(),
                directory,
                starts: 0,
            });
            instance.spawn(number)?;
            // Peers wait for each other, so all must have been started before one can be ready.
            if want.topology != Topology::MasterMaster {
                instance.wait_until_up(number)?;
            }
        }
        for number in 0..count {
            instance.wait_until_up(number)?;
        }
        let joined = instance.system.join(&addresses, want.topology);
        joined.map_err(|what| instance.not_up(0, what))?;
        Ok(instance)
    }

    /// Where clients come: the first node.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.nodes[0].address
    }

    /// Where clients of each node come; masters first.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.nodes.iter().map(|node| node.address).collect()
    }

    /// Every process's command line, for the record.
    #[must_use]
    pub fn command_lines(&self) -> Vec<Vec<String>> {
        let processes = self.nodes.iter().flat_map(|node| &node.processes);
        processes.map(|process| process.command_line.clone()).collect()
    }

    /// The processes that were started; their own children are not among them.
    #[must_use]
    pub fn pids(&self) -> Vec<u32> {
        self.nodes.iter().flat_map(|node| &node.children).map(Child::id).collect()
    }

    /// What all processes and their descendants have used so far.
    #[must_use]
    pub fn usage(&self) -> Usage {
        Usage::of_processes(&self.pids())
    }

    /// The data directory of a node.
    #[must_use]
    pub fn data_directory(&self, number: usize) -> PathBuf {
        self.nodes[number].directory.path().join("data")
    }

    /// Stops all processes where they are, until [`Self::thaw`].
    pub fn freeze(&self) {
        self.signal(nix::sys::signal::SIGSTOP);
    }

    /// Lets all processes go on.
    pub fn thaw(&self) {
        self.signal(nix::sys::signal::SIGCONT);
    }

    /// Signals all processes and their children: each leads its own process group.
    fn signal(&self, signal: nix::sys::signal::Signal) {
        for pid in self.pids() {
            if let Ok(pid) = i32::try_from(pid) {
                // An error means that it is gone, which the next request finds out.
                let _ = nix::sys::signal::killpg(nix::unistd::Pid::from_raw(pid), signal);
            }
        }
    }

    /// Ends all nodes with SIGTERM and waits for them; SIGKILL after `patience`. Returns whether
    /// all ended by themselves.
    pub fn stop(&mut self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        // The listening process first, so that no process of a node loses what it depends on.
        for child in self.nodes.iter_mut().flat_map(|node| node.children.iter_mut().rev()) {
            if let Ok(pid) = i32::try_from(child.id()) {
                // An error means that it is gone, which the wait below finds out.
                let pid = nix::unistd::Pid::from_raw(pid);
                let _ = nix::sys::signal::kill(pid, nix::sys::signal::SIGTERM);
            }
        }
        let mut all_went = true;
        while all_went && self.nodes.iter_mut().flat_map(|node| &mut node.children).any(still_runs)
        {
            if Instant::now() > deadline {
                all_went = false;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        self.kill();
        all_went
    }

    /// Ends all nodes with SIGKILL, as a crash would.
    pub fn kill(&mut self) {
        for node in &mut self.nodes {
            for mut child in node.children.drain(..) {
                cleanup::kill_group(child.id());
                // It fails only when it is gone.
                let _ = child.wait();
                cleanup::forget(child.id());
            }
        }
    }

    /// Starts all nodes again on what they left on the disk, after [`Self::stop`] or
    /// [`Self::kill`]. Returns how long it took from the start of the first process until all
    /// answered.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn restart(&mut self) -> Result<Duration, StartError> {
        let began = Instant::now();
        for number in 0..self.nodes.len() {
            self.nodes[number].starts += 1;
            self.spawn(number)?;
        }
        for number in 0..self.nodes.len() {
            self.wait_until_up(number)?;
        }
        Ok(began.elapsed())
    }

    /// The end of what a node's processes wrote since the last start.
    #[must_use]
    pub fn output_tail(&self, number: usize) -> String {
        let node = &self.nodes[number];
        let mut tail = String::new();
        for process in 0..node.processes.len() {
            let bytes = std::fs::read(output_path(node, process)).unwrap_or_default();
            let text = String::from_utf8_lossy(&bytes);
            let lines: Vec<&str> = text.lines().collect();
            tail += &lines[lines.len().saturating_sub(20)..].join("\n");
        }
        tail
    }

    fn spawn(&mut self, number: usize) -> Result<(), StartError> {
        let label = &self.label;
        let failed = |source| StartError::Start { label: label.clone(), source };
        let cores = &self.cores;
        let node = &mut self.nodes[number];
        for index in 0..node.processes.len() {
            let output = output_path(node, index);
            let process = &node.processes[index];
            let child = cleanup::start_listed(node.directory.path(), || {
                spawn(process, node.directory.path(), &output, cores)
            })
            .map_err(failed)?;
            node.children.push(child);
        }
        Ok(())
    }

    fn wait_until_up(&mut self, number: usize) -> Result<(), StartError> {
        let deadline = Instant::now() + self.patience;
        loop {
            for child in &mut self.nodes[number].children {
                if let Ok(Some(status)) = child.try_wait() {
                    let what = format!("ended ({status}) before it answered");
                    return Err(self.not_up(number, what));
                }
            }
            let Err(last) = self.system.ready(self.nodes[number].address) else { return Ok(()) };
            if Instant::now() > deadline {
                let what = format!("did not answer within {:?} ({last})", self.patience);
                return Err(self.not_up(number, what));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn not_up(&self, number: usize, what: String) -> StartError {
        StartError::NotUp { label: self.label.clone(), what, output: self.output_tail(number) }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.kill();
    }
}

fn still_runs(child: &mut Child) -> bool {
    matches!(child.try_wait(), Ok(None))
}

/// Masters come first: the replicas of a cluster are dealt to them in [`System::join`].
fn role(topology: Topology, number: usize, all: &[SocketAddr]) -> Role {
    match (topology, number) {
        (Topology::Single, _) | (Topology::Replica, 0) => Role::Single,
        (Topology::Replica, _) => Role::Replica { of: all[0] },
        (Topology::MasterMaster, _) => Role::Peer { all: all.to_vec(), number },
        (Topology::Cluster { .. }, _) => Role::Member,
    }
}

fn output_path(node: &Node, process: usize) -> PathBuf {
    node.directory.path().join(format!("output-{}-{process}", node.starts))
}

fn spawn(process: &Process, directory: &Path, output: &Path, cores: &[usize]) -> io::Result<Child> {
    let file = File::create(output)?;
    let errors = file.try_clone()?;
    let mut command = Command::new(&process.command_line[0]);
    command
        .args(&process.command_line[1..])
        .envs(process.environment.iter().map(|(name, value)| (name, value)))
        .current_dir(directory)
        // A Ctrl-C on the terminal is for the lab, which ends its servers in its own order.
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(file)
        .stderr(errors);
    cores::pinned_to(cores, || command.spawn())?
}
