//! Messages to systemd (or whoever sets `NOTIFY_SOCKET`): ready, stopping, alive.
//!
//! systemd restarts a service whose `WATCHDOG=1` stays away for `WatchdogSec`. It is sent while the
//! IO threads turn, so that a stuck server is noticed, not only a dead one.

use ladon_kernel::node::Node;
use ladon_server::{Heartbeat, Lifecycle};
use sd_notify::NotifyState;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

/// The supervisor, if there is one.
pub struct Systemd;

impl Lifecycle for Systemd {
    fn ready(&self, node: &Arc<Node>) {
        say(&[NotifyState::Ready, NotifyState::Status("serving clients")]);
        IS_READY.store(true, Relaxed);
        let Some(within) = sd_notify::watchdog_enabled() else { return };
        let heartbeat = Heartbeat::new(Arc::clone(node.shared()));
        let watch = move || keep_alive(&heartbeat, within);
        let named = thread::Builder::new().name("ladon-watchdog".into());
        if let Err(error) = named.spawn(watch) {
            tracing::error!("cannot start the watchdog's thread: {error}; systemd will restart us");
        }
    }

    fn stopping(&self) {
        let say = || say(&[NotifyState::Stopping, NotifyState::Status("stopping")]);
        // A supervisor that has stopped reading must not keep the server from its end. Without a
        // thread to say it, systemd notices the end itself.
        let _ = thread::Builder::new().name("ladon-stopping".into()).spawn(say);
    }
}

/// It was told so. While the data loads, the end of a reload must not say it.
static IS_READY: AtomicBool = AtomicBool::new(false);

/// Says that files are read again, and afterwards that they were: `systemctl reload` waits for it.
/// May wait for a supervisor that does not read.
pub fn reload(read: impl FnOnce()) {
    let is_ready = IS_READY.load(Relaxed);
    if is_ready && let Ok(now) = NotifyState::monotonic_usec_now() {
        say(&[NotifyState::Reloading, now, NotifyState::Status("reading files again")]);
    }
    read();
    if is_ready {
        say(&[NotifyState::Ready, NotifyState::Status("serving clients")]);
    }
}

fn keep_alive(heartbeat: &Heartbeat, within: Duration) {
    loop {
        match heartbeat.stuck() {
            None => say(&[NotifyState::Watchdog]),
            Some((thread, still)) => tracing::error!(
                "IO thread {thread} has not finished a turn for {} s: no sign of life to systemd",
                still.as_secs()
            ),
        }
        // systemd recommends half of the time.
        thread::sleep(within / 2);
    }
}

fn say(states: &[NotifyState<'_>]) {
    // Nobody listens, or nobody any more: then it does not matter.
    let _ = sd_notify::notify(states);
}
