//! Groups of members that each user makes one by one, and reads whole once they are complete: what
//! sets and indexed rows have in common.

use super::iterations::Progress;
use super::source::Share;
use crate::load::random::{Random, mix};

/// See the module.
pub struct Groups<'a> {
    read: bool,
    members: u32,
    progress: &'a mut Progress,
    /// Groups that each user has complete.
    complete: Vec<u32>,
    random: Random,
    share: Share,
}

/// What a user does next with one of its groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Adds a member, each once, in order.
    Add {
        /// The group's owner among all users.
        owner: usize,
        /// Which of its groups.
        group: u32,
        /// Which member.
        member: u32,
    },
    /// Reads a group that is complete.
    Read {
        /// The group's owner among all users.
        owner: usize,
        /// Which of its groups.
        group: u32,
    },
}

impl<'a> Groups<'a> {
    /// Groups of `members`, made or read by `users` users.
    #[must_use]
    pub fn new(
        read: bool,
        members: u32,
        progress: &'a mut Progress,
        users: usize,
        seed: u64,
        share: Share,
    ) -> Self {
        let complete = (0..users).map(|user| progress.of(user).made / members).collect();
        Self { read, members, progress, complete, random: Random::new(mix(seed)), share }
    }

    /// How many members a group has.
    #[must_use]
    pub const fn members(&self) -> u32 {
        self.members
    }

    /// What user `user` does next; `None` when it has nothing to read.
    pub fn next(&mut self, user: usize) -> Option<Turn> {
        let owner = self.share.user(user);
        if self.read {
            let complete = self.complete[user];
            return (complete > 0)
                .then(|| Turn::Read { owner, group: self.random.below(complete) });
        }
        let made = &mut self.progress.of(user).made;
        let (group, member) = (*made / self.members, *made % self.members);
        *made += 1;
        Some(Turn::Add { owner, group, member })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_complete_groups_are_read_and_owners_are_one_thread_s() {
        let mut progress = Progress::default();
        let share = Share { part: 1, parts: 3 };
        let mut make = Groups::new(false, 2, &mut progress, 2, 1, share);
        for (group, member) in [(0, 0), (0, 1), (1, 0)] {
            assert_eq!(make.next(1), Some(Turn::Add { owner: 4, group, member }));
        }
        let mut read = Groups::new(true, 2, &mut progress, 2, 1, share);
        assert_eq!(read.next(0), None);
        for _ in 0..10 {
            assert_eq!(read.next(1), Some(Turn::Read { owner: 4, group: 0 }));
        }
    }
}
