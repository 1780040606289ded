//! The node's threads: IO threads and the log's writer, each asleep until something wakes it.
//!
//! The schedule alone runs no thread: a worker takes a turn when bytes arrive, when it is woken, or
//! when its own timeout expires; the writer works when it is woken or its rest is over. So a
//! missing wake-up holds up a client, and is seen.
//!
//! While a worker runs a batch, others may intervene (`ladon_server::Point`). Before a command that
//! may take long, they come to rest, and then no reply of theirs may wait for the log: it would
//! wait for that command.

use crate::clock::SimClock;
use crate::node::Wire;
use crate::spaces::{RanPacket, When, sync_of};
use ladon_log::Log;
use ladon_net::ConnId;
use ladon_platform::Clock;
use ladon_server::{Interrupt, Net, PacketRan, Point, Worker};
use ladon_testkit::Random;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

/// For how long others get to rest before a slow command: longer than the writer's nap, much
/// shorter than the sleeps that hide a missing wake-up.
const REST_US: u64 = 20_000;

/// Set when a thread is to run.
pub(crate) type Woken = Arc<AtomicBool>;

pub(crate) struct Threads {
    workers: Vec<Mutex<Worker>>,
    wires: Vec<Mutex<Wire>>,
    woken: Vec<Woken>,
    /// Half a turn was taken.
    half: Vec<AtomicBool>,
    /// Until when each sleeps unless woken, microseconds of the clock.
    sleeps_until_us: Vec<AtomicU64>,
    log: Arc<Log>,
    clock: Arc<SimClock>,
    /// Until when the writer rests, microseconds of the clock.
    writer_rests_until_us: AtomicU64,
    /// Others come to rest before a command that may take long. Not where replies wait for other nodes,
    /// and where no time may pass beside that of the other nodes.
    rests: AtomicBool,
    /// Workers that are in the middle of a batch.
    depth: AtomicUsize,
    random: Mutex<Random>,
    /// Time of the beginning of each worker's turn, Unix milliseconds.
    turn_ms: Vec<AtomicU64>,
    /// The packets that have run.
    packets: Mutex<Vec<RanPacket>>,
    trouble: Mutex<Option<String>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Threads {
    pub(crate) fn new(
        workers: Vec<Worker>,
        woken: Vec<Woken>,
        log: &Arc<Log>,
        clock: &Arc<SimClock>,
        random: &mut Random,
    ) -> Arc<Threads> {
        let wires = workers.iter().map(|_| Mutex::new(Wire::new(random.next_u64()))).collect();
        let threads = Arc::new(Threads {
            wires,
            turn_ms: workers.iter().map(|_| AtomicU64::new(0)).collect(),
            half: workers.iter().map(|_| AtomicBool::new(false)).collect(),
            sleeps_until_us: workers.iter().map(|_| AtomicU64::new(0)).collect(),
            workers: workers.into_iter().map(Mutex::new).collect(),
            woken,
            log: Arc::clone(log),
            clock: Arc::clone(clock),
            writer_rests_until_us: AtomicU64::new(0),
            rests: AtomicBool::new(true),
            depth: AtomicUsize::new(0),
            packets: Mutex::default(),
            random: Mutex::new(Random::new(random.next_u64())),
            trouble: Mutex::new(None),
        });
        for (me, worker) in threads.workers.iter().enumerate() {
            let mut worker = lock(worker);
            worker.interrupt = Some(interrupt(Arc::downgrade(&threads), me));
            worker.packet_ran = Some(packet_ran(Arc::downgrade(&threads), me));
        }
        threads
    }

    /// Nobody comes to rest before a command that may take long.
    pub(crate) fn never_rest(&self) {
        self.rests.store(false, Relaxed);
    }

    pub(crate) fn len(&self) -> usize {
        self.workers.len()
    }

    pub(crate) fn worker(&self, at: usize) -> MutexGuard<'_, Worker> {
        lock(&self.workers[at])
    }

    pub(crate) fn wire(&self, at: usize) -> MutexGuard<'_, Wire> {
        lock(&self.wires[at])
    }

    /// What failed since the last call.
    pub(crate) fn take_trouble(&self) -> Option<String> {
        lock(&self.trouble).take()
    }

    /// The packets that have run since the last call.
    pub(crate) fn take_packets(&self) -> Vec<RanPacket> {
        std::mem::take(&mut lock(&self.packets))
    }

    /// Bytes for a connection; not while its worker does not want to hear from it.
    pub(crate) fn receive(&self, at: usize, conn: ConnId, bytes: &[u8]) {
        self.worker(at).received(conn, bytes);
        self.woken[at].store(true, Relaxed);
    }

    pub(crate) fn is_paused(&self, at: usize, conn: ConnId) -> bool {
        self.wire(at).paused.contains(&conn.slot)
    }

    /// Whether a worker is between the halves of a turn, when no real one hears anything.
    pub(crate) fn is_half_way(&self, at: usize) -> bool {
        self.half[at].load(Relaxed)
    }

    /// Whether a worker has a reason to run; not while it runs.
    fn is_awake(&self, at: usize) -> bool {
        let Ok(worker) = self.workers[at].try_lock() else { return false };
        let sleeps_until_us = self.sleeps_until_us[at].load(Relaxed);
        self.woken[at].load(Relaxed)
            || self.half[at].load(Relaxed)
            || self.clock.unix_us() >= sleeps_until_us
            // What came in by hand since its turn.
            || worker.timeout().is_zero()
    }

    /// Takes a turn, or the first half of one, if the worker is awake. Whether it was.
    pub(crate) fn turn(&self, at: usize, half: bool) -> bool {
        if !self.is_awake(at) {
            return false;
        }
        self.woken[at].store(false, Relaxed);
        self.half[at].store(half, Relaxed);
        self.turn_ms[at].store(self.clock.unix_ms(), Relaxed);
        let mut worker = self.worker(at);
        if half {
            worker.run_requests();
        } else {
            worker.turn(&mut *self.wire(at));
        }
        let sleep_us = worker.timeout().as_micros() as u64;
        self.sleeps_until_us[at].store(self.clock.unix_us() + sleep_us, Relaxed);
        true
    }

    /// Takes a turn on another network than the thread's wire.
    pub(crate) fn turn_on(&self, at: usize, net: &mut impl Net) {
        self.turn_ms[at].store(self.clock.unix_ms(), Relaxed);
        self.worker(at).turn(net);
    }

    /// Lets the writer work if it is awake. Whether it was.
    pub(crate) fn write(&self) -> bool {
        let now_us = self.clock.unix_us();
        if self.log.is_resting() && now_us < self.writer_rests_until_us.load(Relaxed) {
            return false;
        }
        let rest = self.log.work_then_rest();
        self.writer_rests_until_us.store(now_us + rest.as_micros() as u64, Relaxed);
        true
    }

    fn between(&self, me: usize) {
        let other = lock(&self.random).below(2 * self.len() as u64) as usize;
        if other < self.len() {
            if other != me {
                self.turn(other, false);
            }
        } else if other == self.len() {
            self.write();
        }
    }

    /// A worker is about to run a command that may take long.
    fn before_slow(&self, me: usize) {
        let rests = self.rests.load(Relaxed) && self.log.accepts_writes();
        if !rests || !lock(&self.random).chance(2, 3) {
            return;
        }
        let until_us = self.clock.unix_us() + REST_US;
        while self.clock.unix_us() < until_us {
            let mut any = self.write();
            for other in (0..self.len()).filter(|&other| other != me) {
                any |= self.turn(other, false);
            }
            if !any {
                self.clock.advance_us(500);
            }
        }
        if !self.log.accepts_writes() {
            return;
        }
        for other in (0..self.len()).filter(|&other| other != me) {
            if self.worker(other).waits_for_log() {
                let what = format!("worker {other} waits for the slow command of worker {me}");
                lock(&self.trouble).get_or_insert(what);
            }
        }
    }
}

fn packet_ran(threads: Weak<Threads>, me: usize) -> PacketRan {
    Box::new(move |slot, packet, reply| {
        let Some(threads) = threads.upgrade() else { return };
        let turn_ms = threads.turn_ms[me].load(Relaxed);
        let when = When { turn_ms, now_ms: threads.clock.unix_ms() };
        let (sync, reply) = (sync_of(packet), reply.map(<[u8]>::to_vec));
        let packet = RanPacket { worker: me, slot, sync, reply, when };
        lock(&threads.packets).push(packet);
    })
}

fn interrupt(threads: Weak<Threads>, me: usize) -> Interrupt {
    Box::new(move |point| {
        let Some(threads) = threads.upgrade() else { return };
        let depth = threads.depth.fetch_add(1, Relaxed);
        match point {
            Point::Between if depth < 2 => threads.between(me),
            // A worker that is in the middle of a batch may hold others up for that moment.
            Point::BeforeSlow if depth == 0 => threads.before_slow(me),
            _ => {}
        }
        threads.depth.fetch_sub(1, Relaxed);
    })
}
