//! A value that is too large for one request, as commands that build it up.

use crate::import::TargetError;
use crate::into_server::Pipeline;
use ladon_rdb::{Element, Field};
use std::mem;

/// A command is sent once it has so many bytes or words.
const BYTES_MAX: usize = 64 << 10;
const WORDS_MAX: usize = 1024;

/// The commands that add elements to one key.
pub(crate) struct Pieces<'k> {
    key: &'k [u8],
    command: &'static [u8],
    words: Vec<Vec<u8>>,
    bytes: usize,
    /// Fields that expire, and when.
    expiries: Vec<(Vec<u8>, u64)>,
}

impl<'k> Pieces<'k> {
    pub(crate) fn new(key: &'k [u8]) -> Pieces<'k> {
        Pieces { key, command: b"", words: Vec::new(), bytes: 0, expiries: Vec::new() }
    }

    /// Adds an element of any type but a stream's.
    pub(crate) fn push(
        &mut self,
        element: Element,
        pipeline: &mut Pipeline,
    ) -> Result<(), TargetError> {
        match element {
            Element::StringPart(part) => {
                self.words(b"APPEND", [part]);
                // It takes one.
                return self.flush(pipeline);
            }
            Element::ListElement(element) => self.words(b"RPUSH", [element]),
            Element::SetMember(member) => self.words(b"SADD", [member]),
            Element::Scored { member, score } => {
                self.words(b"ZADD", [score.to_string().into_bytes(), member]);
            }
            Element::Field(Field { name, value, expires_at_ms }) => {
                self.expiries.extend(expires_at_ms.map(|at| (name.clone(), at)));
                self.words(b"HSET", [name, value]);
            }
            element => unreachable!("{element:?}: streams are restored whole"),
        }
        if self.bytes >= BYTES_MAX || self.words.len() >= WORDS_MAX {
            self.flush(pipeline)?;
        }
        Ok(())
    }

    fn words<const N: usize>(&mut self, command: &'static [u8], words: [Vec<u8>; N]) {
        self.command = command;
        self.bytes += words.iter().map(Vec::len).sum::<usize>();
        self.words.extend(words);
    }

    /// Sends what has not been sent.
    pub(crate) fn flush(&mut self, pipeline: &mut Pipeline) -> Result<(), TargetError> {
        self.bytes = 0;
        let words = mem::take(&mut self.words);
        if !words.is_empty() {
            let mut all = vec![self.command, self.key];
            all.extend(words.iter().map(Vec::as_slice));
            pipeline.send(self.key, &all)?;
        }
        for (field, at) in mem::take(&mut self.expiries) {
            let at = at.to_string();
            let all: [&[u8]; 6] = [b"HPEXPIREAT", self.key, at.as_bytes(), b"FIELDS", b"1", &field];
            pipeline.send(self.key, &all)?;
        }
        Ok(())
    }
}
