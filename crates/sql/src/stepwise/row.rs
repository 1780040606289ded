//! One row of a statement that runs row by row.

use super::read::{Read, Unit};
use super::{Firing, Next, Of, Rows, Stepping, Work, changing};
use crate::ast::{OnConflict, Timing};
use crate::changes::{Change, Changing, Done, How, Stop, Writer, unique_key};
use crate::run::Slot;
use crate::value::Value;
use ladon_space::fields::Fields;
use ladon_space::{Statement, Written};
use std::sync::Arc;

/// How far a row is.
enum Phase {
    /// Its triggers BEFORE have not run.
    First,
    /// They have.
    Fired,
    /// REPLACE takes away those that have its key of an index at this place.
    Room(usize),
    /// The same: the key, and the row that leaves now.
    Leaves(usize, Vec<u8>, Arc<Rows>),
    Write,
    /// Its triggers AFTER have run.
    Last,
}

/// A row that is being changed.
pub(super) struct RowFrame {
    pub(super) of: Of,
    work: Work,
    phase: Phase,
    /// OLD and NEW.
    pub(super) rows: Rows,
    /// What is to be done to a table's row, once it is known.
    change: Option<Change>,
}

impl RowFrame {
    pub(super) fn new(of: Of, work: Work) -> RowFrame {
        let rows = [Slot::Nothing, Slot::Nothing];
        RowFrame { of, work, phase: Phase::First, rows, change: None }
    }

    /// The row that was to leave stays: then this one is a duplicate. It may have left already.
    pub(super) fn other_stays(&mut self) {
        if let Phase::Leaves(at, ..) = self.phase {
            self.phase = Phase::Room(at + 1);
            self.of.policy = OnConflict::Abort;
        }
    }

    fn firing(&self, timing: Timing) -> Firing {
        let rows = Arc::new(self.rows.clone());
        let Of { at, policy, .. } = self.of;
        Firing { at, is_of_replaced: false, timing, rows, policy }
    }
}

impl Stepping {
    /// Does what comes next for a row.
    pub(super) fn row(
        &mut self,
        frame: &mut RowFrame,
        writer: &mut dyn Writer,
    ) -> Result<Next, Stop> {
        let prepared = Arc::clone(&self.prepared);
        let changing = changing(&prepared, frame.of.at);
        match std::mem::replace(&mut frame.phase, Phase::Last) {
            Phase::First => {
                // Until it is read, it is still the first.
                frame.phase = Phase::First;
                if let Some(next) = self.first(changing, frame, writer)? {
                    return Ok(next);
                }
                frame.phase = Phase::Fired;
                self.fire(frame.firing(Timing::Before));
            }
            Phase::Fired => return self.fired_before(changing, frame, writer),
            Phase::Room(at) => self.make_room(changing, frame, at, writer)?,
            Phase::Leaves(at, key, rows) => {
                self.leave(changing, frame, (at, &key), rows, writer)?;
            }
            Phase::Write => {
                let written = self.write_row(changing, frame, writer)?;
                let is_delete = matches!(changing.how, How::Delete { .. });
                let is_there = match written {
                    Some(Written { old, .. }) if is_delete => old.is_some(),
                    Some(Written { new: Some(new), .. }) => {
                        frame.rows[1] = Slot::Own(new);
                        true
                    }
                    _ => false,
                };
                if is_there {
                    self.fire(frame.firing(Timing::After));
                }
            }
            Phase::Last => return Ok(Next::Ends),
        }
        Ok(Next::Goes)
    }

    /// Finds what OLD and NEW are. Returns what is next instead, if there is no row to be changed
    /// or it takes another turn to know.
    fn first(
        &mut self,
        changing: &Changing,
        frame: &mut RowFrame,
        writer: &mut dyn Writer,
    ) -> Result<Option<Next>, Stop> {
        let old = match &frame.work {
            Work::Insert(tuple, is_numbered) => {
                let mut values: Vec<Value> = Fields::of(tuple).map(Value::unpack).collect();
                if let (true, Some(field)) = (*is_numbered, changing.table.autoincrement) {
                    // The number is not known yet.
                    values[field as usize] = Value::Int(-1);
                }
                frame.rows[1] = Slot::Row(values.into());
                return Ok(None);
            }
            Work::Row(row) => Slot::Row(row.clone()),
            Work::Key(key) => match writer.find(changing.table.id, 0, key)? {
                Some(tuple) => Slot::Own(tuple),
                None => return Ok(Some(Next::Ends)),
            },
        };
        frame.rows[0] = old;
        if !matches!(changing.how, How::Update { .. }) {
            return Ok(None);
        }
        match self.read(&Unit::Row(frame), writer)? {
            Ok(Read::Updated(Some((change, row)))) => {
                frame.change = change;
                frame.rows[1] = Slot::Row(row);
                Ok(None)
            }
            Ok(_) => Ok(Some(Next::Ends)),
            Err(next) => Ok(Some(next)),
        }
    }

    /// What comes after BEFORE: a view's row has other triggers instead, a table's row is written
    /// if it is still there.
    fn fired_before(
        &mut self,
        changing: &Changing,
        frame: &mut RowFrame,
        writer: &mut dyn Writer,
    ) -> Result<Next, Stop> {
        frame.phase = Phase::Write;
        match &frame.work {
            Work::Row(_) => {
                frame.phase = Phase::Last;
                self.fire(frame.firing(Timing::InsteadOf));
            }
            Work::Insert(..) if changing.table.view.is_some() => {
                frame.phase = Phase::Last;
                self.fire(frame.firing(Timing::InsteadOf));
            }
            Work::Insert(tuple, is_numbered) => {
                if let Some(error) = changing.null_of(tuple, *is_numbered) {
                    return match frame.of.policy {
                        OnConflict::Ignore => Ok(Next::Ends),
                        _ => Err(error.into()),
                    };
                }
                if frame.of.policy == OnConflict::Replace && !changing.replaced.is_empty() {
                    frame.phase = Phase::Room(0);
                }
            }
            Work::Key(key) => {
                if writer.find(changing.table.id, 0, key)?.is_none() {
                    return Ok(Next::Ends);
                }
            }
        }
        Ok(Next::Goes)
    }

    /// Looks for a row that has a new one's key of a unique index: it leaves, with its triggers.
    fn make_room(
        &mut self,
        changing: &Changing,
        frame: &mut RowFrame,
        at: usize,
        writer: &mut dyn Writer,
    ) -> Result<(), Stop> {
        let Work::Insert(tuple, _) = &frame.work else { return Ok(()) };
        let table = &changing.table;
        let Some(index) = table.indexes.get(at) else {
            frame.phase = Phase::Write;
            return Ok(());
        };
        frame.phase = Phase::Room(at + 1);
        let key = index.is_unique.then(|| unique_key(index, tuple)).flatten();
        let Some(key) = key else { return Ok(()) };
        if let Some(old) = writer.find(table.id, index.id, &key)? {
            let rows = Arc::new([Slot::Own(old), Slot::Nothing]);
            let is_of_replaced = true;
            frame.phase = Phase::Leaves(at, key, Arc::clone(&rows));
            self.fire(Firing { is_of_replaced, rows, ..frame.firing(Timing::Before) });
        }
        Ok(())
    }

    fn leave(
        &mut self,
        changing: &Changing,
        frame: &mut RowFrame,
        (at, key): (usize, &[u8]),
        rows: Arc<Rows>,
        writer: &mut dyn Writer,
    ) -> Result<(), Stop> {
        frame.phase = Phase::Room(at + 1);
        let index = changing.table.indexes[at].id;
        self.wrote();
        let written = writer.write(changing.table.id, Statement::Delete { index, key })?;
        if written.old.is_some() {
            if self.active.is_empty() {
                self.done.count += 1;
            }
            let is_of_replaced = true;
            self.fire(Firing { is_of_replaced, rows, ..frame.firing(Timing::After) });
        }
        Ok(())
    }

    /// Writes the row; only the rows of the statement itself are counted, not those of triggers.
    fn write_row(
        &mut self,
        changing: &Changing,
        frame: &mut RowFrame,
        writer: &mut dyn Writer,
    ) -> Result<Option<Written>, Stop> {
        self.wrote();
        let change = match (frame.change.take(), &mut frame.work) {
            (Some(change), _) => change,
            (None, Work::Insert(tuple, is_numbered)) => {
                Change::Insert(std::mem::take(tuple), *is_numbered)
            }
            (None, Work::Key(key)) => Change::Delete(std::mem::take(key)),
            (None, Work::Row(_)) => return Ok(None),
        };
        let mut of_trigger = Done::default();
        let done = if self.active.is_empty() { &mut self.done } else { &mut of_trigger };
        let policy = match (&change, frame.of.policy) {
            // Who had its keys has left. A row of a trigger with one of them is a duplicate.
            (Change::Insert(..), OnConflict::Replace) if !changing.replaced.is_empty() => {
                OnConflict::Abort
            }
            (_, policy) => policy,
        };
        changing.made(policy, Vec::new()).apply_row(&change, writer, done)
    }
}
