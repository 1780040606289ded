//! Who looks at a mounted space's tuples as keys hears of every change, whatever protocol made it:
//! `WATCH`, keyspace notifications, and copies that clients keep.

use super::catalog::Content;
use ladon_space::{Space, Written, as_text};

/// A tuple was written.
const WRITTEN: &str = "hset";
/// A tuple was deleted.
const DELETED: &str = "del";

/// The key of a tuple of a mounted space.
pub(crate) fn key_of(space: &Space, tuple: &[u8]) -> Option<Vec<u8>> {
    let mut key = space.def().resp_prefix.as_deref()?.to_vec();
    as_text::write_key(&space.index(0)?.def().parts, tuple, &mut key);
    Some(key)
}

/// What happened to a key.
pub(crate) struct TupleEvent {
    pub(crate) key: Vec<u8>,
    pub(crate) name: &'static str,
    /// There was no such key before.
    pub(crate) is_new: bool,
}

/// The event of a change of a mounted space.
pub(crate) fn event_of(space: &Space, written: &Written) -> Option<TupleEvent> {
    let tuple = written.new.as_ref().or(written.old.as_ref())?;
    let key = key_of(space, tuple.bytes())?;
    let is_written = written.new.is_some();
    let is_new = is_written && written.old.is_none();
    Some(TupleEvent { key, name: if is_written { WRITTEN } else { DELETED }, is_new })
}

/// Tells who watches the key of a tuple that a committed change was about.
pub(super) fn touch_watchers(content: &mut Content, written: &Written) {
    if !content.watched.is_empty()
        && let Some(event) = event_of(&content.space, written)
    {
        content.watched.touch(&event.key, event.name == WRITTEN, None);
    }
}
