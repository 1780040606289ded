//! SQL over IPROTO: EXECUTE and PREPARE.
//!
//! Source: Tarantool's manual, "Box protocol", "SQL-specific requests and responses".

use std::io::{self, Read};
use std::net::TcpStream;

use super::{Answers, Cell, Reply, Said, SqlProtocol, Value};
use crate::dialects::iproto::msgpack::{self, Reader};
use crate::dialects::iproto::reply::{self, GREETING_BYTES};
use crate::dialects::iproto::request::{DATA, framed};
use crate::dialects::{Framed, Malformed};

/// `IPROTO_EXECUTE`
pub const EXECUTE: u8 = 0x0b;
/// `IPROTO_PREPARE`
pub const PREPARE: u8 = 0x0d;
/// `IPROTO_METADATA`
pub const METADATA: u8 = 0x32;
/// `IPROTO_SQL_TEXT`
pub const SQL_TEXT: u8 = 0x40;
/// `IPROTO_SQL_BIND`
pub const SQL_BIND: u8 = 0x41;
/// `IPROTO_SQL_INFO`
pub const SQL_INFO: u8 = 0x42;
/// `IPROTO_STMT_ID`
pub const STMT_ID: u8 = 0x43;
/// `SQL_INFO_ROW_COUNT`
pub const ROW_COUNT: u8 = 0;

/// The protocol, as `guest`.
#[derive(Clone, Copy, Debug)]
pub struct IprotoSql;

impl SqlProtocol for IprotoSql {
    fn login(&self, socket: &mut TcpStream) -> io::Result<()> {
        let mut greeting = [0; GREETING_BYTES];
        socket.read_exact(&mut greeting)?;
        reply::salt(&greeting).map(|_| ()).map_err(io::Error::other)
    }

    fn pipelines(&self) -> bool {
        true
    }

    fn text(&self, tag: u64, text: &str, out: &mut Vec<u8>) {
        framed(EXECUTE, tag, out, |out| {
            msgpack::write_map(1, out);
            out.push(SQL_TEXT);
            msgpack::write_text(text.as_bytes(), out);
        });
    }

    fn prepare(&self, tag: u64, text: &str, out: &mut Vec<u8>) {
        framed(PREPARE, tag, out, |out| {
            msgpack::write_map(1, out);
            out.push(SQL_TEXT);
            msgpack::write_text(text.as_bytes(), out);
        });
    }

    fn execute(&self, tag: u64, statement: u64, values: &[Value], out: &mut Vec<u8>) {
        framed(EXECUTE, tag, out, |out| {
            msgpack::write_map(2, out);
            out.push(STMT_ID);
            msgpack::write_unsigned(statement, out);
            out.push(SQL_BIND);
            msgpack::write_array(values.len(), out);
            for value in values {
                match value {
                    Value::Integer(number) => msgpack::write_integer(*number, out),
                    Value::Text(text) => msgpack::write_text(text.as_bytes(), out),
                }
            }
        });
    }

    fn tag(&self, bytes: &[u8]) -> Result<Option<u64>, Malformed> {
        match reply::frame(bytes)? {
            Framed::Incomplete => Ok(None),
            Framed::Frame { tag, .. } => Ok(tag),
        }
    }

    fn reply<'a>(&self, _: Answers, bytes: &'a [u8]) -> Result<Option<Reply<'a>>, Malformed> {
        let Framed::Frame { length, .. } = reply::frame(bytes)? else { return Ok(None) };
        let parsed = reply::Reply::parse(&bytes[..length])?;
        let said = match parsed.body() {
            Ok(body) => said(body).ok_or_else(|| Malformed("no reply to SQL".to_owned()))?,
            Err(refused) => Said::Refused(refused.to_string()),
        };
        Ok(Some(Reply { length, said }))
    }
}

fn said(mut body: Reader<'_>) -> Option<Said<'_>> {
    let mut columns = 0;
    for _ in 0..body.map()? {
        match u8::try_from(body.unsigned()?).ok()? {
            METADATA => {
                let mut names = body;
                columns = names.array()?;
                body.skip()?;
            }
            DATA => return rows(columns, body),
            SQL_INFO => {
                for _ in 0..body.map()? {
                    if body.unsigned()? == u64::from(ROW_COUNT) {
                        return Some(Said::Changed(body.unsigned()?));
                    }
                    body.skip()?;
                }
            }
            STMT_ID => return Some(Said::Prepared(body.unsigned()?)),
            _ => body.skip()?,
        }
    }
    None
}

fn rows(columns: usize, mut body: Reader<'_>) -> Option<Said<'_>> {
    let rows = body.array()?;
    let mut cells = Vec::with_capacity(rows * columns.min(64));
    for _ in 0..rows {
        if body.array()? != columns {
            return None;
        }
        for _ in 0..columns {
            cells.push(cell(&mut body)?);
        }
    }
    Some(Said::Rows { columns, cells })
}

fn cell<'a>(body: &mut Reader<'a>) -> Option<Cell<'a>> {
    match *body.rest().first()? {
        0xc0 => body.skip().map(|()| Cell::Null),
        0xa0..=0xbf | 0xc4..=0xc6 | 0xd9..=0xdb => body.bytes().map(Cell::Text),
        _ => body.integer().map(Cell::Integer),
    }
}
