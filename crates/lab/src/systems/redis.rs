//! Redis, and what is started, asked and put together in exactly its way: one shape, and what
//! differs is data. One of them has a module, [`redisearch`].

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use super::control::Control;
use super::program_paths::{ProgramPaths, on_path};
use super::system::{Capability, DriverKind, Launch, Missing, Process, Program, Setting, System};
use super::{redis_like, redisearch};
use crate::topology::Topology;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Redis {
    name: &'static str,
    title: &'static str,
    /// Where its program is; the first that is there is taken.
    looked: &'static [Place],
    install: &'static str,
    /// Whether it has RediSearch, and is measured in the work `index` alone: a module that watches
    /// every key would be in all other figures too.
    search: bool,
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
    search: false,
};

/// `redis-server` of the peers' tree: the newest release.
pub const REDIS_8: Redis = Redis {
    name: "redis8",
    title: "Redis 8",
    looked: &[Place::InTree("usr/bin/redis-server")],
    install: "scripts/install-systems.sh",
    search: false,
};

/// Redis with the module of secondary indexes, which asks for Redis 7.1 and later: so the newest
/// comes first.
pub const REDISEARCH: Redis = Redis {
    name: "redisearch",
    title: "Redis with RediSearch",
    looked: &[Place::InTree("usr/bin/redis-server"), Place::OnPath("redis-server")],
    install: "scripts/install-systems.sh",
    search: true,
};

/// `valkey-server` of the peers' tree, or of this machine.
pub const VALKEY: Redis = Redis {
    name: "valkey",
    title: "Valkey",
    looked: &[Place::InTree("usr/bin/valkey-server"), Place::OnPath("valkey-server")],
    install: "scripts/install-systems.sh",
    search: false,
};

impl System for Redis {
    fn name(&self) -> &'static str {
        self.name
    }

    fn title(&self) -> &'static str {
        self.title
    }

    fn find(&self, places: &ProgramPaths) -> Result<Program, Missing> {
        let all = |place: &Place| -> Vec<PathBuf> {
            match place {
                Place::OnPath(program) => on_path(program),
                Place::InTree(program) => places.in_trees(program),
            }
        };
        let candidates = self.looked.iter().flat_map(all).collect();
        let find = |places: &ProgramPaths| {
            places.program(self.name, candidates, &["--version"], self.install)
        };
        if !self.search {
            return find(places);
        }
        // NAME@PROGRAM names the module then.
        let server = find(&ProgramPaths { program: None, ..places.clone() })?;
        redisearch::loaded_into(server, places)
    }

    fn settings(&self) -> Vec<Setting> {
        redis_like::settings()
    }

    fn driver(&self) -> DriverKind {
        if self.search { DriverKind::RespSearch } else { DriverKind::Resp }
    }

    fn only_in(&self) -> Option<&'static str> {
        self.search.then_some("index")
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
        redis_like::join(nodes, topology)?;
        if !self.search {
            return Ok(());
        }
        Control::connect(nodes[0])
            .and_then(|mut control| redisearch::have_index(&mut control))
            .map_err(|error| format!("made no index: {error}"))
    }

    fn effective_settings(&self, address: SocketAddr) -> io::Result<BTreeMap<String, String>> {
        let mut all = redis_like::effective_settings(address)?;
        if self.search {
            all.extend(redisearch::settings(&mut Control::connect(address)?)?);
        }
        Ok(all)
    }

    fn can(&self, capability: Capability) -> Result<(), String> {
        match capability {
            Capability::Nodes(Topology::Single) => Ok(()),
            Capability::Nodes(_) if self.search => Err("an index is of one node".to_owned()),
            other => redis_like::can(other),
        }
    }

    fn begin_snapshot(&self, address: SocketAddr) -> io::Result<()> {
        redis_like::begin_snapshot(address)
    }

    fn snapshot_under_way(&self, address: SocketAddr) -> io::Result<bool> {
        redis_like::snapshot_under_way(address)
    }
}
