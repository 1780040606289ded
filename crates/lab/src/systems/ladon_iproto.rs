//! This repository's `ladon`, asked in IPROTO as Tarantool is: the same dialect, the same spaces.
//!
//! The spaces are made over IPROTO by `admin`, who inserts their definitions into the system
//! spaces. RESP listens too, on a port of its own: it tells the settings and makes snapshots.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;

use super::iproto_control::IprotoControl;
use super::ladon::{self, Ladon};
use super::primary::Primary;
use super::program_paths::ProgramPaths;
use super::system::{Capability, DriverKind, Launch, Missing, Process, Program, Setting, System};
use super::{redis_like, resp_beside};
use crate::dialects::iproto::msgpack::Value;
use crate::dialects::iproto::request::Request;
use crate::dialects::iproto::spaces;
use crate::dialects::sql::SqlKind;
use crate::operation::OperationKind;
use crate::topology::Topology;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct LadonIproto {
    primary: Primary,
}

/// With trees as primary indexes.
pub const TREE: LadonIproto = LadonIproto { primary: Primary::Tree };

/// Its name on the command line and in tables.
pub const TREE_NAME: &str = "ladon-iproto";

/// With hashes as primary indexes.
pub const HASH: LadonIproto = LadonIproto { primary: Primary::Hash };

const ADMIN_PASSWORD: &str = "lab";

impl System for LadonIproto {
    fn name(&self) -> &'static str {
        match self.primary {
            Primary::Tree => TREE_NAME,
            Primary::Hash => "ladon-iproto-hash",
        }
    }

    fn title(&self) -> &'static str {
        match self.primary {
            Primary::Tree => "Ladon over IPROTO",
            Primary::Hash => "Ladon over IPROTO, HASH",
        }
    }

    fn find(&self, places: &ProgramPaths) -> Result<Program, Missing> {
        ladon::find_as(self.name(), places)
    }

    fn settings(&self) -> Vec<Setting> {
        Ladon.settings()
    }

    fn driver(&self) -> DriverKind {
        DriverKind::Iproto
    }

    fn sql(&self) -> Option<SqlKind> {
        Some(SqlKind::Iproto)
    }

    fn can_do(&self, kind: OperationKind) -> Result<(), String> {
        match kind {
            OperationKind::SetMany => {
                Err("several keys as one change take a stored function; Ladon has no Lua in its \
                     spaces yet"
                    .to_owned())
            }
            other => self.primary.can_do(other),
        }
    }

    fn by_name_only(&self) -> bool {
        true
    }

    /// The second is RESP's.
    fn ports(&self) -> usize {
        2
    }

    fn launch(&self, program: &Program, launch: &Launch<'_>) -> Result<Vec<Process>, String> {
        let [iproto, resp] = launch.ports else {
            return Err(format!("two ports are needed: {:?}", launch.ports));
        };
        let mut arguments = ladon::arguments(launch, *resp);
        let address = format!("127.0.0.1:{iproto}");
        let more = ["--iproto", &address, "--iproto-admin-password", ADMIN_PASSWORD];
        arguments.extend(more.map(str::to_owned));
        resp_beside::note(*iproto, *resp);
        Ok(vec![Process::new(program, arguments, launch.extra)])
    }

    fn ready(&self, address: SocketAddr) -> io::Result<()> {
        IprotoControl::connect(address)?.request(&Request::Ping).map(|_| ())
    }

    fn join(&self, nodes: &[SocketAddr], topology: Topology) -> Result<(), String> {
        self.can(Capability::Nodes(topology))?;
        have_spaces(nodes[0], self.primary).map_err(|error| format!("made no spaces: {error}"))
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

// System spaces that definitions are tuples of.
const SPACE: u64 = 280;
const SEQUENCE: u64 = 284;
const INDEX: u64 = 288;
const PRIV: u64 = 312;
const SPACE_SEQUENCE: u64 = 340;

const ADMIN: Value = Value::Unsigned(1);
const GUEST: Value = Value::Unsigned(0);
/// Reading, writing, execution and making things, and what it has at first: a session, and its use.
const ALL_RIGHTS: Value = Value::Unsigned(63);

/// Makes what Tarantool's program makes, by `admin`.
fn have_spaces(address: SocketAddr, primary: Primary) -> io::Result<()> {
    let mut admin = IprotoControl::connect(address)?;
    admin.auth("admin", ADMIN_PASSWORD)?;
    let mut define =
        |space: u64, tuple: &[Value]| admin.request(&Request::Insert { space, tuple }).map(|_| ());
    let number = Value::Unsigned;
    for (id, name, key) in [
        (spaces::KV, "kv", "string"),
        (spaces::COUNTERS, "counters", "string"),
        (spaces::SETS, "sets", "unsigned"),
        (spaces::ROWS, "rows", "unsigned"),
        (spaces::TUPLES, "tuples", "unsigned"),
    ] {
        let (engine, options) = (Value::text("memtx"), Value::Map(Vec::new()));
        let format = Value::Array(Vec::new());
        let name = Value::text(name);
        define(SPACE, &[number(id), ADMIN, name, engine, number(0), options, format])?;
        define(INDEX, &index((id, 0), "primary", primary.name(), (0, key)))?;
    }
    let by_set = (spaces::SETS, spaces::SETS_BY_SET);
    define(INDEX, &index(by_set, "by_set", "tree", (1, "string")))?;
    let by_group = (spaces::ROWS, spaces::ROWS_BY_GROUP);
    define(INDEX, &index(by_group, "by_group", "tree", (1, "unsigned")))?;
    // Counts from 1 by 1, without end.
    let (end, not) = (number(i64::MAX as u64), Value::Bool(false));
    let name = Value::text("sets_numbers");
    let (one, none) = (number(1), number(0));
    let (from, step, first) = (one.clone(), one.clone(), one.clone());
    let sequence = [one.clone(), ADMIN, name, step, from, end, first, none.clone(), not.clone()];
    define(SEQUENCE, &sequence)?;
    define(SPACE_SEQUENCE, &[number(spaces::SETS), one, not, none.clone(), Value::text("")])?;
    let rights = [ADMIN, GUEST, Value::text("universe"), none, ALL_RIGHTS];
    admin.request(&Request::Replace { space: PRIV, tuple: &rights }).map(|_| ())
}

/// The definition of index `id` of a space, over one field.
fn index(id: (u64, u64), name: &str, kind: &str, (field, of): (u64, &str)) -> Vec<Value> {
    let is_unique = Value::Bool(id.1 == 0);
    let part = Value::Array(vec![Value::Unsigned(field), Value::text(of)]);
    vec![
        Value::Unsigned(id.0),
        Value::Unsigned(id.1),
        Value::text(name),
        Value::text(kind),
        Value::Map(vec![(Value::text("unique"), is_unique)]),
        Value::Array(vec![part]),
    ]
}
