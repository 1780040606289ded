//! Strings in replies: a long one is sent from where it stands, in blocks (`long_reply.rs`).

use crate::ctx::{Ctx, Later};
use crate::error::CommandError;
use crate::long_reply::{Large, Room, Slices};
use ladon_engine::types::long_string::LongString;
use ladon_engine::{Object, ValueRef};
use ladon_resp::Reply;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// Answers with a string; null where there is none. What is left of the reply, if it is long, is for
/// [`Ctx::reply_rest`].
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

/// Answers with a part of a string.
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

/// What is left of a reply, from its first long string on.
#[derive(Default)]
pub(crate) struct Strings {
    parts: VecDeque<Part>,
    /// Bytes of strings that were answered so far.
    before: usize,
}

enum Part {
    /// Bytes as they are.
    Made(Vec<u8>),
    /// Bytes of a frozen string.
    Of { whole: Arc<Vec<u8>>, range: Range<usize> },
}

impl Strings {
    /// Answers with one more of several strings; with null where there is none, or another type.
    pub(crate) fn answer(
        &mut self,
        reply: &mut Reply<'_>,
        value: Option<ValueRef<'_>>,
        large: Large,
    ) {
        match value {
            Some(ValueRef::Bytes { bytes, .. }) => {
                self.before += bytes.len();
                self.made(reply, |reply| reply.bulk(bytes));
            }
            Some(ValueRef::Int(int)) => self.made(reply, |reply| reply.bulk_int(int)),
            Some(ValueRef::Object(Object::String(string))) => {
                self.add(reply, string, 0..string.len(), large);
            }
            Some(ValueRef::Object(_)) | None => self.made(reply, |reply| reply.null()),
        }
    }

    /// What is left of the reply, if any.
    pub(crate) fn into_rest(self) -> Option<Strings> {
        (!self.parts.is_empty()).then_some(self)
    }

    fn add(
        &mut self,
        reply: &mut Reply<'_>,
        string: &LongString,
        range: Range<usize>,
        large: Large,
    ) {
        let is_block = large.is_block(range.len(), self.before);
        self.before += range.len();
        if !is_block {
            self.made(reply, |reply| reply.bulk(&string[range]));
            return;
        }
        self.made(reply, |reply| reply.bulk_header(range.len()));
        self.parts.push_back(Part::Of { whole: string.freeze().into_shared(), range });
        self.parts.push_back(Part::Made(b"\r\n".to_vec()));
    }

    /// Writes to the reply, or behind what is left of it.
    fn made(&mut self, reply: &mut Reply<'_>, write: impl FnOnce(&mut Reply<'_>)) {
        match self.parts.back_mut() {
            Some(Part::Made(made)) => write(&mut Reply::new(made, reply.proto())),
            _ => write(reply),
        }
    }
}

impl Slices for Strings {
    fn write(&mut self, reply: &mut Reply<'_>, room: &mut Room) -> bool {
        while let Some(part) = self.parts.front_mut() {
            match part {
                Part::Made(made) => reply.raw(made),
                Part::Of { whole, range } => {
                    room.refer(whole, range);
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
}

impl Ctx<'_> {
    /// The reply goes on with this, if there is any.
    #[inline]
    pub(crate) fn reply_rest(&mut self, rest: Option<Strings>) {
        if let Some(rest) = rest {
            self.reply_in_slices(rest);
        }
    }
}
