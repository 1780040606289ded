//! Hashes of one size. Field `number` of all is field `number % fields` of hash `number / fields`.

use crate::load::data::Data;
use crate::load::question::{Question, ask, exactly};
use crate::load::words::Word::{Is, Open};
use crate::load::words::{
    INTEGER_BYTES_MAX, NAME_BYTES, Pattern, array, bulk, bulk_head, integer, name,
};
use crate::load::workload::Check;

/// What the server must hold.
#[derive(Debug)]
pub struct Hashes {
    values: Data,
    fields: u32,
}

/// Length of `field:00`.
const FIELD_BYTES: usize = 8;
/// As many as a field's name tells apart.
pub const FIELDS_MAX: u32 = 100;

impl Hashes {
    /// `count` hashes of `fields` fields, at most [`FIELDS_MAX`], with values of `value_bytes`.
    #[must_use]
    pub fn new(count: u32, fields: u32, value_bytes: usize) -> Self {
        let all = count * fields;
        let values = Data::new(all, Data::key_bytes_min(all), value_bytes);
        Self { values, fields }
    }

    const fn count(&self) -> u32 {
        self.values.keys() / self.fields
    }

    fn key(&self, number: u32) -> [u8; NAME_BYTES] {
        name(b'h', number / self.fields)
    }

    fn field(&self, number: u32) -> [u8; FIELD_BYTES] {
        let index = number % self.fields;
        let mut field = *b"field:00";
        field[6] += (index / 10) as u8;
        field[7] += (index % 10) as u8;
        field
    }

    fn pair_bytes(&self) -> usize {
        4 + FIELD_BYTES + 2 + self.value_bulk_bytes()
    }

    fn value_bulk_bytes(&self) -> usize {
        let length = self.values.value_bytes();
        3 + length.max(1).ilog10() as usize + 1 + length + 2
    }
}

/// `HSET` of all fields of a hash at once, when it is not there.
pub fn fill(hashes: &mut Hashes) -> impl Question {
    let count = hashes.count();
    let write = |hashes: &mut &mut Hashes, about, to: &mut Vec<u8>| {
        let first = about * hashes.fields;
        array(2 + 2 * hashes.fields as usize, to);
        bulk(b"HSET", to);
        bulk(&hashes.key(first), to);
        let mut value = vec![0; hashes.values.value_bytes()];
        for number in first..first + hashes.fields {
            bulk(&hashes.field(number), to);
            hashes.values.write_new_value(number, &mut value);
            bulk(&value, to);
        }
    };
    ask(hashes, count, write, |hashes, _, to| integer(hashes.fields.into(), to))
}

/// `HSET` of a new value to a field that is there. All values are of one new version.
pub fn hset(hashes: &mut Hashes) -> impl Question {
    hashes.values.next_version();
    let value = Open(hashes.values.value_bytes());
    let request = Pattern::new(&[Is("HSET"), Open(NAME_BYTES), Open(FIELD_BYTES), value]);
    let count = hashes.values.keys();
    let write = move |hashes: &mut &mut Hashes, about, to: &mut Vec<u8>| {
        let mut request = request.append(to);
        request.word(0).copy_from_slice(&hashes.key(about));
        request.word(1).copy_from_slice(&hashes.field(about));
        hashes.values.write_new_value(about, request.word(2));
    };
    ask(hashes, count, write, |_, _, to| integer(0, to))
}

/// `HGET` of a field that is there.
pub fn hget(hashes: &Hashes) -> impl Question {
    let request = Pattern::new(&[Is("HGET"), Open(NAME_BYTES), Open(FIELD_BYTES)]);
    let write = move |hashes: &mut &Hashes, about, to: &mut Vec<u8>| {
        let mut request = request.append(to);
        request.word(0).copy_from_slice(&hashes.key(about));
        request.word(1).copy_from_slice(&hashes.field(about));
    };
    ask(hashes, hashes.values.keys(), write, |hashes, about, to| write_value(hashes, about, to))
        .answer_bytes_max(hashes.value_bulk_bytes())
}

#[inline]
fn write_value(hashes: &Hashes, number: u32, to: &mut Vec<u8>) {
    bulk_head(hashes.values.value_bytes(), to);
    let start = to.len();
    to.resize(start + hashes.values.value_bytes(), 0);
    hashes.values.write_same_value(number, &mut to[start..]);
    to.extend_from_slice(b"\r\n");
}

/// `HGETALL`: every field once, in any order.
#[derive(Debug)]
pub struct Hgetall<'a> {
    hashes: &'a Hashes,
    request: Pattern,
}

impl<'a> Hgetall<'a> {
    /// Of any hash.
    #[must_use]
    pub fn new(hashes: &'a Hashes) -> Self {
        Self { hashes, request: Pattern::new(&[Is("HGETALL"), Open(NAME_BYTES)]) }
    }

    /// The number, in all, of the field whose pair `bytes` begin with, if its value is right.
    #[inline]
    fn pair(&self, about: u32, bytes: &[u8], room: &mut Vec<u8>) -> Option<u32> {
        let digits: [u8; 2] = bytes.get(10..12)?.try_into().ok()?;
        let digit = |digit: u8| digit.checked_sub(b'0').filter(|&digit| digit < 10).map(u32::from);
        let index = digit(digits[0])? * 10 + digit(digits[1])?;
        let number = about * self.hashes.fields + index;
        if index >= self.hashes.fields {
            return None;
        }
        room.clear();
        room.extend_from_slice(b"$8\r\n");
        room.extend_from_slice(&self.hashes.field(number));
        room.extend_from_slice(b"\r\n");
        write_value(self.hashes, number, room);
        (*room == bytes).then_some(index)
    }
}

impl Question for Hgetall<'_> {
    fn count(&self) -> u32 {
        self.hashes.count()
    }

    #[inline]
    fn write(&mut self, about: u32, to: &mut Vec<u8>) {
        self.request.append(to).word(0).copy_from_slice(&name(b'h', about));
    }

    fn answer(&self, about: u32, to: &mut Vec<u8>) {
        array(2 * self.hashes.fields as usize, to);
        let first = about * self.hashes.fields;
        for number in first..first + self.hashes.fields {
            bulk(&self.hashes.field(number), to);
            write_value(self.hashes, number, to);
        }
    }

    fn answer_bytes_max(&self) -> usize {
        INTEGER_BYTES_MAX + self.hashes.fields as usize * self.hashes.pair_bytes()
    }

    #[inline]
    fn judge(&self, about: u32, bytes: &[u8], room: &mut Vec<u8>) -> Check {
        array(2 * self.hashes.fields as usize, room);
        let head = match exactly(room, bytes) {
            Check::Right(head) => head,
            other => return other,
        };
        let pair = self.hashes.pair_bytes();
        let whole = head + self.hashes.fields as usize * pair;
        let Some(pairs) = bytes.get(head..whole) else { return Check::Incomplete };
        let mut seen = 0u128;
        for bytes in pairs.chunks_exact(pair) {
            let Some(index) = self.pair(about, bytes, room) else { return Check::Wrong };
            seen |= 1 << index;
        }
        // As many pairs as fields: none is missing unless another came twice.
        if seen.count_ones() == self.hashes.fields { Check::Right(whole) } else { Check::Wrong }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_hash_may_come_in_any_order_but_must_be_whole() {
        let mut hashes = Hashes::new(3, 20, 16);
        let mut requests = Vec::new();
        hset(&mut hashes).write(27, &mut requests);
        let all = Hgetall::new(&hashes);
        let mut right = Vec::new();
        all.answer(1, &mut right);
        assert!(right.len() <= all.answer_bytes_max());
        let judge = |bytes: &[u8]| all.judge(1, bytes, &mut Vec::new());
        for length in 0..right.len() {
            assert_eq!(judge(&right[..length]), Check::Incomplete);
        }
        assert_eq!(judge(&right), Check::Right(right.len()));
        let head = b"*40\r\n".len();
        let pair = hashes.pair_bytes();
        let mut turned = right.clone();
        turned[head..].rotate_left(3 * pair);
        assert_eq!(judge(&turned), Check::Right(right.len()));
        let mut twice = right.clone();
        twice.copy_within(head..head + pair, head + pair);
        assert_eq!(judge(&twice), Check::Wrong);
        let mut flipped = right.clone();
        flipped[head + pair - 3] ^= 1;
        assert_eq!(judge(&flipped), Check::Wrong);
        assert_eq!(all.judge(2, &right, &mut Vec::new()), Check::Wrong, "another hash");
        assert_eq!(judge(b"*0\r\n"), Check::Wrong);
    }
}
