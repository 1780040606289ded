//! What `/healthz` and `/readyz` say.

use crate::heartbeat::Heartbeat;
use ladon_kernel::node::Node;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A state in a few words; `ok` makes the status 200, otherwise it is 503.
pub(crate) struct Said {
    pub(crate) ok: bool,
    pub(crate) text: String,
}

impl Said {
    fn ok(text: &str) -> Said {
        Said { ok: true, text: text.to_owned() }
    }

    fn not(text: String) -> Said {
        Said { ok: false, text }
    }
}

/// The node as the probes see it.
pub(crate) struct Health {
    node: Mutex<Arc<Node>>,
    heartbeat: Heartbeat,
    is_stopping: AtomicBool,
}

impl Health {
    pub(crate) fn new(node: Arc<Node>) -> Health {
        let heartbeat = Heartbeat::new(Arc::clone(node.shared()));
        Health { node: Mutex::new(node), heartbeat, is_stopping: AtomicBool::new(false) }
    }

    /// The node with the data that it had when it was last exchanged.
    pub(crate) fn node(&self) -> Arc<Node> {
        Arc::clone(&self.node.lock())
    }

    pub(crate) fn exchange(&self, node: Arc<Node>) {
        *self.node.lock() = node;
    }

    pub(crate) fn stops(&self) {
        self.is_stopping.store(true, Relaxed);
    }

    /// Looks at the IO threads, so that the next probe knows how long they have been still.
    pub(crate) fn look(&self) {
        let _ = self.heartbeat.stuck();
    }

    /// Whether the process works: an orchestrator restarts one that does not.
    pub(crate) fn alive(&self) -> Said {
        match self.heartbeat.stuck() {
            None => Said::ok("alive"),
            Some((thread, still)) => Said::not(format!(
                "IO thread {thread} has not finished a turn for {} seconds",
                still.as_secs()
            )),
        }
    }

    /// Whether clients get what they ask for: all data is there, and writes are accepted.
    pub(crate) fn ready(&self) -> Said {
        let node = self.node();
        if self.is_stopping.load(Relaxed) {
            return Said::not("stopping".to_owned());
        }
        if let Some(loading) = &node.loading {
            let (done, total) = loading.bytes();
            let percent = 100.0 * done as f64 / total.max(1) as f64;
            return Said::not(format!("loading {done} of {total} bytes ({percent:.1} %)"));
        }
        if let Some(why) = node.durability.failure() {
            return Said::not(format!("the log takes no writes: {why}"));
        }
        Said::ok("ready")
    }
}
