//! Failed logins over other protocols than Redis' in the server's log: from where, and not too often.

use ladon_platform::{Seldom, seldom};
use std::time::Duration;

/// Says that a client has given a wrong name or password, which are not shown.
#[cold]
pub fn tell(addr: &str, id: u64, now_ms: u64) {
    /// Somebody who guesses passwords must not fill the disk.
    static SELDOM: Seldom = Seldom::new(10, Duration::from_secs(10));
    if let Some(left_out) = SELDOM.may_say(now_ms) {
        let left_out = seldom::left_out(left_out);
        tracing::warn!("a login failed: client id={id} addr={addr}{left_out}");
    }
}
