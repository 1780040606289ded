//! JSON to Lua values.

use crate::cdata::{push_i64, push_null, push_u64};
use crate::numbers::read_double;
use crate::serializer::{DEPTH_MAX, Options, own_options, push_hint};
use crate::stack::{State, check_bytes, never, own, push_bytes};
use mlua::ffi::*;
use std::ffi::{CStr, c_int};

/// Slots of the Lua stack that a level of nesting takes.
const SLOTS_OF_A_LEVEL: c_int = 8;

/// `json.decode(text [, options])`.
pub(super) unsafe extern "C-unwind" fn decode(state: State) -> c_int {
    // SAFETY: As for `stack`; the functions of a serializer have their options.
    unsafe {
        let given = lua_gettop(state);
        if given != 1 && given != 2 {
            never(luaL_error(
                state,
                c"bad argument #1 to '?' (expected 1 or 2 arguments)".as_ptr(),
            ));
        }
        let mut options = own_options(state);
        if given == 2 {
            options.read(state, 2);
        }
        let text = check_bytes(state, 1);
        let unescaped = own::<Vec<u8>>(state);
        let mut decoder =
            Decoder { state, options, text, at: 0, line: 1, line_start: 0, unescaped };
        let token = decoder.next();
        decoder.value(token, 0);
        let token = decoder.next();
        if !matches!(token.kind, Kind::End) {
            decoder.unexpected(c"the end", token);
        }
        1
    }
}

#[derive(Clone, Copy)]
enum Kind<'a> {
    ObjectBegin,
    ObjectEnd,
    ArrayBegin,
    ArrayEnd,
    /// The bytes between the quotes, and whether any of them is escaped.
    Text(&'a [u8], bool),
    Unsigned(u64),
    Signed(i64),
    Double(f64),
    Bool(bool),
    Null,
    Colon,
    Comma,
    End,
    Invalid(&'static CStr),
}

#[derive(Clone, Copy)]
struct Token<'a> {
    kind: Kind<'a>,
    /// Where it begins.
    at: usize,
    line: usize,
    line_start: usize,
}

impl Kind<'_> {
    fn name(self) -> &'static CStr {
        match self {
            Kind::ObjectBegin => c"T_OBJ_BEGIN",
            Kind::ObjectEnd => c"T_OBJ_END",
            Kind::ArrayBegin => c"T_ARR_BEGIN",
            Kind::ArrayEnd => c"T_ARR_END",
            Kind::Text(..) => c"T_STRING",
            // As Tarantool: it calls small ones T_INT too.
            Kind::Unsigned(value) if i64::try_from(value).is_err() => c"T_UINT",
            Kind::Unsigned(_) | Kind::Signed(_) => c"T_INT",
            Kind::Double(_) => c"T_NUMBER",
            Kind::Bool(_) => c"T_BOOLEAN",
            Kind::Null => c"T_NULL",
            Kind::Colon => c"T_COLON",
            Kind::Comma => c"T_COMMA",
            Kind::End => c"T_END",
            Kind::Invalid(what) => what,
        }
    }
}

struct Decoder<'a> {
    state: State,
    options: Options,
    text: &'a [u8],
    at: usize,
    line: usize,
    line_start: usize,
    unescaped: *mut Vec<u8>,
}

impl<'a> Decoder<'a> {
    fn peek(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or(0)
    }

    fn next(&mut self) -> Token<'a> {
        loop {
            match self.peek() {
                b' ' | b'\t' | b'\r' => self.at += 1,
                b'\n' => {
                    self.at += 1;
                    self.line += 1;
                    self.line_start = self.at;
                }
                _ => break,
            }
        }
        let (at, line, line_start) = (self.at, self.line, self.line_start);
        let mut token = Token { kind: Kind::End, at, line, line_start };
        let single = match self.peek() {
            b'{' => Kind::ObjectBegin,
            b'}' => Kind::ObjectEnd,
            b'[' => Kind::ArrayBegin,
            b']' => Kind::ArrayEnd,
            b':' => Kind::Colon,
            b',' => Kind::Comma,
            b'"' => {
                self.text_token(&mut token);
                return token;
            }
            // A zero byte ends the text, as for a parser of C strings.
            0 => return token,
            _ => {
                token.kind = self.word();
                return token;
            }
        };
        self.at += 1;
        token.kind = single;
        token
    }

    fn text_token(&mut self, token: &mut Token<'a>) {
        let start = self.at + 1;
        let mut end = start;
        let mut escaped = false;
        loop {
            match self.text.get(end) {
                None | Some(0) => {
                    token.kind = match self.first_bad_escape(start, end) {
                        Some((what, place)) => {
                            token.at = place;
                            Kind::Invalid(what)
                        }
                        None => {
                            token.at = end;
                            Kind::Invalid(c"unexpected end of string")
                        }
                    };
                    return;
                }
                Some(b'"') => break,
                Some(b'\\') => {
                    escaped = true;
                    end += 2;
                }
                Some(_) => end += 1,
            }
        }
        if escaped && let Some((what, place)) = self.first_bad_escape(start, end) {
            token.at = place;
            token.kind = Kind::Invalid(what);
            return;
        }
        self.at = end + 1;
        token.kind = Kind::Text(&self.text[start..end], escaped);
    }

    /// The first escape that is none, in what the bytes from `start` to `end` are.
    fn first_bad_escape(&self, start: usize, end: usize) -> Option<(&'static CStr, usize)> {
        let text = &self.text[..end.min(self.text.len())];
        let mut at = start;
        while at < text.len() {
            if text[at] != b'\\' {
                at += 1;
                continue;
            }
            match text.get(at + 1) {
                Some(b'u') => match escaped_code(&text[at..]) {
                    Some((_, length)) => at += length,
                    None => return Some((c"invalid unicode escape code", at)),
                },
                Some(b'"' | b'\\' | b'/' | b'b' | b't' | b'n' | b'f' | b'r') => at += 2,
                _ => return Some((c"invalid escape code", at)),
            }
        }
        None
    }

    /// A number, or one of the words.
    fn word(&mut self) -> Kind<'a> {
        let rest = &self.text[self.at..];
        let invalid_allowed = self.options.decode_invalid_numbers;
        let words: [(&[u8], Kind<'a>, bool); 7] = [
            (b"true", Kind::Bool(true), true),
            (b"false", Kind::Bool(false), true),
            (b"null", Kind::Null, true),
            (b"nan", Kind::Double(f64::NAN), invalid_allowed),
            (b"-nan", Kind::Double(f64::NAN), invalid_allowed),
            (b"inf", Kind::Double(f64::INFINITY), invalid_allowed),
            (b"-inf", Kind::Double(f64::NEG_INFINITY), invalid_allowed),
        ];
        for (word, kind, allowed) in words {
            if allowed && rest.starts_with(word) {
                self.at += word.len();
                return kind;
            }
        }
        match number(rest) {
            Some((kind, length)) => {
                self.at += length;
                kind
            }
            None => Kind::Invalid(c"invalid token"),
        }
    }

    /// Raises "Expected ... but found ...".
    unsafe fn unexpected(&self, expected: &CStr, token: Token<'_>) -> ! {
        let found = token.kind.name();
        let character = token.at.saturating_sub(token.line_start) + 1;
        // SAFETY: As for `stack`; nothing here has to be dropped.
        unsafe {
            never(luaL_error(
                self.state,
                c"Expected %s but found %s on line %d at character %d".as_ptr(),
                expected.as_ptr(),
                found.as_ptr(),
                token.line as c_int,
                character as c_int,
            ))
        }
    }

    /// Pushes the value that begins with this token.
    unsafe fn value(&mut self, token: Token<'a>, depth: u32) {
        let state = self.state;
        // SAFETY: As for `stack`.
        unsafe {
            match token.kind {
                Kind::Text(text, escaped) => self.text(text, escaped),
                Kind::Unsigned(value) => match i64::try_from(value) {
                    Ok(value) => push_i64(state, value),
                    Err(_) => push_u64(state, value),
                },
                Kind::Signed(value) => push_i64(state, value),
                Kind::Double(value) => lua_pushnumber(state, value),
                Kind::Bool(value) => lua_pushboolean(state, value.into()),
                Kind::Null => push_null(state),
                Kind::ArrayBegin => {
                    self.enter(token, depth + 1);
                    self.array(depth + 1);
                }
                Kind::ObjectBegin => {
                    self.enter(token, depth + 1);
                    self.object(depth + 1);
                }
                _ => self.unexpected(c"value", token),
            }
        }
    }

    unsafe fn text(&mut self, text: &[u8], escaped: bool) {
        // SAFETY: As for `stack`; the vector lives as long as its userdata, and is used here alone.
        unsafe {
            if escaped {
                let out = &mut *self.unescaped;
                out.clear();
                unescape(text, out);
                push_bytes(self.state, out);
            } else {
                push_bytes(self.state, text);
            }
        }
    }

    unsafe fn enter(&self, token: Token<'_>, depth: u32) {
        let depth_max = u32::try_from(self.options.decode_max_depth).unwrap_or(0).min(DEPTH_MAX);
        // SAFETY: As for `stack`; nothing here has to be dropped.
        unsafe {
            if depth > depth_max {
                never(luaL_error(
                    self.state,
                    c"Found too many nested data structures (%d) on line %d at character %d"
                        .as_ptr(),
                    depth as c_int,
                    token.line as c_int,
                    (token.at - token.line_start + 1) as c_int,
                ));
            }
            luaL_checkstack(self.state, SLOTS_OF_A_LEVEL, c"json.decode".as_ptr());
        }
    }

    unsafe fn finish(&self, hint: &CStr) {
        if self.options.decode_save_metatables {
            // SAFETY: As for `stack`.
            unsafe {
                push_hint(self.state, hint);
                lua_setmetatable(self.state, -2);
            }
        }
    }

    unsafe fn array(&mut self, depth: u32) {
        // SAFETY: As for `stack`.
        unsafe {
            lua_createtable(self.state, 0, 0);
            let mut token = self.next();
            if matches!(token.kind, Kind::ArrayEnd) {
                return self.finish(c"seq");
            }
            for place in 1.. {
                self.value(token, depth);
                lua_rawseti_(self.state, -2, place);
                token = self.next();
                match token.kind {
                    Kind::ArrayEnd => break,
                    Kind::Comma => token = self.next(),
                    _ => self.unexpected(c"comma or array end", token),
                }
            }
            self.finish(c"seq");
        }
    }

    unsafe fn object(&mut self, depth: u32) {
        // SAFETY: As for `stack`.
        unsafe {
            lua_createtable(self.state, 0, 0);
            let mut token = self.next();
            if matches!(token.kind, Kind::ObjectEnd) {
                return self.finish(c"map");
            }
            loop {
                let Kind::Text(key, escaped) = token.kind else {
                    self.unexpected(c"object key string", token)
                };
                self.text(key, escaped);
                token = self.next();
                if !matches!(token.kind, Kind::Colon) {
                    self.unexpected(c"colon", token);
                }
                token = self.next();
                self.value(token, depth);
                lua_rawset(self.state, -3);
                token = self.next();
                match token.kind {
                    Kind::ObjectEnd => break,
                    Kind::Comma => token = self.next(),
                    _ => self.unexpected(c"comma or object end", token),
                }
            }
            self.finish(c"map");
        }
    }
}

/// The code point that `\uXXXX`, or two of them, mean, and their length.
fn escaped_code(text: &[u8]) -> Option<(char, usize)> {
    let first = four_digits(text)?;
    match first {
        0xd800..=0xdbff => {
            let second = four_digits(text.get(6..)?)?;
            if !(0xdc00..=0xdfff).contains(&second) {
                return None;
            }
            let code = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
            Some((char::from_u32(code)?, 12))
        }
        _ => Some((char::from_u32(first)?, 6)),
    }
}

fn four_digits(text: &[u8]) -> Option<u32> {
    let digits = text.strip_prefix(b"\\u")?.get(..4)?;
    digits.iter().try_fold(0, |code, digit| Some(code * 16 + char::from(*digit).to_digit(16)?))
}

/// Writes what a text between quotes means; its escapes were looked at.
fn unescape(text: &[u8], out: &mut Vec<u8>) {
    let mut at = 0;
    while at < text.len() {
        if text[at] != b'\\' {
            out.push(text[at]);
            at += 1;
            continue;
        }
        let plain = match text.get(at + 1) {
            Some(b'b') => b'\x08',
            Some(b't') => b'\t',
            Some(b'n') => b'\n',
            Some(b'f') => b'\x0c',
            Some(b'r') => b'\r',
            Some(b'u') => {
                if let Some((code, length)) = escaped_code(&text[at..]) {
                    out.extend_from_slice(code.encode_utf8(&mut [0; 4]).as_bytes());
                    at += length;
                } else {
                    at += 2;
                }
                continue;
            }
            Some(other) => *other,
            None => b'\\',
        };
        out.push(plain);
        at += 2;
    }
}

/// The number that the text begins with, and its length: `-`, digits without a zero in front, a
/// point, an exponent. Integers beyond 64 bits are the nearest that fits, as for C's `strtoull`.
fn number<'a>(text: &[u8]) -> Option<(Kind<'a>, usize)> {
    let digits = |from: usize| text[from..].iter().take_while(|b| b.is_ascii_digit()).count();
    let negative = text.first() == Some(&b'-');
    let start = usize::from(negative);
    let mut end = start + digits(start);
    if end == start {
        return None;
    }
    let leading_zero = text[start] == b'0';
    if leading_zero && (end > start + 1 || matches!(text.get(end), Some(b'x' | b'X'))) {
        return None;
    }
    let whole_end = end;
    if text.get(end) == Some(&b'.') {
        end += 1 + digits(end + 1);
    }
    if matches!(text.get(end), Some(b'e' | b'E')) {
        let signed = usize::from(matches!(text.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits(end + 1 + signed);
        if exponent > 0 {
            end += 1 + signed + exponent;
        }
    }
    if end > whole_end {
        return Some((Kind::Double(read_double(&text[..end])?), end));
    }
    let absolute = text[start..end]
        .iter()
        .fold(0_u64, |value, digit| value.saturating_mul(10).saturating_add((digit - b'0').into()));
    let kind = if negative {
        Kind::Signed(0_i64.checked_sub_unsigned(absolute).unwrap_or(i64::MIN))
    } else {
        Kind::Unsigned(absolute)
    };
    Some((kind, end))
}
