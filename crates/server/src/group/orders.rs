//! What operators order: members come and go, and another one leads.

use super::sitting::{PROPOSE_EVERY, Sitting};
use super::standing::Standing;
use ladon_kernel::cluster::{ClusterId, MemberKind, Order};
use ladon_log::Log;
use ladon_raft::{AsyncRuntime, GroupState, Index, Machine, Member, RuntimeInstant, Seat, Seen};
use ladon_record::Lsn;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

/// How long an order waits for another change of the members.
const CHANGE_WAIT_MAX: Duration = Duration::from_secs(5);

/// An order to a node that is no member yet: if it makes it one, its directory says so, and the number
/// in its cluster is returned.
///
/// # Errors
/// What the disk says; inside, why the order is refused.
pub fn join(
    order: Order,
    log: &Log,
    (index, state): (&mut Index, &mut GroupState),
) -> io::Result<Result<(ClusterId, u64), String>> {
    let joined = match order {
        Order::Create { cluster } => Ok((cluster, 1, false)),
        Order::Join { .. } if log.reserved() > Lsn::ZERO => {
            Err("this node has data, and would get the cluster's instead: begin with an empty \
                 directory"
                .to_owned())
        }
        Order::Join { cluster, member, is_witness } if member > 1 => {
            Ok((cluster, member, is_witness))
        }
        Order::Join { .. } => Err("a member that joins has a number above 1".to_owned()),
        _ => Err("this node is no member of a cluster".to_owned()),
    };
    if let Ok((cluster, member, is_witness)) = joined {
        // What is in the log came before the group.
        let begins = log.reserved();
        *index = Index::after(None, begins);
        match is_witness {
            true => state.set_witness(cluster, member)?,
            false => state.set_member(cluster, member, begins)?,
        }
    }
    Ok(joined.map(|(cluster, member, _)| (cluster, member)))
}

/// What a member is.
pub(super) fn kind_of(member: &Member) -> MemberKind {
    match (member.is_witness, member.is_replica) {
        (true, _) => MemberKind::Witness,
        (false, true) => MemberKind::Replica,
        (false, false) => MemberKind::Voter,
    }
}

impl<RT: AsyncRuntime> Sitting<RT>
where
    Machine<Standing, RT>: Send + Sync,
{
    /// Does what an operator orders, or says why not.
    pub fn obey(&self, order: Order, answer: Box<dyn FnOnce(Result<String, String>) + Send>) {
        let now = self.seat.now();
        if !now.leads || self.is_witness {
            let leader = self.handle.leader_told();
            return answer(Err(format!("this node does not lead its cluster{leader}")));
        }
        let (seat, handle) = (self.seat.clone(), Arc::clone(&self.handle));
        let is_promoting = Arc::clone(&self.is_promoting);
        let group_log = Arc::clone(&self.group_log);
        match order {
            Order::Create { .. } | Order::Join { .. } => {
                answer(Err("this node is a member of a cluster already".to_owned()));
            }
            Order::Number => {
                // The log only grows, and each new member is an entry of it.
                let number = self.numbers.load(SeqCst).max(now.last_index) + 1;
                self.numbers.store(number, SeqCst);
                answer(Ok(number.to_string()));
            }
            Order::Add { member, address, client, kind } => {
                let is_replica = kind == MemberKind::Replica;
                let is_witness = kind == MemberKind::Witness;
                drop(RT::spawn(async move {
                    if seat.members().iter().any(|other| other.id == member) {
                        return answer(Err(format!("there is a member {member} already")));
                    }
                    let added = Member { address, client, is_replica, is_witness };
                    if is_witness && !has_room_for_witness(&seat.members()) {
                        let text = "a cluster has no more witnesses than voting members with data";
                        return answer(Err(text.to_owned()));
                    }
                    await_members(&seat, &is_promoting).await;
                    if group_log.lacks_begin() {
                        let text = "what this node had before the cluster is in no checkpoint yet \
                                    that a new member could be sent: BGSAVE, and try again";
                        return answer(Err(text.to_owned()));
                    }
                    answer(seat.add(member, added).await.map(|()| "OK".to_owned()));
                }));
            }
            Order::Remove { member } => {
                if now.leader == Some(member) {
                    let text = "the leader cannot be removed: let another member lead first";
                    return answer(Err(text.to_owned()));
                }
                drop(RT::spawn(async move {
                    await_members(&seat, &is_promoting).await;
                    // One that waited for the same may have removed it.
                    if seat.members().iter().all(|other| other.id != member) {
                        return answer(Err(format!("there is no member {member}")));
                    }
                    // It learns for a moment, and is not to vote again.
                    handle.removes(member);
                    let removed = seat.remove(member).await;
                    if removed.is_err() {
                        handle.removes_not(member);
                    }
                    answer(removed.map(|()| "OK".to_owned()));
                }));
            }
            Order::Lead { member } => self.hand_over(member, answer),
        }
    }

    /// Lets another member lead. Writes wait meanwhile, so that none is lost on the way.
    fn hand_over(
        &self,
        wanted: Option<u64>,
        answer: Box<dyn FnOnce(Result<String, String>) + Send>,
    ) {
        let members = self.seat.members();
        let own = self.seat.now().leader;
        let may = |seen: &&Seen| {
            let is_wanted = wanted.is_none_or(|wanted| wanted == seen.id);
            seen.votes && !seen.member.is_witness && Some(seen.id) != own && is_wanted
        };
        let Some(target) = members.iter().filter(may).max_by_key(|seen| seen.matched) else {
            return answer(Err("there is no such voting member that has data".to_owned()));
        };
        let (id, patience) = (target.id, self.failover * 4);
        let (seat, shared, log) =
            (self.seat.clone(), Arc::clone(&self.shared), Arc::clone(&self.log));
        let (hands_over, clock) = (Arc::clone(&self.hands_over), Arc::clone(&self.shared.clock));
        let wake = self.handle.wake();
        drop(RT::spawn(async move {
            let deadline = RT::Instant::now() + patience;
            let until_ms = clock.unix_ms() + patience.as_millis() as u64;
            let pause = shared.pause(until_ms, ladon_kernel::shared::Paused::Writes);
            let step = Duration::from_millis(2);
            let is_quiet = || shared.is_pause_seen(pause, usize::MAX);
            while !is_quiet() && RT::Instant::now() < deadline {
                RT::sleep(step).await;
            }
            log.want_committed(log.records_end());
            let matches = || {
                let now = seat.now();
                let matched = seat.members().into_iter().find(|seen| seen.id == id);
                log.committed() >= log.records_end()
                    && matched.is_some_and(|seen| seen.matched == Some(now.last_index))
            };
            while !matches() && RT::Instant::now() < deadline {
                RT::sleep(step).await;
            }
            let mut told = Err(format!("member {id} did not catch up in time"));
            if matches() {
                hands_over.store(true, SeqCst);
                log.answer_for_group_until(0);
                told = seat.let_lead(id).await.map(|()| format!("member {id} leads"));
                while told.is_ok() && seat.now().leader != Some(id) {
                    if RT::Instant::now() >= deadline {
                        told = Err(format!("member {id} does not lead yet"));
                    }
                    RT::sleep(step).await;
                }
                hands_over.store(false, SeqCst);
            }
            shared.unpause();
            wake.notify_one();
            answer(told);
        }));
    }
}

/// Most votes are to be of members that have the data.
fn has_room_for_witness(members: &[Seen]) -> bool {
    let witnesses = members.iter().filter(|seen| seen.member.is_witness).count();
    let with_data = members.iter().filter(|seen| seen.votes && !seen.member.is_witness).count();
    witnesses < with_data
}

/// Waits, for a while, until no change of the members is under way: there is one at a time.
async fn await_members<RT: AsyncRuntime>(seat: &Seat<Standing, RT>, is_promoting: &AtomicBool)
where
    Machine<Standing, RT>: Send + Sync,
{
    let began = RT::Instant::now();
    while (is_promoting.load(SeqCst) || seat.is_changing()) && began.elapsed() < CHANGE_WAIT_MAX {
        RT::sleep(PROPOSE_EVERY).await;
    }
}
