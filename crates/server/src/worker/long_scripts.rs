//! A thread's other connections while one of its scripts runs long.
//!
//! The script runs inside its request. From time to time it lets the worker serve its sockets: the
//! worker then answers the few commands that are allowed, and `-BUSY` to all others. For that, a
//! script's request takes the workbench with it, and leaves the worker a spare one:
//!
//! ```text
//! worker: connections, queues, buffers     + a spare workbench, for the pump
//! script: its connection                   + the worker's workbench
//! ```
//!
//! Whatever is done on the spare one is settled before the script goes on: its records are published,
//! its counts and garbage passed on.
//! What the network reports about the script's own connection is kept until the script has ended.

use super::{Net, Planted, Workbench, Worker};
use crate::batch::{Batch, Item, ItemKind};
use crate::connection::Connection;
use crate::dialect::resp::Again;
use crate::queues::WaitsFor;
use crate::worker::requests::INLINE_ARGS;
use ladon_engine::Scratch;
use ladon_kernel::command::flags::Flags;
use ladon_kernel::command::spec::{CommandSpec, Handler, LockNeed};
use ladon_kernel::local::Local;
use ladon_kernel::request::execute::{Request, execute};
use ladon_kernel::rng::Rng;
use ladon_kernel::thread_parts::ThreadParts;
use ladon_net::{ConnId, Outgoing};
use ladon_resp::Reply;
use smallvec::SmallVec;
use std::sync::Arc;

/// How often a long script lets the worker serve its sockets, nanoseconds.
const PUMP_EVERY_NS: u64 = 2_000_000;

/// Requests of one connection that are answered at once.
const REQUESTS_MAX: usize = 16;

/// What the script's client may send while the script runs, before it is not read any more.
const AWAY_BYTES_MAX: usize = 1 << 20;

/// A connection whose script runs, and what the network reports about it meanwhile.
pub(super) struct Away {
    conn: ConnId,
    events: Vec<Event>,
    bytes: usize,
    /// The connection is not read because of its bytes.
    paused: bool,
    /// Whether sockets were served since the script began.
    was_pumped: bool,
    pumped_ns: u64,
}

enum Event {
    Received(Vec<u8>),
    InputEnded,
    Sent(Outgoing),
    Closed,
}

impl Worker {
    /// Runs a request that may run a script.
    pub(super) fn run_script(&mut self, batch: &Batch, at: usize, net: &mut dyn Net) {
        let item = &batch.items[at];
        let slot = item.slot as usize;
        let again: Option<Box<Again>> = None;
        let Some(mut connection) = self.connections[slot].take() else { return };
        if connection.replies.output.capacity() == 0 {
            connection.replies.output = self.buffers.take();
        }
        self.published |= self.planted.publish(&mut self.bench.appender);
        self.away = Some(Away {
            conn: connection.conn,
            events: Vec::new(),
            bytes: 0,
            paused: false,
            was_pumped: false,
            pumped_ns: 0,
        });
        let spare = self.spare.take().unwrap_or_else(|| self.make_spare());
        let mut bench = std::mem::replace(&mut self.bench, spare);
        let (gate, before) = (connection.session.gate, connection.replies.output.len());
        bench.local.leader_read = Self::leader_read(&self.node, &connection, item.end);
        let outcome = {
            let Connection { session, replies, input, .. } = &mut *connection;
            // Pushed one by one: a `SmallVec` collects more slowly.
            let mut args = SmallVec::<[&[u8]; INLINE_ARGS]>::new();
            match &item.kind {
                ItemKind::InPlace { first, count } => {
                    let input = &input[item.start..];
                    let positions = &batch.args[*first as usize..(*first + *count) as usize];
                    positions.iter().for_each(|arg| args.push(arg.of(input)));
                }
                ItemKind::Owned(arguments) => arguments.iter().for_each(|arg| args.push(arg)),
                ItemKind::Again
                | ItemKind::Invalid(_)
                | ItemKind::Packet
                | ItemKind::Piece
                | ItemKind::SetAside => {
                    unreachable!("it runs no script")
                }
            }
            let (now_ms, planted) = (self.now_ms, self.planted);
            let Workbench { node, local, scratch, appender } = &mut *bench;
            let mut thread = ThreadParts {
                node,
                local,
                scratch,
                now_ms,
                append: &mut |record| planted.append_of_script(appender, record, now_ms),
                pump: Some(&mut || self.pump(batch, at, net)),
            };
            let request = Request { id: item.id, args: &args, first_key: item.first_key };
            execute(&mut thread, session, request, &mut replies.output)
        };
        let mut spare = std::mem::replace(&mut self.bench, bench);
        debug_assert!(
            self.planted == Planted::UnpublishedSpare || spare.is_settled(),
            "the spare workbench was put away with work on it"
        );
        if spare.local.is_held_up() {
            self.bench.local.take_over(&mut spare.local);
        }
        self.spare = Some(spare);
        let was_pumped = self.away.as_ref().is_some_and(|away| away.was_pumped);
        self.return_connection(connection);
        if was_pumped {
            self.look_after_user(item.slot);
        }
        let ran = super::requests::Ran { outcome, gate, before, lends: None, again };
        self.has_replied(batch, item, ran);
        self.replay();
    }

    fn make_spare(&self) -> Box<Workbench> {
        let thread = self.bench.local.thread;
        let node = Arc::clone(&self.node);
        let mut local =
            Local::new(thread, Arc::clone(&node.stats[thread]), Rng::new(thread as u64));
        local.serves_busy = true;
        let (scratch, appender) = (Scratch::default(), self.log.appender());
        Box::new(Workbench { node, local, scratch, appender })
    }

    /// Serves the sockets in the middle of a long script. Returns whether the script may go on.
    fn pump(&mut self, batch: &Batch, at: usize, net: &mut dyn Net) -> bool {
        let now_ns = self.node.clock.monotonic_ns();
        let Some(away) = &mut self.away else { return true };
        if now_ns.saturating_sub(away.pumped_ns) < PUMP_EVERY_NS {
            return true;
        }
        away.pumped_ns = now_ns;
        if !std::mem::replace(&mut away.was_pumped, true) {
            // The requests behind the script get their answers now.
            self.put_back(batch, at + 1);
            self.batch_is_over = true;
        }
        let goes_on = net.poll(self);
        self.now_ms = self.node.clock.unix_ms();
        self.read_inbox();
        self.answer_busy();
        self.settle_spare();
        let mut net = net;
        self.release(&mut net);
        if let Some(away) = &mut self.away
            && away.bytes > AWAY_BYTES_MAX
            && !std::mem::replace(&mut away.paused, true)
        {
            net.pause_receive(away.conn, true);
        }
        goes_on
    }

    /// What requests have left on the spare workbench: requests of IPROTO write while a script runs.
    /// Their records hold back those of all threads until they are published.
    fn settle_spare(&mut self) {
        if self.planted == Planted::UnpublishedSpare {
            return;
        }
        self.publish();
        self.deliver_answers();
        self.settle_counters();
    }

    /// Answers the requests of all connections that have some.
    fn answer_busy(&mut self) {
        let away = self.away.as_ref().map(|away| away.conn.slot);
        let mut batch = Batch::default();
        for slot in self.queues.take(WaitsFor::Turn) {
            if Some(slot) == away {
                // It is queued again when it returns.
                continue;
            }
            let Some(connection) = &mut self.connections[slot as usize] else { continue };
            connection.waits.remove(WaitsFor::Turn);
            self.queues.push(WaitsFor::Release, connection);
            if !connection.is_runnable() {
                continue;
            }
            if self.replies.holds_back(connection) {
                self.replies.hold_back(connection, self.now_ms);
                continue;
            }
            if connection.dialect.resp().is_some_and(|resp| resp.again.is_some()) {
                // A request that has begun goes on after the script.
                self.queues.push(WaitsFor::Turn, connection);
                continue;
            }
            if !connection.session.authenticated
                && Self::stops_stranger(connection, &mut self.queues, self.now_ms)
            {
                continue;
            }
            batch.clear(&self.node, REQUESTS_MAX);
            let gathered = batch.gather(connection, slot, &self.node, &self.limits);
            match gathered {
                crate::batch::Gathered::Full => self.queues.push(WaitsFor::Turn, connection),
                crate::batch::Gathered::Drained => connection.replies.note_drained(),
            }
            for at in 0..batch.items.len() {
                if self.is_allowed(&batch, at) {
                    self.run_item(&batch, at, &mut None);
                } else {
                    self.refuse_busy(&batch.items[at]);
                }
            }
            self.queue_unfinished();
        }
    }

    /// Whether a request runs while a script does: it must neither need a lock nor wait.
    fn is_allowed(&self, batch: &Batch, at: usize) -> bool {
        let item = &batch.items[at];
        let Some(connection) = &self.connections[item.slot as usize] else { return true };
        let args: Vec<&[u8]> = match &item.kind {
            ItemKind::InPlace { first, count } => {
                let input = &connection.input[item.start..];
                let args = &batch.args[*first as usize..(*first + *count) as usize];
                args.iter().map(|arg| arg.of(input)).collect()
            }
            ItemKind::Owned(arguments) => arguments.iter().map(Vec::as_slice).collect(),
            // The script holds no space.
            ItemKind::Invalid(_) | ItemKind::Packet | ItemKind::Piece | ItemKind::SetAside => {
                return true;
            }
            ItemKind::Again => return false,
        };
        // Unknown commands and strangers get their usual answers.
        let Some(id) = item.id else { return true };
        if !connection.session.authenticated {
            let spec = self.node.table.spec(id);
            return !spec.flags.has(Flags::NO_AUTH) || spec.flags.has(Flags::ALLOW_BUSY);
        }
        let spec = match (self.node.table.spec(id), args.get(1)) {
            (CommandSpec { handler: Handler::Container, .. }, Some(name)) => {
                match self.node.table.find_subcommand(id, name) {
                    Some(id) => self.node.table.spec(id),
                    None => return true,
                }
            }
            (spec, _) => spec,
        };
        if spec.flags.has(Flags::BUSY_UNLESS_NOSAVE) {
            return args[1..].iter().any(|word| word.eq_ignore_ascii_case(b"nosave"));
        }
        spec.flags.has(Flags::ALLOW_BUSY) && matches!(spec.locks, LockNeed::None)
    }

    fn refuse_busy(&mut self, item: &Item) {
        let busy = self.node.scripts.running.busy().to_string();
        let Some(connection) = &mut self.connections[item.slot as usize] else { return };
        if !connection.is_runnable() {
            connection.dialect.read_again();
            return;
        }
        if connection.replies.output.capacity() == 0 {
            connection.replies.output = self.buffers.take();
        }
        if let Some(multi) = &mut connection.session.multi {
            multi.aborted = true;
        }
        let proto = connection.session.proto;
        Reply::new(&mut connection.replies.output, proto).error(&busy);
        self.bench.local.stats.count_error(busy.as_bytes());
        if let Some(id) = item.id {
            self.bench.local.stats.command(id).rejected.add(1);
        }
        connection.consumed = item.end;
    }

    /// The script's connection is one of the worker's again.
    fn return_connection(&mut self, mut connection: Box<Connection>) {
        let slot = connection.conn.slot;
        let Some(away) = &self.away else { return };
        if away.was_pumped {
            // The lists were gone through without it.
            for queue in [WaitsFor::Release, WaitsFor::Gate, WaitsFor::Turn] {
                self.queues.leave(queue, &mut connection);
            }
            connection.dialect.read_again();
            self.queues.push(WaitsFor::Release, &mut connection);
            self.queues.push(WaitsFor::Turn, &mut connection);
        }
        connection.receive_paused |= away.paused;
        self.connections[slot as usize] = Some(connection);
    }

    /// Takes in what the network has reported about the connection meanwhile.
    fn replay(&mut self) {
        let Some(Away { conn, events, .. }) = self.away.take() else { return };
        for event in events {
            match event {
                Event::Received(bytes) => self.received(conn, &bytes),
                Event::InputEnded => self.input_ended(conn),
                Event::Sent(outgoing) => self.sent(conn, outgoing),
                Event::Closed => self.closed(conn),
            }
        }
    }

    /// Whether new connections may come: not while the script's, which is closed, has its slot.
    pub(crate) fn takes_connections(&self) -> bool {
        let events = self.away.as_ref().map_or(&[][..], |away| &away.events);
        !events.iter().any(|event| matches!(event, Event::Closed))
    }

    fn away(&mut self, conn: ConnId) -> Option<&mut Away> {
        self.away.as_mut().filter(|away| away.conn == conn)
    }

    /// Keeps received bytes if the connection's script runs. Returns whether it does.
    #[cold]
    pub(super) fn keep_received(&mut self, conn: ConnId, bytes: &[u8]) -> bool {
        let Some(away) = self.away(conn) else { return false };
        away.bytes += bytes.len();
        match away.events.last_mut() {
            Some(Event::Received(before)) => before.extend_from_slice(bytes),
            _ => away.events.push(Event::Received(bytes.to_vec())),
        }
        true
    }

    /// As `keep_received`, for the input's end.
    #[cold]
    pub(super) fn keep_input_end(&mut self, conn: ConnId) {
        if let Some(away) = self.away(conn) {
            away.events.push(Event::InputEnded);
        }
    }

    /// As `keep_received`, for a buffer that was sent. Gives it back if no script runs.
    #[cold]
    pub(super) fn keep_sent(&mut self, conn: ConnId, outgoing: Outgoing) -> Option<Outgoing> {
        match self.away(conn) {
            Some(away) => {
                away.events.push(Event::Sent(outgoing));
                None
            }
            None => Some(outgoing),
        }
    }

    /// As `keep_received`, for the connection's end.
    #[cold]
    pub(super) fn keep_closed(&mut self, conn: ConnId) -> bool {
        let Some(away) = self.away(conn) else { return false };
        away.events.push(Event::Closed);
        true
    }
}
