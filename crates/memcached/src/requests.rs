//! Requests for one item, whichever protocol they come by: each runs as a command of Redis, is counted
//! (`stats`), and is shown to those who watch.

use crate::item::{Count, Counted, Deleted, Found, Invalidation, Put, Stored, WrongType};
use crate::running::{At, Ended, Running};
use crate::text::wrong_type;
use ladon_kernel::client::item_watchers::Watched;
use ladon_kernel::statistics::counter::Counter;
use ladon_memcache::Mode;

/// What a reading request does besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// Nothing.
    Plain,
    /// It gives the item another expiry, and counts as a `touch`.
    Touch,
    /// As `Touch`, but counts as a `get` where there is no item, as memcached's meta commands do.
    TouchIfThere,
    /// It makes an item where there is none.
    Make,
}

impl AsRef<Found> for Found {
    fn as_ref(&self) -> &Found {
        self
    }
}

impl Running<'_, '_> {
    /// Reads an item.
    pub(crate) fn fetch<'k, T: AsRef<Found>>(
        &mut self,
        key: &'k [u8],
        reading: Reading,
        look: impl FnOnce(&mut At<'_, '_, 'k>) -> Result<Option<T>, WrongType>,
    ) -> Result<Option<T>, Ended> {
        let (plain, touching) = ([&b"get"[..], key], [&b"getex"[..], key, b"ex", b"1"]);
        let making = [&b"set"[..], key, b"", b"get"];
        let args = match reading {
            Reading::Plain => &plain[..],
            Reading::Touch | Reading::TouchIfThere => &touching,
            Reading::Make => &making,
        };
        let expired = self.thread.scratch.counters.expired;
        let found = self.on_key(args, look)?;
        let found = found.map_err(|WrongType| Ended::Refused(wrong_type()))?;
        let has_expired = self.thread.scratch.counters.expired != expired;
        let counts = &self.thread.local.stats.items;
        let touches = match reading {
            Reading::Plain | Reading::Make => false,
            Reading::Touch => true,
            Reading::TouchIfThere => found.is_some(),
        };
        counts.count_get(found.is_some(), touches, has_expired);
        let item: Option<&Found> = found.as_ref().map(T::as_ref);
        if item.is_some_and(|item| item.is_made) {
            counts.total_items.add(1);
        }
        self.has_fetched(key, item.map(|item| item.value.len()));
        Ok(found)
    }

    /// Changes an item. Those who watch are shown what was there before.
    fn change<'k, R>(
        &mut self,
        args: &[&'k [u8]],
        change: impl FnOnce(&mut At<'_, '_, 'k>) -> R,
    ) -> Result<R, Ended> {
        let is_watched = self.thread.node.item_watchers.any(Watched::FETCHERS);
        let (changed, before) = self.on_key(args, |at| {
            let before = is_watched.then(|| at.value_bytes());
            (change(at), before)
        })?;
        if let Some(before) = before {
            self.show_look(args[1], before);
        }
        Ok(changed)
    }

    /// Stores a value.
    pub(crate) fn store(&mut self, key: &[u8], put: &Put<'_>) -> Result<Stored, Ended> {
        // A command that depends on the value before needs the right to read it as well.
        let args = match put.mode {
            Mode::Append | Mode::Prepend => vec![b"append", key, put.value],
            Mode::Set if put.cas.is_none() => vec![b"set", key, put.value],
            Mode::Set | Mode::Replace => vec![b"set", key, put.value, b"xx"],
            Mode::Add => vec![b"set", key, put.value, b"nx"],
        };
        let stored = self.change(&args, |at| at.store(put));
        let counts = &self.thread.local.stats.items;
        match &stored {
            Ok(Stored::TooLarge) => counts.store_too_large.add(1),
            Ok(stored) => {
                counts.cmd_set.add(1);
                if matches!(stored, Stored::Done { .. }) {
                    counts.total_items.add(1);
                }
                match stored {
                    _ if put.cas.is_none() || put.mode == Mode::Add => {}
                    Stored::Done { .. } => counts.cas_hits.add(1),
                    Stored::NotFound | Stored::Unmet => counts.cas_misses.add(1),
                    _ => counts.cas_badval.add(1),
                }
            }
            Err(Ended::Refused(text)) if text.starts_with("OOM ") => counts.store_no_memory.add(1),
            Err(_) => {}
        }
        let stored = stored?;
        self.has_stored(put.storing(key), stored);
        Ok(stored)
    }

    /// Deletes an item, if it has this version.
    pub(crate) fn delete(&mut self, key: &[u8], cas: Option<u64>) -> Result<Deleted, Ended> {
        let deleted = self.change(&[b"del", key], |at| at.delete(cas))?;
        Ok(self.has_deleted(key, deleted))
    }

    /// Makes an item stale, or takes its value.
    pub(crate) fn invalidate(
        &mut self,
        key: &[u8],
        invalid: &Invalidation,
    ) -> Result<Deleted, Ended> {
        let deleted = self.change(&[b"set", key, b"", b"get"], |at| at.invalidate(invalid))?;
        Ok(self.has_deleted(key, deleted))
    }

    fn has_deleted(&self, key: &[u8], deleted: Deleted) -> Deleted {
        let counts = &self.thread.local.stats.items;
        counted(&counts.delete_hits, &counts.delete_misses, deleted != Deleted::NotFound);
        self.note_delete(key);
        deleted
    }

    /// Counts up or down.
    pub(crate) fn count(&mut self, key: &[u8], count: &Count) -> Result<Counted, Ended> {
        let name: &[u8] = if count.down { b"decrby" } else { b"incrby" };
        let number = self.change(&[name, key, b"1"], |at| at.count(count))?;
        let counts = &self.thread.local.stats.items;
        let (hits, misses) = match count.down {
            false => (&counts.incr_hits, &counts.incr_misses),
            true => (&counts.decr_hits, &counts.decr_misses),
        };
        match number {
            // Not a miss, as in memcached.
            Counted::Is { made: true, .. } => counts.total_items.add(1),
            Counted::Is { .. } => hits.add(1),
            Counted::NotFound => misses.add(1),
            Counted::Exists | Counted::NotANumber | Counted::WrongType => {}
        }
        Ok(number)
    }

    /// Gives an item another expiry; whether there is one.
    pub(crate) fn touch(&mut self, key: &[u8], exptime: i64) -> Result<bool, Ended> {
        let is_there = self.change(&[b"expire", key, b"1"], |at| at.touch(exptime))?;
        let counts = &self.thread.local.stats.items;
        counts.cmd_touch.add(1);
        counted(&counts.touch_hits, &counts.touch_misses, is_there);
        Ok(is_there)
    }
}

fn counted(hits: &Counter, misses: &Counter, is_hit: bool) {
    if is_hit { hits } else { misses }.add(1);
}
