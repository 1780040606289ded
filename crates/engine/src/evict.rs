//! Eviction: frees memory by removing keys, one at a time, without a lock on everything.
//!
//! Each thread visits the partitions in turn, skipping those that another thread holds. In a
//! partition, it removes expired keys and the memory of empty tables. If there are none, it samples
//! some keys and keeps the best candidates for eviction in its own pool. When it has sampled as
//! many keys as configured, it evicts the best of the pool, unless that key was used since; then it
//! tries the next. So a thread never holds two locks and never waits for one, and candidates of
//! earlier steps compete with new ones, which makes small samples nearly as good as large ones.

use crate::access::{AccessNow, Tracking, next_random};
use crate::keyspace::Keyspace;
use crate::partition::{PARTITIONS, partition_of};
use crate::table::entry::EntryRef;
use crate::tx::evict::Candidate;
use crate::tx::{Scratch, Tx};
use ladon_record::{DbId, Lsn, Record};

/// Which keys may be evicted, and in what order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Victims {
    /// Only keys that expire.
    pub volatile: bool,
    /// The order.
    pub choice: Choice,
}

/// Which key to evict first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The least used one, according to the access words ([`Tracking`]).
    Access,
    /// The one that expires first.
    Expiry,
    /// Any.
    Random,
}

/// The result of an eviction step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evicted {
    /// A key was removed, expired keys were removed, or an empty table's memory was freed.
    Some,
    /// Nothing was removed this time; the next step may find something.
    NotYet,
    /// There is nothing that may be evicted.
    Nothing,
}

/// A key that was evicted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvictedKey {
    /// Its name.
    pub key: Vec<u8>,
    /// When it would have expired, Unix milliseconds; 0 for never.
    pub expire_at: u64,
}

/// Candidates that a thread keeps; more gain little.
const POOL_MAX: usize = 16;

/// Most expired keys removed in one step.
const EXPIRED_MAX: usize = 16;

/// A thread's state of eviction.
#[derive(Debug)]
pub struct Evictor {
    pool: Vec<Candidate>,
    /// The policy for which the pool was gathered.
    gathered_for: Option<(Victims, Tracking)>,
    /// The partition visited last.
    partition: usize,
    random: u64,
    /// What was evicted, for who has put a list there.
    pub noted: Option<Vec<EvictedKey>>,
}

impl Evictor {
    /// An evictor whose choices derive from `seed`.
    pub fn new(seed: u64) -> Evictor {
        let mut random = seed;
        let partition = next_random(&mut random) as usize % PARTITIONS;
        Evictor {
            pool: Vec::with_capacity(POOL_MAX),
            gathered_for: None,
            partition,
            random,
            noted: None,
        }
    }

    /// Tries to evict one key, after sampling `samples` keys. `append` logs the removal and returns
    /// its LSN. The thread may hold no lock. On a follower there is nothing to evict.
    pub fn step(
        &mut self,
        keyspace: &Keyspace,
        scratch: &mut Scratch,
        now_ms: u64,
        victims: Victims,
        samples: usize,
        append: &mut dyn FnMut(Record<'_>) -> Lsn,
    ) -> Evicted {
        if keyspace.is_follower() {
            return Evicted::Nothing;
        }
        let access = keyspace.access_rules().at(now_ms);
        let gathering_for = Some((victims, access.tracking()));
        if self.gathered_for != gathering_for {
            self.pool.clear();
            self.gathered_for = gathering_for;
        }
        let samples = if victims.choice == Choice::Random { 1 } else { samples };
        let (mut seen, mut busy) = (0, false);
        for _ in 0..PARTITIONS {
            self.partition = (self.partition + 1) % PARTITIONS;
            let Some(mut tx) = keyspace.try_begin(self.partition, scratch, now_ms) else {
                busy = true;
                continue;
            };
            if tx.expire_due(self.partition, EXPIRED_MAX) > 0 {
                tx.commit(&mut *append);
                return Evicted::Some;
            }
            if tx.release_empty(self.partition) {
                return Evicted::Some;
            }
            seen += self.look(&mut tx, victims, samples, access);
            if seen < samples {
                continue;
            }
            // Often the best candidate was just sampled, and its lock is still held.
            if let Some(best) = self.best(victims, access)
                && partition_of(self.pool[best].hash) == self.partition
            {
                let candidate = self.pool.swap_remove(best);
                let gone = tx.evict(&candidate);
                tx.commit(&mut *append);
                if gone {
                    self.note(candidate);
                    return Evicted::Some;
                }
            }
            break;
        }
        while let Some(best) = self.best(victims, access) {
            let candidate = self.pool.swap_remove(best);
            let partition = partition_of(candidate.hash);
            let Some(mut tx) = keyspace.try_begin(partition, scratch, now_ms) else {
                busy = true;
                continue;
            };
            let gone = tx.evict(&candidate);
            tx.commit(&mut *append);
            if gone {
                self.note(candidate);
                return Evicted::Some;
            }
        }
        if seen == 0 && !busy { Evicted::Nothing } else { Evicted::NotYet }
    }

    #[inline]
    fn note(&mut self, candidate: Candidate) {
        if let Some(noted) = &mut self.noted {
            let Candidate { key, expire_at, .. } = candidate;
            noted.push(EvictedKey { key, expire_at });
        }
    }

    /// Samples keys of a partition; returns how many.
    fn look(
        &mut self,
        tx: &mut Tx<'_>,
        victims: Victims,
        samples: usize,
        access: AccessNow,
    ) -> usize {
        let mut random = self.random;
        let (partition, hasher) = (self.partition, tx.keyspace().hasher());
        let visit = |db: DbId, entry: EntryRef<'_>| {
            let candidate = Candidate {
                db,
                hash: hasher.hash(entry.key()),
                key: Vec::new(),
                access: access.faded(entry.access()),
                expire_at: entry.expire_at(),
            };
            self.consider(candidate, entry.key(), victims, access);
        };
        let seen = match victims.choice {
            Choice::Expiry => tx.first_to_expire(partition, visit),
            Choice::Access | Choice::Random => {
                tx.sample(partition, samples, victims.volatile, &mut random, visit)
            }
        };
        self.random = next_random(&mut random);
        seen
    }

    /// Adds a candidate to the pool if it is good enough.
    fn consider(
        &mut self,
        mut candidate: Candidate,
        key: &[u8],
        victims: Victims,
        access: AccessNow,
    ) {
        let same = |it: &&mut Candidate| it.hash == candidate.hash && it.db == candidate.db;
        if let Some(known) = self.pool.iter_mut().find(same) {
            (known.access, known.expire_at) = (candidate.access, candidate.expire_at);
            return;
        }
        if self.pool.len() == POOL_MAX {
            let worth = |candidate: &Candidate| worth(candidate, victims, access);
            let worst = (0..POOL_MAX).min_by_key(|&at| worth(&self.pool[at]));
            let worst = worst.expect("the pool is full");
            if worth(&self.pool[worst]) >= worth(&candidate) {
                return;
            }
            candidate.key = std::mem::take(&mut self.pool[worst].key);
            candidate.key.clear();
            candidate.key.extend_from_slice(key);
            self.pool[worst] = candidate;
            return;
        }
        candidate.key = key.to_vec();
        self.pool.push(candidate);
    }

    fn best(&self, victims: Victims, access: AccessNow) -> Option<usize> {
        (0..self.pool.len()).max_by_key(|&at| worth(&self.pool[at], victims, access))
    }
}

/// How strongly a candidate should be evicted.
fn worth(candidate: &Candidate, victims: Victims, access: AccessNow) -> u64 {
    match victims.choice {
        Choice::Access => access.staleness(candidate.access),
        Choice::Expiry => u64::MAX - candidate.expire_at,
        // In the order of sampling: the pool is as random as any key.
        Choice::Random => 0,
    }
}
