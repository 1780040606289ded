//! Runs commands on data that is not served: a node with one client and no sockets.
//!
//! Changes are not logged: the data becomes durable as a whole, by the checkpoint behind the import.

use ladon_engine::Scratch;
use ladon_kernel::access::Access;
use ladon_kernel::client::clients::ClientInfo;
use ladon_kernel::client::session::Session;
use ladon_kernel::local::Local;
use ladon_kernel::message::ThreadHandle;
use ladon_kernel::node::Node;
use ladon_kernel::request::execute::{Request, execute};
use ladon_kernel::rng::Rng;
use ladon_kernel::thread_parts::ThreadParts;
use ladon_log::Log;
use ladon_platform::{Clock, SystemClock};
use ladon_server::{Assembly, Recovered, StopSignal, dataset, node_over};
use ladon_settings::Settings;
use std::sync::Arc;

pub(crate) struct Executor {
    node: Node,
    session: Session,
    local: Local,
    scratch: Scratch,
    log: Arc<Log>,
}

impl Executor {
    pub(crate) fn new(settings: &Arc<Settings>, recovered: &Recovered) -> Executor {
        let assembly = Assembly {
            settings: Arc::clone(settings),
            clock: Arc::new(SystemClock),
            threads: vec![ThreadHandle::new(|| {})],
            run_id: "0".repeat(40),
            io_backend: "none".to_owned(),
        };
        let shared = assembly.shared();
        let (data, _) = dataset(&shared, recovered, 0, Arc::new(StopSignal::default()));
        let node = node_over(shared, data);
        let info = Arc::new(ClientInfo { id: node.clients.next_id(), ..ClientInfo::default() });
        node.clients.add(Arc::clone(&info));
        let local = Local::new(0, Arc::clone(&node.stats[0]), Rng::new(SystemClock.unix_us()));
        let log = Arc::clone(&recovered.log);
        let access = Access::of_new_connection(&node);
        Executor {
            node,
            session: Session::new(info, true, access),
            local,
            scratch: Scratch::default(),
            log,
        }
    }

    /// Runs a command; returns its reply's bytes.
    pub(crate) fn run(&mut self, args: &[&[u8]]) -> Vec<u8> {
        let id = self.node.table.find(args[0]);
        let first_key = id
            .and_then(|id| self.node.table.spec(id).keys.positions(args).next())
            .map(|at| self.node.keyspace.hash(args[at]));
        let mut out = Vec::new();
        let log = &self.log;
        let mut thread = ThreadParts {
            node: &self.node,
            local: &mut self.local,
            scratch: &mut self.scratch,
            now_ms: SystemClock.unix_ms(),
            append: &mut |_| log.reserved(),
            pump: None,
        };
        execute(&mut thread, &mut self.session, Request { id, args, first_key }, &mut out);
        self.scratch.garbage.clear();
        out
    }
}
