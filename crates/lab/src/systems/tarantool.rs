//! Tarantool, with a program of the lab's own that makes spaces, indexes and functions.
//!
//! Its primary indexes are trees, its default, and what a scan needs; or hashes, as another system.
//! Its limit of requests under way (`net_msg_max`, 768) is raised as the others' limit of clients
//! is. It makes no checkpoint of its own accord, as no system here does.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;

use super::iproto_control::IprotoControl;
use super::primary::Primary;
use super::program_paths::{ProgramPaths, on_path};
use super::system::{
    Capability, DriverKind, Launch, Missing, Process, Program, Promise, Role, Setting, System,
};
use crate::dialects::iproto::msgpack::Value;
use crate::dialects::sql::SqlKind;
use crate::operation::OperationKind;
use crate::topology::Topology;

/// Tarantool.
#[derive(Clone, Copy, Debug)]
pub struct Tarantool {
    primary: Primary,
}

/// With trees.
pub const TARANTOOL: Tarantool = Tarantool { primary: Primary::Tree };

/// With hashes as primary indexes.
pub const TARANTOOL_HASH: Tarantool = Tarantool { primary: Primary::Hash };

/// Makes everything that the works use; what [`script`] says of it goes before it.
const PROGRAM: &str = include_str!("../../helpers/tarantool/lab.lua");

impl System for Tarantool {
    fn name(&self) -> &'static str {
        match self.primary {
            Primary::Tree => "tarantool",
            Primary::Hash => "tarantool-hash",
        }
    }

    fn title(&self) -> &'static str {
        match self.primary {
            Primary::Tree => "Tarantool",
            Primary::Hash => "Tarantool, HASH",
        }
    }

    fn by_name_only(&self) -> bool {
        self.primary == Primary::Hash
    }

    fn can_do(&self, kind: OperationKind) -> Result<(), String> {
        self.primary.can_do(kind)
    }

    fn find(&self, places: &ProgramPaths) -> Result<Program, Missing> {
        let install = "apt-get install tarantool";
        places.program(self.name(), on_path("tarantool"), &["--version"], install)
    }

    fn settings(&self) -> Vec<Setting> {
        vec![
            Setting { name: "wal_mode none", promise: Promise::None },
            Setting { name: "wal_mode write", promise: Promise::Os },
            Setting { name: "wal_mode fsync", promise: Promise::Fsync },
        ]
    }

    fn driver(&self) -> DriverKind {
        DriverKind::Iproto
    }

    fn sql(&self) -> Option<SqlKind> {
        Some(SqlKind::Iproto)
    }

    fn launch(&self, program: &Program, launch: &Launch<'_>) -> Result<Vec<Process>, String> {
        let text = script(program, launch, self.primary)?;
        let path = launch.directory.join("lab.lua");
        let arguments = vec![path.display().to_string()];
        let mut process = Process::new(program, arguments, launch.extra);
        process.files = vec![(path, text)];
        Ok(vec![process])
    }

    fn ready(&self, address: SocketAddr) -> io::Result<()> {
        // Until the program has run to its end, either the login or the name is missing.
        let values = IprotoControl::connect(address)?.eval("return lab_is_ready()")?;
        match values[..] {
            [Value::Bool(true)] => Ok(()),
            _ => Err(io::Error::new(io::ErrorKind::WouldBlock, format!("{values:?}"))),
        }
    }

    fn join(&self, nodes: &[SocketAddr], topology: Topology) -> Result<(), String> {
        // Each node's `ready` already waits for what it follows.
        let _ = nodes;
        self.can(Capability::Nodes(topology))
    }

    fn effective_settings(&self, address: SocketAddr) -> io::Result<BTreeMap<String, String>> {
        let values = IprotoControl::connect(address)?.eval("return lab_settings()")?;
        let [Value::Map(pairs)] = &values[..] else {
            return Err(io::Error::other(format!("box.cfg answered {values:?}")));
        };
        let text = |value: &Value| value.as_text().unwrap_or_default().to_owned();
        Ok(pairs.iter().map(|(name, value)| (text(name), text(value))).collect())
    }

    fn can(&self, capability: Capability) -> Result<(), String> {
        match capability {
            Capability::Nodes(Topology::Cluster { .. }) => {
                Err("a cluster needs the module vshard and a router, which are not set up"
                    .to_owned())
            }
            Capability::Nodes(_) | Capability::Snapshot | Capability::Restart => Ok(()),
        }
    }

    fn begin_snapshot(&self, address: SocketAddr) -> io::Result<()> {
        IprotoControl::connect(address)?.eval("lab_begin_snapshot()").map(|_| ())
    }

    fn snapshot_under_way(&self, address: SocketAddr) -> io::Result<bool> {
        let values = IprotoControl::connect(address)?.eval("return lab_snapshot_under_way()")?;
        match values[..] {
            [Value::Bool(under_way)] => Ok(under_way),
            _ => Err(io::Error::other(format!("{values:?}"))),
        }
    }
}

/// The whole program of a node, for any launch of Tarantool.
///
/// # Errors
/// What it cannot be started as.
pub fn script(program: &Program, launch: &Launch<'_>, primary: Primary) -> Result<String, String> {
    let mode = match launch.setting.promise {
        Promise::None => "none",
        Promise::Os => "write",
        Promise::Fsync => "fsync",
        Promise::Everysec => return Err("wal_mode has nothing like once a second".to_owned()),
    };
    if mode == "none" && launch.role != Role::Single {
        return Err("replication reads the log, and wal_mode none writes none".to_owned());
    }
    let uri = |address: &SocketAddr| format!("'{address}'");
    let (replication, read_only, first) = match &launch.role {
        Role::Single => (String::new(), false, true),
        Role::Replica { of } => (uri(of), true, false),
        Role::Peer { all, number } => {
            (all.iter().map(uri).collect::<Vec<_>>().join(", "), false, *number == 0)
        }
        Role::Member => return Err("no cluster without the module vshard".to_owned()),
    };
    let directory = launch.directory.display().to_string();
    let mut configuration = format!(
        "box.cfg{{\n  listen = '127.0.0.1:{}',\n  wal_mode = '{mode}',\n  wal_dir = {directory:?},\n  \
         memtx_dir = {directory:?},\n  vinyl_dir = {directory:?},\n  memtx_memory = {},\n  \
         net_msg_max = 20000,\n  checkpoint_interval = 0,\n  log_level = 'warn',\n",
        launch.ports[0],
        memory_bytes()
    );
    if !replication.is_empty() {
        configuration +=
            &format!("  replication = {{{replication}}},\n  read_only = {read_only},\n");
    }
    if let Role::Peer { number, .. } = &launch.role {
        // The node with the smallest identifier bootstraps the others, and only the first creates
        // what they need for that.
        configuration +=
            &format!("  instance_uuid = '00000000-0000-4000-8000-{:012}',\n", number + 1);
    }
    if release(&program.version) >= (2, 8) {
        configuration += &format!("  iproto_threads = {},\n", launch.io_threads);
    }
    let primary = primary.name();
    Ok(format!(
        "{configuration}}}\nlocal first, attached, primary = {first}, false, '{primary}'\n{PROGRAM}"
    ))
}

/// Creates the lab's spaces and functions on a running server, if they are missing.
///
/// # Errors
/// Those of the socket, or the server's words: a wrong password, a missing right, a conflicting
/// space of another user.
pub fn prepare_attached(address: SocketAddr, login: Option<(&str, &str)>) -> io::Result<()> {
    let mut control = IprotoControl::connect(address)?;
    if let Some((user, password)) = login {
        control.auth(user, password)?;
    }
    control
        .eval(&format!("local first, attached, primary = true, true, 'tree'\n{PROGRAM}"))
        .map(|_| ())
}

/// An arena that holds every work here; only what is used becomes resident.
fn memory_bytes() -> u64 {
    const MOST: u64 = 8 << 30;
    let total = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    });
    total.map_or(1 << 30, |kib| kib * 1024 / 2).min(MOST)
}

/// Major and minor of `Tarantool 2.6.0-...`; zeros where that cannot be read.
fn release(version: &str) -> (u32, u32) {
    let number = version.split_whitespace().nth(1).unwrap_or_default();
    let mut parts = number.split('.').map(|part| part.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_compared_by_number() {
        assert_eq!(release("Tarantool 2.6.0-0-g47aa4e01e"), (2, 6));
        assert!(release("Tarantool Enterprise") < release("Tarantool 2.11.1"));
        assert!(release("Tarantool 2.11.1") > (2, 8));
    }
}
