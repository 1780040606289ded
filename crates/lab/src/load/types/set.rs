//! One set: members that always stay, and members that come and go.

use crate::load::question::{Question, ask};
use crate::load::words::Word::{Is, Open};
use crate::load::words::{NAME_BYTES, Pattern, array, bulk, integer, name};

use super::{MEMBERS_AT_ONCE, members_of};

const KEY: &str = "set";

/// The expected content of the server. The first numbers stay; half of the others exist initially.
#[derive(Debug)]
pub struct Set {
    stay: u32,
    present: Vec<bool>,
}

impl Set {
    /// About `count` members: half of them stay, the others are any half of as many as `count`.
    #[must_use]
    pub fn new(count: u32) -> Self {
        let stay = count / 2;
        Self {
            stay,
            present: (0..stay + count).map(|number| number < stay || number % 2 == 1).collect(),
        }
    }

    const fn numbers(&self) -> u32 {
        self.present.len() as u32
    }

    fn present_of(&self, about: u32) -> impl Iterator<Item = u32> + '_ {
        members_of(about, self.numbers()).filter(|&number| self.present[number as usize])
    }
}

/// `SADD` of new members, many at once.
pub fn fill(set: &Set) -> impl Question {
    ask(
        set,
        set.numbers().div_ceil(MEMBERS_AT_ONCE),
        |set, about, to| {
            array(2 + set.present_of(about).count(), to);
            bulk(b"SADD", to);
            bulk(KEY.as_bytes(), to);
            for number in set.present_of(about) {
                bulk(&name(b'm', number), to);
            }
        },
        |set, about, to| integer(set.present_of(about).count() as u64, to),
    )
}

fn request(command: &str) -> Pattern {
    Pattern::new(&[Is(command), Is(KEY), Open(NAME_BYTES)])
}

/// `SADD` of a member that is there and stays.
pub fn sadd(set: &Set) -> impl Question {
    ask(set, set.stay, request("SADD").about(b'm'), |_, _, to| integer(0, to))
}

/// `SADD` of a member that is missing, or `SREM` where it is there.
pub fn sadd_srem(set: &mut Set) -> impl Question {
    let (add, remove) = (request("SADD"), request("SREM"));
    let count = set.numbers() - set.stay;
    let write = move |set: &mut &mut Set, about, to: &mut Vec<u8>| {
        let number = set.stay + about;
        let present = &mut set.present[number as usize];
        let request = if *present { &remove } else { &add };
        request.append(to).word(0).copy_from_slice(&name(b'm', number));
        *present = !*present;
    };
    ask(set, count, write, |_, _, to| integer(1, to)).ordered()
}

/// `SISMEMBER`, of a member two times out of three.
pub fn sismember(set: &Set) -> impl Question {
    ask(set, set.numbers(), request("SISMEMBER").about(b'm'), |set, about, to| {
        integer(set.present[about as usize].into(), to);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_come_and_go() {
        let mut set = Set::new(1000);
        assert_eq!(set.present.iter().filter(|&&present| present).count(), 1000);
        assert_eq!(sadd(&set).count(), 500);
        for turn in 0..4 {
            let number = set.stay + 7;
            let expected = if set.present[number as usize] { "SREM" } else { "SADD" };
            let mut request = Vec::new();
            sadd_srem(&mut set).write(7, &mut request);
            let text = String::from_utf8(request).unwrap();
            assert!(text.contains(expected) && text.contains("m:00000507"), "{turn}: {text}");
            let mut answer = Vec::new();
            sismember(&set).answer(number, &mut answer);
            assert_eq!(answer, if expected == "SADD" { b":1\r\n" } else { b":0\r\n" });
        }
    }
}
