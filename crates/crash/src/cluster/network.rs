//! The nodes' network: a namespace of their own for each, with the clients in the middle, or loopback.
//!
//! ```text
//! node 0  10.77.1.2 --veth-- 10.77.1.1 \
//! node 1  10.77.2.2 --veth-- 10.77.2.1  > this process' namespace: it forwards, and clients are here
//! node 2  10.77.3.2 --veth-- 10.77.3.1 /
//! ```
//! A rule of the routing in the middle drops the packets from one node to another without a word, one
//! way or both; clients still reach both.

use ladon_testkit::Ports;
use std::cell::Cell;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;

const PORT: u16 = 6379;
/// Bytes of each node's own disk.
const DISK: &str = "size=512m";

/// How nodes reach each other, and clients reach nodes.
pub(crate) enum Network {
    /// All on 127.0.0.1; links cannot be cut.
    Loopback(Ports),
    /// A namespace for each node.
    Namespaces {
        /// Pairs whose packets are dropped, from the first to the second.
        cuts: Mutex<Vec<(usize, usize)>>,
        slowed: Mutex<Vec<usize>>,
    },
}

fn run(program: &str, arguments: &[&str]) -> Result<(), String> {
    let ran = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let told = |text: String| format!("{program} {}: {text}", arguments.join(" "));
    let ran = ran.map_err(|error| told(error.to_string()))?;
    match ran.status.success() {
        true => Ok(()),
        false => Err(told(String::from_utf8_lossy(&ran.stderr).trim().to_owned())),
    }
}

fn ip(arguments: &str) -> Result<(), String> {
    run("ip", &arguments.split(' ').collect::<Vec<_>>())
}

thread_local! {
    /// Each cluster of a process has names and addresses of its own.
    static MADE: Cell<usize> = const { Cell::new(0) };
}

impl Network {
    /// A network for so many nodes on 127.0.0.1.
    pub(crate) fn loopback(count: usize) -> Result<Network, String> {
        Ports::take(2 * count).map(Network::Loopback).map_err(|error| error.to_string())
    }

    /// Namespaces for so many nodes; this process must be inside ([`super::inside`]). `dir`: where each
    /// node gets a disk of its own, `node-N`.
    pub(crate) fn namespaces(count: usize, dir: &Path) -> Result<Network, String> {
        if MADE.replace(1) == 0 {
            run("mount", &["-t", "tmpfs", "tmpfs", "/run"])?;
            ip("link set lo up")?;
            let forward = "/proc/sys/net/ipv4/ip_forward";
            fs::write(forward, "1").map_err(|error| format!("{forward}: {error}"))?;
        }
        for node in 0..count {
            let (name, here) = (format!("node{node}"), format!("10.77.{}.1", node + 1));
            ip(&format!("netns add {name}"))?;
            ip(&format!("link add {name} type veth peer name eth0 netns {name}"))?;
            ip(&format!("addr add {here}/24 dev {name}"))?;
            ip(&format!("link set {name} up"))?;
            ip(&format!("-n {name} addr add 10.77.{}.2/24 dev eth0", node + 1))?;
            ip(&format!("-n {name} link set lo up"))?;
            ip(&format!("-n {name} link set eth0 up"))?;
            ip(&format!("-n {name} route add default via {here}"))?;
            let disk = dir.join(format!("node-{node}"));
            fs::create_dir_all(&disk).map_err(|error| error.to_string())?;
            run("mount", &["-t", "tmpfs", "-o", DISK, "tmpfs", &disk.to_string_lossy()])?;
        }
        Ok(Network::Namespaces { cuts: Mutex::default(), slowed: Mutex::default() })
    }

    /// Removes the namespaces and disks.
    pub(crate) fn remove(&self, count: usize, dir: &Path) {
        if let Network::Namespaces { .. } = self {
            // Whatever is left goes with this process.
            let _ = self.heal();
            for node in 0..count {
                let _ = ip(&format!("link del node{node}"));
                let _ = ip(&format!("netns del node{node}"));
                let disk = dir.join(format!("node-{node}"));
                let _ = run("umount", &["-l", &disk.to_string_lossy()]);
            }
        }
    }

    /// Whether links can be cut, and disks filled.
    pub(crate) fn has_links(&self) -> bool {
        matches!(self, Network::Namespaces { .. })
    }

    /// Where clients reach a node.
    pub(crate) fn address(&self, node: usize) -> SocketAddr {
        match self {
            Network::Loopback(ports) => ([127, 0, 0, 1], ports.numbers()[node]).into(),
            Network::Namespaces { .. } => ([10, 77, node as u8 + 1, 2], PORT).into(),
        }
    }

    /// A command that runs a program where the node is.
    pub(crate) fn command(&self, node: usize, program: &Path) -> Command {
        match self {
            Network::Loopback(_) => Command::new(program),
            Network::Namespaces { .. } => {
                let mut command = Command::new("nsenter");
                command.arg(format!("--net=/run/netns/node{node}")).arg("--").arg(program);
                command
            }
        }
    }

    /// The port at which other members reach a node.
    pub(crate) fn mesh_port(&self, node: usize) -> u16 {
        match self {
            Network::Loopback(ports) => ports.numbers()[ports.numbers().len() / 2 + node],
            Network::Namespaces { .. } => PORT + 10_000,
        }
    }

    /// Drops what goes from one node to another.
    pub(crate) fn cut(&self, from: usize, to: usize) -> Result<(), String> {
        let Network::Namespaces { cuts, .. } = self else {
            return Err("links of 127.0.0.1 cannot be cut".to_owned());
        };
        let mut cuts = lock(cuts);
        if !cuts.contains(&(from, to)) {
            ip(&rule("add", (from, to)))?;
            cuts.push((from, to));
        }
        Ok(())
    }

    /// All links of a node are slow: 20 to 60 ms and a packet of a hundred lost, or where the kernel
    /// cannot do that, a megabit a second.
    pub(crate) fn slow(&self, node: usize) -> Result<&'static str, String> {
        let Network::Namespaces { slowed, .. } = self else {
            return Err("links of 127.0.0.1 cannot be slowed".to_owned());
        };
        lock(slowed).push(node);
        let late = format!("qdisc replace dev node{node} root netem delay 40ms 20ms loss 1%");
        if run("tc", &late.split(' ').collect::<Vec<_>>()).is_ok() {
            return Ok("40 ms late, 1 % lost");
        }
        let narrow =
            format!("qdisc replace dev node{node} root tbf rate 1mbit burst 4kb latency 300ms");
        run("tc", &narrow.split(' ').collect::<Vec<_>>())?;
        Ok("1 Mbit/s (this kernel has no netem)")
    }

    /// All links are good again.
    pub(crate) fn heal(&self) -> Result<(), String> {
        let Network::Namespaces { cuts, slowed } = self else { return Ok(()) };
        for pair in lock(cuts).drain(..) {
            ip(&rule("del", pair))?;
        }
        for node in lock(slowed).drain(..) {
            // Slowed twice, it is healed once.
            let _ = run("tc", &["qdisc", "del", "dev", &format!("node{node}"), "root"]);
        }
        Ok(())
    }
}

fn rule(verb: &str, (from, to): (usize, usize)) -> String {
    format!("rule {verb} from 10.77.{}.2 to 10.77.{}.2 blackhole", from + 1, to + 1)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
