//! Systems that speak Redis' protocol and that the lab was never run against: none is in a package
//! registry. Their definitions follow their documentation, and the lab's output says so.
//!
//! | system | documentation |
//! |---|---|
//! | KeyDB | docs.keydb.dev, "Multithreading" |
//! | Dragonfly | dragonflydb.io/docs, "Server flags", "Saving backups", "Replication" |
//! | Pogocache | its README |

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;

use super::control::Control;
use super::program_paths::{ProgramPaths, on_path};
use super::redis_like;
use super::system::{
    Capability, DriverKind, Launch, Missing, Process, Program, Promise, Role, Setting, System,
};
use crate::operation::OperationKind;
use crate::topology::Topology;

/// Beside what is found, and beside the command that gets what is not.
const UNTRIED: &str = "(the lab was never run against a real one)";

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Untried {
    name: &'static str,
    title: &'static str,
    program: &'static str,
    install: &'static str,
    start: Start,
    /// Whether it stores strings and nothing else, keeps nothing and tells no settings.
    strings_only: bool,
    /// The field of `INFO persistence` that is not 0 while a snapshot is made.
    saving: &'static str,
}

/// How it is started.
#[derive(Clone, Copy, Debug)]
enum Start {
    /// With Redis' own arguments and log settings, and this one for its threads.
    LikeRedis { threads: &'static str },
    /// With these words, in memory only; `{port}`, `{directory}` and `{threads}` are filled in.
    With { words: &'static [&'static str] },
}

/// KeyDB: a Redis of several threads.
pub const KEYDB: Untried = Untried {
    name: "keydb",
    title: "KeyDB",
    program: "keydb-server",
    install: "echo \"deb https://download.keydb.dev/open-source-dist $(lsb_release -sc) main\" \
              >/etc/apt/sources.list.d/keydb.list && wget -O /etc/apt/trusted.gpg.d/keydb.gpg \
              https://download.keydb.dev/open-source-dist/keyring.gpg && apt-get update && \
              apt-get install keydb",
    start: Start::LikeRedis { threads: "--server-threads" },
    strings_only: false,
    saving: "rdb_bgsave_in_progress",
};

/// Dragonfly: all cores of one machine behind Redis' protocol; it has snapshots and no log.
pub const DRAGONFLY: Untried = Untried {
    name: "dragonfly",
    title: "Dragonfly",
    program: "dragonfly",
    install: "curl -L https://dragonflydb.gateway.scarf.sh/latest/dragonfly-x86_64.tar.gz | tar xz && \
              install dragonfly-x86_64 /usr/local/bin/dragonfly",
    start: Start::With {
        words: &[
            "--bind=127.0.0.1",
            "--port={port}",
            "--dir={directory}",
            "--proactor_threads={threads}",
            "--snapshot_cron=",
            "--maxclients=20000",
            "--logtostderr",
        ],
    },
    strings_only: false,
    saving: "saving",
};

/// Pogocache: a cache of strings that speaks, among others, Redis' protocol.
pub const POGOCACHE: Untried = Untried {
    name: "pogocache",
    title: "Pogocache",
    program: "pogocache",
    install: "git clone https://github.com/tidwall/pogocache && make -C pogocache && install \
              pogocache/pogocache /usr/local/bin",
    start: Start::With {
        words: &["-h", "127.0.0.1", "-p", "{port}", "-t", "{threads}", "--maxconns", "20000"],
    },
    strings_only: true,
    saving: "",
};

impl System for Untried {
    fn name(&self) -> &'static str {
        self.name
    }

    fn title(&self) -> &'static str {
        self.title
    }

    fn find(&self, places: &ProgramPaths) -> Result<Program, Missing> {
        let install = format!("{} {UNTRIED}", self.install);
        let found = places.program(self.name, on_path(self.program), &["--version"], &install);
        found
            .map(|program| Program { version: format!("{} {UNTRIED}", program.version), ..program })
    }

    fn settings(&self) -> Vec<Setting> {
        match self.start {
            Start::LikeRedis { .. } => redis_like::settings(),
            Start::With { .. } => vec![Setting { name: "memory only", promise: Promise::None }],
        }
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
            OperationKind::SetMany if self.strings_only => {
                Err("no request that sets several keys".to_owned())
            }
            _ if self.strings_only => Err("it stores strings and nothing else".to_owned()),
            other => self.driver().dialect().map_or(Ok(()), |dialect| dialect.can(other)),
        }
    }

    fn launch(&self, program: &Program, launch: &Launch<'_>) -> Result<Vec<Process>, String> {
        let arguments = match (self.start, &launch.role) {
            (Start::LikeRedis { threads }, _) => redis_like::arguments(launch, threads),
            (Start::With { words }, role) => {
                let mut all: Vec<String> = words
                    .iter()
                    .map(|word| {
                        word.replace("{port}", &launch.ports[0].to_string())
                            .replace("{directory}", &launch.directory.display().to_string())
                            .replace("{threads}", &launch.io_threads.to_string())
                    })
                    .collect();
                if let Role::Replica { of } = role {
                    all.push(format!("--replicaof={of}"));
                }
                all
            }
        };
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
        // One that cannot tell them: the command line in the record is all.
        if self.strings_only {
            return Ok(BTreeMap::new());
        }
        redis_like::effective_settings(address)
    }

    fn can(&self, capability: Capability) -> Result<(), String> {
        match capability {
            Capability::Nodes(Topology::Single) => Ok(()),
            _ if self.strings_only => {
                Err("no replication, cluster, snapshot or restart".to_owned())
            }
            Capability::Nodes(Topology::Cluster { .. } | Topology::MasterMaster) => {
                Err(format!("no arrangement of {} that the lab was tried with", self.title))
            }
            Capability::Nodes(Topology::Replica) | Capability::Snapshot | Capability::Restart => {
                Ok(())
            }
        }
    }

    fn begin_snapshot(&self, address: SocketAddr) -> io::Result<()> {
        redis_like::begin_snapshot(address)
    }

    fn snapshot_under_way(&self, address: SocketAddr) -> io::Result<bool> {
        let under_way = Control::connect(address)?.info("persistence", self.saving)?;
        Ok(under_way != "0")
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn line(system: &Untried, role: Role) -> String {
        let launch = Launch {
            setting: system.settings()[0],
            directory: Path::new("/data"),
            ports: &[7000],
            io_threads: 2,
            role,
            extra: &[],
        };
        let bare = Program {
            system: system.name,
            label: String::new(),
            command: Vec::new(),
            version: String::new(),
            behind: None,
        };
        system.launch(&bare, &launch).unwrap()[0].command_line.join(" ")
    }

    #[test]
    fn they_are_started_as_their_documentation_says() {
        assert_eq!(line(&POGOCACHE, Role::Single), "-h 127.0.0.1 -p 7000 -t 2 --maxconns 20000");
        let of = SocketAddr::from(([127, 0, 0, 1], 7001));
        assert_eq!(
            line(&DRAGONFLY, Role::Replica { of }),
            "--bind=127.0.0.1 --port=7000 --dir=/data --proactor_threads=2 --snapshot_cron= \
             --maxclients=20000 --logtostderr --replicaof=127.0.0.1:7001"
        );
        let keydb = line(&KEYDB, Role::Single);
        assert!(
            keydb.contains("--server-threads 2") && keydb.contains("--appendonly no"),
            "{keydb}"
        );
    }
}
