//! `redis-server` of this machine (Debian 12 has 7.0.15).

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;

use super::places::{Places, on_path};
use super::redis_like;
use super::system::{
    Capability, DriverKind, Launch, Missing, Process, Program, Setting, System, Topology,
};

/// Redis.
#[derive(Clone, Copy, Debug)]
pub struct Redis;

impl System for Redis {
    fn name(&self) -> &'static str {
        "redis"
    }

    fn title(&self) -> &'static str {
        "Redis"
    }

    fn find(&self, places: &Places) -> Result<Program, Missing> {
        let candidates = on_path("redis-server");
        places.program(self.name(), candidates, &["--version"], "apt-get install redis-server")
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
