//! The virtual machine.

use crate::convert::{from_resp, to_resp};
use crate::{Ended, Host, LogLevel};
use ladon_resp::{Proto, Reply};
use mlua::{Function, HookTriggers, Lua, MultiValue, RegistryKey, Value, VmState};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// Limits of a virtual machine.
#[derive(Clone, Copy, Debug)]
pub struct VmOptions {
    /// Bytes that scripts may take.
    pub memory_bytes_max: usize,
}

impl Default for VmOptions {
    fn default() -> VmOptions {
        VmOptions { memory_bytes_max: 256 << 20 }
    }
}

/// A compiled script.
#[derive(Clone, Debug)]
pub struct ScriptHandle {
    function: Arc<RegistryKey>,
    digest: [u8; 40],
}

/// The host of the script that runs; only set while it does.
#[derive(Clone, Copy)]
struct HostPtr(NonNull<dyn Host>);
// SAFETY: used by the thread that runs the script only.
unsafe impl Send for HostPtr {}

#[derive(Default)]
struct State {
    host: Mutex<Option<HostPtr>>,
    poisoned: AtomicBool,
}

impl State {
    fn with<R>(&self, run: impl FnOnce(&mut dyn Host) -> R) -> mlua::Result<R> {
        let host = *self.host.lock().expect("no panic");
        let Some(HostPtr(mut host)) = host else {
            return Err(mlua::Error::runtime("redis.call/pcall can only be called inside a script invocation"));
        };
        // SAFETY: `run` keeps the host borrowed for as long as it is set here.
        Ok(run(unsafe { host.as_mut() }))
    }

    fn stop<R>(&self) -> mlua::Result<R> {
        self.poisoned.store(true, Relaxed);
        Err(mlua::Error::runtime("stopped"))
    }
}

/// A virtual machine.
pub struct Vm {
    lua: Lua,
    state: Arc<State>,
    reseed: Function,
    /// Lua's own.
    pcall: Function,
}

impl Vm {
    /// A machine without scripts.
    pub fn new(options: VmOptions) -> Vm {
        Vm::make(options).expect("the environment can be made")
    }

    fn make(options: VmOptions) -> mlua::Result<Vm> {
        // SAFETY: the debug library is removed from the environment again.
        let lua = unsafe { Lua::unsafe_new() };
        // The hook is not called from compiled code.
        lua.load("jit.off()").exec()?;
        let pcall: Function = lua.globals().get("pcall")?;
        let state = Arc::new(State::default());
        let redis = lua.create_table()?;
        lua.globals().set("redis", &redis)?;
        let shared = Arc::clone(&state);
        let raw_call = lua.create_function(move |lua, args: MultiValue| {
            if shared.poisoned.load(Relaxed) {
                return shared.stop();
            }
            let mut texts: Vec<Vec<u8>> = Vec::with_capacity(args.len());
            for arg in &args {
                match arg {
                    Value::String(text) => texts.push(text.as_bytes().to_vec()),
                    Value::Integer(number) => texts.push(number.to_string().into_bytes()),
                    Value::Number(number) if number.fract() == 0.0 && number.abs() < 1e17 => {
                        texts.push((*number as i64).to_string().into_bytes());
                    }
                    Value::Number(number) => texts.push(format!("{number:.17}").into_bytes()),
                    _ => {
                        let table = lua.create_table()?;
                        table.raw_set(
                            "err",
                            "ERR Lua redis lib command arguments must be strings or integers",
                        )?;
                        return Ok((true, Value::Table(table)));
                    }
                }
            }
            if texts.is_empty() {
                let table = lua.create_table()?;
                table.raw_set(
                    "err",
                    "ERR Please specify at least one argument for this redis.call()",
                )?;
                return Ok((true, Value::Table(table)));
            }
            let texts: Vec<&[u8]> = texts.iter().map(Vec::as_slice).collect();
            let mut reply = Vec::new();
            if shared.with(|host| host.call(&texts, &mut reply))?.is_err() {
                return shared.stop();
            }
            let (value, _) = from_resp(lua, &reply)?;
            Ok((reply.first() == Some(&b'-'), value))
        })?;
        let shared = Arc::clone(&state);
        let log = lua.create_function(move |_, (level, text): (i64, mlua::String)| {
            let level = match level {
                0 => LogLevel::Debug,
                1 => LogLevel::Verbose,
                2 => LogLevel::Notice,
                _ => LogLevel::Warning,
            };
            shared.with(|host| host.log(level, &text.as_bytes()))
        })?;
        redis.set("log", log)?;
        let shared = Arc::clone(&state);
        let setresp = lua.create_function(move |_, version: i64| {
            let proto = if version == 3 { Proto::Resp3 } else { Proto::Resp2 };
            shared.with(|host| host.set_resp(proto))
        })?;
        redis.set("setresp", setresp)?;
        let sha1hex = lua.create_function(|lua, text: mlua::String| {
            lua.create_string(crate::sha1_hex(&text.as_bytes()))
        })?;
        redis.set("sha1hex", sha1hex)?;
        let reseed: Function = lua.load("math.randomseed(0)").into_function()?;
        for (name, level) in [("LOG_DEBUG", 0), ("LOG_VERBOSE", 1), ("LOG_NOTICE", 2), ("LOG_WARNING", 3)] {
            redis.set(name, level)?;
        }
        lua.globals().set("KEYS", lua.create_table()?)?;
        lua.globals().set("ARGV", lua.create_table()?)?;
        let shared = Arc::clone(&state);
        let is_stopped =
            lua.create_function(move |_, ()| Ok(shared.poisoned.load(Relaxed)))?;
        lua.load(include_str!("prelude.lua")).set_name("=prelude").call::<()>((raw_call, is_stopped, redis))?;
        lua.set_memory_limit(options.memory_bytes_max).ok();
        let shared = Arc::clone(&state);
        let triggers = HookTriggers::new().every_nth_instruction(10_000);
        lua.set_global_hook(triggers, move |_, _| {
            let host = shared.host.lock().expect("no panic").is_some();
            if host && (shared.poisoned.load(Relaxed) || shared.with(|host| host.tick())?.is_err()) {
                return shared.stop();
            }
            Ok(VmState::Continue)
        })?;
        Ok(Vm { lua, state, reseed, pcall })
    }

    /// Compiles a script.
    ///
    /// # Errors
    /// The text of the error reply.
    pub fn load(&mut self, digest: &[u8; 40], body: &[u8]) -> Result<ScriptHandle, String> {
        let chunk = self.lua.load(body).set_name("@user_script").set_mode(mlua::ChunkMode::Text);
        let failed = |error: mlua::Error| {
            let text = error.to_string();
            let text = text.strip_prefix("syntax error: ").unwrap_or(&text).to_owned();
            format!("ERR Error compiling script (new function): {text}")
        };
        let function = chunk.into_function().map_err(failed)?;
        let key = self.lua.create_registry_value(function).map_err(failed)?;
        Ok(ScriptHandle { function: Arc::new(key), digest: *digest })
    }

    /// Forgets a script.
    pub fn unload(&mut self, handle: ScriptHandle) {
        drop(handle);
        self.lua.expire_registry_values();
    }

    /// Runs a script; appends its reply to `out`.
    pub fn run(
        &mut self,
        script: &ScriptHandle,
        keys: &[&[u8]],
        args: &[&[u8]],
        proto: Proto,
        host: &mut dyn Host,
        out: &mut Vec<u8>,
    ) -> Ended {
        // SAFETY: the pointer is removed before the borrow ends.
        let host: NonNull<dyn Host> = unsafe { std::mem::transmute(NonNull::from(host)) };
        *self.state.host.lock().expect("no panic") = Some(HostPtr(host));
        self.state.poisoned.store(false, Relaxed);
        let result = self.call(script, keys, args);
        *self.state.host.lock().expect("no panic") = None;
        if self.state.poisoned.load(Relaxed) {
            return Ended::Stopped;
        }
        let mut reply = Reply::new(out, proto);
        let position = reply.position();
        let written = match result {
            Ok(value) => to_resp(&value, 0, &mut reply).map_err(|error| error.to_string()),
            Err(error) => Err(error),
        };
        if let Err(text) = written {
            reply.rewind(position);
            reply.error(text);
        }
        Ended::Replied
    }

    fn call(&self, script: &ScriptHandle, keys: &[&[u8]], args: &[&[u8]]) -> Result<Value, String> {
        let run = || {
            let list = |texts: &[&[u8]]| {
                let table = self.lua.create_table_with_capacity(texts.len(), 0)?;
                for (at, text) in texts.iter().enumerate() {
                    table.raw_set(at + 1, self.lua.create_string(text)?)?;
                }
                Ok::<_, mlua::Error>(table)
            };
            let globals = self.lua.globals();
            globals.raw_set("KEYS", list(keys)?)?;
            globals.raw_set("ARGV", list(args)?)?;
            self.reseed.call::<()>(())?;
            let function: Function = self.lua.registry_value(&script.function)?;
            // Errors may be tables, which only Lua's own pcall passes on.
            self.pcall.call::<(bool, Value)>(function)
        };
        match run() {
            Ok((true, value)) => Ok(value),
            Ok((false, error)) => Err(self.text_of(script, error)),
            Err(error) => Err(format!("ERR {error}")),
        }
    }

    fn text_of(&self, script: &ScriptHandle, error: Value) -> String {
        let digest = String::from_utf8_lossy(&script.digest);
        match error {
            Value::Table(table) => {
                let text: String = table.raw_get("err").unwrap_or_default();
                match table.raw_get::<Option<i64>>("line") {
                    Ok(Some(line)) => format!("{text} script: {digest}, on @user_script:{line}."),
                    _ => text,
                }
            }
            Value::String(text) => {
                let text = text.to_string_lossy();
                // `user_script:7: what happened`
                let line = text.split(':').nth(1).filter(|_| text.starts_with("user_script:"));
                let line = line.and_then(|line| line.parse::<u32>().ok()).unwrap_or(1);
                format!("ERR {text} script: {digest}, on @user_script:{line}.")
            }
            value => {
                let text = value.to_string().unwrap_or_default();
                format!("ERR {text} script: {digest}, on @user_script:1.")
            }
        }
    }

    /// Bytes that it takes.
    pub fn memory_bytes(&self) -> usize {
        self.lua.used_memory()
    }
}
