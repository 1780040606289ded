//! The meaning of requests to the oracle: the reference's replies, and the simulator's own.

pub(crate) use ladon_testkit::reference::stream::{Group, Sent, Stream};
pub(crate) use ladon_testkit::reference::{Call, Datum};

use crate::functions::{self, Libraries};
use crate::history::shortened;
use crate::{scripts, streams};
use ladon_resp::client::Value;
use ladon_testkit::reference;

/// All data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) keys: reference::State,
    pub(crate) libraries: Libraries,
}

impl State {
    pub(crate) fn new() -> State {
        State::default()
    }
}

/// The data as somebody who looks for a bug wants to see it: a key a line.
pub(crate) fn readable(state: &State) -> String {
    let line = |(key, datum): (&Vec<u8>, &Datum)| {
        let value = match datum {
            Datum::Text(bytes) => shortened(bytes),
            Datum::List(list) => list.iter().map(|it| shortened(it) + " ").collect(),
            Datum::Stream(Stream { last, entries, groups, sent }) => {
                let words = |words: &Vec<Vec<u8>>| shortened(&words.concat());
                let entries: Vec<_> = entries.iter().map(|(id, it)| (id, words(it))).collect();
                let group = |(name, it): (&Vec<u8>, &Group)| {
                    let pending = it.pending.iter().map(|(id, it)| (*id, shortened(it)));
                    (shortened(name), it.last, pending.collect::<Vec<_>>())
                };
                let groups: Vec<_> = groups.iter().map(group).collect();
                format!("{last:?}: {entries:?} {groups:?} {}", remembered(sent))
            }
            other => shortened(format!("{other:?}").as_bytes()),
        };
        format!("\n  {}: {value}", key.escape_ascii())
    };
    let library = |(name, code): (&Vec<u8>, &Vec<u8>)| {
        format!("\n  {}: {}", name.escape_ascii(), shortened(code))
    };
    let libraries = state.libraries.iter().map(library);
    state.keys.iter().map(line).chain(libraries).collect()
}

fn remembered(sent: &Sent) -> String {
    let mut producers = String::new();
    for (name, sent) in &sent.producers {
        let each = sent.iter().map(|(id, entry)| format!(" {}={entry:?}", id.escape_ascii()));
        producers += &format!("{}:{} ", name.escape_ascii(), each.collect::<String>());
    }
    format!("{producers}{} added, {} not", sent.added, sent.duplicates)
}

/// Applies the call to the data and returns its reply.
pub(crate) fn apply(state: &mut State, call: &Call) -> Value {
    match call[0].as_slice() {
        // See `Operation::wrong_wait`.
        b"WAITAOF" => crate::waits::waited(),
        // How many get it is not modelled: see `subscriber.rs` for who has to.
        b"PUBLISH" => crate::subscriber::published(),
        b"WAIT" => Value::Integer(0),
        b"EVAL" | b"EVALSHA" => scripts::run(state, call),
        b"SCRIPT" => scripts::remember(call),
        // Not a command of a client: see `Operation::eviction`.
        b"EVICT" => Value::Integer(i64::from(state.keys.remove(&call[1]).is_some())),
        b"XREADGROUP" => streams::in_order(call, reference::apply(&mut state.keys, call)),
        b"FUNCTION" => functions::manage(&mut state.libraries, call),
        b"FCALL" | b"FCALL_RO" => functions::run(state, call),
        _ => reference::apply(&mut state.keys, call),
    }
}
