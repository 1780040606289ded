//! The tables, as functions of their rows' numbers, and what statements have changed in them.
//!
//! ```text
//!   accounts  id, branch, amount, hits, name     many rows
//!   entries   id, amount, name                   those that were inserted
//!   lefts     id, k, v     rights  id, k, v      for joins
//! ```

use crate::dialects::sql::SqlProtocol;
use crate::load::random::mix;

/// Branches that accounts are of.
pub const BRANCHES: i64 = 100;
/// Rows of each table that is joined.
pub const JOINED: i64 = 1000;
/// Rows of an INSERT that fills: few enough for a short statement everywhere.
const ROWS_AT_ONCE: i64 = 200;

/// What the server's tables hold.
#[derive(Clone, Debug)]
pub struct Tables {
    /// Rows of `accounts`, numbered from 1.
    pub accounts: i64,
    /// Rows of `entries`, numbered from 1.
    pub entries: i64,
    /// The sum of `hits`.
    pub hits: i64,
}

/// The branch of an account.
#[must_use]
pub const fn branch(id: i64) -> i64 {
    (mix(id.cast_unsigned()) % BRANCHES.cast_unsigned()).cast_signed()
}

/// What is on an account, or in an entry.
#[must_use]
pub const fn amount(id: i64) -> i64 {
    (mix(!id.cast_unsigned()) % 1000).cast_signed()
}

/// An account's or an entry's name, written into `to`.
pub fn name(id: i64, to: &mut String) {
    use std::fmt::Write;
    to.clear();
    // Writing into a text cannot fail.
    let _ = write!(to, "name-{id:07}");
}

/// `k` of a row of `lefts`: each number from 1 to [`JOINED`] once, in another order.
#[must_use]
pub const fn left_key(id: i64) -> i64 {
    id * 7 % JOINED + 1
}

/// `k` of a row of `rights`, likewise.
#[must_use]
pub const fn right_key(id: i64) -> i64 {
    id * 3 % JOINED + 1
}

impl Tables {
    /// Just filled.
    #[must_use]
    pub const fn new(accounts: i64) -> Self {
        Self { accounts, entries: 0, hits: 0 }
    }

    /// The statements that make the tables.
    #[must_use]
    pub fn definitions(protocol: &dyn SqlProtocol) -> Vec<String> {
        let accounts =
            [("id", false), ("branch", false), ("amount", false), ("hits", false), ("name", true)];
        let joined = [("id", false), ("k", false), ("v", false)];
        vec![
            protocol.create_table("accounts", &accounts),
            protocol.create_table("entries", &[("id", false), ("amount", false), ("name", true)]),
            protocol.create_table("lefts", &joined),
            protocol.create_table("rights", &joined),
        ]
    }

    /// The statements that fill them, and how many rows each inserts.
    pub fn fills(&self) -> impl Iterator<Item = (String, u64)> {
        let mut of_name = String::new();
        let accounts = inserts("accounts", self.accounts, move |id| {
            name(id, &mut of_name);
            format!("({id},{},{},0,'{of_name}')", branch(id), amount(id))
        });
        let lefts =
            inserts("lefts", JOINED, |id| format!("({id},{},{})", left_key(id), amount(id)));
        let rights =
            inserts("rights", JOINED, |id| format!("({id},{},{})", right_key(id), branch(id)));
        accounts.chain(lefts).chain(rights)
    }
}

fn inserts(
    table: &'static str,
    rows: i64,
    mut row: impl FnMut(i64) -> String,
) -> impl Iterator<Item = (String, u64)> {
    let begins = (1..=rows).step_by(ROWS_AT_ONCE as usize);
    begins.map(move |begin| {
        let ids = begin..=rows.min(begin + ROWS_AT_ONCE - 1);
        let count = (ids.end() - ids.start() + 1).cast_unsigned();
        let rows: Vec<String> = ids.map(&mut row).collect();
        (format!("INSERT INTO {table} VALUES {}", rows.join(",")), count)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn keys_of_joined_rows_are_each_number_once() {
        for key in [left_key, right_key] {
            let keys: BTreeSet<i64> = (1..=JOINED).map(key).collect();
            assert_eq!(keys, (1..=JOINED).collect());
        }
    }

    #[test]
    fn fills_have_every_row_once() {
        let rows: u64 = Tables::new(1001).fills().map(|(_, rows)| rows).sum();
        assert_eq!(rows, 1001 + 2 * JOINED.cast_unsigned());
        let (first, count) = Tables::new(2).fills().next().unwrap();
        assert_eq!(count, 2);
        assert!(
            first.starts_with("INSERT INTO accounts VALUES (1,")
                && first.ends_with("'name-0000002')")
        );
    }
}
