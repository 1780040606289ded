//! Redis Cluster's slots, for a client that knows them: each key goes to the shard that has its
//! slot.
//!
//! A user's connection leads to one shard, `user mod shards`. So that its keys belong there, each
//! begins with a hash tag, `{...}`, which alone decides on the slot; the tags are found at the
//! start by trying. A server that is asked for another's key answers `MOVED`, which is a wrong
//! answer.
//!
//! Source: Redis Cluster's specification, "Key distribution model", "Hash tags", and its appendix
//! on CRC16.

use std::borrow::Cow;

use super::{Dialect, Framed, Malformed, Refused};
use crate::operation::{Answer, Operation, OperationKind};

/// How many slots there are.
pub const SLOTS: u16 = 16_384;

/// The slot of a key: of the text between its first `{` and the next `}`, if there is any.
#[must_use]
pub fn slot(key: &[u8]) -> u16 {
    let tag = key.iter().position(|&byte| byte == b'{').and_then(|open| {
        let rest = &key[open + 1..];
        let close = rest.iter().position(|&byte| byte == b'}')?;
        (close > 0).then(|| &rest[..close])
    });
    crc16(tag.unwrap_or(key)) % SLOTS
}

/// CRC-16/XMODEM: polynomial 0x1021, from zero.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0u16, |crc, &byte| {
        (0..8).fold(crc ^ u16::from(byte) << 8, |crc, _| {
            if crc & 0x8000 == 0 { crc << 1 } else { crc << 1 ^ 0x1021 }
        })
    })
}

/// A dialect whose keys are given the tag of their user's shard. One request of each user at a
/// time.
#[derive(Debug)]
pub struct Sharded<D> {
    inner: D,
    /// A tag for each shard, with its brackets.
    tags: Vec<Vec<u8>>,
}

impl<D: Dialect> Sharded<D> {
    /// For `shards` shards with an even part of the slots each, in order.
    #[must_use]
    pub fn new(inner: D, shards: usize) -> Self {
        let of = |shard: usize| {
            let (first, after) =
                (shard * usize::from(SLOTS) / shards, (shard + 1) * usize::from(SLOTS) / shards);
            let mut tags = (0u32..).map(|number| format!("{{{number}}}").into_bytes());
            // Every third tag or so fits; the numbers never end.
            tags.find(|tag| (first..after).contains(&usize::from(slot(tag)))).unwrap_or_default()
        };
        Self { inner, tags: (0..shards).map(of).collect() }
    }

    fn tagged(&self, tag: u64, key: &[u8]) -> Vec<u8> {
        let shard = (tag % self.tags.len() as u64) as usize;
        [&self.tags[shard], key].concat()
    }
}

impl<D: Dialect> Dialect for Sharded<D> {
    fn can(&self, kind: OperationKind) -> Result<(), String> {
        match kind {
            OperationKind::Set | OperationKind::Get | OperationKind::Delete => self.inner.can(kind),
            other => Err(format!("`{other}` is not dealt to shards by this driver")),
        }
    }

    fn hello(&mut self, greeting: &[u8], out: &mut Vec<u8>) -> Result<usize, Malformed> {
        self.inner.hello(greeting, out)
    }

    fn check_hello(&self, number: usize, frame: &[u8]) -> Result<(), Refused> {
        self.inner.check_hello(number, frame)
    }

    fn encode(&mut self, tag: u64, operation: &Operation, out: &mut Vec<u8>) {
        let dealt = match operation {
            Operation::Set { key, value } => {
                Operation::Set { key: self.tagged(tag, key), value: value.clone() }
            }
            Operation::Get { key } => Operation::Get { key: self.tagged(tag, key) },
            Operation::Delete { key } => Operation::Delete { key: self.tagged(tag, key) },
            // The driver asks `can` first.
            _ => unreachable!("refused by can()"),
        };
        self.inner.encode(tag, &dealt, out);
    }

    fn frame(&self, expecting: Option<&Operation>, bytes: &[u8]) -> Result<Framed, Malformed> {
        self.inner.frame(expecting, bytes)
    }

    fn answer(&self, operation: &Operation, frame: &[u8]) -> Result<Answer, Refused> {
        self.inner.answer(operation, frame)
    }

    fn is_right(&self, operation: &Operation, expected: &Answer, frame: &[u8]) -> bool {
        self.inner.is_right(operation, expected, frame)
    }

    fn value<'a>(
        &self,
        operation: &Operation,
        frame: &'a [u8],
    ) -> Result<Option<Cow<'a, [u8]>>, Refused> {
        self.inner.value(operation, frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialects::resp::Resp;

    #[test]
    fn slots_are_those_of_the_specification() {
        // Its appendix: the CRC16 of "123456789" is 0x31C3; `CLUSTER KEYSLOT foo` is 12182.
        assert_eq!(crc16(b"123456789"), 0x31c3);
        assert_eq!(slot(b"foo"), 12_182);
        assert_eq!(slot(b"{user1000}.following"), slot(b"{user1000}.followers"));
        assert_eq!(slot(b"foo{}{bar}"), crc16(b"foo{}{bar}") % SLOTS);
        assert_eq!(slot(b"foo{{bar}}zap"), slot(b"{bar"));
        assert_eq!(slot(b"foo{bar}{zap}"), slot(b"bar"));
    }

    #[test]
    fn each_user_s_keys_belong_to_its_shard() {
        let sharded = Sharded::new(Resp::new(), 3);
        for user in 0..12u64 {
            let key = sharded.tagged(user, b"few:0000000007");
            let shard = usize::from(slot(&key)) * 3 / usize::from(SLOTS);
            assert_eq!(shard as u64, user % 3);
        }
    }
}
