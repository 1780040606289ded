//! Spaces: clients that speak IPROTO beside the others, and what they are promised.
//!
//! They insert, replace, update, upsert, delete and select on three or four small spaces, alone and
//! in transactions over streams, and change definitions at times. In some runs, a foreign key binds
//! two of the spaces. In some, two of the clients are users, and a third one, as admin, grants them
//! rights to spaces and revokes them. The oracle (`journal`) knows the order in which the packets
//! ran, and follows it while they do.
//!
//! Nothing else shares the spaces' data, so they are judged for themselves.

mod client;
mod contents;
mod definition;
mod journal;
mod procedure;
mod request;
mod setup;
mod transaction;

use crate::node::SimNode;
use crate::plan::Plan;
use crate::run::Report;
use crate::threads::Threads;
use client::Client;
pub(crate) use contents::USERS;
use journal::Journal;
pub(crate) use journal::When;
use ladon_engine::Keyspace;
use ladon_iproto::{Header, frame};
use ladon_net::ConnId;
use ladon_record::Gate;
use ladon_testkit::Random;
pub(crate) use request::Habits;
use request::Who;
pub(crate) use setup::{PASSWORD, forget_indexes};

/// A packet that the node has run.
pub(crate) struct RanPacket {
    pub(crate) worker: usize,
    pub(crate) slot: u32,
    /// The packet's number; 0 if it has none.
    pub(crate) sync: u64,
    /// The reply; empty if it is made in slices. Without one, the packet goes on later.
    pub(crate) reply: Option<Vec<u8>>,
    pub(crate) when: When,
}

/// The number of a packet, with its length in front.
pub(crate) fn sync_of(packet: &[u8]) -> u64 {
    let frame::Progress::Complete { start, end } = frame::next(packet, frame::PACKET_BYTES_MAX)
    else {
        return 0;
    };
    Header::decode(&packet[start..end]).map_or(0, |(header, _)| header.sync)
}

/// The clients, and what is known of the spaces.
pub(crate) struct Spaces {
    random: Random,
    clients: Vec<Client>,
    journal: Journal,
    names: u64,
    may_refuse: bool,
    /// There was no life yet.
    is_new: bool,
}

impl Spaces {
    pub(crate) fn new(seed: u64, plan: &Plan) -> Spaces {
        let may_fail = plan.write_errors || plan.sync_errors || plan.power_cuts;
        Spaces {
            random: Random::new(seed),
            clients: Vec::new(),
            journal: Journal::default(),
            names: seed,
            may_refuse: may_fail || plan.memory.is_some(),
            is_new: true,
        }
    }

    /// Connects to a node that has recovered, on slots from `slot` on.
    ///
    /// # Errors
    /// If its indexes do not agree with each other.
    fn begin_life(&mut self, node: &mut SimNode, plan: &Plan, slot: u32) -> Result<(), String> {
        if !setup::is_done(&node.keyspace) {
            node.set_gate(Gate::Fsync)?;
            setup::make(node, slot, plan.space_habits)?;
            node.set_gate(plan.gate)?;
        }
        self.journal =
            Journal::new(setup::found(&node.keyspace)?, self.may_refuse, plan.space_habits.binds);
        for at in 0..plan.space_clients as u32 {
            self.names = self.names.wrapping_add(1);
            let (worker, habits) = (at as usize % plan.workers, plan.space_habits);
            let (place, who) = ((worker, slot + 1 + at), Who::at(at as usize, habits));
            self.clients.push(Client::connect(node, self.names, place, habits, who)?);
        }
        // The logins are nobody's to judge.
        drop(node.threads.take_packets());
        Ok(())
    }

    /// One of the clients sends, at times. `gate`: the laxest default that may be in force.
    pub(crate) fn send(&mut self, threads: &Threads, step: u64, gate: Gate) {
        if self.clients.is_empty() || !self.random.chance(1, 2) {
            return;
        }
        let at = self.random.below(self.clients.len() as u64) as usize;
        let client = &mut self.clients[at];
        let Some(bytes) = client.send(step, gate, &mut self.journal) else { return };
        pass_on(client, threads, bytes);
    }

    /// What one of the clients sends now, at times.
    pub(crate) fn packets(&mut self, step: u64, gate: Gate) -> Vec<(ConnId, Vec<u8>)> {
        if self.clients.is_empty() || !self.random.chance(1, 2) {
            return Vec::new();
        }
        let at = self.random.below(self.clients.len() as u64) as usize;
        let client = &mut self.clients[at];
        let bytes = client.send(step, gate, &mut self.journal);
        bytes.map(|bytes| (client.conn, bytes)).into_iter().collect()
    }

    /// What clients have kept of their packets, without a thread that may not want it.
    pub(crate) fn rest(&mut self) -> Vec<(ConnId, Vec<u8>)> {
        let rest = self.clients.iter_mut().map(|client| (client.conn, client.take_unsent()));
        rest.filter(|(_, bytes)| !bytes.is_empty()).collect()
    }

    /// What clients have kept of their packets.
    pub(crate) fn send_the_rest(&mut self, threads: &Threads) {
        for client in &mut self.clients {
            let bytes = client.take_unsent();
            pass_on(client, threads, bytes);
        }
    }

    /// Another default gate was requested: replies in progress may leave at that one.
    pub(crate) fn ask_for_default(&mut self, gate: Gate) {
        use crate::history::AskedGate;
        for operation in self.journal.operations.iter_mut().filter(|it| it.end.is_none()) {
            if let AskedGate::Default(asked) = &mut operation.gate {
                *asked = gate.min(*asked);
            }
        }
    }

    /// Takes in what the node has run.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn note_ran(&mut self, packets: Vec<RanPacket>) -> Result<(), String> {
        for RanPacket { worker, slot, sync, reply, when } in packets {
            let mut clients = self.clients.iter_mut();
            if let Some(client) = clients.find(|it| (it.worker, it.conn.slot) == (worker, slot)) {
                client.ran(sync, reply.as_deref(), when, &mut self.journal)?;
            }
        }
        Ok(())
    }

    /// Gives bytes to the client that they are for; whether there is one.
    ///
    /// # Errors
    /// What is wrong with them.
    pub(crate) fn receive(
        &mut self,
        (worker, conn): (usize, ConnId),
        bytes: &[u8],
        step: u64,
    ) -> Result<bool, String> {
        let mut clients = self.clients.iter_mut();
        match clients.find(|it| (it.worker, it.conn) == (worker, conn)) {
            Some(client) => client.receive(bytes, step, &mut self.journal).map(|()| true),
            None => Ok(false),
        }
    }

    /// The node has closed a connection.
    pub(crate) fn closed(&mut self, worker: usize, conn: ConnId) {
        self.clients.retain(|it| (it.worker, it.conn) != (worker, conn));
    }

    /// What clients wait for, one each.
    pub(crate) fn owed(&self) -> Vec<usize> {
        self.clients.iter().filter_map(Client::owed).collect()
    }

    pub(crate) fn show(&self, operation: usize) -> String {
        self.journal.operations[operation].show()
    }

    /// What is wrong once everything has come to its end, if anything.
    pub(crate) fn trouble_at_rest(&self, keyspace: &Keyspace) -> Option<String> {
        if let Some(owed) = self.clients.iter().find_map(Client::owed) {
            return Some(format!("never answered: {}", self.show(owed)));
        }
        match setup::found(keyspace) {
            Ok(found) if found == *self.journal.now() => None,
            Ok(found) => Some(format!("{found:?} in the spaces, not {:?}", self.journal.now())),
            Err(what) => Some(what),
        }
    }

    /// The node has ended.
    pub(crate) fn crash(&mut self, is_cut: bool, synced_step: u64) {
        self.clients.clear();
        self.journal.operations.iter_mut().for_each(|it| it.lose(is_cut, synced_step));
    }

    /// Judges what a recovery has found of the life before, then begins the next one.
    ///
    /// # Errors
    /// What cannot be explained.
    pub(crate) fn recovered(
        &mut self,
        node: &mut SimNode,
        plan: &Plan,
        slot: u32,
        report: &mut Report,
    ) -> Result<(), String> {
        if self.is_new {
            self.is_new = false;
            return self.begin_life(node, plan, slot);
        }
        let found = setup::found(&node.keyspace)?;
        if !self.journal.explains(&found) {
            return Err(format!("the spaces after the crash: {found:?}"));
        }
        self.journal.counted.add_to(report);
        report.hashes_divided += u64::from(setup::is_divided(&node.keyspace)?);
        self.begin_life(node, plan, slot)
    }

    /// What happened in this life, a line each.
    pub(crate) fn history(&self) -> String {
        let lines: Vec<String> = self.journal.operations.iter().map(|it| it.show()).collect();
        lines.join("\n")
    }
}

fn pass_on(client: &mut Client, threads: &Threads, bytes: Vec<u8>) {
    if threads.is_paused(client.worker, client.conn) {
        client.keep_unsent(bytes);
    } else if !bytes.is_empty() {
        threads.receive(client.worker, client.conn, &bytes);
    }
}
