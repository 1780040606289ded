//! Rows with a secondary index: each user inserts its own groups, and reads those that are
//! complete.

use super::groups::{Groups, Turn};
use super::source::{Reply, Traffic};
use super::value::write_value;
use crate::operation::{Answer, Operation};

/// See the module.
pub struct Rows<'a> {
    groups: Groups<'a>,
    value_bytes: usize,
}

impl<'a> Rows<'a> {
    /// Rows with values of `value_bytes` bytes, in these groups.
    #[must_use]
    pub const fn new(groups: Groups<'a>, value_bytes: usize) -> Self {
        Self { groups, value_bytes }
    }

    fn row(&self, group: u64, number: u32) -> (u64, Vec<u8>) {
        let id = group * u64::from(self.groups.members()) + u64::from(number);
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
        *operation = match self.groups.next(user) {
            None => return false,
            Some(Turn::Read { owner, group: number }) => {
                Operation::FindByGroup { group: group(owner, number) }
            }
            Some(Turn::Add { owner, group: number, member }) => {
                let group = group(owner, number);
                let (id, value) = self.row(group, member);
                Operation::InsertRow { id, group, value }
            }
        };
        true
    }

    fn judge(&mut self, reply: &Reply<'_>) -> bool {
        let right = match reply.operation {
            Operation::FindByGroup { group } => Answer::Rows(
                (0..self.groups.members()).map(|number| self.row(*group, number)).collect(),
            ),
            _ => Answer::Done,
        };
        reply.is(&right)
    }

    fn expected(&self, _: usize, _: usize, operation: &Operation) -> String {
        match operation {
            Operation::FindByGroup { .. } => format!("its {} rows", self.groups.members()),
            _ => "done".to_owned(),
        }
    }
}
