//! Sets that each user fills with members one by one, and reads whole once they are complete.

use super::groups::{Groups, Turn};
use super::source::{Reply, Traffic};
use crate::operation::{Answer, Operation};

/// See the module.
pub struct Sets<'a> {
    space: &'static str,
    groups: Groups<'a>,
}

impl<'a> Sets<'a> {
    /// These groups as sets.
    #[must_use]
    pub const fn new(space: &'static str, groups: Groups<'a>) -> Self {
        Self { space, groups }
    }

    fn members_of(&self, set: &[u8]) -> Answer {
        Answer::Members((0..self.groups.members()).map(|number| member(set, number)).collect())
    }
}

/// A member names its set, so that no other set's members pass.
fn member(set: &[u8], number: u32) -> Vec<u8> {
    let mut text = b"m:".to_vec();
    text.extend_from_slice(set);
    text.extend_from_slice(format!(":{number:06}").as_bytes());
    text
}

fn set(space: &str, user: usize, number: u32) -> Vec<u8> {
    format!("{space}:{user}:{number}").into_bytes()
}

impl Traffic for Sets<'_> {
    fn next(&mut self, user: usize, _: usize, operation: &mut Operation) -> bool {
        *operation = match self.groups.next(user) {
            None => return false,
            Some(Turn::Read { owner, group }) => {
                Operation::Members { set: set(self.space, owner, group) }
            }
            Some(Turn::Add { owner, group, member: number }) => {
                let set = set(self.space, owner, group);
                let member = member(&set, number);
                Operation::AddMember { set, member }
            }
        };
        true
    }

    fn judge(&mut self, reply: &Reply<'_>) -> bool {
        let right = match reply.operation {
            Operation::Members { set } => self.members_of(set),
            _ => Answer::Existed(false),
        };
        reply.is(&right)
    }

    fn expected(&self, _: usize, _: usize, operation: &Operation) -> String {
        match operation {
            Operation::Members { .. } => format!("its {} members", self.groups.members()),
            _ => "that it was not there yet".to_owned(),
        }
    }
}
