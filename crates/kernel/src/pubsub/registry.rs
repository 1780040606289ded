//! Which threads have subscribers of which channels and patterns.

use super::names::Names;
use super::published::{ForThread, Kind, NotFor, Published};
use crate::message::{Message, ThreadHandle};
use ladon_record::{KeyHasher, Lsn};
use ladon_settings::Glob;
use parking_lot::{Mutex, RwLock};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};

/// Parts of the registry, each behind its lock. A part that grows moves all that it has.
const PARTS: usize = 256;

/// Undelivered messages, by weight, above which publishers wait.
pub const CONGESTED_WEIGHT: usize = 4096;

/// Bytes of payload that weigh as much as one delivery.
const BYTES_PER_WEIGHT: usize = 1024;

/// The subscribers of one name: how many each thread has.
#[derive(Debug, Default)]
struct Threads(SmallVec<[(u16, u32); 2]>);

impl Threads {
    fn add(&mut self, thread: usize) {
        match self.0.iter_mut().find(|(other, _)| usize::from(*other) == thread) {
            Some((_, count)) => *count += 1,
            None => self.0.push((thread as u16, 1)),
        }
    }

    fn remove(&mut self, thread: usize) {
        let at = self.0.iter().position(|(other, _)| usize::from(*other) == thread);
        let at = at.expect("it subscribed");
        self.0[at].1 -= 1;
        if self.0[at].1 == 0 {
            self.0.swap_remove(at);
        }
    }

    fn subscribers(&self) -> usize {
        self.0.iter().map(|&(_, count)| count as usize).sum()
    }
}

/// Channels and shard channels.
type Part = [Names<Threads>; 2];

/// Patterns, each compiled.
type Patterns = BTreeMap<Arc<[u8]>, (Arc<Glob>, Threads)>;

/// The subscriptions of all threads.
pub struct PubSub {
    threads: Arc<[ThreadHandle]>,
    hasher: KeyHasher,
    parts: Box<[Mutex<Part>]>,
    patterns: RwLock<Patterns>,
    /// Distinct names, by kind.
    names: [AtomicUsize; 3],
    /// Weight of the messages that no thread has delivered yet.
    undelivered: AtomicUsize,
    /// Above this weight, publishers wait.
    congested: AtomicUsize,
}

impl PubSub {
    /// No subscriptions. `seed` spreads the channels.
    pub(crate) fn new(threads: Arc<[ThreadHandle]>, seed: u64) -> PubSub {
        PubSub {
            threads,
            hasher: KeyHasher::new(seed),
            parts: (0..PARTS).map(|_| Mutex::default()).collect(),
            patterns: RwLock::default(),
            names: Default::default(),
            undelivered: AtomicUsize::new(0),
            congested: AtomicUsize::new(CONGESTED_WEIGHT),
        }
    }

    /// Testing only: publishers wait above this weight of undelivered messages.
    pub fn bound_undelivered(&self, weight: usize) {
        self.congested.store(weight, Relaxed);
    }

    /// Hash of a name.
    pub(super) fn hash(&self, name: &[u8]) -> u64 {
        self.hasher.hash(name).0
    }

    fn part(&self, hash: u64) -> &Mutex<Part> {
        &self.parts[hash as usize % PARTS]
    }

    /// A pattern, compiled; once for all who subscribe to it.
    pub(super) fn glob(&self, pattern: &[u8]) -> Arc<Glob> {
        let known = self.patterns.read().get(pattern).map(|(glob, _)| Arc::clone(glob));
        known.unwrap_or_else(|| Arc::new(Glob::new(pattern, false)))
    }

    /// Number of distinct names that are subscribed to.
    #[inline]
    pub fn names(&self, kind: Kind) -> usize {
        self.names[kind.index()].load(Relaxed)
    }

    /// Whether a message on some channel may have a receiver.
    #[inline]
    pub fn has_subscribers(&self) -> bool {
        // A subscription that was acknowledged is seen: the acknowledgement went through a socket.
        self.names(Kind::Channel) != 0 || self.names(Kind::Pattern) != 0
    }

    /// Whether messages are published faster than the threads deliver them. Publishers then wait
    /// for their next turn.
    #[inline]
    pub fn is_congested(&self) -> bool {
        self.undelivered() > self.congested.load(Relaxed)
    }

    /// Weight of the messages that no thread has delivered yet.
    #[inline]
    pub fn undelivered(&self) -> usize {
        self.undelivered.load(Relaxed)
    }

    /// Whether no message is on its way.
    #[inline]
    pub fn is_quiet(&self) -> bool {
        self.undelivered() == 0
    }

    /// A thread has delivered a message, or has nobody to deliver it to.
    pub fn delivered(&self, weight: usize) {
        self.undelivered.fetch_sub(weight, Relaxed);
    }

    /// Adds a subscriber of a thread. Returns the number of messages that were left for the thread
    /// before: the subscriber gets the later ones.
    pub(crate) fn subscribe(&self, kind: Kind, name: &Arc<[u8]>, thread: usize) -> u64 {
        let add = |threads: &mut Threads| {
            if threads.0.is_empty() {
                self.names[kind.index()].fetch_add(1, SeqCst);
            }
            threads.add(thread);
            self.threads[thread].published()
        };
        match kind {
            Kind::Pattern => {
                let glob = self.glob(name);
                let mut patterns = self.patterns.write();
                let new = || (glob, Threads::default());
                add(&mut patterns.entry(Arc::clone(name)).or_insert_with(new).1)
            }
            _ => {
                let hash = self.hash(name);
                let mut part = self.part(hash).lock();
                add(part[kind.index()].get_or_insert(hash, name))
            }
        }
    }

    /// Removes a subscriber of a thread.
    pub(crate) fn unsubscribe(&self, kind: Kind, name: &[u8], thread: usize) {
        let is_last = |threads: &mut Threads| {
            threads.remove(thread);
            threads.0.is_empty()
        };
        let was_last = match kind {
            Kind::Pattern => {
                let mut patterns = self.patterns.write();
                let last = patterns.get_mut(name).is_some_and(|(_, threads)| is_last(threads));
                if last {
                    patterns.remove(name);
                }
                last
            }
            _ => {
                let hash = self.hash(name);
                self.part(hash).lock()[kind.index()].remove_if(hash, name, is_last)
            }
        };
        if was_last {
            self.names[kind.index()].fetch_sub(1, SeqCst);
        }
    }

    /// Number of subscribers that a message on this channel has now.
    pub fn receivers(&self, kind: Kind, channel: &[u8]) -> usize {
        if self.names(kind) == 0 && self.names(Kind::Pattern) == 0 {
            return 0;
        }
        let hash = self.hash(channel);
        let part = self.part(hash).lock();
        self.receivers_of(&part, kind, (hash, channel))
            .iter()
            .map(|&(_, count)| count as usize)
            .sum()
    }

    /// Each thread with subscribers of a channel, and how many.
    fn receivers_of(
        &self,
        part: &Part,
        kind: Kind,
        (hash, channel): (u64, &[u8]),
    ) -> SmallVec<[(u16, u32); 4]> {
        let mut receivers: SmallVec<[(u16, u32); 4]> = SmallVec::new();
        let mut add = |threads: &Threads| {
            for &(thread, count) in &threads.0 {
                match receivers.iter_mut().find(|(other, _)| *other == thread) {
                    Some((_, sum)) => *sum += count,
                    None => receivers.push((thread, count)),
                }
            }
        };
        if let Some(threads) = part[kind.index()].get(hash, channel) {
            add(threads);
        }
        if kind == Kind::Channel && self.names(Kind::Pattern) != 0 {
            for (glob, threads) in self.patterns.read().values() {
                if glob.matches(channel) {
                    add(threads);
                }
            }
        }
        receivers
    }

    /// Leaves a message for the subscribers of a channel; returns how many there are. The threads
    /// are woken by [`PubSub::wake`], which has to follow once no partition is locked.
    pub fn publish(&self, kind: Kind, channel: &[u8], payload: &[u8], depends: Lsn) -> usize {
        self.publish_except(kind, channel, payload, depends, None)
    }

    /// The same, but for the subscriptions `not_for`, which the number of receivers contains.
    pub(crate) fn publish_except(
        &self,
        kind: Kind,
        channel: &[u8],
        payload: &[u8],
        depends: Lsn,
        not_for: Option<Box<NotFor>>,
    ) -> usize {
        debug_assert_ne!(kind, Kind::Pattern, "a message is sent to a channel");
        if self.names(kind) == 0 && (kind == Kind::Shard || self.names(Kind::Pattern) == 0) {
            return 0;
        }
        let hash = self.hash(channel);
        let part = self.part(hash).lock();
        let receivers = self.receivers_of(&part, kind, (hash, channel));
        if receivers.is_empty() {
            return 0;
        }
        let message = Arc::new(Published::new(kind, hash, channel, payload, depends, not_for));
        let mut sum = 0;
        for &(thread, count) in &receivers {
            sum += count as usize;
            let weight = count as usize + payload.len() / BYTES_PER_WEIGHT;
            let message = ForThread { message: Arc::clone(&message), weight };
            self.leave(usize::from(thread), Message::Publish(message), weight);
        }
        // The next message on this channel is left after this one.
        drop(part);
        sum
    }

    /// Leaves a message for a thread, which counts as undelivered. The thread is woken by
    /// [`PubSub::wake`], as after [`PubSub::publish`].
    pub fn leave(&self, thread: usize, message: Message, weight: usize) {
        self.undelivered.fetch_add(weight, Relaxed);
        self.threads[thread].leave(message);
    }

    /// Number of messages that were left for a thread so far.
    pub(crate) fn published(&self, thread: usize) -> u64 {
        self.threads[thread].published()
    }

    /// Number of threads.
    pub(crate) fn threads(&self) -> usize {
        self.threads.len()
    }

    /// Wakes the threads for which messages were left, except `thread`, which is awake.
    pub fn wake(&self, thread: usize) {
        for (index, handle) in self.threads.iter().enumerate() {
            if index != thread && handle.take_unwoken() {
                handle.wake();
            }
        }
    }

    /// The names of a kind that match a pattern, sorted; all without one. The empty name matches
    /// only the empty pattern, as in Redis.
    pub fn matching(&self, kind: Kind, pattern: Option<&[u8]>) -> Vec<Arc<[u8]>> {
        let glob = pattern.map(|pattern| Glob::new(pattern, false));
        let fits = |name: &&Arc<[u8]>| glob.as_ref().is_none_or(|glob| glob.matches(name));
        let mut names = Vec::new();
        for part in &self.parts {
            names.extend(part.lock()[kind.index()].iter().filter(fits).map(Arc::clone));
        }
        names.sort_unstable();
        names
    }

    /// Number of subscribers of a channel, without those of patterns.
    pub fn subscribers(&self, kind: Kind, channel: &[u8]) -> usize {
        let hash = self.hash(channel);
        self.part(hash).lock()[kind.index()].get(hash, channel).map_or(0, Threads::subscribers)
    }
}
