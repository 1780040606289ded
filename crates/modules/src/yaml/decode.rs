//! YAML to Lua values: the parser makes items first, of which the values are made afterwards.
//!
//! What a plain scalar means is Tarantool's choice of YAML 1.1: `~` and `null`, `true`, `false`,
//! `yes` and `no`, and numbers as C reads them. An alias is the very table that it names, so a few
//! lines cannot become a large value.

use crate::base64;
use crate::cdata::{push_i64, push_null, push_u64};
use crate::serializer::{DEPTH_MAX, Options, own_options, push_hint};
use crate::stack::{State, bytes, own, push_bytes, raise};
use mlua::ffi::*;
use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Tag};
use std::ffi::{c_char, c_int};
use std::fmt::Write as _;

const SLOTS_OF_A_LEVEL: c_int = 10;
const USAGE: &[u8] = b"Usage: yaml.decode(document, [{tag_only = boolean}])";

/// Most items of a text.
const ITEMS_MAX: usize = 1 << 24;
/// Most documents of a text: each is a result of its own, and so a place on the stack.
const DOCUMENTS_MAX: usize = 4_000;

const TAG_PREFIX: &str = "tag:yaml.org,2002:";

/// What a scalar has to become.
#[derive(Clone, Copy)]
enum Wanted {
    /// By its text.
    Plain,
    Text,
    Int,
    Float,
    Bool,
    Binary,
}

/// Anchors are numbers; 0 is none.
enum Item {
    Scalar(String, Wanted, usize),
    Sequence(usize),
    Map(usize),
    End,
    Alias(usize),
}

/// What a text becomes.
#[derive(Default)]
struct Work {
    items: Vec<Item>,
    documents: usize,
    error: String,
}

/// `yaml.decode(text [, {tag_only = boolean}])`: a value for each document.
pub(super) unsafe extern "C-unwind" fn decode(state: State) -> c_int {
    // SAFETY: As for `stack`; what owns memory belongs to the userdata.
    unsafe {
        let options = own_options(state);
        let Some(text) = bytes(state, 1) else { raise_plain(state, USAGE) };
        if lua_gettop(state) > 1 && lua_type(state, 2) != LUA_TNIL {
            if lua_type(state, 2) != LUA_TTABLE {
                raise_plain(state, USAGE);
            }
            lua_getfield_(state, 2, c"tag_only".as_ptr());
            if lua_type(state, -1) == LUA_TBOOLEAN && lua_toboolean(state, -1) != 0 {
                return push_tag(state, text);
            }
        }
        lua_settop(state, 1);
        let work = own::<Work>(state);
        parse(text, &mut *work);
        let parsed = &*work;
        if !parsed.error.is_empty() {
            push_bytes(state, parsed.error.as_bytes());
            drop(std::mem::take(&mut *work));
            lua_error(state);
        }
        let documents = (*work).documents as c_int;
        luaL_checkstack(state, documents + SLOTS_OF_A_LEVEL, c"yaml.decode".as_ptr());
        lua_createtable(state, 0, 0);
        let mut builder = Builder { state, options, work, at: 0, anchors: lua_gettop(state) };
        for _ in 0..documents {
            builder.value(0);
        }
        drop(std::mem::take(&mut *work));
        documents
    }
}

unsafe fn raise_plain(state: State, text: &[u8]) -> ! {
    // SAFETY: As for `stack`.
    unsafe {
        push_bytes(state, text);
        lua_error(state)
    }
}

/// Pushes handle and prefix of the first document's `%TAG`; nil if there is none, nil and a message
/// if there are several.
unsafe fn push_tag(state: State, text: &[u8]) -> c_int {
    let mut found: Option<(&[u8], &[u8])> = None;
    for line in text.split(|byte| *byte == b'\n') {
        let line = line.trim_ascii();
        if line.is_empty() || line[0] == b'#' || line.starts_with(b"%YAML") {
            continue;
        }
        let Some(rest) = line.strip_prefix(b"%TAG") else { break };
        let mut words = rest.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let (handle, prefix) = (words.next(), words.next());
        let (Some(handle), Some(prefix)) = (handle, prefix) else { break };
        if found.is_some() {
            // SAFETY: As for `stack`.
            unsafe {
                lua_pushnil(state);
                push_bytes(state, b"can not decode multiple tags");
            }
            return 2;
        }
        found = Some((handle, prefix));
    }
    // SAFETY: As for `stack`.
    unsafe {
        let Some((handle, prefix)) = found else {
            lua_pushnil(state);
            return 1;
        };
        push_bytes(state, handle);
        push_bytes(state, prefix);
    }
    2
}

/// The characters that YAML 1.1 allows in a stream.
fn is_allowed(character: char) -> bool {
    matches!(character, '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{fffd}')
        || character > '\u{ffff}'
}

/// Makes the items, or a message.
fn parse(text: &[u8], work: &mut Work) {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let Ok(text) = std::str::from_utf8(text) else {
        "invalid UTF-8 at document: 0\n".clone_into(&mut work.error);
        return;
    };
    if !text.chars().all(is_allowed) {
        "control characters are not allowed at document: 0\n".clone_into(&mut work.error);
        return;
    }
    if let Err(error) = collect(text, work) {
        let place = error.marker();
        let _ = writeln!(
            work.error,
            "{} at document: {}, line: {}, column: {}",
            error.info(),
            work.documents,
            place.line(),
            place.col() + 1,
        );
    }
}

fn collect(text: &str, work: &mut Work) -> Result<(), ScanError> {
    let mut depth = 0;
    let (is_cut, characters) = (!text.ends_with('\n'), text.chars().count());
    for event in Parser::new_from_str(text) {
        let (event, span) = event?;
        let refuse = |what: &str| Err(ScanError::new_str(span.start, what));
        let item = match event {
            Event::DocumentStart(_) => {
                work.documents += 1;
                if work.documents > DOCUMENTS_MAX {
                    return refuse("too many documents");
                }
                continue;
            }
            Event::Alias(anchor) => Item::Alias(anchor),
            Event::Scalar(value, style, anchor, tag) => {
                let wanted = wanted(style, tag.as_deref());
                let mut value = value.into_owned();
                let is_block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
                if is_block && is_cut && span.end.index() >= characters && value.ends_with('\n') {
                    // As for libyaml, the end of the text is no end of a line.
                    value.pop();
                }
                Item::Scalar(value, wanted, anchor)
            }
            Event::SequenceStart(anchor, _) => Item::Sequence(anchor),
            Event::MappingStart(anchor, _) => Item::Map(anchor),
            Event::SequenceEnd | Event::MappingEnd => Item::End,
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => continue,
        };
        match item {
            Item::Sequence(_) | Item::Map(_) => depth += 1,
            Item::End => depth -= 1,
            _ => {}
        }
        if depth > DEPTH_MAX {
            return refuse("too many nested collections");
        }
        if work.items.len() >= ITEMS_MAX {
            return refuse("too many values");
        }
        work.items.push(item);
    }
    Ok(())
}

fn wanted(style: ScalarStyle, tag: Option<&Tag>) -> Wanted {
    let named = tag.map(|tag| format!("{}{}", tag.handle, tag.suffix));
    match named.as_deref().and_then(|name| name.strip_prefix(TAG_PREFIX)) {
        Some("str") => Wanted::Text,
        Some("int") => Wanted::Int,
        Some("float") => Wanted::Float,
        Some("bool") => Wanted::Bool,
        Some("binary") => Wanted::Binary,
        _ if style == ScalarStyle::Plain => Wanted::Plain,
        _ => Wanted::Text,
    }
}

/// Makes values of items. The work lives as long as its userdata on the stack.
struct Builder {
    state: State,
    options: Options,
    work: *mut Work,
    at: usize,
    /// Where on the stack the values of the anchors are.
    anchors: c_int,
}

impl Builder {
    /// Pushes the next value; false, and nothing, at the end of a collection.
    unsafe fn value(&mut self, depth: u32) -> bool {
        // SAFETY: As for `stack`; the items are not changed while they are looked at.
        unsafe {
            let items = &(*self.work).items;
            let Some(item) = items.get(self.at) else {
                raise(self.state, b"yaml: the document ends too early");
            };
            self.at += 1;
            match item {
                Item::End => return false,
                Item::Alias(anchor) => {
                    lua_rawgeti_(self.state, self.anchors, *anchor as c_int);
                    if lua_type(self.state, -1) == LUA_TNIL {
                        raise(self.state, b"yaml: an alias of a value that is not there yet");
                    }
                }
                Item::Scalar(text, wanted, anchor) => {
                    self.scalar(text, *wanted);
                    self.note(*anchor);
                }
                Item::Sequence(anchor) => self.sequence(*anchor, depth),
                Item::Map(anchor) => self.map(*anchor, depth),
            }
            true
        }
    }

    /// The value at the top is what the anchor names.
    unsafe fn note(&self, anchor: usize) {
        if anchor != 0 {
            // SAFETY: As for `stack`.
            unsafe {
                lua_pushvalue(self.state, -1);
                lua_rawseti_(self.state, self.anchors, anchor as c_int);
            }
        }
    }

    unsafe fn begin(&self, anchor: usize, hint: &std::ffi::CStr) {
        // SAFETY: As for `stack`.
        unsafe {
            luaL_checkstack(self.state, SLOTS_OF_A_LEVEL, c"yaml.decode".as_ptr());
            lua_createtable(self.state, 0, 0);
            if self.options.decode_save_metatables {
                push_hint(self.state, hint);
                lua_setmetatable(self.state, -2);
            }
            self.note(anchor);
        }
    }

    unsafe fn sequence(&mut self, anchor: usize, depth: u32) {
        // SAFETY: As for `stack`.
        unsafe {
            self.begin(anchor, c"seq");
            let mut place = 1;
            while self.value(depth + 1) {
                lua_rawseti_(self.state, -2, place);
                place += 1;
            }
        }
    }

    unsafe fn map(&mut self, anchor: usize, depth: u32) {
        // SAFETY: As for `stack`; the parser gives each key a value.
        unsafe {
            self.begin(anchor, c"map");
            while self.value(depth + 1) {
                self.value(depth + 1);
                lua_rawset(self.state, -3);
            }
        }
    }

    unsafe fn scalar(&self, text: &str, wanted: Wanted) {
        let state = self.state;
        // SAFETY: As for `stack`.
        unsafe {
            match wanted {
                Wanted::Plain => self.plain(text),
                Wanted::Text => push_bytes(state, text.as_bytes()),
                Wanted::Int => lua_pushnumber(state, leading_integer(text) as f64),
                Wanted::Float => self.number(read_float(text).0),
                Wanted::Bool => lua_pushboolean(state, (boolean(text) == Some(true)).into()),
                Wanted::Binary => {
                    let decoded = own::<Vec<u8>>(state);
                    base64::decode(text.as_bytes(), &mut *decoded);
                    push_bytes(state, &*decoded);
                    lua_replace(state, -2);
                }
            }
        }
    }

    unsafe fn plain(&self, text: &str) {
        let state = self.state;
        // SAFETY: As for `stack`.
        unsafe {
            if text == "~" || text == "null" {
                push_null(state);
            } else if let Some(value) = boolean(text) {
                lua_pushboolean(state, value.into());
            } else if let Some((negative, absolute)) = integer(text) {
                if negative {
                    push_i64(state, 0_i64.checked_sub_unsigned(absolute).unwrap_or(i64::MIN));
                } else {
                    // The greatest is unsigned, as Tarantool has it.
                    match i64::try_from(absolute) {
                        Ok(value) if value != i64::MAX => push_i64(state, value),
                        _ => push_u64(state, absolute),
                    }
                }
            } else {
                match read_float(text) {
                    (value, length) if length == text.len() && length > 0 => self.number(value),
                    _ => push_bytes(state, text.as_bytes()),
                }
            }
        }
    }

    unsafe fn number(&self, value: f64) {
        // SAFETY: As for `stack`.
        unsafe {
            if !value.is_finite() && !self.options.decode_invalid_numbers {
                raise(self.state, b"number must not be NaN or Inf");
            }
            lua_pushnumber(self.state, value);
        }
    }
}

fn boolean(text: &str) -> Option<bool> {
    match text {
        "true" | "yes" => Some(true),
        "false" | "no" => Some(false),
        _ => None,
    }
}

/// A whole text of digits with a sign in front, at most 2^64 - 1 from zero.
fn integer(text: &str) -> Option<(bool, u64)> {
    let negative = text.starts_with('-');
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some((negative, accumulate(digits)))
}

fn accumulate(digits: &str) -> u64 {
    digits.bytes().take_while(u8::is_ascii_digit).fold(0_u64, |value, digit| {
        value.saturating_mul(10).saturating_add(u64::from(digit - b'0'))
    })
}

/// The integer that a text begins with; 0 if with none.
fn leading_integer(text: &str) -> i64 {
    let text = text.trim_start();
    let absolute = accumulate(text.strip_prefix(['-', '+']).unwrap_or(text));
    if text.starts_with('-') {
        0_i64.checked_sub_unsigned(absolute).unwrap_or(i64::MIN)
    } else {
        i64::try_from(absolute).unwrap_or(i64::MAX)
    }
}

/// The number that C's `strtod` reads from the text, and how many bytes of it.
fn read_float(text: &str) -> (f64, usize) {
    /// The longest text that is looked at: no number of a program is as long.
    const BYTES_MAX: usize = 511;
    let mut room: [c_char; BYTES_MAX + 1] = [0; BYTES_MAX + 1];
    if text.len() > BYTES_MAX {
        return (0.0, 0);
    }
    for (place, byte) in room.iter_mut().zip(text.bytes()) {
        *place = byte as c_char;
    }
    let mut end = std::ptr::null_mut();
    // SAFETY: The text ends with a zero, and the end is within the room.
    unsafe {
        let value = libc::strtod(room.as_ptr(), &raw mut end);
        (value, end.cast_const().offset_from(room.as_ptr()) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIECES: [&str; 44] = [
        "a",
        "b",
        ": ",
        "- ",
        "\n",
        " ",
        "  ",
        "|",
        "> ",
        "|2\n",
        "|-\n",
        "'",
        "\"",
        "\\",
        "\\u12",
        "\\x",
        "&a ",
        "*a",
        "! ",
        "!!str ",
        "!<",
        "%TAG ! x\n",
        "%YAML 1.1\n",
        "---\n",
        "...\n",
        "? ",
        "[",
        "]",
        "{",
        "}",
        ",",
        "#c",
        "\t",
        "<<: ",
        "~",
        "1",
        "@",
        "`",
        "--- ",
        "-",
        "?",
        ":",
        "|\n a\n b\n",
        "\u{85}",
    ];

    /// Texts of pieces that mean something to YAML, put together by chance.
    #[test]
    fn garbled_texts_are_values_or_errors() {
        let mut seed = 88_172_645_463_325_252_u64;
        let mut next = move || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed as usize
        };
        let (mut good, mut bad) = (0, 0);
        for _ in 0..30_000 {
            let count = 1 + next() % 14;
            let text: String = (0..count).map(|_| PIECES[next() % PIECES.len()]).collect();
            let mut work = Work::default();
            parse(text.as_bytes(), &mut work);
            if work.error.is_empty() {
                good += 1;
                let opened = work
                    .items
                    .iter()
                    .filter(|item| matches!(item, Item::Sequence(_) | Item::Map(_)));
                let closed = work.items.iter().filter(|item| matches!(item, Item::End));
                assert_eq!(opened.count(), closed.count(), "{text:?}");
            } else {
                bad += 1;
            }
        }
        assert!(good > 1_000 && bad > 1_000, "{good} texts were good, {bad} bad");
    }

    #[test]
    fn depth_and_documents_are_bounded() {
        let mut work = Work::default();
        parse("- ".repeat(100_000).as_bytes(), &mut work);
        assert!(work.error.starts_with("too many nested collections"), "{}", work.error);
        // The parser's own limit.
        let mut work = Work::default();
        parse("[".repeat(100_000).as_bytes(), &mut work);
        assert!(work.error.starts_with("recursion limit exceeded"), "{}", work.error);
        let mut work = Work::default();
        parse("--- 1\n".repeat(5_000).as_bytes(), &mut work);
        assert!(work.error.starts_with("too many documents"), "{}", work.error);
    }
}
