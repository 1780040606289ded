//! The virtual machine of one thread.

use crate::compile::{Chunk, Code};
use crate::core::{Core, FunctionHandle, Places, RegisteredFunction, Registering};
use crate::host::Host;
use crate::memory::{Memory, allocate, collect_at};
use crate::pace::{self, STEPS, look_soon};
use crate::run::{self, Ended, Frame, ON_ERROR, call_protected, with_host};
use crate::stack::State;
use crate::words::{Reused, Words};
use crate::{libraries, sandbox};
use ladon_resp::{Proto, Reply};
use mlua::ffi::*;
use std::ffi::c_int;
use std::ops::{Deref, DerefMut};
use std::ptr::null_mut;

/// What a machine is created with.
#[derive(Clone, Debug)]
pub struct VmOptions {
    /// The most memory that scripts may take, in bytes.
    pub memory_bytes_max: usize,
    /// `redis.REDIS_VERSION`, as in `7.2.4`.
    pub version: String,
}

impl Default for VmOptions {
    fn default() -> VmOptions {
        VmOptions { memory_bytes_max: 512 << 20, version: "7.2.4".to_owned() }
    }
}

/// A compiled script.
#[derive(Clone, Debug)]
pub struct ScriptHandle {
    function: c_int,
    words: Words,
    is_short: bool,
    is_quick: bool,
    /// Its SHA1, which errors name.
    name: [u8; 40],
}

impl ScriptHandle {
    /// Whether it takes hardly any time but that of its commands: it has few instructions, each of
    /// which runs once at most, and calls nothing else that may take long.
    #[must_use]
    pub fn is_quick(&self) -> bool {
        self.is_quick
    }
}

/// What a library has registered.
#[derive(Clone, Debug, Default)]
pub struct Library {
    /// Its functions, in the order of their registration.
    pub functions: Vec<RegisteredFunction>,
}

/// The core that a state's allocator knows too. Lua's callbacks change it while [`Vm`] runs
/// something, so no `&mut Core` may live across a call into Lua: the compiler would believe that
/// nobody else looks at what it points to, and leave out what is written before the call.
struct OwnCore(*mut Core);

impl Deref for OwnCore {
    type Target = Core;

    fn deref(&self) -> &Core {
        // SAFETY: It lives as long as this.
        unsafe { &*self.0 }
    }
}

impl DerefMut for OwnCore {
    fn deref_mut(&mut self) -> &mut Core {
        // SAFETY: As above.
        unsafe { &mut *self.0 }
    }
}

impl Drop for OwnCore {
    fn drop(&mut self) {
        // SAFETY: It came from a box, and the state that knew it is closed.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

/// A Lua state with the sandbox of Redis.
pub struct Vm {
    state: State,
    core: OwnCore,
    /// Bytes that the last collection left.
    kept: usize,
}

// SAFETY: Nothing of a state belongs to a thread; `&mut` keeps threads apart.
unsafe impl Send for Vm {}

impl Vm {
    /// A machine that has not run anything.
    ///
    /// # Panics
    /// If the memory is not enough for the libraries.
    #[must_use]
    pub fn new(options: VmOptions) -> Vm {
        let mut core = OwnCore(Box::into_raw(Box::new(Core {
            memory: Memory::new(options.memory_bytes_max, look_soon),
            state: null_mut(),
            steps_left: STEPS as u32,
            stack_begin: 0,
            host: None,
            is_stopped: false,
            hook_instructions: 0,
            short_row: 0,
            collector_pause: 0,
            has_keys: false,
            reused: Reused::default(),
            makes_tables: true,
            proto: Proto::Resp2,
            frame: null_mut(),
            places: Places::default(),
            own_format: None,
            own_concat: None,
            reply: Vec::new(),
            arguments: Vec::new(),
            numbers: Vec::new(),
            random: sandbox::SEED,
            random_before: None,
            json_settings: null_mut(),
            has_json_settings: false,
            registering: Registering::default(),
            version: options.version,
        })));
        // SAFETY: The core keeps its address, and is dropped after the state is closed.
        let state = unsafe { lua_newstate(allocate, core.0.cast()) };
        assert!(!state.is_null(), "scripts have too little memory to begin with");
        core.state = state;
        // SAFETY: The state is live; errors end in the protected call.
        let status = unsafe { lua_cpcall(state, sandbox::build, null_mut()) };
        assert!(status == LUA_OK, "scripts have too little memory to begin with");
        // SAFETY: As above. Nothing else is on the stack.
        unsafe {
            lua_rawgeti_(state, LUA_REGISTRYINDEX, core.places.on_error);
            run::set_hook(state, core.0, STEPS);
        }
        Vm { state, core, kept: 0 }
    }

    /// Compiles a script. LuaJIT passes over a shebang, whose line counts, and would
    /// pass over any other first line that begins so.
    ///
    /// # Errors
    /// The text of the error reply.
    pub fn load(&mut self, sha: &[u8; 40], body: &[u8]) -> Result<ScriptHandle, String> {
        const NO_SHEBANG: &str = "user_script:1: unexpected symbol near '#'";
        let is_comment = body.starts_with(b"#") && !body.starts_with(b"#!");
        let compiled = match is_comment {
            true => Err(NO_SHEBANG.to_owned()),
            false => self.compile(body, b"@user_script\0", true),
        };
        let Code { function, words, is_short, is_quick } = compiled
            .map_err(|text| format!("ERR Error compiling script (new function): {text}"))?;
        Ok(ScriptHandle { function, words, is_short, is_quick, name: *sha })
    }

    /// Forgets a script.
    pub fn unload(&mut self, script: &ScriptHandle) {
        // SAFETY: The state is live; a reference is given back without allocating.
        unsafe { luaL_unref(self.state, LUA_REGISTRYINDEX, script.function) }
    }

    /// Runs a script, and appends its reply.
    pub fn run(
        &mut self,
        script: &ScriptHandle,
        keys: &[&[u8]],
        args: &[&[u8]],
        proto: Proto,
        host: &mut dyn Host,
        out: &mut Vec<u8>,
    ) -> Ended {
        let reply = &mut Reply::new(out, proto);
        let ScriptHandle { function, words, is_short, ref name, .. } = *script;
        let frame = Frame { function, name, keys, args, words, reply, status: LUA_OK };
        self.run_frame(frame, is_short, host)
    }

    /// Runs a function of a library by this name, and appends its reply.
    #[allow(clippy::too_many_arguments, reason = "as `run`, with a name")]
    pub fn run_function(
        &mut self,
        function: &FunctionHandle,
        name: &[u8],
        keys: &[&[u8]],
        args: &[&[u8]],
        proto: Proto,
        host: &mut dyn Host,
        out: &mut Vec<u8>,
    ) -> Ended {
        let reply = &mut Reply::new(out, proto);
        let (function, words) = (function.0, Words::Arguments);
        let frame = Frame { function, name, keys, args, words, reply, status: LUA_OK };
        self.run_frame(frame, false, host)
    }

    fn run_frame(
        &mut self,
        mut frame: Frame<'_, '_>,
        is_short: bool,
        host: &mut dyn Host,
    ) -> Ended {
        let position = frame.reply.position();
        self.core.makes_tables = frame.words != Words::Reused;
        let (state, core, frame_place) = (self.state, self.core.0, &raw mut frame);
        self.core.frame = frame_place.cast();
        // SAFETY: The frame lives until the call returns, and errors end in it.
        let status = unsafe {
            pace::begin(core);
            run::want_hook(state, core, is_short);
            with_host(core, host, || run::run(state, core, frame_place))
        };
        if self.recover() {
            frame.reply.rewind(position);
            return Ended::Stopped;
        }
        if status != LUA_OK {
            frame.reply.rewind(position);
            frame.reply.error("ERR not enough memory");
        }
        Ended::Replied
    }

    /// After a run: whether it was stopped.
    fn recover(&mut self) -> bool {
        const KEPT: usize = 64 << 10;
        /// What is larger makes instructions slow, be it garbage.
        const LARGE_BYTES: usize = 256 << 10;
        self.core.frame = null_mut();
        self.core.arguments.clear();
        self.core.numbers.clear();
        self.core.reply.clear();
        self.core.reply.shrink_to(KEPT);
        self.forget_settings();
        // SAFETY: The state is live.
        unsafe {
            lua_settop(self.state, ON_ERROR);
            run::pace_collector(self.state);
        }
        if self.core.memory.used > collect_at(self.core.memory.max, self.kept) {
            self.collect();
        }
        if self.core.memory.largest() > LARGE_BYTES {
            self.collect_a_little();
        }
        let was_stopped = std::mem::take(&mut self.core.is_stopped);
        if was_stopped {
            // SAFETY: The state is live.
            unsafe { run::set_hook(self.state, self.core.0, STEPS) };
        }
        was_stopped
    }

    /// What a script sets lasts until its end: machines of other threads know nothing of it.
    #[inline]
    fn forget_settings(&mut self) {
        if std::mem::take(&mut self.core.has_json_settings) {
            // SAFETY: The library belongs to the machine.
            unsafe { libraries::cjson::restore(self.core.json_settings) }
        }
        if let Some(random) = self.core.random_before.take() {
            self.core.random = random;
        }
    }

    /// A few steps of the collector.
    #[cold]
    fn collect_a_little(&mut self) {
        let max = std::mem::replace(&mut self.core.memory.max, usize::MAX);
        // SAFETY: The state is live; errors end in the protected call.
        unsafe { lua_cpcall(self.state, sandbox::collect_a_little, null_mut()) };
        self.core.memory.max = max;
    }

    /// Frees everything that is no longer used, so that the next script has memory to begin with.
    pub fn collect(&mut self) {
        // The collector itself allocates when it makes tables smaller.
        let max = std::mem::replace(&mut self.core.memory.max, usize::MAX);
        // SAFETY: The state is live; errors end in the protected call.
        unsafe { lua_cpcall(self.state, sandbox::collect, null_mut()) };
        self.core.memory.max = max;
        self.kept = self.core.memory.used;
    }

    /// Runs the code of a library, and returns what it registered.
    ///
    /// # Errors
    /// The text of the error reply.
    pub fn load_library(&mut self, body: &[u8], host: &mut dyn Host) -> Result<Library, String> {
        let Code { function, .. } = self
            .compile(body, b"@user_function\0", false)
            .map_err(|text| format!("ERR Error compiling function: {text}"))?;
        let mut out = Vec::new();
        self.core.registering = Registering { is_open: true, functions: Vec::new() };
        self.set_globals(self.core.places.globals_of_libraries);
        let mut reply = Reply::new(&mut out, Proto::Resp2);
        let frame = Frame {
            function,
            name: b"",
            keys: &[],
            args: &[],
            words: Words::Arguments,
            reply: &mut reply,
            status: LUA_OK,
        };
        let ended = self.run_frame(frame, false, host);
        self.set_globals(self.core.places.globals);
        // SAFETY: As in `unload`.
        unsafe { luaL_unref(self.state, LUA_REGISTRYINDEX, function) };
        let library = Library { functions: std::mem::take(&mut self.core.registering).functions };
        let text = match (ended, out.strip_prefix(b"-")) {
            (Ended::Stopped, _) => "ERR FUNCTION LOAD timeout".to_owned(),
            (Ended::Replied, Some(text)) => {
                let text = String::from_utf8_lossy(text);
                text.trim_end().split(" script: ").next().unwrap_or_default().to_owned()
            }
            _ => return Ok(library),
        };
        self.unload_library(&library);
        Err(format!("ERR Error registering functions: {text}"))
    }

    /// Forgets the functions of a library.
    pub fn unload_library(&mut self, library: &Library) {
        for function in &library.functions {
            // SAFETY: As in `unload`.
            unsafe { luaL_unref(self.state, LUA_REGISTRYINDEX, function.handle.0) }
        }
    }

    /// Exchanges which globals there are.
    fn set_globals(&mut self, contents: c_int) {
        // SAFETY: The field is there already, so that nothing is allocated but its name, which Lua
        // has as well.
        unsafe {
            lua_rawgeti_(self.state, LUA_REGISTRYINDEX, self.core.places.globals_metatable);
            lua_rawgeti_(self.state, LUA_REGISTRYINDEX, contents);
            lua_setfield(self.state, -2, c"__index".as_ptr());
            lua_settop(self.state, ON_ERROR);
        }
    }

    /// Bytes that scripts and what they have left behind take.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.core.memory.used
    }

    /// Compiles a chunk.
    fn compile(
        &mut self,
        body: &[u8],
        name: &'static [u8],
        is_script: bool,
    ) -> Result<Code, String> {
        let result = Err(String::new());
        let mut chunk = Chunk { body, name, is_script, dump: Vec::new(), result };
        self.core.frame = (&raw mut chunk).cast();
        // SAFETY: The chunk lives until the call returns, and errors end in it.
        let status = unsafe { call_protected(self.state, self.core.places.load) };
        self.recover();
        if status != LUA_OK { Err("not enough memory".to_owned()) } else { chunk.result }
    }
}

impl Drop for Vm {
    fn drop(&mut self) {
        // SAFETY: Nobody has the state any more.
        unsafe { lua_close(self.state) }
    }
}
