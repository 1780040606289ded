//! INSERT, REPLACE, UPDATE and DELETE: first what is to be changed, then the changes.

use crate::ast::{self, Event, Expr, OnConflict, Timing};
use crate::bind::Binder;
use crate::catalog::{Index, IndexPart, Table};
use crate::convert::assign;
use crate::error::{self, Error, Then};
use crate::operators::order;
use crate::parser::statement::expression;
use crate::programs::{Fired, parsed};
use crate::run::{Env, Run, Slot};
use crate::tree::{Core, Ex, Query};
use crate::value::Value;
use ladon_msgpack::{self as msgpack, write};
use ladon_space::fields::Fields;
use ladon_space::{ErrorCode, Space, Statement, Tuple, Written};
use std::sync::Arc;

const TUPLE_FOUND: ErrorCode = ErrorCode(3);
/// `ER_CK_CONSTRAINT_FAILED`.
const CHECK_FAILED: ErrorCode = ErrorCode(196);

/// `ER_CANT_UPDATE_PRIMARY_KEY`.
const KEY_UPDATED: ErrorCode = ErrorCode(94);

/// What a write counts for: it takes some microseconds, as this many steps do.
pub(crate) const WRITE_STEPS: u64 = 128;

/// A bound change.
pub(crate) struct Changing {
    pub(crate) table: Arc<Table>,
    pub(crate) on_conflict: OnConflict,
    pub(crate) how: How,
    /// The spaces that it reads, without those of its triggers.
    pub(crate) reads: Vec<u32>,
    /// The triggers that its rows fire.
    pub(crate) triggers: Vec<Fired>,
    /// Those that rows fire which REPLACE takes away.
    pub(crate) replaced: Vec<Fired>,
}

pub(crate) enum How {
    /// For each column: the place in the rows, or its default. `None` of the rows: one of defaults.
    Insert {
        columns: Vec<Result<usize, Ex>>,
        rows: Option<Query>,
    },
    /// The rows, and the fields that are set.
    Update {
        rows: Core,
        set: Vec<(usize, Ex)>,
    },
    Delete {
        rows: Core,
    },
}

/// Who writes rows.
pub trait Writer {
    /// Runs a statement on a space, within the transaction of all that is written here.
    ///
    /// # Errors
    /// Those of the space; nothing has changed then.
    fn write(&mut self, space: u32, statement: Statement<'_>) -> Result<Written, Error>;

    /// A space as the transaction sees it now.
    ///
    /// # Errors
    /// If the user may not read it.
    fn copy(&mut self, space: u32) -> Result<Space, Error>;

    /// The tuple with a key of a unique index, as the transaction sees it now.
    ///
    /// # Errors
    /// If the user may not read it.
    fn find(&mut self, space: u32, index: u32, key: &[u8]) -> Result<Option<Tuple>, Error>;

    /// Whether foreign keys name tuples of a space.
    fn is_named(&mut self, space: u32) -> bool;

    /// Whether foreign keys do something if a tuple of a space is deleted.
    fn is_watched(&mut self, space: u32) -> bool;
}

/// Why a statement has ended before its end, and what is to be done with what it has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// The error.
    pub error: Error,
    /// What it makes of what was done.
    pub then: Then,
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        let (error, then) = error::then(error);
        Stop { error, then }
    }
}

/// What a statement has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// The rows.
    pub count: u64,
    /// The numbers that a sequence gave to them.
    pub ids: Vec<i64>,
}

/// What a statement is to change.
#[derive(Debug)]
pub struct Changes {
    table: Arc<Table>,
    on_conflict: OnConflict,
    /// Those that are not written yet.
    rows: std::vec::IntoIter<Change>,
    done: Done,
    /// A bug on purpose: the row at which a slice ends is lost.
    pub lost_row_canary: bool,
}

#[derive(Debug)]
pub(crate) enum Change {
    /// A tuple, and whether a sequence fills in a field.
    Insert(Vec<u8>, bool),
    /// A primary key, operations, and the tuple that comes of them.
    Update(Vec<u8>, Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
}

/// Takes a tuple and what its query sees.
type Visit<'v> = dyn FnMut(&[u8], &Env<'_>) -> Result<(), Error> + 'v;

/// A tuple's key in a unique index; none if a part is null, and so unlike every other.
pub(crate) fn unique_key(index: &Index, tuple: &[u8]) -> Option<Vec<u8>> {
    let mut key = Vec::new();
    write::array(&mut key, index.parts.len() as u32);
    for part in &index.parts {
        let value = part.field.and_then(|field| ladon_space::fields::field(tuple, field));
        key.extend_from_slice(value.filter(|value| *value != [0xc0])?);
    }
    Some(key)
}

/// Whether two keys of an index are equal as it orders them.
fn is_same_key(index: &Index, a: &[u8], b: &[u8]) -> bool {
    let is_equal = |((a, b), part): ((&[u8], &[u8]), &IndexPart)| {
        a == b || order(&Value::unpack(a), &Value::unpack(b), part.collation).is_eq()
    };
    a == b || Fields::of(a).zip(Fields::of(b)).zip(&index.parts).all(is_equal)
}

fn target(binder: &mut Binder<'_>, name: &str, event: Event) -> Result<Arc<Table>, Error> {
    let table = binder.table(name)?;
    let is_instead = |trigger| {
        let created = parsed(trigger);
        created.is_ok_and(|it| it.event == event && it.timing == Timing::InsteadOf)
    };
    if table.view.is_some() && !table.triggers.iter().any(is_instead) {
        let message = format!("Can't modify space '{name}': space is a view");
        return Err(error::make(error::ALTER_SPACE, message));
    }
    Ok(table)
}

/// A change with the triggers that it fires.
fn changing(
    binder: &mut Binder<'_>,
    (table, on_conflict): (Arc<Table>, OnConflict),
    (how, reads): (How, Vec<u32>),
) -> Result<Changing, Error> {
    let (event, set) = match &how {
        How::Insert { .. } => (Event::Insert, Vec::new()),
        How::Update { set, .. } => (Event::Update, set.iter().map(|(at, _)| *at).collect()),
        How::Delete { .. } => (Event::Delete, Vec::new()),
    };
    let triggers = binder.fired(&table, event, &set)?;
    let replaced = match event {
        Event::Delete => Vec::new(),
        _ => binder.fired(&table, Event::Delete, &[])?,
    };
    Ok(Changing { table, on_conflict, how, reads, triggers, replaced })
}

pub(crate) fn bind_insert(
    binder: &mut Binder<'_>,
    insert: &ast::Insert,
) -> Result<Changing, Error> {
    let table = target(binder, &insert.table, Event::Insert)?;
    let how = binder.reading(|binder| insert_how(binder, &table, insert))?;
    changing(binder, (table, insert.on_conflict), how)
}

fn insert_how(
    binder: &mut Binder<'_>,
    table: &Arc<Table>,
    insert: &ast::Insert,
) -> Result<How, Error> {
    let mut places = vec![None; table.columns.len()];
    for (at, name) in insert.columns.iter().enumerate() {
        let column = table.column(name).ok_or_else(|| error::no_field(name, &table.name))?;
        if places[column].replace(at).is_some() {
            return Err(error::generic(format!("table id list: duplicate column name {name}")));
        }
    }
    if insert.columns.is_empty() && insert.rows.is_some() {
        places = (0..table.columns.len()).map(Some).collect();
    }
    let rows = insert.rows.as_ref().map(|select| binder.rows(select)).transpose()?;
    let rows = rows.map(|sub| sub.query);
    if let Some(rows) = &rows {
        let found = rows.outputs.len();
        if insert.columns.is_empty() && found != table.columns.len() {
            let message = format!(
                "table {} has {} columns but {found} values were supplied",
                table.name,
                table.columns.len()
            );
            return Err(error::generic(message));
        }
        if !insert.columns.is_empty() && found != insert.columns.len() {
            let message = format!("{found} values for {} columns", insert.columns.len());
            return Err(error::generic(message));
        }
    }
    let mut columns = Vec::new();
    for (column, place) in table.columns.iter().zip(places) {
        columns.push(match (place, &column.default) {
            (Some(place), _) => Ok(place),
            (None, None) => Err(Ex::Value(Value::Null)),
            (None, Some(text)) => {
                let expr = expression(text)?;
                Err(binder.with_nothing(|binder| binder.expr(&expr))?.0)
            }
        });
    }
    Ok(How::Insert { columns, rows })
}

/// A query of all columns of the table's rows that a condition selects.
fn selected(
    binder: &mut Binder<'_>,
    (table, index): (&Arc<Table>, &Option<String>),
    (with, is_recursive): (&[ast::Cte], bool),
    set: &[&Expr],
    filter: &Option<Expr>,
) -> Result<Core, Error> {
    let from = ast::From {
        source: ast::Source::Table(table.name.clone()),
        alias: None,
        index: index.clone(),
        not_indexed: false,
        join: ast::Join::default(),
        on: None,
        using: Vec::new(),
    };
    let columns =
        set.iter().map(|expr| ast::ResultColumn::Expr((*expr).clone(), None, String::new()));
    let nothing = ast::ResultColumn::Expr(Expr::Literal(Value::Null), None, String::new());
    let core = ast::Core {
        columns: columns.chain([nothing]).collect(),
        from: vec![from],
        filter: filter.clone(),
        ..ast::Core::default()
    };
    let select = ast::Select {
        with: with.to_vec(),
        is_recursive,
        cores: vec![(None, core)],
        ..ast::Select::default()
    };
    let query = binder.query(&select)?;
    let core = query.cores.into_iter().next().map(|(_, core)| core).unwrap_or_default();
    if core.group.is_some() {
        return Err(error::generic("misuse of aggregate functions"));
    }
    Ok(core)
}

pub(crate) fn bind_update(
    binder: &mut Binder<'_>,
    update: &ast::Update,
) -> Result<Changing, Error> {
    let table = target(binder, &update.table, Event::Update)?;
    let how = binder.reading(|binder| update_how(binder, &table, update))?;
    changing(binder, (table, update.on_conflict), how)
}

fn update_how(
    binder: &mut Binder<'_>,
    table: &Arc<Table>,
    update: &ast::Update,
) -> Result<How, Error> {
    let mut fields = Vec::new();
    let mut values = Vec::new();
    for (names, expr) in &update.assignments {
        for name in names {
            let field = table.column(name).ok_or_else(|| error::no_field(name, &table.name))?;
            if fields.contains(&field) {
                return Err(error::generic(format!("set id list: duplicate column name {name}")));
            }
            fields.push(field);
        }
        match expr {
            Expr::Row(row) if row.len() == names.len() => values.extend(row),
            expr if names.len() == 1 => values.push(expr),
            _ => return Err(error::unsupported("SET of several columns by one value")),
        }
    }
    let with = (&update.with[..], update.is_recursive);
    let mut rows = selected(binder, (table, &update.index), with, &values, &update.filter)?;
    rows.results.truncate(fields.len());
    let set = fields.into_iter().zip(std::mem::take(&mut rows.results)).collect();
    Ok(How::Update { rows, set })
}

pub(crate) fn bind_delete(
    binder: &mut Binder<'_>,
    delete: &ast::Delete,
) -> Result<Changing, Error> {
    let table = target(binder, &delete.table, Event::Delete)?;
    let with = (&delete.with[..], delete.is_recursive);
    let how = binder.reading(|binder| {
        let rows = selected(binder, (&table, &delete.index), with, &[], &delete.filter)?;
        Ok(How::Delete { rows })
    })?;
    changing(binder, (table, OnConflict::Abort), how)
}

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

impl Changes {
    /// How many rows are to be changed.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether nothing is to be changed.
    pub fn is_empty(&self) -> bool {
        self.rows.as_slice().is_empty()
    }

    /// Whether there is one write at most.
    pub fn write_once(&self) -> bool {
        let is_one = match self.rows.as_slice() {
            [] => true,
            [Change::Update(key, _, new)] => !self.moves(key, new),
            rows => rows.len() == 1,
        };
        is_one && self.on_conflict != OnConflict::Replace
    }

    /// Writes the changes. If it fails, the caller takes back what was written, unless the error
    /// says that it stays.
    ///
    /// # Errors
    /// Those of the writer, in Tarantool 2.6's words.
    pub fn apply(mut self, writer: &mut dyn Writer) -> Result<Done, Stop> {
        Ok(self.apply_some(u64::MAX, writer)?.unwrap_or_default())
    }

    /// Writes some of the changes, for so many steps, and at least one. Returns what all have done
    /// once all are written.
    ///
    /// # Errors
    /// As [`Changes::apply`].
    pub fn apply_some(
        &mut self,
        steps: u64,
        writer: &mut dyn Writer,
    ) -> Result<Option<Done>, Stop> {
        let mut left = (steps / WRITE_STEPS).max(1);
        while let Some(change) = self.rows.next() {
            let mut done = std::mem::take(&mut self.done);
            let applied = self.apply_row(&change, writer, &mut done);
            self.done = done;
            applied?;
            left -= 1;
            if left == 0 && !self.is_empty() {
                if self.lost_row_canary {
                    self.rows.next();
                }
                return Ok(None);
            }
        }
        Ok(Some(std::mem::take(&mut self.done)))
    }

    /// Writes one change. Returns what was written; nothing, if a conflict was ignored.
    pub(crate) fn apply_row(
        &self,
        change: &Change,
        writer: &mut dyn Writer,
        done: &mut Done,
    ) -> Result<Option<Written>, Stop> {
        let error = match self.apply_one(change, writer, done) {
            Ok(written) => return Ok(Some(written)),
            Err(error) => error,
        };
        let is_conflict = [TUPLE_FOUND, CHECK_FAILED, KEY_UPDATED].contains(&error.code);
        let then = match self.on_conflict {
            OnConflict::Ignore if is_conflict => return Ok(None),
            OnConflict::Fail if is_conflict => Then::Keep,
            OnConflict::Rollback if is_conflict => Then::Rollback,
            _ => return Err(self.told(error).into()),
        };
        Err(Stop { error: self.told(error), then })
    }

    fn apply_one(
        &self,
        change: &Change,
        writer: &mut dyn Writer,
        done: &mut Done,
    ) -> Result<Written, Error> {
        let space = self.table.id;
        Ok(match change {
            Change::Insert(tuple, is_numbered) => {
                let written = if self.on_conflict == OnConflict::Replace {
                    done.count += self.make_room(tuple, None, writer)?;
                    done.count += self.delete_watched(tuple, writer)?;
                    writer.write(space, Statement::Replace(tuple))?
                } else {
                    writer.write(space, Statement::Insert(tuple))?
                };
                done.count += 1 + u64::from(written.old.is_some());
                if *is_numbered {
                    done.ids.extend(self.id_of(&written));
                }
                written
            }
            Change::Update(key, _, new) if self.moves(key, new) => {
                let written = self.apply_move((key, new), writer)?;
                done.count += u64::from(written.new.is_some());
                written
            }
            Change::Update(key, operations, new) => {
                if self.on_conflict == OnConflict::Replace {
                    self.make_room(new, Some(key), writer)?;
                }
                let update = Statement::Update { index: 0, key, operations, index_base: 0 };
                let written = writer.write(space, update)?;
                done.count += u64::from(written.new.is_some());
                written
            }
            Change::Delete(key) => {
                let written = writer.write(space, Statement::Delete { index: 0, key })?;
                done.count += u64::from(written.old.is_some());
                written
            }
        })
    }

    /// Whether a row gets another primary key; one that is equal (`-0.0`, a letter by its
    /// collation) is the same.
    fn moves(&self, key: &[u8], new: &[u8]) -> bool {
        let Some(primary) = self.table.indexes.first() else { return false };
        unique_key(primary, new).is_some_and(|own| !is_same_key(primary, &own, key))
    }

    /// Writes a row with another primary key: the row before leaves. 2.6 does that for OR REPLACE
    /// alone.
    fn apply_move(
        &self,
        (key, new): (&[u8], &[u8]),
        writer: &mut dyn Writer,
    ) -> Result<Written, Error> {
        let space = self.table.id;
        let Some(primary) = self.table.indexes.first() else { return Ok(Written::default()) };
        let place = unique_key(primary, new).unwrap_or_default();
        let (index, table) = (&primary.name, &self.table.name);
        if self.on_conflict != OnConflict::Replace {
            let is_there = writer.find(space, 0, &place)?.is_some();
            let (code, what) = match is_there {
                true => (TUPLE_FOUND, "Duplicate key exists in unique index"),
                false => (KEY_UPDATED, "Attempt to modify a tuple field which is part of index"),
            };
            return Err(error::make(code, format!("{what} '{index}' in space '{table}'")));
        }
        if writer.is_named(space) {
            let what = "a new primary key of a row of a table that foreign keys name";
            return Err(error::unsupported(what));
        }
        self.make_room(new, Some(key), writer)?;
        writer.write(space, Statement::Delete { index: 0, key: &place })?;
        let left = writer.write(space, Statement::Delete { index: 0, key })?;
        if left.old.is_none() {
            return Ok(Written::default());
        }
        let written = writer.write(space, Statement::Insert(new))?;
        Ok(Written { new: written.new, ..left })
    }

    /// Deletes rows, other than the one with the key `own`, that have a new row's keys in unique
    /// indexes. Returns their number.
    fn make_room(
        &self,
        tuple: &[u8],
        own: Option<&[u8]>,
        writer: &mut dyn Writer,
    ) -> Result<u64, Error> {
        let mut count = 0;
        let unique = self.table.indexes.iter().filter(|index| index.is_unique && index.id != 0);
        for index in unique {
            let Some(key) = unique_key(index, tuple) else { continue };
            let found = writer.find(self.table.id, index.id, &key)?;
            let is_own = |found: &Tuple| {
                let Some((primary, own)) = self.table.indexes.first().zip(own) else {
                    return false;
                };
                let theirs = unique_key(primary, found.bytes());
                theirs.is_some_and(|theirs| is_same_key(primary, &theirs, own))
            };
            if found.is_none_or(|found| is_own(&found)) {
                continue;
            }
            let delete = Statement::Delete { index: index.id, key: &key };
            count += u64::from(writer.write(self.table.id, delete)?.old.is_some());
        }
        Ok(count)
    }

    /// Deletes the row with a new row's primary key, if foreign keys do something then: a row that
    /// REPLACE takes away has left for them. Returns the number of rows.
    fn delete_watched(&self, tuple: &[u8], writer: &mut dyn Writer) -> Result<u64, Error> {
        let primary = self.table.indexes.first().filter(|_| writer.is_watched(self.table.id));
        let Some(key) = primary.and_then(|primary| unique_key(primary, tuple)) else {
            return Ok(0);
        };
        let delete = Statement::Delete { index: 0, key: &key };
        Ok(u64::from(writer.write(self.table.id, delete)?.old.is_some()))
    }

    fn id_of(&self, written: &Written) -> Option<i64> {
        let field = self.table.autoincrement?;
        let bytes = written.new.as_ref()?.field(field)?;
        match msgpack::read(&mut { bytes }).ok()? {
            msgpack::Value::Uint(id) => i64::try_from(id).ok(),
            msgpack::Value::Int(id) => Some(id),
            _ => None,
        }
    }

    /// The words of 2.6 for a key that is there already.
    fn told(&self, error: Error) -> Error {
        // Of a key that is not there, or is still named.
        const FOREIGN_KEYS: [u32; 3] = [238, 239, 240];
        if FOREIGN_KEYS.contains(&error.code.0) {
            return error::execute("FOREIGN KEY constraint failed");
        }
        told_of_duplicate(error)
    }
}

/// The words of 2.6 for a key that is there already, and for a table that others name.
pub fn told_of_duplicate(mut error: Error) -> Error {
    const NAMED: &str = "space is referenced by foreign key";
    if error.code == error::DROP_SPACE && error.message.ends_with(NAMED) {
        error.message = error.message.replace(NAMED, "other objects depend on it");
        return error;
    }
    let mut names = error.message.split('"').skip(1).step_by(2);
    match (error.code == TUPLE_FOUND, names.next(), names.next()) {
        (true, Some(index), Some(space)) => {
            let message =
                format!("Duplicate key exists in unique index '{index}' in space '{space}'");
            error::make(TUPLE_FOUND, message)
        }
        _ => error,
    }
}
