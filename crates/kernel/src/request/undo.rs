//! Takes back what a thread counted and buffered for a transaction that is taken back.
//!
//! [`Ctx::make_undoable`] and [`Ctx::abort`] are those of the engine's transaction, and do the same
//! for its commands' counters, lines for monitoring clients, messages to publish, random numbers
//! and the selected database. Time that was spent stays spent: the slow log and the latencies keep
//! it. What a connection gets only at a commit (its last write, the number of changes) needs
//! nothing here.

use crate::ctx::{Ctx, Data};
use crate::request::invoke::{self, Caller, Command};
use crate::request::outcome::Flow;
use crate::statistics::undoable_counts::Begun;
use smallvec::SmallVec;

/// Runs a command as `EXEC` would, and takes it back.
#[cold]
pub(crate) fn rehearse(ctx: &mut Ctx<'_>, command: Command<'_>) {
    if !matches!(ctx.data, Data::Held(_)) {
        return;
    }
    let position = ctx.reply.position();
    ctx.make_undoable();
    ctx.in_exec = true;
    let started = ctx.local.start(ctx.node, command.spec, command.args);
    invoke::call(ctx, command, started, Caller::Exec);
    ctx.in_exec = false;
    ctx.abort();
    ctx.reply.rewind(position);
    ctx.flow = Flow::Continue;
}

impl Ctx<'_> {
    /// As [`Tx::make_undoable`]; has no effect if the transaction is undoable already.
    ///
    /// # Panics
    /// Without a transaction.
    ///
    /// [`Tx::make_undoable`]: ladon_engine::Tx::make_undoable
    pub fn make_undoable(&mut self) {
        self.tx().make_undoable();
        if self.local.undoable.is_none() {
            let (counted, errors) = std::mem::take(&mut self.local.spare_counts);
            self.local.undoable = Some(Begun {
                // Quick commands are counted together with their batch: those before are not taken
                // back.
                pending: SmallVec::from_slice(&self.local.timing.pending),
                counted,
                errors,
                monitored: self.local.monitored.len(),
                unpublished: self.local.unpublished.len(),
                rng: self.local.rng.clone(),
                db: self.session.db,
                proto: self.session.proto,
            });
        }
    }

    /// At the commit: nothing can be taken back any more.
    #[inline]
    pub(crate) fn end_undoable(&mut self) {
        let Some(Begun { mut counted, mut errors, .. }) = self.local.undoable.take() else {
            return;
        };
        counted.clear();
        errors.clear();
        self.local.spare_counts = (counted, errors);
    }

    /// As [`Tx::abort`]: what was done since `make_undoable` was never done. The reply is the
    /// caller's. The transaction goes on without changes; to run again with other locks, see
    /// [`Tx::begin_again`].
    ///
    /// # Panics
    /// If the transaction is not undoable.
    ///
    /// [`Tx::abort`]: ladon_engine::Tx::abort
    /// [`Tx::begin_again`]: ladon_engine::Tx::begin_again
    pub fn abort(&mut self) {
        self.tx().abort();
        self.deferred = None;
        let Some(begun) = self.local.undoable.take() else { return };
        self.local.timing.pending.clear();
        self.local.timing.pending.extend_from_slice(&begun.pending);
        self.local.monitored.truncate(begun.monitored);
        self.local.unpublished.truncate(begun.unpublished);
        self.local.joined_late.retain(|(before, ..)| *before <= begun.unpublished);
        self.local.rng = begun.rng.clone();
        (self.session.db, self.session.proto) = (begun.db, begun.proto);
        begun.take_back(&self.local.stats);
    }
}
