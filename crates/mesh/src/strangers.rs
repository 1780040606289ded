//! Connections that have not proven anything yet: few, each for a short time, and none of them can
//! keep another address out.
//!
//! When all places are taken, the source with the most of them loses its oldest connection. Over
//! TLS, a hello costs half a millisecond of the thread that heartbeats need, too: so many begin in
//! a second, and next is a source that had no turn for the longest time.

use crate::mesh::Counters;
use parking_lot::Mutex;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// Hellos that may begin at once after a pause.
const BURST: u32 = 16;

/// An address; of IPv6 its network, in which a host has as many addresses as it likes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Source(IpAddr);

impl Source {
    pub(crate) fn of(address: IpAddr) -> Source {
        match address.to_canonical() {
            IpAddr::V6(ip) => Source(Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64).into()),
            ip => Source(ip),
        }
    }
}

/// A connection that has not proven anything.
struct Entry {
    id: u64,
    source: Source,
    task: Option<AbortHandle>,
    /// It waits for its turn.
    turn: Option<oneshot::Sender<()>>,
}

struct State {
    /// The oldest one first.
    entries: Vec<Entry>,
    next_id: u64,
    /// Sources that had turns and have connections here; the latest one last.
    served: Vec<Source>,
    /// When the next turn may be given if none were saved up.
    due: Instant,
    evicted: u64,
}

/// All connections that have not proven anything.
pub(crate) struct Strangers {
    state: Mutex<State>,
    max: usize,
    /// Between two hellos.
    gap: Duration,
    came: Notify,
    counters: Arc<Counters>,
}

/// A place among the strangers.
pub(crate) struct Place<'a> {
    strangers: &'a Strangers,
    id: u64,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.strangers.state.lock().remove(self.id);
        self.strangers.count();
    }
}

impl State {
    fn remove(&mut self, id: u64) -> Option<Entry> {
        let at = self.entries.iter().position(|entry| entry.id == id)?;
        let entry = self.entries.remove(at);
        if !self.entries.iter().any(|other| other.source == entry.source) {
            self.served.retain(|source| *source != entry.source);
        }
        Some(entry)
    }

    fn count(&self, source: Source) -> usize {
        self.entries.iter().filter(|entry| entry.source == source).count()
    }

    /// The oldest connection of the source with the most.
    fn evict(&mut self) {
        let mut most = (0, None);
        for entry in &self.entries {
            let count = self.count(entry.source);
            if count > most.0 {
                most = (count, Some(entry.id));
            }
        }
        if let Some(task) = most.1.and_then(|id| self.remove(id)).and_then(|entry| entry.task) {
            task.abort();
            self.evicted += 1;
        }
    }

    /// Who waits for a turn and should have the next one: the oldest of the source that had none,
    /// or none for the longest time.
    fn next(&mut self) -> Option<&mut Entry> {
        let served = &self.served;
        let rank =
            |source: Source| served.iter().position(|it| *it == source).map_or(0, |at| at + 1);
        let waiting = self.entries.iter_mut().filter(|entry| entry.turn.is_some());
        waiting.min_by_key(|entry| (rank(entry.source), entry.id))
    }
}

impl Strangers {
    /// `max` of them, of which `per_second` begin with their hellos.
    pub(crate) fn new(max: usize, per_second: u32, counters: Arc<Counters>) -> Strangers {
        let state = State {
            entries: Vec::new(),
            next_id: 0,
            served: Vec::new(),
            due: Instant::now(),
            evicted: 0,
        };
        Strangers {
            state: Mutex::new(state),
            max: max.max(1),
            gap: Duration::from_secs(1) / per_second.max(1),
            came: Notify::new(),
            counters,
        }
    }

    /// A place for a connection; another one may have to go.
    pub(crate) fn admit(&self, source: Source) -> u64 {
        let mut state = self.state.lock();
        let id = state.next_id;
        state.next_id += 1;
        state.entries.push(Entry { id, source, task: None, turn: None });
        if state.entries.len() > self.max {
            state.evict();
        }
        drop(state);
        self.count();
        id
    }

    /// Who has the place; the task ends if the place is needed.
    pub(crate) fn set_task(&self, id: u64, task: AbortHandle) {
        let mut state = self.state.lock();
        match state.entries.iter_mut().find(|entry| entry.id == id) {
            Some(entry) => entry.task = Some(task),
            None => task.abort(),
        }
    }

    /// Gives the place free when it is dropped.
    pub(crate) fn place(&self, id: u64) -> Place<'_> {
        Place { strangers: self, id }
    }

    fn count(&self) {
        let state = self.state.lock();
        self.counters.strangers.store(state.entries.len(), Relaxed);
        self.counters.evicted.store(state.evicted, Relaxed);
    }

    /// Gives one waiting connection its turn, when it is time.
    pub(crate) async fn give_turn(&self) {
        loop {
            let came = self.came.notified();
            let due = {
                let mut state = self.state.lock();
                let (due, now) = (state.due, Instant::now());
                match state.next() {
                    None => None,
                    Some(_) if due > now => Some(due),
                    Some(entry) => {
                        let source = entry.source;
                        // Its task may have ended meanwhile.
                        let _ = entry.turn.take().map(|turn| turn.send(()));
                        state.served.retain(|it| *it != source);
                        state.served.push(source);
                        let saved = now.checked_sub(self.gap * BURST).unwrap_or(now);
                        state.due = due.max(saved) + self.gap;
                        return;
                    }
                }
            };
            match due {
                Some(due) => tokio::time::sleep_until(due).await,
                None => came.await,
            }
        }
    }
}

impl Place<'_> {
    /// Waits until this connection may begin with its hello.
    pub(crate) async fn turn(&self) {
        let (sender, receiver) = oneshot::channel();
        if let Some(entry) =
            self.strangers.state.lock().entries.iter_mut().find(|entry| entry.id == self.id)
        {
            entry.turn = Some(sender);
        }
        self.strangers.came.notify_one();
        // An error means that the place is lost, and with it the task.
        let _ = receiver.await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(last: u8) -> Source {
        Source::of(IpAddr::from([127, 0, 0, last]))
    }

    fn ids(strangers: &Strangers) -> Vec<u64> {
        strangers.state.lock().entries.iter().map(|entry| entry.id).collect()
    }

    #[test]
    fn the_source_with_the_most_loses_its_oldest() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let strangers = Strangers::new(4, 100, Arc::default());
            let admit = |last| {
                let id = strangers.admit(source(last));
                strangers.set_task(id, tokio::spawn(std::future::pending::<()>()).abort_handle());
            };
            [1, 2, 1, 2].into_iter().for_each(admit);
            assert_eq!(ids(&strangers), [0, 1, 2, 3]);
            admit(1);
            assert_eq!(ids(&strangers), [1, 2, 3, 4], "0 was the oldest of 1");
            (0..100).for_each(|_| admit(1));
            assert_eq!(ids(&strangers), [1, 3, 103, 104], "2's stay");
            assert_eq!(strangers.counters.strangers.load(Relaxed), 4);
            assert_eq!(strangers.counters.evicted.load(Relaxed), 101);
            drop(strangers.place(103));
            admit(3);
            assert_eq!(ids(&strangers), [1, 3, 104, 105]);
        });
    }

    #[test]
    fn sources_have_turns() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let strangers = Strangers::new(100, 1_000_000, Arc::default());
            let mut waiting: Vec<_> = [1, 1, 1, 1, 2, 2]
                .into_iter()
                .map(|last| {
                    let (sender, receiver) = oneshot::channel();
                    strangers.admit(source(last));
                    strangers.state.lock().entries.last_mut().unwrap().turn = Some(sender);
                    (last, receiver)
                })
                .collect();
            let mut order = Vec::new();
            while !waiting.is_empty() {
                strangers.give_turn().await;
                let at = waiting.iter_mut().position(|(_, turn)| turn.try_recv().is_ok());
                order.push(waiting.remove(at.expect("somebody has it")).0);
            }
            assert_eq!(order, [1, 2, 1, 2, 1, 1]);
        });
    }
}
