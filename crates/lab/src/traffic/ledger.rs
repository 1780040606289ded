//! What a space's keys may hold: for each key which versions were sent and which may still be seen.
//!
//! Writes of one key may overtake each other, so several versions can be right for a while. A
//! version that was acknowledged before a later acknowledged one was **sent** can never be right
//! again:
//!
//! ```text
//!   versions   1 .. base-1 | base ........ sent
//!              all answered | sent since, at least one not answered the whole time
//! ```
//!
//! While any write of a key is under way, `base` is the first version that was sent after the last
//! moment without one. An acknowledgement therefore rules out everything below `base`: that is the
//! key's `floor`.

use super::value;

#[derive(Clone, Copy, Debug, Default)]
struct State {
    sent: u32,
    base: u32,
    floor: u32,
    under_way: u32,
}

/// The keys of one space.
#[derive(Debug)]
pub struct Ledger {
    space: &'static str,
    /// The number in the store of key 0 here.
    first: u32,
    value_bytes: usize,
    states: Vec<State>,
}

impl Ledger {
    /// `keys` keys of which nothing was sent yet.
    #[must_use]
    pub fn new(space: &'static str, keys: u32, value_bytes: usize) -> Self {
        Self::from_key(0, space, keys, value_bytes)
    }

    /// The same, with numbers in the store from `first` on.
    #[must_use]
    pub fn from_key(first: u32, space: &'static str, keys: u32, value_bytes: usize) -> Self {
        Self { space, first, value_bytes, states: vec![State::default(); keys as usize] }
    }

    const fn number(&self, key: u32) -> u32 {
        self.first + key
    }

    /// How many keys there are, sent or not.
    #[must_use]
    pub fn keys(&self) -> u32 {
        u32::try_from(self.states.len()).unwrap_or(u32::MAX)
    }

    /// Bytes of each value.
    #[must_use]
    pub const fn value_bytes(&self) -> usize {
        self.value_bytes
    }

    /// Adds a key of which nothing was sent yet; its number.
    pub fn add_key(&mut self) -> u32 {
        self.states.push(State::default());
        self.keys() - 1
    }

    /// Writes a key's text.
    #[inline]
    pub fn write_key(&self, key: u32, to: &mut Vec<u8>) {
        value::write_key(self.space, self.number(key), to);
    }

    /// Notes that the next version of `key` is being sent, and writes its value.
    #[inline]
    pub fn send(&mut self, key: u32, to: &mut Vec<u8>) {
        let number = self.number(key);
        let state = &mut self.states[key as usize];
        state.sent += 1;
        if state.under_way == 0 {
            state.base = state.sent;
        }
        state.under_way += 1;
        value::write_value(u64::from(number), state.sent, self.value_bytes, to);
    }

    /// Notes that a write of `key` was acknowledged.
    #[inline]
    pub fn acknowledge(&mut self, key: u32) {
        let state = &mut self.states[key as usize];
        state.under_way -= 1;
        state.floor = state.floor.max(state.base);
    }

    /// The lowest version that a read which is sent now may answer with; 0 if the key may be
    /// missing.
    #[inline]
    #[must_use]
    pub fn floor(&self, key: u32) -> u32 {
        self.states[key as usize].floor
    }

    /// Whether a read that was sent when the floor was `floor` may answer with `value` now.
    #[inline]
    #[must_use]
    pub fn may_hold(&self, key: u32, floor: u32, value: Option<&[u8]>) -> bool {
        let Some(value) = value else { return floor == 0 };
        value::version_of(u64::from(self.number(key)), value, self.value_bytes)
            .is_some_and(|version| version >= floor && version <= self.states[key as usize].sent)
    }

    /// Whether `value` is any version of the key's that was ever sent.
    #[must_use]
    pub fn ever_held(&self, key: u32, value: &[u8]) -> bool {
        value::version_of(u64::from(self.number(key)), value, self.value_bytes)
            .is_some_and(|version| version >= 1 && version <= self.states[key as usize].sent)
    }

    /// How many keys have an acknowledged write.
    #[must_use]
    pub fn acknowledged_keys(&self) -> u64 {
        self.states.iter().filter(|state| state.floor > 0).count() as u64
    }

    /// The right answers in words.
    #[must_use]
    pub fn describe(&self, key: u32, floor: u32) -> String {
        let sent = self.states[key as usize].sent;
        if sent == 0 {
            return "nothing, it was never written".to_owned();
        }
        let mut newest = Vec::new();
        value::write_value(u64::from(self.number(key)), sent, self.value_bytes, &mut newest);
        let newest = newest.escape_ascii();
        match floor {
            0 => format!("nothing yet, or a version up to {sent}: {newest}"),
            _ if floor == sent => format!("version {sent}: {newest}"),
            _ => format!("a version from {floor} to {sent}: {newest}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(version: u32) -> Vec<u8> {
        let mut value = Vec::new();
        value::write_value(0, version, 16, &mut value);
        value
    }

    #[test]
    fn one_write_after_the_other_leaves_one_right_answer() {
        let mut ledger = Ledger::new("k", 1, 16);
        assert!(ledger.may_hold(0, ledger.floor(0), None));
        for version in 1..5 {
            let before = ledger.floor(0);
            ledger.send(0, &mut Vec::new());
            assert!(ledger.may_hold(0, before, Some(&value(version))), "seen before its reply");
            ledger.acknowledge(0);
            let floor = ledger.floor(0);
            assert!(ledger.may_hold(0, floor, Some(&value(version))));
            assert!(!ledger.may_hold(0, floor, Some(&value(version - 1))), "a lost write");
            assert!(!ledger.may_hold(0, floor, Some(&value(version + 1))), "never sent");
            assert!(!ledger.may_hold(0, floor, None), "gone");
        }
    }

    #[test]
    fn writes_under_way_together_may_land_in_any_order() {
        let mut ledger = Ledger::new("k", 1, 16);
        ledger.send(0, &mut Vec::new());
        ledger.acknowledge(0);
        ledger.send(0, &mut Vec::new());
        ledger.send(0, &mut Vec::new());
        ledger.acknowledge(0);
        let floor = ledger.floor(0);
        assert!(!ledger.may_hold(0, floor, Some(&value(1))), "answered before either was sent");
        assert!(ledger.may_hold(0, floor, Some(&value(2))));
        assert!(ledger.may_hold(0, floor, Some(&value(3))));
        ledger.acknowledge(0);
        ledger.send(0, &mut Vec::new());
        ledger.acknowledge(0);
        assert!(!ledger.may_hold(0, ledger.floor(0), Some(&value(3))));
        assert_eq!(ledger.acknowledged_keys(), 1);
    }

    #[test]
    fn a_read_sent_before_a_write_may_see_what_was_before() {
        let mut ledger = Ledger::new("k", 1, 16);
        ledger.send(0, &mut Vec::new());
        ledger.acknowledge(0);
        let floor = ledger.floor(0);
        ledger.send(0, &mut Vec::new());
        ledger.acknowledge(0);
        assert!(ledger.may_hold(0, floor, Some(&value(1))));
        assert!(ledger.may_hold(0, floor, Some(&value(2))));
    }
}
