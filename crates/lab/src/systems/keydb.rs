//! KeyDB: a Redis of several threads, and one that replicates both ways.
//!
//! Not tried here: no package of it could be had. What is written follows its documentation
//! (docs.keydb.dev: "Multithreading", "Active Replication").

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;

use super::places::{Places, on_path};
use super::redis_like;
use super::system::{
    Capability, DriverKind, Launch, Missing, Process, Program, Role, Setting, System,
};
use crate::topology::Topology;

/// KeyDB.
#[derive(Clone, Copy, Debug)]
pub struct KeyDb;

impl System for KeyDb {
    fn name(&self) -> &'static str {
        "keydb"
    }

    fn title(&self) -> &'static str {
        "KeyDB"
    }

    fn find(&self, places: &Places) -> Result<Program, Missing> {
        let install = "echo \"deb https://download.keydb.dev/open-source-dist $(lsb_release -sc) \
                       main\" >/etc/apt/sources.list.d/keydb.list && wget -O \
                       /etc/apt/trusted.gpg.d/keydb.gpg \
                       https://download.keydb.dev/open-source-dist/keyring.gpg && apt-get update \
                       && apt-get install keydb";
        let mut candidates = on_path("keydb-server");
        candidates.extend(places.in_trees("usr/bin/keydb-server"));
        places.program(self.name(), candidates, &["--version"], install)
    }

    fn settings(&self) -> Vec<Setting> {
        redis_like::settings()
    }

    fn driver(&self) -> DriverKind {
        DriverKind::Resp
    }

    /// The second is the cluster's bus, which KeyDB, as a descendant of Redis 6, puts at 10,000 above
    /// the first in any case.
    fn ports(&self) -> usize {
        1
    }

    fn launch(&self, program: &Program, launch: &Launch<'_>) -> Result<Vec<Process>, String> {
        let mut arguments = redis_like::arguments(launch, "--server-threads");
        if let Role::Peer { all, number } = &launch.role {
            arguments.extend(["--active-replica".to_owned(), "yes".to_owned()]);
            for (other, address) in all.iter().enumerate() {
                if other != *number {
                    let (ip, port) = (address.ip().to_string(), address.port().to_string());
                    arguments.extend(["--replicaof".to_owned(), ip, port]);
                }
            }
        }
        Ok(vec![Process::new(program, arguments, launch.extra)])
    }

    fn ready(&self, address: SocketAddr) -> io::Result<()> {
        redis_like::ready(address)
    }

    fn join(&self, nodes: &[SocketAddr], topology: Topology) -> Result<(), String> {
        match topology {
            Topology::MasterMaster => {
                for &node in nodes {
                    redis_like::wait_for_link(node)?;
                }
                Ok(())
            }
            other => redis_like::join(nodes, other),
        }
    }

    fn effective_settings(&self, address: SocketAddr) -> io::Result<BTreeMap<String, String>> {
        redis_like::effective_settings(address)
    }

    fn can(&self, capability: Capability) -> Result<(), String> {
        match capability {
            Capability::Nodes(Topology::Cluster { .. }) => {
                Err("its cluster wants the port 10,000 above its own, which may not be free".into())
            }
            _ => Ok(()),
        }
    }

    fn begin_snapshot(&self, address: SocketAddr) -> io::Result<()> {
        redis_like::begin_snapshot(address)
    }

    fn snapshot_under_way(&self, address: SocketAddr) -> io::Result<bool> {
        redis_like::snapshot_under_way(address)
    }
}
