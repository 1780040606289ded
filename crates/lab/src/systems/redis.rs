//! Redis, and what is started, asked and put together in exactly its way: one shape, and what differs is
//! data.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use super::places::{Places, on_path};
use super::redis_like;
use super::system::{
    Capability, DriverKind, Launch, Missing, Process, Program, Setting, System, Topology,
};

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Redis {
    name: &'static str,
    title: &'static str,
    /// Where its program is; the first that is there is taken.
    looked: &'static [Place],
    install: &'static str,
}

#[derive(Clone, Copy, Debug)]
enum Place {
    OnPath(&'static str),
    InTree(&'static str),
}

/// `redis-server` of this machine (Debian 12 has 7.0.15).
pub const REDIS: Redis = Redis {
    name: "redis",
    title: "Redis",
    looked: &[Place::OnPath("redis-server")],
    install: "apt-get install redis-server",
};

/// `redis-server` of the peers' tree: the newest release.
pub const REDIS_8: Redis = Redis {
    name: "redis8",
    title: "Redis 8",
    looked: &[Place::InTree("usr/bin/redis-server")],
    install: "scripts/install-systems.sh",
};

/// `valkey-server` of the peers' tree, or of this machine.
pub const VALKEY: Redis = Redis {
    name: "valkey",
    title: "Valkey",
    looked: &[Place::InTree("usr/bin/valkey-server"), Place::OnPath("valkey-server")],
    install: "scripts/install-systems.sh",
};

impl System for Redis {
    fn name(&self) -> &'static str {
        self.name
    }

    fn title(&self) -> &'static str {
        self.title
    }

    fn find(&self, places: &Places) -> Result<Program, Missing> {
        let all = |place: &Place| -> Vec<PathBuf> {
            match place {
                Place::OnPath(program) => on_path(program),
                Place::InTree(program) => places.in_trees(program),
            }
        };
        let candidates = self.looked.iter().flat_map(all).collect();
        places.program(self.name, candidates, &["--version"], self.install)
    }

    fn settings(&self) -> Vec<Setting> {
        redis_like::settings()
    }

    fn driver(&self) -> DriverKind {
        DriverKind::Resp
    }

    fn commands_on_one_core(&self) -> bool {
        true
    }

    /// The second is the cluster's bus.
    fn ports(&self) -> usize {
        2
    }

    fn launch(&self, program: &Program, launch: &Launch<'_>) -> Result<Vec<Process>, String> {
        let arguments = redis_like::arguments(launch, "--io-threads");
        Ok(vec![Process::new(program, arguments, launch.extra)])
    }

    fn ready(&self, address: SocketAddr) -> io::Result<()> {
        redis_like::ready(address)
    }

    fn join(&self, nodes: &[SocketAddr], topology: Topology) -> Result<(), String> {
        redis_like::join(nodes, topology)
    }

    fn effective_settings(&self, address: SocketAddr) -> io::Result<BTreeMap<String, String>> {
        redis_like::effective_settings(address)
    }

    fn can(&self, capability: Capability) -> Result<(), String> {
        redis_like::can(capability)
    }

    fn begin_snapshot(&self, address: SocketAddr) -> io::Result<()> {
        redis_like::begin_snapshot(address)
    }

    fn snapshot_under_way(&self, address: SocketAddr) -> io::Result<bool> {
        redis_like::snapshot_under_way(address)
    }
}
