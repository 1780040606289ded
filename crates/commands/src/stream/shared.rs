//! What several commands on consumer groups need: their errors, and new consumers.

use ladon_engine::types::stream::Stream;
use ladon_engine::{EventClass, Key, Tx};
use ladon_kernel::command::error::{CommandError, shown_up_to};
use ladon_record::DbId;

/// An argument for an error message: as much of it as C's `printf` shows.
pub(super) fn text(argument: &[u8]) -> String {
    shown_up_to(argument, usize::MAX)
}

/// The group does not exist, nor perhaps the key.
pub(super) fn no_key_or_group(key: &[u8], group: &[u8]) -> CommandError {
    let (key, group) = (text(key), text(group));
    let text = format!("NOGROUP No such key '{key}' or consumer group '{group}'");
    CommandError::Other(text.into())
}

/// The group does not exist, but the key does.
pub(super) fn no_group(key: &[u8], group: &[u8]) -> CommandError {
    let (key, group) = (text(key), text(group));
    let text = format!("NOGROUP No such consumer group '{group}' for key name '{key}'");
    CommandError::Other(text.into())
}

/// Whether a group has no such consumer yet, so that reading or claiming creates it.
pub(super) fn is_new_consumer(stream: &Stream, group: &[u8], consumer: &[u8]) -> bool {
    stream.group(group).is_some_and(|group| group.consumer(consumer).is_none())
}

/// A consumer was created.
pub(super) fn notify_consumer(tx: &mut Tx<'_>, db: DbId, key: Key<'_>) {
    tx.notify(EventClass::STREAM, "xgroup-createconsumer", db, key);
}
