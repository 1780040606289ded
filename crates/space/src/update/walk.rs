//! Steps into values, and the count of the bytes that they pass.

use super::lexer::Token;
use crate::error::BoxError;
use ladon_msgpack::{self as msgpack, Value};

/// Bytes of nested values that the operations of one request may pass: some fifty milliseconds'
/// work. One operation passes each byte of a tuple a few times at most, so only many operations in
/// large nested values get there.
const BYTES_MAX: usize = 64 << 20;

/// How far one request may still go.
pub(super) struct Walk(usize);

impl Walk {
    pub(super) fn new() -> Walk {
        Walk(BYTES_MAX)
    }

    pub(super) fn pass(&mut self, bytes: usize) {
        self.0 = self.0.saturating_sub(bytes);
    }

    /// # Errors
    /// If the operations went too far.
    pub(super) fn check(&self) -> Result<(), BoxError> {
        if self.0 > 0 {
            return Ok(());
        }
        Err(BoxError::illegal("update operations walk through too many nested values"))
    }
}

/// Where a step leads: the bytes from there on.
pub(super) struct Found<'a> {
    /// From the key on, if it is in a map.
    pub(super) key: &'a [u8],
    pub(super) value: &'a [u8],
}

/// Takes a step into the array or map at the front of `value`. As in Tarantool, an index finds a
/// map's integer key as well.
pub(super) fn step<'a>(value: &'a [u8], token: Token<'_>, walk: &mut Walk) -> Option<Found<'a>> {
    let found = find(value, token);
    let passed = found.as_ref().map_or(value.len(), |found| value.len() - found.value.len());
    walk.pass(passed);
    found
}

fn find<'a>(mut rest: &'a [u8], token: Token<'_>) -> Option<Found<'a>> {
    match (msgpack::read(&mut rest).ok()?, token) {
        (Value::Array(count), Token::Index(index)) => {
            if index >= count {
                return None;
            }
            for _ in 0..index {
                msgpack::skip(&mut rest).ok()?;
            }
            Some(Found { key: rest, value: rest })
        }
        (Value::Map(count), Token::Index(_) | Token::Key(_)) => {
            for _ in 0..count {
                let key = rest;
                let is_it = match (msgpack::read(&mut { key }).ok()?, token) {
                    (Value::Uint(key), Token::Index(index)) => key == u64::from(index) + 1,
                    (Value::Str(key), Token::Key(wanted)) => key == wanted,
                    _ => false,
                };
                msgpack::skip(&mut rest).ok()?;
                if is_it {
                    return Some(Found { key, value: rest });
                }
                msgpack::skip(&mut rest).ok()?;
            }
            None
        }
        _ => None,
    }
}

/// The value at the front.
pub(super) fn whole<'a>(mut from: &'a [u8], walk: &mut Walk) -> &'a [u8] {
    let value = msgpack::take(&mut from).unwrap_or_default();
    walk.pass(value.len());
    value
}
