//! Lets everything come to its end while nothing fails.

use super::Run;
use crate::history::Operation;
use crate::oracle::{Verdict, judge};
use crate::oracle_commands::readable;
use crate::spaces::Spaces;
use crate::streams;
use crate::subscriber;
use ladon_platform::Clock as _;
use std::sync::Arc;

impl Run {
    /// Delivers everything that is owed, as far as a broken disk allows.
    pub(super) fn settle(&mut self) -> Result<(), String> {
        self.disk.heal();
        self.come_to_rest()?;
        let threads = Arc::clone(&self.node().threads);
        // A client may have sent several consecutive waits of five seconds.
        let waiting = self.history.iter().filter(|operation| operation.end.is_none()).count();
        for _ in 0..20 + 5 * waiting {
            self.begin_step();
            self.clock.advance_us(1_200_000);
            self.send_the_rest();
            self.log_steps();
            // A long reply gets an element a turn.
            for turn in 0..10 * self.plan.workers {
                let worker = turn % self.plan.workers;
                threads.turn(worker, false);
                self.deliver(worker)?;
            }
        }
        let node = self.node.as_ref().expect("a node lives between crashes");
        if !self.disk.power_is_off() && node.log.accepts_writes() {
            let is_open = |it: &&Operation| it.end.is_none() && it.by_itself.is_none();
            if let Some(open) = self.history.iter().find(is_open) {
                return Err(self.explain(&format!("never answered: {}", open.show())));
            }
            let spaces = self.spaces.as_ref();
            if let Some(what) = spaces.and_then(|it| it.trouble_at_rest(&node.keyspace)) {
                return Err(self.explain(&what));
            }
            let all = true;
            if let Some(what) = subscriber::trouble(&self.subscribers, &self.history, all) {
                return Err(self.explain(&what));
            }
            if let Some(what) = streams::overlooked(&self.history, Some(self.clock.unix_us())) {
                return Err(self.explain(&what));
            }
            let data = node.data();
            let mut history = self.history.clone();
            streams::resolve(&mut history, &data);
            if judge(&history, &self.order, &self.before, &data) == Verdict::Unexplained {
                return Err(
                    self.explain(&format!("not linearizable; the data: {}", readable(&data)))
                );
            }
        }
        Ok(())
    }

    /// What clients have kept of their requests.
    pub(super) fn send_the_rest(&mut self) {
        let threads = Arc::clone(&self.node().threads);
        self.spaces.iter_mut().for_each(|spaces| spaces.send_the_rest(&threads));
        for client in &mut self.clients {
            if !threads.is_paused(client.worker, client.conn)
                && let Some(bytes) = client.take_unsent()
            {
                threads.receive(client.worker, client.conn, &bytes);
            }
        }
    }

    /// Runs every thread as long as it is awake, while almost no time passes. Every client that
    /// does not wait for a key must get its reply; otherwise a wake-up is missing or a client
    /// starves.
    pub(super) fn come_to_rest(&mut self) -> Result<(), String> {
        /// Turns of a worker in a millisecond: a flooded one always has something to do.
        const TURNS_MAX: usize = 50;
        const ROUNDS: usize = 40;
        let (mut owed_before, mut spaces_owed_before) = (Vec::new(), Vec::new());
        let threads = Arc::clone(&self.node().threads);
        let well = !self.disk.power_is_off() && self.node().log.accepts_writes();
        for round in 0..ROUNDS {
            self.step += 1;
            self.clock.advance_us(1_000);
            if round == ROUNDS / 2 {
                (owed_before, spaces_owed_before) = (self.owed(), self.spaces_owed());
            }
            self.send_the_rest();
            for _ in 0..TURNS_MAX {
                let mut any = threads.write();
                for worker in 0..threads.len() {
                    self.flood(worker)?;
                    any |= threads.turn(worker, false);
                }
                (0..threads.len()).try_for_each(|worker| self.deliver(worker))?;
                if !any {
                    break;
                }
            }
        }
        if well && self.node().log.accepts_writes() {
            // Requests that only a just-ended wait held up do not count.
            let owed = self.owed();
            if let Some(&at) = owed.iter().find(|at| owed_before.contains(at)) {
                let what = format!("held up: {}", self.history[at].show());
                return Err(self.explain(&what));
            }
            let owed = self.spaces_owed();
            if let Some(&at) = owed.iter().find(|at| spaces_owed_before.contains(at)) {
                let what = self.spaces.as_ref().map(|spaces| spaces.show(at)).unwrap_or_default();
                return Err(self.explain(&format!("held up: {what}")));
            }
            // Half of the rounds ago, so that it came to its waiters since.
            let then_us = self.clock.unix_us() - ROUNDS as u64 / 2 * 1_000;
            if let Some(what) = streams::overlooked(&self.history, Some(then_us)) {
                return Err(self.explain(&what));
            }
        }
        Ok(())
    }

    /// What clients wait for, without any reason that is their own.
    pub(super) fn owed(&self) -> Vec<usize> {
        self.clients.iter().filter_map(|client| client.owed(&self.history)).collect()
    }

    fn spaces_owed(&self) -> Vec<usize> {
        self.spaces.as_ref().map_or_else(Vec::new, Spaces::owed)
    }
}
