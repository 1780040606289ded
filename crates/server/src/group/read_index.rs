//! What a member that follows asks for those who wait to read at the gate `quorum`: the position of
//! the leader, one question at a time for all of them ([`ladon_kernel::leader_reads`]).
//!
//! A round is the time of one question. It is asked again if the leader changes or says that it does
//! not answer for the group at the moment, and given up after `failover-timeout`, when nobody waits for
//! it any more.

use super::planted::Planted;
use super::standing::Standing;
use ladon_kernel::leader_reads::LeaderReads;
use ladon_kernel::shared::Shared;
use ladon_raft::{
    AsyncRuntime, Member, MemberId, Request, Response, RuntimeInstant, Seen, Transport,
};
use ladon_record::Lsn;
use parking_lot::Mutex;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// A leader that does not answer for the group now may do so after so long.
const ASK_AGAIN: Duration = Duration::from_millis(10);

type Answer = Pin<Box<dyn Future<Output = io::Result<Response>> + Send>>;

/// Asks the leader for its position.
type Ask = Box<dyn Fn(MemberId, Member) -> Answer + Send + Sync>;

/// The questions of a member.
pub(super) struct ReadIndex<RT: AsyncRuntime> {
    shared: Arc<Shared>,
    standing: Arc<Standing>,
    ask: Ask,
    wake: Arc<Notify>,
    failover: Duration,
    planted: Planted,
    round: Arc<Mutex<Option<Round<RT>>>>,
}

struct Round<RT: AsyncRuntime> {
    number: u64,
    /// The epoch of its question.
    epoch: u64,
    began: RT::Instant,
    step: Step<RT>,
    /// Questions so far: the answer to an earlier one is none.
    attempts: u64,
}

enum Step<RT: AsyncRuntime> {
    /// The question is to be sent from then on.
    Due(RT::Instant),
    /// It was sent to this member.
    Asked(MemberId),
    /// The position is known, and the data does not have that much yet.
    Known,
}

impl<RT: AsyncRuntime> ReadIndex<RT> {
    /// Those of a member that has just taken its seat. `wake` is notified when there is something to
    /// do.
    pub(super) fn new<T: Transport>(
        (shared, standing): (&Arc<Shared>, &Arc<Standing>),
        transport: &Arc<T>,
        (wake, failover): (&Arc<Notify>, Duration),
        planted: Planted,
    ) -> ReadIndex<RT> {
        let transport = Arc::clone(transport);
        let ask: Ask = Box::new(move |leader, member| {
            let transport = Arc::clone(&transport);
            Box::pin(async move { transport.ask(leader, &member, Request::ReadIndex).await })
        });
        let asks = Arc::clone(wake);
        // The data is perhaps another one than before.
        shared.leader_reads.begin_epoch();
        shared.leader_reads.asks_with(Arc::new(move || asks.notify_one()));
        ReadIndex {
            shared: Arc::clone(shared),
            standing: Arc::clone(standing),
            ask,
            wake: Arc::clone(wake),
            failover,
            planted,
            round: Arc::default(),
        }
    }

    fn reads(&self) -> &LeaderReads {
        &self.shared.leader_reads
    }

    /// Looks whether anybody waits, and asks.
    pub(super) fn turn(&self, leader: Option<MemberId>, members: &[Seen]) {
        let mut round = self.round.lock();
        if round.as_ref().is_some_and(|it| self.is_over(it)) {
            *round = None;
        }
        if round.is_none() {
            let epoch = self.reads().epoch();
            *round = self.reads().begin_round().map(|number| Round::begin(number, epoch));
        }
        let Some(now) = &mut *round else { return };
        if self.planted == Planted::ReadIndexIgnored {
            self.standing.read_from(now.number, now.epoch, Lsn::ZERO);
            return;
        }
        let Some(leader) = leader else { return };
        let is_due = match now.step {
            Step::Due(at) => at <= RT::Instant::now(),
            Step::Asked(other) => other != leader,
            Step::Known => false,
        };
        let Some(seen) = members.iter().find(|seen| seen.id == leader).filter(|_| is_due) else {
            return;
        };
        now.step = Step::Asked(leader);
        now.attempts += 1;
        let asked = (now.number, now.attempts);
        let answer = (self.ask)(leader, seen.member.clone());
        self.await_answer(asked, answer);
    }

    /// Nobody waits for it any more.
    fn is_over(&self, round: &Round<RT>) -> bool {
        self.reads().epoch() != round.epoch
            || self.reads().is_granted(round.number)
            || round.began.elapsed() > self.failover
    }

    fn await_answer(&self, (number, attempt): (u64, u64), answer: Answer) {
        let (shared, standing) = (Arc::clone(&self.shared), Arc::clone(&self.standing));
        let (round, wake) = (Arc::clone(&self.round), Arc::clone(&self.wake));
        drop(RT::spawn(async move {
            let answer = answer.await;
            let known = {
                let mut round = round.lock();
                let is_it = |it: &&mut Round<RT>| (it.number, it.attempts) == (number, attempt);
                let Some(it) = round.as_mut().filter(is_it) else { return };
                match answer {
                    Ok(Response::Position(Some(position))) => {
                        it.step = Step::Known;
                        Some((it.epoch, position))
                    }
                    Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                        shared.leader_reads.note_unknown(number);
                        *round = None;
                        None
                    }
                    _ => {
                        it.step = Step::Due(RT::Instant::now() + ASK_AGAIN);
                        None
                    }
                }
            };
            if let Some((epoch, position)) = known {
                standing.read_from(number, epoch, position);
            }
            // Others may wait for the next one.
            wake.notify_one();
        }));
    }

    /// When to take the next turn, if a question is to be sent again.
    pub(super) fn pause(&self) -> Option<Duration> {
        let round = self.round.lock();
        round.as_ref().and_then(|it| matches!(it.step, Step::Due(_)).then_some(ASK_AGAIN))
    }
}

impl<RT: AsyncRuntime> Round<RT> {
    fn begin(number: u64, epoch: u64) -> Round<RT> {
        let now = RT::Instant::now();
        Round { number, epoch, began: now, step: Step::Due(now), attempts: 0 }
    }
}
