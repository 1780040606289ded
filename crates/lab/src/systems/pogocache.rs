//! Pogocache: a cache of strings that speaks, among others, Redis' protocol.
//!
//! Not tried here: no package of it could be had. What is written follows its README.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;

use super::places::{Places, on_path};
use super::redis_like;
use super::system::{
    Capability, DriverKind, Launch, Missing, Process, Program, Promise, Setting, System,
};
use crate::operation::OperationKind;
use crate::topology::Topology;

/// Pogocache.
#[derive(Clone, Copy, Debug)]
pub struct Pogocache;

impl System for Pogocache {
    fn name(&self) -> &'static str {
        "pogocache"
    }

    fn title(&self) -> &'static str {
        "Pogocache"
    }

    fn find(&self, places: &Places) -> Result<Program, Missing> {
        let install = "git clone https://github.com/tidwall/pogocache && make -C pogocache && \
                       install pogocache/pogocache /usr/local/bin";
        places.program(self.name(), on_path("pogocache"), &["--version"], install)
    }

    fn settings(&self) -> Vec<Setting> {
        vec![Setting { name: "memory only", promise: Promise::None }]
    }

    fn driver(&self) -> DriverKind {
        DriverKind::Resp
    }

    fn can_do(&self, kind: OperationKind) -> Result<(), String> {
        match kind {
            OperationKind::Set
            | OperationKind::Get
            | OperationKind::Delete
            | OperationKind::Add => Ok(()),
            OperationKind::SetMany => Err("no request that sets several keys".to_owned()),
            _ => Err("it stores strings and nothing else".to_owned()),
        }
    }

    fn launch(&self, program: &Program, launch: &Launch<'_>) -> Result<Vec<Process>, String> {
        let arguments = [
            "-h",
            "127.0.0.1",
            "-p",
            &launch.ports[0].to_string(),
            "-t",
            &launch.io_threads.to_string(),
            "--maxconns",
            "20000",
        ];
        Ok(vec![Process::new(program, arguments.map(str::to_owned).into(), launch.extra)])
    }

    fn ready(&self, address: SocketAddr) -> io::Result<()> {
        redis_like::ready(address)
    }

    /// It has no way of telling them: the command line in the record is all.
    fn effective_settings(&self, _: SocketAddr) -> io::Result<BTreeMap<String, String>> {
        Ok(BTreeMap::new())
    }

    fn can(&self, capability: Capability) -> Result<(), String> {
        match capability {
            Capability::Nodes(Topology::Single) => Ok(()),
            Capability::Nodes(_) => Err("no replication and no cluster".to_owned()),
            Capability::Snapshot => Err("no snapshots under load".to_owned()),
            Capability::Restart => Err("nothing is kept over a crash".to_owned()),
        }
    }
}
