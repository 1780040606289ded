//! What a connection speaks; its listener says so.

/// A protocol of the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// Redis' protocol.
    #[default]
    Resp,
    /// Tarantool's protocol.
    Iproto,
    /// memcached's protocols.
    Memcached,
    /// HTTP, which becomes Redis' protocol before a connection sees it.
    Http,
}

impl Protocol {
    const COUNT: usize = 4;
}

/// What the connections of a listener speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListenerKind {
    pub(crate) protocol: Protocol,
    /// Inside TLS.
    pub(crate) tls: bool,
}

impl ListenerKind {
    /// All of them.
    pub(crate) const ALL: [ListenerKind; 2 * Protocol::COUNT] = [
        ListenerKind { protocol: Protocol::Resp, tls: false },
        ListenerKind { protocol: Protocol::Iproto, tls: false },
        ListenerKind { protocol: Protocol::Memcached, tls: false },
        ListenerKind { protocol: Protocol::Http, tls: false },
        ListenerKind { protocol: Protocol::Resp, tls: true },
        ListenerKind { protocol: Protocol::Iproto, tls: true },
        ListenerKind { protocol: Protocol::Memcached, tls: true },
        ListenerKind { protocol: Protocol::Http, tls: true },
    ];

    /// The index that its listeners have.
    pub(crate) const fn listener_index(self) -> usize {
        self.protocol as usize + if self.tls { Protocol::COUNT } else { 0 }
    }

    /// The kind of the listener with this index.
    pub(crate) fn of_listener(index: usize) -> ListenerKind {
        ListenerKind::ALL[index]
    }

    /// Its name in the banner.
    pub(crate) const fn name(self) -> &'static str {
        match (self.protocol, self.tls) {
            (Protocol::Resp, false) => "RESP",
            (Protocol::Iproto, false) => "IPROTO",
            (Protocol::Resp, true) => "RESP+TLS",
            (Protocol::Iproto, true) => "IPROTO+TLS",
            (Protocol::Memcached, false) => "memcached",
            (Protocol::Memcached, true) => "memcached+TLS",
            (Protocol::Http, false) => "HTTP",
            (Protocol::Http, true) => "HTTPS",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_knows_its_kind() {
        for kind in ListenerKind::ALL {
            assert_eq!(ListenerKind::of_listener(kind.listener_index()), kind);
        }
    }
}
