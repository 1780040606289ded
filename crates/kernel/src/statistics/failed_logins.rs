//! Failed logins in the server's log: from where, and not too often.

use ladon_platform::{Seldom, seldom};
use std::time::Duration;

/// Says that a client has given a wrong name or password. The name is shown where it is known to be
/// one; it may be long, or no text.
#[cold]
pub fn tell(user: Option<&[u8]>, addr: &str, id: u64, now_ms: u64) {
    /// Somebody who guesses passwords must not fill the disk.
    static SELDOM: Seldom = Seldom::new(10, Duration::from_secs(10));
    if let Some(left_out) = SELDOM.may_say(now_ms) {
        let left_out = seldom::left_out(left_out);
        let user = user.map_or(String::new(), |user| {
            let shown = String::from_utf8_lossy(&user[..user.len().min(128)]);
            format!("user '{}', ", shown.escape_debug())
        });
        tracing::warn!("a login failed: {user}client id={id} addr={addr}{left_out}");
    }
}
