//! What a statement is to change: tuples to insert, operations on rows that are found.

use super::{Change, Changes, Changing, Done, How, Visit};
use crate::ast::OnConflict;
use crate::convert::assign;
use crate::error::{self, Error};
use crate::run::{Env, Run, Slot};
use crate::tree::{Core, Ex, Query};
use ladon_msgpack::write;
use ladon_space::ErrorCode;
use ladon_space::fields::Fields;
use std::sync::Arc;

impl Changing {
    pub(crate) fn space(&self) -> u32 {
        self.table.id
    }

    /// The query that finds the rows, for EXPLAIN.
    pub(crate) fn core(&self) -> Option<&Core> {
        match &self.how {
            How::Update { rows, .. } | How::Delete { rows } => Some(rows),
            How::Insert { .. } => None,
        }
    }

    pub(crate) fn query(&self) -> Option<&Query> {
        match &self.how {
            How::Insert { rows, .. } => rows.as_ref(),
            _ => None,
        }
    }

    /// Whether its rows have to be changed one by one, because they fire triggers.
    pub(crate) fn is_stepwise(&self) -> bool {
        let replaces = self.on_conflict == OnConflict::Replace;
        !self.triggers.is_empty() || replaces && !self.replaced.is_empty()
    }

    pub(crate) fn changes(&self, run: &Run<'_>) -> Result<Changes, Error> {
        let rows = match &self.how {
            How::Insert { columns, rows } => {
                self.inserts(run, (columns, rows.as_ref()), None, Some(self.on_conflict))?
            }
            How::Update { rows, set } => self.updates(run, rows, set)?,
            How::Delete { rows } => {
                let mut found = Vec::new();
                self.each(run, rows, &mut |tuple, _| {
                    found.push(Change::Delete(self.key_of(tuple)?));
                    Ok(())
                })?;
                found
            }
        };
        Ok(self.made(self.on_conflict, rows))
    }

    pub(crate) fn made(&self, on_conflict: OnConflict, rows: Vec<Change>) -> Changes {
        let (table, rows) = (Arc::clone(&self.table), rows.into_iter());
        Changes { table, on_conflict, rows, done: Done::default(), lost_row_canary: false }
    }

    /// Visits the tuples that a query finds.
    fn each(&self, run: &Run<'_>, core: &Core, visit: &mut Visit<'_>) -> Result<(), Error> {
        run.each_joined(core, None, &mut |env| {
            if let Some(tuple) = env.slots.first().and_then(Slot::tuple) {
                run.budget.take(tuple.bytes().len() * 2 + 64)?;
                visit(tuple.bytes(), env)?;
            }
            Ok(())
        })
    }

    pub(crate) fn key_of(&self, tuple: &[u8]) -> Result<Vec<u8>, Error> {
        let Some(primary) = self.table.indexes.first() else {
            let message = format!("No index #0 is defined in space '{}'", self.table.name);
            return Err(error::make(ErrorCode(35), message));
        };
        let mut key = Vec::new();
        write::array(&mut key, primary.parts.len() as u32);
        for part in &primary.parts {
            let Some(field) = part.field else {
                return Err(error::unsupported(
                    "changes of rows whose primary key is inside of a field",
                ));
            };
            key.extend_from_slice(ladon_space::fields::field(tuple, field).unwrap_or(&[0xc0]));
        }
        Ok(key)
    }

    fn not_null(&self, column: usize) -> Error {
        let name = &self.table.columns[column].name;
        error::execute(&format!("NOT NULL constraint failed: {}.{name}", self.table.name))
    }

    /// The error of a null where none may be, in a tuple that is to be inserted.
    pub(crate) fn null_of(&self, tuple: &[u8], is_numbered: bool) -> Option<Error> {
        let mut fields = Fields::of(tuple).zip(&self.table.columns).enumerate();
        let (at, _) = fields.find(|(at, (field, facts))| {
            let numbers_itself = is_numbered && self.table.autoincrement == Some(*at as u32);
            *field == [0xc0]
                && !facts.is_nullable
                && facts.kind != ladon_space::FieldType::Any
                && !numbers_itself
        })?;
        Some(self.not_null(at))
    }

    /// The tuples that an INSERT means. Nulls are checked with its conflict policy, unless
    /// triggers come before.
    pub(crate) fn inserts(
        &self,
        run: &Run<'_>,
        (columns, rows): (&[Result<usize, Ex>], Option<&Query>),
        outer: Option<&Env<'_>>,
        checked: Option<OnConflict>,
    ) -> Result<Vec<Change>, Error> {
        let found = match rows {
            Some(query) => run.query(query, outer, None)?,
            None => vec![[].into()],
        };
        let mut changes = Vec::with_capacity(found.len());
        'rows: for row in found {
            let mut tuple = Vec::new();
            write::array(&mut tuple, columns.len() as u32);
            let mut is_numbered = false;
            for (at, column) in columns.iter().enumerate() {
                let value = match column {
                    Ok(place) => row[*place].clone(),
                    Err(default) => run.eval(default, &Env::NOTHING)?,
                };
                let facts = &self.table.columns[at];
                let value = assign(value, facts.kind)?;
                let numbers_itself = self.table.autoincrement == Some(at as u32);
                if value.is_null() && numbers_itself {
                    is_numbered = true;
                } else if let Some(on_conflict) = checked
                    && value.is_null()
                    && !facts.is_nullable
                    && facts.kind != ladon_space::FieldType::Any
                {
                    match on_conflict {
                        OnConflict::Ignore => continue 'rows,
                        _ => return Err(self.not_null(at)),
                    }
                }
                value.pack(&mut tuple);
            }
            run.budget.take(tuple.len() + 64)?;
            changes.push(Change::Insert(tuple, is_numbered));
        }
        Ok(changes)
    }

    fn updates(
        &self,
        run: &Run<'_>,
        core: &Core,
        set: &[(usize, Ex)],
    ) -> Result<Vec<Change>, Error> {
        let mut changes = Vec::new();
        self.each(run, core, &mut |tuple, env| {
            changes.extend(self.update(run, tuple, env, (set, self.on_conflict))?);
            Ok(())
        })?;
        Ok(changes)
    }

    /// The change of one row; none if it is left alone because of a null.
    pub(crate) fn update(
        &self,
        run: &Run<'_>,
        tuple: &[u8],
        env: &Env<'_>,
        (set, on_conflict): (&[(usize, Ex)], OnConflict),
    ) -> Result<Option<Change>, Error> {
        let mut fields: Vec<Vec<u8>> = Fields::of(tuple).map(<[u8]>::to_vec).collect();
        let before = fields.len();
        let mut set_fields = Vec::new();
        for (field, ex) in set {
            let facts = &self.table.columns[*field];
            let value = assign(run.eval(ex, env)?, facts.kind)?;
            if value.is_null() && !facts.is_nullable && facts.kind != ladon_space::FieldType::Any {
                return match on_conflict {
                    OnConflict::Ignore => Ok(None),
                    _ => Err(self.not_null(*field)),
                };
            }
            if fields.len() <= *field {
                fields.resize(*field + 1, vec![0xc0]);
            }
            fields[*field].clear();
            value.pack(&mut fields[*field]);
            set_fields.push(*field);
        }
        // Fields that the tuple did not have come with those behind them.
        set_fields.extend(before..fields.len());
        set_fields.sort_unstable();
        set_fields.dedup();
        let mut operations = Vec::new();
        write::array(&mut operations, set_fields.len() as u32);
        for field in set_fields {
            write::array(&mut operations, 3);
            write::str(&mut operations, b"=");
            write::uint(&mut operations, field as u64);
            operations.extend_from_slice(&fields[field]);
        }
        let mut new = Vec::new();
        write::array(&mut new, fields.len() as u32);
        fields.iter().for_each(|field| new.extend_from_slice(field));
        Ok(Some(Change::Update(self.key_of(tuple)?, operations, new)))
    }
}
