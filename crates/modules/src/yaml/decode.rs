//! YAML to Lua values: a text becomes events, of which the values are made afterwards.

use crate::cdata::{push_i64, push_null, push_u64};
use crate::serializer::{DEPTH_MAX, Options, own_options, push_hint};
use crate::stack::{State, check_bytes, own, push_bytes, raise};
use base64::Engine as _;
use libyaml_safer::{Error, Event, EventData, Parser, ScalarStyle};
use mlua::ffi::*;
use std::ffi::c_int;
use std::fmt::Write as _;

const SLOTS_OF_A_LEVEL: c_int = 8;

/// What a text becomes.
#[derive(Default)]
struct Work {
    events: Vec<Event>,
    bytes: Vec<u8>,
    error: String,
}

/// `yaml.decode(text [, {tag_only = true}])`: a value for each document.
pub(super) unsafe extern "C-unwind" fn decode(state: State) -> c_int {
    // SAFETY: As for `stack`; what owns memory belongs to the userdata.
    unsafe {
        let given = lua_gettop(state);
        if given == 0
            || given > 2
            || lua_type(state, 1) != LUA_TSTRING
            || given == 2 && lua_type(state, 2) != LUA_TTABLE
        {
            raise(state, b"Usage: yaml.decode(document, [{tag_only = boolean}])");
        }
        let mut tag_only = false;
        if given == 2 {
            lua_getfield_(state, 2, c"tag_only".as_ptr());
            tag_only = lua_toboolean(state, -1) != 0;
        }
        let text = check_bytes(state, 1);
        let work = own::<Work>(state);
        let outcome = parse(text, &mut *work);
        if tag_only {
            return push_tag(state, &*work);
        }
        if outcome.is_err() {
            push_bytes(state, (*work).error.as_bytes());
            lua_error(state);
        }
        lua_createtable(state, 0, 0);
        let anchors = lua_gettop(state);
        let mut maker = Maker { state, options: own_options(state), work, at: 0, anchors };
        let mut pushed = 0;
        while maker.document() {
            pushed += 1;
        }
        pushed
    }
}

/// Takes the events of a text, or the text of the error. Touches no state.
fn parse(text: &[u8], work: &mut Work) -> Result<(), ()> {
    // The scanner panics at a block scalar that the text's end cuts off without a line break.
    work.bytes.extend_from_slice(text);
    work.bytes.push(b'\n');
    let mut rest = work.bytes.as_slice();
    let mut parser = Parser::new();
    parser.set_input_string(&mut rest);
    let (mut documents, mut depth) = (0, 0_u32);
    loop {
        let event = match parser.parse() {
            Ok(event) => event,
            Err(error) => {
                describe(&error, documents, &mut work.error);
                return Err(());
            }
        };
        match event.data {
            EventData::StreamEnd => return Ok(()),
            EventData::DocumentStart { .. } => documents += 1,
            EventData::SequenceStart { .. } | EventData::MappingStart { .. } => depth += 1,
            EventData::SequenceEnd | EventData::MappingEnd => depth -= 1,
            _ => {}
        }
        if depth > DEPTH_MAX {
            work.error.push_str("Found too many nested data structures");
            return Err(());
        }
        work.events.push(event);
    }
}

fn describe(error: &Error, documents: usize, out: &mut String) {
    let mark = error.problem_mark().unwrap_or_default();
    // A `String` takes all that is written.
    let _ = write!(out, "{} at document: {documents}", error.problem());
    if mark.line > 0 || mark.column > 0 {
        let _ = write!(out, ", line: {}, column: {}", mark.line + 1, mark.column + 1);
    }
    out.push('\n');
    if let Some(context) = error.context() {
        let mark = error.context_mark().unwrap_or_default();
        let _ = writeln!(out, "{context} at line: {}, column: {}", mark.line + 1, mark.column + 1);
    }
}

/// Pushes the handle and the prefix of the first document's first tag; two nils without one.
unsafe fn push_tag(state: State, work: &Work) -> c_int {
    // SAFETY: As for `stack`.
    unsafe {
        for event in &work.events {
            if let EventData::DocumentStart { tag_directives, .. } = &event.data
                && let Some(tag) = tag_directives.first()
            {
                push_bytes(state, tag.handle.as_bytes());
                push_bytes(state, tag.prefix.as_bytes());
                return 2;
            }
        }
        lua_pushnil(state);
        1
    }
}

struct Maker {
    state: State,
    options: Options,
    work: *mut Work,
    at: usize,
    anchors: c_int,
}

impl Maker {
    fn next<'a>(&mut self) -> Option<&'a EventData> {
        // SAFETY: The events live as long as the userdata on the stack, and none is added any more.
        let events = unsafe { &(*self.work).events };
        let event = events.get(self.at)?;
        self.at += 1;
        Some(&event.data)
    }

    /// Pushes the value of the next document, if there is one.
    unsafe fn document(&mut self) -> bool {
        while let Some(event) = self.next() {
            if matches!(event, EventData::DocumentStart { .. }) {
                // SAFETY: As for `stack`.
                unsafe {
                    lua_createtable(self.state, 0, 0);
                    lua_replace(self.state, self.anchors);
                    luaL_checkstack(self.state, SLOTS_OF_A_LEVEL, c"yaml.decode".as_ptr());
                    if let Some(first) = self.next() {
                        self.value(first);
                        return true;
                    }
                }
            }
        }
        false
    }

    unsafe fn value(&mut self, event: &EventData) {
        let state = self.state;
        // SAFETY: As for `stack`.
        unsafe {
            match event {
                EventData::Scalar { value, tag, style, .. } => {
                    self.scalar(value, tag.as_deref(), *style);
                }
                EventData::Alias { anchor } => {
                    push_bytes(state, anchor.as_bytes());
                    lua_rawget_(state, self.anchors);
                    if lua_type(state, -1) == LUA_TNIL {
                        push_bytes(state, b"invalid reference: ");
                        push_bytes(state, anchor.as_bytes());
                        lua_concat(state, 2);
                        lua_error(state);
                    }
                }
                EventData::SequenceStart { anchor, .. } => {
                    self.table(anchor.as_deref());
                    let mut place = 0;
                    while let Some(event) = self.next() {
                        if matches!(event, EventData::SequenceEnd) {
                            break;
                        }
                        place += 1;
                        self.value(event);
                        lua_rawseti_(state, -2, place);
                    }
                    self.finish(true);
                }
                EventData::MappingStart { anchor, .. } => {
                    self.table(anchor.as_deref());
                    while let Some(event) = self.next() {
                        if matches!(event, EventData::MappingEnd) {
                            break;
                        }
                        self.value(event);
                        self.check_key();
                        if let Some(event) = self.next() {
                            self.value(event);
                        }
                        lua_rawset(state, -3);
                    }
                    self.finish(false);
                }
                _ => lua_pushnil(state),
            }
        }
    }

    /// A key that no table can have is an error.
    unsafe fn check_key(&self) {
        // SAFETY: As for `stack`.
        unsafe {
            if lua_type(self.state, -1) == LUA_TNUMBER && lua_tonumber(self.state, -1).is_nan() {
                raise(self.state, b"table index is NaN");
            }
        }
    }

    unsafe fn table(&mut self, anchor: Option<&str>) {
        let state = self.state;
        // SAFETY: As for `stack`.
        unsafe {
            luaL_checkstack(state, SLOTS_OF_A_LEVEL, c"yaml.decode".as_ptr());
            lua_createtable(state, 0, 0);
            if let Some(anchor) = anchor {
                push_bytes(state, anchor.as_bytes());
                lua_pushvalue(state, -2);
                lua_rawset(state, self.anchors);
            }
        }
    }

    unsafe fn finish(&self, is_array: bool) {
        if self.options.decode_save_metatables {
            // SAFETY: As for `stack`.
            unsafe {
                push_hint(self.state, if is_array { c"seq" } else { c"map" });
                lua_setmetatable(self.state, -2);
            }
        }
    }

    unsafe fn scalar(&mut self, value: &str, tag: Option<&str>, style: ScalarStyle) {
        let state = self.state;
        let tag = tag.and_then(|tag| tag.strip_prefix("tag:yaml.org,2002:"));
        // SAFETY: As for `stack`; the bytes belong to the userdata.
        unsafe {
            match tag {
                Some("str") => return push_bytes(state, value.as_bytes()),
                Some("binary") => {
                    let out = &mut (*self.work).bytes;
                    out.clear();
                    let text: Vec<u8> =
                        value.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
                    let good =
                        base64::engine::general_purpose::STANDARD.decode_vec(&text, out).is_ok();
                    drop(text);
                    if !good {
                        out.clear();
                    }
                    return push_bytes(state, out);
                }
                _ => {}
            }
            let plain = style == ScalarStyle::Plain;
            let number = matches!(tag, Some("int" | "float"));
            match value {
                "" => push_bytes(state, b""),
                "~" | "null" if plain => push_null(state),
                "true" | "yes" if plain || tag == Some("bool") => lua_pushboolean(state, 1),
                "false" | "no" if plain || tag == Some("bool") => lua_pushboolean(state, 0),
                _ if plain || number => push_number_or_text(state, value),
                _ => push_bytes(state, value.as_bytes()),
            }
        }
    }
}

/// A text that is a number becomes one; whole ones keep 64 bits.
unsafe fn push_number_or_text(state: State, value: &str) {
    // SAFETY: As for `stack`.
    unsafe {
        if let Ok(number) = value.parse::<i64>() {
            return push_i64(state, number);
        }
        if let Ok(number) = value.parse::<u64>() {
            return push_u64(state, number);
        }
        push_bytes(state, value.as_bytes());
        if lua_isnumber(state, -1) != 0 && !value.contains(['b', 'B', 'u', 'U']) {
            let number = lua_tonumber(state, -1);
            lua_settop(state, -2);
            lua_pushnumber(state, number);
        }
    }
}
