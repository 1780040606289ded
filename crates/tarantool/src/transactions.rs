//! The open transactions of a connection, and when they time out.

use crate::savepoint_names::SavepointNames;
use ladon_engine::{Interactive, Scratch};
use ladon_kernel::request::joint::Joint;
use std::collections::{BTreeSet, HashMap};

/// Transactions by stream.
#[derive(Default)]
pub(crate) struct Transactions {
    open: HashMap<u64, Open>,
    /// Deadline in Unix milliseconds and stream, of those that time out.
    deadlines: BTreeSet<(u64, u64)>,
}

/// An open transaction.
pub(crate) struct Open {
    /// `None` once it has timed out, or had to end.
    transaction: Option<Interactive>,
    deadline_ms: Option<u64>,
    savepoints: SavepointNames,
    /// Commands of Redis in it, if there are any.
    commands: Option<Box<Joint>>,
}

/// The transaction of a stream.
pub(crate) enum Taken {
    /// There was none.
    None,
    TimedOut,
    Open(Box<Interactive>, Option<Box<Joint>>),
}

impl Transactions {
    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub(crate) fn has(&self, stream: u64) -> bool {
        self.open.contains_key(&stream)
    }

    /// Opens a stream's transaction, which may time out.
    pub(crate) fn put(&mut self, stream: u64, transaction: Interactive, deadline_ms: Option<u64>) {
        self.deadlines.extend(deadline_ms.map(|at_ms| (at_ms, stream)));
        let savepoints = SavepointNames::default();
        let transaction = Some(transaction);
        self.open.insert(stream, Open { transaction, deadline_ms, savepoints, commands: None });
    }

    /// Takes a stream's transaction, which is open no more.
    pub(crate) fn take(&mut self, stream: u64) -> Taken {
        let Some(Open { transaction, deadline_ms, commands, .. }) = self.open.remove(&stream)
        else {
            return Taken::None;
        };
        if let Some(at_ms) = deadline_ms {
            self.deadlines.remove(&(at_ms, stream));
        }
        match transaction {
            Some(transaction) => Taken::Open(Box::new(transaction), commands),
            None => Taken::TimedOut,
        }
    }

    /// Takes a stream's transaction out as it is, for [`Transactions::put_back`] elsewhere.
    pub(crate) fn take_out(&mut self, stream: u64) -> Option<Open> {
        let open = self.open.remove(&stream)?;
        if let Some(at_ms) = open.deadline_ms {
            self.deadlines.remove(&(at_ms, stream));
        }
        Some(open)
    }

    pub(crate) fn put_back(&mut self, stream: u64, open: Open) {
        self.deadlines.extend(open.deadline_ms.map(|at_ms| (at_ms, stream)));
        self.open.insert(stream, open);
    }

    /// Where a stream's transaction is kept, to be taken out for a moment. `None` if there is none,
    /// or if it has timed out.
    pub(crate) fn of(&mut self, stream: u64) -> Option<&mut Option<Interactive>> {
        self.open.get_mut(&stream).map(|open| &mut open.transaction)
    }

    /// The commands of Redis in a stream's transaction, if it is open.
    pub(crate) fn commands(&mut self, stream: u64) -> Option<&mut Option<Box<Joint>>> {
        self.open.get_mut(&stream).map(|open| &mut open.commands)
    }

    /// What SQL calls the savepoints of a stream's transaction, if it is open.
    pub(crate) fn savepoint_names(&mut self, stream: u64) -> Option<&mut SavepointNames> {
        self.open.get_mut(&stream).map(|open| &mut open.savepoints)
    }

    /// Bytes that all transactions hold.
    pub(crate) fn bytes(&self) -> usize {
        let held = self.open.values().filter_map(|open| open.transaction.as_ref());
        held.map(Interactive::bytes).sum()
    }

    /// Takes back those that were asked to end, as if they had timed out.
    pub(crate) fn end_asked(&mut self, scratch: &mut Scratch) {
        for open in self.open.values_mut() {
            if open.transaction.as_ref().is_some_and(Interactive::has_to_end)
                && let Some(transaction) = open.transaction.take()
            {
                transaction.roll_back(scratch);
            }
        }
    }

    /// When the next one times out.
    #[inline]
    pub(crate) fn next_timeout_ms(&self) -> Option<u64> {
        self.deadlines.first().map(|(at_ms, _)| *at_ms)
    }

    /// Takes back those that have timed out. They stay there, without what they held, until their
    /// streams end them.
    pub(crate) fn end_overdue(&mut self, now_ms: u64, scratch: &mut Scratch) {
        while self.deadlines.first().is_some_and(|(at_ms, _)| *at_ms <= now_ms) {
            let Some((_, stream)) = self.deadlines.pop_first() else { return };
            let Some(open) = self.open.get_mut(&stream) else { continue };
            open.deadline_ms = None;
            if let Some(transaction) = open.transaction.take() {
                transaction.roll_back(scratch);
            }
        }
    }
}
