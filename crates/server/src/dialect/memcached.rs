//! memcached's protocols: what they keep of a connection.

use ladon_memcached::Session;

/// A connection's part.
#[derive(Default)]
pub(crate) struct Memcached {
    pub(crate) session: Session,
}
