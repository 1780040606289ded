//! Rows with a secondary index: each user inserts its own groups, and reads those that are complete.

use super::Traffic;
use super::iterations::Progress;
use super::value::write_value;
use crate::dialects::Dialect;
use crate::load::random::{Random, mix};
use crate::operation::{Answer, Operation};

/// See the module.
pub struct Rows<'a> {
    read: bool,
    members: u32,
    value_bytes: usize,
    progress: &'a mut Progress,
    /// Groups that each user has complete.
    complete: Vec<u32>,
    random: Random,
}

impl<'a> Rows<'a> {
    /// Groups of `members` rows, inserted or read by `users` users.
    #[must_use]
    pub fn new(
        read: bool,
        members: u32,
        value_bytes: usize,
        progress: &'a mut Progress,
        users: usize,
        seed: u64,
    ) -> Self {
        let complete = (0..users).map(|user| progress.of(user).made / members).collect();
        Self { read, members, value_bytes, progress, complete, random: Random::new(mix(seed)) }
    }

    fn row(&self, group: u64, number: u32) -> (u64, Vec<u8>) {
        let id = group * u64::from(self.members) + u64::from(number);
        let mut value = Vec::new();
        write_value(id, 1, self.value_bytes, &mut value);
        (id, value)
    }
}

/// A user's groups are its own: its number is the upper half.
const fn group(user: usize, number: u32) -> u64 {
    (user as u64) << 24 | number as u64
}

impl Traffic for Rows<'_> {
    fn next(&mut self, user: usize, _: usize, operation: &mut Operation) -> bool {
        if self.read {
            let complete = self.complete[user];
            if complete == 0 {
                return false;
            }
            *operation = Operation::FindByGroup { group: group(user, self.random.below(complete)) };
            return true;
        }
        let made = self.progress.of(user).made;
        self.progress.of(user).made += 1;
        let group = group(user, made / self.members);
        let (id, value) = self.row(group, made % self.members);
        *operation = Operation::InsertRow { id, group, value };
        true
    }

    fn judge(
        &mut self,
        _: usize,
        _: usize,
        operation: &Operation,
        dialect: &dyn Dialect,
        frame: &[u8],
    ) -> bool {
        let right = match operation {
            Operation::FindByGroup { group } => {
                Answer::Rows((0..self.members).map(|number| self.row(*group, number)).collect())
            }
            _ => Answer::Done,
        };
        dialect.is_right(operation, &right, frame)
    }

    fn expected(&self, _: usize, _: usize, operation: &Operation) -> String {
        match operation {
            Operation::FindByGroup { .. } => format!("its {} rows", self.members),
            _ => "done".to_owned(),
        }
    }
}
