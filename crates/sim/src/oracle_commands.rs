//! The meaning of requests to the oracle: the reference's replies, and the simulator's own.

pub(crate) use ladon_testkit::reference::stream::{Group, Stream};
pub(crate) use ladon_testkit::reference::{Call, Datum, State};

use crate::{scripts, streams};
use ladon_resp::client::Value;
use ladon_testkit::reference;

/// Applies the call to the data and returns its reply.
pub(crate) fn apply(state: &mut State, call: &Call) -> Value {
    match call[0].as_slice() {
        // See `Operation::wrong_wait`.
        b"WAITAOF" => crate::waits::waited(),
        // How many get it is not modelled: see `listener.rs` for who has to.
        b"PUBLISH" => crate::listener::published(),
        b"WAIT" => Value::Integer(0),
        b"EVAL" | b"EVALSHA" => scripts::run(state, call),
        b"SCRIPT" => scripts::remember(call),
        // Not a command of a client: see `Operation::eviction`.
        b"EVICT" => Value::Integer(i64::from(state.remove(&call[1]).is_some())),
        b"XREADGROUP" => streams::in_order(call, reference::apply(state, call)),
        _ => reference::apply(state, call),
    }
}
