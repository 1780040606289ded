//! What a request means to the oracle: what the reference says, and what only the simulator knows.

pub(crate) use ladon_testkit::reference::{Call, Datum, State};

use ladon_resp::client::Value;
use ladon_testkit::reference;

/// Does what the call does to the data and returns its reply.
pub(crate) fn apply(state: &mut State, call: &Call) -> Value {
    match call[0].as_slice() {
        // See `Operation::wrong_wait`.
        b"WAITAOF" => crate::waits::waited(),
        b"WAIT" => Value::Integer(0),
        // No command of a client: see `Operation::eviction`.
        b"EVICT" => Value::Integer(i64::from(state.remove(&call[1]).is_some())),
        _ => reference::apply(state, call),
    }
}
