//! What a group of nodes has agreed on about the log of one of its members: how far it is
//! committed, and until when this node may answer for the group.
//!
//! The log only keeps the two figures and wakes who waits for them. Who leads and what is committed
//! is decided elsewhere (crate `raft`), and told here.

use crate::log::Log;
use crate::sync_primitives::{AtomicBool, AtomicU64, Mutex, Ordering, fence};
use ladon_record::Lsn;
use std::sync::Arc;

/// A renewed lease that had less time left than this wakes those who may have found it over.
const ALMOST_OVER_NS: u64 = 50_000_000;

/// Called when somebody waits for the group.
type Propose = Arc<dyn Fn() + Send + Sync>;

pub(crate) struct Agreement {
    is_member: AtomicBool,
    /// Until when no other node can lead, in monotonic nanoseconds.
    valid_until_ns: AtomicU64,
    propose: Mutex<Option<Propose>>,
    /// Up to where the other members have the log on their disks, as the leader knows.
    others: Mutex<Vec<Lsn>>,
}

impl Agreement {
    pub(crate) fn new() -> Agreement {
        Agreement {
            is_member: AtomicBool::new(false),
            valid_until_ns: AtomicU64::new(0),
            propose: Mutex::new(None),
            others: Mutex::new(Vec::new()),
        }
    }
}

impl Log {
    /// The log is that of a member of a group from now on. `propose` is called, from any thread,
    /// when somebody waits for more to be committed; it must be cheap and must not call back into the
    /// log.
    pub fn belongs_to_group(&self, propose: Propose) {
        *self.agreement.propose.lock() = Some(propose);
        self.agreement.is_member.store(true, Ordering::SeqCst);
    }

    /// Whether the log is that of a member of a group.
    #[inline]
    pub fn is_of_group(&self) -> bool {
        self.agreement.is_member.load(Ordering::Relaxed)
    }

    /// Everything up to here is on the disks of most members: no change of the leader takes it back.
    #[inline]
    pub fn committed(&self) -> Lsn {
        Lsn(self.positions.committed.0.load(Ordering::Acquire))
    }

    /// The group has committed everything up to `lsn`. Called by one thread.
    pub fn advance_committed(&self, lsn: Lsn) {
        let before = self.positions.committed.0.fetch_max(lsn.0, Ordering::AcqRel);
        if before < lsn.0 {
            self.waiters.committed_advanced(lsn.0);
        }
    }

    /// The other members have the log on their disks up to here; on a node that does not lead,
    /// there are none. Called by one thread.
    pub fn others_reach(&self, has: &[Lsn]) {
        {
            let mut others = self.agreement.others.lock();
            if *others == has {
                return;
            }
            others.clear();
            others.extend_from_slice(has);
        }
        let news = self.positions.others_news.0.fetch_add(1, Ordering::AcqRel) + 1;
        self.waiters.others_changed(news);
    }

    /// How many other members have everything up to `lsn` on their disks.
    pub fn others_have(&self, lsn: Lsn) -> usize {
        self.agreement.others.lock().iter().filter(|&&has| has >= lsn).count()
    }

    /// How often [`Log::others_have`] has changed: to be read before it.
    #[inline]
    pub fn others_news(&self) -> u64 {
        self.positions.others_news.0.load(Ordering::Acquire)
    }

    /// No other node leads the group before this moment (monotonic nanoseconds; zero: one may lead
    /// now).
    pub fn answer_for_group_until(&self, until_ns: u64) {
        let before_ns = self.agreement.valid_until_ns.swap(until_ns, Ordering::SeqCst);
        let now_ns = self.place.clock.monotonic_ns();
        let is_renewed = until_ns > now_ns && before_ns < now_ns.saturating_add(ALMOST_OVER_NS);
        if is_renewed || until_ns < before_ns {
            self.waiters.state_changed();
        }
    }

    /// Up to where a reply at the gate `quorum` may leave now: what is committed, if nobody else can
    /// lead the group and have committed more; else zero. Without a group: what is on the disk.
    #[inline]
    pub fn agreed(&self) -> Lsn {
        if !self.is_of_group() {
            return self.durable();
        }
        // The position first: if the lease holds afterwards, it held when that was read.
        let committed = self.committed();
        let until_ns = self.agreement.valid_until_ns.load(Ordering::SeqCst);
        if self.place.clock.monotonic_ns() < until_ns { committed } else { Lsn::ZERO }
    }

    /// Whether the log is that of a member which does not lead its group.
    #[inline]
    pub fn is_led_elsewhere(&self) -> bool {
        self.is_of_group() && self.agreement.valid_until_ns.load(Ordering::Relaxed) == 0
    }

    /// Asks the group to commit everything up to `lsn`, or read replicas to say what they have; cheap
    /// if that was already asked.
    #[inline]
    pub fn want_committed(&self, lsn: Lsn) {
        if self.positions.wanted.0.load(Ordering::Relaxed) < lsn.0 {
            self.ask_group(lsn);
        }
    }

    #[cold]
    fn ask_group(&self, lsn: Lsn) {
        self.positions.wanted.0.fetch_max(lsn.0, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        self.waiters.wanted_advanced(lsn.0);
        if let Some(propose) = &*self.agreement.propose.lock() {
            propose();
        }
    }

    /// The highest position that was asked for.
    pub fn wanted_committed(&self) -> Lsn {
        Lsn(self.positions.wanted.0.load(Ordering::SeqCst))
    }

    /// What somebody wanted may be behind the log's end after a cut.
    pub(crate) fn cut_agreement(&self, to: Lsn) {
        self.positions.wanted.0.fetch_min(to.0, Ordering::SeqCst);
    }
}
