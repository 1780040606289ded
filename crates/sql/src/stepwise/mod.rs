//! Changes whose rows fire triggers: row by row, each seen by what comes after it.
//!
//! ```text
//! Begin: which rows --> Rows: each --> Row: BEFORE -> the row, if it is still there -> AFTER
//!   ^                                        |                                          |
//!   |                                        +--> Fire: each trigger --> Body: WHEN, statements
//!   +------------------------------------------------------------------------------------+
//! ```
//!
//! These are frames on a stack, not calls: between any two reads and writes a statement can stop, and
//! go on in a later turn. Every read sees the spaces as they are at that moment, through the writer.

mod read;
mod row;

use crate::ast::{OnConflict, Timing};
use crate::changes::{Changing, Done, How, Stop, WRITE_STEPS, Writer};
use crate::error::{self, Error, Then};
use crate::functions::Around;
use crate::prepared::{Kind, Prepared, Session};
use crate::programs::Fired;
use crate::run::{Budget, Row, Slot, is_interrupted};
use crate::triggers::ProgramStep;
use crate::value::Value;
use read::{Read, Unit};
use row::RowFrame;
use std::sync::Arc;

/// How deep triggers may fire each other: Tarantool's `SQL_LIMIT_TRIGGER_DEPTH`.
const DEPTH_MAX: usize = 30;
/// What goes from one frame to the next count for.
const FRAME_STEPS: u64 = 2;

/// OLD and NEW.
type Rows = [Slot<'static>; 2];

/// Which change of the statement's tree.
#[derive(Clone, Copy)]
enum At {
    Statement,
    /// A program, and the place of the change among its steps.
    Step(usize, usize),
}

/// A row that is to be changed.
enum Work {
    /// A tuple, and whether a sequence fills in a field.
    Insert(Vec<u8>, bool),
    /// A table's, by its primary key.
    Key(Vec<u8>),
    /// A view's.
    Row(Row),
}

/// A change that runs: of what, the rows of the trigger around, and its conflict policy.
#[derive(Clone)]
struct Of {
    at: At,
    outer: Option<Arc<Rows>>,
    policy: OnConflict,
}

/// Triggers of a row.
#[derive(Clone)]
struct Firing {
    at: At,
    /// Those of the rows that REPLACE takes away.
    is_of_replaced: bool,
    timing: Timing,
    rows: Arc<Rows>,
    policy: OnConflict,
}

enum Frame {
    /// A change that finds its rows.
    Begin(Of),
    /// The rows that are left, and the bytes that they were when they were found.
    Rows(Of, std::vec::IntoIter<Work>, usize),
    Row(Box<RowFrame>),
    /// Triggers, and which is the next.
    Fire(Firing, usize),
    /// A program, its next step (0 is WHEN), and whose rows it sees.
    Body(usize, usize, Arc<Rows>, OnConflict),
}

/// Where a statement is after a turn.
#[derive(Debug)]
pub enum Turn {
    /// At its end.
    Done(Done),
    /// Its steps are used up.
    GoesOn,
    /// Before a read of these spaces that takes longer than a turn may: [`Stepping::read_ahead`].
    Reads(Vec<u32>),
}

/// A statement that runs row by row.
pub struct Stepping {
    prepared: Arc<Prepared>,
    parameters: Box<[Value]>,
    around: Around,
    /// A trigger that runs may run again.
    is_recursive: bool,
    frames: Vec<Frame>,
    /// The programs that run.
    active: Vec<usize>,
    /// What was read ahead.
    ahead: Option<Result<Read, Error>>,
    /// Bytes of the rows in frames.
    held: usize,
    bytes_max: usize,
    done: Done,
    /// Steps that the turn has left, and whether it has done anything.
    left: u64,
    is_fresh: bool,
    /// A bug on purpose: a row that a slice ends before is lost.
    pub lost_row_canary: bool,
}

/// What a frame leads to.
enum Next {
    /// The same frame, which has changed, or those that it has put on the stack.
    Goes,
    /// The frame is over.
    Ends,
    GoesOn,
    Reads(Vec<u32>),
}

impl Stepping {
    /// A statement that has done nothing; it may hold so many bytes of rows.
    ///
    /// # Errors
    /// If it changes no rows.
    pub fn new(
        prepared: Arc<Prepared>,
        parameters: &[Value],
        session: Session,
        bytes_max: usize,
    ) -> Result<Stepping, Error> {
        let Kind::Changes(changing) = &prepared.kind else {
            return Err(error::execute("the statement changes no rows"));
        };
        let of = Of { at: At::Statement, outer: None, policy: changing.on_conflict };
        Ok(Stepping {
            parameters: parameters.into(),
            around: Around::of(session),
            is_recursive: !session.runs_triggers_once,
            frames: vec![Frame::Begin(of)],
            active: Vec::new(),
            ahead: None,
            held: 0,
            bytes_max,
            done: Done::default(),
            left: 0,
            is_fresh: true,
            lost_row_canary: false,
            prepared,
        })
    }

    /// Goes on for some `steps`, one read or write more at most.
    ///
    /// # Errors
    /// Those of the statement, its triggers, the writer and the budget; what was written is taken
    /// back, kept or taken back with the whole transaction, as the error says.
    pub fn go_on(&mut self, steps: u64, writer: &mut dyn Writer) -> Result<Turn, Stop> {
        (self.left, self.is_fresh) = (steps, true);
        loop {
            if self.left == 0 {
                if let (true, Some(Frame::Rows(_, rest, _))) =
                    (self.lost_row_canary, self.frames.last_mut())
                {
                    rest.next();
                }
                return Ok(Turn::GoesOn);
            }
            let Some(frame) = self.frames.pop() else {
                return Ok(Turn::Done(std::mem::take(&mut self.done)));
            };
            self.spend(FRAME_STEPS);
            match self.advance(frame, writer) {
                Ok(None) => {}
                Ok(Some(turn)) => return Ok(turn),
                Err(stop) if stop.then == Then::Ignore => self.leave_row(stop)?,
                Err(stop) => return Err(stop),
            }
        }
    }

    /// Does the read that a turn was too short for, over copies of the spaces that it named.
    pub fn read_ahead(&mut self, copies: &[ladon_space::Space], budget: &Budget) {
        let Some(frame) = self.frames.pop() else { return };
        if let Some(unit) = Unit::of(&frame) {
            self.ahead = Some(self.read_over(&unit, copies, budget));
        }
        self.frames.push(frame);
    }

    /// Does what comes next in a frame, which has been taken from the stack.
    fn advance(&mut self, mut frame: Frame, writer: &mut dyn Writer) -> Result<Option<Turn>, Stop> {
        let depth = self.frames.len();
        let next = match &mut frame {
            Frame::Begin(of) => self.begin(of, writer),
            Frame::Rows(of, rest, _) => Ok(self.next_row(of, rest)),
            Frame::Row(row) => self.row(row, writer),
            Frame::Fire(firing, at) => self.next_trigger(firing, at),
            Frame::Body(program, at, rows, policy) => {
                self.next_step((*program, at), rows, *policy, writer)
            }
        };
        // What the frame has put on the stack runs before it.
        match next {
            Ok(Next::Ends) => {
                self.ended(&frame);
                Ok(None)
            }
            Ok(Next::Goes) => {
                self.frames.insert(depth, frame);
                Ok(None)
            }
            Ok(Next::GoesOn) => {
                self.frames.insert(depth, frame);
                Ok(Some(Turn::GoesOn))
            }
            Ok(Next::Reads(spaces)) => {
                self.frames.insert(depth, frame);
                Ok(Some(Turn::Reads(spaces)))
            }
            Err(stop) => {
                self.frames.truncate(depth);
                self.frames.push(frame);
                Err(stop)
            }
        }
    }

    fn ended(&mut self, frame: &Frame) {
        match frame {
            Frame::Body(..) => drop(self.active.pop()),
            Frame::Rows(_, _, bytes) => self.held = self.held.saturating_sub(*bytes),
            _ => {}
        }
    }

    /// RAISE(IGNORE) leaves one row alone: that whose triggers run, be it one that REPLACE takes away.
    fn leave_row(&mut self, stop: Stop) -> Result<(), Stop> {
        while let Some(frame) = self.frames.pop() {
            self.ended(&frame);
            match (&frame, self.frames.last_mut()) {
                (Frame::Row(_), _) => return Ok(()),
                (Frame::Fire(firing, _), Some(Frame::Row(row))) if firing.is_of_replaced => {
                    row.other_stays();
                    return Ok(());
                }
                _ => {}
            }
        }
        Err(stop)
    }

    fn spend(&mut self, steps: u64) {
        self.left = self.left.saturating_sub(steps);
    }

    /// Reads what a frame needs: within the turn's steps, or it was read ahead.
    fn read(
        &mut self,
        unit: &Unit<'_>,
        writer: &mut dyn Writer,
    ) -> Result<Result<Read, Next>, Error> {
        if let Some(read) = self.ahead.take() {
            self.is_fresh = false;
            return read.map(Ok);
        }
        let prepared = Arc::clone(&self.prepared);
        let reads = unit.spaces(&prepared);
        let copies: Result<Vec<_>, Error> = reads.iter().map(|id| writer.copy(*id)).collect();
        let budget = Budget::new(self.left, self.bytes_max, Box::new(|| None));
        match self.read_over(unit, &copies?, &budget) {
            Err(error) if is_interrupted(&error) => Ok(Err(match self.is_fresh {
                true => Next::Reads(reads.to_vec()),
                false => Next::GoesOn,
            })),
            read => {
                self.spend(budget.steps());
                self.is_fresh = false;
                read.map(Ok)
            }
        }
    }

    /// Notes that a row was looked for or written.
    fn wrote(&mut self) {
        self.spend(WRITE_STEPS);
        self.is_fresh = false;
    }

    fn begin(&mut self, of: &Of, writer: &mut dyn Writer) -> Result<Next, Stop> {
        let (work, bytes) = match self.read(&Unit::Begin(of), writer)? {
            Ok(Read::Work(work, bytes)) => (work, bytes),
            Ok(_) => return Ok(Next::Ends),
            Err(next) => return Ok(next),
        };
        self.held += bytes;
        let of = Of { policy: self.policy(of), ..of.clone() };
        self.frames.push(Frame::Rows(of, work.into_iter(), bytes));
        Ok(Next::Ends)
    }

    /// A change's own conflict policy, unless that of the statement around says more. It says
    /// nothing of DELETE.
    fn policy(&self, of: &Of) -> OnConflict {
        let changing = changing(&self.prepared, of.at);
        match of.policy {
            OnConflict::Abort => changing.on_conflict,
            _ if matches!(changing.how, How::Delete { .. }) => changing.on_conflict,
            policy => policy,
        }
    }

    fn next_row(&mut self, of: &Of, rest: &mut std::vec::IntoIter<Work>) -> Next {
        let Some(work) = rest.next() else { return Next::Ends };
        self.frames.push(Frame::Row(Box::new(RowFrame::new(of.clone(), work))));
        Next::Goes
    }

    /// Puts triggers of a row on the stack.
    fn fire(&mut self, firing: Firing) {
        let all = fired(&self.prepared, &firing);
        if all.iter().any(|fired| fired.timing == firing.timing) {
            self.frames.push(Frame::Fire(firing, 0));
        }
    }

    fn next_trigger(&mut self, firing: &Firing, at: &mut usize) -> Result<Next, Stop> {
        let prepared = Arc::clone(&self.prepared);
        let is_next = |fired: &Fired| {
            let is_free = self.is_recursive || !self.active.contains(&fired.program);
            fired.timing == firing.timing && is_free
        };
        let all = fired(&prepared, firing);
        let Some(found) = all.iter().skip(*at).position(is_next) else { return Ok(Next::Ends) };
        let place = *at + found;
        if self.active.len() >= DEPTH_MAX {
            return Err(error::execute("too many levels of trigger recursion").into());
        }
        *at = place + 1;
        let program = all[place].program;
        self.active.push(program);
        self.frames.push(Frame::Body(program, 0, Arc::clone(&firing.rows), firing.policy));
        Ok(Next::Goes)
    }

    fn next_step(
        &mut self,
        (program, at): (usize, &mut usize),
        rows: &Arc<Rows>,
        policy: OnConflict,
        writer: &mut dyn Writer,
    ) -> Result<Next, Stop> {
        let prepared = Arc::clone(&self.prepared);
        let body = &prepared.programs[program];
        let change = match at.checked_sub(1).map(|step| (step, body.steps.get(step))) {
            Some((_, None)) => return Ok(Next::Ends),
            Some((step, Some(ProgramStep::Changes(_)))) => Some(step),
            None if body.when.is_none() => None,
            _ => match self.read(&Unit::Body(program, *at, rows), writer)? {
                Ok(Read::Holds(false)) => return Ok(Next::Ends),
                Ok(_) => None,
                Err(next) => return Ok(next),
            },
        };
        *at += 1;
        if let Some(step) = change {
            let outer = Some(Arc::clone(rows));
            self.frames.push(Frame::Begin(Of { at: At::Step(program, step), outer, policy }));
        }
        Ok(Next::Goes)
    }
}

/// The change at a place of the statement's tree.
fn changing(prepared: &Prepared, at: At) -> &Changing {
    let step = match at {
        At::Statement => None,
        At::Step(program, step) => prepared.programs[program].steps.get(step),
    };
    match (step, &prepared.kind) {
        (Some(ProgramStep::Changes(changing)), _) => changing,
        (_, Kind::Changes(changing)) => changing,
        _ => unreachable!("a statement that steps is a change"),
    }
}

fn fired<'p>(prepared: &'p Prepared, firing: &Firing) -> &'p [Fired] {
    let changing = changing(prepared, firing.at);
    if firing.is_of_replaced { &changing.replaced } else { &changing.triggers }
}
