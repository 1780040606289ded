//! Fibers: code that waits in the middle of anything, on stacks of their own, all on one thread.
//!
//! ```text
//!   start(body) ──> runs at once, on a stack of its own ──> wait(deadline) ──> goes on later
//!                                                              │
//!   turn(now): timers that are due, then what is ready <───────┘ wake(fiber)
//! ```
//!
//! There is no thread, no clock and no socket in here: whoever owns the [`Scheduler`] tells it the
//! time and calls [`Scheduler::turn`]. A fiber that was started runs at once, and who started it
//! goes on when it waits for the first time or ends; what is ready runs in the order in which it
//! became so. That is the order that Tarantool's fibers have
//! (<https://www.tarantool.io/en/doc/latest/reference/reference_lua/fiber/>).
//!
//! # Invariants
//!
//! - **No borrow lives across a switch.** Everything that a fiber and the scheduler share is in
//!   cells that are let go before stacks are switched.
//! - **A body never unwinds.** The process ends at a panic (`panic = "abort"`), and Lua's errors end
//!   in the protected call that the body makes.

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Names a fiber; numbers are not given again. The first is 101: Tarantool keeps those below for
/// fibers of the system.
pub type FiberId = u64;

/// A map by fiber. The numbers come one after the other, and nobody chooses them.
pub type FiberMap<T> = HashMap<FiberId, T, BuildHasherDefault<FiberHasher>>;

/// Spreads numbers over the bits that a table looks at.
#[derive(Default)]
pub struct FiberHasher(u64);

impl Hasher for FiberHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// What a fiber does.
pub type Body = Box<dyn FnOnce()>;

/// Bytes of a fiber's stack, of which memory is taken only for what is touched: Tarantool's.
const STACK_BYTES: usize = 512 << 10;
/// Stacks that are kept for the next fibers.
const IDLE_MAX: usize = 256;
const FIRST: FiberId = 101;

/// Why a wait is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// Somebody has called [`Scheduler::wake`].
    Called,
    /// Its time has come.
    InTime,
}

/// Why a fiber could not be started.
#[derive(Debug)]
pub enum StartError {
    /// There are as many as there may be.
    TooMany(usize),
    /// The system has no memory for its stack.
    NoStack(io::Error),
}

impl std::fmt::Display for StartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StartError::TooMany(max) => write!(f, "there are {max} fibers already"),
            StartError::NoStack(error) => write!(f, "no memory for a fiber's stack: {error}"),
        }
    }
}

impl std::error::Error for StartError {}

/// What a stack says when it is left.
enum Left {
    /// Its fiber waits.
    Waits,
    /// Its fiber is over: it takes another one.
    Over,
}

type Switch = Yielder<Option<Body>, Left>;
type Stack = Coroutine<Option<Body>, Left, (), DefaultStack>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It runs, or has started another one that runs.
    Runs,
    Ready(Woken),
    Waits,
}

struct Fiber {
    /// `None` while it runs.
    stack: Option<Stack>,
    /// What leaves its stack. It lives there.
    switch: *const Switch,
    state: State,
    deadline: Option<u64>,
    switches: u64,
}

#[derive(Default)]
struct Fibers {
    all: FiberMap<Fiber>,
    idle: Vec<Stack>,
    ready: VecDeque<FiberId>,
    /// By time, nanoseconds of the owner's clock.
    timers: BTreeSet<(u64, FiberId)>,
    next: FiberId,
}

impl Fibers {
    /// A fiber that waits is ready.
    fn make_ready(&mut self, id: FiberId, woken: Woken) -> bool {
        let Some(fiber) = self.all.get_mut(&id) else { return false };
        if fiber.state != State::Waits {
            return false;
        }
        fiber.state = State::Ready(woken);
        if let Some(at) = fiber.deadline.take() {
            self.timers.remove(&(at, id));
        }
        self.ready.push_back(id);
        true
    }
}

/// The fibers of one thread.
pub struct Scheduler {
    fibers: RefCell<Fibers>,
    /// The one that runs; 0 outside of all.
    current: Cell<FiberId>,
    max: usize,
    running: Arc<Running>,
}

/// What other threads see of a scheduler.
#[derive(Debug, Default)]
pub struct Running {
    fiber: AtomicU64,
    switches: AtomicU64,
}

impl Running {
    /// The fiber that runs, 0 for none, and how often that has changed.
    pub fn now(&self) -> (FiberId, u64) {
        (self.fiber.load(Relaxed), self.switches.load(Relaxed))
    }

    fn set(&self, fiber: FiberId) {
        self.fiber.store(fiber, Relaxed);
        // One thread changes it.
        self.switches.store(self.switches.load(Relaxed) + 1, Relaxed);
    }
}

impl Scheduler {
    /// Without fibers; there may be `max`.
    pub fn new(max: usize) -> Scheduler {
        let fibers = Fibers { next: FIRST, ..Fibers::default() };
        Scheduler {
            fibers: RefCell::new(fibers),
            current: Cell::new(0),
            max,
            running: Arc::default(),
        }
    }

    /// What other threads may see of it.
    pub fn running(&self) -> &Arc<Running> {
        &self.running
    }

    /// The fiber that runs; 0 outside of all.
    pub fn current(&self) -> FiberId {
        self.current.get()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.fibers.borrow().all.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How often a fiber was switched to; `None` if it is over.
    pub fn switches(&self, id: FiberId) -> Option<u64> {
        self.fibers.borrow().all.get(&id).map(|fiber| fiber.switches)
    }

    /// Makes a fiber that runs when its turn comes.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn queue(&self, body: Body) -> Result<FiberId, StartError> {
        let id = self.make(body)?;
        let mut fibers = self.fibers.borrow_mut();
        fibers.ready.push_back(id);
        Ok(id)
    }

    /// Makes a fiber and runs it, until it waits for the first time or ends.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn start(&self, body: Body) -> Result<FiberId, StartError> {
        let id = self.make(body)?;
        self.resume(id);
        Ok(id)
    }

    /// The fiber that runs goes on as another one: it has a new number, which is returned.
    ///
    /// # Panics
    /// Outside of all fibers.
    pub fn renew(&self) -> FiberId {
        let mut fibers = self.fibers.borrow_mut();
        let fiber = fibers.all.remove(&self.current.get()).expect("a fiber that runs is there");
        let id = fibers.next;
        fibers.next += 1;
        fibers.all.insert(id, Fiber { switches: 1, ..fiber });
        self.current.set(id);
        self.running.set(id);
        id
    }

    /// A fiber that has not begun: its stack is left at once, with the body on it.
    fn make(&self, body: Body) -> Result<FiberId, StartError> {
        let idle = {
            let mut fibers = self.fibers.borrow_mut();
            if fibers.all.len() >= self.max {
                return Err(StartError::TooMany(self.max));
            }
            fibers.idle.pop()
        };
        let mut stack = match idle {
            Some(stack) => stack,
            None => new_stack().map_err(StartError::NoStack)?,
        };
        // It says where it can be left.
        let mut switch = std::ptr::null();
        let at: *mut *const Switch = &raw mut switch;
        HANDED.set(at);
        stack.resume(Some(body));
        let mut fibers = self.fibers.borrow_mut();
        let id = fibers.next;
        fibers.next += 1;
        let (state, deadline) = (State::Ready(Woken::Called), None);
        let fiber = Fiber { stack: Some(stack), switch, state, deadline, switches: 0 };
        fibers.all.insert(id, fiber);
        Ok(id)
    }

    /// Runs a fiber until it waits or ends.
    fn resume(&self, id: FiberId) {
        let (mut stack, before) = {
            let mut fibers = self.fibers.borrow_mut();
            let before = self.current.get();
            let Some(fiber) = fibers.all.get_mut(&id) else { return };
            let Some(stack) = fiber.stack.take() else { return };
            fiber.switches += 1;
            if fiber.switches == 1 {
                fiber.state = State::Runs;
            }
            self.current.set(id);
            (stack, before)
        };
        self.running.set(id);
        let left = stack.resume(None);
        let mut fibers = self.fibers.borrow_mut();
        // It may have another number meanwhile.
        let id = self.current.replace(before);
        self.running.set(before);
        match left {
            CoroutineResult::Yield(Left::Waits) => {
                if let Some(fiber) = fibers.all.get_mut(&id) {
                    fiber.stack = Some(stack);
                }
            }
            CoroutineResult::Yield(Left::Over) => {
                fibers.all.remove(&id);
                if fibers.idle.len() < IDLE_MAX {
                    fibers.idle.push(stack);
                } else {
                    drop(fibers);
                    end_idle(stack);
                }
            }
            CoroutineResult::Return(()) => {
                fibers.all.remove(&id);
            }
        }
    }

    /// Leaves the fiber that runs until it is woken, or until `deadline` (nanoseconds of the
    /// owner's clock).
    ///
    /// # Panics
    /// Outside of all fibers.
    pub fn wait(&self, deadline: Option<u64>) -> Woken {
        let (id, switch) = {
            let mut fibers = self.fibers.borrow_mut();
            let id = self.current.get();
            let fiber = fibers.all.get_mut(&id).expect("only a fiber waits");
            fiber.state = State::Waits;
            fiber.deadline = deadline;
            let switch = fiber.switch;
            if let Some(at) = deadline {
                fibers.timers.insert((at, id));
            }
            (id, switch)
        };
        self.leave(id, switch)
    }

    /// Leaves the fiber that runs; it goes on behind those that are ready.
    ///
    /// # Panics
    /// Outside of all fibers.
    pub fn give_way(&self) {
        let (id, switch) = {
            let mut fibers = self.fibers.borrow_mut();
            let id = self.current.get();
            let fiber = fibers.all.get_mut(&id).expect("only a fiber gives way");
            fiber.state = State::Ready(Woken::Called);
            let switch = fiber.switch;
            fibers.ready.push_back(id);
            (id, switch)
        };
        self.leave(id, switch);
    }

    fn leave(&self, id: FiberId, switch: *const Switch) -> Woken {
        // SAFETY: It is on the stack that is left here, which lives while the fiber runs.
        unsafe { (*switch).suspend(Left::Waits) };
        let mut fibers = self.fibers.borrow_mut();
        let fiber = fibers.all.get_mut(&id).expect("a fiber that runs is there");
        match std::mem::replace(&mut fiber.state, State::Runs) {
            State::Ready(woken) => woken,
            State::Runs | State::Waits => Woken::Called,
        }
    }

    /// Ends a fiber's wait. Returns whether it waited.
    pub fn wake(&self, id: FiberId) -> bool {
        self.fibers.borrow_mut().make_ready(id, Woken::Called)
    }

    /// Runs what is ready at the time `now`, each fiber once, and at most `most` of them. Returns
    /// when the next turn is due: `Some(0)` if something is ready, `None` if nothing waits for a
    /// time.
    pub fn turn(&self, now: u64, most: usize) -> Option<u64> {
        let count = {
            let mut fibers = self.fibers.borrow_mut();
            while let Some(&(at, id)) = fibers.timers.first()
                && at <= now
            {
                fibers.make_ready(id, Woken::InTime);
            }
            fibers.ready.len().min(most)
        };
        for _ in 0..count {
            let next = self.fibers.borrow_mut().ready.pop_front();
            let Some(id) = next else { break };
            self.resume(id);
        }
        let fibers = self.fibers.borrow();
        match fibers.ready.is_empty() {
            false => Some(0),
            true => fibers.timers.first().map(|&(at, _)| at),
        }
    }
}

impl Drop for Scheduler {
    /// Idle stacks are ended. What is on the stacks of fibers that wait is not dropped: nothing can
    /// unwind them.
    fn drop(&mut self) {
        let fibers = self.fibers.get_mut();
        fibers.idle.drain(..).for_each(end_idle);
        for mut stack in fibers.all.drain().filter_map(|(_, fiber)| fiber.stack) {
            // SAFETY: Nothing on the stack is used again: it is left for good.
            unsafe { stack.force_reset() };
        }
    }
}

/// Ends a stack that waits for its next fiber.
fn end_idle(mut stack: Stack) {
    stack.resume(None);
}

thread_local! {
    /// Where a stack that begins a fiber leaves word of its switch: `make` waits for it.
    static HANDED: std::cell::Cell<*mut *const Switch> =
        const { std::cell::Cell::new(std::ptr::null_mut()) };
}

fn new_stack() -> io::Result<Stack> {
    let stack = DefaultStack::new(STACK_BYTES)?;
    Ok(Coroutine::with_stack(stack, |switch: &Switch, mut first: Option<Body>| {
        while let Some(body) = first.take() {
            // SAFETY: `Scheduler::make` waits for this, on this thread, with the place on its stack.
            unsafe { *HANDED.get() = switch };
            switch.suspend(Left::Waits);
            body();
            first = switch.suspend(Left::Over);
        }
    }))
}

#[cfg(test)]
mod tests;
