//! Batches: up to 64 requests at a time, gathered, prefetched and run.

use super::{Planted, Point, Wire, Worker};
use crate::batch::{Batch, Gathered, Item, ItemKind, LOOKAHEAD_KEYS_MIN};
use crate::connection::Connection;
use crate::dialect::resp::{self, Again};
use crate::queues::WaitsFor;
use ladon_engine::Garbage;
use ladon_kernel::command::flags::Flags;
use ladon_kernel::long::aside_job::Lent;
use ladon_kernel::request::execute::{Request, execute};
use ladon_kernel::request::outcome::{Deferred, Flow, Outcome};
use ladon_kernel::statistics::timing::is_quick;
use ladon_record::{Gate, Lsn};
use ladon_resp::ProtocolError;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release};

/// Output of one connection from which its limit is checked after every reply.
const LARGE_OUTPUT_BYTES: usize = 1 << 20;

/// Requests with more arguments than this take memory for their list.
pub(super) const INLINE_ARGS: usize = 8;

/// What waits while the log is far behind, but for `PUBLISH`. A script that only reads says so in its
/// name.
const WRITES: u32 = Flags::WRITE.0 | Flags::RUNS_QUEUE.0 | Flags::MAY_REPLICATE.0;

impl Worker {
    pub(super) fn run_batches(&mut self, net: &mut Wire<'_>) {
        while !self.queues.is_empty(WaitsFor::Turn) {
            let now_ns = self.run_batch(net);
            self.turn.batch_ended_ns = now_ns;
            if self.turn_is_spent(now_ns) {
                return;
            }
            if !self.queues.is_empty(WaitsFor::Turn) {
                self.now_ms = self.node.clock.unix_ms();
            }
        }
    }

    /// Runs one batch. Returns the time in monotonic nanoseconds.
    fn run_batch(&mut self, net: &mut Wire<'_>) -> u64 {
        self.gather();
        self.log_is_behind = self.log.is_backlogged() && self.log.accepts_writes();
        let mut batch = std::mem::take(&mut self.batch);
        self.bench.local.begin_batch(&self.node);
        let node = Arc::clone(&self.node);
        let mut lookahead = node.keyspace.lookahead();
        if batch.packets >= LOOKAHEAD_KEYS_MIN {
            self.fetch_packets(&batch);
        }
        for at in 0..batch.items.len() {
            batch.fetch_ahead(at, &mut lookahead);
            self.interrupt(Point::Between);
            self.run_item(&batch, at, net);
            if std::mem::take(&mut self.batch_is_over) {
                break;
            }
            if self.turn_is_spent(self.bench.local.clock_seen_ns()) {
                self.put_back(&batch, at + 1);
                break;
            }
        }
        self.packets.end();
        let now_ns = self.bench.local.end_batch(&self.node);
        self.queue_unfinished();
        batch.trim();
        self.batch = batch;
        self.publish();
        now_ns
    }

    /// Takes requests from the connections at the front of the queue until the batch is full.
    fn gather(&mut self) {
        self.batch.clear(&self.node, self.pace.batch_requests);
        for _ in 0..self.queues.len(WaitsFor::Turn) {
            if self.batch.is_full() {
                return;
            }
            let Some(slot) = self.queues.pop(WaitsFor::Turn) else { return };
            let Some(connection) = &mut self.connections[slot as usize] else { continue };
            connection.waits.remove(WaitsFor::Turn);
            self.queues.push(WaitsFor::Release, connection);
            // A connection that waits is queued again when it may continue.
            if !connection.is_runnable() {
                continue;
            }
            if self.replies.holds_back(connection) {
                // The connection now waits for its own unread replies to be read, and no longer for
                // a pause that is over.
                if std::mem::take(&mut connection.postponed) {
                    connection.session.info.postponed.store(false, Release);
                }
                self.replies.hold_back(connection, self.now_ms);
                continue;
            }
            if !connection.session.authenticated
                && Self::stops_stranger(connection, &mut self.queues, self.now_ms)
            {
                continue;
            }
            connection.is_full_stranger = false;
            if self.batch.gather(connection, slot, &self.node, &self.limits) == Gathered::Drained {
                connection.replies.note_drained();
            } else {
                self.queues.push(WaitsFor::Turn, connection);
                if self.planted == Planted::StarvedConnections {
                    self.queues.let_last_come_first(WaitsFor::Turn);
                }
            }
        }
    }

    /// Ends the turn before the requests from `rest` on. Their connections go back to the front of
    /// the queue, except the one that has just run.
    #[cold]
    pub(super) fn put_back(&mut self, batch: &Batch, rest: usize) {
        let ran = batch.items[rest - 1].slot;
        let mut slots: Vec<u32> = batch.items[rest..].iter().map(|item| item.slot).collect();
        slots.dedup();
        for slot in slots.into_iter().rev() {
            let Some(connection) = &mut self.connections[slot as usize] else { continue };
            // The request is parsed again.
            connection.dialect.read_again();
            if slot == ran {
                self.queues.push(WaitsFor::Turn, connection);
                continue;
            }
            // The last connection, which filled the batch, is at the end.
            self.queues.leave(WaitsFor::Turn, connection);
            self.queues.push_front(WaitsFor::Turn, connection);
        }
    }

    /// Notes that a request has run that a pause may have held back before; what it waits for now
    /// becomes visible.
    pub(super) fn has_run(&mut self, slot: u32) {
        if let Some(connection) = &mut self.connections[slot as usize]
            && connection.postponed
        {
            connection.postponed = false;
            connection.session.info.postponed.store(false, Release);
        }
    }

    pub(super) fn run_item(&mut self, batch: &Batch, at: usize, net: &mut Wire<'_>) {
        let item = &batch.items[at];
        let Some(connection) = &mut self.connections[item.slot as usize] else { return };
        if !connection.is_runnable() {
            // The request is parsed again, so a request behind it was examined too early.
            connection.dialect.read_again();
            return;
        }
        match item.kind {
            ItemKind::Packet => return self.run_packet(batch, item),
            ItemKind::Piece => return self.run_piece(batch, item),
            ItemKind::SetAside => return self.run_set_aside(batch, item.slot),
            _ => {}
        }
        let flags = item.id.map_or(Flags::NONE, |id| self.node.table.spec(id).flags);
        if self.log_is_behind && flags.0 & WRITES != 0 && !flags.has(Flags::PUBSUB) {
            return self.waits_for_log_room(item);
        }
        if flags.0 & (Flags::RUNS_SCRIPT.0 | Flags::RUNS_QUEUE.0) != 0
            && let Some(net) = net
            && may_run_script(flags, connection)
        {
            return self.run_script(batch, at, &mut **net);
        }
        if connection.replies.output.capacity() == 0 {
            // Growing a new buffer in every batch would cost more than writing the replies.
            connection.replies.output = self.buffers.take();
        }
        let again = match &item.kind {
            ItemKind::Again => match connection.dialect.resp_mut().and_then(|it| it.again.take()) {
                None => return,
                again => again,
            },
            ItemKind::Invalid(error) => return self.refuse(item, error),
            _ => None,
        };
        let mut few = [&[] as &[u8]; INLINE_ARGS];
        let many: Vec<&[u8]>;
        let args: &[&[u8]] = match &item.kind {
            ItemKind::InPlace { first, count } => {
                let (first, count) = (*first as usize, *count as usize);
                let input = &connection.input[item.start..];
                let positions = &batch.args[first..first + count];
                if count <= INLINE_ARGS {
                    for (slot, arg) in few.iter_mut().zip(positions) {
                        *slot = arg.of(input);
                    }
                    &few[..count]
                } else {
                    many = positions.iter().map(|arg| arg.of(input)).collect();
                    &many
                }
            }
            kind => {
                many = kept_arguments(kind, again.as_deref());
                &many
            }
        };
        let request = Request { id: item.id, args, first_key: item.first_key };
        if !item.id.is_some_and(|id| is_quick(self.node.table.spec(id), args)) {
            // The command may take long or wait for the log (SAVE). No other thread's records may
            // wait behind this batch's unpublished ones.
            self.published |= self.planted.publish(&mut self.bench.appender);
            if let Some(interrupt) = &mut self.interrupt {
                interrupt(Point::BeforeSlow);
            }
        }
        let (gate, before) = (connection.session.gate, connection.replies.output.len());
        self.bench.local.leader_read = Self::leader_read(&self.node, connection, item.end);
        let mut thread = thread_parts!(self);
        let session = &mut connection.session;
        let outcome = execute(&mut thread, session, request, &mut connection.replies.output);
        let lends = outcome.deferred.as_ref().and_then(|deferred| deferred.lend);
        let lends = lends.map(|at| Again::keeping(args, at));
        self.has_replied(batch, item, Ran { outcome, gate, before, lends, again });
    }

    /// The connection waits until the log has caught up, before it takes any partition's lock.
    /// Connections that only read continue.
    #[cold]
    pub(super) fn waits_for_log_room(&mut self, item: &Item) {
        self.waits_to_write(item);
        self.log.write_soon();
    }

    /// The connection waits a moment with its next request.
    #[cold]
    fn waits_to_write(&mut self, item: &Item) {
        let Some(connection) = &mut self.connections[item.slot as usize] else { return };
        connection.rewind(item.start);
        connection.input_waits = true;
        self.list_await_write(item.slot);
    }

    /// A request of the connection waits a moment.
    #[cold]
    pub(super) fn list_await_write(&mut self, slot: u32) {
        let Some(connection) = &mut self.connections[slot as usize] else { return };
        self.queues.push(WaitsFor::WriteRoom, connection);
    }

    /// A request of the connection runs again in the next batch.
    #[cold]
    pub(super) fn list_unfinished(&mut self, slot: u32) {
        let Some(connection) = &mut self.connections[slot as usize] else { return };
        self.queues.push(WaitsFor::NextBatch, connection);
    }

    /// Connections whose request has done a part of its work go to the end of the queue.
    pub(super) fn queue_unfinished(&mut self) {
        while let Some(slot) = self.queues.pop(WaitsFor::NextBatch) {
            if let Some(connection) = &mut self.connections[slot as usize] {
                connection.input_waits = false;
            }
            self.queue_again(slot, WaitsFor::NextBatch);
        }
    }

    /// Answers a protocol error. The rest of the stream cannot be parsed.
    #[cold]
    fn refuse(&mut self, item: &Item, error: &ProtocolError) {
        let Some(connection) = &mut self.connections[item.slot as usize] else { return };
        let proto = connection.session.proto;
        let text = format!("ERR {error}");
        resp::refuse(&text, proto, &mut connection.replies.output);
        self.bench.local.stats.count_error(text.as_bytes());
        connection.consumed = item.end;
        connection.closing = true;
        connection.session.info.leaving.store(true, Relaxed);
        if *error == ProtocolError::Tls {
            let why = "it speaks TLS, and its port does not; tls-port does";
            Self::tell_of_closing(connection, self.now_ms, why);
        }
    }

    /// After a request: notes what its reply depends on, and starts what it left to do.
    #[inline(always)]
    pub(super) fn has_replied(&mut self, batch: &Batch, item: &Item, ran: Ran) {
        let Ran { outcome, gate, before, lends, again } = ran;
        let Outcome { depends, flow, deferred } = outcome;
        let Some(connection) = &mut self.connections[item.slot as usize] else { return };
        if connection.session.gate != gate {
            // Requests before `CLIENT GATE` are answered under the gate at which they were sent.
            let gate = gate.unwrap_or(self.turn_gate);
            Self::note_everysec(&mut self.everysec_lsn, gate, connection.replies.depends);
            connection.replies.mark_up_to(before, gate, self.turn.made_ns());
        }
        connection.replies.depends = connection.replies.depends.max(depends);
        connection.consumed = item.end;
        let lent = lends.map(|again| lend(connection, batch, item, again));
        self.turn.has_written(item.slot, connection.replies.output.len().saturating_sub(before));
        if connection.replies.output.len() > LARGE_OUTPUT_BYTES
            && Self::is_over_limit(&self.node, connection, self.now_ms)
        {
            connection.aborted = true;
        }
        if let Some(deferred) = deferred {
            let Deferred { long_reply, job, kind, .. } = *deferred;
            if let Some(long_reply) = long_reply {
                self.begin_long_reply(item.slot, long_reply);
            }
            if let Some(job) = job {
                self.begin_job(item.slot, job, lent, kind);
            }
        }
        self.go_on(batch, item, flow, (depends, again));
    }

    /// Applies the request's outcome to its connection.
    #[inline(always)]
    fn go_on(
        &mut self,
        batch: &Batch,
        item: &Item,
        flow: Flow,
        (depends, again): (Lsn, Option<Box<Again>>),
    ) {
        let Some(connection) = &mut self.connections[item.slot as usize] else { return };
        match flow {
            Flow::Continue => {}
            Flow::Close => connection.closing = true,
            Flow::Drop => connection.aborted = true,
            Flow::Block(blocked) => {
                connection.blocked_depends = depends;
                self.block(item.slot, blocked);
            }
            // The request is still in the input and runs again.
            Flow::Compute if connection.dialect.resp().is_some_and(|it| it.again.is_some()) => {}
            Flow::Compute => connection.rewind(item.start),
            Flow::Paused => {
                connection.rewind(item.start);
                if let Some(resp) = connection.dialect.resp_mut() {
                    resp.again = again;
                }
                connection.postponed = true;
                connection.session.info.postponed.store(true, Relaxed);
                connection.session.info.blocked.store(true, Release);
                self.paused_by = self.node.paused(self.now_ms);
                self.queues.push(WaitsFor::Pause, connection);
                return;
            }
            Flow::AwaitsLeader => {
                let ticket = connection.ticket_of(item.end);
                return self.hold_for_leader(item, ticket, again);
            }
            Flow::Again => {
                connection.rewind(item.start);
                let first = batch.items.iter().find(|other| other.slot == item.slot);
                connection.had_turn = first.is_some_and(|first| first.start != item.start);
                // Of the last connection, which filled the batch, the place is no longer the end.
                self.queues.leave(WaitsFor::Turn, connection);
                self.queues.push(WaitsFor::Delivery, connection);
            }
            // Packets that wait are set aside instead.
            Flow::AwaitsCommit | Flow::AwaitsReply | Flow::AwaitsProgram | Flow::GoesOn => {
                self.waits_to_write(item)
            }
        }
        // Freed at once, because the value would be copied for its next change. But what the
        // request stored may be gone by now, or was never stored.
        if let Some(again) = again
            && Arc::strong_count(&again.lent) == 1
        {
            self.bench.scratch.garbage.push(Garbage::of(again.lent));
        }
        self.has_run(item.slot);
    }
}

/// A request's outcome, and the connection's state before it.
pub(super) struct Ran {
    pub(super) outcome: Outcome,
    /// The gate that its connection had before.
    pub(super) gate: Option<Gate>,
    /// The length that its connection's output had before.
    pub(super) before: usize,
    /// The arguments to keep while one of them is lent.
    pub(super) lends: Option<Again>,
    /// The request itself, if it had lent an argument before.
    pub(super) again: Option<Box<Again>>,
}

/// Whether a request with these flags runs a script, by itself or in its transaction.
#[cold]
fn may_run_script(flags: Flags, connection: &Connection) -> bool {
    let multi = connection.session.multi.as_ref();
    flags.has(Flags::RUNS_SCRIPT) || multi.is_some_and(|multi| multi.flags.has(Flags::RUNS_SCRIPT))
}

/// The arguments of a request that are not in the input.
#[cold]
fn kept_arguments<'a>(kind: &'a ItemKind, again: Option<&'a Again>) -> Vec<&'a [u8]> {
    match kind {
        ItemKind::Owned(arguments) => arguments.iter().map(Vec::as_slice).collect(),
        ItemKind::Again => again.map_or_else(Vec::new, Again::arguments),
        ItemKind::InPlace { .. }
        | ItemKind::Invalid(_)
        | ItemKind::Packet
        | ItemKind::Piece
        | ItemKind::SetAside => {
            unreachable!("they are in the input")
        }
    }
}

/// Lends an argument of the request that has just run.
#[cold]
fn lend(connection: &mut Connection, batch: &Batch, item: &Item, again: Again) -> Lent {
    let lent = match &item.kind {
        ItemKind::InPlace { first, .. } => {
            let arg = batch.args[*first as usize + again.at];
            let (from, to) = (arg.start as usize, arg.end as usize);
            connection.lend(item.start + from..item.start + to, item.end)
        }
        ItemKind::Owned(arguments) => Lent::of(arguments[again.at].clone()),
        ItemKind::Again
        | ItemKind::Invalid(_)
        | ItemKind::Packet
        | ItemKind::Piece
        | ItemKind::SetAside => {
            unreachable!("it lends nothing")
        }
    };
    if let Some(resp) = connection.dialect.resp_mut() {
        resp.again = Some(Box::new(again));
    }
    lent
}
