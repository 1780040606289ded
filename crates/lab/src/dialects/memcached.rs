//! memcached's text protocol: classic commands, and the meta command `ma` for counters.
//!
//! A counter of memcached stops at zero, and those of the works go below it. So a counter is kept
//! with [`OFFSET`] added: the same requests, and a number of nineteen digits instead of a few.
//!
//! Source: `doc/protocol.txt` of memcached 1.6.

use std::borrow::Cow;

use super::{Dialect, Framed, Malformed, Refused};
use crate::operation::{Answer, Operation, OperationKind};

/// The dialect.
#[derive(Clone, Copy, Debug, Default)]
pub struct Memcached;

/// Zero of every counter: in the middle of the 64 bits, less one, so that it has nineteen digits.
pub const OFFSET: u64 = 1 << 62;

/// memcached's default limit of a value is 1 MiB; this bounds what a peer may announce.
const VALUE_BYTES_MAX: usize = 1 << 30;
/// The longest line that is no value: an error's.
const LINE_BYTES_MAX: usize = 4096;

impl Dialect for Memcached {
    fn can(&self, kind: OperationKind) -> Result<(), String> {
        let reason = match kind {
            OperationKind::Set
            | OperationKind::Get
            | OperationKind::Delete
            | OperationKind::Add => return Ok(()),
            OperationKind::AddMember | OperationKind::Members => "no sets: only strings",
            OperationKind::SetMany => "no request that sets several keys as one change",
            OperationKind::InsertRow | OperationKind::FindByGroup => "no secondary indexes",
            OperationKind::Ping => "asked only in IPROTO",
            OperationKind::GetByCall | OperationKind::InsertTuple => "no functions and no tables",
            OperationKind::ScanFrom => "no scan in the order of keys",
        };
        Err(reason.to_owned())
    }

    fn hello(&mut self, _: &[u8], _: &mut Vec<u8>) -> Result<usize, Malformed> {
        Ok(0)
    }

    fn check_hello(&self, _: usize, frame: &[u8]) -> Result<(), Refused> {
        Err(refused(frame)) // nothing was said
    }

    #[inline]
    fn encode(&mut self, _: u64, operation: &Operation, out: &mut Vec<u8>) {
        match operation {
            Operation::Set { key, value } => {
                out.extend_from_slice(b"set ");
                out.extend_from_slice(key);
                out.extend_from_slice(b" 0 0 ");
                number(value.len() as u64, out);
                out.extend_from_slice(b"\r\n");
                out.extend_from_slice(value);
                out.extend_from_slice(b"\r\n");
            }
            Operation::Get { key } => {
                out.extend_from_slice(b"get ");
                out.extend_from_slice(key);
                out.extend_from_slice(b"\r\n");
            }
            Operation::Delete { key } => {
                out.extend_from_slice(b"delete ");
                out.extend_from_slice(key);
                out.extend_from_slice(b"\r\n");
            }
            Operation::Add { key, by } => {
                // Made with J if it is not there (N0: for ever); else changed by D. v: the value.
                out.extend_from_slice(b"ma ");
                out.extend_from_slice(key);
                out.extend_from_slice(if *by < 0 { b" MD N0 J" } else { b" MI N0 J" });
                number(OFFSET.wrapping_add_signed(*by), out);
                out.extend_from_slice(b" D");
                number(by.unsigned_abs(), out);
                out.extend_from_slice(b" v\r\n");
            }
            // The driver asks `can` first.
            Operation::Ping
            | Operation::AddMember { .. }
            | Operation::Members { .. }
            | Operation::SetMany { .. }
            | Operation::InsertRow { .. }
            | Operation::GetByCall { .. }
            | Operation::InsertTuple { .. }
            | Operation::FindByGroup { .. }
            | Operation::ScanFrom { .. } => unreachable!("refused by can()"),
        }
    }

    #[inline]
    fn frame(&self, _: Option<&Operation>, bytes: &[u8]) -> Result<Framed, Malformed> {
        let Some(line) = line(bytes)? else { return Ok(Framed::Incomplete) };
        let length = if let Some(rest) = bytes[..line].strip_prefix(b"VALUE ") {
            // VALUE key flags bytes\r\n, the bytes, \r\n, and END\r\n as one key was asked for.
            let length = rest[..rest.len() - 2].rsplit(|&byte| byte == b' ').next();
            line + value_bytes(length.unwrap_or_default(), bytes)? + b"\r\nEND\r\n".len()
        } else if let Some(rest) = bytes[..line].strip_prefix(b"VA ") {
            let length = rest[..rest.len() - 2].split(|&byte| byte == b' ').next();
            line + value_bytes(length.unwrap_or_default(), bytes)? + b"\r\n".len()
        } else {
            line
        };
        Ok(if bytes.len() < length {
            Framed::Incomplete
        } else {
            Framed::Frame { length, tag: None }
        })
    }

    fn answer(&self, operation: &Operation, frame: &[u8]) -> Result<Answer, Refused> {
        match (operation, frame) {
            (Operation::Set { .. }, b"STORED\r\n") => Ok(Answer::Done),
            (Operation::Get { .. }, _) => {
                Ok(Answer::Value(self.value(operation, frame)?.map(Cow::into_owned)))
            }
            (Operation::Delete { .. }, b"DELETED\r\n") => Ok(Answer::Existed(true)),
            (Operation::Delete { .. }, b"NOT_FOUND\r\n") => Ok(Answer::Existed(false)),
            (Operation::Add { .. }, _) => {
                let number = || {
                    let line = frame.starts_with(b"VA ").then(|| line(frame).ok().flatten())??;
                    let digits = frame.get(line..)?.strip_suffix(b"\r\n")?;
                    let number: u64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
                    Some(number.wrapping_sub(OFFSET).cast_signed())
                };
                number().map(Answer::Integer).ok_or_else(|| refused(frame))
            }
            _ => Err(refused(frame)),
        }
    }

    #[inline]
    fn is_right(&self, operation: &Operation, expected: &Answer, frame: &[u8]) -> bool {
        match (operation, expected) {
            (Operation::Set { .. }, Answer::Done) => frame == b"STORED\r\n",
            (Operation::Get { .. }, Answer::Value(value)) => {
                self.value(operation, frame).is_ok_and(|found| found.as_deref() == value.as_deref())
            }
            _ => self.answer(operation, frame).as_ref() == Ok(expected),
        }
    }

    #[inline]
    fn value<'a>(
        &self,
        operation: &Operation,
        frame: &'a [u8],
    ) -> Result<Option<Cow<'a, [u8]>>, Refused> {
        let Operation::Get { key } = operation else { return Err(refused(frame)) };
        if frame == b"END\r\n" {
            return Ok(None);
        }
        let value = || {
            let rest = frame.strip_prefix(b"VALUE ")?.strip_prefix(key.as_slice())?;
            let line = line(rest).ok().flatten()?;
            let value = rest[line..].strip_suffix(b"\r\nEND\r\n")?;
            // After the key: flags, which the lab never sets, and the length.
            let length = rest[..line].strip_prefix(b" 0 ")?.strip_suffix(b"\r\n")?;
            (value_bytes(length, frame).ok()? == value.len()).then_some(value)
        };
        value().map(|value| Some(Cow::Borrowed(value))).ok_or_else(|| refused(frame))
    }
}

/// Bytes of the first line with its end, if it is whole.
#[inline]
fn line(bytes: &[u8]) -> Result<Option<usize>, Malformed> {
    let end = bytes.iter().take(LINE_BYTES_MAX).position(|&byte| byte == b'\n');
    match end {
        Some(end) if end > 0 && bytes[end - 1] == b'\r' => Ok(Some(end + 1)),
        None if bytes.len() < LINE_BYTES_MAX => Ok(None),
        _ => Err(malformed(bytes)),
    }
}

#[inline]
fn value_bytes(digits: &[u8], all: &[u8]) -> Result<usize, Malformed> {
    let text = std::str::from_utf8(digits).ok();
    text.and_then(|text| text.parse().ok())
        .filter(|bytes| *bytes <= VALUE_BYTES_MAX)
        .ok_or_else(|| malformed(all))
}

/// Appends a number's digits.
#[inline]
fn number(mut number: u64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

fn malformed(bytes: &[u8]) -> Malformed {
    Malformed(bytes[..bytes.len().min(80)].escape_ascii().to_string())
}

fn refused(frame: &[u8]) -> Refused {
    let text = frame.strip_suffix(b"\r\n").unwrap_or(frame);
    Refused(text[..text.len().min(200)].escape_ascii().to_string())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn get() -> Operation {
        Operation::Get { key: b"k".to_vec() }
    }

    fn add(by: i64) -> Operation {
        Operation::Add { key: b"k".to_vec(), by }
    }

    #[test]
    fn replies_are_framed_at_every_length() {
        let replies: [&[u8]; 6] = [
            b"STORED\r\n",
            b"END\r\n",
            b"VALUE k 0 5\r\na\r\nbc\r\nEND\r\n",
            b"VALUE k 0 0\r\n\r\nEND\r\n",
            b"VA 2\r\n12\r\n",
            b"SERVER_ERROR out of memory\r\n",
        ];
        for reply in replies {
            for length in 0..reply.len() {
                assert_eq!(Memcached.frame(None, &reply[..length]), Ok(Framed::Incomplete));
            }
            let longer = [reply, b"more"].concat();
            let frame = Framed::Frame { length: reply.len(), tag: None };
            assert_eq!(Memcached.frame(None, &longer), Ok(frame), "{}", reply.escape_ascii());
        }
        for bad in [b"STORED\n".as_slice(), b"VALUE k 0 x\r\n", b"VA \r\n", &[b'x'; 5000]] {
            assert!(Memcached.frame(None, bad).is_err(), "{}", bad.escape_ascii());
        }
    }

    #[test]
    fn a_value_of_another_key_or_length_is_refused() {
        let right = b"VALUE k 0 1\r\nv\r\nEND\r\n";
        assert_eq!(Memcached.answer(&get(), right), Ok(Answer::Value(Some(b"v".to_vec()))));
        for wrong in [
            b"VALUE j 0 1\r\nv\r\nEND\r\n".as_slice(),
            b"VALUE k 0 2\r\nv\r\nEND\r\n",
            b"VALUE k 1 1\r\nv\r\nEND\r\n",
            b"STORED\r\n",
            b"SERVER_ERROR busy\r\n",
        ] {
            assert!(Memcached.answer(&get(), wrong).is_err(), "{}", wrong.escape_ascii());
            let expected = Answer::Value(Some(b"v".to_vec()));
            assert!(!Memcached.is_right(&get(), &expected, wrong));
        }
    }

    #[test]
    fn counters_go_below_zero() {
        let mut out = Vec::new();
        let mut memcached = Memcached;
        memcached.encode(0, &add(-3), &mut out);
        assert_eq!(out, b"ma k MD N0 J4611686018427387901 D3 v\r\n");
        let reply = b"VA 19\r\n4611686018427387901\r\n";
        assert_eq!(Memcached.answer(&add(-3), reply), Ok(Answer::Integer(-3)));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(
            start in prop::sample::select(vec!["", "VALUE k 0 ", "VA ", "VALUE ", "END\r\n"]),
            rest in prop::collection::vec(prop_oneof![any::<u8>(), prop::sample::select(b"\r\n 019".to_vec())], 0..60),
        ) {
            let bytes = [start.as_bytes(), &rest].concat();
            let _ = Memcached.frame(None, &bytes);
            for operation in [get(), add(1), Operation::Delete { key: b"k".to_vec() }] {
                let _ = Memcached.answer(&operation, &bytes);
                let _ = Memcached.value(&operation, &bytes);
            }
        }
    }
}
