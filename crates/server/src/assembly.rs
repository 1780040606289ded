//! Puts a node together over recovered data, in one place for the server, the simulator and whoever
//! embeds Ladon.

use crate::checkpointer::Checkpointer;
use crate::durability::{LogDurability, sync_every};
use crate::recovery::Recovered;
use crate::shutdown::StopSignal;
use ladon_kernel::message::ThreadHandle;
use ladon_kernel::node::{Node, NodeParts};
use ladon_platform::Clock;
use ladon_settings::Settings;
use std::sync::{Arc, OnceLock, Weak};

/// What a node consists of, besides its data and its log.
pub struct Assembly {
    /// The settings.
    pub settings: Arc<Settings>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// One handle for each IO thread.
    pub threads: Vec<ThreadHandle>,
    /// Stops the node.
    pub stop: Arc<StopSignal>,
    /// Tells this run from others.
    pub run_id: String,
    /// The name of what moves its bytes.
    pub io_backend: String,
    /// Number of keys that recovery found.
    pub recovered_keys: u64,
}

/// A node without threads of its own.
pub struct Assembled {
    /// The node.
    pub node: Arc<Node>,
    /// Makes its checkpoints.
    pub checkpointer: Arc<Checkpointer>,
}

impl Assembly {
    /// The node over this data. `prepare` may change it before anything else sees it.
    ///
    /// # Errors
    /// Those of `prepare`.
    pub fn over<E>(
        self,
        recovered: &Recovered,
        prepare: impl FnOnce(&mut Node) -> Result<(), E>,
    ) -> Result<Assembled, E> {
        let Assembly { settings, clock, threads, stop, run_id, io_backend, recovered_keys } = self;
        let Recovered { keyspace, log, report } = recovered;
        log.set_sync_every(sync_every(settings.gate()));
        // The node holds the checkpointer, so the checkpointer must not hold the node.
        let node_cell: Arc<OnceLock<Weak<Node>>> = Arc::default();
        let checkpointer = Arc::new(Checkpointer::new(
            Arc::clone(keyspace),
            Arc::clone(log),
            Arc::clone(&settings),
            Arc::clone(&clock),
            Box::new({
                let node = Arc::clone(&node_cell);
                move || {
                    let node = node.get().and_then(Weak::upgrade);
                    node.map_or(0, |node| node.stats.iter().map(|s| s.dirty.get()).sum())
                }
            }),
        ));
        let durability = Arc::new(LogDurability {
            log: Arc::clone(log),
            checkpointer: Arc::clone(&checkpointer),
            stop,
            recovered_keys,
            recovery_time: report.duration,
        });
        let mut node = Node::new(NodeParts {
            keyspace: Arc::clone(keyspace),
            settings,
            clock,
            durability,
            threads,
            run_id,
            io_backend,
            table: ladon_commands::families::table(),
        });
        prepare(&mut node)?;
        let node = Arc::new(node);
        let _ = node_cell.set(Arc::downgrade(&node));
        Ok(Assembled { node, checkpointer })
    }
}
