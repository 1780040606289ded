//! memcached's protocols: what they keep of a connection, and what watchers are told of it.

use ladon_kernel::client::clients::ClientInfo;
use ladon_kernel::client::item_watchers::Watched;
use ladon_kernel::node::Node;
use ladon_memcached::Session;
use ladon_record::Lsn;

/// A connection's part.
#[derive(Default)]
pub(crate) struct Memcached {
    pub(crate) session: Session,
    /// It ends because it was idle for too long.
    pub(crate) is_idle: bool,
    /// It was refused: nobody is told that it began.
    pub(crate) is_refused: bool,
}

impl Memcached {
    /// Tells those who watch connections of one that begins.
    pub(crate) fn begins(&self, node: &Node, info: &ClientInfo) {
        self.tell(node, info, "conn_new", "");
    }

    /// Tells them that it has ended, and why.
    pub(crate) fn has_ended(&self, node: &Node, info: &ClientInfo) {
        let reason = match self.is_idle {
            true => " reason=idle_timeout",
            false if self.session.is_broken() => " reason=error",
            false => " reason=normal",
        };
        self.tell(node, info, "conn_close", reason);
    }

    fn tell(&self, node: &Node, info: &ClientInfo, what: &str, reason: &str) {
        if self.is_refused || !node.item_watchers.any(Watched::CONNECTIONS) {
            return;
        }
        let (ip, port, transport) = match info.addr.rsplit_once(':') {
            Some((ip, port)) if !info.unix => (ip.trim_matches(['[', ']']), port, "tcp"),
            _ => ("unix", "0", "local"),
        };
        let fd = info.fd;
        let line =
            format!("type={what} rip={ip} rport={port} transport={transport}{reason} cfd={fd}");
        node.tell_watchers(Watched::CONNECTIONS, &line, Lsn::ZERO);
    }
}
