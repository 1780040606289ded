//! Sets that each user fills with members one by one, and reads whole once they are complete.

use super::Traffic;
use super::iterations::Progress;
use crate::dialects::Dialect;
use crate::load::random::{Random, mix};
use crate::operation::{Answer, Operation};

/// See the module.
pub struct Sets<'a> {
    space: &'static str,
    read: bool,
    members: u32,
    progress: &'a mut Progress,
    /// Sets that each user has complete.
    complete: Vec<u32>,
    random: Random,
}

impl<'a> Sets<'a> {
    /// Sets of `members` members, filled or read by `users` users.
    #[must_use]
    pub fn new(
        space: &'static str,
        read: bool,
        members: u32,
        progress: &'a mut Progress,
        users: usize,
        seed: u64,
    ) -> Self {
        let complete = (0..users).map(|user| progress.of(user).made / members).collect();
        Self { space, read, members, progress, complete, random: Random::new(mix(seed)) }
    }

    fn members_of(&self, set: &[u8]) -> Answer {
        Answer::Members((0..self.members).map(|number| member(set, number)).collect())
    }
}

/// Which set it is stands in the member too, so that no other set's members pass.
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
        if self.read {
            let complete = self.complete[user];
            if complete == 0 {
                return false;
            }
            let number = self.random.below(complete);
            *operation = Operation::Members { set: set(self.space, user, number) };
            return true;
        }
        let made = &mut self.progress.of(user).made;
        let set = set(self.space, user, *made / self.members);
        let member = member(&set, *made % self.members);
        *made += 1;
        *operation = Operation::AddMember { set, member };
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
            Operation::Members { set } => self.members_of(set),
            _ => Answer::Existed(false),
        };
        dialect.is_right(operation, &right, frame)
    }

    fn expected(&self, _: usize, _: usize, operation: &Operation) -> String {
        match operation {
            Operation::Members { .. } => format!("its {} members", self.members),
            _ => "that it was not there yet".to_owned(),
        }
    }
}
