//! SQL over MySQL's client/server protocol, as much as the lab needs: no TLS, no password, integers
//! and texts.
//!
//! ```text
//!   packet   length 3, sequence 1, payload
//!   reply    OK | ERR | columns n, n definitions, EOF, rows, EOF
//! ```
//!
//! Written here because the usual crates (`mysql`, `mysql_async`) have loops of their own, and the
//! lab's driver needs bytes.
//!
//! Source: MariaDB's knowledge base, "Client/Server Protocol".

use std::io::{self, Read, Write};
use std::net::TcpStream;

use super::{Answers, Cell, Reply, Said, SqlProtocol, Value, ask};
use crate::dialects::Malformed;

/// The protocol, as `root` without a password, in the database [`DATABASE`].
#[derive(Clone, Copy, Debug)]
pub struct MySql;

/// Where tables are.
pub const DATABASE: &str = "lab";

const INIT_DB: u8 = 0x02;
const QUERY: u8 = 0x03;
const PREPARE: u8 = 0x16;
const EXECUTE: u8 = 0x17;

const OK: u8 = 0x00;
const EOF: u8 = 0xfe;
const ERR: u8 = 0xff;
/// A packet that begins as EOF and is longer is a row.
const EOF_BYTES_MAX: usize = 8;

// Types of columns and values.
const TINY: u8 = 0x01;
const SHORT: u8 = 0x02;
const LONG: u8 = 0x03;
const LONGLONG: u8 = 0x08;
const VAR_STRING: u8 = 0xfd;

/// `PROTOCOL_41`, `SECURE_CONNECTION`, `PLUGIN_AUTH`.
const CAPABILITIES: u32 = 0x200 | 0x8000 | 0x8_0000;
/// `utf8mb4_general_ci`
const CHARACTER_SET: u8 = 45;
const PACKET_BYTES_MAX: u32 = 1 << 24;

impl SqlProtocol for MySql {
    fn login(&self, socket: &mut TcpStream) -> io::Result<()> {
        enter(socket)?;
        let mut use_database = Vec::new();
        command(INIT_DB, &mut use_database, |out| out.extend_from_slice(DATABASE.as_bytes()));
        ask(self, socket, Answers::Text, &use_database, |said| match said {
            Said::Refused(words) => Err(io::Error::other(words.clone())),
            _ => Ok(()),
        })?
    }

    fn pipelines(&self) -> bool {
        false
    }

    fn text(&self, _: u64, text: &str, out: &mut Vec<u8>) {
        command(QUERY, out, |out| out.extend_from_slice(text.as_bytes()));
    }

    fn prepare(&self, _: u64, text: &str, out: &mut Vec<u8>) {
        command(PREPARE, out, |out| out.extend_from_slice(text.as_bytes()));
    }

    fn execute(&self, _: u64, statement: u64, values: &[Value], out: &mut Vec<u8>) {
        command(EXECUTE, out, |out| {
            // Statements have 32 bits, of which the server gave all.
            out.extend_from_slice(&(statement as u32).to_le_bytes());
            out.push(0);
            out.extend_from_slice(&1u32.to_le_bytes());
            if values.is_empty() {
                return;
            }
            out.resize(out.len() + values.len().div_ceil(8), 0);
            out.push(1);
            for value in values {
                let kind = match value {
                    Value::Integer(_) => LONGLONG,
                    Value::Text(_) => VAR_STRING,
                };
                out.extend_from_slice(&[kind, 0]);
            }
            for value in values {
                match value {
                    Value::Integer(number) => out.extend_from_slice(&number.to_le_bytes()),
                    Value::Text(text) => write_text(text.as_bytes(), out),
                }
            }
        });
    }

    fn tag(&self, _: &[u8]) -> Result<Option<u64>, Malformed> {
        Ok(None)
    }

    fn reply<'a>(&self, answers: Answers, bytes: &'a [u8]) -> Result<Option<Reply<'a>>, Malformed> {
        let mut packets = Packets { bytes, at: 0 };
        match said(answers, &mut packets) {
            Ok(said) => Ok(Some(Reply { length: packets.at, said })),
            Err(Stop::TooFew) => Ok(None),
            Err(Stop::Wrong) => {
                let begin = &bytes[..bytes.len().min(40)];
                Err(Malformed(format!("no reply of MySQL's: {}", begin.escape_ascii())))
            }
        }
    }

    fn create_table(&self, name: &str, columns: &[(&str, bool)]) -> String {
        let columns: Vec<String> = columns
            .iter()
            .map(|(name, is_text)| {
                format!("{name} {}", if *is_text { "VARCHAR(40)" } else { "BIGINT" })
            })
            .collect();
        format!(
            "CREATE TABLE {name} ({}, PRIMARY KEY USING BTREE (id)) ENGINE = MEMORY",
            columns.join(", ")
        )
    }
}

/// Reads what the server says first and logs in, into no database.
///
/// # Errors
/// As [`SqlProtocol::login`].
pub fn enter(socket: &mut TcpStream) -> io::Result<()> {
    let greeting = packet_of(socket)?;
    if greeting.first() != Some(&10) {
        return Err(io::Error::other(format!("greeted with {}", greeting.escape_ascii())));
    }
    let mut out = Vec::new();
    packet(1, &mut out, |out| {
        out.extend_from_slice(&CAPABILITIES.to_le_bytes());
        out.extend_from_slice(&PACKET_BYTES_MAX.to_le_bytes());
        out.push(CHARACTER_SET);
        out.extend_from_slice(&[0; 23]);
        out.extend_from_slice(b"root\0\0mysql_native_password\0");
    });
    socket.write_all(&out)?;
    let reply = packet_of(socket)?;
    if reply.first() != Some(&OK) {
        return Err(io::Error::other(format!("login: {}", reply.escape_ascii())));
    }
    Ok(())
}

/// Why there is no reply.
enum Stop {
    /// More bytes may make it one.
    TooFew,
    /// Nothing can.
    Wrong,
}

struct Packets<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Packets<'a> {
    #[inline]
    fn next(&mut self) -> Result<&'a [u8], Stop> {
        let rest = &self.bytes[self.at..];
        let [a, b, c, _, rest @ ..] = rest else { return Err(Stop::TooFew) };
        let length = u32::from_le_bytes([*a, *b, *c, 0]) as usize;
        if length == 0 || length == 0xff_ffff {
            // The lab asks for nothing that takes several packets.
            return Err(Stop::Wrong);
        }
        let payload = rest.get(..length).ok_or(Stop::TooFew)?;
        self.at += 4 + length;
        Ok(payload)
    }

    fn end(&mut self) -> Result<(), Stop> {
        if is_end(self.next()?) { Ok(()) } else { Err(Stop::Wrong) }
    }
}

const fn is_end(packet: &[u8]) -> bool {
    packet[0] == EOF && packet.len() <= EOF_BYTES_MAX
}

fn said<'a>(answers: Answers, packets: &mut Packets<'a>) -> Result<Said<'a>, Stop> {
    let first = packets.next()?;
    let mut fields = Fields(first);
    match first[0] {
        ERR => Ok(Said::Refused(refused(first))),
        OK if answers == Answers::Preparation => {
            let head = first.get(1..9).ok_or(Stop::Wrong)?;
            let statement = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
            let count = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
            for definitions in [count(6), count(4)] {
                for _ in 0..definitions {
                    packets.next()?;
                }
                if definitions > 0 {
                    packets.end()?;
                }
            }
            Ok(Said::Prepared(u64::from(statement)))
        }
        OK => {
            fields.0 = &first[1..];
            fields.number().map(Said::Changed).ok_or(Stop::Wrong)
        }
        _ => {
            let columns = fields.number().ok_or(Stop::Wrong)?;
            let columns = usize::try_from(columns).map_err(|_| Stop::Wrong)?;
            rows(answers, columns, packets)
        }
    }
}

fn rows<'a>(answers: Answers, columns: usize, packets: &mut Packets<'a>) -> Result<Said<'a>, Stop> {
    let mut kinds = Vec::new();
    for _ in 0..columns {
        kinds.push(kind(packets.next()?).ok_or(Stop::Wrong)?);
    }
    packets.end()?;
    let mut cells = Vec::new();
    loop {
        let row = packets.next()?;
        if is_end(row) {
            return Ok(Said::Rows { columns, cells });
        }
        if row[0] == ERR {
            return Ok(Said::Refused(refused(row)));
        }
        let read = match answers {
            Answers::Prepared => binary(row, &kinds, &mut cells),
            _ => textual(row, columns, &mut cells),
        };
        read.ok_or(Stop::Wrong)?;
    }
}

/// The type in a column's definition.
fn kind(definition: &[u8]) -> Option<u8> {
    let mut fields = Fields(definition);
    for _ in 0..6 {
        fields.text()?;
    }
    // The length of what follows, character set, length; then the type.
    fields.0.get(7).copied()
}

fn textual<'a>(row: &'a [u8], columns: usize, cells: &mut Vec<Cell<'a>>) -> Option<()> {
    const NULL: u8 = 0xfb;
    let mut fields = Fields(row);
    for _ in 0..columns {
        if fields.0.first() == Some(&NULL) {
            fields.0 = &fields.0[1..];
            cells.push(Cell::Null);
        } else {
            cells.push(Cell::Text(fields.text()?));
        }
    }
    fields.0.is_empty().then_some(())
}

fn binary<'a>(row: &'a [u8], kinds: &[u8], cells: &mut Vec<Cell<'a>>) -> Option<()> {
    let (head, nulls) = row.split_first()?;
    let (nulls, values) = nulls.split_at_checked((kinds.len() + 2).div_ceil(8))?;
    if *head != OK {
        return None;
    }
    let mut fields = Fields(values);
    for (number, kind) in kinds.iter().enumerate() {
        let bit = number + 2;
        if nulls[bit / 8] & (1 << (bit % 8)) != 0 {
            cells.push(Cell::Null);
            continue;
        }
        cells.push(match *kind {
            TINY => Cell::Integer(i64::from(fields.take(1)?[0].cast_signed())),
            SHORT => Cell::Integer(i64::from(i16::from_le_bytes(fields.fixed()?))),
            LONG => Cell::Integer(i64::from(i32::from_le_bytes(fields.fixed()?))),
            LONGLONG => Cell::Integer(i64::from_le_bytes(fields.fixed()?)),
            // Floats and times are not asked for.
            0x04..=0x07 | 0x09..=0x0d => return None,
            _ => Cell::Text(fields.text()?),
        });
    }
    fields.0.is_empty().then_some(())
}

fn refused(packet: &[u8]) -> String {
    let code = packet.get(1..3).map_or(0, |code| u16::from_le_bytes([code[0], code[1]]));
    let words = String::from_utf8_lossy(packet.get(3..).unwrap_or_default());
    format!("error {code}: {words}")
}

/// What is not read yet of a packet.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    #[inline]
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    #[inline]
    fn fixed<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    /// A number with its width before it.
    #[inline]
    fn number(&mut self) -> Option<u64> {
        let width = match self.take(1)?[0] {
            small @ 0..=0xfa => return Some(u64::from(small)),
            0xfc => 2,
            0xfd => 3,
            0xfe => 8,
            _ => return None,
        };
        let mut bytes = [0; 8];
        bytes[..width].copy_from_slice(self.take(width)?);
        Some(u64::from_le_bytes(bytes))
    }

    #[inline]
    fn text(&mut self) -> Option<&'a [u8]> {
        let length = self.number()?;
        self.take(usize::try_from(length).ok()?)
    }
}

fn write_text(text: &[u8], out: &mut Vec<u8>) {
    match text.len() {
        short @ 0..=0xfa => out.push(short as u8),
        long => {
            out.push(0xfe);
            out.extend_from_slice(&(long as u64).to_le_bytes());
        }
    }
    out.extend_from_slice(text);
}

fn command(number: u8, out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    packet(0, out, |out| {
        out.push(number);
        body(out);
    });
}

fn packet(sequence: u8, out: &mut Vec<u8>, payload: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0, 0, 0, sequence]);
    payload(out);
    let length = (out.len() - start - 4) as u32;
    assert!(length < PACKET_BYTES_MAX - 1, "the lab's statements are short");
    out[start..start + 3].copy_from_slice(&length.to_le_bytes()[..3]);
}

/// The next packet of a blocking socket, during the login.
fn packet_of(socket: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut head = [0; 4];
    socket.read_exact(&mut head)?;
    let length = u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize;
    let mut payload = vec![0; length.min(1 << 16)];
    socket.read_exact(&mut payload)?;
    Ok(payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packets(payloads: &[&[u8]]) -> Vec<u8> {
        let mut out = Vec::new();
        for (number, payload) in payloads.iter().enumerate() {
            packet(number as u8 + 1, &mut out, |out| out.extend_from_slice(payload));
        }
        out
    }

    fn definition(kind: u8) -> Vec<u8> {
        let mut out = b"\x03def\x03lab\x01t\x01t\x01c\x01c\x0c".to_vec();
        out.extend_from_slice(&[63, 0, 20, 0, 0, 0, kind, 0, 0, 0, 0, 0]);
        out
    }

    /// A row of a number and a text in both forms, at every length.
    #[test]
    fn rows_are_read_and_bounds_kept() {
        let end: &[u8] = &[EOF, 0, 0, 2, 0];
        let (number, text) = (definition(LONGLONG), definition(VAR_STRING));
        let mut row = vec![OK, 0];
        row.extend_from_slice(&(-7i64).to_le_bytes());
        row.extend_from_slice(b"\x02ab");
        let prepared = packets(&[&[2], &number, &text, end, &row, end]);
        let by_text = packets(&[&[2], &number, &text, end, b"\x02-7\x02ab", end]);
        for (answers, bytes) in [(Answers::Prepared, prepared), (Answers::Text, by_text)] {
            for length in 0..bytes.len() {
                assert_eq!(MySql.reply(answers, &bytes[..length]), Ok(None), "{length}");
            }
            let reply = MySql.reply(answers, &bytes).unwrap().unwrap();
            let Said::Rows { columns: 2, cells } = reply.said else { panic!("{reply:?}") };
            assert_eq!(reply.length, bytes.len());
            assert!(cells[0].is(&Value::Integer(-7)) && cells[1] == Cell::Text(b"ab"));
        }
    }

    #[test]
    fn other_replies() {
        let reply = |answers, payloads: &[&[u8]]| {
            MySql.reply(answers, &packets(payloads)).unwrap().unwrap().said_of()
        };
        assert_eq!(reply(Answers::Text, &[&[OK, 3, 0, 2, 0, 0, 0]]), "Changed(3)");
        let refused = reply(Answers::Text, &[b"\xff\x7a\x04#42S02no such table"]);
        assert_eq!(refused, "Refused(\"error 1146: #42S02no such table\")");
        let end: &[u8] = &[EOF, 0, 0, 2, 0];
        let (head, one) = ([OK, 9, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0], definition(LONGLONG));
        let prepared = reply(Answers::Preparation, &[&head, &one, end, &one, end]);
        assert_eq!(prepared, "Prepared(9)");
        assert!(MySql.reply(Answers::Text, &[0, 0, 0, 1]).is_err());
    }

    impl Reply<'_> {
        fn said_of(&self) -> String {
            format!("{:?}", self.said)
        }
    }
}
