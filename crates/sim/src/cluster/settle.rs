//! Everything is well: the members come together, go on, and have the same data.

use super::client::Outcome;
use super::oracle::{self, Lists};
use super::world::World;
use crate::node::data_of;
use crate::oracle_commands::{Datum, readable};
use ladon_record::Gate;

/// Rounds of five milliseconds after which a group that does not come together never will.
const ROUNDS_MAX: usize = 3_000;

impl World {
    /// One round of everything, while nothing fails.
    fn calm_round(&mut self) -> Result<(), String> {
        self.pass(5_000);
        for at in 0..self.places.len() {
            self.start_the_dead(at)?;
            self.take_part(at)?;
            self.log_step(at);
            for _ in 0..self.plan.workers {
                self.worker_turns(at)?;
            }
        }
        self.operate();
        let mut left = 200;
        while left > 0 && !self.post.lock().expect("nothing panics with it").is_empty() {
            self.pass(50);
            self.deliver()?;
            left -= 1;
        }
        self.look();
        Ok(())
    }

    /// Rounds until one leads, all others vote, and all have all data.
    pub(super) fn come_together(&mut self) -> Result<(), String> {
        for _ in 0..ROUNDS_MAX {
            self.calm_round()?;
            if self.is_together() {
                return Ok(());
            }
        }
        for (at, place) in self.places.iter_mut().enumerate() {
            if let Some(why) = place.life.as_mut().and_then(|life| life.why_stopped()) {
                return Err(format!("the library of the place {at} has stopped: {why}"));
            }
        }
        Err("the members do not come together".to_owned())
    }

    fn is_together(&mut self) -> bool {
        let count = self.places.len();
        let leads = |at: &usize| self.places[*at].life.as_ref().is_some_and(|it| it.leads());
        let mut leaders = (0..count).filter(leads);
        let (Some(leader), None) = (leaders.next(), leaders.next()) else { return false };
        let Some(life) = &mut self.places[leader].life else { return false };
        // What it has from leaders before it may be all that it has.
        let end = life.log.records_end().max(life.standing.applied());
        let (members, (last, _)) = (life.members(), life.entries());
        let is_member = |id: u64| members.contains(&(id, true));
        members.len() == count
            && self.places.iter_mut().all(|place| {
                // One whose disk failed may have as many bytes, of entries that nobody else has.
                let has_all = |life: &mut super::place::Life| {
                    life.standing.applied() >= end
                        && life.log.durable() >= end
                        && life.entries() == (last, last)
                };
                is_member(place.id) && place.life.as_mut().is_some_and(has_all)
            })
    }

    /// Heals everything, and judges what is there then.
    pub(super) fn settle(&mut self) -> Result<(), String> {
        self.faults = false;
        self.cut.clear();
        (self.quiet, self.restart, self.quick_us) = (None, None, 0..0);
        self.strand = None;
        self.note(|| "all is well from now on".to_owned());
        for place in &mut self.places {
            place.disk.heal();
            (place.stopped_until_us, place.raft_rests_until_us) = (0, 0);
            place.full_until_us = 0;
        }
        self.come_together()?;
        self.go_on()?;
        self.come_together()?;
        self.judge()
    }

    /// Every client is answered, and somebody appends at the gate quorum and reads.
    fn go_on(&mut self) -> Result<(), String> {
        let goal = self.report.quorum_answers + 4;
        for _ in 0..ROUNDS_MAX {
            let quorum: Vec<usize> = (0..self.clients.len())
                .filter(|&it| self.clients[it].gate == Gate::Quorum)
                .collect();
            let waits = self.clients.iter().any(|client| client.waits());
            if self.report.quorum_answers >= goal {
                if !waits {
                    return Ok(());
                }
            } else {
                for number in quorum {
                    self.ask_calmly(number);
                }
            }
            self.calm_round()?;
        }
        Err("the group does not go on".to_owned())
    }

    fn ask_calmly(&mut self, number: usize) {
        if self.clients[number].connection.is_none() {
            self.connect(number);
        }
        let Some(connection) = &self.clients[number].connection else { return };
        let (place, worker, conn) = (connection.place, connection.worker, connection.conn);
        let leads = self.places[place].life.as_ref().is_some_and(|life| life.leads());
        if !leads {
            // Here it would hear nothing but refusals.
            self.hang_up(number);
            return;
        }
        if self.clients[number].may_send() {
            let at = self.history.len();
            let (asked, bytes) = self.clients[number].ask(&mut self.random, at);
            self.sends(number, asked);
            if let Some(life) = &self.places[place].life {
                life.threads.receive(worker, conn, &bytes);
            }
        }
    }

    fn judge(&mut self) -> Result<(), String> {
        let with_data = || self.places.iter().filter(|place| !place.is_witness);
        let lives = || with_data().filter_map(|place| place.life.as_ref());
        let witness = self.places.iter().find(|place| place.is_witness);
        if let Some(life) = witness.and_then(|place| place.life.as_ref())
            && !data_of(&life.keyspace, 0).keys.is_empty()
        {
            return Err("the witness has data".to_owned());
        }
        // As of a time at which nothing is expired: what leaders remove, all have removed.
        let all: Vec<_> = lives().map(|life| data_of(&life.keyspace, 0)).collect();
        if let Some(other) = all.iter().find(|data| **data != all[0]) {
            let (first, other) = (readable(&all[0]), readable(other));
            return Err(format!("members have different data:{first}\nand{other}"));
        }
        let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
        let mut lists: Lists =
            ["q0", "q1", "w0", "w1"].map(|it| (it.to_owned(), Vec::new())).into();
        for (key, datum) in &all[0].keys {
            if let (Some(list), Datum::List(found)) = (lists.get_mut(&text(key)), datum) {
                *list = found.iter().map(text).collect();
            }
        }
        let last_reign = lives().find_map(|life| life.reign);
        let waits_hold = self.report.wipes == 0;
        if let Some(what) = oracle::trouble(&self.history, &lists, last_reign, waits_hold) {
            return Err(format!("{what}\nlists: {lists:?}"));
        }
        let lost = self.history.iter().filter(|it| {
            let super::client::Asked::Append { list, value } = &it.asked else { return false };
            matches!(it.end, Some((_, Outcome::Length(_)))) && !lists[list].contains(value)
        });
        self.report.taken_back += lost.count() as u64;
        Ok(())
    }
}
