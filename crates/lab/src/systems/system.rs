//! What the lab needs to know of a system: where its program is, how it is started, what it cannot
//! do.
//!
//! A system is one file that implements [`System`] and contains everything that differs between
//! servers. Starting, pinning, waiting and stopping are the same for all and are in
//! [`super::instance`].
//!
//! **Invariant:** what a system cannot do is a reason in words for the reader of the report, never
//! a figure of zero.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use super::program_paths::ProgramPaths;
use crate::dialects::sql::SqlKind;
use crate::dialects::{self, Dialect};
use crate::operation::OperationKind;
use crate::topology::Topology;

/// What a server promises of an acknowledged write, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Promise {
    /// Memory only.
    None,
    /// Handed to the operating system: outlives the process, not the machine.
    Os,
    /// On the disk within a second.
    Everysec,
    /// On the disk before the reply.
    Fsync,
}

impl Promise {
    /// In a word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Os => "os",
            Self::Everysec => "everysec",
            Self::Fsync => "fsync",
        }
    }
}

impl fmt::Display for Promise {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// One way of starting a system: its log setting in the system's own words, and what that promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Setting {
    /// For example `appendfsync always`, `wal_mode=fsync`.
    pub name: &'static str,
    /// What it promises.
    pub promise: Promise,
}

/// A program ready to be started.
#[derive(Clone, Debug, Serialize)]
pub struct Program {
    /// Name of its system.
    pub system: &'static str,
    /// Its name in tables: the system's, numbered where there are several of it.
    pub label: String,
    /// The words to start it with, before its own arguments.
    pub command: Vec<String>,
    /// The first line of what it says of its version.
    pub version: String,
    /// The server behind it, if it is a program in front of one.
    pub behind: Option<Box<Self>>,
}

/// Why a system cannot be measured here, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{system}: {reason}; {install}")]
pub struct Missing {
    /// The system.
    pub system: &'static str,
    /// `not found at ...`, or why what was found does not start.
    pub reason: String,
    /// The exact command that gets it.
    pub install: String,
}

/// What a node is in a system of several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// Alone.
    Single,
    /// Copies what the node at this address holds.
    Replica {
        /// The master.
        of: SocketAddr,
    },
    /// One of several that all take writes.
    Peer {
        /// All of them, this one included, in the order of their numbers.
        all: Vec<SocketAddr>,
        /// Which one this is.
        number: usize,
    },
    /// One of a cluster's, which [`System::join`] puts together once all answer.
    Member,
}

/// What a node is started for.
#[derive(Clone, Debug)]
pub struct Launch<'a> {
    /// One of [`System::settings`].
    pub setting: Setting,
    /// An empty directory of its own, or the one of the start before.
    pub directory: &'a Path,
    /// Free ports of 127.0.0.1, [`System::ports`] of them; clients come to the first.
    pub ports: &'a [u16],
    /// Threads that serve clients, where the system can be told.
    pub io_threads: usize,
    /// What it is among others.
    pub role: Role,
    /// Further arguments for the program, at the end of its command line.
    pub extra: &'a [String],
}

/// One process to start: its command line and what must lie ready for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// Program and arguments.
    pub command_line: Vec<String>,
    /// Variables on top of the lab's own.
    pub environment: Vec<(String, String)>,
    /// Files to write first: path and contents.
    pub files: Vec<(PathBuf, String)>,
}

impl Process {
    /// `program` with `arguments` and `extra`, and nothing else.
    #[must_use]
    pub fn new(program: &Program, arguments: Vec<String>, extra: &[String]) -> Self {
        let mut command_line = program.command.clone();
        command_line.extend(arguments);
        command_line.extend(extra.iter().cloned());
        Self { command_line, ..Self::default() }
    }
}

/// What not every system has, beside the operations that its dialect says it can or cannot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Capability {
    /// Nodes in this arrangement.
    Nodes(Topology),
    /// Writing a snapshot when asked, under load.
    Snapshot,
    /// Coming back with its data after a restart.
    Restart,
}

/// How requests reach it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriverKind {
    /// RESP over a socket.
    Resp,
    /// The same, to a server with the module RediSearch.
    RespSearch,
    /// Tarantool's binary protocol.
    Iproto,
    /// memcached's text protocol.
    MemcachedText,
    /// HTTP/1.1 with JSON answers.
    Http,
    /// HTTP to a server that takes Redis' commands as JSON.
    HttpCommands,
    /// Statements of SQL alone ([`System::sql`]): no operation of the other works.
    Sql,
    /// A client of its own, in a helper program that is commanded by lines of JSON
    /// ([`crate::run::helper`]).
    Helper,
}

impl DriverKind {
    /// The dialect, without login; none where a helper speaks, or SQL alone.
    #[must_use]
    pub fn dialect(self) -> Option<Box<dyn Dialect>> {
        Some(match self {
            Self::Resp => Box::new(dialects::resp::Resp::new()),
            Self::RespSearch => Box::new(dialects::resp::Resp::with_search()),
            Self::Iproto => Box::new(dialects::iproto::Iproto::new()),
            Self::MemcachedText => Box::new(dialects::memcached::Memcached),
            Self::Http => Box::new(dialects::http::Http),
            Self::HttpCommands => Box::new(dialects::http_commands::HttpCommands),
            Self::Sql | Self::Helper => return None,
        })
    }
}

/// One system under measurement. See the module.
pub trait System: Send + Sync {
    /// Its name on the command line and in tables.
    fn name(&self) -> &'static str;

    /// Its name as its makers write it.
    fn title(&self) -> &'static str;

    /// Its program here.
    ///
    /// # Errors
    /// Where the lab looked in vain, or why the program does not start, and what to do.
    fn find(&self, places: &ProgramPaths) -> Result<Program, Missing>;

    /// Its log settings, weakest first; never empty.
    fn settings(&self) -> Vec<Setting>;

    /// How requests reach it.
    fn driver(&self) -> DriverKind;

    /// Whether it can do operations of this kind; unless it says otherwise, what its dialect can.
    ///
    /// # Errors
    /// Why not, in words for the report.
    fn can_do(&self, kind: OperationKind) -> Result<(), String> {
        self.driver().dialect().map_or(Ok(()), |dialect| dialect.can(kind))
    }

    /// How statements of SQL reach it, if any do.
    fn sql(&self) -> Option<SqlKind> {
        None
    }

    /// Whether several requests of one connection may be under way, each done and answered in its
    /// turn.
    ///
    /// # Errors
    /// Why not, in words for the report.
    fn can_pipeline(&self) -> Result<(), String> {
        Ok(())
    }

    /// Whether one process of it runs commands on one core, however many there are.
    fn commands_on_one_core(&self) -> bool {
        false
    }

    /// The only work that it is for, if there is one: a web program is no store.
    fn only_in(&self) -> Option<&'static str> {
        None
    }

    /// Whether it is measured only where it is named: it is another form of a system that is
    /// measured.
    fn by_name_only(&self) -> bool {
        false
    }

    /// Whether it stores anything; otherwise it does not compete.
    fn is_store(&self) -> bool {
        true
    }

    /// How many ports a node needs.
    fn ports(&self) -> usize {
        1
    }

    /// The processes of one node, in the order of their start. The last one listens on the first
    /// port.
    ///
    /// # Errors
    /// What it cannot be started as, in words.
    fn launch(&self, program: &Program, launch: &Launch<'_>) -> Result<Vec<Process>, String>;

    /// The program that puts the load on it, where it is one of its own ([`DriverKind::Helper`]): a
    /// client commanded as [`crate::run::helper`] says. `seed` is where its chance comes from.
    ///
    /// # Errors
    /// That there is none.
    fn helper(&self, program: &Program, address: SocketAddr, seed: u64) -> Result<Process, String> {
        let _ = (program, address, seed);
        Err(format!("no client of {} is driven by the lab", self.title()))
    }

    /// One try at getting an answer from a node.
    ///
    /// # Errors
    /// Anything that means: not yet.
    fn ready(&self, address: SocketAddr) -> io::Result<()>;

    /// Makes one system of nodes that all answer, and waits until it is one.
    ///
    /// # Errors
    /// What went wrong, in words.
    fn join(&self, nodes: &[SocketAddr], topology: Topology) -> Result<(), String> {
        let _ = nodes;
        match topology {
            Topology::Single => Ok(()),
            other => Err(format!("{} is not set up as {other:?}", self.title())),
        }
    }

    /// All settings that a running node says it has.
    ///
    /// # Errors
    /// Errors of the socket, or when the answer cannot be read.
    fn effective_settings(&self, address: SocketAddr) -> io::Result<BTreeMap<String, String>>;

    /// Whether it has what not every system has.
    ///
    /// # Errors
    /// Why not, in words for the report.
    fn can(&self, capability: Capability) -> Result<(), String>;

    /// Starts a snapshot of all data; returns once it is under way.
    ///
    /// # Errors
    /// Errors of the socket; `Unsupported` where [`System::can`] says that there is none.
    fn begin_snapshot(&self, address: SocketAddr) -> io::Result<()> {
        let _ = address;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Whether a snapshot is under way.
    ///
    /// # Errors
    /// As [`System::begin_snapshot`].
    fn snapshot_under_way(&self, address: SocketAddr) -> io::Result<bool> {
        let _ = address;
        Err(io::ErrorKind::Unsupported.into())
    }
}
