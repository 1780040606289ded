//! An array that is being updated, the tuple itself or one inside of it.
//!
//! The array is a list of pieces: runs of elements that are as they were, and single ones.
//! Operations cut runs, so their number bounds the work, whatever the number of elements.

use super::lexer::Lexer;
use super::node::Slot;
use super::operation::{Action, Operation};
use super::walk::Walk;
use crate::error::{BoxError, ErrorCode};
use crate::fields::Fields;
use crate::format::Rule;
use ladon_msgpack::write;
use smallvec::SmallVec;

/// Fields of a tuple.
const FIELDS_MAX: u64 = i32::MAX as u64;
/// Nils that one operation may add in front of its field.
const FILL_MAX: u64 = 1 << 20;
const NIL: [u8; 1] = [0xc0];

enum Piece<'a> {
    /// Elements of the array as it was, from one number to another.
    Run(usize, usize),
    One(Slot<'a>),
    Nils(u64),
}

impl Piece<'_> {
    fn count(&self) -> u64 {
        match self {
            Piece::Run(from, to) => (to - from) as u64,
            Piece::One(_) => 1,
            Piece::Nils(count) => *count,
        }
    }
}

pub(super) struct Array<'a> {
    /// The elements as they were.
    old: SmallVec<[&'a [u8]; 16]>,
    pieces: SmallVec<[Piece<'a>; 8]>,
    count: u64,
    /// Whether it is the tuple, in which nil fills gaps.
    is_tuple: bool,
}

impl<'a> Array<'a> {
    pub(super) fn of(bytes: &'a [u8], is_tuple: bool) -> Array<'a> {
        let old: SmallVec<[&[u8]; 16]> = Fields::of(bytes).collect();
        let count = old.len();
        let mut pieces = SmallVec::new();
        if count > 0 {
            pieces.push(Piece::Run(0, count));
        }
        Array { old, pieces, count: count as u64, is_tuple }
    }

    /// Puts something into the place of an element that is there.
    pub(super) fn put(&mut self, at: u64, slot: Slot<'a>) {
        *self.isolate(at) = slot;
    }

    /// Appends the array; `rule_of` says what the space says of its elements.
    pub(super) fn write<'r>(&self, out: &mut Vec<u8>, rule_of: impl Fn(u32) -> Option<&'r Rule>) {
        write::array(out, self.count as u32);
        let mut at = 0;
        for piece in &self.pieces {
            match piece {
                Piece::Run(from, to) => {
                    self.old[*from..*to].iter().for_each(|field| out.extend_from_slice(field));
                }
                Piece::One(slot) => slot.write(out, rule_of(at as u32)),
                Piece::Nils(count) => out.extend(std::iter::repeat_n(NIL[0], *count as usize)),
            }
            at += piece.count();
        }
    }

    /// Does an operation on the element with this number, or inside of it if there is a path left.
    /// Negative numbers count from the end.
    pub(super) fn act_at(
        &mut self,
        operation: &Operation<'a>,
        index: i64,
        path: Lexer<'a>,
        walk: &mut Walk,
    ) -> Result<(), BoxError> {
        if !path.is_at_end() {
            let at = place(operation, index, self.count)?;
            return self.isolate(at).enter(operation, path, walk);
        }
        match &operation.action {
            Action::Insert(value) => self.insert(operation, index, value),
            Action::Set(value) => {
                if index >= self.count as i64 {
                    return self.insert(operation, index, value);
                }
                let at = place(operation, index, self.count)?;
                self.put(at, Slot::Old(value));
                Ok(())
            }
            // Since 2.8, what is not there can be deleted.
            Action::Delete(_) if index >= self.count as i64 => Ok(()),
            Action::Delete(count) => {
                let at = place(operation, index, self.count)?;
                self.delete(at, u64::from(*count).min(self.count - at));
                Ok(())
            }
            Action::Add(_) | Action::Subtract(_) | Action::Bits(_) | Action::Splice { .. } => {
                let at = place(operation, index, self.count)?;
                self.isolate(at).compute(&operation.at(at))
            }
        }
    }

    fn insert(
        &mut self,
        operation: &Operation<'a>,
        index: i64,
        value: &'a [u8],
    ) -> Result<(), BoxError> {
        if let Ok(at) = u64::try_from(index)
            && at > self.count
            && self.is_tuple
        {
            let missing = at - self.count;
            if at >= FIELDS_MAX || missing > FILL_MAX {
                let message = "Tuple field count limit reached: see box.schema.FIELD_MAX";
                return Err(BoxError::new(ErrorCode::TUPLE_FIELD_COUNT_LIMIT, message));
            }
            self.pieces.push(Piece::Nils(missing));
            self.count = at;
        }
        let at = place(operation, index, self.count + 1)?;
        let piece = self.cut(at);
        self.pieces.insert(piece, Piece::One(Slot::Old(value)));
        self.count += 1;
        Ok(())
    }

    /// Cuts in front of an element; returns the number of the piece that begins there.
    fn cut(&mut self, at: u64) -> usize {
        let mut begin = 0;
        for number in 0..self.pieces.len() {
            let count = self.pieces[number].count();
            if at == begin {
                return number;
            }
            if at < begin + count {
                let (head, tail) = match self.pieces[number] {
                    Piece::Run(from, to) => {
                        let middle = from + (at - begin) as usize;
                        (Piece::Run(from, middle), Piece::Run(middle, to))
                    }
                    _ => (Piece::Nils(at - begin), Piece::Nils(begin + count - at)),
                };
                self.pieces[number] = head;
                self.pieces.insert(number + 1, tail);
                return number + 1;
            }
            begin += count;
        }
        self.pieces.len()
    }

    /// Makes an element that is there a piece of its own.
    fn isolate(&mut self, at: u64) -> &mut Slot<'a> {
        let number = self.cut(at);
        self.cut(at + 1);
        let value: &'a [u8] = match self.pieces[number] {
            Piece::Run(from, _) => self.old[from],
            Piece::Nils(_) | Piece::One(_) => &NIL,
        };
        let piece = &mut self.pieces[number];
        if !matches!(piece, Piece::One(_)) {
            *piece = Piece::One(Slot::Old(value));
        }
        match piece {
            Piece::One(slot) => slot,
            Piece::Run(..) | Piece::Nils(_) => unreachable!("it was made one"),
        }
    }

    fn delete(&mut self, at: u64, count: u64) {
        let from = self.cut(at);
        let to = self.cut(at + count);
        self.pieces.drain(from..to);
        self.count -= count;
    }
}

/// The number of an element of `count`, from the beginning.
fn place(operation: &Operation<'_>, index: i64, count: u64) -> Result<u64, BoxError> {
    let at = if index < 0 { index + count as i64 } else { index };
    match u64::try_from(at) {
        Ok(at) if at < count => Ok(at),
        _ => Err(operation.no_field()),
    }
}
