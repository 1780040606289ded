//! One set: members that always stay, and members that come and go.

use crate::load::question::Question;
use crate::load::words::{NAME_BYTES, Pattern, Word, array, bulk, integer, name};

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
#[derive(Debug)]
pub struct Fill<'a>(pub &'a Set);

impl Question for Fill<'_> {
    fn count(&self) -> u32 {
        self.0.numbers().div_ceil(MEMBERS_AT_ONCE)
    }

    fn write(&mut self, about: u32, to: &mut Vec<u8>) {
        array(2 + self.0.present_of(about).count(), to);
        bulk(b"SADD", to);
        bulk(KEY.as_bytes(), to);
        for number in self.0.present_of(about) {
            bulk(&name(b'm', number), to);
        }
    }

    fn answer(&self, about: u32, to: &mut Vec<u8>) {
        integer(self.0.present_of(about).count() as u64, to);
    }
}

fn request(command: &str) -> Pattern {
    Pattern::new(&[Word::Is(command), Word::Is(KEY), Word::Open(NAME_BYTES)])
}

/// `SADD` of a member that is there.
#[derive(Debug)]
pub struct Sadd<'a> {
    set: &'a Set,
    request: Pattern,
}

impl<'a> Sadd<'a> {
    /// Of any member that stays.
    #[must_use]
    pub fn new(set: &'a Set) -> Self {
        Self { set, request: request("SADD") }
    }
}

impl Question for Sadd<'_> {
    fn count(&self) -> u32 {
        self.set.stay
    }

    #[inline]
    fn write(&mut self, about: u32, to: &mut Vec<u8>) {
        self.request.append(to).word(0).copy_from_slice(&name(b'm', about));
    }

    #[inline]
    fn answer(&self, _: u32, to: &mut Vec<u8>) {
        integer(0, to);
    }
}

/// `SADD` of a member that is missing, or `SREM` where it is there.
#[derive(Debug)]
pub struct SaddSrem<'a> {
    set: &'a mut Set,
    add: Pattern,
    remove: Pattern,
}

impl<'a> SaddSrem<'a> {
    /// Of any member that comes and goes.
    #[must_use]
    pub fn new(set: &'a mut Set) -> Self {
        Self { set, add: request("SADD"), remove: request("SREM") }
    }
}

impl Question for SaddSrem<'_> {
    const ORDERED: bool = true;

    fn count(&self) -> u32 {
        self.set.numbers() - self.set.stay
    }

    #[inline]
    fn write(&mut self, about: u32, to: &mut Vec<u8>) {
        let number = self.set.stay + about;
        let present = &mut self.set.present[number as usize];
        let request = if *present { &self.remove } else { &self.add };
        request.append(to).word(0).copy_from_slice(&name(b'm', number));
        *present = !*present;
    }

    #[inline]
    fn answer(&self, _: u32, to: &mut Vec<u8>) {
        integer(1, to);
    }
}

/// `SISMEMBER`, of a member two times out of three.
#[derive(Debug)]
pub struct Sismember<'a> {
    set: &'a Set,
    request: Pattern,
}

impl<'a> Sismember<'a> {
    /// Of any number.
    #[must_use]
    pub fn new(set: &'a Set) -> Self {
        Self { set, request: request("SISMEMBER") }
    }
}

impl Question for Sismember<'_> {
    fn count(&self) -> u32 {
        self.set.numbers()
    }

    #[inline]
    fn write(&mut self, about: u32, to: &mut Vec<u8>) {
        self.request.append(to).word(0).copy_from_slice(&name(b'm', about));
    }

    #[inline]
    fn answer(&self, about: u32, to: &mut Vec<u8>) {
        integer(self.set.present[about as usize].into(), to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_come_and_go() {
        let mut set = Set::new(1000);
        assert_eq!(set.present.iter().filter(|&&present| present).count(), 1000);
        assert_eq!(Sadd::new(&set).count(), 500);
        for turn in 0..4 {
            let number = set.stay + 7;
            let expected = if set.present[number as usize] { "SREM" } else { "SADD" };
            let mut request = Vec::new();
            SaddSrem::new(&mut set).write(7, &mut request);
            let text = String::from_utf8(request).unwrap();
            assert!(text.contains(expected) && text.contains("m:00000507"), "{turn}: {text}");
            let mut answer = Vec::new();
            Sismember::new(&set).answer(number, &mut answer);
            assert_eq!(answer, if expected == "SADD" { b":1\r\n" } else { b":0\r\n" });
        }
    }
}
