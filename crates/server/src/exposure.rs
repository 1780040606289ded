//! Says aloud at the start who can reach a server that asks for no password.

use crate::listening::Listening;
use crate::protocol::{ListenerKind, Protocol};
use ladon_kernel::shared::Shared;
use std::net::SocketAddr;

/// Warns if other machines can connect and no password is set: either they are refused, which
/// somebody will wonder about, or they may do everything.
pub(crate) fn warn_of(node: &Shared, listening: &Listening) {
    if !node.accounts.users().default_user().needs_no_password() {
        return;
    }
    let kinds = ListenerKind::ALL.into_iter().filter(|kind| kind.protocol != Protocol::Iproto);
    let addresses: Vec<String> = kinds.flat_map(|kind| listening.addresses(kind)).collect();
    let open: Vec<&str> =
        addresses.iter().map(String::as_str).filter(|it| is_open_to_others(it)).collect();
    if let Some(text) = warning(&open.join(", "), node.settings.protected_mode()) {
        tracing::warn!("{text}");
    }
}

/// A unix socket's path is no address, and is on this machine.
fn is_open_to_others(address: &str) -> bool {
    let address = address.parse::<SocketAddr>();
    address.is_ok_and(|address| !address.ip().to_canonical().is_loopback())
}

fn warning(open: &str, is_protected: bool) -> Option<String> {
    match (open, is_protected) {
        ("", _) => None,
        (open, true) => Some(format!(
            "listening on {open} without a password: protected mode refuses clients of other \
             machines; set requirepass to let them in"
        )),
        (open, false) => Some(format!(
            "listening on {open} without a password, and protected-mode is no: whoever reaches it \
             may read and change everything; set requirepass"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_others_can_reach_is_worth_a_warning() {
        for (address, open) in [
            ("127.0.0.1:6379", false),
            ("[::1]:6379", false),
            ("[::ffff:127.0.0.1]:6379", false),
            ("/run/ladon.sock", false),
            ("0.0.0.0:6379", true),
            ("[::]:6379", true),
            ("192.0.2.1:6379", true),
        ] {
            assert_eq!(is_open_to_others(address), open, "{address}");
        }
        assert_eq!(warning("", false), None);
        assert!(warning("0.0.0.0:1", true).is_some_and(|text| text.contains("refuses clients")));
        assert!(warning("0.0.0.0:1", false).is_some_and(|text| text.contains("everything")));
    }
}
