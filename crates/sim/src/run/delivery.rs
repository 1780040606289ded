//! Takes in what the node ran and sent.

use super::Run;
use crate::client::Client;
use crate::history::Operation;
use crate::node::Ran;
use crate::scripts;
use crate::subscriber;
use ladon_log::LogState;
use ladon_net::ConnId;
use ladon_platform::Clock as _;
use std::sync::Arc;

impl Run {
    /// Takes in what the node says to have run.
    pub(super) fn note_ran(&mut self) {
        for ran in self.node().ran() {
            let (worker, slot, call) = match ran {
                Ran::Call { worker, slot, call } => (worker, slot, Some(call)),
                Ran::Served { worker, slot } => (worker, slot, None),
                Ran::InScript => {
                    self.last_script.1 = true;
                    if let (Some(at), _) = self.last_script {
                        self.history[at].script_is_idle = false;
                    }
                    continue;
                }
                Ran::Eviction(key) => {
                    self.report.evictions += 1;
                    self.order.push(self.history.len());
                    self.history.push(Operation::eviction(&key, self.step));
                    continue;
                }
            };
            let mut clients = self.clients.iter_mut();
            let Some(client) = clients.find(|c| c.worker == worker && c.conn.slot == slot) else {
                continue;
            };
            match call {
                Some(call) => {
                    let ran = client.ran(&call, &self.history);
                    self.order.extend(ran);
                    if let Some(at) = ran {
                        self.history[at].ran = Some(self.step);
                    }
                    if scripts::is_run(&call) {
                        self.last_script = (ran, false);
                    }
                    let is_script = |&at: &usize| self.history[at].runs_script();
                    if let Some(at) = ran.filter(is_script)
                        && !self.last_script.1
                    {
                        self.history[at].script_is_idle = true;
                    }
                }
                None => {
                    // Not when it came, but now.
                    let served = client.last_ran();
                    self.order.retain(|&at| Some(at) != served);
                    self.order.extend(served);
                }
            }
        }
    }

    pub(super) fn deliver(&mut self, worker: usize) -> Result<(), String> {
        self.note_ran();
        let threads = Arc::clone(&self.node().threads);
        if let Some(what) = threads.take_trouble() {
            return Err(self.explain(&what));
        }
        if let Some(spaces) = &mut self.spaces {
            spaces.note_ran(threads.take_packets()).map_err(|what| self.explain(&what))?;
        }
        self.report.congested_turns += u64::from(threads.worker(worker).has_waiting_publishers());
        let at_time = (self.step, self.clock.unix_us());
        let direct: Vec<_> =
            (0..threads.len()).flat_map(|at| threads.wire(at).take_direct()).collect();
        for (conn, bytes) in direct {
            self.report.hand_overs += 1;
            let client = self.clients.iter_mut().find(|client| client.conn == conn);
            client
                .ok_or("a reply for nobody")?
                .receive(&bytes, at_time, &mut self.history)
                .map_err(|what| self.explain(&what))?;
        }
        let (sent, closed) = {
            let mut wire = threads.wire(worker);
            (std::mem::take(&mut wire.sent), std::mem::take(&mut wire.closed))
        };
        for (conn, bytes) in sent {
            let is_heard =
                self.hears(worker, conn, &bytes)? || self.spaces_hear(worker, conn, &bytes)?;
            if !is_heard && conn != self.flooder() {
                let client = self.clients.iter_mut().find(|c| c.worker == worker && c.conn == conn);
                let client = client.ok_or("a reply for nobody")?;
                client
                    .receive(&bytes, at_time, &mut self.history)
                    .map_err(|what| self.explain(&what))?;
            }
            threads.worker(worker).sent(conn, bytes);
        }
        if let Some(gate) = self.clients.iter_mut().find_map(Client::take_default_set) {
            (self.default_gate, self.next_default_gate) = (gate, None);
        }
        for conn in closed {
            // Only a failed sync is a reason to hang up on these clients.
            if !matches!(self.node().log.state(), LogState::SyncFailed { .. }) {
                return Err(self.explain(&format!("worker {worker} hung up on {conn:?}")));
            }
            threads.worker(worker).closed(conn);
            self.subscribers.retain(|it| (it.worker, it.conn) != (worker, conn));
            self.clients.retain(|client| client.worker != worker || client.conn != conn);
            self.spaces.iter_mut().for_each(|spaces| spaces.closed(worker, conn));
        }
        Ok(())
    }

    /// Gives bytes to the client of spaces that they are for; whether there is one.
    fn spaces_hear(&mut self, worker: usize, conn: ConnId, bytes: &[u8]) -> Result<bool, String> {
        let Some(spaces) = &mut self.spaces else { return Ok(false) };
        let heard = spaces.receive((worker, conn), bytes, self.step);
        heard.map_err(|what| self.explain(&what))
    }

    /// Gives bytes to the subscriber that they are for; whether there is one.
    pub(super) fn hears(
        &mut self,
        worker: usize,
        conn: ConnId,
        bytes: &[u8],
    ) -> Result<bool, String> {
        let mut subscribers = self.subscribers.iter_mut();
        let Some(subscriber) = subscribers.find(|it| (it.worker, it.conn) == (worker, conn)) else {
            return Ok(false);
        };
        for payload in subscriber.receive(bytes, self.step)? {
            self.shown(&payload);
        }
        Ok(true)
    }

    /// A subscriber has got a message: no crash may take back what its publisher did before.
    pub(super) fn shown(&mut self, payload: &[u8]) {
        let has =
            |op: &Operation| op.calls.iter().any(|call| subscriber::is_publication(call, payload));
        let Some(at) = self.history.iter().position(has) else { return };
        self.report.messages += 1;
        self.history[at].is_shown = true;
        for client in &self.clients {
            client.shown(at, &mut self.history);
        }
    }
}
