//! What the kernel and Ladon's loop alone cost: the example `echo` of `ladon-net`, which answers
//! PING and nothing else. No store, and no competitor: a floor for the figures of those that are.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use super::program_paths::ProgramPaths;
use super::redis_like;
use super::system::{
    Capability, DriverKind, Launch, Missing, Process, Program, Promise, Setting, System,
};
use crate::operation::OperationKind;
use crate::topology::Topology;

/// The bare loop.
#[derive(Clone, Copy, Debug)]
pub struct BareLoop;

/// Its name on the command line and in tables.
pub const NAME: &str = "bare-loop";

impl System for BareLoop {
    fn name(&self) -> &'static str {
        NAME
    }

    fn title(&self) -> &'static str {
        "The bare loop"
    }

    fn find(&self, places: &ProgramPaths) -> Result<Program, Missing> {
        let install = "cargo build --release -p ladon-net --example echo";
        let path = places.first(NAME, candidates(), install)?;
        Ok(Program {
            system: NAME,
            label: NAME.to_owned(),
            command: vec![path.display().to_string()],
            version: concat!("echo of ladon-net ", env!("CARGO_PKG_VERSION")).to_owned(),
            behind: None,
        })
    }

    fn settings(&self) -> Vec<Setting> {
        vec![Setting { name: "io_uring", promise: Promise::None }]
    }

    fn driver(&self) -> DriverKind {
        DriverKind::Resp
    }

    fn can_do(&self, _: OperationKind) -> Result<(), String> {
        Err("the bare loop answers PING alone".to_owned())
    }

    fn is_store(&self) -> bool {
        false
    }

    fn only_in(&self) -> Option<&'static str> {
        Some("pipeline")
    }

    fn launch(&self, program: &Program, launch: &Launch<'_>) -> Result<Vec<Process>, String> {
        let arguments = ["serve", launch.setting.name, &launch.ports[0].to_string()];
        Ok(vec![Process::new(program, arguments.map(str::to_owned).into(), launch.extra)])
    }

    fn ready(&self, address: SocketAddr) -> io::Result<()> {
        redis_like::ready(address)
    }

    fn effective_settings(&self, _: SocketAddr) -> io::Result<BTreeMap<String, String>> {
        Ok([("threads".to_owned(), "1".to_owned())].into())
    }

    fn can(&self, capability: Capability) -> Result<(), String> {
        match capability {
            Capability::Nodes(Topology::Single) => Ok(()),
            _ => Err("the bare loop keeps nothing".to_owned()),
        }
    }
}

/// Beside this program, or in the profile that releases are built with. A debug build's figures
/// would say nothing.
fn candidates() -> Vec<PathBuf> {
    let Ok(this) = std::env::current_exe() else { return Vec::new() };
    let Some(folder) = this.parent() else { return Vec::new() };
    let mut candidates = Vec::new();
    if !folder.ends_with("debug") {
        candidates.push(folder.join("examples/echo"));
    }
    candidates.extend(folder.parent().map(|target| target.join("release/examples/echo")));
    candidates.dedup();
    candidates
}
