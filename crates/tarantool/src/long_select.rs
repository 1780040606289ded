//! A SELECT whose reply is long: it is made in slices, from a copy of the space, while other
//! requests run.
//!
//! The copy shares everything with the space until that changes. A reply begins with its length, so
//! the tuples are visited twice: to measure them, then to send them.

use crate::error;
use ladon_iproto::reply;
use ladon_kernel::long::slices::{Room, Slices};
use ladon_resp::Reply;
use ladon_space::{BoxError, Looked, Selected, Selection, Space, Tuple};
use self_cell::self_cell;

/// A reply is long from this many tuples on: some ten microseconds.
pub(crate) const TUPLES_MAX: u32 = 256;
/// A reply is long from this many bytes on.
pub(crate) const BYTES_MAX: usize = 32 << 10;

/// How the reply looks around the tuples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) sync: u64,
    pub(crate) schema_version: u64,
    /// The tuples are one value, an array.
    pub(crate) is_one_value: bool,
    /// The last tuple's position follows.
    pub(crate) shows_position: bool,
}

self_cell!(
    /// A copy of a space, and how far a selection of its tuples has come.
    pub(crate) struct Selecting {
        owner: Space,
        #[not_covariant]
        dependent: Selection,
    }
);

/// The reply.
pub(crate) struct LongSelect {
    selecting: Selecting,
    selected: Selected,
    shape: Shape,
    /// Tuples measured or sent so far.
    done: u64,
    bytes: u64,
    /// The last tuple, and the hint of the key that led to it.
    last: Option<(Tuple, u64)>,
    is_measured: bool,
}

impl LongSelect {
    /// # Errors
    /// If the space has no such tuples to select.
    pub(crate) fn new(
        space: Space,
        selected: Selected,
        shape: Shape,
    ) -> Result<LongSelect, BoxError> {
        let selecting = Selecting::try_new(space, |space| selected.of(space))?;
        let is_measured = false;
        Ok(LongSelect { selecting, selected, shape, done: 0, bytes: 0, last: None, is_measured })
    }

    /// Begins with the first tuple again.
    fn begin_again(&mut self) -> Result<(), BoxError> {
        let space = self.selecting.borrow_owner().clone();
        self.selecting = Selecting::try_new(space, |space| self.selected.of(space))?;
        (self.done, self.bytes) = (0, 0);
        Ok(())
    }

    /// Visits more tuples while there is room. Returns whether there may be more.
    fn visit(
        &mut self,
        reply: &mut Reply<'_>,
        room: &mut Room,
        mut visit: impl FnMut(&mut Reply<'_>, &Tuple),
    ) -> bool {
        let (done, bytes, last) = (&mut self.done, &mut self.bytes, &mut self.last);
        self.selecting.with_dependent_mut(|_, selection| {
            let mut found = None;
            let mut goes_on = true;
            while room.take(reply) {
                match selection.look() {
                    Looked::Found((hint, tuple)) => {
                        visit(reply, tuple);
                        *done += 1;
                        *bytes += tuple.bytes().len() as u64;
                        found = Some((tuple, hint));
                    }
                    Looked::AtSome => {}
                    Looked::AtAll => {
                        goes_on = false;
                        break;
                    }
                }
            }
            if let Some((tuple, hint)) = found {
                *last = Some((tuple.clone(), hint));
            }
            goes_on
        })
    }

    /// The reply up to its tuples, or the error in its place if it would be too long; and whether
    /// it is that.
    fn head(&self) -> (Vec<u8>, bool) {
        let Shape { sync, schema_version, is_one_value, .. } = self.shape;
        let mut head = Vec::with_capacity(64);
        let count = u32::try_from(self.done).unwrap_or(u32::MAX);
        let mut array = Vec::new();
        if is_one_value {
            array.push(0xdd);
            array.extend_from_slice(&count.to_be_bytes());
        }
        let values = if is_one_value { 1 } else { count };
        let bytes = self.bytes + array.len() as u64;
        let tail = self.tail().len();
        match reply::data_ahead(&mut head, (sync, schema_version), values, bytes, tail) {
            Ok(()) => {
                head.extend_from_slice(&array);
                (head, false)
            }
            Err(error) => {
                let error = error::illegal(&error.to_string());
                error::write(&mut head, sync, schema_version, &error);
                (head, true)
            }
        }
    }

    /// What follows the tuples.
    fn tail(&self) -> Vec<u8> {
        let mut tail = Vec::new();
        if let (true, Some((last, hint))) = (self.shape.shows_position, &self.last)
            && let Some(index) = self.selecting.borrow_owner().index(self.selected.index)
        {
            reply::position(&mut tail, &index.position_at(last.bytes(), *hint));
        }
        tail
    }
}

impl Slices for LongSelect {
    fn write(&mut self, reply: &mut Reply<'_>, room: &mut Room) -> bool {
        if !self.is_measured {
            if self.visit(reply, room, |_, _| {}) {
                return true;
            }
            self.is_measured = true;
            let (head, is_error) = self.head();
            reply.raw(&head);
            // It was selected before, so it is no error now.
            return !is_error && self.begin_again().is_ok();
        }
        if self.visit(reply, room, |reply, tuple| reply.raw(tuple.bytes())) {
            return true;
        }
        reply.raw(&self.tail());
        false
    }
}
