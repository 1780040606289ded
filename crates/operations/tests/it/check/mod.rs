//! Any bytes as what a client of the port sends; shared with the fuzz target `http_requests`.

use hyper_util::rt::TokioIo;
use ladon_engine::{Keyspace, KeyspaceOptions};
use ladon_identity::User;
use ladon_kernel::command::table::CommandTable;
use ladon_kernel::dataset::Dataset;
use ladon_kernel::durability::{Backups, CheckpointError, Durability, PersistenceStatus, Shutdown};
use ladon_kernel::message::ThreadHandle;
use ladon_kernel::node::Node;
use ladon_kernel::shared::{Shared, SharedParts};
use ladon_log::Log;
use ladon_operations::{Door, Peer, Responder, State, Texts, serve_stream};
use ladon_platform::SystemClock;
use ladon_record::{Gate, Lsn};
use ladon_settings::Settings;
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, OnceLock};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

/// A log that has nothing to do.
struct NoLog;

impl Durability for NoLog {
    fn reserved(&self) -> Lsn {
        Lsn::ZERO
    }

    fn written(&self) -> Lsn {
        Lsn::ZERO
    }

    fn durable(&self) -> Lsn {
        Lsn::ZERO
    }

    fn want_durable(&self, _: Lsn) {}

    fn accepts_writes(&self) -> bool {
        true
    }

    fn failure(&self) -> Option<String> {
        None
    }

    fn status(&self) -> PersistenceStatus {
        PersistenceStatus::default()
    }

    fn start_checkpoint(&self) -> Result<(), CheckpointError> {
        Err(CheckpointError::Busy)
    }

    fn checkpoint(&self) -> Result<(), CheckpointError> {
        Err(CheckpointError::Busy)
    }

    fn backups(&self) -> Option<Arc<dyn Backups>> {
        None
    }

    fn gate_changed(&self, _: Gate) {}

    fn request_shutdown(&self, _: Shutdown) {}
}

/// There is no server behind the port.
struct NoDoor;

impl Door for NoDoor {
    fn open(&self, _: &Peer, _: Option<Arc<User>>) -> io::Result<UnixStream> {
        Err(io::Error::other("there is no server"))
    }
}

/// What answers, over a node without data, IO threads or commands.
fn responder() -> &'static Responder {
    static TABLE: OnceLock<CommandTable> = OnceLock::new();
    static RESPONDER: OnceLock<Responder> = OnceLock::new();
    RESPONDER.get_or_init(|| {
        let clock = Arc::new(SystemClock);
        let table = TABLE.get_or_init(|| CommandTable::of(&[]));
        let options = KeyspaceOptions { hash_seed: 7, databases: 1 };
        let data = Dataset {
            keyspace: Arc::new(Keyspace::new(options)),
            log: Log::nowhere(clock.clone()),
            durability: Arc::new(NoLog),
            loading: None,
        };
        let parts = SharedParts {
            settings: Arc::new(Settings::new()),
            clock,
            threads: vec![ThreadHandle::new(|| {})],
            run_id: "0".repeat(40),
            io_backend: "none".to_owned(),
            table,
        };
        let state = State::new(Arc::new(Node::new(Shared::new(parts), data, table)));
        let texts = Texts::start(state.clone()).expect("a thread");
        Responder::new(state, texts, Arc::new(NoDoor))
    })
}

/// All that the port answers to these bytes, after which the client sends no more.
pub fn answer(bytes: &[u8]) -> Vec<u8> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let (mut client, server) = duplex(bytes.len().max(1));
        client.write_all(bytes).await.expect("there is room for all");
        client.shutdown().await.expect("it takes an end");
        let served = serve_stream(TokioIo::new(server), responder(), &Peer::Unix);
        let mut answer = Vec::new();
        let (_, read) = tokio::join!(served, client.read_to_end(&mut answer));
        read.expect("it can be read");
        answer
    })
}

/// Panics if the port answers with anything but one response of HTTP, or nothing.
pub fn check(bytes: &[u8]) {
    let answer = answer(bytes);
    if answer.is_empty() {
        return;
    }
    let status = answer.get(..13).and_then(|head| std::str::from_utf8(head).ok());
    let is_known = |status: &str| {
        [
            "200", "304", "308", "400", "401", "403", "404", "405", "406", "413", "414", "415",
            "429", "431", "503", "505",
        ]
        .contains(&status)
    };
    let head = status.and_then(|head| head.strip_prefix("HTTP/1."));
    let code = head.and_then(|head| head.get(2..5));
    assert!(code.is_some_and(is_known), "{}", String::from_utf8_lossy(&answer));
}
