//! What a statement that runs row by row reads: one query or expression at a time, over spaces as
//! they are then. Nothing changes by a read, so it may be begun again.

use super::row::RowFrame;
use super::{Frame, Of, Rows, Stepping, Work, changing};
use crate::changes::{Change, Changing, How};
use crate::error::Error;
use crate::plan;
use crate::prepared::Prepared;
use crate::run::{Budget, Env, Row, Run, Slot, Spaces};
use crate::tree::Core;
use crate::triggers::ProgramStep;
use crate::value::Value;
use ladon_space::Space;
use ladon_space::fields::Fields;

/// What is read.
pub(super) enum Unit<'f> {
    /// The rows that a change means.
    Begin(&'f Of),
    /// What a row is after UPDATE.
    Row(&'f RowFrame),
    /// A program's WHEN (0) or query.
    Body(usize, usize, &'f Rows),
}

/// What a read has found.
pub(super) enum Read {
    /// Rows, and bytes that they count for.
    Work(Vec<Work>, usize),
    /// The change of a table's row, and the row that comes of it; of a view, only that. `None` if
    /// it is left alone.
    Updated(Option<(Option<Change>, Row)>),
    Holds(bool),
    Nothing,
}

fn env(rows: &Rows) -> Env<'_> {
    Env { slots: rows, aggregates: &[], outer: None }
}

impl<'f> Unit<'f> {
    /// What a frame reads next, if it reads.
    pub(super) fn of(frame: &'f Frame) -> Option<Unit<'f>> {
        match frame {
            Frame::Begin(of) => Some(Unit::Begin(of)),
            Frame::Row(row) => Some(Unit::Row(row)),
            Frame::Body(program, at, rows, _) => Some(Unit::Body(*program, *at, rows)),
            Frame::Rows(..) | Frame::Fire(..) => None,
        }
    }

    /// The spaces that it reads.
    pub(super) fn spaces<'p>(&self, prepared: &'p Prepared) -> &'p [u32] {
        match self {
            Unit::Begin(of) => &changing(prepared, of.at).reads,
            Unit::Row(row) => {
                let changing = changing(prepared, row.of.at);
                // A copy of the table would make the write that follows copy its path in the trees.
                let has_query = match &changing.how {
                    How::Update { set, .. } => set.iter().any(|(_, ex)| plan::has_query(ex)),
                    _ => false,
                };
                if has_query { &changing.reads } else { &[] }
            }
            Unit::Body(program, at, _) => {
                let body = &prepared.programs[*program];
                match at.checked_sub(1).and_then(|step| body.steps.get(step)) {
                    Some(ProgramStep::Rows(_, reads)) => reads,
                    Some(ProgramStep::Changes(_)) => &[],
                    None => &body.reads,
                }
            }
        }
    }
}

impl Stepping {
    /// Reads over copies of the spaces of a unit.
    pub(super) fn read_over(
        &self,
        unit: &Unit<'_>,
        copies: &[Space],
        budget: &Budget,
    ) -> Result<Read, Error> {
        let prepared = &*self.prepared;
        let run =
            Run::new(Spaces::of(copies), &self.parameters, self.around, budget, prepared.places);
        run.budget.step()?;
        run.budget.take(self.held)?;
        match unit {
            Unit::Begin(of) => found(&run, changing(prepared, of.at), of.outer.as_deref()),
            Unit::Row(row) => updated(&run, changing(prepared, row.of.at), row),
            Unit::Body(program, at, rows) => {
                let body = &prepared.programs[*program];
                let around = env(rows);
                match at.checked_sub(1).and_then(|step| body.steps.get(step)) {
                    Some(ProgramStep::Rows(query, _)) => {
                        run.query(query, Some(&around), None)?;
                        Ok(Read::Nothing)
                    }
                    Some(ProgramStep::Changes(_)) => Ok(Read::Nothing),
                    None => {
                        let seen = Env { outer: Some(&around), ..Env::NOTHING };
                        let holds = body.when.as_ref().map(|when| run.holds(when, &seen));
                        Ok(Read::Holds(holds.transpose()?.unwrap_or(true)))
                    }
                }
            }
        }
    }
}

fn found(run: &Run<'_>, changing: &Changing, outer: Option<&Rows>) -> Result<Read, Error> {
    let outer = outer.map(env);
    let rows = match &changing.how {
        How::Insert { columns, rows } => {
            let of = (&columns[..], rows.as_ref());
            let all = changing.inserts(run, of, outer.as_ref(), None)?;
            let work = all.into_iter().filter_map(|change| match change {
                Change::Insert(tuple, is_numbered) => Some(Work::Insert(tuple, is_numbered)),
                _ => None,
            });
            let work: Vec<Work> = work.collect();
            let bytes = work.iter().map(Work::bytes).sum();
            return Ok(Read::Work(work, bytes));
        }
        How::Update { rows, .. } | How::Delete { rows } => rows,
    };
    joined(run, changing, rows, outer.as_ref())
}

fn joined(
    run: &Run<'_>,
    changing: &Changing,
    core: &Core,
    outer: Option<&Env<'_>>,
) -> Result<Read, Error> {
    let (mut all, mut bytes) = (Vec::new(), 0);
    run.each_joined(core, outer, &mut |env| {
        let work = match env.slots.first() {
            Some(Slot::Row(row)) => Work::Row(row.clone()),
            slot => {
                let Some(tuple) = slot.and_then(Slot::tuple) else { return Ok(()) };
                Work::Key(changing.key_of(tuple.bytes())?)
            }
        };
        run.budget.take(work.bytes())?;
        bytes += work.bytes();
        all.push(work);
        Ok(())
    })?;
    Ok(Read::Work(all, bytes))
}

impl Work {
    fn bytes(&self) -> usize {
        64 + match self {
            Work::Insert(bytes, _) | Work::Key(bytes) => bytes.len(),
            Work::Row(row) => row.len() * 32,
        }
    }
}

fn updated(run: &Run<'_>, changing: &Changing, frame: &RowFrame) -> Result<Read, Error> {
    let How::Update { set, .. } = &changing.how else { return Ok(Read::Nothing) };
    let old = &frame.rows[0];
    let outer = frame.of.outer.as_deref().map(env);
    let slots = std::slice::from_ref(old);
    let env = Env { slots, aggregates: &[], outer: outer.as_ref() };
    if let Slot::Row(row) = old {
        let mut values = row.to_vec();
        for (field, ex) in set {
            values[*field] = run.eval(ex, &env)?;
        }
        return Ok(Read::Updated(Some((None, values.into()))));
    }
    let Some(tuple) = old.tuple() else { return Ok(Read::Updated(None)) };
    let change = changing.update(run, tuple.bytes(), &env, (set, frame.of.policy))?;
    let Some(Change::Update(key, operations, new)) = change else {
        return Ok(Read::Updated(None));
    };
    let row: Row = Fields::of(&new).map(Value::unpack).collect();
    Ok(Read::Updated(Some((Some(Change::Update(key, operations, new)), row))))
}
