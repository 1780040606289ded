//! Signals: SIGTERM and SIGINT stop the server cleanly, a second one at once. The same one again
//! within a second counts as one: a process group and its supervisor may both send it. SIGHUP stops
//! nothing: files that may change are read again. Every Rust program ignores SIGPIPE.

use crate::systemd;
use ladon_server::{Reload, StopSignal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// Added to the signal's number in the exit code, as shells do.
const SIGNAL_EXIT: i32 = 128;

/// The same signal again within this time is no second one.
const ONE_WITHIN: Duration = Duration::from_secs(1);

/// What a signal that stops the server asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Stop,
    /// The same as before, sent twice.
    Nothing,
    StopAtOnce,
}

/// The signal that the server stops for, and when it came.
#[derive(Default)]
struct First(Option<(i32, Instant)>);

impl First {
    /// `is_stopping`: somebody else may have asked for it.
    fn asked(&mut self, signal: i32, now: Instant, is_stopping: bool) -> Asked {
        match self.0 {
            Some((first, at)) if first == signal && now.duration_since(at) < ONE_WITHIN => {
                Asked::Nothing
            }
            None if !is_stopping => {
                self.0 = Some((signal, now));
                Asked::Stop
            }
            _ => Asked::StopAtOnce,
        }
    }
}

/// Watches for signals for the rest of the process' life. `ask` is called for the first one that is to
/// stop the server.
pub fn watch(
    stop: Arc<StopSignal>,
    reload: Arc<Reload>,
    ask: impl Fn(&Arc<StopSignal>) + Send + 'static,
) -> io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
    // Files may lie on a disk that does not answer; the server stops all the same. One more request
    // may wait, which is as good as many.
    let (ask_again, asked) = mpsc::sync_channel::<()>(1);
    thread::Builder::new().name("ladon-reload".into()).spawn(move || {
        for () in asked {
            systemd::reload(|| {
                let _ = reload.request();
            });
        }
    })?;
    thread::Builder::new().name("ladon-signals".into()).spawn(move || {
        let mut first = First::default();
        for signal in signals.forever() {
            if signal == SIGHUP {
                tracing::info!("SIGHUP: reading files again; SIGTERM stops the server");
                let _ = ask_again.try_send(());
                continue;
            }
            let name = if signal == SIGTERM { "SIGTERM" } else { "SIGINT" };
            match first.asked(signal, Instant::now(), stop.is_requested()) {
                Asked::Stop => {
                    tracing::info!("{name}: stopping; a signal after a second stops at once");
                    ask(&stop);
                }
                Asked::Nothing => tracing::info!("{name} once more within a second: ignored"),
                Asked::StopAtOnce => {
                    tracing::warn!("a second signal: stopping at once; the next start recovers");
                    signal_hook::low_level::exit(SIGNAL_EXIT + signal);
                }
            }
        }
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_signal_within_a_second_is_one() {
        let begin = Instant::now();
        let mut first = First::default();
        let mut check = |signal, after_ms, expected| {
            let now = begin + Duration::from_millis(after_ms);
            assert_eq!(first.asked(signal, now, after_ms > 0), expected, "{signal} {after_ms}");
        };
        check(SIGTERM, 0, Asked::Stop);
        check(SIGTERM, 1, Asked::Nothing);
        check(SIGTERM, 999, Asked::Nothing);
        check(SIGINT, 10, Asked::StopAtOnce);
        check(SIGTERM, 1_000, Asked::StopAtOnce);
        // The server already stops for a client's SHUTDOWN.
        assert_eq!(First::default().asked(SIGTERM, begin, true), Asked::StopAtOnce);
    }
}
