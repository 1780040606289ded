//! What a compiled script does with its globals, read from LuaJIT's dump of its code
//! (`lj_bcdump.h` describes the format).
//!
//! Most scripts do nothing with `KEYS`, `ARGV` and `redis` but read a field of them, in this way:
//!
//! ```text
//! GGET   A  "KEYS"     register A = the global
//! TGETB  A  A  1       register A = a field of it
//! ```
//!
//! In between, nothing else sees the table, and afterwards nothing has it. So such a script can
//! neither keep nor change it, and the machine may give it tables that are not protected, the same
//! ones for each run.

/// Opcodes of this version of the format (`lj_bc.h`).
const VERSION: u8 = 2;
const LEN: u8 = 21;
const CAT: u8 = 38;
const UCLO: u8 = 50;
const FNEW: u8 = 51;
const GGET: u8 = 54;
const GSET: u8 = 55;
const TGETV: u8 = 56;
const TGETS: u8 = 57;
const TGETB: u8 = 58;
const TGETR: u8 = 59;
const ITERC: u8 = 69;
const ITERN: u8 = 70;
const ISNEXT: u8 = 72;
const FORI: u8 = 77;
const JLOOP: u8 = 87;
const JMP: u8 = 88;

/// A jump's distance is stored with this added.
const FORWARD_MIN: u16 = 0x8000;

/// Instructions of a short script.
const SHORT_MAX: usize = 256;

/// Globals with which a script that has no functions of its own runs no instruction of Lua but its
/// own: functions of C, the tables that hold only such (`string.len` and `math.deg` are a handful of
/// instructions of LuaJIT's), and words. Not those that call functions again and again
/// (`table.foreach`) or have threads (`coroutine`).
const WITHOUT_LUA: [&[u8]; 18] = [
    b"ARGV",
    b"KEYS",
    b"assert",
    b"bit",
    b"cjson",
    b"cmsgpack",
    b"error",
    b"math",
    b"rawequal",
    b"redis",
    b"select",
    b"server",
    b"string",
    b"struct",
    b"tonumber",
    b"tostring",
    b"type",
    b"unpack",
];

/// The other order of bytes.
const BIG_ENDIAN: u32 = 1;
const STRIPPED: u32 = 2;

/// Kinds of constants. A larger number is a string's length and 5.
const CONSTANT_CHILD: u32 = 0;
const CONSTANT_TABLE: u32 = 1;
const CONSTANT_STRING: u32 = 5;

/// Of these, those that take hardly any time, whatever they are called with.
const QUICK: [&[u8]; 7] =
    [b"ARGV", b"KEYS", b"redis", b"server", b"tonumber", b"tostring", b"type"];

/// Fields of `redis`, which is `server` too, of which this is true as well, but for what the commands themselves take.
const QUICK_FIELDS: [&[u8]; 4] = [b"call", b"error_reply", b"pcall", b"status_reply"];

/// A quick script joins strings so often, and so many at once: more could double one again and
/// again.
const JOINS_MAX: usize = 2;
const JOINED_MAX: u8 = 4;

/// What the code of a script says about it. Nothing, if it is not understood.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traits {
    /// It sets no global, reads `KEYS`, `ARGV` and `redis` only to index them at once, and reaches
    /// its globals in no other way.
    pub(crate) only_indexes: bool,
    /// Besides, it has few instructions, no loop, and no function that is called, so that each
    /// of them runs once at most. It may take long all the same, in functions of C.
    pub(crate) is_short: bool,
    /// Besides, it calls nothing that takes long, unless a command does.
    pub(crate) is_quick: bool,
}

impl Traits {
    fn join(&mut self, other: Traits) {
        self.only_indexes &= other.only_indexes;
        self.is_short &= other.is_short;
        self.is_quick &= other.is_quick;
    }
}

/// Looks at a script's dump.
pub(crate) fn traits(dump: &[u8]) -> Traits {
    read(dump).filter(|traits| traits.only_indexes).unwrap_or_default()
}

/// `None` if the dump ends early, or has what this does not know.
fn read(dump: &[u8]) -> Option<Traits> {
    let mut rest = Bytes(dump.strip_prefix(b"\x1bLJ")?);
    if rest.byte()? != VERSION {
        return None;
    }
    let flags = rest.number()?;
    if flags & BIG_ENDIAN != 0 {
        return None;
    }
    let is_stripped = flags & STRIPPED != 0;
    if !is_stripped {
        let name_bytes = rest.number()?;
        rest.take(name_bytes as usize)?;
    }
    let mut whole = Traits { only_indexes: true, is_short: true, is_quick: true };
    loop {
        let length = rest.number()?;
        if length == 0 {
            whole.is_quick &= whole.is_short;
            return Some(whole);
        }
        whole.join(traits_of_function(Bytes(rest.take(length as usize)?), is_stripped)?);
    }
}

fn traits_of_function(mut rest: Bytes<'_>, is_stripped: bool) -> Option<Traits> {
    let [_flags, _parameters, _frame, upvalues] = *rest.take(4)? else { return None };
    let constants = rest.number()? as usize;
    let _numbers = rest.number()?;
    let instructions = rest.number()? as usize;
    if !is_stripped && rest.number()? != 0 {
        let (_first_line, _lines) = (rest.number()?, rest.number()?);
    }
    let code = rest.take(instructions.checked_mul(4)?)?;
    rest.take(2 * usize::from(upvalues))?;
    let mut names = Vec::new();
    for _ in 0..constants {
        names.push(rest.constant()?);
    }
    // The last constant has number 0.
    let name_of = |number: usize| names.get(constants.checked_sub(number + 1)?).copied().flatten();
    let is_short = instructions <= SHORT_MAX;
    let mut traits = Traits { only_indexes: true, is_short, is_quick: true };
    let (mut joins, mut global) = (0, None);
    let mut code = code.chunks_exact(4).peekable();
    while let Some(&[opcode, register, low, high]) = code.next() {
        let operand = u16::from_le_bytes([low, high]);
        // The one that the instruction before has read.
        let indexed = global.take();
        match opcode {
            GSET => traits.only_indexes = false,
            GGET => {
                let name = name_of(usize::from(operand))?;
                traits.is_short &= WITHOUT_LUA.contains(&name);
                traits.is_quick &= QUICK.contains(&name);
                traits.only_indexes &= match name {
                    b"_G" | b"load" | b"loadstring" => false,
                    b"KEYS" | b"ARGV" | b"redis" | b"server" => replaces(code.peek()?, register)?,
                    _ => true,
                };
                global = Some(name);
            }
            // Strings have fields, too: their methods.
            TGETS => {
                let field = name_of(usize::from(low))?;
                traits.is_quick &=
                    matches!(indexed, Some(b"redis" | b"server")) && QUICK_FIELDS.contains(&field);
            }
            TGETV | TGETR => traits.is_quick &= matches!(indexed, Some(b"KEYS" | b"ARGV")),
            CAT => {
                joins += 1;
                traits.is_quick &= joins <= JOINS_MAX && low.abs_diff(high) < JOINED_MAX;
            }
            UCLO | FNEW | ITERC | ITERN | ISNEXT | FORI..=JLOOP => traits.is_short = false,
            JMP => traits.is_short &= operand >= FORWARD_MIN,
            _ => {}
        }
    }
    Some(traits)
}

/// Whether an instruction replaces the table in a register by a field of it, or by its length.
fn replaces(instruction: &[u8], table: u8) -> Option<bool> {
    let &[opcode, to, low, high] = instruction else { return None };
    Some(match opcode {
        TGETV | TGETS | TGETB => to == table && high == table,
        LEN => to == table && u16::from_le_bytes([low, high]) == u16::from(table),
        _ => false,
    })
}

/// What is not read yet.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|byte| byte[0])
    }

    /// ULEB128 of 32 bits.
    fn number(&mut self) -> Option<u32> {
        let mut number = 0u32;
        for shift in (0..u32::BITS).step_by(7) {
            let byte = self.byte()?;
            number |= u32::from(byte & 0x7f).checked_shl(shift)?;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    /// The text of a constant, if it is a string.
    fn constant(&mut self) -> Option<Option<&'a [u8]>> {
        match self.number()? {
            CONSTANT_CHILD => {}
            CONSTANT_TABLE => {
                let (elements, pairs) = (self.number()?, self.number()?);
                for _ in 0..u64::from(elements) + 2 * u64::from(pairs) {
                    self.value_of_table()?;
                }
            }
            text @ CONSTANT_STRING.. => {
                return self.take((text - CONSTANT_STRING) as usize).map(Some);
            }
            // No number of C comes from Lua's own words.
            _ => return None,
        }
        Some(None)
    }

    fn value_of_table(&mut self) -> Option<()> {
        /// Nil, false and true are below.
        const INTEGER: u32 = 3;
        const NUMBER: u32 = 4;
        match self.number()? {
            0..INTEGER => {}
            INTEGER => drop(self.number()?),
            NUMBER => drop((self.number()?, self.number()?)),
            text => drop(self.take((text - CONSTANT_STRING) as usize)?),
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mlua::ffi::*;
    use std::ffi::{c_int, c_void};

    fn dump(body: &str) -> Vec<u8> {
        let mut dump = Vec::<u8>::new();
        // SAFETY: The state is live until it is closed, and so is the buffer.
        unsafe {
            let state = luaL_newstate();
            let loaded =
                luaL_loadbuffer(state, body.as_ptr().cast(), body.len(), c"@user_script".as_ptr());
            assert_eq!(loaded, LUA_OK, "{body}");
            let to = (&raw mut dump).cast::<c_void>();
            let dumped: c_int = lua_dump_(state, crate::compile::collect_dump, to);
            assert_eq!(dumped, 0, "{body}");
            lua_close(state);
        }
        dump
    }

    #[test]
    fn tells_who_only_indexes() {
        for body in [
            "return 1",
            "return redis.call('get', KEYS[1])",
            "local k = KEYS[1] return #k",
            "local call = redis.call return call('get', ARGV[2])",
            "for i = 1, #KEYS do redis.call('del', KEYS[i]) end",
            "local t = {} t[1] = KEYS[1] t.x = ARGV[1] return t",
            "local n = #ARGV return {1.5, 'a', {b = 2, [3] = 'c', d = true}, n}",
            "local f = function(x) return KEYS[x] end return f(1)",
            "return nonexistent",
            "return tonumber(ARGV[1]) + string.len(KEYS[2])",
        ] {
            assert!(traits(&dump(body)).only_indexes, "{body}");
        }
        for body in [
            "x = 1",
            "redis = nil",
            "local f = function() KEYS = 1 end return f",
            "return KEYS",
            "local k = KEYS k[1] = 'x'",
            "KEYS[1] = 'x'",
            "KEYS[1] = ARGV[1]",
            "table.insert(KEYS, 'x')",
            "return unpack(ARGV)",
            "local r = redis r.call = nil",
            "redis.call = nil",
            "function redis.call() end",
            "for _, key in ipairs(KEYS) do redis.call('del', key) end",
            "local f = function() local g = function() return ARGV end return g end return f",
            "return _G.KEYS",
            "return loadstring('return KEYS')()",
            "return load(function() return 'x' end)",
            "local a = KEYS or {}",
            "return KEYS == ARGV",
            "return (KEYS).x, KEYS",
        ] {
            assert!(!traits(&dump(body)).only_indexes, "{body}");
        }
    }

    #[test]
    fn tells_who_is_short() {
        let long = "redis.call('incr', KEYS[1]) ".repeat(100);
        for (body, is_short) in [
            ("return 1", true),
            (
                "local n = redis.call('incrby', KEYS[1], ARGV[1]) if n > 9 then n = 9 end return n",
                true,
            ),
            (
                "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end",
                true,
            ),
            ("if tonumber(ARGV[1]) > 1 and #KEYS > 1 or not ARGV[2] then return {1, 2} end", true),
            ("return string.len(ARGV[1]) + math.floor(1.5) + cjson.decode(ARGV[1]).x", true),
            ("return KEYS[1]:len()", true),
            (&long, false),
            ("for i = 1, 9 do redis.call('incr', KEYS[1]) end", false),
            ("local i = 1 while i < 9 do i = i + 1 end", false),
            ("local i = 1 repeat i = i + 1 until i > 9", false),
            ("while true do end", false),
            ("repeat until false", false),
            ("::again:: goto again", false),
            ("::again:: redis.call('get', KEYS[1]) goto again", false),
            ("for k, v in next, {} do end", false),
            ("for _, v in ipairs({1}) do redis.call('get', v) end", false),
            ("local f = function() end f()", false),
            ("local function f() return f() end", false),
            ("return pcall(redis.call, 'get', KEYS[1])", false),
            ("table.foreach({1}, redis.log)", false),
            ("coroutine.wrap(redis.log)()", false),
            ("return unknown()", false),
            ("return KEYS", false),
            ("return loadstring('while true do end')()", false),
            ("return getmetatable('').__index", false),
        ] {
            assert_eq!(traits(&dump(body)).is_short, is_short, "{body}");
        }
    }

    #[test]
    fn tells_who_is_quick() {
        for (body, is_quick) in [
            ("return 1", true),
            (
                "local n = redis.call('incrby', KEYS[1], ARGV[1]) if n > 9 then n = 9 end return n",
                true,
            ),
            (
                "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end",
                true,
            ),
            ("local i = 1 return redis.call('get', KEYS[i] .. ':' .. ARGV[i])", true),
            ("return redis.pcall('get', 'x') or redis.error_reply('none')", true),
            (
                "return {tostring(1), tonumber(ARGV[1]), type(ARGV[2]), redis.status_reply('fine')}",
                true,
            ),
            ("return #string.rep('x', 200000000)", false),
            ("return KEYS[1]:rep(100000000)", false),
            ("return (KEYS[1])['rep'](KEYS[1], 100000000)", false),
            ("local name = ARGV[1] local k = KEYS[1] return k[name](k, 100000000)", false),
            ("local name = ARGV[1] local r = redis[name] return r(KEYS[1])", false),
            ("return redis.sha1hex(KEYS[1])", false),
            ("redis.log(redis.LOG_WARNING, KEYS[1])", false),
            ("return cjson.decode(ARGV[1])", false),
            ("local s = ARGV[1] s = s .. s s = s .. s s = s .. s return s", false),
            ("local s = ARGV[1] return s .. s .. s .. s .. s", false),
            ("return {unpack({1})}", false),
            ("for i = 1, 9 do redis.call('incr', KEYS[1]) end", false),
        ] {
            assert_eq!(traits(&dump(body)).is_quick, is_quick, "{body}");
        }
    }

    #[test]
    fn a_damaged_dump_is_not_understood() {
        let whole = dump("local f = function(x) return KEYS[x] end return f(1), {1, 'a', b = 2.5}");
        assert!(traits(&whole).only_indexes);
        for length in 0..whole.len() {
            assert!(!traits(&whole[..length]).only_indexes, "{length}");
        }
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0xff;
            traits(&damaged);
        }
    }
}
