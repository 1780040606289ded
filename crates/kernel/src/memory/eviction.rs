//! `maxmemory`: makes room before a command that needs it, and between commands.
//!
//! A command that may enlarge the data runs once the data is within the limit. If it is not, keys
//! are evicted first (see the engine's `evict.rs`), for as long as `maxmemory-eviction-tenacity`
//! allows. So the data exceeds the limit by at most one command's worth, unless so many or so large
//! values have to go that time runs out.

use crate::client::item_watchers::{Watched, as_in_a_uri};
use crate::node::Node;
use crate::thread_parts::ThreadParts;
use ladon_engine::{Choice, Evicted, EvictedKey, Scratch, Victims};
use ladon_record::{Lsn, Record};
use ladon_settings::EvictionPolicy;

/// Bytes that a thread's commands may add before other threads see them: so little that many
/// threads together do not exceed the limit by much.
const UNSEEN_BYTES_MAX: u64 = 16 * 1024;

/// While much waits to be freed, values of up to this many allocations are freed on the IO thread:
/// about 0.1 ms.
const FREED_IN_LINE_MAX: usize = 2048;

/// If more than this fraction of `maxmemory` waits to be freed, the IO thread frees larger values
/// too.
const PENDING_SHARE: u64 = 8;

/// Evictions between two clock reads.
const STEPS_A_LOOK: usize = 8;

/// Whether there is room for a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// The data is within the limit.
    Enough,
    /// Not yet, but keys are being evicted.
    Soon,
    /// The data is over the limit, and nothing may be evicted.
    None,
}

/// `None` if nothing may be evicted.
fn victims(policy: EvictionPolicy) -> Option<Victims> {
    use EvictionPolicy as P;
    let (volatile, choice) = match policy {
        P::NoEviction => return None,
        P::AllKeysLru | P::AllKeysLfu | P::AllKeysLrm => (false, Choice::Access),
        P::AllKeysRandom => (false, Choice::Random),
        P::VolatileLru | P::VolatileLfu | P::VolatileLrm => (true, Choice::Access),
        P::VolatileRandom => (true, Choice::Random),
        P::VolatileTtl => (true, Choice::Expiry),
    };
    Some(Victims { volatile, choice })
}

/// Nanoseconds that a command may spend on evictions.
fn time_limit_ns(tenacity: u32) -> u64 {
    match tenacity {
        0..=10 => 50_000 * u64::from(tenacity),
        11..100 => (500_000.0 * 1.15f64.powi(tenacity as i32 - 10)) as u64,
        _ => u64::MAX,
    }
}

/// Makes room before a command that may need it. No locks may be held. A follower has what the node
/// has that it follows, which evicts.
#[inline]
pub fn make_room(thread: &mut ThreadParts<'_>) -> Room {
    let (node, now_ms, scratch) = (thread.node, thread.now_ms, &mut *thread.scratch);
    if node.settings.maxmemory() == 0 || node.keyspace.is_follower() {
        node.exceeded.ended(now_ms);
        return Room::Enough;
    }
    if scratch.counters.bytes_delta.unsigned_abs() > UNSEEN_BYTES_MAX {
        settle(node, scratch);
    }
    if !is_over(node, scratch) {
        node.exceeded.ended(now_ms);
        return Room::Enough;
    }
    let limit_ns = time_limit_ns(node.settings.maxmemory_eviction_tenacity());
    evict(thread, limit_ns)
}

/// Makes room between commands, so that the data comes within a lowered limit even if no client
/// writes; for about `limit_ns` nanoseconds at most. Returns whether to continue soon. No locks may
/// be held.
pub fn make_room_in_between(thread: &mut ThreadParts<'_>, limit_ns: u64) -> bool {
    let node = thread.node;
    let is_limited = node.settings.maxmemory() != 0 && !node.keyspace.is_follower();
    if !is_limited || !is_over(node, thread.scratch) {
        node.exceeded.ended(thread.now_ms);
        return false;
    }
    evict(thread, limit_ns) == Room::Soon
}

fn is_over(node: &Node, scratch: &Scratch) -> bool {
    let used = node.evictable_memory() + node.lazy_free.pending_bytes();
    used.saturating_add_signed(scratch.counters.bytes_delta) > node.settings.maxmemory()
}

/// Whether the data and the clients' buffers exceed the limit. Removed values are being freed and
/// are no reason to evict more.
fn is_data_over(node: &Node, scratch: &Scratch) -> bool {
    let data = node.evictable_memory().saturating_add_signed(scratch.counters.bytes_delta);
    data > node.settings.maxmemory()
}

/// Frees removed values while they and the data together exceed the limit: as many as there is time
/// for, and one value of any size if they are a large fraction of the limit.
fn free_pending(node: &Node, scratch: &Scratch, is_time_up: impl Fn() -> bool) {
    while is_over(node, scratch) && node.lazy_free.free_next(FREED_IN_LINE_MAX) {
        if is_time_up() {
            break;
        }
    }
    let pending = node.lazy_free.pending_bytes();
    if pending > node.settings.maxmemory() / PENDING_SHARE && is_over(node, scratch) {
        node.lazy_free.free_next(usize::MAX);
    }
}

/// Publishes this thread's additions to the other threads.
fn settle(node: &Node, scratch: &mut Scratch) {
    node.keyspace.add_used_bytes(std::mem::take(&mut scratch.counters.bytes_delta));
}

#[cold]
fn evict(thread: &mut ThreadParts<'_>, limit_ns: u64) -> Room {
    let (node, now_ms, scratch) = (thread.node, thread.now_ms, &mut *thread.scratch);
    let begin_ns = node.clock.monotonic_ns();
    free_pending(node, scratch, || node.clock.monotonic_ns() - begin_ns >= limit_ns);
    if !is_data_over(node, scratch) {
        return if is_over(node, scratch) { Room::Soon } else { Room::Enough };
    }
    // A paused node must not change, and a log that takes no records refuses the command anyway.
    if node.paused(now_ms).is_some() || !node.may_change() {
        return Room::Soon;
    }
    settle(node, scratch);
    let here = Some((now_ms, node.settings.generation()));
    let room = match victims(node.settings.maxmemory_policy()) {
        Some(victims) if thread.local.eviction.nothing_at != here => {
            let begin_ns = node.clock.monotonic_ns();
            let room = evict_until(thread, victims, |steps| {
                steps % STEPS_A_LOOK == 0 && node.clock.monotonic_ns() - begin_ns >= limit_ns
            });
            let spent_ms = (node.clock.monotonic_ns() - begin_ns) / 1_000_000;
            node.latency_events.note("eviction-cycle", spent_ms, now_ms / 1000);
            if room == Room::None {
                thread.local.eviction.nothing_at = here;
            }
            room
        }
        _ => Room::None,
    };
    match room {
        Room::Enough => node.exceeded.ended(now_ms),
        Room::Soon | Room::None => node.exceeded.began(now_ms),
    }
    room
}

fn evict_until(
    thread: &mut ThreadParts<'_>,
    victims: Victims,
    is_time_up: impl Fn(usize) -> bool,
) -> Room {
    let ThreadParts { node, local, scratch, now_ms, append, .. } = thread;
    let samples = node.settings.maxmemory_samples();
    let (keyspace, evictor) = (&node.keyspace, &mut local.eviction.evictor);
    evictor.noted = node.item_watchers.any(Watched::EVICTIONS).then(Vec::new);
    scratch.read_only = false;
    let mut append = |record: Record<'_>| match &node.watch_evictions {
        Some(watch) if !watch(node, &record.changes()) => node.durability.reserved(),
        _ => append(record),
    };
    let mut step = 0;
    let room = loop {
        step += 1;
        match evictor.step(keyspace, scratch, *now_ms, victims, samples, &mut append) {
            Evicted::Nothing => break Room::None,
            Evicted::Some | Evicted::NotYet => settle(node, scratch),
        }
        if !is_data_over(node, scratch) {
            break Room::Enough;
        }
        if is_time_up(step) {
            break Room::Soon;
        }
    };
    if let Some(noted) = evictor.noted.take() {
        tell_watchers(node, &noted, *now_ms);
    }
    room
}

/// Shows what was evicted to those who watch it. A removal is in the log soon enough: nothing is
/// promised of it.
#[cold]
fn tell_watchers(node: &Node, evicted: &[EvictedKey], now_ms: u64) {
    for EvictedKey { key, expire_at } in evicted {
        let left = match expire_at {
            0 => -1,
            at => at.saturating_sub(now_ms).div_ceil(1000) as i64,
        };
        let key = as_in_a_uri(key);
        let what = format!("type=eviction key={key} ttl={left} clsid=1");
        node.tell_watchers(Watched::EVICTIONS, &what, Lsn::ZERO);
    }
}
