//! Which protocol a connection speaks; its listener says so.

/// A protocol of the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// Redis' protocol.
    #[default]
    Resp,
    /// Tarantool's protocol.
    Iproto,
}

impl Protocol {
    /// All of them.
    pub(crate) const ALL: [Protocol; 2] = [Protocol::Resp, Protocol::Iproto];

    /// The index that its listeners have.
    pub(crate) const fn listener_index(self) -> usize {
        self as usize
    }

    /// The protocol of the listener with this index.
    pub(crate) fn of_listener(index: usize) -> Protocol {
        Protocol::ALL[index]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_knows_its_protocol() {
        for protocol in Protocol::ALL {
            assert_eq!(Protocol::of_listener(protocol.listener_index()), protocol);
        }
    }
}
