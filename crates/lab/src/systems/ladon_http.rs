//! This repository's `ladon`, asked over HTTP by itself: no program in front of it.
//!
//! RESP listens too, on a port of its own: it tells the settings and makes snapshots.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;

use super::ladon::{self, Ladon};
use super::program_paths::ProgramPaths;
use super::system::{Capability, DriverKind, Launch, Missing, Process, Program, Setting, System};
use super::{redis_like, resp_beside};

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct LadonHttp;

impl System for LadonHttp {
    fn name(&self) -> &'static str {
        "ladon-http"
    }

    fn title(&self) -> &'static str {
        "Ladon over HTTP"
    }

    fn find(&self, places: &ProgramPaths) -> Result<Program, Missing> {
        ladon::find_as(self.name(), places)
    }

    fn settings(&self) -> Vec<Setting> {
        Ladon.settings()
    }

    fn driver(&self) -> DriverKind {
        DriverKind::HttpCommands
    }

    fn only_in(&self) -> Option<&'static str> {
        Some("web")
    }

    /// The second is RESP's.
    fn ports(&self) -> usize {
        2
    }

    fn launch(&self, program: &Program, launch: &Launch<'_>) -> Result<Vec<Process>, String> {
        let [http, resp] = launch.ports else {
            return Err(format!("two ports are needed: {:?}", launch.ports));
        };
        let mut arguments = ladon::arguments(launch, *resp);
        arguments.extend(["--http".to_owned(), format!("127.0.0.1:{http}")]);
        resp_beside::note(*http, *resp);
        Ok(vec![Process::new(program, arguments, launch.extra)])
    }

    fn ready(&self, address: SocketAddr) -> io::Result<()> {
        Ladon.ready(resp_beside::of(address)?)
    }

    fn effective_settings(&self, address: SocketAddr) -> io::Result<BTreeMap<String, String>> {
        redis_like::effective_settings(resp_beside::of(address)?)
    }

    fn can(&self, capability: Capability) -> Result<(), String> {
        Ladon.can(capability)
    }

    fn begin_snapshot(&self, address: SocketAddr) -> io::Result<()> {
        redis_like::begin_snapshot(resp_beside::of(address)?)
    }

    fn snapshot_under_way(&self, address: SocketAddr) -> io::Result<bool> {
        redis_like::snapshot_under_way(resp_beside::of(address)?)
    }
}
