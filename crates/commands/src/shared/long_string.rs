//! Strings in replies: a long one is sent in blocks from its own memory (`long_reply.rs`).

use ladon_engine::types::long_string::LongString;
use ladon_engine::{Object, ValueRef};
use ladon_kernel::command::error::CommandError;
use ladon_kernel::ctx::{Ctx, Later};
use ladon_kernel::long::large::Large;
use ladon_kernel::long::slices::{Keeping, Room, Slices};
use ladon_resp::{Proto, Reply};
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

/// Replies with a string, or null if there is none. The rest of a long reply is for
/// [`reply_rest`].
#[inline]
pub(crate) fn answer(
    reply: &mut Reply<'_>,
    value: Option<ValueRef<'_>>,
    later: &Later<'_>,
) -> Result<Option<Strings>, CommandError> {
    match value {
        Some(ValueRef::Bytes { bytes, .. }) => reply.bulk(bytes),
        Some(ValueRef::Int(int)) => reply.bulk_int(int),
        Some(ValueRef::Object(Object::String(string))) => {
            return Ok(answer_part(reply, string, 0..string.len(), later));
        }
        Some(ValueRef::Object(_)) => return Err(CommandError::WrongType),
        None => reply.null(),
    }
    Ok(None)
}

/// Replies with a part of a string.
#[inline(never)]
pub(crate) fn answer_part(
    reply: &mut Reply<'_>,
    string: &LongString,
    range: Range<usize>,
    later: &Later<'_>,
) -> Option<Strings> {
    let mut strings = Strings::default();
    strings.add(reply, string, range, later.large());
    strings.into_rest()
}

/// The rest of a reply, from its first long string on.
///
/// A short request may name the same key many times. In a long reply, a value is therefore copied
/// once, however often it occurs.
#[derive(Default)]
pub(crate) struct Strings {
    parts: VecDeque<Part>,
    /// The bytes that parts of the reply consist of.
    made: Vec<u8>,
    /// Ranges of `made` that hold the reply for the value at this address, of this length.
    copies: HashMap<(usize, usize), Range<usize>>,
    /// Bytes of strings written so far.
    before: usize,
    /// Bytes of frozen strings: each counted once here, and below as often as still to be sent.
    frozen: usize,
    frozen_left: usize,
    /// Some value occurs more than once.
    repeats: bool,
    /// Its client is slow, so the client accounts for what it holds.
    is_kept: bool,
}

enum Part {
    /// A range of `made`.
    Made(Range<usize>),
    /// Bytes of a frozen string.
    Of { whole: Arc<Vec<u8>>, range: Range<usize> },
}

/// A shorter value is hardly longer than the request that names it.
const COPIED_ONCE_MIN: usize = 128;

impl Strings {
    /// Replies with one more of several strings, while the data does not change; with null if there
    /// is none, or another type.
    pub(crate) fn answer(
        &mut self,
        reply: &mut Reply<'_>,
        value: Option<ValueRef<'_>>,
        large: Large,
    ) {
        match value {
            Some(ValueRef::Bytes { bytes, .. }) => self.copy(reply, bytes, large),
            Some(ValueRef::Int(int)) => self.made(reply, |reply| reply.bulk_int(int)),
            Some(ValueRef::Object(Object::String(string))) => {
                self.add(reply, string, 0..string.len(), large);
            }
            Some(ValueRef::Object(_)) | None => self.made(reply, |reply| reply.null()),
        }
    }

    /// The rest of the reply, if any.
    pub(crate) fn into_rest(mut self) -> Option<Strings> {
        self.copies = HashMap::new();
        (!self.parts.is_empty()).then_some(self)
    }

    fn add(
        &mut self,
        reply: &mut Reply<'_>,
        string: &LongString,
        range: Range<usize>,
        large: Large,
    ) {
        if !large.is_block(range.len(), self.before) {
            self.copy(reply, &string[range], large);
            return;
        }
        self.before += range.len();
        self.made(reply, |reply| reply.bulk_header(range.len()));
        let counted = (string.as_ptr().addr(), range.len());
        match self.copies.insert(counted, 0..0) {
            None => self.frozen = self.frozen.saturating_add(range.len()),
            Some(_) => self.repeats = true,
        }
        self.frozen_left = self.frozen_left.wrapping_add(range.len());
        self.parts.push_back(Part::Of { whole: string.freeze().into_shared(), range });
        self.made(reply, |reply| reply.raw(b"\r\n"));
    }

    /// Answers with null.
    pub(crate) fn null(&mut self, reply: &mut Reply<'_>) {
        self.made(reply, |reply| reply.null());
    }

    /// Answers with a string that is part of a value.
    pub(crate) fn copy(&mut self, reply: &mut Reply<'_>, bytes: &[u8], large: Large) {
        self.before = self.before.saturating_add(bytes.len());
        if bytes.len() < COPIED_ONCE_MIN || !large.is_long(self.before) {
            self.made(reply, |reply| reply.bulk(bytes));
            return;
        }
        let value = (bytes.as_ptr().addr(), bytes.len());
        if let Some(copy) = self.copies.get(&value) {
            let copy = copy.clone();
            self.repeats = true;
            self.refer(copy);
            return;
        }
        let start = self.made.len();
        Reply::new(&mut self.made, reply.proto()).bulk(bytes);
        self.copies.insert(value, start..self.made.len());
        self.refer(start..self.made.len());
    }

    /// Writes to the reply, or to its rest.
    fn made(&mut self, reply: &mut Reply<'_>, write: impl FnOnce(&mut Reply<'_>)) {
        if self.parts.is_empty() {
            write(reply);
            return;
        }
        let start = self.made.len();
        write(&mut Reply::new(&mut self.made, reply.proto()));
        self.refer(start..self.made.len());
    }

    /// Continues the reply with a range of `made`.
    fn refer(&mut self, made: Range<usize>) {
        match self.parts.back_mut() {
            Some(Part::Made(before)) if before.end == made.start => before.end = made.end,
            _ => self.parts.push_back(Part::Made(made)),
        }
    }
}

impl Slices for Strings {
    fn write(&mut self, reply: &mut Reply<'_>, room: &mut Room) -> bool {
        while let Some(part) = self.parts.front_mut() {
            match part {
                Part::Made(range) => {
                    range.start += room.copy(reply, &self.made[range.clone()]);
                    if !Range::is_empty(range) {
                        return true;
                    }
                }
                Part::Of { whole, range } => {
                    let before = range.len();
                    room.refer(whole, range);
                    self.frozen_left = self.frozen_left.wrapping_sub(before - range.len());
                    if Range::is_empty(range) {
                        self.parts.pop_front();
                    }
                    return true;
                }
            }
            self.parts.pop_front();
        }
        false
    }

    fn keep(&mut self, _: Proto, _: usize) -> Keeping {
        if !self.repeats {
            return Keeping::Output;
        }
        // The rest may be many times as long as what it was made of.
        self.is_kept = true;
        Keeping::Own(None)
    }

    fn memory(&self) -> usize {
        let frozen = if self.is_kept { self.frozen.min(self.frozen_left) } else { 0 };
        self.made.capacity() + self.parts.capacity() * size_of::<Part>() + frozen
    }
}

/// Continues the reply with `rest`, if there is any.
#[inline]
pub(crate) fn reply_rest(ctx: &mut Ctx<'_>, rest: Option<Strings>) {
    if let Some(rest) = rest {
        ctx.reply_in_slices(rest);
    }
}
