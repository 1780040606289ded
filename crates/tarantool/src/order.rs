//! Which requests of a connection wait for which earlier ones of it that are not done yet.
//!
//! In a stream, requests run in their order. Outside of streams, Tarantool promises none. Here a
//! request on data does not overtake one that waits to write or to define, so that it finds what was
//! written; and definitions do not overtake each other. A definition that is being prepared is
//! overtaken by requests on data, as in Tarantool, but a truncation is not: it would take what was
//! written after it.

use crate::batch::Batch;
use crate::call::Target;
use crate::packet::{Decoded, Packet};
use ladon_engine::Catalog;
use ladon_iproto::request::{Call, Execute, Request, SpaceRef, Statement};
use ladon_kernel::node::Node;
use ladon_system_spaces as system;

/// What has to be known of two requests to say whether one waits for the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    stream: u64,
    does: Does,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    /// Nothing with data.
    Nothing,
    Reads,
    Writes,
    Defines,
    /// A definition that changes tuples.
    Truncates,
    /// Later requests are another user's; or nothing follows.
    Divides,
}

impl Order {
    /// Of a request that does nothing with data.
    pub fn of_stream(stream: u64) -> Order {
        Order { stream, does: Does::Nothing }
    }

    /// Whether a later request waits until this one is done. `is_prepared`: it is a definition that
    /// takes long, and has begun.
    pub fn holds(self, later: Order, is_prepared: bool) -> bool {
        use Does::{Defines, Divides, Reads, Truncates, Writes};
        if later.does == Divides || self.stream != 0 && self.stream == later.stream {
            return true;
        }
        match (self.does, later.does) {
            (Defines | Truncates, Defines | Truncates) => true,
            (Reads, Reads) => false,
            (Defines, _) if is_prepared => false,
            (Reads | Writes | Defines | Truncates, Reads | Writes | Defines | Truncates) => {
                self.stream == 0 && later.stream == 0
            }
            _ => false,
        }
    }

    /// Whether all earlier ones have to be done first.
    pub fn divides(self) -> bool {
        self.does == Does::Divides
    }

    /// The stream of the request; 0 for none.
    pub fn stream(self) -> u64 {
        self.stream
    }

    /// A packet's order among those of its connection; with its length in front.
    #[cold]
    #[inline(never)]
    pub fn of(packet: &[u8], node: &Node, batch: &mut Batch) -> Order {
        match &Packet::decode(packet).0 {
            Decoded::Request(header, Ok(request)) => {
                let catalog = batch.catalog(&node.keyspace.spaces);
                Order { stream: header.stream_id, does: does(catalog, request) }
            }
            Decoded::Request(header, Err(_)) => Order::of_stream(header.stream_id),
            Decoded::BadHeader(_) => Order::of_stream(0),
            Decoded::EndOfStream(_) => Order { stream: 0, does: Does::Divides },
        }
    }
}

fn does(catalog: &Catalog, request: &Request<'_>) -> Does {
    let space = match request {
        Request::Auth(_) => return Does::Divides,
        Request::Select(_) => return Does::Reads,
        Request::Insert(put) | Request::Replace(put) => put.space,
        Request::Update(update) => update.space,
        Request::Delete(delete) => delete.space,
        Request::Upsert(upsert) => upsert.space,
        Request::Call(call) | Request::Call16(call) => return does_call(catalog, call),
        Request::Execute(execute) => return does_execute(execute),
        _ => return Does::Nothing,
    };
    writes(match space {
        SpaceRef::Id(id) => Some(id),
        SpaceRef::Name(name) => std::str::from_utf8(name).ok().and_then(|it| catalog.named(it)),
    })
}

/// What a statement does, by its first word; one that was prepared may write.
fn does_execute(execute: &Execute<'_>) -> Does {
    let Statement::Text(text) = execute.statement else { return Does::Writes };
    let text = text.trim_ascii_start();
    let begins = |words: &[&str]| {
        words.iter().any(|word| {
            text.get(..word.len()).is_some_and(|it| it.eq_ignore_ascii_case(word.as_bytes()))
        })
    };
    match () {
        () if begins(&["SELECT", "VALUES", "PRAGMA", "EXPLAIN"]) => Does::Reads,
        () if begins(&["CREATE", "DROP", "ALTER"]) => Does::Defines,
        () if begins(&["TRUNCATE"]) => Does::Truncates,
        () => Does::Writes,
    }
}

fn does_call(catalog: &Catalog, call: &Call<'_>) -> Does {
    let target = std::str::from_utf8(call.name).ok().and_then(Target::parse);
    match target {
        // What is in the server itself, or an error.
        None => Does::Nothing,
        Some(target) if target.method.is_read() => Does::Reads,
        Some(target) => writes(catalog.named(target.space)),
    }
}

fn writes(space: Option<u32>) -> Does {
    match space {
        Some(system::TRUNCATE) => Does::Truncates,
        Some(id) if ladon_engine::is_defined_with(id) => Does::Defines,
        _ => Does::Writes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Does::{Defines, Divides, Nothing, Reads, Truncates, Writes};

    const ALL: [Does; 6] = [Nothing, Reads, Writes, Defines, Truncates, Divides];

    fn holds((stream, does): (u64, Does), later: (u64, Does), is_prepared: bool) -> bool {
        Order { stream, does }.holds(Order { stream: later.0, does: later.1 }, is_prepared)
    }

    #[test]
    fn a_stream_is_in_order_whatever_its_requests_do() {
        for earlier in ALL {
            for later in ALL {
                assert!(holds((7, earlier), (7, later), true), "{earlier:?}, {later:?}");
            }
            assert!(holds((7, earlier), (0, Divides), true));
            assert!(holds((0, earlier), (0, Divides), true));
        }
        assert!(!holds((7, Writes), (8, Writes), false) && !holds((7, Writes), (0, Writes), false));
    }

    #[test]
    fn outside_of_streams_data_and_definitions_keep_some_order() {
        for later in [Nothing, Reads, Writes, Defines, Truncates] {
            let defines = matches!(later, Defines | Truncates);
            for (earlier, is_prepared, is_held) in [
                (Nothing, false, false),
                (Reads, false, !matches!(later, Nothing | Reads)),
                (Writes, false, later != Nothing),
                (Truncates, false, later != Nothing),
                (Truncates, true, later != Nothing),
                (Defines, false, later != Nothing),
                (Defines, true, defines),
            ] {
                let found = holds((0, earlier), (0, later), is_prepared);
                assert_eq!(found, is_held, "{earlier:?}, {later:?}, {is_prepared}");
            }
            assert_eq!(holds((7, Defines), (8, later), false), defines, "{later:?}");
        }
    }
}
