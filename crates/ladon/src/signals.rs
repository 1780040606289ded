//! Signals: SIGTERM and SIGINT stop the server cleanly, a second one at once. SIGHUP (the terminal
//! is gone) stops nothing. Every Rust program ignores SIGPIPE.

use ladon_kernel::node::Shutdown;
use ladon_server::StopSignal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io;
use std::sync::Arc;
use std::thread;

/// Added to the signal's number in the exit code, as shells do.
const SIGNAL_EXIT: i32 = 128;

/// Watches for signals for the rest of the process' life.
pub fn watch(stop: Arc<StopSignal>) -> io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
    thread::Builder::new().name("ladon-signals".into()).spawn(move || {
        for signal in signals.forever() {
            if signal == SIGHUP {
                tracing::info!("SIGHUP: ignored; SIGTERM stops the server");
                continue;
            }
            if stop.is_requested() {
                tracing::warn!("a second signal: stopping at once; the next start recovers");
                signal_hook::low_level::exit(SIGNAL_EXIT + signal);
            }
            let name = if signal == SIGTERM { "SIGTERM" } else { "SIGINT" };
            tracing::info!("{name}: stopping; a second signal stops at once");
            stop.request(Shutdown::default());
        }
    })?;
    Ok(())
}
