//! What Redis and its descendants have in common: options, promises, readiness, replication,
//! cluster.
//!
//! Saves that a server starts by itself are off: one that falls into one system's two seconds and
//! not into another's would make the figures a matter of luck.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::control::{Control, Reply};
use super::system::{Capability, Launch, Promise, Role, Setting};
use crate::topology::Topology;

/// More than any work connects.
const MAX_CLIENTS: &str = "20000";

/// The settings, weakest first.
#[must_use]
pub fn settings() -> Vec<Setting> {
    vec![
        Setting { name: "appendonly no", promise: Promise::None },
        Setting { name: "appendfsync no", promise: Promise::Os },
        Setting { name: "appendfsync everysec", promise: Promise::Everysec },
        Setting { name: "appendfsync always", promise: Promise::Fsync },
    ]
}

/// A node's arguments; `threads_option` is the name of what tells it its number of threads.
#[must_use]
pub fn arguments(launch: &Launch<'_>, threads_option: &str) -> Vec<String> {
    let (append_only, sync) = match launch.setting.promise {
        Promise::None => ("no", "everysec"),
        Promise::Os => ("yes", "no"),
        Promise::Everysec => ("yes", "everysec"),
        Promise::Fsync => ("yes", "always"),
    };
    let mut words: Vec<String> = [
        "--bind",
        "127.0.0.1",
        "--port",
        &launch.ports[0].to_string(),
        "--dir",
        &launch.directory.display().to_string(),
        "--daemonize",
        "no",
        "--save",
        "",
        "--appendonly",
        append_only,
        "--appendfsync",
        sync,
        "--auto-aof-rewrite-percentage",
        "0",
        threads_option,
        &launch.io_threads.to_string(),
        "--maxclients",
        MAX_CLIENTS,
    ]
    .map(str::to_owned)
    .into();
    // The master's: its default of five seconds would only be a pause before the first copy.
    words.extend(["--repl-diskless-sync-delay".into(), "0".into()]);
    match &launch.role {
        Role::Single => {}
        Role::Replica { of } => {
            words.extend(["--replicaof".into(), of.ip().to_string(), of.port().to_string()]);
        }
        Role::Peer { .. } => {}
        Role::Member => {
            // The default, port + 10000, may be no port at all.
            words.extend(["--cluster-enabled", "yes", "--cluster-port"].map(str::to_owned));
            words.push(launch.ports.get(1).copied().unwrap_or_default().to_string());
            words.extend(["--cluster-node-timeout".into(), "15000".into()]);
        }
    }
    words
}

/// Answers PING; a node that still loads answers with an error.
///
/// # Errors
/// Errors of the socket, or `WouldBlock` with what it answered instead.
pub fn ready(address: SocketAddr) -> io::Result<()> {
    match Control::connect(address)?.call(&["PING"])? {
        Reply::Simple(pong) if pong == "PONG" => Ok(()),
        other => Err(io::Error::new(io::ErrorKind::WouldBlock, format!("PING: {other:?}"))),
    }
}

/// `CONFIG GET *`.
///
/// # Errors
/// Errors of the socket, or `Other` with what it answered instead.
pub fn effective_settings(address: SocketAddr) -> io::Result<BTreeMap<String, String>> {
    settings_of(&mut Control::connect(address)?)
}

/// The same over a connection that there is.
///
/// # Errors
/// As [`effective_settings`].
pub fn settings_of(control: &mut Control) -> io::Result<BTreeMap<String, String>> {
    match control.call(&["CONFIG", "GET", "*"])? {
        Reply::Array(items) => {
            Ok(items.chunks_exact(2).map(|pair| (pair[0].words(), pair[1].words())).collect())
        }
        other => Err(io::Error::other(format!("CONFIG GET * answered {other:?}"))),
    }
}

/// `BGSAVE`.
///
/// # Errors
/// Errors of the socket, or `Other` with what it answered instead.
pub fn begin_snapshot(address: SocketAddr) -> io::Result<()> {
    Control::connect(address)?.text(&["BGSAVE"]).map(|_| ())
}

/// `rdb_bgsave_in_progress`.
///
/// # Errors
/// Errors of the socket, or when INFO lacks it.
pub fn snapshot_under_way(address: SocketAddr) -> io::Result<bool> {
    Control::connect(address)?
        .info("persistence", "rdb_bgsave_in_progress")
        .map(|value| value != "0")
}

/// Waits for the replica's copy, or makes one cluster of the nodes: the first `shards` are masters
/// with an even part of the slots each, the others their replicas in turn.
///
/// # Errors
/// What a node answered, or what did not happen in time.
pub fn join(nodes: &[SocketAddr], topology: Topology) -> Result<(), String> {
    let patience = Duration::from_secs(60);
    match topology {
        Topology::Single => Ok(()),
        Topology::Replica => wait_for_link(nodes[1]),
        Topology::MasterMaster => {
            Err("no master-master replication: a node is a master or a replica".to_owned())
        }
        Topology::Cluster { shards, replicas } => cluster(nodes, shards, replicas, patience),
    }
}

/// Waits until a node is connected to its master and has its first copy.
///
/// # Errors
/// When that does not happen in time.
pub fn wait_for_link(node: SocketAddr) -> Result<(), String> {
    wait("the replica's first copy", Duration::from_secs(60), || {
        Ok(Control::connect(node)?.info("replication", "master_link_status")? == "up")
    })
}

/// Slots of a Redis Cluster.
pub const SLOTS: usize = 16_384;

fn cluster(
    nodes: &[SocketAddr],
    shards: usize,
    replicas: usize,
    patience: Duration,
) -> Result<(), String> {
    let said = |error: io::Error| error.to_string();
    let mut controls = Vec::new();
    for node in nodes {
        controls.push(Control::connect(*node).map_err(said)?);
    }
    for (shard, control) in controls.iter_mut().enumerate().take(shards) {
        let (first, after) = (shard * SLOTS / shards, (shard + 1) * SLOTS / shards);
        let (first, last) = (first.to_string(), (after - 1).to_string());
        ok(control, &["CLUSTER", "ADDSLOTSRANGE", &first, &last])?;
    }
    let (ip, port) = (nodes[0].ip().to_string(), nodes[0].port().to_string());
    let bus = bus_port(&mut controls[0])?;
    for control in controls.iter_mut().skip(1) {
        ok(control, &["CLUSTER", "MEET", &ip, &port, &bus])?;
    }
    let know_all = |control: &mut Control| -> io::Result<bool> {
        let text = control.text(&["CLUSTER", "NODES"])?;
        let known = text.lines().filter(|line| !line.contains("handshake")).count();
        Ok(known == nodes.len())
    };
    for control in &mut controls {
        wait("every node to know the others", patience, || know_all(control))?;
    }
    let ids = controls
        .iter_mut()
        .take(shards)
        .map(|control| control.text(&["CLUSTER", "MYID"]).map_err(said))
        .collect::<Result<Vec<_>, _>>()?;
    for (number, control) in controls.iter_mut().enumerate().skip(shards) {
        ok(control, &["CLUSTER", "REPLICATE", &ids[number % shards]])?;
    }
    for control in &mut controls {
        wait("the cluster's state to be ok", patience, || {
            Ok(control.text(&["CLUSTER", "INFO"])?.contains("cluster_state:ok"))
        })?;
    }
    for control in controls.iter_mut().skip(shards) {
        wait("every replica's first copy", patience, || {
            Ok(control.info("replication", "master_link_status")? == "up")
        })?;
    }
    for control in controls.iter_mut().take(shards) {
        wait("every master to see its replicas", patience, || {
            Ok(control.info("replication", "connected_slaves")? == replicas.to_string())
        })?;
    }
    Ok(())
}

/// The port of the cluster's own talk, from the node's line about itself: `IP:PORT@BUS`.
fn bus_port(control: &mut Control) -> Result<String, String> {
    let text = control.text(&["CLUSTER", "NODES"]).map_err(|error| error.to_string())?;
    text.lines()
        .find(|line| line.contains("myself"))
        .and_then(|line| line.split_once('@'))
        .and_then(|(_, rest)| rest.split([' ', ',']).next())
        .map(str::to_owned)
        .ok_or_else(|| format!("CLUSTER NODES names no port of the bus: {text:?}"))
}

fn ok(control: &mut Control, words: &[&str]) -> Result<(), String> {
    match control.call(words) {
        Ok(Reply::Simple(_)) => Ok(()),
        Ok(other) => Err(format!("{} answered {other:?}", words.join(" "))),
        Err(error) => Err(format!("{}: {error}", words.join(" "))),
    }
}

/// Asks until it is so.
fn wait(
    what: &str,
    patience: Duration,
    mut is_so: impl FnMut() -> io::Result<bool>,
) -> Result<(), String> {
    let deadline = Instant::now() + patience;
    loop {
        let last = is_so();
        if matches!(last, Ok(true)) {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(format!("waited {patience:?} for {what}; last: {last:?}"));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// All but master-master.
///
/// # Errors
/// Why not.
pub fn can(capability: Capability) -> Result<(), String> {
    match capability {
        Capability::Nodes(Topology::MasterMaster) => {
            Err("no master-master replication: a node is a master or a replica".to_owned())
        }
        Capability::Nodes(_) | Capability::Snapshot | Capability::Restart => Ok(()),
    }
}
