//! Requests to a store and their replies, in the field's terms: no protocol, no system.
//!
//! A work consists of these. A `Dialect` turns them into a system's bytes and its bytes into
//! replies, and the load driver compares those with what the workload expects.

use std::fmt;

/// One request of one user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Answer, and do nothing: what packets, replies and the kernel cost. Answer: [`Answer::Done`].
    Ping,
    /// Store `value` under `key`, whatever was there. Answer: [`Answer::Done`].
    Set {
        /// The key.
        key: Vec<u8>,
        /// The value.
        value: Vec<u8>,
    },
    /// Read a key. Answer: [`Answer::Value`].
    Get {
        /// The key.
        key: Vec<u8>,
    },
    /// Read a key by the name of the server's function for it, as load tests by HTTP and by
    /// connectors do. Answer: [`Answer::Value`].
    GetByCall {
        /// The key.
        key: Vec<u8>,
    },
    /// Remove a key. Answer: [`Answer::Existed`].
    Delete {
        /// The key.
        key: Vec<u8>,
    },
    /// Add to a counter, which is 0 where it is not there yet. Answer: [`Answer::Integer`], its new
    /// value.
    Add {
        /// The counter's key.
        key: Vec<u8>,
        /// What to add; below zero to take away.
        by: i64,
    },
    /// Put a member into a set. Answer: [`Answer::Existed`], true if it was there already.
    AddMember {
        /// The set's key.
        set: Vec<u8>,
        /// The member.
        member: Vec<u8>,
    },
    /// Read all members of a set. Answer: [`Answer::Members`].
    Members {
        /// The set's key.
        set: Vec<u8>,
    },
    /// Store several keys by one request and as one change: `MSET`, a transaction, ...
    /// Answer: [`Answer::Done`].
    SetMany {
        /// Keys and their values.
        pairs: Vec<(Vec<u8>, Vec<u8>)>,
    },
    /// Insert a row into the table whose primary key is `id` and which has a secondary, non-unique
    /// index over `group`. Answer: [`Answer::Done`].
    InsertRow {
        /// Primary key.
        id: u64,
        /// What the secondary index is over.
        group: u64,
        /// The rest of the row.
        value: Vec<u8>,
    },
    /// Insert a tuple into the table whose only key is `id`. Answer: [`Answer::Done`].
    InsertTuple {
        /// The key.
        id: u64,
        /// The rest of the tuple.
        value: Vec<u8>,
    },
    /// Read all rows of a group by the secondary index. Answer: [`Answer::Rows`].
    FindByGroup {
        /// The group.
        group: u64,
    },
    /// Read up to `count` values, in the order of keys, from the first key that is not below `key`
    /// (YCSB's scan). Answer: [`Answer::Members`], the values.
    ScanFrom {
        /// Where to begin.
        key: Vec<u8>,
        /// The most values to return.
        count: usize,
    },
}

/// The name of an [`Operation`], without its data.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum OperationKind {
    /// See [`Operation::Ping`].
    Ping,
    /// See [`Operation::Set`].
    Set,
    /// See [`Operation::Get`].
    Get,
    /// See [`Operation::GetByCall`].
    GetByCall,
    /// See [`Operation::Delete`].
    Delete,
    /// See [`Operation::Add`].
    Add,
    /// See [`Operation::AddMember`].
    AddMember,
    /// See [`Operation::Members`].
    Members,
    /// See [`Operation::SetMany`].
    SetMany,
    /// See [`Operation::InsertRow`].
    InsertRow,
    /// See [`Operation::InsertTuple`].
    InsertTuple,
    /// See [`Operation::FindByGroup`].
    FindByGroup,
    /// See [`Operation::ScanFrom`].
    ScanFrom,
}

impl OperationKind {
    /// All kinds.
    pub const ALL: [Self; 13] = [
        Self::Ping,
        Self::Set,
        Self::Get,
        Self::GetByCall,
        Self::Delete,
        Self::Add,
        Self::AddMember,
        Self::Members,
        Self::SetMany,
        Self::InsertRow,
        Self::InsertTuple,
        Self::FindByGroup,
        Self::ScanFrom,
    ];
}

impl fmt::Display for OperationKind {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::Ping => "ping",
            Self::Set => "set",
            Self::Get => "get",
            Self::GetByCall => "get by the name of a function",
            Self::Delete => "delete",
            Self::Add => "add to a counter",
            Self::AddMember => "add a member to a set",
            Self::Members => "read a set's members",
            Self::SetMany => "set many keys as one change",
            Self::InsertRow => "insert a row",
            Self::InsertTuple => "insert a tuple",
            Self::FindByGroup => "look up by a secondary index",
            Self::ScanFrom => "scan in the order of keys",
        })
    }
}

impl Operation {
    /// Its name without its data.
    #[must_use]
    pub const fn kind(&self) -> OperationKind {
        match self {
            Self::Ping => OperationKind::Ping,
            Self::Set { .. } => OperationKind::Set,
            Self::Get { .. } => OperationKind::Get,
            Self::GetByCall { .. } => OperationKind::GetByCall,
            Self::Delete { .. } => OperationKind::Delete,
            Self::Add { .. } => OperationKind::Add,
            Self::AddMember { .. } => OperationKind::AddMember,
            Self::Members { .. } => OperationKind::Members,
            Self::SetMany { .. } => OperationKind::SetMany,
            Self::InsertRow { .. } => OperationKind::InsertRow,
            Self::InsertTuple { .. } => OperationKind::InsertTuple,
            Self::FindByGroup { .. } => OperationKind::FindByGroup,
            Self::ScanFrom { .. } => OperationKind::ScanFrom,
        }
    }
}

/// What a store answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is done.
    Done,
    /// The key's value, if it exists.
    Value(Option<Vec<u8>>),
    /// A number.
    Integer(i64),
    /// Whether the thing was there before.
    Existed(bool),
    /// Members of a set, in any order, or values of a scan, in theirs.
    Members(Vec<Vec<u8>>),
    /// Rows: primary key and value, in any order.
    Rows(Vec<(u64, Vec<u8>)>),
}

impl Answer {
    /// Whether `self` answers `operation` as `other` does: where the store owes no order, none is
    /// compared.
    #[must_use]
    pub fn means_the_same(&self, other: &Self, operation: &Operation) -> bool {
        match (self, other) {
            (Self::Members(mine), Self::Members(theirs))
                if operation.kind() == OperationKind::Members =>
            {
                same_in_any_order(mine, theirs)
            }
            (Self::Rows(mine), Self::Rows(theirs)) => same_in_any_order(mine, theirs),
            _ => self == other,
        }
    }
}

fn same_in_any_order<T: Ord>(mine: &[T], theirs: &[T]) -> bool {
    let sorted = |items: &'_ [T]| -> Vec<usize> {
        let mut order: Vec<usize> = (0..items.len()).collect();
        order.sort_unstable_by(|&left, &right| items[left].cmp(&items[right]));
        order
    };
    mine.len() == theirs.len()
        && sorted(mine)
            .into_iter()
            .zip(sorted(theirs))
            .all(|(left, right)| mine[left] == theirs[right])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_counts_only_where_it_is_owed() {
        let answer = |words: &[&str]| {
            Answer::Members(words.iter().map(|word| word.as_bytes().to_vec()).collect())
        };
        let members = Operation::Members { set: b"s".to_vec() };
        let scan = Operation::ScanFrom { key: b"k".to_vec(), count: 2 };
        let (ab, ba, aa) = (answer(&["a", "b"]), answer(&["b", "a"]), answer(&["a", "a"]));
        assert!(ab.means_the_same(&ba, &members));
        assert!(!ab.means_the_same(&ba, &scan));
        assert!(!ab.means_the_same(&aa, &members));
        assert!(!ab.means_the_same(&answer(&["a"]), &members));
        assert!(!Answer::Done.means_the_same(&Answer::Existed(true), &members));
    }
}
