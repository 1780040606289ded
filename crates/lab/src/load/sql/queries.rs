//! Queries over many rows, and their one right answer.

use super::tables::{self, BRANCHES, JOINED, Tables};
use crate::dialects::sql::{Said, Value};

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Query {
    /// Two tables, by the primary key of one.
    JoinByKey,
    /// Two tables, by columns that no index is over.
    Join,
    /// A sum over all accounts.
    Sum,
    /// The same of each branch.
    GroupBy,
    /// What updates have counted.
    Hits,
    /// Rows that were inserted.
    Entries,
}

impl Query {
    /// Its text.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::JoinByKey => {
                "SELECT COUNT(*), SUM(lefts.v + rights.v) FROM lefts, rights WHERE lefts.k = rights.id"
            }
            Self::Join => {
                "SELECT COUNT(*), SUM(lefts.v + rights.v) FROM lefts, rights WHERE lefts.k = rights.k"
            }
            Self::Sum => "SELECT SUM(amount) FROM accounts",
            Self::GroupBy => {
                "SELECT branch, COUNT(*), SUM(amount) FROM accounts GROUP BY branch ORDER BY branch"
            }
            Self::Hits => "SELECT SUM(hits) FROM accounts",
            Self::Entries => "SELECT COUNT(*) FROM entries",
        }
    }

    /// The values that it has to answer, row by row, and how many are a row.
    #[must_use]
    pub fn answer(self, tables: &Tables) -> (usize, Vec<Value>) {
        let (columns, values): (usize, Vec<i64>) = match self {
            Self::JoinByKey => (2, joined(|right| right)),
            Self::Join => (2, joined(tables::right_key)),
            Self::Sum => (1, vec![(1..=tables.accounts).map(tables::amount).sum()]),
            Self::GroupBy => {
                let mut groups = vec![(0, 0); BRANCHES as usize];
                for id in 1..=tables.accounts {
                    let (count, sum) = &mut groups[tables::branch(id) as usize];
                    *count += 1;
                    *sum += tables::amount(id);
                }
                let rows = groups.into_iter().enumerate().filter(|(_, (count, _))| *count > 0);
                (3, rows.flat_map(|(branch, (count, sum))| [branch as i64, count, sum]).collect())
            }
            Self::Hits => (1, vec![tables.hits]),
            Self::Entries => (1, vec![tables.entries]),
        };
        (columns, values.into_iter().map(Value::Integer).collect())
    }
}

/// Whether these are the rows that were said.
#[must_use]
pub fn is_right((columns, values): &(usize, Vec<Value>), said: &Said<'_>) -> bool {
    let Said::Rows { columns: said, cells } = said else { return false };
    columns == said
        && cells.len() == values.len()
        && cells.iter().zip(values).all(|(cell, value)| cell.is(value))
}

/// Rows and the sum of `v` of both sides; `key` is what a row of `rights` is joined by.
fn joined(key: impl Fn(i64) -> i64) -> Vec<i64> {
    let mut right = vec![0; JOINED as usize + 1];
    for id in 1..=JOINED {
        right[key(id) as usize] = tables::branch(id);
    }
    let sum =
        (1..=JOINED).map(|id| tables::amount(id) + right[tables::left_key(id) as usize]).sum();
    vec![JOINED, sum]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialects::sql::Cell;

    #[test]
    fn groups_add_up_to_the_sum_and_another_answer_is_wrong() {
        let tables = Tables::new(5000);
        let right = Query::GroupBy.answer(&tables);
        let number = |value: &Value| match value {
            Value::Integer(number) => *number,
            Value::Text(_) => panic!("{value:?}"),
        };
        let column =
            |column: usize| right.1.iter().skip(column).step_by(3).map(number).sum::<i64>();
        assert_eq!(column(1), 5000);
        assert_eq!(Query::Sum.answer(&tables).1, [Value::Integer(column(2))]);
        let cells = right.1.iter().map(|value| Cell::Integer(number(value)));
        let mut said = Said::Rows { columns: 3, cells: cells.collect() };
        assert!(is_right(&right, &said));
        let Said::Rows { cells, .. } = &mut said else { panic!() };
        cells[5] = Cell::Integer(-1);
        assert!(!is_right(&right, &said));
        assert!(!is_right(&right, &Said::Refused("no".to_owned())));
    }
}
