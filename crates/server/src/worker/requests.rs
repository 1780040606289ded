//! Batches: up to 64 requests at a time, gathered, prefetched and run.

use super::Worker;
use crate::batch::{Batch, Gathered, ItemKind};
use crate::connection::Again;
use ladon_commands::aside::Lent;
use ladon_commands::{Flags, Flow, Request, execute};
use ladon_engine::Garbage;
use ladon_resp::{Parser, Reply};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release};

/// A turn runs at most this many batches before it lets replies out and reads again.
const BATCHES_MAX: usize = 64;

/// A turn that has written this much lets it out before it goes on: a short request may have a long
/// reply, and limits on output are looked at when it leaves.
const TURN_OUTPUT_BYTES_MAX: usize = 4 << 20;

/// Output of one connection from which its limit is looked at after every reply.
const LARGE_OUTPUT_BYTES: usize = 1 << 20;

impl Worker {
    pub(super) fn run_batches(&mut self) {
        self.turn_output_bytes = 0;
        for _ in 0..BATCHES_MAX {
            if self.ready.is_empty() || self.turn_output_bytes > TURN_OUTPUT_BYTES_MAX {
                return;
            }
            // The writer is behind: let requests wait, not the partitions' locks.
            if self.log.is_backlogged() {
                self.log.write_soon();
                return;
            }
            self.run_batch();
        }
    }

    fn run_batch(&mut self) {
        self.batch.clear(&self.node);
        let mut index = 0;
        while index < self.ready.len() && !self.batch.is_full() {
            let slot = self.ready[index];
            let Some(connection) = &mut self.connections[slot as usize] else {
                self.ready.swap_remove(index);
                continue;
            };
            connection.touch(&mut self.touched);
            // A blocked or paused connection comes back to the list when it may go on.
            let drained = !connection.is_runnable()
                || self.batch.gather(connection, slot, &self.node, &self.limits)
                    == Gathered::Drained;
            if drained {
                connection.in_ready = false;
                self.ready.swap_remove(index);
            } else {
                index += 1;
            }
        }
        let mut batch = std::mem::take(&mut self.batch);
        self.local.begin_batch(&self.node);
        let node = Arc::clone(&self.node);
        let mut lookahead = node.keyspace.lookahead();
        for at in 0..batch.items.len() {
            batch.fetch_ahead(at, &mut lookahead);
            self.run_item(&batch, at);
        }
        self.local.end_batch(&self.node);
        self.batch = batch;
    }

    /// A request has run that a pause may have held back before: whatever it waits for now can be
    /// seen.
    fn has_run(&mut self, slot: u32) {
        if let Some(connection) = &mut self.connections[slot as usize]
            && connection.postponed
        {
            connection.postponed = false;
            connection.session.info.postponed.store(false, Release);
        }
    }

    fn run_item(&mut self, batch: &Batch, at: usize) {
        const INLINE_ARGS: usize = 8;
        let item = &batch.items[at];
        let Some(connection) = &mut self.connections[item.slot as usize] else { return };
        if !connection.is_runnable() {
            // It is parsed again, so what was seen of a request behind it was seen too early.
            connection.parser = Parser::new();
            return;
        }
        if connection.output.capacity() == 0 {
            // Growing one for every batch would cost more than what is written into it.
            connection.output = self.buffers.take();
        }
        let mut few: [&[u8]; INLINE_ARGS] = [&[]; INLINE_ARGS];
        let many: Vec<&[u8]>;
        let again = match item.kind {
            ItemKind::Again => connection.again.take(),
            _ => None,
        };
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
            ItemKind::Owned(arguments) => {
                many = arguments.iter().map(Vec::as_slice).collect();
                &many
            }
            ItemKind::Again => {
                let Some(again) = &again else { return };
                many = again.arguments();
                &many
            }
            ItemKind::Invalid(error) => {
                let proto = connection.session.proto;
                let text = format!("ERR {error}");
                Reply::new(&mut connection.output, proto).error(&text);
                self.local.stats.count_error(text.as_bytes());
                connection.consumed = item.end;
                connection.closing = true;
                connection.session.info.leaving.store(true, Relaxed);
                return;
            }
        };
        let request = Request { id: item.id, args, first_key: item.first_key };
        let flags = item.id.map_or(Flags::NONE, |id| self.node.table.spec(id).flags);
        if flags.has(Flags::ADMIN) {
            // It may wait for the log (SAVE) or just wait (DEBUG SLEEP), and nobody's log goes on
            // behind what this batch has appended and not published.
            self.appender.publish();
        }
        let (gate, before) = (connection.session.gate, connection.output.len());
        let (appender, now_ms) = (&mut self.appender, self.now_ms);
        let outcome = execute(
            &self.node,
            &mut self.local,
            &mut self.scratch,
            &mut connection.session,
            request,
            now_ms,
            &mut connection.output,
            &mut |record| appender.append_record(record, now_ms),
        );
        let lends = self.local.lend.take().map(|at| {
            let short = |(other, arg): (usize, &&[u8])| {
                if other == at { Vec::new() } else { arg.to_vec() }
            };
            let kept = args.iter().enumerate().map(short).collect();
            Again { args: kept, at, lent: Arc::default() }
        });
        if connection.session.gate != gate {
            // What was asked for before `CLIENT GATE` is answered as it was asked for.
            let gate = gate.unwrap_or(self.turn_gate);
            Self::note_everysec(&mut self.everysec_lsn, gate, connection.depends);
            connection.mark_up_to(before, gate);
        }
        let (long_reply, job) = (self.local.long_reply.take(), self.local.job.take());
        connection.depends = connection.depends.max(outcome.depends);
        connection.consumed = item.end;
        let lent = lends.map(|again| {
            let lent = match &item.kind {
                ItemKind::InPlace { first, .. } => {
                    let arg = batch.args[*first as usize + again.at];
                    let (from, to) = (arg.start as usize, arg.end as usize);
                    connection.lend(item.start + from..item.start + to, item.end)
                }
                ItemKind::Owned(arguments) => Lent::of(arguments[again.at].clone()),
                ItemKind::Again | ItemKind::Invalid(_) => unreachable!("it lends nothing"),
            };
            connection.again = Some(Box::new(again));
            lent
        });
        self.turn_output_bytes += connection.output.len().saturating_sub(before);
        if connection.output.len() > LARGE_OUTPUT_BYTES
            && Self::is_over_limit(&self.node, connection, self.now_ms)
        {
            connection.aborted = true;
        }
        if let Some(long_reply) = long_reply {
            self.begin_long_reply(item.slot, long_reply);
        }
        if let Some(job) = job {
            self.begin_job(item.slot, job, lent);
        }
        let Some(connection) = &mut self.connections[item.slot as usize] else { return };
        match outcome.flow {
            Flow::Continue => {}
            Flow::Close => connection.closing = true,
            Flow::Drop => connection.aborted = true,
            Flow::Block(blocked) => {
                connection.blocked_depends = outcome.depends;
                self.block(item.slot, blocked);
            }
            // It is still in the input, and runs again.
            Flow::Compute if connection.again.is_some() => {}
            Flow::Compute => connection.rewind(item.start),
            Flow::Paused => {
                connection.rewind(item.start);
                connection.again = again;
                connection.paused = true;
                connection.postponed = true;
                connection.session.info.postponed.store(true, Relaxed);
                connection.session.info.blocked.store(true, Release);
                self.paused_by = self.node.paused(self.now_ms);
                self.paused.push(item.slot);
                return;
            }
            Flow::Again => {
                // As if a pause had just ended.
                connection.rewind(item.start);
                connection.paused = true;
                self.paused.push(item.slot);
                self.unpaused = true;
            }
        }
        // At once, as the value would be copied for its next change; but what it has put in place may be
        // gone by now, or never came there.
        if let Some(again) = again
            && Arc::strong_count(&again.lent) == 1
        {
            self.scratch.garbage.push(Garbage::of(again.lent));
        }
        self.has_run(item.slot);
    }
}
