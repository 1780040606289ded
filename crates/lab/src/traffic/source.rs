//! What a source of operations is, and what all of them share: a load thread's part of the users
//! and keys, and operations whose buffers are reused.

use std::borrow::Cow;

use crate::dialects::{Dialect, Refused};
use crate::operation::{Answer, Operation};

/// A source of operations that knows the right answers.
pub trait Traffic {
    /// Makes `operation` the next one of user `user`. `request` numbers the requests that can be
    /// under way at once; its last one was judged before. False when there is nothing more to ask.
    fn next(&mut self, user: usize, request: usize, operation: &mut Operation) -> bool;

    /// Whether `reply` is right; notes what it teaches.
    fn judge(&mut self, reply: &Reply<'_>) -> bool;

    /// The right answer in words, for messages.
    fn expected(&self, user: usize, request: usize, operation: &Operation) -> String;
}

impl<T: Traffic> Traffic for &mut T {
    fn next(&mut self, user: usize, request: usize, operation: &mut Operation) -> bool {
        (**self).next(user, request, operation)
    }

    fn judge(&mut self, reply: &Reply<'_>) -> bool {
        (**self).judge(reply)
    }

    fn expected(&self, user: usize, request: usize, operation: &Operation) -> String {
        (**self).expected(user, request, operation)
    }
}

/// A whole reply to judge.
#[derive(Clone, Copy)]
pub struct Reply<'a> {
    /// The user who asked.
    pub user: usize,
    /// The number of the request among those under way.
    pub request: usize,
    /// What was asked.
    pub operation: &'a Operation,
    dialect: &'a dyn Dialect,
    frame: &'a [u8],
}

impl<'a> Reply<'a> {
    /// `frame` of `dialect`, the reply to `operation`; `of` is the user and the request.
    #[must_use]
    pub fn new(
        of: (usize, usize),
        operation: &'a Operation,
        dialect: &'a dyn Dialect,
        frame: &'a [u8],
    ) -> Self {
        Self { user: of.0, request: of.1, operation, dialect, frame }
    }

    /// Whether it says `answer`.
    #[must_use]
    pub fn is(&self, answer: &Answer) -> bool {
        self.dialect.is_right(self.operation, answer, self.frame)
    }

    /// What it says.
    ///
    /// # Errors
    /// That the operation was refused.
    pub fn answer(&self) -> Result<Answer, Refused> {
        self.dialect.answer(self.operation, self.frame)
    }

    /// The value that it says a key has.
    ///
    /// # Errors
    /// That the operation was refused.
    pub fn value(&self) -> Result<Option<Cow<'a, [u8]>>, Refused> {
        self.dialect.value(self.operation, self.frame)
    }
}

/// Which part of a store's users and keys a load thread has.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// Which thread this is, from 0.
    pub part: usize,
    /// How many there are.
    pub parts: usize,
}

impl Default for Share {
    fn default() -> Self {
        Self { part: 0, parts: 1 }
    }
}

impl Share {
    /// The number among all threads' users of this one's user `user`.
    #[must_use]
    pub const fn user(self, user: usize) -> usize {
        user * self.parts + self.part
    }

    /// How many of `count` things are this one's.
    pub(super) fn range(self, count: u32) -> u32 {
        let until = |part: usize| u64::from(count) * part as u64 / self.parts as u64;
        u32::try_from(until(self.part + 1) - until(self.part)).unwrap_or(count)
    }

    /// Its keys are numbered from here on, far from the next one's.
    pub(super) fn first_key(self) -> u32 {
        u32::MAX / u32::try_from(self.parts).unwrap_or(u32::MAX) * self.part as u32
    }
}

/// `operation` as a `Set` whose buffers are to be filled; their capacity is reused.
pub(crate) fn as_set(operation: &mut Operation) -> (&mut Vec<u8>, &mut Vec<u8>) {
    if !matches!(operation, Operation::Set { .. }) {
        *operation = Operation::Set { key: take_key(operation), value: Vec::new() };
    }
    match operation {
        Operation::Set { key, value } => (key, value),
        _ => unreachable!("made one above"),
    }
}

/// `operation` as a `Get`, likewise.
pub(crate) fn as_get(operation: &mut Operation) -> &mut Vec<u8> {
    if !matches!(operation, Operation::Get { .. }) {
        *operation = Operation::Get { key: take_key(operation) };
    }
    match operation {
        Operation::Get { key } => key,
        _ => unreachable!("made one above"),
    }
}

/// `operation` as a `GetByCall`, likewise.
pub(crate) fn as_get_by_call(operation: &mut Operation) -> &mut Vec<u8> {
    if !matches!(operation, Operation::GetByCall { .. }) {
        *operation = Operation::GetByCall { key: take_key(operation) };
    }
    match operation {
        Operation::GetByCall { key } => key,
        _ => unreachable!("made one above"),
    }
}

/// `operation` as a `Delete`, likewise.
pub(crate) fn as_delete(operation: &mut Operation) -> &mut Vec<u8> {
    if !matches!(operation, Operation::Delete { .. }) {
        *operation = Operation::Delete { key: take_key(operation) };
    }
    match operation {
        Operation::Delete { key } => key,
        _ => unreachable!("made one above"),
    }
}

fn take_key(operation: &mut Operation) -> Vec<u8> {
    match operation {
        Operation::Set { key, .. } | Operation::Get { key } | Operation::Delete { key } => {
            std::mem::take(key)
        }
        _ => Vec::new(),
    }
}

/// An operation to begin with, before the first `next`.
#[must_use]
pub const fn blank() -> Operation {
    Operation::Get { key: Vec::new() }
}
