//! Statements about one row or a short range, by many users at once.

use std::fmt::Write;

use super::tables::{self, Tables};
use crate::dialects::sql::{Answers, Cell, Said, SqlProtocol, Value};
use crate::load::random::Random;
use crate::load::workload::{Check, Whose, Workload};

/// Rows of a range.
pub const RANGE: i64 = 100;

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// A row by its key, by a prepared statement.
    Prepared,
    /// The same by a text with the key in it.
    Text,
    /// [`RANGE`] rows in the order of keys, prepared.
    Range,
    /// A new row, prepared.
    Insert,
    /// One more hit of a row, prepared.
    Update,
}

const COLUMNS: usize = 4;

impl Point {
    /// The statement to prepare.
    #[must_use]
    pub const fn statement(self) -> &'static str {
        match self {
            Self::Prepared | Self::Text => {
                "SELECT id, branch, amount, name FROM accounts WHERE id = ?"
            }
            Self::Range => {
                "SELECT id, branch, amount, name FROM accounts WHERE id BETWEEN ? AND ? ORDER BY id"
            }
            Self::Insert => "INSERT INTO entries VALUES (?, ?, ?)",
            Self::Update => "UPDATE accounts SET hits = hits + 1 WHERE id = ?",
        }
    }

    const fn answers(self) -> Answers {
        match self {
            Self::Text => Answers::Text,
            _ => Answers::Prepared,
        }
    }

    /// Room for an answer, roughly.
    const fn answer_bytes(self) -> usize {
        match self {
            Self::Range => RANGE as usize * 48 + 400,
            _ => 400,
        }
    }
}

/// The statement on a server, by `depth` at once of each user.
pub struct Points<'a> {
    point: Point,
    protocol: &'a dyn SqlProtocol,
    /// The server's number of the prepared statement, by user.
    statements: Vec<u64>,
    tables: &'a mut Tables,
    depth: usize,
    random: Random,
    /// What each request that can be under way is about, `depth` for each user.
    asked: Vec<i64>,
    requests: Vec<u8>,
    text: String,
    refused: Option<String>,
}

impl<'a> Points<'a> {
    /// `statements` has the prepared statement of each user.
    #[must_use]
    pub fn new(
        point: Point,
        protocol: &'a dyn SqlProtocol,
        statements: Vec<u64>,
        tables: &'a mut Tables,
        depth: usize,
        seed: u64,
    ) -> Self {
        let asked = vec![0; statements.len() * depth];
        let random = Random::new(seed);
        let (requests, text) = (Vec::new(), String::new());
        Self {
            point,
            protocol,
            statements,
            tables,
            depth,
            random,
            asked,
            requests,
            text,
            refused: None,
        }
    }

    /// The number of the next row to ask about.
    fn next(&mut self) -> i64 {
        let below = |random: &mut Random, count: i64| {
            1 + i64::from(random.below(u32::try_from(count).unwrap_or(u32::MAX)))
        };
        match self.point {
            Point::Range => below(&mut self.random, (self.tables.accounts - RANGE + 1).max(1)),
            Point::Insert => {
                self.tables.entries += 1;
                self.tables.entries
            }
            _ => below(&mut self.random, self.tables.accounts),
        }
    }

    fn write(&mut self, user: usize, tag: u64, id: i64) {
        let statement = self.statements[user];
        let values: &[Value] = match self.point {
            Point::Text => {
                self.text.clear();
                let (head, _) = self.point.statement().split_at(self.point.statement().len() - 1);
                // Writing into a text cannot fail.
                let _ = write!(self.text, "{head}{id}");
                return self.protocol.text(tag, &self.text, &mut self.requests);
            }
            Point::Prepared | Point::Update => &[Value::Integer(id)],
            Point::Range => &[Value::Integer(id), Value::Integer(id + RANGE - 1)],
            Point::Insert => {
                tables::name(id, &mut self.text);
                let name = Value::Text(std::mem::take(&mut self.text));
                &[Value::Integer(id), Value::Integer(tables::amount(id)), name]
            }
        };
        self.protocol.execute(tag, statement, values, &mut self.requests);
    }

    fn is_right(&mut self, id: i64, said: &Said<'_>) -> bool {
        match (self.point, said) {
            (Point::Insert, Said::Changed(1)) => true,
            (Point::Update, Said::Changed(1)) => {
                self.tables.hits += 1;
                true
            }
            (
                Point::Prepared | Point::Text | Point::Range,
                Said::Rows { columns: COLUMNS, cells },
            ) => {
                let rows =
                    if self.point == Point::Range { RANGE.min(self.tables.accounts) } else { 1 };
                let is_row = |(id, cells): (i64, &[Cell<'_>])| {
                    tables::name(id, &mut self.text);
                    let numbers = [id, tables::branch(id), tables::amount(id)];
                    let number =
                        |(cell, number): (&Cell<'_>, i64)| cell.is(&Value::Integer(number));
                    cells.iter().zip(numbers).all(number)
                        && cells[COLUMNS - 1] == Cell::Text(self.text.as_bytes())
                };
                cells.len() == rows as usize * COLUMNS
                    && (id..).zip(cells.chunks(COLUMNS)).all(is_row)
            }
            _ => false,
        }
    }
}

impl Workload for Points<'_> {
    fn batch(&mut self, user: usize, keys: &mut Vec<u32>) -> &[u8] {
        self.requests.clear();
        for slot in 0..self.depth {
            let request = user * self.depth + slot;
            let id = self.next();
            self.asked[request] = id;
            self.write(user, request as u64, id);
            keys.push(slot as u32);
        }
        &self.requests
    }

    fn whose(&self, bytes: &[u8]) -> Whose {
        if !self.protocol.pipelines() {
            return Whose::Next;
        }
        match self.protocol.tag(bytes) {
            Ok(None) => Whose::Incomplete,
            Ok(Some(tag)) => match usize::try_from(tag) {
                Ok(request) if request < self.asked.len() => {
                    Whose::Of { user: request / self.depth, slot: request % self.depth }
                }
                _ => Whose::Nobody,
            },
            Err(_) => Whose::Nobody,
        }
    }

    fn check(&mut self, user: usize, key: u32, bytes: &[u8]) -> Check {
        let id = self.asked[user * self.depth + key as usize];
        let reply = match self.protocol.reply(self.point.answers(), bytes) {
            Ok(None) => return Check::Incomplete,
            Ok(Some(reply)) => reply,
            Err(error) => {
                self.refused = Some(error.to_string());
                return Check::Wrong;
            }
        };
        if self.is_right(id, &reply.said) {
            return Check::Right(reply.length);
        }
        self.refused = Some(format!("{:?}", reply.said));
        Check::Wrong
    }

    fn right_answer(&self, _: usize, _: u32) -> Vec<u8> {
        match self.point {
            Point::Insert | Point::Update => b"one row changed".to_vec(),
            _ => b"the rows as they were inserted".to_vec(),
        }
    }

    fn about(&self, user: usize, key: u32) -> String {
        let id = self.asked[user * self.depth + key as usize];
        let said = self.refused.as_deref().unwrap_or_default();
        format!("{} of {id} ({said:.400})", self.point.statement())
    }

    fn lane(&self, _: usize) -> usize {
        0
    }

    fn reply_bytes_max(&self) -> usize {
        self.depth * self.point.answer_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialects::sql::SqlKind;

    #[test]
    fn only_the_row_that_was_asked_for_is_right() {
        let protocol = SqlKind::Iproto.protocol();
        let mut tables = Tables::new(1000);
        let mut points =
            Points::new(Point::Prepared, protocol.as_ref(), vec![1], &mut tables, 1, 1);
        let row = |id: i64, name: &'static [u8]| {
            let numbers = [id, tables::branch(id), tables::amount(id)].map(Cell::Integer);
            Said::Rows { columns: 4, cells: [numbers.as_slice(), &[Cell::Text(name)]].concat() }
        };
        assert!(points.is_right(7, &row(7, b"name-0000007")));
        assert!(!points.is_right(8, &row(7, b"name-0000007")));
        assert!(!points.is_right(7, &row(7, b"name-0000008")));
        assert!(!points.is_right(7, &Said::Rows { columns: 4, cells: Vec::new() }));
        assert!(!points.is_right(7, &Said::Changed(1)));
    }

    #[test]
    fn changes_are_counted_once_they_are_answered() {
        let protocol = SqlKind::MySql.protocol();
        let mut tables = Tables::new(1000);
        let mut points = Points::new(Point::Update, protocol.as_ref(), vec![1], &mut tables, 1, 1);
        let mut keys = Vec::new();
        assert!(!points.batch(0, &mut keys).is_empty());
        assert_eq!(points.check(0, keys[0], &[7, 0, 0, 1, 0, 1, 0, 2, 0, 0, 0]), Check::Right(11));
        assert_eq!(points.check(0, keys[0], &[7, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0]), Check::Wrong);
        assert_eq!(tables.hits, 1);
    }
}
