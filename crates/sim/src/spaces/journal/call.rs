//! Calls of functions: each is one step, which is wholly there or not at all.

use super::{Journal, Reply};
use crate::spaces::contents::{Row, Rows, State, code, run};
use crate::spaces::procedure::{Act, Procedure, Step, row_of_error};
use crate::spaces::request::{Key, Request, Selection, Who};
use std::rc::Rc;

/// Longer arguments, and selections, are a program's.
const ARGUMENT_BYTES_MAX: usize = 16 << 10;
const SELECTION_BYTES_MAX: usize = 32 << 10;

/// Why a call has come no further.
enum Stop {
    Error(u32),
    /// It asks for a program, of which there is none.
    Leaves,
}

/// A call in its middle.
struct Running {
    who: Who,
    /// The error of each write, if none is taken, and whether one has met it. The function raises it in place of
    /// what else it ends with, so that its answer says it.
    refusal: Option<u32>,
    was_refused: bool,
    state: State,
    /// What there was when its transaction began, if it has one.
    before: Option<State>,
    /// It has used a sequence, whose numbers are not taken back.
    has_numbered: bool,
    shown: Rows,
}

/// The reply of a call on these contents, and what it makes of them.
pub(super) fn call(
    state: &State,
    who: Who,
    procedure: &Procedure,
    refusal: Option<u32>,
) -> (Reply, State) {
    let (before, has_numbered, shown) = (None, false, Rows::new());
    let (state_then, was_refused) = (state.clone(), false);
    let mut running =
        Running { who, refusal, was_refused, state: state_then, before, has_numbered, shown };
    let is_short = procedure.arguments().len() <= ARGUMENT_BYTES_MAX;
    let ended = if is_short { running.run(procedure) } else { Err(Stop::Leaves) };
    match ended {
        Ok(reply) => (reply, running.state),
        Err(Stop::Error(code)) => (Reply::Error(code), running.state),
        Err(Stop::Leaves) => (Reply::Error(code::UNSUPPORTED), state.clone()),
    }
}

impl Running {
    fn run(&mut self, procedure: &Procedure) -> Result<Reply, Stop> {
        let mut ended = Ok(());
        for Step { act, is_caught } in &procedure.steps {
            match self.act(act) {
                Err(Stop::Error(code)) if *is_caught => {
                    self.shown.push(Rc::new(row_of_error(code)));
                }
                Err(Stop::Error(code)) => {
                    ended = Err(Stop::Error(self.met_refusal().unwrap_or(code)));
                    break;
                }
                done => done?,
            }
        }
        if self.before.is_some() {
            self.roll_back()?;
            let code = self.met_refusal().unwrap_or(code::FUNCTION_TX_ACTIVE);
            ended = ended.and(Err(Stop::Error(code)));
        }
        ended.map(|()| Reply::Rows(std::mem::take(&mut self.shown)))
    }

    /// The error that it has met, if it was refused anything.
    fn met_refusal(&self) -> Option<u32> {
        self.refusal.filter(|_| self.was_refused)
    }

    fn act(&mut self, act: &Act) -> Result<(), Stop> {
        match act {
            Act::Write(space, statement) => {
                if let Some(code) = self.refusal {
                    self.was_refused = true;
                    return Err(Stop::Error(code));
                }
                let request = Request::Write(*space, statement.clone());
                self.check(&request)?;
                self.has_numbered |= statement.may_take_number(*space);
                let mut statement = statement.clone();
                self.state.number(*space, &mut statement);
                let change = run(&mut self.state.tables, *space, &statement);
                self.shown.extend(change.map_err(Stop::Error)?.shown);
            }
            Act::Select(space, selection) => self.select(*space, selection)?,
            Act::Begin if self.before.is_some() => {
                return Err(Stop::Error(code::ACTIVE_TRANSACTION));
            }
            Act::Begin => self.before = Some(self.state.clone()),
            Act::Commit => self.before = None,
            Act::Rollback => self.roll_back()?,
            Act::Raise => return Err(Stop::Error(code::PROC_LUA)),
            Act::Leave => return Err(Stop::Leaves),
        }
        Ok(())
    }

    fn select(&mut self, space: usize, selection: &Selection) -> Result<(), Stop> {
        // Lua has no such field before anything is asked.
        if selection.index == 2 && !self.state.tables[space].has_text_index {
            return Err(Stop::Error(code::PROC_LUA));
        }
        self.check(&Request::Select(space, selection.clone()))?;
        let rows = self.state.tables[space].select(selection).map_err(Stop::Error)?;
        let bytes = |row: &Rc<Row>| {
            let mut tuple = Vec::new();
            row.write(Some(row.id), &mut tuple);
            tuple.len()
        };
        let before_last = rows.iter().rev().skip(1).map(bytes).sum::<usize>();
        if before_last > SELECTION_BYTES_MAX {
            return Err(Stop::Leaves);
        }
        debug_assert!(selection.key != Key::None || space != crate::spaces::contents::HASHED);
        self.shown.extend(rows);
        Ok(())
    }

    fn check(&self, request: &Request) -> Result<(), Stop> {
        match self.state.denies(self.who, request) {
            true => Err(Stop::Error(code::ACCESS_DENIED)),
            false => Ok(()),
        }
    }

    fn roll_back(&mut self) -> Result<(), Stop> {
        match self.before.take() {
            Some(_) if self.has_numbered => Err(Stop::Leaves),
            Some(before) => {
                self.state = before;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

impl Journal {
    /// The reply to a call, and whether it was refused.
    pub(super) fn call(
        &mut self,
        who: Who,
        procedure: &Procedure,
        made: Option<&Reply>,
    ) -> (Reply, bool) {
        let (reply, next) = call(self.now(), who, procedure, None);
        if made != Some(&reply) && self.may_refuse {
            for code in [code::WAL_IO, code::MEMORY_ISSUE] {
                let (refused, _) = call(self.now(), who, procedure, Some(code));
                if made == Some(&refused) {
                    return (refused, true);
                }
            }
        }
        self.counted.calls += 1;
        match &reply {
            Reply::Error(code::UNSUPPORTED) => self.counted.calls_left += 1,
            Reply::Error(_) => self.counted.calls_failed += 1,
            _ => {}
        }
        let is_other = |at: &usize| next.tables[*at] != self.now().tables[*at];
        self.counted.calls_of_two_spaces += u64::from((0..4).filter(is_other).count() > 1);
        if next != *self.now() {
            self.change(|now| *now = next);
        }
        (reply, false)
    }
}
