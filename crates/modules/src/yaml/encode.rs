//! Lua values to YAML: the walk makes events, of which a document is written afterwards.

use crate::cdata;
use crate::numbers::write_double;
use crate::serializer::{DEPTH_MAX, Field, Looker, own_options};
use crate::stack::{State, check_bytes, own, push_bytes, raise};
use base64::Engine as _;
use libyaml_safer::{Emitter, Encoding, Event, MappingStyle, ScalarStyle, SequenceStyle};
use mlua::ffi::*;
use std::ffi::{c_int, c_void};

const SLOTS_OF_A_LEVEL: c_int = 10;

/// Most events of a document.
const EVENTS_MAX: usize = 1 << 24;

const USAGE: &[u8] = b"Usage: encode(object, {tag_prefix = <string>, tag_handle = <string>})";

const TAG_BINARY: &str = "tag:yaml.org,2002:binary";

/// What a document becomes.
#[derive(Default)]
struct Work {
    events: Vec<Event>,
    directive: Vec<u8>,
    out: Vec<u8>,
    anchors: usize,
    failed: bool,
}

/// `yaml.encode(value [, {tag_prefix =, tag_handle =}])`.
pub(super) unsafe extern "C-unwind" fn encode(state: State) -> c_int {
    // SAFETY: As for `stack`; what owns memory belongs to the userdata.
    unsafe {
        let given = lua_gettop(state);
        if given == 0
            || given > 2
            || given == 2 && !matches!(lua_type(state, 2), LUA_TTABLE | LUA_TNIL)
        {
            raise_usage(state);
        }
        let options = own_options(state);
        let work = own::<Work>(state);
        let work_index = lua_gettop(state);
        if given == 2
            && let Err(text) = read_tag(state, &mut *work)
        {
            lua_pushnil(state);
            push_bytes(state, text);
            return 2;
        }
        // Tables by how often they are met: false once, true more often, then their number.
        lua_createtable(state, 0, 0);
        let seen = lua_gettop(state);
        lua_pushvalue(state, 1);
        let mut walker =
            Walker { looker: Looker { state, types: cdata::types(state), options }, work, seen };
        walker.find_shared(0);
        lua_settop(state, seen);
        lua_pushvalue(state, 1);
        walker.value(false, 0);
        finish(&mut *work);
        if (*work).failed {
            raise(state, b"yaml: the document cannot be written");
        }
        lua_settop(state, work_index);
        push_bytes(state, &(*work).out);
        drop(std::mem::take(&mut *work));
        1
    }
}

/// Notes the tag of the options, or says why it is none.
unsafe fn read_tag(state: State, work: &mut Work) -> Result<(), &'static [u8]> {
    // SAFETY: As for `stack`.
    unsafe {
        if lua_type(state, 2) == LUA_TNIL {
            return Ok(());
        }
        lua_getfield_(state, 2, c"tag_prefix".as_ptr());
        lua_getfield_(state, 2, c"tag_handle".as_ptr());
        if lua_type(state, -1) == LUA_TNIL && lua_type(state, -2) == LUA_TNIL {
            return Ok(());
        }
        if lua_type(state, -1) != LUA_TSTRING || lua_type(state, -2) != LUA_TSTRING {
            raise_usage(state);
        }
        let (handle, prefix) = (check_bytes(state, -1), check_bytes(state, -2));
        if !handle.starts_with(b"!") {
            return Err(b"tag handle must start with '!'");
        }
        if !handle.ends_with(b"!") {
            return Err(b"tag handle must end with '!'");
        }
        let good = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-' || *byte == b'_';
        if handle.len() > 2 && !handle[1..handle.len() - 1].iter().all(good) {
            return Err(b"tag handle must contain alphanumerical characters only");
        }
        if prefix.is_empty() {
            return Err(b"tag prefix must not be empty");
        }
        if !prefix.iter().all(u8::is_ascii_graphic) {
            return Err(b"tag prefix must not have blanks or letters beyond ASCII");
        }
        work.directive.extend_from_slice(b"%TAG ");
        work.directive.extend_from_slice(handle);
        work.directive.push(b' ');
        work.directive.extend_from_slice(prefix);
        work.directive.push(b'\n');
        Ok(())
    }
}

/// Raises how it is called, without a place as the real one does.
unsafe fn raise_usage(state: State) -> ! {
    // SAFETY: As for `stack`.
    unsafe {
        push_bytes(state, USAGE);
        lua_error(state)
    }
}

/// Writes the events.
fn finish(work: &mut Work) {
    let Work { events, out, failed, directive, .. } = work;
    let mut emitter = Emitter::new();
    emitter.set_output_string(out);
    emitter.set_unicode(true);
    let head = [Event::stream_start(Encoding::Utf8), Event::document_start(None, &[], false)];
    let tail = [Event::document_end(false), Event::stream_end()];
    for event in head.into_iter().chain(events.drain(..)).chain(tail) {
        if emitter.emit(event).is_err() {
            *failed = true;
            return;
        }
    }
    *failed = emitter.flush().is_err();
    drop(emitter);
    out.splice(..0, directive.drain(..));
}

struct Walker<'a> {
    looker: Looker<'a>,
    work: *mut Work,
    seen: c_int,
}

impl Walker<'_> {
    fn put(&mut self, event: Event) {
        // SAFETY: The work lives as long as its userdata on the stack, and is used here alone.
        let events = unsafe { &mut (*self.work).events };
        events.push(event);
    }

    /// Raises an error where there are too many events, or the nesting is too deep.
    unsafe fn check(&self, depth: u32) {
        let state = self.looker.state;
        // SAFETY: As for `stack`; nothing here has to be dropped.
        unsafe {
            if depth >= DEPTH_MAX {
                raise(state, b"Too high nest level");
            }
            if (*self.work).events.len() > EVENTS_MAX {
                raise(state, b"not enough memory");
            }
            luaL_checkstack(state, SLOTS_OF_A_LEVEL, c"yaml.encode".as_ptr());
        }
    }

    /// Notes the tables that are met, from the value at the top on.
    unsafe fn find_shared(&mut self, depth: u32) {
        let state = self.looker.state;
        // SAFETY: As for `stack`.
        unsafe {
            let index = lua_gettop(state);
            if lua_type(state, index) != LUA_TTABLE {
                return;
            }
            self.check(depth);
            self.push_seen(index);
            let met = lua_type(state, -1) != LUA_TNIL;
            lua_settop(state, index);
            lua_pushlightuserdata(state, lua_topointer(state, index).cast_mut());
            lua_pushboolean(state, met.into());
            lua_rawset(state, self.seen);
            if met {
                return;
            }
            lua_pushnil(state);
            while lua_next(state, index) != 0 {
                self.find_shared(depth + 1);
                lua_settop(state, index + 1);
            }
        }
    }

    unsafe fn push_seen(&self, index: c_int) {
        let state = self.looker.state;
        // SAFETY: As for `stack`.
        unsafe {
            let pointer = lua_topointer(state, index).cast_mut().cast::<c_void>();
            lua_pushlightuserdata(state, pointer);
            lua_rawget_(state, self.seen);
        }
    }

    /// The number of a table that is met more than once; `true` with it if it was written already.
    unsafe fn anchor(&mut self, index: c_int) -> Option<(usize, bool)> {
        let state = self.looker.state;
        // SAFETY: As for `stack`.
        unsafe {
            if lua_type(state, index) != LUA_TTABLE {
                return None;
            }
            self.push_seen(index);
            let (kind, number) = (lua_type(state, -1), lua_tonumber(state, -1));
            let shared = kind == LUA_TNUMBER || lua_toboolean(state, -1) != 0;
            lua_settop(state, -2);
            if kind == LUA_TNUMBER {
                return Some((number as usize, true));
            } else if !shared {
                return None;
            }
            let number = (*self.work).anchors;
            (*self.work).anchors += 1;
            lua_pushlightuserdata(state, lua_topointer(state, index).cast_mut());
            lua_pushnumber(state, number as f64);
            lua_rawset(state, self.seen);
            Some((number, false))
        }
    }

    /// Puts the events of the value at the top. `short`: within something written in a line.
    unsafe fn value(&mut self, short: bool, depth: u32) {
        let state = self.looker.state;
        // SAFETY: As for `stack`.
        unsafe {
            self.check(depth);
            let index = lua_gettop(state);
            let anchor = match self.anchor(index) {
                Some((number, true)) => {
                    self.put(Event::alias(&number.to_string()));
                    return;
                }
                anchor => anchor.map(|(number, _)| number),
            };
            match self.looker.look(index) {
                Field::Array { length, short: hint } => {
                    self.array(index, length, short || hint, anchor, depth);
                }
                Field::Map { short: hint } => self.map(index, short || hint, anchor, depth),
                field => self.scalar(index, field, short),
            }
        }
    }

    unsafe fn array(
        &mut self,
        index: c_int,
        length: usize,
        short: bool,
        anchor: Option<usize>,
        depth: u32,
    ) {
        let state = self.looker.state;
        let style = if short { SequenceStyle::Flow } else { SequenceStyle::Any };
        self.put(with_anchor(anchor, |anchor| Event::sequence_start(anchor, None, true, style)));
        for place in 1..=length {
            // SAFETY: As for `stack`.
            unsafe {
                lua_rawgeti_(state, index, place as c_int);
                self.value(short, depth + 1);
                lua_settop(state, index);
            }
        }
        self.put(Event::sequence_end());
    }

    unsafe fn map(&mut self, index: c_int, short: bool, anchor: Option<usize>, depth: u32) {
        let state = self.looker.state;
        let style = if short { MappingStyle::Flow } else { MappingStyle::Any };
        self.put(with_anchor(anchor, |anchor| Event::mapping_start(anchor, None, true, style)));
        // SAFETY: As for `stack`; the key is copied before it is looked at.
        unsafe {
            lua_pushnil(state);
            while lua_next(state, index) != 0 {
                lua_pushvalue(state, -2);
                self.value(short, depth + 1);
                lua_settop(state, index + 2);
                self.value(short, depth + 1);
                lua_settop(state, index + 1);
            }
        }
        self.put(Event::mapping_end());
    }

    unsafe fn scalar(&mut self, index: c_int, field: Field<'_>, short: bool) {
        let state = self.looker.state;
        if let Field::Text(text) = field {
            // SAFETY: As for `stack`; the text is on the stack.
            let event = unsafe { text_event(state, index, text, short) };
            self.put(event);
            return;
        }
        let digits = self.looker.options.encode_number_precision;
        // SAFETY: As for `stack`; the value has the type that was found.
        let event = unsafe { plain_event(state, index, field, digits) };
        self.put(event);
    }
}

fn with_anchor(anchor: Option<usize>, make: impl FnOnce(Option<&str>) -> Event) -> Event {
    match anchor {
        Some(number) => make(Some(&number.to_string())),
        None => make(None),
    }
}

/// The event of a value that is no text and no table. Raises no error.
unsafe fn plain_event(state: State, index: c_int, field: Field<'_>, digits: i32) -> Event {
    let text = match field {
        Field::Bool(value) => value.to_string(),
        Field::Signed(value) => value.to_string(),
        Field::Unsigned(value) => value.to_string(),
        Field::Double(value) if value.is_nan() && value.is_sign_negative() => "-nan".to_owned(),
        Field::Double(value) => {
            let mut room = [0; 64];
            let length = write_double(value, digits, &mut room);
            String::from_utf8_lossy(&room[..length]).into_owned()
        }
        // SAFETY: As promised.
        Field::Uuid => unsafe { crate::uuid::at(state, index) }.to_string(),
        // SAFETY: As promised.
        Field::Decimal => unsafe { crate::decimal::at(state, index) }.to_string(),
        // SAFETY: As promised.
        Field::Datetime => unsafe { crate::datetime::at(state, index) }.to_string(),
        // SAFETY: As promised.
        Field::Interval => unsafe { crate::datetime::interval_at(state, index) }.to_string(),
        _ => "null".to_owned(),
    };
    Event::scalar(None, None, &text, true, true, ScalarStyle::Plain)
}

/// The event of a text. Raises no error but for want of memory.
unsafe fn text_event(state: State, index: c_int, text: &[u8], short: bool) -> Event {
    // SAFETY: As for `stack`; a text stays one here.
    let number_like = unsafe { lua_isnumber(state, index) != 0 };
    let is_shown = |character: char| {
        !matches!(character, '\u{80}'..='\u{9f}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
    };
    let plain = std::str::from_utf8(text).ok().filter(|plain| plain.chars().all(is_shown));
    let Some(plain) = plain else {
        let encoded = base64::engine::general_purpose::STANDARD.encode(text);
        return Event::scalar(None, Some(TAG_BINARY), &encoded, false, false, ScalarStyle::Any);
    };
    let word_like = matches!(plain, "~" | "null" | "true" | "false" | "yes" | "no");
    let style = if short || number_like || word_like {
        ScalarStyle::SingleQuoted
    } else if plain.contains("\n\n") {
        ScalarStyle::Literal
    } else {
        ScalarStyle::Any
    };
    Event::scalar(None, None, plain, true, true, style)
}
