//! What fails, and what operators do.

use super::place::{add, join};
use super::world::{Answer, Forgetting, Stranding, World};
use ladon_kernel::cluster::Order;
use ladon_log::LogState;
use ladon_sim_disk::{Fault, SimDisk};
use std::sync::Arc;

/// After so many steps, an order counts as lost.
const ORDER_STEPS: u64 = 600;

impl World {
    fn leader(&self) -> Option<usize> {
        let leads = |at: &usize| self.places[*at].life.as_ref().is_some_and(|life| life.leads());
        (0..self.places.len()).filter(|&at| self.runs(at)).find(leads)
    }

    /// A time around what the group takes for a new leader.
    fn while_us(&mut self) -> u64 {
        let failover_us = self.plan.failover_ms * 1000;
        failover_us / 4 + self.random.below(6 * failover_us)
    }

    /// Nothing gets through from here to there, or either way.
    fn isolate(&mut self, at: usize) {
        let id = self.places[at].id;
        let others: Vec<u64> =
            self.places.iter().map(|place| place.id).filter(|&other| other != id).collect();
        let (from, to) =
            self.random.pick(&[(true, true), (true, true), (true, false), (false, true)]);
        for other in others {
            self.cut.extend(from.then_some((id, other)));
            self.cut.extend(to.then_some((other, id)));
        }
    }

    /// Members do not hear this one nor it them, and clients that change something go elsewhere: what
    /// the others commit meanwhile is not to be missed by who reads here at the gate quorum.
    fn leave_to_readers(&mut self, at: usize) {
        let id = self.places[at].id;
        let others = self.places.iter().map(|place| place.id).filter(|&other| other != id);
        self.cut.extend(others.flat_map(|other| [(id, other), (other, id)]));
        self.quiet = Some(at);
        for number in 0..self.clients.len() {
            let client = &self.clients[number];
            let is_here = client.connection.as_ref().is_some_and(|it| it.place == at);
            if is_here != client.only_reads {
                self.hang_up(number);
            }
        }
    }

    /// The leader and one that follows it are cut off together, so that this one goes on to take it for
    /// the leader: who reads there at the gate quorum is not to miss what the others commit under another
    /// one.
    fn leave_follower_to_readers(&mut self, leader: usize) {
        let count = self.places.len() as u64;
        let follower = (leader + 1 + self.random.below(count - 1) as usize) % self.places.len();
        self.leave_to_readers(follower);
        let ids = [leader, follower].map(|at| self.places[at].id);
        self.cut.retain(|&(from, to)| !(ids.contains(&from) && ids.contains(&to)));
        let others = self.places.iter().map(|place| place.id).filter(|id| !ids.contains(id));
        self.cut.extend(others.flat_map(|other| [(ids[0], other), (other, ids[0])]));
    }

    pub(super) fn cut_or_heal(&mut self) {
        if !self.cut.is_empty() || self.random.chance(1, 3) {
            return;
        }
        self.report.cuts += 1;
        let count = self.places.len() as u64;
        let any = self.random.below(count) as usize;
        let at = self.leader().filter(|_| self.random.chance(2, 3)).unwrap_or(any);
        let is_read_only = Some(at) == self.leader() && self.random.chance(1, 2);
        let leads = self.leader().filter(|_| self.places.len() > 3 && self.random.chance(1, 2));
        if let Some(leader) = leads {
            self.leave_follower_to_readers(leader);
        } else if is_read_only {
            self.leave_to_readers(at);
        } else if self.random.chance(1, 4) {
            let (from, to) = (self.places[at].id, self.places[any].id);
            self.cut.insert((from, to));
        } else {
            self.isolate(at);
        }
        self.cut_until_us = match leads {
            // An election takes several answers, and each of them several steps.
            Some(_) => self.now_us + 8 * self.plan.failover_ms * 1000,
            None => self.now_us + self.while_us(),
        };
        if leads.is_some() {
            self.quick_us = self.now_us..self.cut_until_us;
        }
        let (cut, ms) = (self.cut.clone(), self.cut_until_us / 1000);
        self.note(|| format!("cut until {ms} ms: {cut:?}"));
    }

    /// Once in so many times, where there are power cuts and much is not on the disks yet.
    pub(super) fn may_lose_all_power(&mut self, times: u64) -> bool {
        self.plan.power_cuts && self.plan.slow_disks > 1 && self.random.chance(1, times)
    }

    /// All machines lose their power at once: what is on no disk is nowhere.
    pub(super) fn lose_all_power(&mut self) {
        self.note(|| "all lose their power".to_owned());
        for at in 0..self.places.len() {
            if self.places[at].life.is_some() {
                self.report.power_cuts += 1;
                self.end(at, true);
            }
        }
    }

    pub(super) fn fault(&mut self, at: usize) {
        let at = self.leader().filter(|_| self.random.chance(1, 3)).unwrap_or(at);
        if self.places[at].life.is_none() {
            return;
        }
        let id = self.places[at].id;
        match self.random.below(10) {
            0 | 1 => {
                self.report.kills += 1;
                self.note(|| format!("member {id} is killed"));
                self.end(at, false);
            }
            2 if self.may_lose_all_power(2) => self.lose_all_power(),
            2 if self.plan.power_cuts => {
                self.report.power_cuts += 1;
                self.note(|| format!("member {id} loses its power"));
                self.end(at, true);
            }
            3 if self.plan.power_cuts => {
                let operations = 1 + self.random.below(30);
                self.places[at].disk.cut_power_after(operations);
            }
            4 | 5 => {
                self.report.stops += 1;
                self.places[at].stopped_until_us = self.now_us + self.while_us();
                self.note(|| format!("member {id} stands still"));
            }
            6 => {
                self.places[at].raft_rests_until_us = self.now_us + self.while_us();
                self.note(|| format!("the group's thread of member {id} stands still"));
            }
            7 if self.plan.disk_errors => {
                let (fault, times) =
                    self.random.pick(&[(Fault::Write, 1), (Fault::Write, 3), (Fault::Sync, 1)]);
                self.places[at].disk.fail_next(fault, times);
                self.note(|| format!("the disk of member {id} fails: {fault:?}"));
            }
            8 if !self.plan.disk_errors => {
                self.report.full_disks += 1;
                self.places[at].full_until_us = self.now_us + 2 * self.while_us();
                self.places[at].disk.set_capacity(Some(0));
                self.note(|| format!("the disk of member {id} is full"));
            }
            // What one of two disks with the data lacks may be on the other one alone.
            9 if self.plan.wipes && (!self.plan.has_witness || self.places[at].is_witness) => {
                self.wipe(at);
            }
            _ => {}
        }
    }

    /// A member will not hear the leader and wait to lead, while another one, on which the leader's
    /// lease hangs, is about to restart. Nobody writes from now on.
    pub(super) fn forget_a_promise(&mut self) {
        if !self.faults || self.now_us < self.plan.forgets_from_us || self.is_calm() {
            return;
        }
        let Some(leader) = self.leader() else { return };
        let is_well = |at| self.runs(at) && self.places[at].raft_rests_until_us <= self.now_us;
        let all_run = (0..self.places.len()).all(is_well);
        if !all_run || !self.cut.is_empty() {
            return;
        }
        let one = (leader + 1 + self.random.below(2) as usize) % 3;
        let failover_us = self.plan.failover_ms * 1000;
        let cuts_us = self.now_us + failover_us / 2;
        let restarts_us = cuts_us + failover_us + self.random.below(2 * failover_us);
        self.quick_us = self.now_us..restarts_us + failover_us;
        self.restart = Some(Forgetting { cuts_us, restarts_us, leader, one });
    }

    /// The next step of it, if it is due.
    pub(super) fn go_on_forgetting(&mut self) -> Result<(), String> {
        let Some(Forgetting { cuts_us, restarts_us, leader, one }) = self.restart else {
            return Ok(());
        };
        let other = 3 - leader - one;
        let ids = [leader, one, other].map(|at| self.places[at].id);
        let is_upset = self.leader().is_some_and(|at| at != leader)
            || [leader, one, other].iter().any(|&at| !self.runs(at));
        if is_upset {
            self.restart = None;
        } else if restarts_us <= self.now_us {
            self.restart = None;
            self.end(other, false);
            self.leave_to_readers(leader);
            self.note(|| format!("member {} restarts, and nobody hears member {}", ids[2], ids[0]));
            return self.start(other);
        } else if cuts_us <= self.now_us && self.cut.is_empty() {
            self.cut.extend([(ids[0], ids[1]), (ids[1], ids[0])]);
            self.cut_until_us = restarts_us + 4 * self.plan.failover_ms * 1000;
            self.note(|| format!("members {} and {} do not hear each other", ids[0], ids[1]));
        }
        Ok(())
    }

    /// See [`Stranding`].
    pub(super) fn strand(&mut self) -> Result<(), String> {
        let failover_us = self.plan.failover_ms * 1000;
        let Some(Stranding { next_us, phase, leader, witness }) = self.strand else {
            self.begin_to_strand();
            return Ok(());
        };
        if self.now_us < next_us {
            return Ok(());
        }
        let writes = self.places[leader].life.as_ref().is_some_and(|it| it.standing.writes());
        if !writes && phase < 2 {
            self.strand = None;
            return Ok(());
        }
        self.strand = match phase {
            0 => {
                let mut left = 2_000;
                while left > 0
                    && let Some(life) = &mut self.places[witness].life
                    && !life.step_checkpoint()
                {
                    left -= 1;
                }
                self.note(|| "the witness restarts, and one lacks what it has".to_owned());
                self.end(witness, false);
                self.start(witness)?;
                Some(Stranding { next_us: self.now_us + failover_us, phase: 1, leader, witness })
            }
            1 => {
                self.note(|| "who has all that is committed is gone".to_owned());
                self.end(leader, false);
                self.cut.clear();
                let next_us = self.now_us + 12 * failover_us;
                Some(Stranding { next_us, phase: 2, leader, witness })
            }
            _ => None,
        };
        Ok(())
    }

    fn begin_to_strand(&mut self) {
        if !self.faults || self.now_us < self.plan.strands_from_us || self.is_calm() {
            return;
        }
        let Some(leader) = self.leader() else { return };
        let Some(witness) = self.places.iter().position(|place| place.is_witness) else { return };
        let is_well = |at| self.runs(at) && self.places[at].raft_rests_until_us <= self.now_us;
        if !(0..self.places.len()).all(is_well) || !self.cut.is_empty() {
            return;
        }
        // What two voters alone could commit needs all three as long as they change.
        let Some(life) = &mut self.places[leader].life else { return };
        if life.is_changing() || life.members().iter().filter(|(_, votes)| *votes).count() != 3 {
            return;
        }
        self.plan.strands_from_us = u64::MAX;
        let failover_us = self.plan.failover_ms * 1000;
        let ids = self.places.iter().enumerate().filter(|(at, _)| *at != leader && *at != witness);
        let one = ids.map(|(_, place)| place.id).next().unwrap_or_default();
        for other in [leader, witness].map(|at| self.places[at].id) {
            self.cut.extend([(one, other), (other, one)]);
        }
        self.cut_until_us = self.now_us + 40 * failover_us;
        let next_us = self.now_us + 3 * failover_us;
        // An election takes several answers, and each of them several steps.
        self.quick_us = self.now_us..self.now_us + 17 * failover_us;
        self.note(|| format!("member {one} lacks what comes now"));
        self.strand = Some(Stranding { next_us, phase: 0, leader, witness });
    }

    /// A disk is lost for good, if the group is whole otherwise: as long as a change of the members is
    /// under way, one of two may be all that a majority of those before it can spare.
    fn wipe(&mut self, at: usize) {
        let Some(leader) = self.leader() else { return };
        let Some(life) = &mut self.places[leader].life else { return };
        let members = life.members();
        let is_whole = !life.is_changing()
            && members.len() == self.places.len()
            && members.iter().all(|&(id, votes)| votes && self.places.iter().any(|it| it.id == id))
            && self.places.iter().all(|place| place.life.is_some());
        if !is_whole {
            return;
        }
        self.report.wipes += 1;
        let id = self.places[at].id;
        self.note(|| format!("member {id} has lost its disk"));
        self.end(at, true);
        let disk = SimDisk::new(self.random.next_u64());
        let place = &mut self.places[at];
        (place.disk, place.id) = (disk, 0);
    }

    /// Starts a node that does not run.
    pub(super) fn start_the_dead(&mut self, at: usize) -> Result<(), String> {
        let is_gone = self.strand.is_some_and(|strand| strand.leader == at && strand.phase > 1);
        let place = &self.places[at];
        if is_gone && self.faults {
            return Ok(());
        }
        if place.life.is_none() && place.id != 0 && (!self.faults || self.random.chance(1, 2)) {
            let id = place.id;
            self.note(|| format!("member {id} starts"));
            return self.start(at);
        }
        // What the disk has refused ends a member's part: only a restart helps.
        if self.plan.disk_errors
            && self.runs(at)
            && let Some(life) = &mut self.places[at].life
            && (matches!(life.log.state(), LogState::SyncFailed { .. }) || life.has_stopped())
        {
            self.end(at, false);
        }
        Ok(())
    }

    /// An operator gives an order, if there is a reason.
    pub(super) fn operate(&mut self) {
        if let Some((answer, since)) = &self.order {
            let is_answered = answer.lock().expect("nothing panics with it").is_some();
            if !is_answered && self.step - since < ORDER_STEPS {
                return;
            }
            self.order = None;
        }
        let Some(leader) = self.leader() else { return };
        if self.faults && self.random.chance(1, 12) {
            self.report.hand_overs += 1;
            self.note(|| "another one is to lead".to_owned());
            self.give(leader, Order::Lead { member: None });
            return;
        }
        let Some(life) = &mut self.places[leader].life else { return };
        let members = life.members();
        let is_known = |id: u64| members.iter().any(|&(member, _)| member == id);
        if let Some(at) = self.places.iter().position(|place| place.id == 0) {
            self.let_join(leader, at);
        } else if let Some(place) = self.places.iter().find(|place| !is_known(place.id)) {
            let (id, is_witness) = (place.id, place.is_witness);
            self.note(|| format!("member {id} is added"));
            self.give(leader, add(id, is_witness));
        } else if let Some(&(gone, _)) =
            members.iter().find(|(id, _)| self.places.iter().all(|place| place.id != *id))
        {
            self.note(|| format!("member {gone} is removed"));
            self.give(leader, Order::Remove { member: gone });
        }
    }

    /// A new node gets a number and joins.
    fn let_join(&mut self, leader: usize, at: usize) {
        let answer = self.give(leader, Order::Number);
        self.order = None;
        let told = answer.lock().expect("nothing panics with it").take();
        let Some(Ok(number)) = told else { return };
        let Ok(id) = number.parse::<u64>() else { return };
        let random = &mut self.random;
        let place = &mut self.places[at];
        // A power cut meanwhile: it is a new node again.
        let joins = join(id, place.is_witness);
        if place.start(Some(joins), &self.plan, random, &self.post, self.canary).is_err() {
            self.end(at, true);
            let disk = SimDisk::new(self.random.next_u64());
            let place = &mut self.places[at];
            (place.disk, place.id) = (disk, 0);
        }
        self.note(|| format!("a new node is member {id}"));
    }

    fn give(&mut self, leader: usize, order: Order) -> Answer {
        let answer = Answer::default();
        let told = Arc::clone(&answer);
        if let Some(life) = &mut self.places[leader].life {
            life.run(async move |sitting| {
                sitting.obey(
                    order,
                    Box::new(move |result| {
                        *told.lock().expect("nothing panics with it") = Some(result);
                    }),
                );
            });
        }
        self.order = Some((Arc::clone(&answer), self.step));
        answer
    }
}
