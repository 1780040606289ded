//! What the functions that Lua calls share.

use crate::blocking::Blocking;
use crate::host::{Caller, Data, Host, Ran};
use crate::inbox::Inbox;
use crate::interrupt;
use crate::natives::TlsConnections;
use crate::poller::Poller;
use crate::stack::State;
use crate::values::Types;
use ladon_fibers::{FiberId, FiberMap, Scheduler};
use ladon_iproto::client::Reply;
use ladon_iproto::request::Request;
use ladon_kernel::client::clients::ClientInfo;
use ladon_kernel::program::{Asker, Failed, User};
use ladon_msgpack::{Value, read, read_map};
use mlua::ffi::*;
use std::cell::{Cell, RefCell};
use std::ffi::c_int;
use std::sync::Arc;
use std::time::Instant;

/// A fiber's part of the context: what it has beside its stack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seat {
    /// Whose rights it has.
    pub(crate) user: User,
    /// What it has seen or written is in the log up to here.
    pub(crate) depends: u64,
    /// It has a transaction.
    pub(crate) in_transaction: bool,
    /// It calls what is to be called when tuples change.
    pub(crate) calls_triggers: bool,
}

/// Whose request a fiber serves.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) info: Arc<ClientInfo>,
    pub(crate) user: User,
    /// The number that it has given the request.
    pub(crate) sync: u64,
    /// Where answers go, and what comes before.
    pub(crate) asker: Option<Arc<dyn Asker>>,
}

const NEW_SEAT: Seat =
    Seat { user: User::ADMIN, depends: 0, in_transaction: false, calls_triggers: false };

/// What the functions that Lua calls share. It is one thread's; no borrow of a cell lives across a
/// call into Lua or a switch of fibers.
pub(crate) struct Context {
    pub(crate) types: Cell<Types>,
    /// In sessions of the program's own fibers, errors are errors in MessagePack, not texts.
    pub(crate) marshals_errors: Cell<bool>,
    pub(crate) scheduler: Scheduler,
    pub(crate) poller: Poller,
    pub(crate) blocking: Blocking,
    pub(crate) data: RefCell<Option<Box<dyn Data>>>,
    pub(crate) host: RefCell<Box<dyn Host>>,
    /// The parts of fibers, but that of the one that asked last, which is in front of them.
    seats: RefCell<FiberMap<Seat>>,
    last_seat: Cell<(FiberId, Seat)>,
    /// The clients whose requests are being served, by fiber.
    pub(crate) clients: RefCell<FiberMap<Client>>,
    pub(crate) inbox: Arc<Inbox>,
    /// The program's connections with TLS to others.
    pub(crate) tls: RefCell<TlsConnections>,
    /// Fibers that wait at the gate; each turn they look again.
    pub(crate) at_gate: RefCell<Vec<FiberId>>,
    /// Lua threads that are not in use, with their numbers in the registry.
    pub(crate) threads: RefCell<Vec<(State, c_int)>>,
    /// Buffers that are not in use.
    pub(crate) buffers: RefCell<Vec<Vec<u8>>>,
    pub(crate) began: Instant,
    /// How the program ends, once it does.
    pub(crate) exit: Cell<Option<i32>>,
}

/// No fiber has this number.
const NOBODY: FiberId = FiberId::MAX;

/// Buffers that are kept, and the longest of them.
const BUFFERS_MAX: usize = 64;
const BUFFER_BYTES_MAX: usize = 64 << 10;
/// Lua threads that are kept.
const THREADS_MAX: usize = 256;

impl Context {
    pub(crate) fn new(
        host: Box<dyn Host>,
        (inbox, poll): (Arc<Inbox>, mio::Poll),
        blocking: Blocking,
        fibers_max: usize,
    ) -> Context {
        Context {
            inbox,
            types: Cell::default(),
            marshals_errors: Cell::default(),
            scheduler: Scheduler::new(fibers_max),
            poller: Poller::new(poll),
            blocking,
            data: RefCell::default(),
            host: RefCell::new(host),
            seats: RefCell::default(),
            last_seat: Cell::new((NOBODY, NEW_SEAT)),
            clients: RefCell::default(),
            tls: RefCell::default(),
            at_gate: RefCell::default(),
            threads: RefCell::default(),
            buffers: RefCell::default(),
            began: Instant::now(),
            exit: Cell::new(None),
        }
    }

    /// The context of a function that Lua calls.
    ///
    /// # Safety
    /// Its first upvalue is the context, which lives as long as the state.
    pub(crate) unsafe fn of<'a>(state: State) -> &'a Context {
        // SAFETY: As promised.
        unsafe { &*lua_touserdata(state, lua_upvalueindex(1)).cast::<Context>() }
    }

    /// Nanoseconds since the start.
    pub(crate) fn now_ns(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    pub(crate) fn take_buffer(&self) -> Vec<u8> {
        self.buffers.borrow_mut().pop().unwrap_or_default()
    }

    pub(crate) fn give_buffer(&self, mut buffer: Vec<u8>) {
        let mut buffers = self.buffers.borrow_mut();
        if buffers.len() < BUFFERS_MAX && buffer.capacity() <= BUFFER_BYTES_MAX {
            buffer.clear();
            buffers.push(buffer);
        }
    }

    /// A Lua thread with nothing on it, and its number in the registry.
    ///
    /// # Safety
    /// As for [`crate::stack`].
    pub(crate) unsafe fn take_thread(&self, state: State) -> (State, c_int) {
        let kept = self.threads.borrow_mut().pop();
        kept.unwrap_or_else(|| {
            // SAFETY: As promised. The registry keeps it.
            unsafe {
                let thread = lua_newthread(state);
                (thread, luaL_ref(state, LUA_REGISTRYINDEX))
            }
        })
    }

    /// Gives one back on which nothing runs.
    ///
    /// # Safety
    /// As for [`crate::stack`].
    pub(crate) unsafe fn give_thread(&self, (thread, number): (State, c_int)) {
        let mut threads = self.threads.borrow_mut();
        // SAFETY: As promised.
        unsafe {
            self.renew_thread(thread);
            if threads.len() < THREADS_MAX {
                threads.push((thread, number));
            } else {
                luaL_unref(thread, LUA_REGISTRYINDEX, number);
            }
        }
    }

    /// Makes a Lua thread as new, on which nothing runs.
    ///
    /// # Safety
    /// As for [`crate::stack`].
    pub(crate) unsafe fn renew_thread(&self, thread: State) {
        // SAFETY: As promised.
        unsafe {
            lua_settop(thread, 0);
            // Its globals may have been exchanged.
            lua_getfield(thread, LUA_REGISTRYINDEX, c"ladon.globals".as_ptr());
            lua_replace(thread, LUA_GLOBALSINDEX);
        }
    }

    /// The running fiber is over. If it was to end, what knows of it learns that: the error has skipped
    /// its own.
    ///
    /// # Safety
    /// As for [`crate::stack`]; nothing runs on `thread`.
    pub(crate) unsafe fn fiber_ends(&self, thread: State) {
        // SAFETY: As promised.
        unsafe {
            if interrupt::fiber_ends(thread, &self.inbox) {
                lua_settop(thread, 0);
                lua_getfield(thread, LUA_REGISTRYINDEX, c"ladon.ended".as_ptr());
                lua_pcall(thread, 0, 0, 0);
            }
        }
    }

    /// The user who has a number now.
    pub(crate) fn user(&self, number: u32) -> User {
        let data = self.data.borrow();
        data.as_ref().map_or(User { number, since: 0 }, |data| data.user(number))
    }

    /// The running fiber's part.
    #[inline]
    pub(crate) fn seat(&self) -> Seat {
        let current = self.scheduler.current();
        let (last, seat) = self.last_seat.get();
        if last == current { seat } else { self.take_seat(current) }
    }

    /// The part of a fiber, which is in front of the others' from now on.
    #[cold]
    fn take_seat(&self, fiber: FiberId) -> Seat {
        let mut seats = self.seats.borrow_mut();
        let (last, seat) = self.last_seat.get();
        if last != NOBODY {
            seats.insert(last, seat);
        }
        let seat = seats.remove(&fiber).unwrap_or(NEW_SEAT);
        self.last_seat.set((fiber, seat));
        seat
    }

    pub(crate) fn change_seat(&self, change: impl FnOnce(&mut Seat)) {
        let mut seat = self.seat();
        change(&mut seat);
        self.last_seat.set((self.scheduler.current(), seat));
    }

    /// The running fiber is over: its transaction, if it has one, is taken back.
    pub(crate) fn leave_seat(&self) {
        if self.seat().in_transaction {
            let mut reply = self.take_buffer();
            // What was never committed has no error to tell.
            let _ = self.request(&Request::Rollback, &mut reply);
            self.give_buffer(reply);
        }
        self.last_seat.set((NOBODY, NEW_SEAT));
    }

    /// Waits until what the running fiber has seen and written may be shown to the world.
    pub(crate) fn pass_gate(&self) {
        let depends = self.seat().depends;
        loop {
            let has_passed = match &mut *self.data.borrow_mut() {
                Some(data) if depends != 0 => data.has_passed(depends),
                _ => true,
            };
            if has_passed {
                return;
            }
            self.at_gate.borrow_mut().push(self.scheduler.current());
            self.scheduler.wait(None);
        }
    }

    /// Runs a request and waits, if it must, until it is answered. `reply` has the packet then, with
    /// its length in front. In a transaction, it is one of its stream.
    ///
    /// # Errors
    /// There is no data yet.
    pub(crate) fn request(&self, request: &Request<'_>, reply: &mut Vec<u8>) -> Result<(), Failed> {
        let Seat { user, calls_triggers, in_transaction, .. } = self.seat();
        let in_transaction = in_transaction || matches!(request, Request::Begin(_));
        let caller = Caller { fiber: self.scheduler.current(), user, calls_triggers };
        self.ask(|data| {
            reply.clear();
            Ok(data.run(caller, in_transaction, request, reply))
        })
    }

    /// Runs a command of Redis by the rights of the user who has this name, and waits, if it must, until it
    /// is answered. `reply` is of RESP3 then.
    ///
    /// # Errors
    /// There is no data yet, or the user is gone.
    pub(crate) fn command(
        &self,
        name: &str,
        args: &[&[u8]],
        reply: &mut Vec<u8>,
    ) -> Result<(), Failed> {
        let Seat { user, calls_triggers, in_transaction, .. } = self.seat();
        let caller = Caller { fiber: self.scheduler.current(), user, calls_triggers };
        self.ask(|data| {
            reply.clear();
            data.command(caller, in_transaction, (name, args), reply)
        })
    }

    /// Asks until there is an answer, on which the running fiber depends from then on.
    fn ask(&self, mut ask: impl FnMut(&mut dyn Data) -> Result<Ran, Failed>) -> Result<(), Failed> {
        let depends = loop {
            let ran = match &mut *self.data.borrow_mut() {
                Some(data) => ask(&mut **data)?,
                None => return Err(not_configured()),
            };
            match ran {
                Ran::Replied { depends } => break depends,
                Ran::Again { after_ms: 0 } => self.scheduler.give_way(),
                Ran::Again { after_ms } => {
                    self.scheduler.wait(Some(self.now_ns() + after_ms * 1_000_000));
                }
            }
        };
        self.change_seat(|seat| seat.depends = seat.depends.max(depends));
        Ok(())
    }
}

/// The error of a reply, if it is one.
pub(crate) fn failed(reply: &Reply<'_>) -> Option<Failed> {
    let code = reply.error_code()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let class = reply.stack.first().map_or("ClientError".to_owned(), |it| {
        // One of a program's own says its class in a field.
        let own = it.fields.filter(|_| it.class == b"CustomError").and_then(custom_type);
        text(own.unwrap_or(it.class))
    });
    Some(Failed::new(code, text(reply.error.unwrap_or_default()), &class))
}

fn custom_type(mut fields: &[u8]) -> Option<&[u8]> {
    for _ in 0..read_map(&mut fields).ok()? {
        let (name, value) = (read(&mut fields).ok()?, read(&mut fields).ok()?);
        if let (Value::Str(b"custom_type"), Value::Str(class)) = (name, value) {
            return Some(class);
        }
    }
    None
}

/// `ER_UNSUPPORTED`'s relative: box was asked for something before `box.cfg`.
pub(crate) fn not_configured() -> Failed {
    let message = "Please call box.cfg{} first".to_owned();
    Failed::new(0, message, "LuajitError")
}
