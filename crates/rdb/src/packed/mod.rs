//! Collections that Redis packs into one string: listpack, ziplist, zipmap, intset.
//!
//! **Invariant:** each is read element by element; its head's counts and lengths are compared with
//! what is there, and never trusted.

mod intset;
mod listpack;
mod ziplist;
mod zipmap;

use std::io::Read;

use crate::error::Fault;
use crate::source::Source;
use crate::text::Text;

pub(crate) use listpack::Pack;

/// What packs elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Listpack,
    Ziplist,
    Zipmap,
    Intset,
}

/// An element of a packed collection.
#[derive(Debug, PartialEq)]
pub(crate) enum Item {
    Bytes(Vec<u8>),
    Number(i64),
}

impl Item {
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        match self {
            Item::Bytes(bytes) => bytes,
            Item::Number(number) => number.to_string().into_bytes(),
        }
    }
}

enum State {
    Listpack(listpack::Listpack),
    Ziplist(ziplist::Ziplist),
    Zipmap(zipmap::Zipmap),
    Intset(intset::Intset),
}

/// A packed collection that is being read.
pub(crate) struct Packed {
    text: Text,
    state: State,
    is_at_end: bool,
}

impl Packed {
    /// Begins with the string that holds the collection.
    pub(crate) fn open<R: Read>(form: Form, source: &mut Source<R>) -> Result<Packed, Fault> {
        let mut text = Text::open(source)?;
        let state = match form {
            Form::Listpack => State::Listpack(listpack::Listpack::open(&mut text, source)?),
            Form::Ziplist => State::Ziplist(ziplist::Ziplist::open(&mut text, source)?),
            Form::Zipmap => State::Zipmap(zipmap::Zipmap::open(&mut text, source)?),
            Form::Intset => State::Intset(intset::Intset::open(&mut text, source)?),
        };
        Ok(Packed { text, state, is_at_end: false })
    }

    /// Takes the rest without looking into it.
    pub(crate) fn skip_rest<R: Read>(&self, source: &mut Source<R>) -> Result<(), Fault> {
        self.text.skip_rest(source)
    }

    /// The next element; `None` after the last one.
    pub(crate) fn next<R: Read>(&mut self, source: &mut Source<R>) -> Result<Option<Item>, Fault> {
        if self.is_at_end {
            return Ok(None);
        }
        let text = &mut self.text;
        let item = match &mut self.state {
            State::Listpack(state) => state.next(text, source),
            State::Ziplist(state) => state.next(text, source),
            State::Zipmap(state) => state.next(text, source),
            State::Intset(state) => state.next(text, source),
        }?;
        self.is_at_end = item.is_none();
        if self.is_at_end && text.remaining() > 0 {
            return Err(Fault::Malformed("bytes follow the end of a packed collection"));
        }
        Ok(item)
    }

    /// The next element, where the format promises one.
    pub(crate) fn expect<R: Read>(&mut self, source: &mut Source<R>) -> Result<Item, Fault> {
        self.next(source)?.ok_or(Fault::Malformed("a packed collection lacks elements"))
    }

    /// The next element, where the format promises a number.
    pub(crate) fn expect_number<R: Read>(&mut self, source: &mut Source<R>) -> Result<i64, Fault> {
        match self.expect(source)? {
            Item::Number(number) => Ok(number),
            Item::Bytes(_) => Err(Fault::Malformed("a string stands where a number should")),
        }
    }
}
