//! A panic ends the process at once.
//!
//! A panicking thread may hold locks over data that it has changed but not logged. Unwinding would
//! release the locks, other threads would read and log what was never committed, and the server
//! would then mark its log as cleanly closed. Release builds abort because of their profile (`panic
//! = "abort"`); this hook makes every build abort, and says what to do next.

use std::panic::{PanicHookInfo, set_hook, take_hook};
use std::process::abort;

/// Aborts on every later panic, of whichever thread, after the usual message.
pub fn abort_from_now_on() {
    let print = take_hook();
    set_hook(Box::new(move |panic: &PanicHookInfo<'_>| {
        print(panic);
        let way_out = "ladon: an internal error, printed above: the server stops at once, so that \
                       nobody sees or logs what was not committed. Start it again: it recovers \
                       from its log as after a crash. Please report the error";
        eprintln!("{way_out}");
        // Last, because it may be what failed.
        tracing::error!("{panic}: the server stops at once; start it again, and report this");
        abort();
    }));
}
