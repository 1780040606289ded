//! What requests of memcached's protocols have done, in the names of its `stats`.

use crate::statistics::counter::Counter;

/// Counters of one IO thread. Requests of other protocols are not in them.
#[derive(Debug, Default)]
#[allow(missing_docs, reason = "memcached's names, see doc/protocol.txt there")]
pub struct ItemCounts {
    pub cmd_get: Counter,
    pub cmd_set: Counter,
    pub cmd_flush: Counter,
    pub cmd_touch: Counter,
    pub cmd_meta: Counter,
    pub get_hits: Counter,
    pub get_misses: Counter,
    pub get_expired: Counter,
    pub delete_hits: Counter,
    pub delete_misses: Counter,
    pub incr_hits: Counter,
    pub incr_misses: Counter,
    pub decr_hits: Counter,
    pub decr_misses: Counter,
    pub cas_hits: Counter,
    pub cas_misses: Counter,
    pub cas_badval: Counter,
    pub touch_hits: Counter,
    pub touch_misses: Counter,
    pub store_too_large: Counter,
    pub store_no_memory: Counter,
    pub auth_cmds: Counter,
    pub auth_errors: Counter,
    pub total_items: Counter,
}

/// The name of a counter, and where it is.
pub type NamedCounter = (&'static str, fn(&ItemCounts) -> &Counter);

impl ItemCounts {
    /// All counters.
    pub const ALL: [NamedCounter; 24] = [
        ("cmd_get", |it| &it.cmd_get),
        ("cmd_set", |it| &it.cmd_set),
        ("cmd_flush", |it| &it.cmd_flush),
        ("cmd_touch", |it| &it.cmd_touch),
        ("cmd_meta", |it| &it.cmd_meta),
        ("get_hits", |it| &it.get_hits),
        ("get_misses", |it| &it.get_misses),
        ("get_expired", |it| &it.get_expired),
        ("delete_misses", |it| &it.delete_misses),
        ("delete_hits", |it| &it.delete_hits),
        ("incr_misses", |it| &it.incr_misses),
        ("incr_hits", |it| &it.incr_hits),
        ("decr_misses", |it| &it.decr_misses),
        ("decr_hits", |it| &it.decr_hits),
        ("cas_misses", |it| &it.cas_misses),
        ("cas_hits", |it| &it.cas_hits),
        ("cas_badval", |it| &it.cas_badval),
        ("touch_hits", |it| &it.touch_hits),
        ("touch_misses", |it| &it.touch_misses),
        ("store_too_large", |it| &it.store_too_large),
        ("store_no_memory", |it| &it.store_no_memory),
        ("auth_cmds", |it| &it.auth_cmds),
        ("auth_errors", |it| &it.auth_errors),
        ("total_items", |it| &it.total_items),
    ];

    /// Counts a request that reads an item, and may give it another expiry; `expired` if it was there, too
    /// old.
    pub fn count_get(&self, is_hit: bool, touches: bool, expired: bool) {
        let (hits, misses) = match touches {
            true => {
                self.cmd_touch.add(1);
                (&self.touch_hits, &self.touch_misses)
            }
            false => {
                self.cmd_get.add(1);
                (&self.get_hits, &self.get_misses)
            }
        };
        if is_hit { hits } else { misses }.add(1);
        if expired {
            self.get_expired.add(1);
        }
    }

    /// Back to zero.
    pub(crate) fn reset(&self) {
        for (_, counter) in ItemCounts::ALL {
            counter(self).reset();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_has_its_name() {
        let counts = ItemCounts::default();
        for (at, (_, counter)) in ItemCounts::ALL.into_iter().enumerate() {
            counter(&counts).add(at as u64 + 1);
        }
        let shown = format!("{counts:?}");
        for (at, (name, _)) in ItemCounts::ALL.into_iter().enumerate() {
            assert!(shown.contains(&format!("{name}: Counter({})", at + 1)), "{name}: {shown}");
        }
        counts.reset();
        assert!(ItemCounts::ALL.iter().all(|(_, counter)| counter(&counts).get() == 0));
    }
}
