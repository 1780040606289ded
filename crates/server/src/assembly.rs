//! Puts a node together over recovered data, in one place for the server, the simulator and whoever
//! embeds Ladon.

use crate::checkpointer::Checkpointer;
use crate::durability::{LogDurability, sync_every};
use crate::recovery::Recovered;
use crate::shutdown::StopSignal;
use ladon_kernel::dataset::Dataset;
use ladon_kernel::message::ThreadHandle;
use ladon_kernel::node::Node;
use ladon_kernel::shared::{Shared, SharedParts};
use ladon_platform::Clock;
use ladon_settings::Settings;
use std::sync::Arc;

/// What a node consists of, besides its data and its log.
pub struct Assembly {
    /// The settings.
    pub settings: Arc<Settings>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// One handle for each IO thread.
    pub threads: Vec<ThreadHandle>,
    /// Tells this run from others.
    pub run_id: String,
    /// The name of what moves its bytes.
    pub io_backend: String,
}

impl Assembly {
    /// What the node's connections share. It may be changed before anything else sees it.
    pub fn shared(self) -> Shared {
        let Assembly { settings, clock, threads, run_id, io_backend } = self;
        let table = ladon_commands::families::table();
        let parts = SharedParts { settings, clock, threads, run_id, io_backend, table };
        Shared::new(parts)
    }
}

/// The node over this data, without threads of its own.
pub fn node_over(shared: Shared, data: Dataset) -> Node {
    Node::new(shared, data, ladon_commands::families::table())
}

/// Recovered data as a node takes it, and what makes its checkpoints. `keys` is the number of keys
/// that recovery found, and `stop` stops the node.
pub fn dataset(
    shared: &Shared,
    recovered: &Recovered,
    keys: u64,
    stop: Arc<StopSignal>,
) -> (Dataset, Arc<Checkpointer>) {
    let Recovered { keyspace, log, report, .. } = recovered;
    log.set_sync_every(sync_every(shared.settings.gate()));
    let stats = Arc::clone(&shared.stats);
    let checkpointer = Arc::new(Checkpointer::new(
        Arc::clone(keyspace),
        Arc::clone(log),
        Arc::clone(&shared.settings),
        Arc::clone(&shared.clock),
        Box::new(move || stats.iter().map(|stats| stats.dirty.get()).sum()),
    ));
    let durability = Arc::new(LogDurability {
        log: Arc::clone(log),
        checkpointer: Arc::clone(&checkpointer),
        stop,
        recovered_keys: keys,
        recovery_time: report.duration,
    });
    let (keyspace, log) = (Arc::clone(keyspace), Arc::clone(log));
    (Dataset { keyspace, log, durability, loading: None }, checkpointer)
}
