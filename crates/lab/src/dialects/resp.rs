//! Redis' protocol (RESP2), spoken by Ladon, Redis, Valkey, KeyDB, Dragonfly and Pogocache.
//!
//! Rows of the index work are hashes; what finds them is the index of a search module, which is not
//! part of the protocol: only [`Resp::with_search`] asks for them. By the module's documentation
//! (<https://redis.io/docs/latest/commands/ft.search/>), a search answers with the number of what
//! it found and then, for each, the key and an array of the fields asked for:
//!
//! ```text
//!   FT.SEARCH lab:rows @g:{7} RETURN 1 v LIMIT 0 10000  ->  [2, lab:row:1, [v, ...], lab:row:5, [v, ...]]
//! ```

use std::borrow::Cow;

use super::{Dialect, Framed, Malformed, Refused};
use crate::load::words;
use crate::operation::{Answer, Operation, OperationKind};

/// The dialect.
#[derive(Clone, Debug, Default)]
pub struct Resp {
    /// User name and password to log in with.
    login: Option<(Option<String>, String)>,
    /// Whether the server has the module RediSearch, with an index of rows.
    search: bool,
}

/// The index over rows.
pub const ROWS_INDEX: &str = "lab:rows";
/// Prefix of the keys of rows, on foreign servers too; the row's number follows.
pub const ROW_PREFIX: &str = "lab:row:";
/// More than any group has: a search returns ten unless told.
const FOUND_MAX: &[u8] = b"10000";

/// Longer than any reply that a work causes: what a peer announces must not make us wait for ever.
const REPLY_BYTES_MAX: usize = 1 << 30;

/// Set members come one array deep; nothing that is asked for here nests deeper.
const DEPTH_MAX: usize = 4;

impl Resp {
    /// Without login.
    #[must_use]
    pub const fn new() -> Self {
        Self { login: None, search: false }
    }

    /// To a server with the module RediSearch and the index [`ROWS_INDEX`] over the tag `g` of
    /// hashes.
    #[must_use]
    pub const fn with_search() -> Self {
        Self { login: None, search: true }
    }

    /// With `AUTH` on each connection.
    #[must_use]
    pub fn logged_in(self, user: Option<String>, password: String) -> Self {
        Self { login: Some((user, password)), ..self }
    }
}

impl Dialect for Resp {
    fn can(&self, kind: OperationKind) -> Result<(), String> {
        match kind {
            OperationKind::InsertRow | OperationKind::FindByGroup if !self.search => {
                Err("no secondary indexes; Redis' are a module's, the system `redisearch`"
                    .to_owned())
            }
            OperationKind::ScanFrom => {
                Err("no scan in the order of keys: SCAN walks in the order of hashes".to_owned())
            }
            OperationKind::GetByCall => Err("no function that reads a key by its name".to_owned()),
            OperationKind::InsertTuple => Err("no table of tuples".to_owned()),
            _ => Ok(()),
        }
    }

    fn hello(&mut self, _: &[u8], out: &mut Vec<u8>) -> Result<usize, Malformed> {
        let Some((user, password)) = &self.login else { return Ok(0) };
        words::array(2 + usize::from(user.is_some()), out);
        words::bulk(b"AUTH", out);
        if let Some(user) = user {
            words::bulk(user.as_bytes(), out);
        }
        words::bulk(password.as_bytes(), out);
        Ok(1)
    }

    fn check_hello(&self, _: usize, frame: &[u8]) -> Result<(), Refused> {
        if frame == OK { Ok(()) } else { Err(refused(frame)) }
    }

    #[inline]
    fn encode(&mut self, _: u64, operation: &Operation, out: &mut Vec<u8>) {
        match operation {
            Operation::Ping => words::bulks(&[b"PING"], out),
            Operation::Set { key, value } => {
                out.extend_from_slice(b"*3\r\n$3\r\nSET\r\n");
                words::bulk(key, out);
                words::bulk(value, out);
            }
            Operation::Get { key } => {
                out.extend_from_slice(b"*2\r\n$3\r\nGET\r\n");
                words::bulk(key, out);
            }
            Operation::Delete { key } => words::bulks(&[b"DEL", key], out),
            Operation::Add { key, by } => {
                words::bulks(&[b"INCRBY", key, by.to_string().as_bytes()], out);
            }
            Operation::AddMember { set, member } => words::bulks(&[b"SADD", set, member], out),
            Operation::Members { set } => words::bulks(&[b"SMEMBERS", set], out),
            Operation::SetMany { pairs } => {
                words::array(1 + 2 * pairs.len(), out);
                words::bulk(b"MSET", out);
                for (key, value) in pairs {
                    words::bulk(key, out);
                    words::bulk(value, out);
                }
            }
            Operation::InsertRow { id, group, value } => {
                let (key, group) = (format!("{ROW_PREFIX}{id}"), group.to_string());
                let words: [&[u8]; 6] =
                    [b"HSET", key.as_bytes(), b"g", group.as_bytes(), b"v", value];
                words::bulks(&words, out);
            }
            Operation::FindByGroup { group } => {
                let query = format!("@g:{{{group}}}");
                let find: [&[u8]; 3] = [b"FT.SEARCH", ROWS_INDEX.as_bytes(), query.as_bytes()];
                let shown: [&[u8]; 6] = [b"RETURN", b"1", b"v", b"LIMIT", b"0", FOUND_MAX];
                words::bulks(&[&find[..], &shown].concat(), out);
            }
            // The driver asks `can` first.
            Operation::ScanFrom { .. }
            | Operation::GetByCall { .. }
            | Operation::InsertTuple { .. } => unreachable!("refused by can()"),
        }
    }

    #[inline]
    fn frame(&self, _: Option<&Operation>, bytes: &[u8]) -> Result<Framed, Malformed> {
        Ok(match reply_length(bytes, 0)? {
            Some(length) => Framed::Frame { length, tag: None },
            None => Framed::Incomplete,
        })
    }

    fn answer(&self, operation: &Operation, frame: &[u8]) -> Result<Answer, Refused> {
        let kind = operation.kind();
        match (kind, frame.first()) {
            (OperationKind::Ping, Some(b'+')) if frame == b"+PONG\r\n" => Ok(Answer::Done),
            (OperationKind::Set | OperationKind::SetMany, Some(b'+')) if frame == OK => {
                Ok(Answer::Done)
            }
            (OperationKind::Get, Some(b'$')) => {
                Ok(Answer::Value(bulk(frame).map_err(Refused)?.map(<[u8]>::to_vec)))
            }
            (OperationKind::Delete, Some(b':')) => Ok(Answer::Existed(integer(frame)? == 1)),
            (OperationKind::Add, Some(b':')) => Ok(Answer::Integer(integer(frame)?)),
            (OperationKind::AddMember, Some(b':')) => Ok(Answer::Existed(integer(frame)? == 0)),
            (OperationKind::Members, Some(b'*')) => Ok(Answer::Members(bulks(frame)?)),
            // How many of its fields are new: both, or none where a row is replaced.
            (OperationKind::InsertRow, Some(b':')) if matches!(integer(frame)?, 0 | 2) => {
                Ok(Answer::Done)
            }
            (OperationKind::FindByGroup, Some(b'*')) => Ok(Answer::Rows(rows(frame)?)),
            _ => Err(refused(frame)),
        }
    }

    #[inline]
    fn is_right(&self, operation: &Operation, expected: &Answer, frame: &[u8]) -> bool {
        match (operation, expected) {
            (Operation::Set { .. } | Operation::SetMany { .. }, Answer::Done) => frame == OK,
            (Operation::Get { .. }, Answer::Value(Some(value))) => {
                bulk(frame) == Ok(Some(value.as_slice()))
            }
            (Operation::Get { .. }, Answer::Value(None)) => frame == b"$-1\r\n",
            (Operation::Delete { .. }, Answer::Existed(existed)) => {
                frame == if *existed { b":1\r\n" } else { b":0\r\n" }
            }
            (Operation::AddMember { .. }, Answer::Existed(existed)) => {
                frame == if *existed { b":0\r\n" } else { b":1\r\n" }
            }
            (Operation::Add { .. }, Answer::Integer(value)) => integer(frame) == Ok(*value),
            _ => self
                .answer(operation, frame)
                .is_ok_and(|answer| answer.means_the_same(expected, operation)),
        }
    }

    #[inline]
    fn value<'a>(&self, _: &Operation, frame: &'a [u8]) -> Result<Option<Cow<'a, [u8]>>, Refused> {
        if frame.first() != Some(&b'$') {
            return Err(refused(frame));
        }
        Ok(bulk(frame).map_err(Refused)?.map(Cow::Borrowed))
    }
}

const OK: &[u8] = b"+OK\r\n";

/// Bytes of the first reply in `bytes`; `None` while it is not whole.
#[inline]
fn reply_length(bytes: &[u8], depth: usize) -> Result<Option<usize>, Malformed> {
    let Some(&kind) = bytes.first() else { return Ok(None) };
    let Some(line) = line_length(bytes) else {
        // No line of ours is longer than an error's.
        return if bytes.len() > 64 * 1024 { Err(malformed(bytes)) } else { Ok(None) };
    };
    match kind {
        b'+' | b'-' | b':' => Ok(Some(line)),
        b'$' => {
            let Some(length) = count(bytes, line)? else { return Ok(Some(line)) };
            let whole = line + length + 2;
            Ok((bytes.len() >= whole).then_some(whole))
        }
        b'*' if depth < DEPTH_MAX => {
            let mut at = line;
            for _ in 0..count(bytes, line)?.unwrap_or(0) {
                match reply_length(&bytes[at..], depth + 1)? {
                    Some(length) => at += length,
                    None => return Ok(None),
                }
            }
            Ok(Some(at))
        }
        _ => Err(malformed(bytes)),
    }
}

/// Bytes of the first line with its end.
#[inline]
fn line_length(bytes: &[u8]) -> Option<usize> {
    let end = bytes.iter().position(|&byte| byte == b'\n')?;
    Some(end + 1)
}

/// The number in a reply's first line of `line` bytes; `None` for -1.
#[inline]
fn count(bytes: &[u8], line: usize) -> Result<Option<usize>, Malformed> {
    let digits = bytes[1..line].strip_suffix(b"\r\n").ok_or_else(|| malformed(bytes))?;
    if digits == b"-1" {
        return Ok(None);
    }
    let mut number = 0usize;
    for &digit in digits {
        if !digit.is_ascii_digit() || number > REPLY_BYTES_MAX {
            return Err(malformed(bytes));
        }
        number = number * 10 + usize::from(digit - b'0');
    }
    if digits.is_empty() || number > REPLY_BYTES_MAX {
        return Err(malformed(bytes));
    }
    Ok(Some(number))
}

fn malformed(bytes: &[u8]) -> Malformed {
    Malformed(bytes[..bytes.len().min(80)].escape_ascii().to_string())
}

/// The bytes of a whole bulk reply; `None` for nil.
#[inline]
fn bulk(frame: &[u8]) -> Result<Option<&[u8]>, String> {
    let not_bulk = || frame[..frame.len().min(80)].escape_ascii().to_string();
    if frame.first() != Some(&b'$') {
        return Err(not_bulk());
    }
    let line = line_length(frame).ok_or_else(not_bulk)?;
    match count(frame, line) {
        Ok(None) => Ok(None),
        Ok(Some(length)) if frame.len() == line + length + 2 && frame.ends_with(b"\r\n") => {
            Ok(Some(&frame[line..line + length]))
        }
        _ => Err(not_bulk()),
    }
}

fn bulks(frame: &[u8]) -> Result<Vec<Vec<u8>>, Refused> {
    let item = |item| Ok(bulk(item).map_err(Refused)?.ok_or_else(|| refused(frame))?.to_vec());
    items(frame)?.into_iter().map(item).collect()
}

/// The replies within an array.
fn items(frame: &[u8]) -> Result<Vec<&[u8]>, Refused> {
    let failed = |_| refused(frame);
    let mut at = line_length(frame).ok_or_else(|| refused(frame))?;
    let mut items = Vec::new();
    for _ in 0..count(frame, at).map_err(failed)?.unwrap_or(0) {
        let rest = &frame[at..];
        let length = reply_length(rest, 1).map_err(failed)?.ok_or_else(|| refused(frame))?;
        items.push(&rest[..length]);
        at += length;
    }
    Ok(items)
}

/// The rows that a search found; a number of rows that differs from the announced one is an error.
fn rows(frame: &[u8]) -> Result<Vec<(u64, Vec<u8>)>, Refused> {
    let no_rows = || refused(frame);
    let all = items(frame)?;
    let (said, found) = all.split_first().ok_or_else(no_rows)?;
    let row = |pair: &[&[u8]]| {
        let key = bulk(pair[0]).map_err(Refused)?.and_then(|key| std::str::from_utf8(key).ok());
        let id = key.and_then(|key| key.strip_prefix(ROW_PREFIX)?.parse().ok());
        let fields = bulks(pair[1])?;
        match (id, <[Vec<u8>; 2]>::try_from(fields)) {
            (Some(id), Ok([name, value])) if name == b"v" => Ok((id, value)),
            _ => Err(no_rows()),
        }
    };
    let rows = found.chunks_exact(2).map(row).collect::<Result<Vec<_>, _>>()?;
    if found.len() % 2 == 0 && integer(said)? == rows.len() as i64 {
        Ok(rows)
    } else {
        Err(no_rows())
    }
}

fn integer(frame: &[u8]) -> Result<i64, Refused> {
    let digits = frame.strip_prefix(b":").and_then(|rest| rest.strip_suffix(b"\r\n"));
    digits
        .and_then(|digits| std::str::from_utf8(digits).ok())
        .and_then(|digits| digits.parse().ok())
        .ok_or_else(|| refused(frame))
}

fn refused(frame: &[u8]) -> Refused {
    let text = frame.strip_suffix(b"\r\n").unwrap_or(frame);
    let text = text.strip_prefix(b"-").unwrap_or(text);
    Refused(text[..text.len().min(200)].escape_ascii().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get() -> Operation {
        Operation::Get { key: b"k".to_vec() }
    }

    #[test]
    fn replies_are_framed_at_every_length() {
        let resp = Resp::new();
        let replies: [&[u8]; 7] = [
            b"+OK\r\n",
            b"-ERR no\r\n",
            b":12\r\n",
            b"$3\r\na\nb\r\n",
            b"$-1\r\n",
            b"*0\r\n",
            b"*2\r\n$1\r\na\r\n$0\r\n\r\n",
        ];
        for reply in replies {
            for length in 1..reply.len() {
                assert_eq!(resp.frame(None, &reply[..length]), Ok(Framed::Incomplete));
            }
            let longer = [reply, b"+more"].concat();
            let frame = Framed::Frame { length: reply.len(), tag: None };
            assert_eq!(resp.frame(None, &longer), Ok(frame), "{}", reply.escape_ascii());
        }
        for bad in [b"x\r\n".as_slice(), b"$x\r\n", b"$\r\n", b"$99999999999\r\n", b"$1\n"] {
            assert!(resp.frame(None, bad).is_err(), "{}", bad.escape_ascii());
        }
    }

    #[test]
    fn quick_and_slow_judgement_agree() {
        let resp = Resp::new();
        let set = Operation::Set { key: b"k".to_vec(), value: b"v".to_vec() };
        let delete = Operation::Delete { key: b"k".to_vec() };
        let add = Operation::Add { key: b"k".to_vec(), by: -3 };
        let add_member = Operation::AddMember { set: b"s".to_vec(), member: b"m".to_vec() };
        let answers = [
            Answer::Done,
            Answer::Value(None),
            Answer::Value(Some(b"v".to_vec())),
            Answer::Integer(1),
            Answer::Existed(true),
            Answer::Existed(false),
            Answer::Members(vec![b"v".to_vec()]),
        ];
        let frames: [&[u8]; 8] = [
            b"+OK\r\n",
            b"$-1\r\n",
            b"$1\r\nv\r\n",
            b"$1\r\nw\r\n",
            b":1\r\n",
            b":0\r\n",
            b"-ERR\r\n",
            b"*1\r\n$1\r\nv\r\n",
        ];
        for operation in [set, get(), delete, add, add_member] {
            for expected in &answers {
                for frame in frames {
                    let slow = resp.answer(&operation, frame).is_ok_and(|a| &a == expected);
                    let quick = resp.is_right(&operation, expected, frame);
                    assert_eq!(quick, slow, "{operation:?} {expected:?} {}", frame.escape_ascii());
                }
            }
        }
    }

    #[test]
    fn what_a_search_found_is_read_and_nothing_else_is() {
        let find = Operation::FindByGroup { group: 7 };
        let mut out = Vec::new();
        Resp::with_search().encode(0, &find, &mut out);
        let asked = "*9\r\n$9\r\nFT.SEARCH\r\n$8\r\nlab:rows\r\n$6\r\n@g:{7}\r\n$6\r\nRETURN\r\n$1\r\n1\r\n\
                     $1\r\nv\r\n$5\r\nLIMIT\r\n$1\r\n0\r\n$5\r\n10000\r\n";
        assert_eq!(String::from_utf8(out).unwrap(), asked);
        let answer = |frame: &[u8]| Resp::with_search().answer(&find, frame);
        let right = b"*5\r\n:2\r\n$9\r\nlab:row:1\r\n*2\r\n$1\r\nv\r\n$1\r\na\r\n$9\r\nlab:row:9\r\n*2\r\n$1\r\nv\r\n$0\r\n\r\n";
        assert_eq!(answer(right), Ok(Answer::Rows(vec![(1, b"a".to_vec()), (9, Vec::new())])));
        assert_eq!(answer(b"*1\r\n:0\r\n"), Ok(Answer::Rows(Vec::new())));
        let wrong: [&[u8]; 6] = [
            b"*0\r\n",
            // Two that are one, a row without its value, another field, no row of ours.
            b"*3\r\n:2\r\n$9\r\nlab:row:1\r\n*2\r\n$1\r\nv\r\n$1\r\na\r\n",
            b"*2\r\n:1\r\n$9\r\nlab:row:1\r\n",
            b"*3\r\n:1\r\n$9\r\nlab:row:1\r\n*2\r\n$1\r\ng\r\n$1\r\na\r\n",
            b"*3\r\n:1\r\n$9\r\nlab:row:x\r\n*2\r\n$1\r\nv\r\n$1\r\na\r\n",
            b"-lab:rows: no such index\r\n",
        ];
        for frame in wrong {
            assert!(answer(frame).is_err(), "{}", frame.escape_ascii());
        }
        let insert = Operation::InsertRow { id: 1, group: 7, value: b"a".to_vec() };
        for (frame, right) in [(b":2\r\n", true), (b":0\r\n", true), (b":1\r\n", false)] {
            assert_eq!(Resp::with_search().is_right(&insert, &Answer::Done, frame), right);
        }
    }

    #[test]
    fn an_error_keeps_the_servers_words() {
        let refused = Resp::new().answer(&get(), b"-LOADING dataset\r\n").unwrap_err();
        assert_eq!(refused.to_string(), "LOADING dataset");
    }

    #[test]
    fn a_password_is_said_first() {
        let mut out = Vec::new();
        let mut resp = Resp::new().logged_in(Some("me".into()), "secret".into());
        assert_eq!(resp.hello(b"", &mut out), Ok(1));
        assert_eq!(out, b"*3\r\n$4\r\nAUTH\r\n$2\r\nme\r\n$6\r\nsecret\r\n");
        assert!(resp.check_hello(0, b"+OK\r\n").is_ok());
        assert_eq!(resp.check_hello(0, b"-WRONGPASS\r\n").unwrap_err().to_string(), "WRONGPASS");
    }
}
