//! Streams.

mod add;
mod claim;
mod delete;
mod group;
mod id;
mod info;
mod pending;
mod range;
mod read;
mod read_group;
mod reply;
mod streams_option;
mod trim;

use crate::kernel::error::{CommandError, shown_up_to};
use crate::kernel::spec::{Code, KeyPositions, Part};
use crate::shared::help::HELP;
use ladon_engine::types::stream::Stream;
use ladon_engine::{EventClass, Key, Tx};
use ladon_model::DbId;

pub(crate) const COMMANDS: &[Code] = &[
    Code::on_keys("xadd", add::xadd).at(Part::Whole),
    Code::on_keys("xlen", range::xlen).at(Part::Whole),
    Code::on_keys("xrange", range::xrange).at(Part::Whole),
    Code::on_keys("xrevrange", range::xrevrange).at(Part::Whole),
    Code::on_keys("xdel", delete::xdel).at(Part::Whole),
    Code::on_keys("xdelex", delete::xdelex).at(Part::Whole),
    Code::on_keys("xtrim", trim::xtrim).at(Part::Whole),
    Code::on_keys("xsetid", trim::xsetid),
    Code::on_keys("xread", read::xread)
        .with_keys(KeyPositions::Found(streams_option::keys_of_xread)),
    Code::on_keys("xreadgroup", read_group::xreadgroup)
        .with_keys(KeyPositions::Found(streams_option::keys_of_xreadgroup)),
    Code::container(
        "xgroup",
        &[
            Code::on_keys("create", group::create),
            Code::on_keys("setid", group::set_id),
            Code::on_keys("destroy", group::destroy),
            Code::on_keys("createconsumer", group::create_consumer),
            Code::on_keys("delconsumer", group::delete_consumer),
            HELP,
        ],
    ),
    Code::on_keys("xack", group::xack).at(Part::Whole),
    Code::on_keys("xackdel", delete::xackdel).at(Part::Whole),
    Code::on_keys("xpending", pending::xpending),
    Code::on_keys("xclaim", claim::xclaim),
    Code::on_keys("xautoclaim", claim::xautoclaim),
    Code::container(
        "xinfo",
        &[
            Code::on_keys("stream", info::stream),
            Code::on_keys("groups", info::groups),
            Code::on_keys("consumers", info::consumers),
            HELP,
        ],
    ),
];

/// An argument for an error message: as much of it as C's `printf` shows.
fn text(argument: &[u8]) -> String {
    shown_up_to(argument, usize::MAX)
}

/// The group does not exist, nor perhaps the key.
fn no_key_or_group(key: &[u8], group: &[u8]) -> CommandError {
    let (key, group) = (text(key), text(group));
    let text = format!("NOGROUP No such key '{key}' or consumer group '{group}'");
    CommandError::Other(text.into())
}

/// The group does not exist, but the key does.
fn no_group(key: &[u8], group: &[u8]) -> CommandError {
    let (key, group) = (text(key), text(group));
    let text = format!("NOGROUP No such consumer group '{group}' for key name '{key}'");
    CommandError::Other(text.into())
}

/// Whether a group has no such consumer yet, so that reading or claiming creates it.
fn is_new_consumer(stream: &Stream, group: &[u8], consumer: &[u8]) -> bool {
    stream.group(group).is_some_and(|group| group.consumer(consumer).is_none())
}

/// A consumer was created.
fn notify_consumer(tx: &mut Tx<'_>, db: DbId, key: Key<'_>) {
    tx.notify(EventClass::STREAM, "xgroup-createconsumer", db, key);
}
