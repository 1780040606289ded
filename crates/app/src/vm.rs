//! The machine: one Lua state, its fibers, and the loop that they run in.

use crate::blocking::{self, Blocking};
use crate::context::{Client, Context};
use crate::host::Host;
use crate::inbox::Inbox;
use crate::interrupt;
use crate::memory::{Memory, allocate};
use crate::natives;
use crate::serve::{Entry, failed_of, serve};
use crate::stack::{State, bytes, push_bytes};
use ladon_kernel::program::{Answer, Asker, Failed, Request};
use ladon_kernel::untaken::Counted;
use mlua::ffi::*;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ffi::{CStr, CString, c_int};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// What a machine is created with.
#[derive(Clone, Debug)]
pub struct VmOptions {
    /// The most memory that Lua may take, in bytes.
    pub memory_bytes_max: usize,
    /// The most fibers.
    pub fibers_max: usize,
}

impl Default for VmOptions {
    fn default() -> VmOptions {
        VmOptions { memory_bytes_max: 2 << 30, fibers_max: 100_000 }
    }
}

/// A program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// What comes in front of its file.
    pub before: Vec<Before>,
    /// Its file, `-` for the standard input.
    pub file: Option<PathBuf>,
    /// What follows the file on the command line.
    pub arguments: Vec<String>,
    /// A console follows it.
    pub is_interactive: bool,
}

/// What a command line has run in front of a program's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Before {
    /// `-e`: this text.
    Run(String),
    /// `-l`: a library is required.
    Require(String),
}

/// Fibers that run in one turn of the loop.
const FIBERS_A_TURN: usize = 1_000;
/// So often the loop looks whether the process is to end.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What of `lua/*.lua` is run when a machine begins, in this order.
const FILES: &[(&str, &str)] = &[
    ("boot", include_str!("../lua/boot.lua")),
    ("error", include_str!("../lua/error.lua")),
    ("tuple", include_str!("../lua/tuple.lua")),
    ("fiber", include_str!("../lua/fiber.lua")),
    ("session", include_str!("../lua/session.lua")),
    ("socket", include_str!("../lua/socket.lua")),
    ("tls", include_str!("../lua/tls.lua")),
    ("space", include_str!("../lua/space.lua")),
    ("schema", include_str!("../lua/schema.lua")),
    ("schema_spaces", include_str!("../lua/schema_spaces.lua")),
    ("schema_indexes", include_str!("../lua/schema_indexes.lua")),
    ("schema_sequences", include_str!("../lua/schema_sequences.lua")),
    ("schema_users", include_str!("../lua/schema_users.lua")),
    ("schema_functions", include_str!("../lua/schema_functions.lua")),
    ("replication", include_str!("../lua/replication.lua")),
    ("cfg", include_str!("../lua/cfg.lua")),
    ("box", include_str!("../lua/box.lua")),
    ("watch", include_str!("../lua/watch.lua")),
    ("triggers", include_str!("../lua/triggers.lua")),
    ("transaction", include_str!("../lua/transaction.lua")),
    ("commands", include_str!("../lua/commands.lua")),
    ("box/net_box", include_str!("../lua/netbox.lua")),
    ("key_def", include_str!("../lua/key_def.lua")),
    ("merger", include_str!("../lua/merger.lua")),
    ("popen", include_str!("../lua/popen.lua")),
    ("http_files", include_str!("../lua/http_files.lua")),
    ("http", include_str!("../lua/http.lua")),
    ("console_remote", include_str!("../lua/console_remote.lua")),
    ("console", include_str!("../lua/console.lua")),
    ("http_client", include_str!("../lua/http_client.lua")),
];

/// The answers of one turn, which leave at its end; `None` for a request that is given back.
type Answers = Rc<RefCell<Vec<(Option<Arc<dyn Asker>>, Option<Made>)>>>;

/// What was taken from the inbox and has no fiber yet.
type Requests = Rc<RefCell<VecDeque<Request>>>;

/// An answer, and that its bytes are counted.
type Made = (Answer, Option<Counted>);

/// The machine of a program. It stays on its thread.
pub struct Vm {
    state: State,
    context: Box<Context>,
    /// Its place is known to the state's allocator.
    memory: Box<Memory>,
    inbox: Arc<Inbox>,
    answers: Answers,
    requests: Requests,
    entry: Rc<Cell<Entry>>,
}

impl Vm {
    /// A machine that has not run anything.
    ///
    /// # Errors
    /// The memory is not enough for the libraries.
    pub fn new(host: Box<dyn Host>, inbox: Arc<Inbox>, options: &VmOptions) -> Result<Vm, String> {
        let poll = inbox.take_poll().ok_or("the inbox has a machine already")?;
        let blocking = Blocking::new(Arc::clone(&inbox));
        let context =
            Box::new(Context::new(host, (Arc::clone(&inbox), poll), blocking, options.fibers_max));
        let mut memory = Box::new(Memory {
            used: 0,
            max: options.memory_bytes_max,
            was_refused: Cell::new(false),
        });
        // SAFETY: The memory keeps its address, and is dropped after the state is closed.
        let state = unsafe { lua_newstate(allocate, (&raw mut *memory).cast()) };
        if state.is_null() {
            return Err("the program's machine has too little memory to begin with".to_owned());
        }
        // SAFETY: The state is not closed, as below: the process ends with its machine.
        unsafe { interrupt::prepare(state, &inbox, context.scheduler.running()) }
            .map_err(|error| format!("cannot handle signals: {error}"))?;
        let (answers, requests) = (Answers::default(), Requests::default());
        let entry = Rc::default();
        let vm = Vm { state, context, memory, inbox, answers, requests, entry };
        vm.build()?;
        Ok(vm)
    }

    /// Opens the libraries, and runs [`FILES`].
    fn build(&self) -> Result<(), String> {
        let state = self.state;
        // SAFETY: The state is live, and errors end in protected calls; the context outlives it.
        unsafe {
            luaL_openlibs(state);
            lua_pushcclosure(state, open_modules, 0);
            lua_pushlightuserdata(state, (&raw const *self.context).cast_mut().cast());
            if lua_pcall(state, 1, 0, 0) != LUA_OK {
                let text = bytes(state, -1).unwrap_or_default();
                return Err(String::from_utf8_lossy(text).into_owned());
            }
            natives::push_all(state, &raw const *self.context);
            for (name, text) in FILES {
                let chunk = CString::new(format!("@builtin/{name}.lua")).unwrap_or_default();
                let status =
                    luaL_loadbuffer(state, text.as_ptr().cast(), text.len(), chunk.as_ptr());
                lua_pushvalue(state, 1);
                if status != LUA_OK || lua_pcall(state, 1, 0, 0) != LUA_OK {
                    let at = if status == LUA_OK { -1 } else { -2 };
                    let text = bytes(state, at).unwrap_or_default();
                    return Err(String::from_utf8_lossy(text).into_owned());
                }
            }
            lua_settop(state, 0);
            self.entry.set(Entry::of(state));
        }
        Ok(())
    }

    /// Runs a program to its end: that of its file if it has not called `box.cfg`, else that of the
    /// process. Returns the exit code.
    pub fn run(&mut self, program: Program) -> i32 {
        let is_over = Rc::new(RefCell::new(None));
        self.begin(program, Rc::clone(&is_over));
        loop {
            self.take_requests();
            self.context.blocking.finish(&self.context.scheduler);
            self.end_doomed();
            if self.inbox.take_end() {
                self.call_in_fiber(c"ladon.end", None);
            }
            for fiber in self.context.at_gate.take() {
                self.context.scheduler.wake(fiber);
            }
            let next = self.context.scheduler.turn(self.context.now_ns(), FIBERS_A_TURN);
            self.settle();
            if let Some(code) = self.context.exit.get() {
                return code;
            }
            let is_configured = self.context.data.borrow().is_some();
            match *is_over.borrow() {
                Some(Err(())) => return 1,
                Some(Ok(())) if !is_configured => return 0,
                _ => {}
            }
            if self.context.host.borrow().is_stopping() {
                return 0;
            }
            let most = match next {
                // Sockets are looked at between turns.
                Some(0) => Duration::ZERO,
                Some(at) => {
                    let left = at.saturating_sub(self.context.now_ns());
                    Duration::from_nanos(left).min(LOOK_EVERY)
                }
                None => LOOK_EVERY,
            };
            self.context.poller.sleep(most, &self.context.scheduler);
        }
    }

    /// Bytes that Lua has.
    pub fn memory_bytes(&self) -> usize {
        self.memory.used
    }

    /// Starts the fiber of the program's file. It notes how that ended.
    fn begin(&self, program: Program, is_over: Rc<RefCell<Option<Result<(), ()>>>>) {
        let (state, of) = (self.state, &raw const *self.context);
        let body = Box::new(move || {
            // SAFETY: The context and the state outlive the fibers; errors end in protected calls.
            let done = unsafe { run_file(state, &program) };
            // SAFETY: As above.
            let context = unsafe { &*of };
            // SAFETY: As above.
            unsafe { context.fiber_ends(state) };
            context.leave_seat();
            if let Err(text) = &done {
                eprintln!("{text}\nfatal error, exiting the event loop");
            }
            *is_over.borrow_mut() = Some(done.map_err(drop));
        });
        if let Err(error) = self.context.scheduler.queue(body) {
            eprintln!("{error}");
            self.context.exit.set(Some(1));
        }
    }

    /// Ends fibers that wait, if somebody has asked for that: as `fiber.kill` does.
    fn end_doomed(&self) {
        for fiber in self.inbox.take_kills() {
            self.call_in_fiber(c"ladon.kill", Some(fiber as f64));
        }
    }

    /// Calls a function of the registry in a fiber of its own.
    fn call_in_fiber(&self, name: &'static CStr, argument: Option<f64>) {
        let (state, of) = (self.state, &raw const *self.context);
        let body = Box::new(move || {
            // SAFETY: As for `start_server`.
            unsafe {
                let taken = (*of).take_thread(state);
                let thread = taken.0;
                lua_getfield(thread, LUA_REGISTRYINDEX, name.as_ptr());
                if let Some(argument) = argument {
                    lua_pushnumber(thread, argument);
                }
                // What it is about may be gone.
                lua_pcall(thread, c_int::from(argument.is_some()), 0, 0);
                (*of).leave_seat();
                (*of).give_thread(taken);
            }
        });
        // Without room for it, there is nothing to be done.
        let _ = self.context.scheduler.start(body);
    }

    /// Serves the requests that have come.
    fn take_requests(&self) {
        let taken = self.inbox.take();
        if taken.is_empty() {
            return;
        }
        self.requests.borrow_mut().extend(taken);
        // A fiber serves one after the other, until it has to wait.
        while !self.requests.borrow().is_empty() {
            if let Err(error) = self.start_server() {
                let refused = out_of_memory(error.to_string());
                let request = self.requests.borrow_mut().pop_front();
                let asker = request.and_then(|request| request.asker);
                self.answers.borrow_mut().push((asker, Some((refused, None))));
            }
        }
    }

    /// Starts a fiber that serves what there is to serve, of connections that have room for answers.
    /// Each request has a fiber's number of its own.
    fn start_server(&self) -> Result<(), ladon_fibers::StartError> {
        let (state, of) = (self.state, &raw const *self.context);
        let (answers, requests) = (Rc::clone(&self.answers), Rc::clone(&self.requests));
        let entry = Rc::clone(&self.entry);
        let memory = &raw const *self.memory;
        let body = Box::new(move || {
            // SAFETY: The context and the state outlive the fibers. The thread is kept in the
            // registry while it runs; if there is no memory for it, the machine is at its end.
            unsafe {
                let context = &*of;
                let thread = context.take_thread(state);
                let mut is_first = true;
                loop {
                    let Some(request) = requests.borrow_mut().pop_front() else { break };
                    // Answers of those before it count already.
                    let asker = request.asker.as_ref();
                    let has_room = asker.is_none_or(|asker| asker.has_room());
                    if !has_room && request.kind.may_wait() {
                        answers.borrow_mut().push((request.asker, None));
                        continue;
                    }
                    if !std::mem::take(&mut is_first) {
                        context.renew_thread(thread.0);
                        context.scheduler.renew();
                    }
                    let made = serve_one(context, thread.0, entry.get(), &request);
                    // Whoever took it all has left it: the next one is not to fail for that.
                    if (*memory).was_refused.take() {
                        lua_gc(thread.0, LUA_GCCOLLECT, 0);
                    }
                    answers.borrow_mut().push((request.asker, Some(made)));
                }
                context.give_thread(thread);
            }
        });
        self.context.scheduler.start(body).map(drop)
    }

    /// Passes on what the turn has left, and then the answers, which depend on it.
    fn settle(&self) {
        if let Some(data) = &mut *self.context.data.borrow_mut() {
            data.settle();
        }
        let answers = std::mem::take(&mut *self.answers.borrow_mut());
        self.inbox.answered(answers.len());
        // One wake-up for each thread that gets some.
        let mut threads: Vec<Arc<dyn Asker>> = Vec::new();
        for (asker, made) in answers {
            let Some(asker) = asker else { continue };
            match made {
                Some((answer, counted)) => asker.answer(answer, counted),
                None => asker.postpone(),
            }
            if threads.iter().all(|other| other.thread() != asker.thread()) {
                threads.push(asker);
            }
        }
        threads.iter().for_each(|asker| asker.wake());
    }
}

impl Drop for Vm {
    fn drop(&mut self) {
        // The state is not closed: fibers that wait are still on their stacks, with values of it.
        // The process ends with its program.
    }
}

/// Serves a request in the running fiber.
///
/// # Safety
/// As for [`serve`].
unsafe fn serve_one(context: &Context, thread: State, entry: Entry, request: &Request) -> Made {
    let client = Client {
        info: Arc::clone(&request.client),
        user: request.user,
        sync: request.sync,
        asker: request.asker.clone(),
    };
    let current = context.scheduler.current();
    context.clients.borrow_mut().insert(current, client);
    // SAFETY: As promised.
    let answer = unsafe {
        let answer = serve(context, thread, entry, request);
        context.fiber_ends(thread);
        answer
    };
    context.clients.borrow_mut().remove(&current);
    context.leave_seat();
    counted(request.asker.as_deref(), answer)
}

/// An answer, counted; in its place an error, if there is no room for it.
fn counted(asker: Option<&dyn Asker>, answer: Answer) -> Made {
    let Some(asker) = asker else { return (answer, None) };
    match asker.count(answer.bytes()) {
        Some(counted) => (answer, Some(counted)),
        None => {
            let text = "answers that clients have not taken have all the memory that they may have";
            (out_of_memory(text.to_owned()), None)
        }
    }
}

/// `ER_MEMORY_ISSUE`.
fn out_of_memory(message: String) -> Answer {
    let failed = Failed::new(2, message, "OutOfMemory");
    Answer { result: Err(failed), depends: 0 }
}

/// Makes the modules known that need no box.
unsafe extern "C-unwind" fn open_modules(state: State) -> c_int {
    // SAFETY: LuaJIT's own libraries are open, and this is a protected call.
    unsafe {
        let context = lua_touserdata(state, 1);
        ladon_modules::set_blocking_runner(state, blocking::run, context);
        ladon_modules::preload(state);
        ladon_modules::extend(state);
    }
    0
}

/// Pushes a list: of `{true, TEXT}` for what runs, and `{false, NAME}` for what is required.
unsafe fn push_before(state: State, before: &[Before]) {
    // SAFETY: As promised by the caller.
    unsafe {
        lua_createtable(state, before.len() as c_int, 0);
        for (number, one) in (1..).zip(before) {
            let (runs, text) = match one {
                Before::Run(text) => (true, text),
                Before::Require(name) => (false, name),
            };
            lua_createtable(state, 2, 0);
            lua_pushboolean(state, c_int::from(runs));
            lua_rawseti(state, -2, 1);
            push_bytes(state, text.as_bytes());
            lua_rawseti(state, -2, 2);
            lua_rawseti(state, -2, number);
        }
    }
}

/// The file that runs the program. A link keeps its name: what is started by it runs a program too.
fn executable() -> PathBuf {
    let own = std::env::current_exe().unwrap_or_default();
    let called = PathBuf::from(std::env::args_os().next().unwrap_or_default());
    if called.file_name().is_none_or(|name| name != "tarantool") {
        return own;
    }
    if called.components().count() > 1 {
        return std::path::absolute(called).unwrap_or(own);
    }
    let found = std::env::var_os("PATH").and_then(|folders| {
        let mut places = std::env::split_paths(&folders).map(|folder| folder.join(&called));
        places.find(|place| place.canonicalize().is_ok_and(|it| it == own))
    });
    found.unwrap_or(own)
}

/// Loads a file and calls it with its arguments, in the running fiber.
unsafe fn run_file(main: State, program: &Program) -> Result<(), String> {
    // SAFETY: As promised by the caller.
    unsafe {
        let state = lua_newthread(main);
        let anchor = luaL_ref(main, LUA_REGISTRYINDEX);
        lua_getfield(state, LUA_REGISTRYINDEX, c"ladon.program".as_ptr());
        match &program.file {
            Some(file) => push_bytes(state, file.as_os_str().as_encoded_bytes()),
            None => lua_pushnil(state),
        }
        lua_pushboolean(state, c_int::from(program.is_interactive));
        push_before(state, &program.before);
        let executable = executable();
        push_bytes(state, executable.as_os_str().as_encoded_bytes());
        for argument in &program.arguments {
            push_bytes(state, argument.as_bytes());
        }
        let status = lua_pcall(state, program.arguments.len() as c_int + 4, 0, 0);
        let done = match status {
            LUA_OK => Ok(()),
            _ => {
                let failed = failed_of(state);
                Err(format!("{}: {}", failed.class, failed.message))
            }
        };
        luaL_unref(main, LUA_REGISTRYINDEX, anchor);
        done
    }
}
