//! The tables that a session sees, and their plans.

use super::state::{Plan, no_such_statement};
use crate::session_settings;
use crate::statements::Running;
use ladon_engine::{DefinitionRights as _, Privilege, RightsObject};
use ladon_msgpack::{self as msgpack, Value as Packed, write};
use ladon_space::fields::Fields;
use ladon_space::{BoxError, Collation, IteratorType, Space};
use ladon_sql::{Catalog, Schema, Table};
use ladon_system_spaces as system;
use std::sync::Arc;

/// The definitions as a request sees them.
pub(super) struct Seen<'s, 'a, 'thread>(pub(super) &'s mut Running<'a, 'thread>);

/// A key of one number.
fn key_of(number: u32) -> Vec<u8> {
    let mut key = vec![0x91];
    write::uint(&mut key, number.into());
    key
}

impl Running<'_, '_> {
    /// A text's plan, an earlier one if definitions are what they were.
    pub(super) fn plan(&mut self, text: &[u8]) -> Result<Arc<Plan>, BoxError> {
        let version = self.catalog.version;
        if let Some(plan) = self.session.sql.plan(text, version) {
            return Ok(plan);
        }
        let plan = Plan::new(ladon_sql::prepare(text, &mut Seen(self))?);
        self.session.sql.keep_plan(text, &plan);
        Ok(plan)
    }

    /// The plan of a prepared statement.
    pub(super) fn plan_of(&mut self, id: u64) -> Result<Arc<Plan>, BoxError> {
        if let Some(plan) = self.session.sql.plan_of(id, self.catalog.version) {
            return Ok(plan);
        }
        let text = self.session.sql.text(id).ok_or_else(|| no_such_statement(id))?;
        let plan = self.plan(&text)?;
        self.session.sql.keep_plan_of(id, &plan);
        Ok(plan)
    }

    /// The tuple of `_space` that defines a space.
    fn definition(&mut self, id: u32) -> Result<Vec<u8>, BoxError> {
        let key = key_of(id);
        let (tuple, changed) = self.catalog.read(system::SPACE, |space| space.get(0, &key));
        self.depends = self.depends.max(changed);
        Ok(tuple?.map_or_else(Vec::new, |tuple| tuple.bytes().to_vec()))
    }

    fn table_of(&mut self, id: u32) -> Result<Table, BoxError> {
        if id == system::SESSION_SETTINGS {
            return self.read_settings(|space| Ok(Table::of(space, &[], None)));
        }
        let definition = self.definition(id)?;
        let filler = self.catalog.filler(id).map(|(filler, _)| filler.field);
        let stored = system::view_of(id).unwrap_or(id);
        let (table, changed) =
            self.catalog.read(stored, |space| Ok(Table::of(space, &definition, filler)));
        self.depends = self.depends.max(changed);
        let mut table = table?;
        if stored != id {
            let named = system::ALL.iter().find(|(of, _)| *of == id);
            (table.id, table.name) = (id, named.map_or("", |(_, name)| name).to_owned());
        }
        Ok(table)
    }
}

impl Catalog for Seen<'_, '_, '_> {
    fn table(&mut self, name: &str) -> Result<Option<Arc<Table>>, BoxError> {
        let found = session_settings::named(name).or_else(|| self.0.catalog.named(name));
        let view = || {
            let of_system = system::ALL.iter().find(|(_, system)| *system == name);
            of_system.map(|(id, _)| *id).filter(|id| system::view_of(*id).is_some())
        };
        match found.or_else(view) {
            // Settings are the session's, and what a system view shows is its user's.
            Some(id) if id == system::SESSION_SETTINGS || system::view_of(id).is_some() => {
                self.0.table_of(id).map(|table| Some(Arc::new(table)))
            }
            Some(id) => {
                let version = self.0.catalog.version;
                if let Some(table) = self.0.session.sql.table(id, version) {
                    return Ok(Some(table));
                }
                let table = Arc::new(self.0.table_of(id)?);
                self.0.session.sql.keep_table(id, &table);
                Ok(Some(table))
            }
            None => Ok(None),
        }
    }

    fn table_of_space(&mut self, id: u32) -> Result<Option<Arc<Table>>, BoxError> {
        self.0.table_of(id).map(|table| Some(Arc::new(table)))
    }

    fn trigger_table(&mut self, trigger: &str) -> Result<Option<String>, BoxError> {
        let (found, changed) =
            self.0.catalog.read(system::SPACE, |space| table_with_trigger(space, trigger));
        self.0.depends = self.0.depends.max(changed);
        found
    }

    fn collation(&mut self, name: &str) -> Option<u32> {
        let (found, _) =
            self.0.catalog.read(system::COLLATION, |space| Ok(find_collation(space, name)));
        let id = found.ok()??;
        // One without an implementation is as good as none.
        Collation::of_id(id.into()).map(|_| id)
    }
}

/// The name of the table whose definition has a trigger of this name.
fn table_with_trigger(space: &Space, trigger: &str) -> Result<Option<String>, BoxError> {
    const NAME: u32 = 2;
    let all = space.select(0, IteratorType::All, &[0x90], 0, u64::MAX, None)?;
    let mut with_it = all.filter(|tuple| {
        let triggers = ladon_sql::triggers_of(tuple.bytes());
        triggers.iter().any(|known| known.name == trigger)
    });
    let name = with_it.next().and_then(|tuple| msgpack::read_str(&mut tuple.field(NAME)?).ok());
    Ok(name.map(|name| String::from_utf8_lossy(name).into_owned()))
}

fn find_collation(space: &Space, name: &str) -> Option<u32> {
    let all = space.select(0, IteratorType::All, &[0x90], 0, u64::MAX, None).ok()?;
    let mut named = all.filter_map(|tuple| {
        let mut fields = Fields::of(tuple.bytes());
        let id = msgpack::read_uint(&mut fields.next()?).ok()?;
        let Ok(Packed::Str(other)) = msgpack::read(&mut fields.next()?) else { return None };
        (other == name.as_bytes()).then_some(id)
    });
    u32::try_from(named.next()?).ok()
}

impl Schema for Seen<'_, '_, '_> {
    fn new_space_id(&mut self) -> u32 {
        let most = self.0.catalog.cells().map(|cell| cell.id()).max().unwrap_or(0);
        most.max(system::USER_ID_MIN - 1) + 1
    }

    fn new_sequence_id(&mut self) -> u32 {
        let (most, _) = self.0.catalog.read(system::SEQUENCE, |space| {
            let last = space.max(0, &[0x90])?;
            Ok(last
                .and_then(|tuple| msgpack::read_uint(&mut Fields::of(tuple.bytes()).next()?).ok()))
        });
        most.ok().flatten().and_then(|id| u32::try_from(id).ok()).unwrap_or(0) + 1
    }

    fn views_before_drop(&mut self, table: u32) -> Result<Vec<String>, BoxError> {
        let (def, _) = self.0.catalog.read(table, |space| Ok(space.def().clone()));
        // A view of the system, which nobody drops.
        let Ok(def) = def else { return Ok(Vec::new()) };
        let object = RightsObject::space(def.id, &def.name, def.owner);
        if self.0.rights()?.check_definition(&object, Privilege::DROP).is_err() {
            return Ok(Vec::new());
        }
        let (found, changed) = self.0.catalog.read(system::SPACE, |space| {
            let all = space.select(0, IteratorType::All, &[0x90], 0, u64::MAX, None)?;
            Ok(all.filter_map(|tuple| ladon_sql::view_of(tuple.bytes())).collect())
        });
        self.0.depends = self.0.depends.max(changed);
        found
    }

    fn is_empty(&mut self, space: u32) -> bool {
        let (is_empty, _) = self.0.catalog.read(space, |space| Ok(space.is_empty()));
        is_empty.unwrap_or(false)
    }

    fn owner(&mut self) -> u32 {
        self.0.session.user()
    }

    fn sequence_of(&mut self, space: u32) -> Option<u32> {
        let (filler, _) = self.0.catalog.filler(space)?;
        filler.is_generated.then_some(filler.sequence)
    }
}
