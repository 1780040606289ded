//! This repository's `ladon`.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use super::program_paths::ProgramPaths;
use super::redis_like;
use super::system::{
    Capability, DriverKind, Launch, Missing, Process, Program, Promise, Role, Setting, System,
};
use crate::topology::Topology;

/// Ladon.
#[derive(Clone, Copy, Debug)]
pub struct Ladon;

/// More than any work connects.
const MAX_CLIENTS: &str = "20000";

impl System for Ladon {
    fn name(&self) -> &'static str {
        "ladon"
    }

    fn title(&self) -> &'static str {
        "Ladon"
    }

    fn find(&self, places: &ProgramPaths) -> Result<Program, Missing> {
        let candidates = places.ladon.clone().map_or_else(candidates, |path| vec![path]);
        let install = "cargo build --release -p ladon-bin (or --ladon PATH)";
        places.program(self.name(), candidates, &["--version"], install)
    }

    fn settings(&self) -> Vec<Setting> {
        vec![
            Setting { name: "gate none", promise: Promise::None },
            Setting { name: "gate write", promise: Promise::Os },
            Setting { name: "gate everysec", promise: Promise::Everysec },
            Setting { name: "gate fsync", promise: Promise::Fsync },
        ]
    }

    fn driver(&self) -> DriverKind {
        DriverKind::Resp
    }

    fn launch(&self, program: &Program, launch: &Launch<'_>) -> Result<Vec<Process>, String> {
        let arguments = arguments(launch, launch.ports[0]);
        Ok(vec![Process::new(program, arguments, launch.extra)])
    }

    fn ready(&self, address: SocketAddr) -> io::Result<()> {
        redis_like::ready(address)
    }

    fn effective_settings(&self, address: SocketAddr) -> io::Result<BTreeMap<String, String>> {
        redis_like::effective_settings(address)
    }

    fn can(&self, capability: Capability) -> Result<(), String> {
        match capability {
            Capability::Nodes(Topology::Single | Topology::Replica)
            | Capability::Snapshot
            | Capability::Restart => Ok(()),
            Capability::Nodes(Topology::MasterMaster) => {
                Err("Ladon has no master-master replication yet".to_owned())
            }
            Capability::Nodes(Topology::Cluster { .. }) => {
                Err("Ladon has no cluster yet".to_owned())
            }
        }
    }

    fn join(&self, nodes: &[SocketAddr], topology: Topology) -> Result<(), String> {
        redis_like::join(nodes, topology)
    }

    fn begin_snapshot(&self, address: SocketAddr) -> io::Result<()> {
        redis_like::begin_snapshot(address)
    }

    fn snapshot_under_way(&self, address: SocketAddr) -> io::Result<bool> {
        redis_like::snapshot_under_way(address)
    }
}

/// What a server that is asked in another protocol can do: RESP is what replicas are looked at in.
pub(super) fn can_beside_resp(capability: Capability) -> Result<(), String> {
    match capability {
        Capability::Nodes(Topology::Replica) => {
            Err("replicas are measured in Redis' protocol".to_owned())
        }
        other => Ladon.can(other),
    }
}

/// The program, as the system of this name.
pub(super) fn find_as(name: &'static str, places: &ProgramPaths) -> Result<Program, Missing> {
    let found = Ladon.find(places);
    found
        .map(|program| Program { system: name, label: name.to_owned(), ..program })
        .map_err(|missing| Missing { system: name, ..missing })
}

/// The arguments of a server that speaks RESP at this port.
pub(super) fn arguments(launch: &Launch<'_>, port: u16) -> Vec<String> {
    let gate = match launch.setting.promise {
        Promise::None => "none",
        Promise::Os => "write",
        Promise::Everysec => "everysec",
        Promise::Fsync => "fsync",
    };
    let arguments = [
        "serve",
        "--resp",
        &format!("127.0.0.1:{port}"),
        "--data",
        &launch.directory.display().to_string(),
        "--gate",
        gate,
        "--io-threads",
        &launch.io_threads.to_string(),
        // No checkpoint of its own accord: see `redis_like`.
        "--checkpoint-log-percent",
        "0",
        "--maxclients",
        MAX_CLIENTS,
    ];
    let mut arguments: Vec<String> = arguments.map(str::to_owned).into();
    if let Role::Replica { of } = launch.role {
        arguments.extend(["--replicaof".to_owned(), format!("{} {}", of.ip(), of.port())]);
    }
    arguments
}

/// Ladon is in the same folder as this program if both were built together. A debug build is not a
/// candidate, because its figures would be meaningless.
fn candidates() -> Vec<PathBuf> {
    let Ok(this) = std::env::current_exe() else { return Vec::new() };
    let Some(folder) = this.parent() else { return Vec::new() };
    let mut candidates = Vec::new();
    if !folder.ends_with("debug") {
        candidates.push(folder.join("ladon"));
    }
    candidates.extend(folder.parent().map(|target| target.join("release/ladon")));
    candidates.dedup();
    candidates
}
