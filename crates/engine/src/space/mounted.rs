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

/// Tells the watchers of a committed change, and `note` its event: the name, whether the key is new,
/// and the key.
pub(super) fn tell(
    content: &mut Content,
    written: &Written,
    note: &mut impl FnMut(&'static str, bool, &[u8]),
) {
    let Some(tuple) = written.new.as_ref().or(written.old.as_ref()) else { return };
    let Some(key) = key_of(&content.space, tuple.bytes()) else { return };
    content.watched.touch(&key, written.new.is_some(), None);
    match (&written.old, &written.new) {
        (_, None) => note(DELETED, false, &key),
        (old, Some(_)) => note(WRITTEN, old.is_none(), &key),
    }
}
