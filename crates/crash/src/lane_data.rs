//! The expected content of a lane's keys, and the expected replies: the reference's commands,
//! and when the keys expire.

use crate::operation::{Command, Operation};
use ladon_resp::client::Value;
use ladon_testkit::reference::{self, Call, State};
use std::collections::BTreeMap;

/// A lane's keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaneData {
    /// The values.
    pub values: State,
    /// Unix seconds, of keys that expire.
    pub expire_at: BTreeMap<Vec<u8>, u64>,
}

impl LaneData {
    /// Applies an operation of a lane; returns the expected reply.
    pub fn apply(&mut self, lane: u64, operation: &Operation) -> Value {
        match operation {
            Operation::One(command) => self.run(lane, command),
            Operation::Transaction(commands) => {
                Value::Array(commands.iter().map(|command| self.run(lane, command)).collect())
            }
        }
    }

    fn run(&mut self, lane: u64, command: &Command) -> Value {
        let call = command.words(lane);
        if let Command::ExpireAt(_, at) = command {
            let exists = self.values.contains_key(&call[1]);
            if exists {
                self.expire_at.insert(call[1].clone(), *at);
            }
            return Value::Integer(i64::from(exists));
        }
        let reply = reference::apply(&mut self.values, &call);
        if !reply.is_error() {
            self.move_expiry(command, &call);
        }
        // A key that exists throughout the command keeps its expiry.
        self.expire_at.retain(|key, _| self.values.contains_key(key));
        reply
    }

    /// A new value has no expiry; a renamed one keeps its own.
    fn move_expiry(&mut self, command: &Command, call: &Call) {
        match command {
            Command::Set(_) => {
                for pair in call[1..].chunks(2) {
                    self.expire_at.remove(&pair[0]);
                }
            }
            Command::SunionStore(..) | Command::ZunionStore(..) => {
                self.expire_at.remove(&call[1]);
            }
            Command::Bitxor(..) => _ = self.expire_at.remove(&call[2]),
            Command::Rename(..) => {
                let own = self.expire_at.remove(&call[1]);
                self.expire_at.remove(&call[2]);
                self.expire_at.extend(own.map(|at| (call[2].clone(), at)));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::Side;
    use ladon_testkit::reference::Datum;

    fn run(commands: &[Command]) -> LaneData {
        let mut model = LaneData::default();
        for command in commands {
            model.run(0, command);
        }
        model
    }

    fn expire_at(model: &LaneData, key: &str) -> Option<u64> {
        model.expire_at.get(format!("lane0:{key}").as_bytes()).copied()
    }

    /// As Redis has it: the list is never seen to be empty.
    #[test]
    fn a_list_that_moves_its_only_element_keeps_its_expiry() {
        let model = run(&[
            Command::Push("l0", Side::Left, vec![7]),
            Command::ExpireAt("l0", 4_000_000_000),
            Command::Lmove("l0", "l0", Side::Left, Side::Right),
        ]);
        assert_eq!(expire_at(&model, "l0"), Some(4_000_000_000));
    }

    #[test]
    fn a_renamed_key_brings_its_expiry_or_none() {
        let text = |key, text: &str| Command::Set(vec![(key, text.into())]);
        let both = [text("s0", "a"), text("s1", "b"), Command::ExpireAt("s1", 5)];
        let model = run(&[&both[..], &[Command::Rename("s1", "s0")]].concat());
        assert_eq!((expire_at(&model, "s0"), expire_at(&model, "s1")), (Some(5), None));
        let model = run(&[&both[..], &[Command::Rename("s0", "s1")]].concat());
        assert_eq!(expire_at(&model, "s1"), None);
        // There is nothing to rename, so nothing changes.
        let model = run(&[&both[..], &[Command::Rename("s2", "s1")]].concat());
        assert_eq!(expire_at(&model, "s1"), Some(5));
        let model = run(&[&both[..], &[Command::Rename("s1", "s1")]].concat());
        assert_eq!(expire_at(&model, "s1"), Some(5));
    }

    #[test]
    fn a_value_that_is_replaced_or_gone_has_no_expiry() {
        let sets = [Command::Sadd("t0", vec![1]), Command::ExpireAt("t0", 5)];
        let model = run(&[&sets[..], &[Command::SunionStore("t0", "t0", "t1")]].concat());
        assert_eq!(expire_at(&model, "t0"), None);
        let again = [Command::Srem("t0", 1), Command::Sadd("t0", vec![1])];
        assert_eq!(expire_at(&run(&[&sets[..], &again].concat()), "t0"), None);
        let more = [Command::Sadd("t0", vec![2])];
        assert_eq!(expire_at(&run(&[&sets[..], &more].concat()), "t0"), Some(5));
    }

    /// An unsigned byte across two bytes of the string, which grows for it; it wraps.
    #[test]
    fn bits_are_counted_from_the_left_and_wrap() {
        let model = run(&[
            Command::BitfieldIncr("b0", 4, 100),
            Command::BitfieldIncr("b0", 4, 100),
            Command::BitfieldIncr("b0", 4, 100),
        ]);
        // 300 - 256 = 44 = 0x2c.
        assert_eq!(model.values[&b"lane0:b0"[..]], Datum::Text(vec![0x02, 0xc0]));
    }
}
