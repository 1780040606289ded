//! Where the next piece of a stream ends.
//!
//! Most pieces are a request: a line, or a line and a value. The keys of a `get` come in pieces of
//! [`KEYS_AT_ONCE`], and a value that is too long to be kept in pieces that are only skipped.

use crate::binary;
use crate::request::{self, KeyList};
use crate::words::{without_end, words};

/// A longer line is refused, unless it is a list of keys; as memcached's.
pub const LINE_BYTES_MAX: usize = 2048;

/// A longer list of keys is refused.
pub const KEY_LIST_BYTES_MAX: usize = 1 << 20;

/// As many keys of one `get` are looked up in a row.
pub const KEYS_AT_ONCE: usize = 64;

/// The largest value of a client that has not logged in: a user's name and password.
pub const LOGIN_BYTES_MAX: u64 = 16 << 10;

/// What a client may send.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of a value.
    pub value_bytes_max: u64,
}

/// What is known of a stream where the next piece begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Nothing has arrived yet.
    #[default]
    Fresh,
    /// A line of text begins.
    Text,
    /// More keys of a `get` come.
    Keys(KeyList),
    /// So many bytes of a value come that nobody wants.
    Skip(u64),
    /// A binary packet begins.
    Binary,
    /// So many bytes of a binary packet come that nobody wants.
    SkipBinary(u64),
}

/// Why a stream cannot be read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamError {
    /// A line does not end.
    LineTooLong,
    /// A binary packet begins with another byte.
    NoMagic,
}

/// How far the next piece goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Framed {
    /// It is there.
    Complete {
        /// Its length in bytes; at least one.
        end: usize,
        /// The state behind it.
        next: State,
    },
    /// At least so many bytes are missing; 0 if that is unknown.
    Incomplete {
        /// Bytes.
        needed: usize,
    },
    /// It is none.
    Invalid(StreamError),
}

/// The piece that `input` begins with, in this state.
pub fn frame(state: &State, input: &[u8], limits: Limits) -> Framed {
    let Some(&first) = input.first() else { return Framed::Incomplete { needed: 0 } };
    match state {
        State::Fresh if first == binary::REQUEST => frame_binary(input, limits),
        State::Fresh | State::Text => frame_line(input, limits),
        State::Keys(list) => frame_keys(*list, input),
        State::Skip(left) => skip(*left, input, State::Skip, State::Text),
        State::Binary => frame_binary(input, limits),
        State::SkipBinary(left) => skip(*left, input, State::SkipBinary, State::Binary),
    }
}

fn skip(left: u64, input: &[u8], rest: fn(u64) -> State, then: State) -> Framed {
    let end = usize::try_from(left).unwrap_or(usize::MAX).min(input.len());
    let next = match left - end as u64 {
        0 => then,
        left => rest(left),
    };
    Framed::Complete { end, next }
}

fn frame_line(input: &[u8], limits: Limits) -> Framed {
    let seen = &input[..input.len().min(KEY_LIST_BYTES_MAX)];
    let Some(at) = memchr::memchr(b'\n', seen) else {
        let length_max = match request::key_list(input) {
            Some(_) => KEY_LIST_BYTES_MAX,
            None => LINE_BYTES_MAX,
        };
        return match input.len() > length_max {
            true => Framed::Invalid(StreamError::LineTooLong),
            false => Framed::Incomplete { needed: 0 },
        };
    };
    let end = at + 1;
    let line = without_end(&input[..end]);
    if let Some(list) = request::key_list(line) {
        // A wrong key is refused before anything is answered.
        return match request::are_keys(line, list) {
            true => frame_keys(list.first(), input),
            false => Framed::Complete { end, next: State::Text },
        };
    }
    if at > LINE_BYTES_MAX {
        return Framed::Invalid(StreamError::LineTooLong);
    }
    let Some(bytes) = request::value_bytes(line) else {
        return Framed::Complete { end, next: State::Text };
    };
    // With its end.
    let whole = bytes + 2;
    if bytes > limits.value_bytes_max {
        return Framed::Complete { end, next: State::Skip(whole) };
    }
    let Ok(whole) = usize::try_from(whole) else {
        return Framed::Complete { end, next: State::Skip(whole) };
    };
    match input.len() - end {
        here if here < whole => Framed::Incomplete { needed: whole - here },
        _ => Framed::Complete { end: end + whole, next: State::Text },
    }
}

/// The next keys of a list. Its end is in the input: a line was complete when it began.
fn frame_keys(list: KeyList, input: &[u8]) -> Framed {
    let whole = list.rest().or_else(|| memchr::memchr(b'\n', input).map(|at| at + 1));
    let Some(whole) = whole.and_then(|whole| input.get(..whole)) else {
        return Framed::Incomplete { needed: 0 };
    };
    let line = without_end(whole);
    let before = list.words_before_keys();
    match words(line).nth(before + KEYS_AT_ONCE) {
        None => Framed::Complete { end: whole.len(), next: State::Text },
        Some(next) => {
            let end = next.as_ptr() as usize - input.as_ptr() as usize;
            let list = list.of_line(line, whole.len() - end);
            Framed::Complete { end, next: State::Keys(list) }
        }
    }
}

fn frame_binary(input: &[u8], limits: Limits) -> Framed {
    if input[0] != binary::REQUEST {
        return Framed::Invalid(StreamError::NoMagic);
    }
    let Some(header) = binary::Header::read(input) else {
        return Framed::Incomplete { needed: binary::HEADER_BYTES - input.len() };
    };
    let head = binary::HEADER_BYTES;
    let body = u64::from(header.body_bytes);
    let beside = header.beside_value().unwrap_or(0);
    if body - beside as u64 > limits.value_bytes_max {
        // The key belongs to the piece: its item is not to be read any more.
        let end = head + beside;
        return match input.len() < end {
            true => Framed::Incomplete { needed: end - input.len() },
            false => Framed::Complete { end, next: State::SkipBinary(body - beside as u64) },
        };
    }
    let whole = head + body as usize;
    match input.len() < whole {
        true => Framed::Incomplete { needed: whole - input.len() },
        false => Framed::Complete { end: whole, next: State::Binary },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { value_bytes_max: 1000 };

    fn complete(end: usize, next: State) -> Framed {
        Framed::Complete { end, next }
    }

    #[test]
    fn a_piece_is_complete_when_all_of_it_is_there() {
        for whole in ["get a\r\n", "set a 0 0 5\r\nhello\r\n", "ms a 2 c\r\nhi\r\n", "foo\n"] {
            let whole = whole.as_bytes();
            for cut in 0..whole.len() {
                let framed = frame(&State::Text, &whole[..cut], LIMITS);
                assert!(matches!(framed, Framed::Incomplete { .. }), "{whole:?} cut at {cut}");
            }
            let with_more = [whole, b"get"].concat();
            assert_eq!(
                frame(&State::Fresh, &with_more, LIMITS),
                complete(whole.len(), State::Text)
            );
        }
    }

    #[test]
    fn a_value_that_is_too_long_is_skipped() {
        let line = b"set a 0 0 1001\r\n";
        let input = [&line[..], &[b'x'; 500]].concat();
        assert_eq!(frame(&State::Text, &input, LIMITS), complete(line.len(), State::Skip(1003)));
        let rest = frame(&State::Skip(1003), &[b'x'; 500], LIMITS);
        assert_eq!(rest, complete(500, State::Skip(503)));
        assert_eq!(frame(&State::Skip(2), b"\r\nget", LIMITS), complete(2, State::Text));
    }

    #[test]
    fn a_list_of_keys_comes_in_pieces() {
        let keys: Vec<String> = (0..150).map(|n| format!("k{n}")).collect();
        let line = format!("gats 10 {}\r\n", keys.join(" "));
        let (mut state, mut rest, mut pieces) = (State::Text, line.as_bytes(), Vec::new());
        while !rest.is_empty() {
            let Framed::Complete { end, next } = frame(&state, rest, LIMITS) else { panic!() };
            pieces.push(words(without_end(&rest[..end])).count());
            (state, rest) = (next, &rest[end..]);
        }
        assert_eq!((pieces, state), (vec![66, 64, 22], State::Text));
    }

    #[test]
    fn a_line_ends_somewhere() {
        let long = |word: &str, length| [word.as_bytes(), &vec![b'a'; length]].concat();
        let framed = |bytes: &[u8]| frame(&State::Text, bytes, LIMITS);
        let too_long = Framed::Invalid(StreamError::LineTooLong);
        assert_eq!(framed(&long("touch ", LINE_BYTES_MAX)), too_long);
        assert_eq!(framed(&long("get ", LINE_BYTES_MAX)), Framed::Incomplete { needed: 0 });
        assert_eq!(framed(&long("get ", KEY_LIST_BYTES_MAX)), too_long);
        assert_eq!(framed(&[&long("a", LINE_BYTES_MAX)[..], b"\r\n"].concat()), too_long);
    }

    #[test]
    fn the_first_byte_says_which_protocol_it_is() {
        let mut packet = [0; 24];
        packet[0] = binary::REQUEST;
        assert_eq!(frame(&State::Fresh, &packet, LIMITS), complete(24, State::Binary));
        let text = frame(&State::Text, &packet, LIMITS);
        assert_eq!(text, Framed::Incomplete { needed: 0 });
        let no_packet = frame(&State::Binary, b"get", LIMITS);
        assert_eq!(no_packet, Framed::Invalid(StreamError::NoMagic));
        for cut in 1..24 {
            let framed = frame(&State::Fresh, &packet[..cut], LIMITS);
            assert_eq!(framed, Framed::Incomplete { needed: 24 - cut });
        }
        packet[8] = 1;
        let skipped = complete(24, State::SkipBinary(1 << 24));
        assert_eq!(frame(&State::Binary, &packet, LIMITS), skipped);
    }
}
