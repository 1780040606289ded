//! This repository's `ladon`, asked in another protocol than Redis': the same requests as those of the
//! systems that speak it.
//!
//! RESP listens too, on a port of its own: it tells the settings and makes snapshots.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;

use super::ladon::{self, Ladon};
use super::memcached::Memcached;
use super::program_paths::ProgramPaths;
use super::system::{Capability, DriverKind, Launch, Missing, Process, Program, Setting, System};
use super::{redis_like, resp_beside};

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct LadonSpeaking {
    /// As it is asked for.
    pub name: &'static str,
    title: &'static str,
    /// The setting of the protocol's address.
    setting: &'static str,
    driver: DriverKind,
    only_in: Option<&'static str>,
    by_name_only: bool,
    ready: fn(SocketAddr) -> io::Result<()>,
}

/// HTTP, by itself: no program in front of it.
pub const HTTP: LadonSpeaking = LadonSpeaking {
    name: "ladon-http",
    title: "Ladon over HTTP",
    setting: "--http",
    driver: DriverKind::HttpCommands,
    only_in: Some("web"),
    by_name_only: false,
    ready: |address| Ladon.ready(resp_beside::of(address)?),
};

/// memcached's text protocol.
pub const MEMCACHED: LadonSpeaking = LadonSpeaking {
    name: "ladon-memcached",
    title: "Ladon over memcached's text",
    setting: "--memcached",
    driver: DriverKind::MemcachedText,
    only_in: None,
    by_name_only: true,
    ready: |address| Memcached.ready(address),
};

impl System for LadonSpeaking {
    fn name(&self) -> &'static str {
        self.name
    }

    fn title(&self) -> &'static str {
        self.title
    }

    fn find(&self, places: &ProgramPaths) -> Result<Program, Missing> {
        ladon::find_as(self.name, places)
    }

    fn settings(&self) -> Vec<Setting> {
        Ladon.settings()
    }

    fn driver(&self) -> DriverKind {
        self.driver
    }

    fn only_in(&self) -> Option<&'static str> {
        self.only_in
    }

    fn by_name_only(&self) -> bool {
        self.by_name_only
    }

    /// The second is RESP's.
    fn ports(&self) -> usize {
        2
    }

    fn launch(&self, program: &Program, launch: &Launch<'_>) -> Result<Vec<Process>, String> {
        let [spoken, resp] = launch.ports else {
            return Err(format!("two ports are needed: {:?}", launch.ports));
        };
        let mut arguments = ladon::arguments(launch, *resp);
        arguments.extend([self.setting.to_owned(), format!("127.0.0.1:{spoken}")]);
        resp_beside::note(*spoken, *resp);
        Ok(vec![Process::new(program, arguments, launch.extra)])
    }

    fn ready(&self, address: SocketAddr) -> io::Result<()> {
        (self.ready)(address)
    }

    fn effective_settings(&self, address: SocketAddr) -> io::Result<BTreeMap<String, String>> {
        redis_like::effective_settings(resp_beside::of(address)?)
    }

    fn can(&self, capability: Capability) -> Result<(), String> {
        ladon::can_beside_resp(capability)
    }

    fn begin_snapshot(&self, address: SocketAddr) -> io::Result<()> {
        redis_like::begin_snapshot(resp_beside::of(address)?)
    }

    fn snapshot_under_way(&self, address: SocketAddr) -> io::Result<bool> {
        redis_like::snapshot_under_way(resp_beside::of(address)?)
    }
}
