//! Requests that wait for a job. The job's result becomes their reply, or they run again with it.

use super::Worker;
use crate::aside::Task;
use crate::queues::WaitsFor;
use ladon_engine::Garbage;
use ladon_kernel::long::aside_job::{Computed, Job, Lent};
use ladon_kernel::request::outcome::JobKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

impl Worker {
    /// The request that has just run waits for its job.
    pub(super) fn begin_job(&mut self, slot: u32, job: Job, lent: Option<Lent>, kind: JobKind) {
        let Some(connection) = &mut self.connections[slot as usize] else { return };
        let dropped = Arc::<AtomicBool>::default();
        connection.computing = Some(Arc::clone(&dropped));
        let (thread, client) = (self.bench.local.thread, connection.session.info.id);
        let task = Task { job, lent, thread, client, slot, dropped };
        match &self.aside {
            Some(aside) if kind == JobKind::Computes => aside.hand_over(task),
            Some(aside) => aside.send_out(task, kind),
            None => self.jobs.push_back(task),
        }
    }

    /// Runs one job on this thread, for a node without threads for jobs.
    pub(super) fn do_job(&mut self) {
        let Some(task) = self.jobs.pop_front() else { return };
        let Task { job, lent, client, slot, dropped, .. } = task;
        if !dropped.load(Relaxed) {
            self.computed(client, slot, job(lent));
        }
    }

    /// A job is done; its request continues.
    pub(super) fn computed(&mut self, client: u64, slot: u32, mut computed: Computed) {
        let now_ms = self.now_ms;
        let connection = self.connections[slot as usize].as_mut();
        let waits = connection.filter(|c| c.session.info.id == client && c.computing.is_some());
        let unwanted = match waits {
            None => Err(computed),
            Some(connection) => {
                connection.computing = None;
                if let Some(resp) = connection.dialect.resp_mut()
                    && let Some(again) = &mut resp.again
                    && let Some(argument) = computed.take_argument()
                {
                    again.lent = argument;
                }
                self.queues.push(WaitsFor::Release, connection);
                self.queues.push(WaitsFor::Turn, connection);
                match &mut connection.replies.long {
                    Some(long) => long.take_in(computed, now_ms),
                    None => connection.session.take_in(computed),
                }
            }
        };
        if let Err(unwanted) = unwanted {
            self.bench.scratch.garbage.push(Garbage::of(unwanted));
        }
    }

    /// Cancels the job of a connection that is about to close.
    pub(super) fn drop_job(&mut self, slot: u32) {
        let Some(connection) = &mut self.connections[slot as usize] else { return };
        if let Some(dropped) = connection.computing.take() {
            dropped.store(true, Relaxed);
        }
    }
}
