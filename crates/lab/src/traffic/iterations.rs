//! Keys made of user and iteration, each set, then read, then deleted, as the published k6 scripts
//! do.

use serde::Serialize;

use super::source::{Reply, Share, Traffic, as_delete, as_get, as_set};
use super::value::{version_of, write_value};
use crate::operation::{Answer, Operation, OperationKind};

/// What is done with each key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Deed {
    /// Set the next iteration's key.
    Set,
    /// Read the keys that were set, again and again.
    Get,
    /// Delete them, once.
    Delete,
}

impl Deed {
    /// The operation that it takes.
    #[must_use]
    pub const fn kind(self) -> OperationKind {
        match self {
            Self::Set => OperationKind::Set,
            Self::Get => OperationKind::Get,
            Self::Delete => OperationKind::Delete,
        }
    }
}

/// How far each user came.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    users: Vec<Reached>,
}

/// The progress of one user: items `gone .. made` exist.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reached {
    /// Made so far.
    pub made: u32,
    /// How many of them, the first ones, are gone again.
    pub gone: u32,
}

impl Progress {
    /// User `user`'s, made room for.
    pub fn of(&mut self, user: usize) -> &mut Reached {
        if self.users.len() <= user {
            self.users.resize(user + 1, Reached::default());
        }
        &mut self.users[user]
    }
}

/// See the module.
pub struct Iterations<'a> {
    space: &'static str,
    deed: Deed,
    value_bytes: usize,
    progress: &'a mut Progress,
    cursors: Vec<u32>,
    share: Share,
}

impl<'a> Iterations<'a> {
    /// `deed` by `users` users.
    #[must_use]
    pub fn new(
        space: &'static str,
        deed: Deed,
        value_bytes: usize,
        progress: &'a mut Progress,
        users: usize,
        share: Share,
    ) -> Self {
        Self { space, deed, value_bytes, progress, cursors: vec![0; users], share }
    }
}

fn write_key(space: &str, user: usize, iteration: u32, to: &mut Vec<u8>) {
    use std::io::Write as _;
    to.clear();
    // Writing to a vector does not fail.
    let _ = write!(to, "{space}:{user}:{iteration}");
}

/// The number that a user's iteration has for its value.
const fn number(user: usize, iteration: u32) -> u64 {
    (user as u64) << 32 | iteration as u64
}

/// The iteration that `key` names: requests of one user may be under way together.
fn iteration_of(key: &[u8]) -> Option<u32> {
    let digits = key.rsplit(|&byte| byte == b':').next()?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

impl Traffic for Iterations<'_> {
    fn next(&mut self, user: usize, _: usize, operation: &mut Operation) -> bool {
        let reached = self.progress.of(user);
        match self.deed {
            Deed::Set => {
                let iteration = reached.made;
                reached.made += 1;
                let (key, value) = as_set(operation);
                let user = self.share.user(user);
                write_key(self.space, user, iteration, key);
                write_value(number(user, iteration), 1, self.value_bytes, value);
            }
            Deed::Get => {
                let there = reached.made - reached.gone;
                if there == 0 {
                    return false;
                }
                let iteration = reached.gone + self.cursors[user] % there;
                self.cursors[user] = self.cursors[user].wrapping_add(1);
                write_key(self.space, self.share.user(user), iteration, as_get(operation));
            }
            Deed::Delete => {
                if reached.gone == reached.made {
                    return false;
                }
                write_key(self.space, self.share.user(user), reached.gone, as_delete(operation));
                reached.gone += 1;
            }
        }
        true
    }

    fn judge(&mut self, reply: &Reply<'_>) -> bool {
        match reply.operation {
            Operation::Get { key } => {
                let Ok(Some(value)) = reply.value() else { return false };
                iteration_of(key).is_some_and(|iteration| {
                    let user = self.share.user(reply.user);
                    version_of(number(user, iteration), &value, self.value_bytes) == Some(1)
                })
            }
            Operation::Delete { .. } => reply.is(&Answer::Existed(true)),
            _ => reply.is(&Answer::Done),
        }
    }

    fn expected(&self, user: usize, _: usize, operation: &Operation) -> String {
        match operation {
            Operation::Get { key } => {
                let mut value = Vec::new();
                let number = number(self.share.user(user), iteration_of(key).unwrap_or(0));
                write_value(number, 1, self.value_bytes, &mut value);
                value.escape_ascii().to_string()
            }
            Operation::Delete { .. } => "that it was there".to_owned(),
            _ => "done".to_owned(),
        }
    }
}
