//! What the formats share: options, and which of a format's types a Lua value is.
//!
//! The rules are those of Tarantool's serializers: a table is an array if its keys are whole
//! numbers from 1 on; `__serialize` of a metatable says otherwise, or gives another value.

use crate::cdata::{self, Integer, LUA_TCDATA, Type, Types, whole};
use crate::stack::{Function, State, bytes, never, own, raise};
use mlua::ffi::*;
use std::ffi::{CStr, c_int, c_void};

/// However deep the options allow it, values nest no deeper than this: encoders and decoders call
/// themselves, and a fiber's stack has 512 KiB.
pub(crate) const DEPTH_MAX: u32 = 512;

/// A `__serialize` may answer a value that has a `__serialize` too, at most so often.
const SERIALIZE_CALLS_MAX: usize = 128;

/// The options of a serializer, with Tarantool's names and defaults.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    pub(crate) encode_sparse_convert: bool,
    pub(crate) encode_sparse_ratio: i32,
    pub(crate) encode_sparse_safe: i32,
    pub(crate) encode_max_depth: i32,
    pub(crate) encode_deep_as_nil: bool,
    pub(crate) encode_invalid_numbers: bool,
    pub(crate) encode_number_precision: i32,
    pub(crate) encode_load_metatables: bool,
    pub(crate) encode_use_tostring: bool,
    pub(crate) encode_invalid_as_nil: bool,
    pub(crate) encode_error_as_ext: bool,
    pub(crate) decode_invalid_numbers: bool,
    pub(crate) decode_save_metatables: bool,
    pub(crate) decode_max_depth: i32,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            encode_sparse_convert: true,
            encode_sparse_ratio: 2,
            encode_sparse_safe: 10,
            encode_max_depth: 128,
            encode_deep_as_nil: false,
            encode_invalid_numbers: true,
            encode_number_precision: 14,
            encode_load_metatables: true,
            encode_use_tostring: false,
            encode_invalid_as_nil: false,
            encode_error_as_ext: true,
            decode_invalid_numbers: true,
            decode_save_metatables: true,
            decode_max_depth: 128,
        }
    }
}

const ERROR_AS_EXT: &CStr = c"encode_error_as_ext";

/// A place in [`Options`].
enum Place<'a> {
    Flag(&'a mut bool),
    Number(&'a mut i32),
}

impl Options {
    fn places(&mut self) -> [(&'static CStr, Place<'_>); 14] {
        use Place::{Flag, Number};
        [
            (c"encode_sparse_convert", Flag(&mut self.encode_sparse_convert)),
            (c"encode_sparse_ratio", Number(&mut self.encode_sparse_ratio)),
            (c"encode_sparse_safe", Number(&mut self.encode_sparse_safe)),
            (c"encode_max_depth", Number(&mut self.encode_max_depth)),
            (c"encode_deep_as_nil", Flag(&mut self.encode_deep_as_nil)),
            (c"encode_invalid_numbers", Flag(&mut self.encode_invalid_numbers)),
            (c"encode_number_precision", Number(&mut self.encode_number_precision)),
            (c"encode_load_metatables", Flag(&mut self.encode_load_metatables)),
            (c"encode_use_tostring", Flag(&mut self.encode_use_tostring)),
            (c"encode_invalid_as_nil", Flag(&mut self.encode_invalid_as_nil)),
            (ERROR_AS_EXT, Flag(&mut self.encode_error_as_ext)),
            (c"decode_invalid_numbers", Flag(&mut self.decode_invalid_numbers)),
            (c"decode_save_metatables", Flag(&mut self.decode_save_metatables)),
            (c"decode_max_depth", Number(&mut self.decode_max_depth)),
        ]
    }

    /// Takes over the fields of the table at `index` that are options.
    pub(crate) unsafe fn read(&mut self, state: State, index: c_int) {
        for (name, place) in self.places() {
            // SAFETY: As for `stack`; the places own nothing.
            unsafe {
                lua_getfield_(state, index, name.as_ptr());
                if lua_type(state, -1) != LUA_TNIL {
                    match place {
                        Place::Flag(flag) => *flag = lua_toboolean(state, -1) != 0,
                        Place::Number(number) => *number = lua_tonumber(state, -1) as i32,
                    }
                }
                lua_settop(state, -2);
            }
        }
    }

    /// Writes the options to the fields of the table at the top. `encode_error_as_ext`, which is newer
    /// than the others, is shown only where it is off.
    unsafe fn write(mut self, state: State) {
        for (name, place) in self.places() {
            // SAFETY: As for `stack`.
            unsafe {
                match place {
                    Place::Flag(flag) if *flag && name == ERROR_AS_EXT => lua_pushnil(state),
                    Place::Flag(flag) => lua_pushboolean(state, (*flag).into()),
                    Place::Number(number) => lua_pushnumber(state, f64::from(*number)),
                }
                lua_setfield(state, -2, name.as_ptr());
            }
        }
    }
}

/// The options that belong to the running function, its first upvalue.
pub(crate) unsafe fn own_options(state: State) -> Options {
    // SAFETY: Functions that `push_serializer` made have them there.
    unsafe { *lua_touserdata(state, lua_upvalueindex(1)).cast::<Options>() }
}

/// A format: what `require` answers, and what `new` makes once more.
pub(crate) struct Format {
    /// Functions that find their options by [`own_options`].
    pub(crate) functions: &'static [(&'static CStr, Function)],
    /// `new` of the module.
    pub(crate) new: Function,
}

/// Pushes a module with the format's functions, options of its own, `cfg`, `new`, `NULL` and the
/// metatables for arrays and maps.
pub(crate) unsafe fn push_serializer(state: State, format: &Format) {
    // SAFETY: As for `stack`; `Options` own no memory.
    unsafe {
        lua_createtable(state, 0, 8);
        own::<Options>(state);
        for (name, function) in format.functions {
            lua_pushvalue(state, -1);
            lua_pushcclosure(state, *function, 1);
            lua_setfield(state, -3, name.as_ptr());
        }
        lua_createtable(state, 0, 16);
        Options::default().write(state);
        lua_createtable(state, 0, 1);
        lua_pushvalue(state, -3);
        lua_pushcclosure(state, configure, 1);
        lua_setfield(state, -2, c"__call".as_ptr());
        lua_setmetatable(state, -2);
        lua_setfield(state, -3, c"cfg".as_ptr());
        lua_settop(state, -2);
        lua_pushcclosure(state, format.new, 0);
        lua_setfield(state, -2, c"new".as_ptr());
        cdata::push_null(state);
        lua_setfield(state, -2, c"NULL".as_ptr());
        push_hint(state, c"seq");
        lua_setfield(state, -2, c"array_mt".as_ptr());
        push_hint(state, c"map");
        lua_setfield(state, -2, c"map_mt".as_ptr());
    }
}

/// `cfg{...}`: changes options.
unsafe extern "C-unwind" fn configure(state: State) -> c_int {
    // SAFETY: The upvalue is `Options`, which one state's functions share.
    unsafe {
        luaL_checktype(state, 1, LUA_TTABLE);
        luaL_checktype(state, 2, LUA_TTABLE);
        lua_settop(state, 2);
        let options = lua_touserdata(state, lua_upvalueindex(1)).cast::<Options>();
        let mut changed = *options;
        changed.read(state, 2);
        *options = changed;
        lua_pushvalue(state, 1);
        changed.write(state);
        0
    }
}

static HINT_KEYS: [u8; 2] = [0; 2];

/// Pushes the metatable with `__serialize = "seq"` or `"map"`, of which a state has one each.
/// As Tarantool's, its tables drop the metatable when a key of the other kind comes.
pub(crate) unsafe fn push_hint(state: State, hint: &CStr) {
    let is_map = usize::from(hint == c"map");
    let key = (&raw const HINT_KEYS[is_map]).cast_mut().cast::<c_void>();
    // SAFETY: As for `stack`.
    unsafe {
        lua_pushlightuserdata(state, key);
        lua_rawget_(state, LUA_REGISTRYINDEX);
        if lua_type(state, -1) == LUA_TTABLE {
            return;
        }
        lua_settop(state, -2);
        lua_createtable(state, 0, 2);
        lua_pushstring_(state, hint.as_ptr());
        lua_setfield(state, -2, c"__serialize".as_ptr());
        if is_map == 0 {
            lua_pushcclosure(state, forget_hint, 0);
            lua_setfield(state, -2, c"__newindex".as_ptr());
        }
        lua_pushlightuserdata(state, key);
        lua_pushvalue(state, -2);
        lua_rawset(state, LUA_REGISTRYINDEX);
    }
}

/// `__newindex` of the metatable of arrays: a table with a string for a key is none.
unsafe extern "C-unwind" fn forget_hint(state: State) -> c_int {
    // SAFETY: Lua calls it with a table, a key and a value.
    unsafe {
        if lua_type(state, 2) == LUA_TSTRING && lua_getmetatable(state, 1) != 0 {
            lua_settop(state, 3);
            lua_pushnil(state);
            lua_setmetatable(state, 1);
        }
        lua_settop(state, 3);
        lua_rawset(state, 1);
        0
    }
}

/// A Lua value as a serializer sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Field<'a> {
    Nil,
    Bool(bool),
    Signed(i64),
    Unsigned(u64),
    Double(f64),
    Text(&'a [u8]),
    /// So many elements. `short` if the hint was `seq`, which YAML writes in a line.
    Array {
        length: usize,
        short: bool,
    },
    Map {
        short: bool,
    },
    Decimal,
    Uuid,
    Datetime,
    Interval,
}

/// How values are looked at.
pub(crate) struct Looker<'a> {
    pub(crate) state: State,
    pub(crate) types: &'a Types,
    pub(crate) options: Options,
}

impl Looker<'_> {
    /// What the value at `index` (counted from below) is. What `__serialize` or `tostring` answers
    /// takes the value's place.
    pub(crate) unsafe fn look<'v>(&self, index: c_int) -> Field<'v> {
        for _ in 0..SERIALIZE_CALLS_MAX {
            // SAFETY: As for `stack`.
            if let Some(field) = unsafe { self.look_once(index) } {
                return field;
            }
        }
        // SAFETY: As for `stack`; nothing here has to be dropped.
        unsafe {
            raise(self.state, b"__serialize answers a value that has a __serialize too often");
        }
    }

    /// `None` if the value was replaced.
    unsafe fn look_once<'v>(&self, index: c_int) -> Option<Field<'v>> {
        let state = self.state;
        // SAFETY: As for `stack`; payloads have the types that were found.
        unsafe {
            match lua_type(state, index) {
                LUA_TNIL => Some(Field::Nil),
                LUA_TBOOLEAN => Some(Field::Bool(lua_toboolean(state, index) != 0)),
                LUA_TNUMBER => Some(self.number(lua_tonumber(state, index))),
                LUA_TSTRING => bytes(state, index).map(Field::Text),
                LUA_TTABLE => self.table(index),
                LUA_TLIGHTUSERDATA if lua_touserdata(state, index).is_null() => Some(Field::Nil),
                LUA_TCDATA => match self.cdata(index) {
                    Some(field) => Some(field),
                    None => self.convert(index),
                },
                _ => self.convert(index),
            }
        }
    }

    fn number<'v>(&self, number: f64) -> Field<'v> {
        match whole(number) {
            Some(Integer::Signed(value)) => Field::Signed(value),
            Some(Integer::Unsigned(value)) => Field::Unsigned(value),
            None => {
                if !number.is_finite() && !self.options.encode_invalid_numbers {
                    // SAFETY: As for `stack`; nothing here has to be dropped.
                    unsafe { raise(self.state, b"number must not be NaN or Inf") };
                }
                Field::Double(number)
            }
        }
    }

    unsafe fn cdata<'v>(&self, index: c_int) -> Option<Field<'v>> {
        // SAFETY: As for `look_once`.
        unsafe {
            if let Some(integer) = cdata::integer(self.state, index) {
                return Some(match integer {
                    Integer::Signed(value) => Field::Signed(value),
                    Integer::Unsigned(value) => Field::Unsigned(value),
                });
            }
            let (found, payload) = cdata::look(self.state, self.types, index)?;
            Some(match found {
                Type::Bool => Field::Bool(payload.cast::<u8>().read() != 0),
                Type::Float => self.number(payload.cast::<f32>().read().into()),
                Type::Double => self.number(payload.cast::<f64>().read()),
                Type::VoidPointer if payload.cast::<usize>().read() == 0 => Field::Nil,
                Type::Uuid => Field::Uuid,
                Type::Decimal => Field::Decimal,
                Type::Datetime => Field::Datetime,
                Type::Interval => Field::Interval,
                _ => return None,
            })
        }
    }

    unsafe fn table<'v>(&self, index: c_int) -> Option<Field<'v>> {
        let state = self.state;
        // SAFETY: As for `stack`.
        unsafe {
            if self.options.encode_load_metatables
                && luaL_getmetafield(state, index, c"__serialize".as_ptr()) != 0
            {
                if lua_type(state, -1) == LUA_TFUNCTION {
                    self.replace(index);
                    return None;
                }
                let hint = bytes(state, -1).filter(|_| lua_type(state, -1) == LUA_TSTRING);
                lua_settop(state, -2);
                return Some(match hint {
                    Some(b"seq") => self.array(index, true),
                    Some(b"sequence" | b"array") => self.array(index, false),
                    Some(b"map") => Field::Map { short: true },
                    Some(b"mapping") => Field::Map { short: false },
                    _ => {
                        raise(state, b"invalid __serialize value");
                    }
                });
            }
            Some(self.plain_table(index))
        }
    }

    unsafe fn array<'v>(&self, index: c_int, short: bool) -> Field<'v> {
        // SAFETY: As for `stack`.
        Field::Array { length: unsafe { lua_objlen(self.state, index) }, short }
    }

    /// An array has whole numbers from 1 on for keys, and not too many holes.
    unsafe fn plain_table<'v>(&self, index: c_int) -> Field<'v> {
        let state = self.state;
        let (mut size, mut greatest) = (0_usize, 0.0_f64);
        // SAFETY: As for `stack`; keys are not changed.
        unsafe {
            lua_pushnil(state);
            while lua_next(state, index) != 0 {
                size += 1;
                lua_settop(state, -2);
                let key = lua_tonumber(state, -1);
                if lua_type(state, -1) != LUA_TNUMBER || key < 1.0 || key.floor() != key {
                    lua_settop(state, -2);
                    return Field::Map { short: false };
                }
                greatest = greatest.max(key);
            }
            let ratio = f64::from(self.options.encode_sparse_ratio);
            if ratio > 0.0
                && greatest > size as f64 * ratio
                && greatest > f64::from(self.options.encode_sparse_safe)
            {
                if !self.options.encode_sparse_convert {
                    raise(state, b"excessively sparse array");
                }
                return Field::Map { short: false };
            }
            Field::Array { length: greatest as usize, short: false }
        }
    }

    /// Calls the function at the top with the value at `index`, whose place the result takes.
    unsafe fn replace(&self, index: c_int) {
        // SAFETY: As for `stack`.
        unsafe {
            lua_pushvalue(self.state, index);
            lua_call(self.state, 1, 1);
            lua_replace(self.state, index);
        }
    }

    /// A value that no format has: by its `__serialize`, by `tostring`, as nil, or an error.
    unsafe fn convert<'v>(&self, index: c_int) -> Option<Field<'v>> {
        let state = self.state;
        // SAFETY: As for `stack`.
        unsafe {
            let kind = lua_type(state, index);
            if self.options.encode_load_metatables
                && (kind == LUA_TCDATA || kind == LUA_TUSERDATA)
                && !cdata::is_ctype(state, self.types, index)
                && push_serialize_of(state, index)
            {
                self.replace(index);
                return None;
            }
            if self.options.encode_use_tostring {
                lua_getfield_(state, LUA_GLOBALSINDEX, c"tostring".as_ptr());
                self.replace(index);
                if lua_type(state, index) == LUA_TSTRING {
                    return None;
                }
            }
            if self.options.encode_invalid_as_nil {
                return Some(Field::Nil);
            }
            let name =
                if kind == LUA_TCDATA { c"cdata".as_ptr() } else { lua_typename(state, kind) };
            never(luaL_error(state, c"unsupported Lua type '%s'".as_ptr(), name))
        }
    }
}

/// Pushes the field `__serialize` of a cdata or a userdata, if it has one and it is a function. To
/// look for it may raise an error, which means that there is none.
unsafe fn push_serialize_of(state: State, index: c_int) -> bool {
    // SAFETY: As for `stack`.
    unsafe {
        lua_pushcclosure(state, index_wrapped, 0);
        lua_pushvalue(state, index);
        let found = lua_pcall(state, 1, 1, 0) == 0 && lua_type(state, -1) == LUA_TFUNCTION;
        if !found {
            lua_settop(state, -2);
        }
        found
    }
}

unsafe extern "C-unwind" fn index_wrapped(state: State) -> c_int {
    // SAFETY: It is called with one value.
    unsafe {
        lua_getfield_(state, 1, c"__serialize".as_ptr());
        1
    }
}
