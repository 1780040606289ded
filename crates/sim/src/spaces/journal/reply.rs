//! Replies, as data.

use crate::spaces::contents::{Change, HASHED, Row, Rows};
use crate::spaces::request::{Key, Request, Selection};
use ladon_iproto::client;
use ladon_msgpack::{Value, read_array, read_uint};
use std::rc::Rc;

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// Without data.
    Done,
    Rows(Rows),
    Count(u64),
    /// Of SQL: rows that were changed, and the numbers that the sequence gave.
    Changed(u64, Vec<u64>),
    /// Data that no request on these spaces gives: a definition.
    Other,
    Error(u32),
}

impl Reply {
    pub(crate) fn of(reply: &client::Reply<'_>) -> Reply {
        if let Some(code) = reply.error_code() {
            return Reply::Error(code);
        }
        if let Some(info) = reply.sql_info {
            return Reply::of_sql(info).unwrap_or(Reply::Other);
        }
        if reply.data.is_none() {
            return Reply::Done;
        }
        let tuples = reply.tuples();
        if let [mut number] = tuples[..]
            && let Ok(count) = read_uint(&mut number)
        {
            return Reply::Count(count);
        }
        let rows: Option<Rows> = tuples.iter().map(|it| Row::read(it).map(Rc::new)).collect();
        rows.map_or(Reply::Other, Reply::Rows)
    }

    /// Of `{0: COUNT, 1: [IDS]}`.
    fn of_sql(mut info: &[u8]) -> Option<Reply> {
        let Value::Map(pairs) = ladon_msgpack::read(&mut info).ok()? else { return None };
        let (mut count, mut ids) = (0, Vec::new());
        for _ in 0..pairs {
            match read_uint(&mut info).ok()? {
                0 => count = read_uint(&mut info).ok()?,
                _ => {
                    for _ in 0..read_array(&mut info).ok()? {
                        ids.push(read_uint(&mut info).ok()?);
                    }
                }
            }
        }
        Some(Reply::Changed(count, ids))
    }

    pub(super) fn of_rows(rows: Result<Rows, u32>) -> Reply {
        rows.map_or_else(Reply::Error, Reply::Rows)
    }

    pub(super) fn of_statement(done: &Result<Change, u32>) -> Reply {
        Reply::of_rows(done.clone().map(|change| change.shown.into_iter().collect()))
    }

    /// With tuples in the oracle's order, if they may come in any.
    pub(super) fn ordered(self, request: &Request) -> Reply {
        match (request, self) {
            (Request::Select(HASHED, Selection { key: Key::None, .. }), Reply::Rows(mut rows)) => {
                rows.sort_by_key(|row| row.id);
                Reply::Rows(rows)
            }
            (_, reply) => reply,
        }
    }
}
