//! Update operations: `= + - & | ^ : ! #`, one after the other, on a tuple's fields.
//!
//! The tuple is a list of pieces: runs of fields that are as they were, and single fields. Operations
//! cut runs, so their number bounds the work, whatever the number of fields.
//!
//! Source: Tarantool's documentation, `space_object:update()`.

mod arithmetic;
mod operation;

pub(crate) use operation::{Action, Operation, parse};

use crate::error::{BoxError, ErrorCode};
use crate::fields::Fields;
use crate::format::Rules;
use arithmetic::Made;
use ladon_msgpack::write;
use smallvec::SmallVec;

/// Fields of a tuple.
const FIELDS_MAX: u64 = i32::MAX as u64;
/// Nils that one operation may add in front of its field.
const FILL_MAX: u64 = 1 << 20;

#[derive(Clone)]
enum Piece<'a> {
    /// Fields of the tuple as it was, from one number to another.
    Run(usize, usize),
    /// A value that was inserted.
    Inserted(&'a [u8]),
    /// A value in the place of another; no operation may compute with it.
    Set(&'a [u8]),
    /// What an operation computed; no other may compute with it.
    Made(Made),
    Nils(u64),
}

impl Piece<'_> {
    fn count(&self) -> u64 {
        match self {
            Piece::Run(from, to) => (to - from) as u64,
            Piece::Inserted(_) | Piece::Set(_) | Piece::Made(_) => 1,
            Piece::Nils(count) => *count,
        }
    }
}

/// A tuple that is being updated.
struct Update<'a> {
    /// The fields as they were.
    old: SmallVec<[&'a [u8]; 16]>,
    pieces: SmallVec<[Piece<'a>; 8]>,
    count: u64,
}

/// The tuple that the operations make of this one.
///
/// # Errors
/// The first operation's that cannot be done. With `ignore_errors`, as upsert has it, such operations
/// are left out.
pub(crate) fn apply(
    tuple: &[u8],
    operations: &[Operation<'_>],
    rules: &Rules,
    ignore_errors: bool,
) -> Result<Vec<u8>, BoxError> {
    let old: SmallVec<[&[u8]; 16]> = Fields::of(tuple).collect();
    let count = old.len();
    let mut update = Update { old, pieces: SmallVec::new(), count: count as u64 };
    if count > 0 {
        update.pieces.push(Piece::Run(0, count));
    }
    for operation in operations {
        match update.act(operation) {
            Err(error) if !ignore_errors => return Err(error),
            _ => {}
        }
    }
    Ok(update.finish(tuple.len(), rules))
}

impl<'a> Update<'a> {
    fn finish(&self, length: usize, rules: &Rules) -> Vec<u8> {
        let mut out = Vec::with_capacity(length + 32);
        write::array(&mut out, self.count as u32);
        let mut at = 0;
        for piece in &self.pieces {
            match piece {
                Piece::Run(from, to) => {
                    self.old[*from..*to].iter().for_each(|field| out.extend_from_slice(field));
                }
                Piece::Inserted(value) | Piece::Set(value) => out.extend_from_slice(value),
                // The type is that of the place where the field is in the end.
                Piece::Made(value) => value.write(&mut out, rules.kind_of(at)),
                Piece::Nils(count) => out.extend(std::iter::repeat_n(0xc0, *count as usize)),
            }
            at += piece.count();
        }
        out
    }

    fn act(&mut self, operation: &Operation<'a>) -> Result<(), BoxError> {
        match &operation.action {
            Action::Insert(value) => self.insert(operation, value),
            Action::Set(value) => {
                if i64::from(operation.field) >= self.count as i64 {
                    return self.insert(operation, value);
                }
                let at = self.place(operation, self.count)?;
                let piece = self.isolate(at);
                self.pieces[piece] = Piece::Set(value);
                Ok(())
            }
            Action::Delete(count) => {
                let at = self.place(operation, self.count)?;
                self.delete(at, u64::from(*count).min(self.count - at));
                Ok(())
            }
            Action::Add(_) | Action::Subtract(_) | Action::Bits(_) | Action::Splice { .. } => {
                let at = self.place(operation, self.count)?;
                let operation = &operation.at(at);
                let piece = self.isolate(at);
                let value = match &self.pieces[piece] {
                    Piece::Run(at, _) => self.old[*at],
                    Piece::Inserted(value) => value,
                    Piece::Set(_) | Piece::Made(_) => {
                        return Err(operation.error("double update of the same field"));
                    }
                    Piece::Nils(_) => &[0xc0],
                };
                self.pieces[piece] = Piece::Made(arithmetic::compute(operation, value)?);
                Ok(())
            }
        }
    }

    fn insert(&mut self, operation: &Operation<'a>, value: &'a [u8]) -> Result<(), BoxError> {
        if let Ok(at) = u64::try_from(operation.field)
            && at > self.count
        {
            let missing = at - self.count;
            if at >= FIELDS_MAX || missing > FILL_MAX {
                let message = "Tuple field count limit reached: see box.schema.FIELD_MAX";
                return Err(BoxError::new(ErrorCode::TUPLE_FIELD_COUNT_LIMIT, message));
            }
            self.pieces.push(Piece::Nils(missing));
            self.count = at;
        }
        let at = self.place(operation, self.count + 1)?;
        let piece = self.cut(at);
        self.pieces.insert(piece, Piece::Inserted(value));
        self.count += 1;
        Ok(())
    }

    /// The number of the operation's field, of which there are `count`; negative ones count from the end.
    fn place(&self, operation: &Operation<'_>, count: u64) -> Result<u64, BoxError> {
        let at = i64::from(operation.field);
        let at = if at < 0 { at + count as i64 } else { at };
        match u64::try_from(at) {
            Ok(at) if at < count => Ok(at),
            _ => Err(operation.no_field()),
        }
    }

    /// Cuts in front of a field; returns the number of the piece that begins there.
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

    /// Makes a field a piece of its own.
    fn isolate(&mut self, at: u64) -> usize {
        let piece = self.cut(at);
        self.cut(at + 1);
        piece
    }

    fn delete(&mut self, at: u64, count: u64) {
        let from = self.cut(at);
        let to = self.cut(at + count);
        self.pieces.drain(from..to);
        self.count -= count;
    }
}
