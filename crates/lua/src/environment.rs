//! The table `redis`, and `math.random`.

use crate::core::{Core, FunctionHandle, RegisteredFunction, core};
use crate::digest::hex;
use crate::host::LogLevel;
use crate::pace::spend;
use crate::reply;
use crate::run::{raise_stop, stop};
use crate::stack::{State, bytes, push_bytes, push_error, raise, set_function, set_number};
use ladon_resp::{Proto, write_double, write_i64};
use mlua::ffi::*;
use sha1::{Digest as _, Sha1};
use std::ffi::{CStr, c_int};

const LEVELS: [(&CStr, LogLevel); 4] = [
    (c"LOG_DEBUG", LogLevel::Debug),
    (c"LOG_VERBOSE", LogLevel::Verbose),
    (c"LOG_NOTICE", LogLevel::Notice),
    (c"LOG_WARNING", LogLevel::Warning),
];

/// Flags of `redis.set_repl`.
const REPLICATION: [(&CStr, f64); 5] = [
    (c"REPL_NONE", 0.0),
    (c"REPL_AOF", 1.0),
    (c"REPL_SLAVE", 2.0),
    (c"REPL_REPLICA", 2.0),
    (c"REPL_ALL", 3.0),
];

/// Pushes what `redis` has within scripts and functions.
///
/// # Safety
/// As for [`crate::stack`].
pub(crate) unsafe fn push_for_scripts(state: State) {
    // SAFETY: As promised.
    unsafe {
        lua_newtable(state);
        set_common(state);
        let functions: [(&CStr, lua_CFunction); 11] = [
            (c"setresp", setresp),
            (c"call", call),
            (c"pcall", pcall),
            (c"error_reply", error_reply),
            (c"status_reply", status_reply),
            (c"sha1hex", sha1hex),
            (c"set_repl", set_repl),
            (c"replicate_commands", replicate_commands),
            (c"breakpoint", breakpoint),
            (c"debug", debug),
            (c"acl_check_cmd", acl_check_cmd),
        ];
        for (name, function) in functions {
            set_function(state, name, function);
        }
        for (name, flags) in REPLICATION {
            set_number(state, name, flags);
        }
    }
}

/// Pushes what `redis` has while the code of a library runs.
///
/// # Safety
/// As for [`crate::stack`].
pub(crate) unsafe fn push_for_libraries(state: State) {
    // SAFETY: As promised.
    unsafe {
        lua_newtable(state);
        set_common(state);
        set_function(state, c"register_function", register_function);
    }
}

unsafe fn set_common(state: State) {
    // SAFETY: As promised by the callers. The version is read before anything is pushed.
    unsafe {
        set_function(state, c"log", log);
        for (number, (name, _)) in LEVELS.iter().enumerate() {
            set_number(state, name, number as f64);
        }
        let version = (*core(state)).version.as_str();
        push_bytes(state, version.as_bytes());
        lua_setfield(state, -2, c"REDIS_VERSION".as_ptr());
        let mut parts = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
        let number = (0..3).fold(0, |number, _| number << 8 | parts.next().unwrap_or(0));
        set_number(state, c"REDIS_VERSION_NUM", f64::from(number));
    }
}

unsafe extern "C-unwind" fn call(state: State) -> c_int {
    // SAFETY: Lua calls it with a live state.
    unsafe { run_command(state, true) }
}

unsafe extern "C-unwind" fn pcall(state: State) -> c_int {
    // SAFETY: Lua calls it with a live state.
    unsafe { run_command(state, false) }
}

const NO_ARGUMENT: &[u8] = b"ERR Please specify at least one argument for this redis lib call";

/// Runs the command whose words are the arguments; its error is raised, or is the result.
unsafe fn run_command(state: State, raises: bool) -> c_int {
    // SAFETY: As promised by the callers. The arguments stay on the stack during the call.
    unsafe {
        let core = core(state);
        let Some(host) = (*core).host.filter(|_| !(*core).is_stopped) else {
            return raise_stop(state);
        };
        if let Err(text) = take_arguments(state, core) {
            push_error(state, text);
            return if raises { lua_error(state) } else { 1 };
        }
        (*core).reply.clear();
        let ended = (*host).call(&(*core).arguments, &mut (*core).reply);
        if ended.is_err() {
            stop(state, core);
            return raise_stop(state);
        }
        let reply: &[u8] = &*(&raw const (*core).reply).cast::<Vec<u8>>();
        let is_error = matches!(reply.first(), Some(b'-' | b'!'));
        reply::push(state, reply);
        if is_error && raises { lua_error(state) } else { 1 }
    }
}

/// Puts the words of a command into [`Core::arguments`].
unsafe fn take_arguments(state: State, core: *mut Core) -> Result<(), &'static [u8]> {
    /// As long as a number gets.
    const NUMBER_BYTES: usize = 32;
    // SAFETY: The strings live on Lua's stack, and `numbers` does not move, having the room.
    unsafe {
        let count = lua_gettop(state);
        if count == 0 {
            return Err(NO_ARGUMENT);
        }
        let Core { arguments, numbers, .. } = &mut *core;
        arguments.clear();
        numbers.clear();
        for index in 1..=count {
            match lua_type(state, index) {
                LUA_TSTRING => arguments.push(bytes(state, index).unwrap_or_default()),
                LUA_TNUMBER => {
                    if numbers.capacity() == 0 || numbers.len() + NUMBER_BYTES > numbers.capacity()
                    {
                        // As much as all of them need: those before are written again.
                        let max = count as usize * NUMBER_BYTES;
                        if numbers.capacity() < max {
                            *numbers = Vec::with_capacity(max);
                            return take_arguments(state, core);
                        }
                    }
                    let start = numbers.len();
                    write_number(numbers, lua_tonumber(state, index));
                    let text = &numbers[start..];
                    arguments.push(std::slice::from_raw_parts(text.as_ptr(), text.len()));
                }
                _ => {
                    return Err(b"ERR Lua redis lib command arguments must be strings or integers");
                }
            }
        }
    }
    Ok(())
}

/// A whole number without an exponent if it has 64 bits, and a fraction in the shortest form, as
/// since Redis 7.2. A larger number as Redis 7 writes it: with 17 digits, never more of them than
/// the number has.
fn write_number(to: &mut Vec<u8>, number: f64) {
    const END: f64 = 9_223_372_036_854_775_808.0;
    if (-END..END).contains(&number) {
        if number.trunc() == number {
            write_i64(to, number as i64);
        } else {
            write_double(to, number);
        }
    } else if number.is_finite() {
        write_large(to, number);
    } else {
        write_double(to, number);
    }
}

/// C's `%.17g` of a number from 10^17 on.
fn write_large(to: &mut Vec<u8>, number: f64) {
    let text = format!("{number:.16e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let digits = digits.trim_end_matches('0').trim_end_matches('.');
    to.extend_from_slice(format!("{digits}e+{exponent}").as_bytes());
}

const WRONG_ARGUMENTS: &[u8] = b"ERR wrong number or type of arguments";

/// The one string that a function was given.
unsafe fn only_string<'a>(state: State) -> Option<&'a [u8]> {
    // SAFETY: As promised by the callers.
    unsafe {
        let is_one = lua_gettop(state) == 1 && lua_type(state, 1) == LUA_TSTRING;
        if is_one { bytes(state, 1) } else { None }
    }
}

/// `redis.error_reply`: a text without an error code gets `ERR`.
unsafe extern "C-unwind" fn error_reply(state: State) -> c_int {
    // SAFETY: Lua calls it with a live state.
    unsafe {
        let Some(text) = only_string(state) else {
            push_error(state, WRONG_ARGUMENTS);
            return 1;
        };
        let text = text.strip_prefix(b"-").unwrap_or(text);
        let end = text.len() - text.iter().rev().take_while(|byte| b"\r\n".contains(byte)).count();
        let has_code = text.contains(&b' ');
        lua_createtable(state, 0, 4);
        push_bytes(state, if has_code { b"" } else { b"ERR " });
        push_bytes(state, &text[..end]);
        lua_concat(state, 2);
        lua_setfield(state, -2, c"err".as_ptr());
    }
    1
}

unsafe extern "C-unwind" fn status_reply(state: State) -> c_int {
    // SAFETY: Lua calls it with a live state.
    unsafe {
        if only_string(state).is_none() {
            push_error(state, WRONG_ARGUMENTS);
            return 1;
        }
        lua_createtable(state, 0, 1);
        lua_pushvalue(state, 1);
        lua_setfield(state, -2, c"ok".as_ptr());
    }
    1
}

/// Bytes that are hashed at once, and as fast as one step is made.
const SHA1_PIECE: usize = 64 << 10;
const BYTES_PER_SHA1_STEP: usize = 16;

unsafe extern "C-unwind" fn sha1hex(state: State) -> c_int {
    // SAFETY: Lua calls it with a live state.
    unsafe {
        if lua_gettop(state) != 1 {
            return raise(state, b"ERR wrong number of arguments");
        }
        let core = core(state);
        let mut hash = Sha1::new();
        for piece in bytes(state, 1).unwrap_or_default().chunks(SHA1_PIECE) {
            hash.update(piece);
            spend(state, core, piece.len() / BYTES_PER_SHA1_STEP);
        }
        push_bytes(state, &hex(hash));
    }
    1
}

/// A line that is logged is cut here.
const LINE_BYTES_MAX: usize = 1 << 20;

unsafe extern "C-unwind" fn log(state: State) -> c_int {
    // SAFETY: Lua calls it with a live state. The line is collected in the space for replies.
    unsafe {
        let count = lua_gettop(state);
        if count < 2 {
            return raise(state, b"ERR redis.log() requires two arguments or more.");
        }
        if lua_type(state, 1) != LUA_TNUMBER {
            return raise(state, b"ERR First argument must be a number (log level).");
        }
        let level = lua_tonumber(state, 1);
        let known = (0..LEVELS.len()).find(|&number| number as f64 == level.trunc());
        let Some((_, level)) = known.map(|number| LEVELS[number]) else {
            return raise(state, b"ERR Invalid debug level.");
        };
        let core = core(state);
        (*core).reply.clear();
        for index in 2..=count {
            if let Some(text) = bytes(state, index) {
                let line = &mut (*core).reply;
                if line.len() + text.len() > LINE_BYTES_MAX {
                    line.extend_from_slice(b" ... (cut)");
                    break;
                }
                if index > 2 {
                    line.push(b' ');
                }
                line.extend_from_slice(text);
            }
        }
        if let Some(host) = (*core).host {
            (*host).log(level, &(*core).reply);
        }
    }
    0
}

unsafe extern "C-unwind" fn setresp(state: State) -> c_int {
    // SAFETY: Lua calls it with a live state.
    unsafe {
        if lua_gettop(state) != 1 {
            return raise(state, b"ERR redis.setresp() requires one argument.");
        }
        let proto = match lua_tonumber(state, 1) {
            2.0 => Proto::Resp2,
            3.0 => Proto::Resp3,
            _ => return raise(state, b"ERR RESP version must be 2 or 3."),
        };
        let core = core(state);
        (*core).proto = proto;
        if let Some(host) = (*core).host {
            (*host).set_resp(proto);
        }
    }
    0
}

/// `redis.set_repl`. What a script changes is always in the log: there is no way to keep a change
/// from it (docs/differences.md).
unsafe extern "C-unwind" fn set_repl(state: State) -> c_int {
    // SAFETY: Lua calls it with a live state.
    unsafe {
        if lua_gettop(state) != 1 {
            return raise(state, b"ERR redis.set_repl() requires two arguments.");
        }
        let flags = lua_tonumber(state, 1);
        if !REPLICATION.iter().any(|(_, known)| *known == flags) {
            return raise(
                state,
                b"ERR Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or \
                  REPL_NONE.",
            );
        }
    }
    0
}

/// Nothing else than effects is replicated, as since Redis 7.
unsafe extern "C-unwind" fn replicate_commands(state: State) -> c_int {
    // SAFETY: Lua calls it with a live state.
    unsafe { lua_pushboolean(state, 1) };
    1
}

/// There is no debugger attached.
unsafe extern "C-unwind" fn breakpoint(state: State) -> c_int {
    // SAFETY: Lua calls it with a live state.
    unsafe { lua_pushboolean(state, 0) };
    1
}

/// Shows its arguments in a debugger; there is none.
unsafe extern "C-unwind" fn debug(_: State) -> c_int {
    0
}

unsafe extern "C-unwind" fn acl_check_cmd(state: State) -> c_int {
    // SAFETY: Lua calls it with a live state. The text of an error is copied before the error is
    // raised.
    unsafe {
        let core = core(state);
        let Some(host) = (*core).host.filter(|_| !(*core).is_stopped) else {
            return raise_stop(state);
        };
        if let Err(text) = take_arguments(state, core) {
            return raise(state, text);
        }
        match (*host).may_run(&(*core).arguments) {
            Ok(may) => {
                lua_pushboolean(state, c_int::from(may));
                return 1;
            }
            Err(text) => {
                (*core).reply.clear();
                (*core).reply.extend_from_slice(text.as_bytes());
            }
        }
        let text: &[u8] = &*(&raw const (*core).reply).cast::<Vec<u8>>();
        raise(state, text)
    }
}

/// `redis.register_function`, in both of its forms.
unsafe extern "C-unwind" fn register_function(state: State) -> c_int {
    // SAFETY: Lua calls it with a live state. What is collected belongs to the core.
    unsafe {
        let core = core(state);
        if !(*core).registering.is_open {
            let text = b"ERR redis.register_function can only be called on FUNCTION LOAD command";
            return raise(state, text);
        }
        let registered = match lua_gettop(state) {
            1 => take_named(state, core),
            2 => take_pair(state, core),
            _ => Err(b"ERR wrong number of arguments to redis.register_function".as_slice()),
        };
        match registered {
            Ok(()) => 0,
            Err(text) => raise(state, text),
        }
    }
}

type Taken = Result<(), &'static [u8]>;

/// `redis.register_function(name, callback)`.
unsafe fn take_pair(state: State, core: *mut Core) -> Taken {
    // SAFETY: As in `register_function`.
    unsafe {
        if !is_text(state, 1) {
            return Err(b"ERR first argument to redis.register_function must be a string");
        }
        if lua_type(state, 2) != LUA_TFUNCTION {
            return Err(b"ERR second argument to redis.register_function must be a function");
        }
        check_name(core, bytes(state, 1).unwrap_or_default())?;
        let handle = FunctionHandle(luaL_ref(state, LUA_REGISTRYINDEX));
        let name = bytes(state, 1).unwrap_or_default().to_vec();
        let function = RegisteredFunction { name, description: None, flags: Vec::new(), handle };
        (*core).registering.functions.push(function);
    }
    Ok(())
}

/// Places on the stack of the fields of the table at 1.
const NAME: c_int = 2;
const DESCRIPTION: c_int = 3;
const FLAGS: c_int = 4;
const CALLBACK: c_int = 5;

/// `redis.register_function{function_name = ..., callback = ..., flags = ..., description = ...}`.
unsafe fn take_named(state: State, core: *mut Core) -> Taken {
    // SAFETY: As in `register_function`. Numbers become strings before anything is collected.
    unsafe {
        if lua_type(state, 1) != LUA_TTABLE {
            return Err(b"ERR calling redis.register_function with a single argument is only \
                         applicable to Lua table (representing named arguments).");
        }
        place_fields(state)?;
        let name = bytes(state, NAME)
            .ok_or(b"ERR redis.register_function must get a function name argument".as_slice())?;
        let description = bytes(state, DESCRIPTION);
        let count = if lua_type(state, FLAGS) == LUA_TTABLE { count_flags(state)? } else { 0 };
        if lua_type(state, CALLBACK) != LUA_TFUNCTION {
            return Err(b"ERR redis.register_function must get a callback argument");
        }
        check_name(core, name)?;
        let handle = FunctionHandle(luaL_ref(state, LUA_REGISTRYINDEX));
        let mut function = RegisteredFunction {
            name: name.to_vec(),
            description: description.map(<[u8]>::to_vec),
            flags: Vec::new(),
            handle,
        };
        // The strings are there: nothing is allocated by Lua.
        for index in 1..=count {
            lua_rawgeti_(state, FLAGS, index);
            function.flags.push(bytes(state, -1).unwrap_or_default().to_ascii_lowercase());
            lua_settop(state, FLAGS);
        }
        (*core).registering.functions.push(function);
    }
    Ok(())
}

/// Whether the value at `index` is a string, or a number, which can be one.
unsafe fn is_text(state: State, index: c_int) -> bool {
    // SAFETY: As in `register_function`.
    matches!(unsafe { lua_type(state, index) }, LUA_TSTRING | LUA_TNUMBER)
}

/// Puts the fields of the table at 1, whose names may have either case, to their places; nil where
/// there is none. Nothing but the callback is above [`FLAGS`].
unsafe fn place_fields(state: State) -> Taken {
    const UNKNOWN: &[u8] = b"ERR unknown argument given to redis.register_function";
    // SAFETY: As in `register_function`.
    unsafe {
        lua_settop(state, CALLBACK);
        lua_pushnil(state);
        while lua_next(state, 1) != 0 {
            let (key, value) = (CALLBACK + 1, CALLBACK + 2);
            match lua_type(state, key) {
                LUA_TSTRING => {}
                // As a string it would be no field's name, and would confuse the iteration.
                LUA_TNUMBER => return Err(UNKNOWN),
                _ => {
                    return Err(
                        b"ERR named argument key given to redis.register_function is not a \
                                 string",
                    );
                }
            }
            let name = bytes(state, key).unwrap_or_default();
            let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
            let place = if is(b"function_name") {
                if !is_text(state, value) {
                    return Err(b"ERR function_name argument given to redis.register_function \
                                 must be a string");
                }
                NAME
            } else if is(b"description") {
                if !is_text(state, value) {
                    return Err(b"ERR description argument given to redis.register_function must \
                                 be a string");
                }
                DESCRIPTION
            } else if is(b"callback") {
                if lua_type(state, value) != LUA_TFUNCTION {
                    return Err(b"ERR callback argument given to redis.register_function must be \
                                 a function");
                }
                CALLBACK
            } else if is(b"flags") {
                if lua_type(state, value) != LUA_TTABLE {
                    return Err(b"ERR flags argument to redis.register_function must be a table \
                                 representing function flags");
                }
                FLAGS
            } else {
                return Err(UNKNOWN);
            };
            lua_replace(state, place);
        }
    }
    Ok(())
}

/// What a function may declare.
const KNOWN_FLAGS: [&[u8]; 5] =
    [b"no-writes", b"allow-oom", b"allow-stale", b"no-cluster", b"allow-cross-slot-keys"];

/// How many flags the table at [`FLAGS`] begins with.
unsafe fn count_flags(state: State) -> Result<c_int, &'static [u8]> {
    // SAFETY: As in `register_function`.
    unsafe {
        for count in 0.. {
            lua_rawgeti_(state, FLAGS, count + 1);
            let is_known = lua_type(state, -1) == LUA_TSTRING && {
                let flag = bytes(state, -1).unwrap_or_default();
                KNOWN_FLAGS.iter().any(|known| flag.eq_ignore_ascii_case(known))
            };
            let is_end = lua_type(state, -1) == LUA_TNIL;
            lua_settop(state, CALLBACK);
            if is_end {
                return Ok(count);
            }
            if !is_known {
                break;
            }
        }
    }
    Err(b"ERR unknown flag given")
}

/// Whether a function may have this name.
unsafe fn check_name(core: *mut Core, name: &[u8]) -> Taken {
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    if name.is_empty() || !name.iter().all(allowed) {
        return Err(b"ERR Library names can only contain letters, numbers, or underscores(_) and \
                     must be at least one character long");
    }
    // SAFETY: As in `register_function`.
    let registered = unsafe { &(*core).registering.functions };
    if registered.iter().any(|function| function.name == name) {
        return Err(b"ERR Function already exists in the library");
    }
    Ok(())
}

/// The next number of POSIX' `lrand48`, as Redis has it, from 0 up to 2^31.
fn next_random(core: &mut Core) -> i32 {
    core.random = core.random.wrapping_mul(0x5_DEEC_E66D).wrapping_add(0xB) & 0xFFFF_FFFF_FFFF;
    (core.random >> 17) as i32
}

/// `math.random`, whose numbers go on from one script to the next, as since Redis 7.
pub(crate) unsafe extern "C-unwind" fn random(state: State) -> c_int {
    const MAX: i32 = i32::MAX;
    // SAFETY: Lua calls it with a live state.
    unsafe {
        let fraction = f64::from(next_random(&mut *core(state)) % MAX) / f64::from(MAX);
        let (low, high) = match lua_gettop(state) {
            0 => {
                lua_pushnumber(state, fraction);
                return 1;
            }
            1 => (1.0, luaL_checknumber(state, 1).trunc()),
            2 => (luaL_checknumber(state, 1).trunc(), luaL_checknumber(state, 2).trunc()),
            _ => return luaL_error(state, c"wrong number of arguments".as_ptr()),
        };
        if low > high {
            let argument = if lua_gettop(state) == 1 { 1 } else { 2 };
            return luaL_argerror(state, argument, c"interval is empty".as_ptr());
        }
        lua_pushnumber(state, (fraction * (high - low + 1.0)).floor() + low);
    }
    1
}

/// `math.randomseed`, which lasts until the script's end.
pub(crate) unsafe extern "C-unwind" fn randomseed(state: State) -> c_int {
    // SAFETY: Lua calls it with a live state.
    unsafe {
        let seed = luaL_checknumber(state, 1) as i64 as i32;
        let core = core(state);
        let before = (*core).random;
        (*core).random_before.get_or_insert(before);
        (*core).random = u64::from(seed as u32) << 16 | 0x330E;
    }
    0
}
