//! Dragonfly: all cores of one machine behind Redis' protocol; it has snapshots and no log.
//!
//! Not tried here: no package of it could be had. What is written follows its documentation
//! (dragonflydb.io/docs: "Server flags", "Saving backups", "Replication").

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;

use super::places::{Places, on_path};
use super::redis_like;
use super::system::{
    Capability, DriverKind, Launch, Missing, Process, Program, Promise, Role, Setting, System,
};
use crate::topology::Topology;

/// Dragonfly.
#[derive(Clone, Copy, Debug)]
pub struct Dragonfly;

impl System for Dragonfly {
    fn name(&self) -> &'static str {
        "dragonfly"
    }

    fn title(&self) -> &'static str {
        "Dragonfly"
    }

    fn find(&self, places: &Places) -> Result<Program, Missing> {
        let install = "curl -L https://dragonflydb.gateway.scarf.sh/latest/dragonfly-x86_64.tar.gz \
                       | tar xz && install dragonfly-x86_64 /usr/local/bin/dragonfly";
        let candidates = on_path("dragonfly");
        places.program(self.name(), candidates, &["--version"], install)
    }

    fn settings(&self) -> Vec<Setting> {
        vec![Setting { name: "memory only", promise: Promise::None }]
    }

    fn driver(&self) -> DriverKind {
        DriverKind::Resp
    }

    fn launch(&self, program: &Program, launch: &Launch<'_>) -> Result<Vec<Process>, String> {
        let mut arguments = vec![
            "--bind=127.0.0.1".to_owned(),
            format!("--port={}", launch.ports[0]),
            format!("--dir={}", launch.directory.display()),
            format!("--proactor_threads={}", launch.io_threads),
            "--snapshot_cron=".to_owned(),
            "--maxclients=20000".to_owned(),
            "--logtostderr".to_owned(),
        ];
        if let Role::Replica { of } = &launch.role {
            arguments.push(format!("--replicaof={of}"));
        }
        Ok(vec![Process::new(program, arguments, launch.extra)])
    }

    fn ready(&self, address: SocketAddr) -> io::Result<()> {
        redis_like::ready(address)
    }

    fn join(&self, nodes: &[SocketAddr], topology: Topology) -> Result<(), String> {
        self.can(Capability::Nodes(topology))?;
        redis_like::join(nodes, topology)
    }

    fn effective_settings(&self, address: SocketAddr) -> io::Result<BTreeMap<String, String>> {
        redis_like::effective_settings(address)
    }

    fn can(&self, capability: Capability) -> Result<(), String> {
        match capability {
            Capability::Nodes(Topology::MasterMaster) => {
                Err("no master-master replication: a node is a master or a replica".to_owned())
            }
            Capability::Nodes(Topology::Cluster { .. }) => Err(
                "its cluster is put together by a control plane of its own (DFLYCLUSTER CONFIG)"
                    .to_owned(),
            ),
            _ => Ok(()),
        }
    }

    fn begin_snapshot(&self, address: SocketAddr) -> io::Result<()> {
        redis_like::begin_snapshot(address)
    }

    fn snapshot_under_way(&self, address: SocketAddr) -> io::Result<bool> {
        super::control::Control::connect(address)?
            .info("persistence", "saving")
            .map(|value| value != "0")
    }
}
