//! Commands without a server: a node on a fake log and clock, its clients, and scripts of
//! requests with the replies that they must get.

#![allow(dead_code, unused_imports, reason = "every test file uses its own part of this")]

mod fakes;
mod real;
mod script;
mod show;

pub use fakes::{FakeClock, FakeLog};
pub use script::{check, check_on};
pub use show::show;

use ladon_engine::{Keyspace, KeyspaceOptions, Locks, Recovering, Scratch};
use ladon_kernel::access::Access;
use ladon_kernel::client::clients::ClientInfo;
use ladon_kernel::client::disconnect::disconnect;
use ladon_kernel::client::session::Session;
use ladon_kernel::cluster::Cluster;
use ladon_kernel::dataset::Dataset;
use ladon_kernel::local::Local;
use ladon_kernel::message::ThreadHandle;
use ladon_kernel::node::Node;
use ladon_kernel::request::execute::{Request, execute};
use ladon_kernel::request::outcome::Outcome;
use ladon_kernel::rng::Rng;
use ladon_kernel::role::Role;
use ladon_kernel::shared::{Shared, SharedParts};
use ladon_kernel::thread_parts::ThreadParts;
use ladon_log::Log;
use ladon_resp::Proto;
use ladon_settings::Settings;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Where a fake clock begins, Unix milliseconds.
pub const START_MS: u64 = 1_700_000_000_000;

/// A node with nothing around it.
pub struct TestNode {
    pub node: Node,
    pub clock: Arc<FakeClock>,
    pub log: Arc<FakeLog>,
    /// Every command on data is first run and taken back, of which no reply may show anything.
    pub rehearses: bool,
}

/// A connection to a [`TestNode`], and the IO thread behind it.
pub struct TestClient {
    pub session: Session,
    pub local: Local,
    pub scratch: Scratch,
}

/// Every key with its database number (as `SELECT` knows it), body and expiry.
pub type Dump = BTreeMap<(u16, Vec<u8>), (String, Vec<Vec<u8>>, u64)>;

impl TestNode {
    pub fn new() -> TestNode {
        TestNode::with_settings(Settings::new())
    }

    pub fn with_settings(settings: Settings) -> TestNode {
        TestNode::made(settings, |_| ())
    }

    /// A node of this cluster.
    pub fn in_cluster(cluster: Arc<dyn Cluster>, role: Role) -> TestNode {
        TestNode::made(Settings::new(), |shared| {
            shared.cluster = Some(cluster);
            shared.role.set(role);
        })
    }

    fn made(settings: Settings, adapt: impl FnOnce(&mut Shared)) -> TestNode {
        let keyspace = empty_keyspace();
        let (clock, log) = (Arc::new(FakeClock::new(START_MS)), Arc::new(FakeLog::default()));
        let table = ladon_commands::families::table();
        let data = Dataset {
            keyspace: Arc::new(keyspace),
            log: Log::nowhere(clock.clone()),
            durability: log.clone(),
            loading: None,
        };
        let parts = SharedParts {
            settings: Arc::new(settings),
            clock: clock.clone(),
            threads: vec![ThreadHandle::new(|| {})],
            run_id: "0".repeat(40),
            io_backend: "none".to_owned(),
            table,
        };
        let mut shared = Shared::new(parts);
        adapt(&mut shared);
        TestNode { node: Node::new(shared, data, table), clock, log, rehearses: true }
    }

    /// For tests that look at garbage, or at time that was spent.
    pub fn without_rehearsals(self) -> TestNode {
        TestNode { rehearses: false, ..self }
    }

    pub fn client(&self) -> TestClient {
        let id = self.node.clients.next_id();
        let addr = format!("127.0.0.1:{id}");
        let created_ms = self.node.clock.unix_ms();
        let info = Arc::new(ClientInfo { id, addr, created_ms, ..ClientInfo::default() });
        self.node.clients.add(Arc::clone(&info));
        let mut local = Local::new(0, self.node.stats[0].clone(), Rng::new(id));
        local.rehearses = self.rehearses;
        let access = Access::of_new_connection(&self.node);
        TestClient { session: Session::new(info, true, access), local, scratch: Scratch::default() }
    }

    /// Runs one request; the raw reply and what becomes of the connection.
    pub fn request(&self, client: &mut TestClient, args: &[&[u8]]) -> (Vec<u8>, Outcome) {
        let id = self.node.table.find(args[0]);
        let first_key = id
            .and_then(|id| self.node.table.spec(id).keys.positions(args).next())
            .map(|at| self.node.keyspace.hash(args[at]));
        let mut out = Vec::new();
        let now_ms = self.node.clock.unix_ms();
        let mut thread = ThreadParts {
            node: &self.node,
            local: &mut client.local,
            scratch: &mut client.scratch,
            now_ms,
            append: &mut |record| self.log.append(&record.changes()),
            pump: None,
        };
        let request = Request { id, args, first_key };
        let outcome = execute(&mut thread, &mut client.session, request, &mut out);
        (out, outcome)
    }

    /// Runs one request given as words (see [`script::words`]); the reply as [`show`] has it.
    pub fn run(&self, client: &mut TestClient, line: &str) -> String {
        let words = script::words(line);
        let args: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        show(&self.request(client, &args).0)
    }

    /// A connection ends.
    pub fn end(&self, mut client: TestClient) {
        let TestClient { session, local, scratch } = &mut client;
        let mut thread = ThreadParts {
            node: &self.node,
            local,
            scratch,
            now_ms: self.node.clock.unix_ms(),
            append: &mut |record| self.log.append(&record.changes()),
            pump: None,
        };
        disconnect(&mut thread, session);
    }

    /// What the node holds now, expired keys that still take memory included.
    pub fn dump(&self) -> Dump {
        dump(&self.node.keyspace)
    }

    /// What replaying the log into an empty keyspace gives.
    pub fn replayed(&self) -> Dump {
        let keyspace = empty_keyspace();
        let recovering = Recovering::new(&keyspace, START_MS);
        for (lsn, changes) in self.log.records() {
            recovering.replay((0, 1)).record(lsn, &changes).expect("a logged record applies");
        }
        dump(&keyspace)
    }
}

/// Speaks RESP3 from now on.
pub fn speak_resp3(client: &mut TestClient) {
    client.session.proto = Proto::Resp3;
}

fn empty_keyspace() -> Keyspace {
    Keyspace::new(KeyspaceOptions { hash_seed: 42, databases: 16 })
}

fn dump(keyspace: &Keyspace) -> Dump {
    use ladon_engine::{ValueRef, types};
    let mut found = Dump::new();
    let mut scratch = Scratch::default();
    // At time zero nothing has expired.
    let mut tx = keyspace.begin(Locks::All, &mut scratch, 0);
    for number in 0..keyspace.databases() {
        let db = keyspace.select(number);
        tx.for_each(db, |entry| {
            let value = entry.value();
            let parts = match value {
                ValueRef::Object(object) => {
                    let mut elements: Vec<Vec<u8>> = Vec::new();
                    object.for_each(|parts| elements.push(parts.join(&0)));
                    if !object.is_ordered() {
                        elements.sort();
                    }
                    elements
                }
                value => vec![types::string::bytes(value).expect("a string").into_owned()],
            };
            let kind = types::kind_of(value).name().to_owned();
            found.insert((number, entry.key().to_vec()), (kind, parts, entry.expire_at()));
        });
    }
    found
}
