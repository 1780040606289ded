//! The end of a life, and what the next one finds.

use super::Run;
use crate::client::Client;
use crate::history::Operation;
use crate::node::SimNode;
use crate::oracle::{Verdict, judge};
use crate::oracle_commands::{Datum, readable};
use crate::subscriber::{self, Subscriber};
use crate::{functions, producers, scripts, streams};
use ladon_record::Gate;
use ladon_resp::client::Value;
use std::rc::Rc;

impl Run {
    pub(super) fn crash(&mut self) -> Result<(), String> {
        self.report.crashes += 1;
        if let Some(what) = subscriber::trouble(&self.subscribers, &self.history, false) {
            return Err(self.explain(&what));
        }
        self.node = None;
        self.clients.clear();
        self.subscribers.clear();
        // If there is one gate, it must be one that allows this.
        let is_cut =
            self.plan.power_cuts && (self.plan.own_gates.is_empty() || self.random.chance(2, 3));
        let is_cut = is_cut || self.disk.power_is_off();
        if is_cut {
            self.disk.power_cut();
        } else {
            self.disk.kill();
        }
        self.note_what_may_be_lost(is_cut);
        (self.default_gate, self.next_default_gate) = (self.plan.gate, None);
        self.times.clear();
        self.synced_step = self.step;
        self.disk.heal();
        if let Some(random) = &mut self.backwards
            && random.chance(1, 3)
        {
            self.clock.set_back_us(random.below(10_000_000));
            self.report.clock_steps += 1;
        }
        let before = std::mem::take(&mut self.before);
        let mut history = std::mem::take(&mut self.history);
        let order = std::mem::take(&mut self.order);
        self.begin_life()?;
        let refused = || history.iter().filter(|operation| operation.found_no_memory());
        self.report.refusals += refused().count() as u64;
        self.count(&history);
        let subscribers = if self.plan.listens.is_some() { 2 * self.plan.workers } else { 0 };
        // Spaces take memory that no eviction frees.
        let is_enough = |connections| {
            let limit = self.plan.memory;
            limit.is_none_or(|limit| limit.is_enough(connections) && self.plan.spaces.is_none())
        };
        let connections = (self.plan.clients + self.plan.workers + subscribers) as u64;
        if is_enough(connections)
            && let Some(refused) = refused().next()
        {
            return Err(self.explain(&format!("refused with keys to evict: {}", refused.show())));
        }
        let overlooked = streams::overlooked(&history, None);
        if let Some(what) = overlooked.or_else(|| producers::twice(&self.before)) {
            self.history = history;
            return Err(self.explain(&what));
        }
        streams::resolve(&mut history, &self.before);
        let verdict = judge(&history, &order, &before, &self.before);
        self.report.undecided += u64::from(verdict == Verdict::Undecided);
        if verdict == Verdict::Unexplained {
            let found = self.before.clone();
            (self.history, self.before) = (history, before);
            return Err(self.explain(&format!(
                "after the crash at step {}: {}",
                self.step,
                readable(&found)
            )));
        }
        Ok(())
    }

    /// Notes which replies the crash may take back.
    fn note_what_may_be_lost(&mut self, is_cut: bool) {
        for operation in &mut self.history {
            let end = operation.end.as_ref().map_or(0, |(end, _)| *end);
            let may_be_lost = match operation.gate.gate() {
                Gate::None => true,
                Gate::Write => is_cut,
                Gate::EverySec => is_cut && end > self.synced_step,
                Gate::Fsync | Gate::Quorum => false,
            };
            operation.may_be_lost = may_be_lost && !operation.is_durable && !operation.is_shown;
            self.report.waits_kept += u64::from(may_be_lost && operation.is_durable);
        }
        self.spaces.iter_mut().for_each(|spaces| spaces.crash(is_cut, self.synced_step));
    }

    /// What the operations of a life were.
    pub(super) fn count(&mut self, history: &[Operation]) {
        for datum in self.before.keys.values() {
            if let Datum::Stream(stream) = datum {
                self.report.duplicates += stream.sent.duplicates;
            }
        }
        for (call, reply) in history.iter().flat_map(Operation::answered) {
            let is_done = !matches!(reply, Value::Error(_));
            self.report.libraries_changed +=
                u64::from(call[0] == b"FUNCTION" && call[1] != b"DUMP" && is_done);
            self.report.functions_run += u64::from(functions::is_run(call) && is_done);
            let got_entries = streams::may_wait(call) && matches!(reply, Value::Array(_));
            self.report.entries_awaited += u64::from(call[0] == b"XREAD" && got_entries);
            self.report.ids_made += u64::from(streams::is_id_made(call, reply));
            let is_unknown = scripts::is_unknown(call, reply);
            self.report.scripts_unknown += u64::from(is_unknown);
            self.report.scripts_by_hash += u64::from(call[0] == b"EVALSHA" && !is_unknown);
        }
    }

    pub(super) fn begin_life(&mut self) -> Result<(), String> {
        let node =
            SimNode::start(&self.disk, &self.clock, &self.plan, &mut self.random, self.canary);
        let mut node = node.map_err(|what| self.explain(&what))?;
        self.before = node.data();
        self.begin_life_of_spaces(&mut node)?;
        for slot in 0..self.plan.clients {
            let worker = slot % self.plan.workers;
            let conn = node.connect(worker, slot as u32);
            self.names += 1;
            let producer = self.producers.get(slot).map(Rc::clone);
            self.clients.push(Client::new(self.names, conn, worker, &self.plan, producer));
        }
        for worker in 0..self.plan.workers {
            node.connect(worker, self.plan.clients as u32);
            for more in (1..=2).filter(|_| self.plan.listens.is_some()) {
                let conn = node.connect(worker, self.plan.clients as u32 + more);
                self.subscribers.push(Subscriber::new(conn, worker));
            }
        }
        self.node = Some(node);
        Ok(())
    }

    /// Judges what is found of the spaces, and connects their clients.
    fn begin_life_of_spaces(&mut self, node: &mut SimNode) -> Result<(), String> {
        // Behind the subscribers'.
        let slot = self.plan.clients as u32 + 3;
        let Some(mut spaces) = self.spaces.take() else { return Ok(()) };
        let begun = spaces.recovered(node, &self.plan, slot, &mut self.report);
        self.spaces = Some(spaces);
        begun.map_err(|what| self.explain(&what))
    }
}
