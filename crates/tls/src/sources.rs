//! Where half-open connections come from, so that one address cannot keep the others out.
//!
//! Handshakes begin in turns: one of each source. A source whose clients mostly do not go on may
//! fill half of the places only.

use ladon_net::{ConnId, PeerAddr};
use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};

/// Clients that did not go on before a source is suspected of a storm.
const GIVEN_UP_MIN: usize = 64;

/// An address; of IPv6 its network, in which a host has as many addresses as it likes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Source(IpAddr);

impl Source {
    pub(crate) fn of(peer: &PeerAddr) -> Source {
        let PeerAddr::Tcp(address) = peer else { return Source(Ipv6Addr::UNSPECIFIED.into()) };
        match address.ip().to_canonical() {
            IpAddr::V6(ip) => Source(Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64).into()),
            ip => Source(ip),
        }
    }
}

/// What one source has here.
#[derive(Default)]
struct Share {
    half_open: usize,
    /// Wait to begin; those that are gone as well.
    to_begin: VecDeque<ConnId>,
    /// Were closed because they did not go on, and have ended their handshake, since the source
    /// has had connections here without a break.
    given_up: usize,
    established: usize,
}

impl Share {
    fn is_suspect(&self) -> bool {
        self.given_up >= GIVEN_UP_MIN && self.given_up > self.established
    }

    fn is_full(&self, places: usize) -> bool {
        self.to_begin.len() >= places / 2 && self.is_suspect()
    }
}

/// All sources with half-open connections.
#[derive(Default)]
pub(crate) struct Sources {
    shares: HashMap<Source, Share>,
    /// Sources of which some wait to begin, each once.
    turns: VecDeque<Source>,
    to_begin: usize,
}

impl Sources {
    pub(crate) fn insert(&mut self, source: Source) {
        self.shares.entry(source).or_default().half_open += 1;
    }

    pub(crate) fn remove(&mut self, source: Source) {
        let Some(share) = self.shares.get_mut(&source) else { return };
        share.half_open -= 1;
        self.forget_if_gone(source);
    }

    /// A connection is ready to begin.
    pub(crate) fn push(&mut self, source: Source, conn: ConnId) {
        let share = self.shares.entry(source).or_default();
        if share.to_begin.is_empty() {
            self.turns.push_back(source);
        }
        share.to_begin.push_back(conn);
        self.to_begin += 1;
    }

    /// The next one to begin: the first of the source whose turn it is.
    pub(crate) fn pop(&mut self) -> Option<ConnId> {
        let source = self.turns.pop_front()?;
        let share = self.shares.get_mut(&source)?;
        let conn = share.to_begin.pop_front()?;
        self.to_begin -= 1;
        if share.to_begin.is_empty() {
            self.forget_if_gone(source);
        } else {
            self.turns.push_back(source);
        }
        Some(conn)
    }

    /// How many wait to begin.
    pub(crate) fn to_begin(&self) -> usize {
        self.to_begin
    }

    /// A connection was closed because it did not go on.
    pub(crate) fn given_up(&mut self, source: Source) {
        if let Some(share) = self.shares.get_mut(&source) {
            share.given_up += 1;
        }
    }

    /// A connection has ended its handshake.
    pub(crate) fn established(&mut self, source: Source) {
        if let Some(share) = self.shares.get_mut(&source) {
            share.established += 1;
        }
    }

    /// Whether a source has more of `places` than each would have if all had the same, one that
    /// comes included.
    pub(crate) fn has_more_than_others(&self, source: Source, places: usize) -> bool {
        let fair = places / (self.shares.len() + 1);
        self.shares.get(&source).is_some_and(|share| share.half_open > fair)
    }

    /// Whether a source looks like a storm: most of its clients do not go on.
    pub(crate) fn is_suspect(&self, source: Source) -> bool {
        self.shares.get(&source).is_some_and(Share::is_suspect)
    }

    /// Whether a source that looks like a storm has as many waiting as it may: more are not let in,
    /// so that the others, behind them in the kernel's queue, are reached.
    pub(crate) fn is_full(&self, source: Source, places: usize) -> bool {
        self.shares.get(&source).is_some_and(|share| share.is_full(places))
    }

    /// Whether a source that looks like a storm has half of the places.
    pub(crate) fn is_a_storm(&self, places: usize) -> bool {
        self.shares.values().any(|share| share.half_open >= places / 2 && share.is_suspect())
    }

    /// Of those that wait to begin, the last of the source that has the most, if it has more of
    /// `places` than others.
    pub(crate) fn last_of_most(&mut self, places: usize) -> Option<ConnId> {
        let fair = places / (self.shares.len() + 1);
        let most = self.shares.values_mut().max_by_key(|share| share.to_begin.len())?;
        // Its source stays in the turns, so it keeps one.
        let has_others = most.to_begin.len() > 1 && most.half_open > fair;
        let last = if has_others { most.to_begin.pop_back() } else { None };
        self.to_begin -= usize::from(last.is_some());
        last
    }

    fn forget_if_gone(&mut self, source: Source) {
        if let Some(share) = self.shares.get(&source)
            && share.half_open == 0
            && share.to_begin.is_empty()
        {
            self.shares.remove(&source);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    fn source(text: &str) -> Source {
        Source::of(&PeerAddr::Tcp(SocketAddr::new(text.parse().unwrap(), 1)))
    }

    fn conn(slot: u32) -> ConnId {
        ConnId { slot, generation: 0 }
    }

    #[test]
    fn a_network_of_ipv6_is_one_source() {
        assert_eq!(source("2001:db8::1"), source("2001:db8::ffff:0:0:2"));
        assert_ne!(source("2001:db8::1"), source("2001:db8:0:1::1"));
        assert_eq!(source("::ffff:192.0.2.1"), source("192.0.2.1"));
        assert_ne!(source("192.0.2.2"), source("192.0.2.1"));
    }

    #[test]
    fn sources_begin_in_turns() {
        let (mut sources, [a, b]) =
            (Sources::default(), [source("192.0.2.1"), source("192.0.2.2")]);
        for slot in 0..4 {
            sources.insert(a);
            sources.push(a, conn(slot));
        }
        sources.insert(b);
        sources.push(b, conn(4));
        let order: Vec<u32> = std::iter::from_fn(|| sources.pop()).map(|conn| conn.slot).collect();
        assert_eq!(order, [0, 4, 1, 2, 3]);
        assert_eq!((sources.to_begin(), sources.last_of_most(4)), (0, None));
        sources.push(b, conn(4));
        sources.push(a, conn(0));
        sources.push(a, conn(1));
        assert_eq!((sources.last_of_most(4), sources.last_of_most(4)), (Some(conn(1)), None));
        assert_eq!(
            [sources.pop(), sources.pop(), sources.pop()],
            [Some(conn(4)), Some(conn(0)), None]
        );
    }

    #[test]
    fn a_source_is_full_when_its_clients_do_not_go_on() {
        let (mut sources, a) = (Sources::default(), source("192.0.2.1"));
        for slot in 0..50 {
            sources.insert(a);
            sources.push(a, conn(slot));
        }
        assert!(!sources.is_full(a, 100), "a crowd that comes at once");
        for _ in 0..GIVEN_UP_MIN {
            sources.given_up(a);
        }
        assert!(sources.is_full(a, 100) && sources.is_a_storm(100) && sources.is_suspect(a));
        assert!(!sources.is_full(a, 200), "it has a half at most");
        for _ in 0..GIVEN_UP_MIN {
            sources.established(a);
        }
        assert!(!sources.is_full(a, 100), "most of them go on");
    }

    #[test]
    fn nothing_is_kept_of_sources_that_are_gone() {
        let (mut sources, a) = (Sources::default(), source("192.0.2.1"));
        for _ in 0..2 {
            sources.insert(a);
        }
        sources.push(a, conn(0));
        assert!(sources.has_more_than_others(a, 1));
        sources.remove(a);
        sources.remove(a);
        assert_eq!(sources.pop(), Some(conn(0)));
        assert!(sources.shares.is_empty() && sources.turns.is_empty());
    }
}
