//! Which keys expire when: an exact index, so that expired keys are removed in time and none has to
//! be searched for.

use std::collections::BTreeSet;

/// One database's expiring keys within one partition: (Unix milliseconds, key hash).
#[derive(Default)]
pub(crate) struct Expires(BTreeSet<(u64, u64)>);

impl Expires {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Changes a key's expiry from `old` to `new` (0: none). Returns the change of `bytes`.
    #[must_use]
    #[inline]
    pub(crate) fn change(&mut self, hash: u64, old: u64, new: u64) -> i64 {
        if old == new {
            return 0;
        }
        let before = self.bytes() as i64;
        if old != 0 {
            self.0.remove(&(old, hash));
        }
        if new != 0 {
            self.0.insert((new, hash));
        }
        self.bytes() as i64 - before
    }

    /// The hash of a key that is due at `now`.
    pub(crate) fn due(&self, now: u64) -> Option<(u64, u64)> {
        self.0.first().copied().filter(|&(at, _)| at <= now)
    }

    /// Whether at least `count` (not 0) keys are due at `now`.
    pub(crate) fn are_due(&self, now: u64, count: usize) -> bool {
        self.0.iter().take_while(|(at, _)| *at <= now).nth(count - 1).is_some()
    }

    /// The key that expires first.
    pub(crate) fn first(&self) -> Option<(u64, u64)> {
        self.0.first().copied()
    }

    /// An index of the first one, whatever their number: that there is one, and when it is due.
    pub(crate) fn first_alone(&self) -> Expires {
        Expires(self.first().into_iter().collect())
    }

    /// When the last key expires.
    pub(crate) fn last(&self) -> Option<u64> {
        self.0.last().map(|&(at, _)| at)
    }

    /// Up to `count` consecutively expiring keys, beginning with a random one.
    pub(crate) fn some(&self, random: u64, count: usize) -> impl Iterator<Item = (u64, u64)> {
        let from = (random % self.0.len().max(1) as u64) as usize;
        self.0.iter().copied().skip(from).chain(self.0.iter().copied().take(from)).take(count)
    }

    /// Up to `count` consecutively expiring keys, beginning at a random time.
    pub(crate) fn some_from_time(
        &self,
        random: u64,
        count: usize,
    ) -> impl Iterator<Item = (u64, u64)> {
        let first = self.0.first().map_or(0, |&(at, _)| at);
        let last = self.0.last().map_or(0, |&(at, _)| at);
        let from = first + random % (last - first + 1);
        self.0.range((from, 0)..).copied().take(count)
    }

    /// Mean of the next few expiries, for `INFO`'s `avg_ttl`: (sum of remaining ms, count).
    pub(crate) fn sample_ttl(&self, now: u64) -> (u64, u64) {
        let sample = self.0.iter().step_by((self.0.len() / 8).max(1)).take(8);
        sample.fold((0, 0), |(sum, count), (at, _)| (sum + at.saturating_sub(now), count + 1))
    }

    /// Bytes of memory, estimated: nodes of a B-tree are about two thirds full.
    pub(crate) fn bytes(&self) -> usize {
        self.0.len() * 24
    }

    #[cfg(test)]
    pub(crate) fn entries(&self) -> Vec<(u64, u64)> {
        self.0.iter().copied().collect()
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// 1 for an expiry that is in the index, 0 for none.
    ///
    /// # Panics
    /// When the index lacks it: nobody would remove the key.
    #[cfg(debug_assertions)]
    pub(crate) fn count(&self, at: u64, hash: u64) -> usize {
        assert!(at == 0 || self.0.contains(&(at, hash)), "an expiry at {at} is not in the index");
        usize::from(at != 0)
    }

    /// Drops an entry. Returns the change of `bytes`.
    #[must_use]
    pub(crate) fn remove(&mut self, at: u64, hash: u64) -> i64 {
        self.change(hash, at, 0)
    }
}
