//! Systems of the published comparisons that the lab does not ask yet: each is a missing one with the
//! reason, so that a report shows what it lacks. A driver is written with its server at hand to check it
//! against, or not at all.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;

use super::places::Places;
use super::system::{
    Capability, DriverKind, Launch, Missing, Process, Program, Promise, Setting, System,
};

/// A system without a driver.
#[derive(Clone, Copy, Debug)]
pub enum Undriven {
    /// Aerospike.
    Aerospike,
}

const REASON: &str = "the lab has no driver for it yet";

impl System for Undriven {
    fn name(&self) -> &'static str {
        match self {
            Self::Aerospike => "aerospike",
        }
    }

    fn title(&self) -> &'static str {
        match self {
            Self::Aerospike => "Aerospike",
        }
    }

    fn find(&self, _: &Places) -> Result<Program, Missing> {
        let install = match self {
            Self::Aerospike => {
                "see https://aerospike.com/docs/server (would not be measured either way)"
            }
        };
        Err(Missing { system: self.name(), reason: REASON.to_owned(), install: install.to_owned() })
    }

    fn settings(&self) -> Vec<Setting> {
        vec![Setting { name: "memory only", promise: Promise::None }]
    }

    fn driver(&self) -> DriverKind {
        DriverKind::Helper
    }

    fn launch(&self, _: &Program, _: &Launch<'_>) -> Result<Vec<Process>, String> {
        Err(REASON.to_owned())
    }

    fn ready(&self, _: SocketAddr) -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::Unsupported, REASON))
    }

    fn effective_settings(&self, _: SocketAddr) -> io::Result<BTreeMap<String, String>> {
        Err(io::Error::new(io::ErrorKind::Unsupported, REASON))
    }

    fn can(&self, _: Capability) -> Result<(), String> {
        Err(REASON.to_owned())
    }
}
