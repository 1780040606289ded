//! The requests of users to a store, and what they know about its replies.
//!
//! ```text
//!   Asked (data: which operations, which keys)  --World::traffic-->  Traffic
//!   Driver <-- Workload -- Speaking { a Dialect, a Traffic }
//!                              operation -> bytes;  frame -> right or wrong
//! ```
//!
//! [`World`] remembers the writes between two measurements, so that one may read what the other
//! wrote.
//!
//! **Architecture invariant:** a traffic checks every reply against what it knows. If several
//! replies are right, because requests overtake each other, exactly those are accepted.

pub mod counters;
pub mod groups;
pub mod iterations;
pub mod keyed;
pub mod ledger;
pub mod pick;
mod pings;
pub mod rows;
pub mod sets;
pub mod several;
pub mod source;
pub mod speaking;
pub mod value;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::operation::OperationKind;
use counters::{Counters, Totals};
use groups::Groups;
use iterations::{Iterations, Progress};
use keyed::{Deed, Keyed};
use ledger::Ledger;
use pick::Distribution;
pub use source::{Share, Traffic, blank};

/// What is asked, as data.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Asked {
    /// An answer, and nothing else.
    Pings,
    /// Every key of a space once, in order, each written.
    Fill {
        /// The space.
        space: &'static str,
        /// How many keys.
        keys: u32,
        /// Bytes of each value.
        value_bytes: usize,
    },
    /// Every key that was ever written, once, in order, each read. Nothing may be missing.
    ReadAll {
        /// The space.
        space: &'static str,
    },
    /// A mix of deeds on keys of a space that was filled before.
    Keyed {
        /// The space.
        space: &'static str,
        /// Deeds, each with its share of 100.
        mix: Vec<(u32, Deed)>,
        /// Which keys.
        distribution: Distribution,
    },
    /// New keys of a space, one after the other, without end.
    Insert {
        /// The space.
        space: &'static str,
        /// Bytes of each value.
        value_bytes: usize,
    },
    /// One deed on keys made of user and iteration.
    Iterations {
        /// The space.
        space: &'static str,
        /// What to do with each.
        deed: iterations::Deed,
        /// Bytes of each value.
        value_bytes: usize,
    },
    /// Additions to counters and subtractions from them.
    Counters {
        /// The space.
        space: &'static str,
        /// Whether all users share one counter.
        one: bool,
    },
    /// Sets of `members` members each, which users add to, or read.
    Sets {
        /// The space.
        space: &'static str,
        /// Whether members are added, or sets that are complete read.
        read: bool,
        /// How many members a set has.
        members: u32,
    },
    /// Rows of a table with a secondary index, `members` rows to a group.
    Rows {
        /// Whether rows are inserted, or groups that are complete read.
        read: bool,
        /// How many rows a group has.
        members: u32,
        /// Bytes of each value.
        value_bytes: usize,
    },
}

impl Asked {
    /// The kinds of operations that it takes.
    #[must_use]
    pub fn kinds(&self) -> Vec<OperationKind> {
        use OperationKind as Kind;
        match self {
            Self::Pings => vec![Kind::Ping],
            Self::Fill { .. } | Self::Insert { .. } => vec![Kind::Set],
            Self::ReadAll { .. } => vec![Kind::Get],
            Self::Keyed { mix, .. } => mix.iter().flat_map(|(_, deed)| deed.kinds()).collect(),
            Self::Iterations { deed, .. } => vec![deed.kind()],
            Self::Counters { .. } => vec![Kind::Add],
            Self::Sets { read: false, .. } => vec![Kind::AddMember],
            Self::Sets { read: true, .. } => vec![Kind::Members],
            Self::Rows { read: false, .. } => vec![Kind::InsertRow],
            Self::Rows { read: true, .. } => vec![Kind::FindByGroup],
        }
    }
}

impl Asked {
    /// What its keys have in common.
    #[must_use]
    pub const fn space(&self) -> &'static str {
        match self {
            Self::Fill { space, .. }
            | Self::ReadAll { space }
            | Self::Keyed { space, .. }
            | Self::Insert { space, .. }
            | Self::Iterations { space, .. }
            | Self::Counters { space, .. }
            | Self::Sets { space, .. } => space,
            Self::Rows { .. } => "rows",
            Self::Pings => "",
        }
    }

    /// Whether it is over at some time: a warm-up would take from what there is to measure.
    #[must_use]
    pub const fn ends(&self) -> bool {
        matches!(
            self,
            Self::Fill { .. }
                | Self::ReadAll { .. }
                | Self::Iterations { deed: iterations::Deed::Delete, .. }
        )
    }

    /// Whether it reads runs of keys, its own and others.
    #[must_use]
    pub fn scans(&self) -> bool {
        match self {
            Self::Keyed { mix, .. } => {
                mix.iter().any(|(_, deed)| matches!(deed, Deed::Scan { .. } | Deed::Range { .. }))
            }
            _ => false,
        }
    }

    /// How many requests it is, where it ends by itself and that is known before.
    #[must_use]
    pub const fn requests(&self) -> u32 {
        match self {
            Self::Fill { keys, .. } => *keys,
            _ => 0,
        }
    }
}

/// The writes that a store received so far.
#[derive(Debug, Default)]
pub struct World {
    seed: u64,
    share: Share,
    ledgers: BTreeMap<&'static str, Ledger>,
    progress: BTreeMap<&'static str, Progress>,
    totals: BTreeMap<&'static str, Totals>,
    /// The total of the counter that all users share.
    shared: counters::SharedTotal,
}

impl World {
    /// Nothing told yet.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { seed, ..Self::default() }
    }

    /// One world for each of `threads` load threads: all ask of the same store, but of different
    /// keys. What all ask for alike is what a counter for all users holds.
    #[must_use]
    pub fn shared_by(threads: usize, seed: u64) -> Vec<Self> {
        let shared = counters::SharedTotal::default();
        let world = |part: usize| Self {
            seed: seed.wrapping_add(part as u64 * 7_919),
            share: Share { part, parts: threads },
            shared: shared.clone(),
            ..Self::default()
        };
        (0..threads).map(world).collect()
    }

    /// The keys of a space, where any were written.
    #[must_use]
    pub fn ledger(&self, space: &str) -> Option<&Ledger> {
        self.ledgers.get(space)
    }

    /// What `users` users ask, with `depth` requests of each under way at once. Every call begins
    /// another stretch of the same seed's chance.
    pub fn traffic(&mut self, asked: &Asked, users: usize, depth: usize) -> Box<dyn Traffic + '_> {
        self.seed = self.seed.wrapping_add(1);
        let requests = users * depth;
        match asked {
            Asked::Pings => Box::new(pings::Pings),
            Asked::Fill { space, keys, value_bytes } => {
                let own = self.share.range(*keys);
                let ledger = Ledger::from_key(self.share.first_key(), space, own, *value_bytes);
                self.ledgers.insert(space, ledger);
                Box::new(Keyed::each(self.ledger_of(space, 0), Deed::Write, requests))
            }
            Asked::ReadAll { space } => {
                Box::new(Keyed::each(self.ledger_of(space, 0), Deed::Read, requests))
            }
            Asked::Keyed { space, mix, distribution } => {
                let seed = self.seed;
                let ledger = self.ledger_of(space, 0);
                Box::new(Keyed::mixed(ledger, mix, *distribution, seed, requests))
            }
            Asked::Insert { space, value_bytes } => {
                let seed = self.seed;
                let ledger = self.ledger_of(space, *value_bytes);
                let mix = [(100, Deed::Insert)];
                Box::new(Keyed::mixed(ledger, &mix, Distribution::Uniform, seed, requests))
            }
            Asked::Iterations { space, deed, value_bytes } => {
                let progress = self.progress.entry(space).or_default();
                let share = self.share;
                Box::new(Iterations::new(space, *deed, *value_bytes, progress, users, share))
            }
            Asked::Counters { space, one } => {
                let totals = self.totals.entry(space).or_default();
                let shared = one.then(|| self.shared.clone());
                Box::new(Counters::new(space, shared, totals, users, requests, self.share))
            }
            Asked::Sets { space, read, members } => {
                let progress = self.progress.entry(space).or_default();
                let groups = Groups::new(*read, *members, progress, users, self.seed, self.share);
                Box::new(sets::Sets::new(space, groups))
            }
            Asked::Rows { read, members, value_bytes } => {
                let progress = self.progress.entry("rows").or_default();
                let groups = Groups::new(*read, *members, progress, users, self.seed, self.share);
                Box::new(rows::Rows::new(groups, *value_bytes))
            }
        }
    }

    fn ledger_of(&mut self, space: &'static str, value_bytes: usize) -> &mut Ledger {
        let first = self.share.first_key();
        let new = || Ledger::from_key(first, space, 0, value_bytes);
        self.ledgers.entry(space).or_insert_with(new)
    }
}
