//! Going over a list's elements, from either side.
//!
//! Elements are shown to a function rather than handed out: those of a compressed chunk live no
//! longer than the walk is in that chunk.

use super::entry::{self, Element, Needle};
use super::link::Link;
use super::{End, ListValue, Repr};
use std::ops::ControlFlow::{self, Break, Continue};
use std::ops::Range;

impl ListValue {
    /// Shows `visit` the element of this index and those after it towards the end `to`, until it
    /// breaks.
    #[inline]
    pub fn walk<B>(
        &self,
        index: usize,
        to: End,
        mut visit: impl FnMut(Element<'_>) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        if index >= self.len() {
            return Continue(());
        }
        let chunks = match &self.0 {
            Repr::Packed(chunk) => {
                let part = part(chunk.entries(), chunk.len(), index, to);
                return walk_entries(part, to, &mut visit);
            }
            Repr::Chunked(chunks) => chunks,
        };
        let (at, within) = chunks.find(index);
        let links = chunks.links();
        let unpacked = &mut Vec::new();
        let first = &links[at];
        let count = first.count();
        walk_entries(part(first.entries(unpacked), count, within, to), to, &mut visit)?;
        let mut walk_link = |link: &Link| walk_entries(link.entries(unpacked), to, &mut visit);
        match to {
            End::Back => links.range(at + 1..).try_for_each(&mut walk_link),
            End::Front => links.range(..at).rev().try_for_each(&mut walk_link),
        }
    }

    /// Shows `visit` all elements.
    pub fn for_each(&self, mut visit: impl FnMut(Element<'_>)) {
        let _: ControlFlow<()> = self.walk(0, End::Back, |element| {
            visit(element);
            Continue(())
        });
    }

    /// Shows `visit` all elements with their indexes, beginning at the end `from`, until it breaks.
    #[inline]
    pub fn search<B>(
        &self,
        from: End,
        mut visit: impl FnMut(usize, Element<'_>) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let last = self.len().wrapping_sub(1);
        match from {
            End::Front => {
                let mut index = 0;
                self.walk(0, End::Back, |element| {
                    index += 1;
                    visit(index - 1, element)
                })
            }
            End::Back => {
                let mut index = self.len();
                self.walk(last, End::Front, |element| {
                    index -= 1;
                    visit(index, element)
                })
            }
        }
    }

    /// Index of the first element that matches.
    pub fn position(&self, needle: Needle<'_>) -> Option<usize> {
        let found =
            self.search(
                End::Front,
                |index, element| {
                    if needle.is(element) { Break(index) } else { Continue(()) }
                },
            );
        found.break_value()
    }

    /// Passes the elements of these indexes to `visit`, as far as they exist.
    #[inline]
    pub fn range(&self, range: Range<usize>, mut visit: impl FnMut(Element<'_>)) {
        let mut left = range.len();
        if left == 0 {
            return;
        }
        let _ = self.walk(range.start, End::Back, |element| {
            visit(element);
            left -= 1;
            if left == 0 { Break(()) } else { Continue(()) }
        });
    }

    /// What `visit` says of the element of this index.
    #[inline]
    pub fn get<R>(&self, index: usize, visit: impl FnOnce(Element<'_>) -> R) -> Option<R> {
        let mut visit = Some(visit);
        let walked = self.walk(index, End::Back, |element| match visit.take() {
            Some(visit) => Break(visit(element)),
            None => Continue(()),
        });
        walked.break_value()
    }
}

/// The entries from the one of this index on to the end `to`.
#[inline]
fn part(entries: &[u8], count: usize, index: usize, to: End) -> &[u8] {
    match to {
        End::Back => &entries[entry::offset(entries, count, index)..],
        End::Front => &entries[..entry::offset(entries, count, index + 1)],
    }
}

#[inline]
fn walk_entries<B>(
    mut entries: &[u8],
    to: End,
    visit: &mut impl FnMut(Element<'_>) -> ControlFlow<B>,
) -> ControlFlow<B> {
    while !entries.is_empty() {
        let element = match to {
            End::Back => {
                let (element, size) = entry::first(entries);
                entries = &entries[size..];
                element
            }
            End::Front => {
                let (rest, last) = entries.split_at(entries.len() - entry::last_size(entries));
                entries = rest;
                entry::first(last).0
            }
        };
        visit(element)?;
    }
    Continue(())
}
