//! Spaces in memory, and statements on them.

use ladon_msgpack as msgpack;
use ladon_space::{BoxError, Collation, IndexDef, Space, SpaceDef, Statement, Tuple, Written};
use ladon_sql::{
    Action, Budget, Catalog, Definition, Done, Prepared, Schema, Session, Spaces, Stepping, Stop,
    Table, Turn, Value, Writer, check_definition, prepare, triggers_of, tuple_checks, view_of,
};
use std::sync::Arc;

/// Steps of a statement in a test.
const STEPS_MAX: u64 = 200_000;
/// Memory of a statement in a test.
const BYTES_MAX: usize = 16 << 20;

/// A space and the tuple that defines it.
struct Held {
    space: Space,
    definition: Vec<u8>,
}

/// The spaces.
#[derive(Default)]
pub(crate) struct Memory {
    spaces: Vec<Held>,
    /// Steps of a turn of a change, if it is not to run in one.
    pub(crate) turn: Option<u64>,
    /// Whether rows at the ends of turns are lost.
    pub(crate) lost_row_canary: bool,
    /// Turns that ended before their statement did.
    pub(crate) turns: u64,
}

impl Catalog for Memory {
    fn table(&mut self, name: &str) -> Result<Option<Arc<Table>>, BoxError> {
        let found = self.spaces.iter().find(|held| held.space.def().name == name);
        Ok(found.map(|held| Arc::new(Table::of(&held.space, &held.definition, None))))
    }

    fn table_of_space(&mut self, id: u32) -> Result<Option<Arc<Table>>, BoxError> {
        let found = self.spaces.iter().find(|held| held.space.def().id == id);
        Ok(found.map(|held| Arc::new(Table::of(&held.space, &held.definition, None))))
    }

    fn trigger_table(&mut self, trigger: &str) -> Result<Option<String>, BoxError> {
        let found = self
            .spaces
            .iter()
            .find(|held| triggers_of(&held.definition).iter().any(|known| known.name == trigger));
        Ok(found.map(|held| held.space.def().name.clone()))
    }

    fn collation(&mut self, name: &str) -> Option<u32> {
        let id = match name {
            "unicode" => 1,
            "unicode_ci" => 2,
            "binary" => 3,
            _ => return None,
        };
        Collation::of_id(id.into()).map(|_| id)
    }
}

impl Schema for Memory {
    fn new_space_id(&mut self) -> u32 {
        512 + self.spaces.len() as u32
    }

    fn new_sequence_id(&mut self) -> u32 {
        1
    }

    fn views_before_drop(&mut self, _: u32) -> Result<Vec<String>, BoxError> {
        Ok(self.spaces.iter().filter_map(|held| view_of(&held.definition)).collect())
    }

    fn owner(&mut self) -> u32 {
        1
    }

    fn is_empty(&mut self, space: u32) -> bool {
        self.space(space).is_empty()
    }

    fn sequence_of(&mut self, _: u32) -> Option<u32> {
        None
    }
}

impl Writer for Memory {
    fn write(&mut self, space: u32, statement: Statement<'_>) -> Result<Written, BoxError> {
        let held = self.spaces.iter_mut().find(|held| held.space.def().id == space);
        statement.run(&mut held.expect("the space is there").space)
    }

    fn copy(&mut self, space: u32) -> Result<Space, BoxError> {
        Ok(self.space(space).clone())
    }

    fn is_named(&mut self, _: u32) -> bool {
        false
    }

    fn is_watched(&mut self, _: u32) -> bool {
        false
    }

    fn find(&mut self, space: u32, index: u32, key: &[u8]) -> Result<Option<Tuple>, BoxError> {
        self.space(space).get(index, key)
    }
}

impl Memory {
    fn space(&self, id: u32) -> &Space {
        let held = self.spaces.iter().find(|held| held.space.def().id == id);
        &held.expect("the space is there").space
    }

    /// Runs a text. Returns the rows, or the number of changed ones, or the error, as a text.
    pub(crate) fn run(&mut self, text: &str) -> String {
        self.run_with(text.as_bytes(), &[])
    }

    pub(crate) fn run_with(&mut self, text: &[u8], values: &[Value]) -> String {
        let prepared = match prepare(text, self) {
            Ok(prepared) => Arc::new(prepared),
            Err(error) => return format!("{} {}", error.code.0, error.message),
        };
        match self.run_prepared(&prepared, values) {
            Ok(shown) => shown,
            Err(error) => format!("{} {}", error.code.0, error.message),
        }
    }

    /// Runs a statement with triggers turn by turn.
    fn change_stepwise(
        &mut self,
        prepared: &Arc<Prepared>,
        values: &[Value],
        session: Session,
    ) -> Result<Done, Stop> {
        let budget = || Budget::new(STEPS_MAX, BYTES_MAX, Box::new(|| None));
        let mut stepping = Stepping::new(Arc::clone(prepared), values, session, BYTES_MAX)?;
        stepping.lost_row_canary = self.lost_row_canary;
        let steps = self.turn.unwrap_or(STEPS_MAX);
        for _ in 0..STEPS_MAX / steps * 8 {
            match stepping.go_on(steps, self)? {
                Turn::Done(done) => return Ok(done),
                Turn::GoesOn => self.turns += 1,
                Turn::Reads(ids) => {
                    let copies: Vec<Space> = ids.iter().map(|id| self.space(*id).clone()).collect();
                    stepping.read_ahead(&copies, &budget());
                }
            }
        }
        Err(BoxError::new(ladon_space::ErrorCode(0), "too many turns").into())
    }

    fn run_prepared(
        &mut self,
        prepared: &Arc<Prepared>,
        values: &[Value],
    ) -> Result<String, BoxError> {
        let budget = Budget::new(STEPS_MAX, BYTES_MAX, Box::new(|| None));
        let session = Session { random: 7, ..Session::default() };
        match prepared.action() {
            Action::Rows => {
                let spaces = Spaces::of(self.spaces.iter().map(|held| &held.space));
                let mut out = Vec::new();
                let from = (&spaces, values);
                let count = prepared.write_rows(from, session, &budget, &mut out)?;
                Ok(shown(count, &out))
            }
            Action::Changes(_) if prepared.is_stepwise() => {
                let done = self.change_stepwise(prepared, values, session);
                done.map(|done| format!("changed {}", done.count)).map_err(|stop| stop.error)
            }
            Action::Changes(_) => {
                let spaces = Spaces::of(self.spaces.iter().map(|held| &held.space));
                let mut changes = prepared.changes((&spaces, values), session, &budget)?;
                drop(spaces);
                changes.lost_row_canary = self.lost_row_canary;
                let steps = self.turn.unwrap_or(u64::MAX);
                loop {
                    match changes.apply_some(steps, self).map_err(|stop| stop.error)? {
                        Some(done) => return Ok(format!("changed {}", done.count)),
                        None => self.turns += 1,
                    }
                }
            }
            Action::Define(definable) => {
                for step in definable.definitions(prepared, self)?.steps {
                    self.define(step)?;
                }
                Ok("defined".to_owned())
            }
            other => Ok(format!("{other:?}")),
        }
    }

    fn define(&mut self, step: Definition) -> Result<(), BoxError> {
        const INDEX: u32 = ladon_system_spaces::INDEX;
        const SPACE: u32 = ladon_system_spaces::SPACE;
        match step {
            Definition::Insert { space: SPACE, tuple, .. } => {
                let def = SpaceDef::from_tuple(&tuple)?;
                check_definition(None, &def, true)?;
                let check = tuple_checks(&def);
                let mut space = Space::new(def);
                space.set_tuple_check(check);
                self.spaces.push(Held { space, definition: tuple });
            }
            Definition::Insert { space: INDEX, tuple, .. } => {
                let id = msgpack::read_uint(&mut &tuple[1..])? as u32;
                let id = if tuple[1] < 0x80 { u32::from(tuple[1]) } else { id };
                let held = self.spaces.iter_mut().find(|held| held.space.def().id == id);
                let space = &mut held.expect("the space is there").space;
                space.create_index(IndexDef::from_tuple(&tuple, space.def())?)?;
            }
            Definition::Replace { space: SPACE, tuple } => {
                let def = SpaceDef::from_tuple(&tuple)?;
                let held = self.spaces.iter_mut().find(|held| held.space.def().id == def.id);
                let held = held.expect("the space is there");
                check_definition(Some(held.space.def()), &def, held.space.is_empty())?;
                held.space.set_tuple_check(tuple_checks(&def));
                held.space.alter(def)?;
                held.definition = tuple;
            }
            Definition::Delete { space: SPACE, key } => {
                let id = msgpack::read_uint(&mut &key[1..])? as u32;
                self.spaces.retain(|held| held.space.def().id != id);
            }
            _ => {}
        }
        Ok(())
    }
}

/// Rows as a text: values with blanks between, rows with `|`.
fn shown(count: u32, mut rows: &[u8]) -> String {
    let mut all = Vec::new();
    for _ in 0..count {
        let width = msgpack::read_array(&mut rows).expect("a row");
        let values =
            (0..width).map(|_| ladon_space::value_text(msgpack::take(&mut rows).expect("a value")));
        all.push(values.collect::<Vec<_>>().join(" "));
    }
    all.join(" | ")
}
