//! A traffic in a dialect, as a workload for the driver.

use super::source::{Reply, Traffic};
use crate::dialects::{Dialect, Framed};
use crate::load::workload::{Check, Whose, Workload};
use crate::operation::Operation;

/// See the module.
pub struct Speaking<'a> {
    dialect: Box<dyn Dialect>,
    traffic: Box<dyn Traffic + 'a>,
    depth: usize,
    /// One per request that can be under way, `depth` for each user.
    operations: Vec<Operation>,
    requests: Vec<u8>,
    refused: Option<String>,
}

/// Room to begin with; the driver makes more where replies need it.
const REPLY_BYTES_GUESS: usize = 128;

impl<'a> Speaking<'a> {
    /// Lets `users` users send batches of `depth` requests each.
    #[must_use]
    pub fn new(
        dialect: Box<dyn Dialect>,
        traffic: Box<dyn Traffic + 'a>,
        users: usize,
        depth: usize,
    ) -> Self {
        Self {
            dialect,
            traffic,
            depth,
            operations: vec![super::blank(); users * depth],
            requests: Vec::new(),
            refused: None,
        }
    }
}

impl Workload for Speaking<'_> {
    fn batch(&mut self, user: usize, keys: &mut Vec<u32>) -> &[u8] {
        self.requests.clear();
        for slot in 0..self.depth {
            let request = user * self.depth + slot;
            let operation = &mut self.operations[request];
            if !self.traffic.next(user, request, operation) {
                break;
            }
            self.dialect.encode(request as u64, operation, &mut self.requests);
            keys.push(slot as u32);
        }
        &self.requests
    }

    fn whose(&self, bytes: &[u8]) -> Whose {
        if !self.dialect.tags_replies() {
            return Whose::Next;
        }
        match self.dialect.frame(None, bytes) {
            Ok(Framed::Incomplete) => Whose::Incomplete,
            Ok(Framed::Frame { tag: Some(tag), .. }) => match usize::try_from(tag) {
                Ok(request) if request < self.operations.len() => {
                    Whose::Of { user: request / self.depth, slot: request % self.depth }
                }
                _ => Whose::Nobody,
            },
            Ok(Framed::Frame { tag: None, .. }) | Err(_) => Whose::Nobody,
        }
    }

    fn check(&mut self, user: usize, key: u32, bytes: &[u8]) -> Check {
        let request = user * self.depth + key as usize;
        let operation = &self.operations[request];
        let length = match self.dialect.frame(Some(operation), bytes) {
            Ok(Framed::Incomplete) => return Check::Incomplete,
            Ok(Framed::Frame { length, .. }) => length,
            Err(error) => {
                self.refused = Some(error.to_string());
                return Check::Wrong;
            }
        };
        let frame = &bytes[..length];
        let dialect = self.dialect.as_ref();
        if self.traffic.judge(&Reply::new((user, request), operation, dialect, frame)) {
            return Check::Right(length);
        }
        self.refused = dialect.answer(operation, frame).err().map(|refused| refused.to_string());
        Check::Wrong
    }

    fn right_answer(&self, user: usize, key: u32) -> Vec<u8> {
        let request = user * self.depth + key as usize;
        self.traffic.expected(user, request, &self.operations[request]).into_bytes()
    }

    fn about(&self, user: usize, key: u32) -> String {
        let operation = &self.operations[user * self.depth + key as usize];
        let text = match operation {
            Operation::Set { key, .. } | Operation::Get { key } | Operation::Delete { key } => {
                format!("{} {}", operation.kind(), key.escape_ascii())
            }
            Operation::Add { key, by } => format!("adding {by} to {}", key.escape_ascii()),
            Operation::AddMember { set, .. } | Operation::Members { set } => {
                format!("{}: {}", operation.kind(), set.escape_ascii())
            }
            Operation::SetMany { pairs } => format!("setting {} keys", pairs.len()),
            other => format!("{other:?}"),
        };
        match &self.refused {
            Some(refused) => format!("{text} (refused: {refused})"),
            None => text,
        }
    }

    fn lane(&self, _: usize) -> usize {
        0
    }

    fn reply_bytes_max(&self) -> usize {
        self.depth * REPLY_BYTES_GUESS
    }
}
