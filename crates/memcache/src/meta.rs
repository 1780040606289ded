//! The meta commands: `mg`, `ms`, `md`, `ma`, `me`, `mn`.
//!
//! Flags are words whose first byte says which. The reply has those that ask for something, in the
//! request's order.

use crate::KEY_BYTES_MAX;
use crate::request::Mode;
use crate::words::{number, signed, words};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use std::borrow::Cow;

/// A longer opaque token is refused, its flag's byte included.
const OPAQUE_BYTES_MAX: usize = 32;

/// With more flags, a request is refused.
const FLAGS_MAX: usize = 20;

const FORMAT: &str = crate::request::error::FORMAT;
const UNKNOWN: &str = crate::request::error::UNKNOWN;
const TOKEN: &str = "CLIENT_ERROR bad token in command line format";

/// A meta command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meta<'a> {
    /// `mn`.
    Noop,
    /// `mg`.
    Get(Flags<'a>),
    /// `ms`, with the value.
    Set(Flags<'a>, Mode, &'a [u8]),
    /// `md`.
    Delete(Flags<'a>),
    /// `ma`; whether it counts downwards.
    Count(Flags<'a>, bool),
    /// `me`.
    Debug(Flags<'a>),
}

/// A key, and what is to be done with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flags<'a> {
    /// The key, decoded.
    pub key: Cow<'a, [u8]>,
    /// `b`: the key came as base64.
    pub is_base64: bool,
    /// `T`: when the item expires.
    pub exptime: Option<i64>,
    /// `N`: a missing item is made, which expires then.
    pub vivify: Option<i64>,
    /// `R`: an item that expires before that is to be made again.
    pub recache: Option<i64>,
    /// `F`: the client's flags.
    pub client_flags: u32,
    /// `C`: only if the item has this version.
    pub cas: Option<u64>,
    /// `E`: the item's new version.
    pub new_cas: Option<u64>,
    /// `J`: the number that is made.
    pub initial: u64,
    /// `D`: by how much to count.
    pub delta: u64,
    /// `v`: the reply has the value.
    pub value: bool,
    /// `q`: what is usual is not answered.
    pub quiet: bool,
    /// `I`: the item is out of date.
    pub invalidates: bool,
    /// `u`: the item does not count as used.
    pub no_bump: bool,
    /// `x`: the value is removed, the item stays.
    pub removes_value: bool,
    /// `M`.
    mode: u8,
    /// All flags, between spaces.
    flags: &'a [u8],
}

/// What a reply has because a flag asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown<'a> {
    /// `O`, as it came.
    Opaque(&'a [u8]),
    /// `k`
    Key,
    /// `c`
    Cas,
    /// `f`
    ClientFlags,
    /// `l`
    IdleSeconds,
    /// `s`
    Size,
    /// `t`
    TimeToLive,
}

/// The length of the value behind a line of `ms`.
pub(crate) fn value_bytes(line: &[u8]) -> Option<u64> {
    let bytes = words(line).nth(2).and_then(number)?;
    (bytes <= i32::MAX as u64 - 2).then_some(bytes)
}

impl<'a> Meta<'a> {
    /// Reads a line, which begins with a command's name, and the value behind it.
    ///
    /// # Errors
    /// The line to answer with.
    pub(crate) fn of_line(line: &'a [u8], value: &'a [u8]) -> Result<Meta<'a>, &'static str> {
        let mut rest = words(line);
        let name = rest.next().unwrap_or_default();
        let key = rest.next().ok_or(UNKNOWN)?;
        if name == b"ms" {
            let bytes = rest.next().ok_or(FORMAT)?;
            let bytes = number(bytes).filter(|_| value_bytes(line).is_some());
            let bytes = bytes.ok_or(FORMAT)?;
            let flags = Flags::read(key, rest, line)?;
            let mode = match flags.mode {
                0 | b'S' | b's' => Mode::Set,
                b'E' | b'e' => Mode::Add,
                b'R' | b'r' => Mode::Replace,
                b'A' | b'a' => Mode::Append,
                b'P' | b'p' => Mode::Prepend,
                _ => return Err("CLIENT_ERROR invalid mode for ms M token"),
            };
            return match value.strip_suffix(b"\r\n") {
                None if value.is_empty() => Err(crate::request::error::TOO_LARGE),
                Some(value) if value.len() as u64 == bytes => Ok(Meta::Set(flags, mode, value)),
                _ => Err(crate::request::error::CHUNK),
            };
        }
        let flags = Flags::read(key, rest, line)?;
        Ok(match name {
            b"mg" => Meta::Get(flags),
            b"md" => Meta::Delete(flags),
            b"ma" => match flags.mode {
                0 | b'I' | b'i' | b'+' => Meta::Count(flags, false),
                b'D' | b'd' | b'-' => Meta::Count(flags, true),
                _ => return Err("CLIENT_ERROR invalid mode for ma M token"),
            },
            _ => Meta::Debug(flags),
        })
    }
}

impl<'a> Flags<'a> {
    fn read(
        key: &'a [u8],
        rest: impl Iterator<Item = &'a [u8]> + Clone,
        line: &'a [u8],
    ) -> Result<Flags<'a>, &'static str> {
        if key.len() > KEY_BYTES_MAX {
            return Err(FORMAT);
        }
        let first = rest.clone().next().map(|word| word.as_ptr() as usize);
        let at = first.map_or(line.len(), |first| first - line.as_ptr() as usize);
        let mut flags = Flags {
            key: Cow::Borrowed(key),
            is_base64: false,
            exptime: None,
            vivify: None,
            recache: None,
            client_flags: 0,
            cas: None,
            new_cas: None,
            initial: 0,
            delta: 1,
            value: false,
            quiet: false,
            invalidates: false,
            no_bump: false,
            removes_value: false,
            mode: 0,
            flags: &line[at..],
        };
        if rest.clone().count() > FLAGS_MAX {
            return Err("CLIENT_ERROR options flags are too long");
        }
        let mut seen = [false; 128];
        for word in rest {
            let (&flag, token) = word.split_first().ok_or(FORMAT)?;
            let seen = seen.get_mut(usize::from(flag)).map(|seen| std::mem::replace(seen, true));
            if seen != Some(false) {
                return Err("CLIENT_ERROR duplicate flag");
            }
            flags.add(flag, token)?;
        }
        if flags.is_base64 {
            let decoded = BASE64.decode(key).ok().filter(|key| !key.is_empty());
            flags.key = Cow::Owned(decoded.ok_or("CLIENT_ERROR error decoding key")?);
        }
        Ok(flags)
    }

    fn add(&mut self, flag: u8, token: &[u8]) -> Result<(), &'static str> {
        let time = || signed(token).map(Some).ok_or(TOKEN);
        let version = || number(token).map(Some).ok_or(TOKEN);
        match flag {
            b'b' => self.is_base64 = true,
            b'N' => self.vivify = time()?,
            b'T' => self.exptime = time()?,
            b'R' => self.recache = time()?,
            b'F' => {
                let flags = number(token).and_then(|flags| u32::try_from(flags).ok());
                self.client_flags = flags.ok_or(TOKEN)?;
            }
            b'C' => self.cas = version()?,
            b'E' => self.new_cas = version()?,
            b'J' => {
                self.initial = number(token).ok_or("CLIENT_ERROR invalid numeric initial value")?;
            }
            b'D' => {
                self.delta = number(token).ok_or("CLIENT_ERROR invalid numeric delta value")?;
            }
            b'M' => self.mode = *token.first().ok_or(TOKEN)?,
            b'v' => self.value = true,
            b'q' => self.quiet = true,
            b'I' => self.invalidates = true,
            b'u' => self.no_bump = true,
            b'x' => self.removes_value = true,
            b'O' if token.len() >= OPAQUE_BYTES_MAX => {
                return Err("CLIENT_ERROR opaque token too long");
            }
            // What routers between client and server read.
            b'O' | b'P' | b'L' => {}
            b'k' | b's' | b't' | b'c' | b'f' | b'l' => {}
            b'h' => {
                return Err("CLIENT_ERROR flag h: whether an item was hit before is not kept");
            }
            _ => return Err("CLIENT_ERROR invalid flag"),
        }
        Ok(())
    }

    /// What the reply has, in order.
    pub fn shown(&self) -> impl Iterator<Item = Shown<'a>> + use<'a> {
        words(self.flags).filter_map(|word| {
            Some(match word.first()? {
                b'O' => Shown::Opaque(word),
                b'k' => Shown::Key,
                b'c' => Shown::Cas,
                b'f' => Shown::ClientFlags,
                b'l' => Shown::IdleSeconds,
                b's' => Shown::Size,
                b't' => Shown::TimeToLive,
                _ => return None,
            })
        })
    }

    /// Appends the key as it came.
    pub fn write_key(&self, out: &mut Vec<u8>) {
        match self.is_base64 {
            true => out.extend_from_slice(BASE64.encode(&self.key).as_bytes()),
            false => out.extend_from_slice(&self.key),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Request;

    fn meta(line: &str) -> Result<Meta<'_>, &'static str> {
        match Request::of_line(line.as_bytes()) {
            Request::Meta(meta) => Ok(meta),
            Request::Bad { error, .. } => Err(error),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn flags_are_read_and_their_order_is_kept() {
        let Ok(Meta::Get(flags)) = meta("mg Zm9v b t v Oabc k T30 C7 E8 N5 R6\r\n") else {
            panic!()
        };
        assert_eq!((&*flags.key, flags.exptime, flags.cas), (&b"foo"[..], Some(30), Some(7)));
        assert_eq!((flags.new_cas, flags.vivify, flags.recache), (Some(8), Some(5), Some(6)));
        assert!(flags.value && !flags.quiet);
        let shown: Vec<Shown<'_>> = flags.shown().collect();
        assert_eq!(shown, [Shown::TimeToLive, Shown::Opaque(b"Oabc"), Shown::Key]);
        let mut key = Vec::new();
        flags.write_key(&mut key);
        assert_eq!(key, b"Zm9v");
    }

    #[test]
    fn a_value_comes_with_a_mode() {
        let Ok(Meta::Set(flags, Mode::Append, b"hi")) = meta("ms k 2 MA F9 I\r\nhi\r\n") else {
            panic!()
        };
        assert!(flags.client_flags == 9 && flags.invalidates);
        assert_eq!(meta("ms k 2\r\nhixx"), Err("CLIENT_ERROR bad data chunk"));
        assert_eq!((meta("ms k x\r\n"), meta("ms k\r\n")), (Err(FORMAT), Err(FORMAT)));
        assert_eq!(meta("ms\r\n"), Err(UNKNOWN));
        assert_eq!(meta("ms k 2 MX\r\nhi\r\n"), Err("CLIENT_ERROR invalid mode for ms M token"));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (line, error) in [
            ("mg\r\n", UNKNOWN),
            ("mg k v v\r\n", "CLIENT_ERROR duplicate flag"),
            ("mg k !\r\n", "CLIENT_ERROR invalid flag"),
            ("mg k Tx\r\n", TOKEN),
            ("mg k C\r\n", TOKEN),
            ("mg !! b\r\n", "CLIENT_ERROR error decoding key"),
            ("ma k Dx\r\n", "CLIENT_ERROR invalid numeric delta value"),
            ("ma k MX\r\n", "CLIENT_ERROR invalid mode for ma M token"),
            (
                "mg k O0123456789012345678901234567890123456789\r\n",
                "CLIENT_ERROR opaque token too long",
            ),
        ] {
            assert_eq!(meta(line), Err(error), "{line:?}");
        }
        assert!(meta("mg k h\r\n").unwrap_err().contains("flag h"));
        assert_eq!(meta("mn\r\n"), Ok(Meta::Noop));
    }
}
