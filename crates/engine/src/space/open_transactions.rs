//! All open transactions, and what they hold: what they have written, and what spaces have left to
//! their copies since.
//!
//! ```text
//! opened   T1 ------ T2 ---------- T3 ------- now       a space leaves bytes as it changes
//! T1 keeps |   at most what was left since   |          and never more than its copy has
//! T2 keeps           |    ...                |
//! ```
//!
//! The sum counts bytes that several keep once: as those of the transaction opened first, if these
//! are fewer.
//! It is an upper bound: what is made after a copy and leaves again is counted as well while another
//! copy has it for a moment. If too much is kept, the transactions that were opened first are asked
//! to end; their connections' threads do that.

use super::catalog::{Content, SpaceCell};
use ladon_record::SpaceId;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Bounds of what open transactions hold, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct TransactionLimits {
    /// Limit of all transactions together.
    pub all: u64,
    /// Limit of one connection's transactions.
    pub of_client: u64,
}

/// The open transactions of a node.
#[derive(Default)]
pub(crate) struct OpenTransactions {
    opened: AtomicU64,
    /// In the order in which they were opened.
    open: Mutex<BTreeMap<u64, Arc<Holding>>>,
    count: AtomicUsize,
    /// How many of them are asked to end.
    asked: AtomicUsize,
    /// Bytes that they have written, and what it takes to repeat it.
    written: AtomicI64,
    /// Bytes that spaces have left to them, when somebody looked last.
    left: AtomicU64,
}

/// A transaction's holdings, as others see them.
pub(crate) struct Holding {
    number: u64,
    client: u64,
    copies: Mutex<BTreeMap<SpaceId, Copied>>,
    has_to_end: AtomicBool,
}

/// A copy of a space.
struct Copied {
    of: SpaceCell,
    /// Bytes that the space had left behind when it was copied, and bytes of the copy.
    left_before: u64,
    bytes: u64,
    /// Bytes that the space had left since, at the last look.
    left_since: u64,
}

impl OpenTransactions {
    /// A transaction of a client is opened.
    pub(crate) fn add(&self, client: u64) -> Arc<Holding> {
        let number = self.opened.fetch_add(1, Relaxed);
        let (copies, has_to_end) = (Mutex::default(), AtomicBool::new(false));
        let holding = Arc::new(Holding { number, client, copies, has_to_end });
        self.open.lock().insert(number, Arc::clone(&holding));
        self.count.fetch_add(1, Relaxed);
        holding
    }

    pub(crate) fn remove(&self, holding: &Holding) {
        if self.open.lock().remove(&holding.number).is_some() {
            self.count.fetch_sub(1, Relaxed);
            if holding.has_to_end() {
                self.asked.fetch_sub(1, Relaxed);
            }
        }
    }

    /// Whether one is asked to end.
    #[inline]
    pub(crate) fn asks_some_to_end(&self) -> bool {
        self.asked.load(Relaxed) != 0
    }

    /// Counts bytes that a transaction has written, or holds no more.
    pub(crate) fn count_written(&self, delta: i64) {
        self.written.fetch_add(delta, Relaxed);
    }

    /// Bytes that all have written.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Relaxed).max(0) as u64
    }

    /// Bytes that all hold.
    pub(crate) fn bytes(&self) -> u64 {
        self.written() + self.left.load(Relaxed)
    }

    /// Looks what spaces have left to the transactions, and asks some to end while that is too much.
    /// Returns how many are asked. It waits for nobody but those who come and go.
    pub(crate) fn look(&self, limits: TransactionLimits) -> usize {
        if self.count.load(Relaxed) == 0 {
            self.left.store(0, Relaxed);
            return 0;
        }
        // Another thread looks already.
        let Some(open) = self.open.try_lock() else { return 0 };
        let (mut kept, mut asked) = (Kept::default(), 0);
        // From the last one opened on: those that fit stay.
        for holding in open.values().rev() {
            holding.look();
            let is_asked = holding.has_to_end();
            if !is_asked && kept.takes(holding, limits) {
                continue;
            }
            kept.ending += holding.keeps();
            if !is_asked {
                holding.has_to_end.store(true, Relaxed);
                self.asked.fetch_add(1, Relaxed);
                asked += 1;
            }
        }
        self.left.store(kept.ending + kept.all(), Relaxed);
        asked
    }
}

/// Bytes that copies of one space may keep: the first one, and the sum of all.
#[derive(Clone, Copy, Default)]
struct KeptOfSpace {
    first: u64,
    sum: u64,
}

/// Bytes of spaces that the transactions keep which were looked at.
#[derive(Default)]
struct Kept {
    by_space: BTreeMap<SpaceId, KeptOfSpace>,
    by_client: BTreeMap<(u64, SpaceId), KeptOfSpace>,
    /// By those that are to end.
    ending: u64,
}

impl KeptOfSpace {
    fn bytes(&self) -> u64 {
        self.first.min(self.sum)
    }

    fn add(&mut self, copied: &Copied) {
        self.first = self.first.max(copied.left_since);
        self.sum += copied.keeps();
    }
}

impl Kept {
    /// Adds what a transaction keeps, if that is not too much, or nothing.
    fn takes(&mut self, holding: &Holding, limits: TransactionLimits) -> bool {
        let client = holding.client;
        let copies = holding.copies.lock();
        let before: Vec<_> = copies
            .keys()
            .map(|id| (*id, self.of_space(*id), self.of_client_and_space(client, *id)))
            .collect();
        for (id, copied) in &*copies {
            self.by_space.entry(*id).or_default().add(copied);
            self.by_client.entry((client, *id)).or_default().add(copied);
        }
        let is_little = copies.values().all(|copied| copied.keeps() == 0);
        if is_little || self.all() <= limits.all && self.of_client(client) <= limits.of_client {
            return true;
        }
        for (id, of_space, of_client) in before {
            self.by_space.insert(id, of_space);
            self.by_client.insert((client, id), of_client);
        }
        false
    }

    fn of_space(&self, id: SpaceId) -> KeptOfSpace {
        self.by_space.get(&id).copied().unwrap_or_default()
    }

    fn of_client_and_space(&self, client: u64, id: SpaceId) -> KeptOfSpace {
        self.by_client.get(&(client, id)).copied().unwrap_or_default()
    }

    fn all(&self) -> u64 {
        self.by_space.values().map(KeptOfSpace::bytes).sum()
    }

    fn of_client(&self, client: u64) -> u64 {
        let own = self.by_client.range((client, 0)..=(client, SpaceId::MAX));
        own.map(|(_, kept)| kept.bytes()).sum()
    }
}

impl Copied {
    /// Bytes that it may keep, as of the last look.
    fn keeps(&self) -> u64 {
        self.left_since.min(self.bytes)
    }
}

impl Holding {
    /// A space is copied. A copy takes the place of an earlier one of the same space.
    pub(crate) fn copied(&self, of: &SpaceCell, content: &Content) {
        let (left_before, bytes) = (content.space.left_behind(), content.space.bytes() as u64);
        let copied = Copied { of: of.clone(), left_before, bytes, left_since: 0 };
        self.copies.lock().insert(of.id(), copied);
    }

    /// Looks what the spaces have left since, but for those that somebody holds.
    fn look(&self) {
        for copied in self.copies.lock().values_mut() {
            if let Some(left) = copied.of.left_behind() {
                copied.left_since = left.saturating_sub(copied.left_before);
            }
        }
    }

    /// Bytes that all its copies may keep, as of the last look.
    fn keeps(&self) -> u64 {
        self.copies.lock().values().map(Copied::keeps).sum()
    }

    /// Whether it was asked to end.
    pub(crate) fn has_to_end(&self) -> bool {
        self.has_to_end.load(Relaxed)
    }
}
