//! Going over a list's elements, from either side.

use super::chunk::Chunk;
use super::chunks::Link;
use super::entry::{self, Element};
use std::collections::vec_deque;
use std::iter::Rev;

/// A list's elements from some index on towards the back.
pub struct Forward<'a> {
    pub(super) entries: &'a [u8],
    pub(super) next: vec_deque::Iter<'a, Link>,
}

/// A list's elements from some index on towards the front.
pub struct Backward<'a> {
    pub(super) entries: &'a [u8],
    pub(super) next: Rev<vec_deque::Iter<'a, Link>>,
}

impl<'a> Forward<'a> {
    /// Over one chunk from an element on.
    pub(super) fn within(chunk: &'a Chunk, index: usize) -> &'a [u8] {
        &chunk.entries()[chunk.offset(index)..]
    }
}

impl<'a> Backward<'a> {
    /// Over one chunk up to an element and with it.
    pub(super) fn within(chunk: &'a Chunk, index: usize) -> &'a [u8] {
        &chunk.entries()[..chunk.offset(index + 1)]
    }
}

impl<'a> Iterator for Forward<'a> {
    type Item = Element<'a>;

    #[inline]
    fn next(&mut self) -> Option<Element<'a>> {
        if self.entries.is_empty() {
            self.entries = self.next.next()?.chunk.entries();
        }
        let (element, size) = entry::first(self.entries);
        self.entries = &self.entries[size..];
        Some(element)
    }
}

impl<'a> Iterator for Backward<'a> {
    type Item = Element<'a>;

    #[inline]
    fn next(&mut self) -> Option<Element<'a>> {
        if self.entries.is_empty() {
            self.entries = self.next.next()?.chunk.entries();
        }
        let at = self.entries.len() - entry::last_size(self.entries);
        let (rest, last) = self.entries.split_at(at);
        self.entries = rest;
        Some(entry::first(last).0)
    }
}
