//! INSERT, REPLACE, UPDATE and DELETE: first what is to be changed, then the changes.

use crate::ast::{self, Expr, OnConflict};
use crate::bind::Binder;
use crate::catalog::Table;
use crate::convert::assign;
use crate::error::{self, Error};
use crate::parser::statement::expression;
use crate::run::{Env, Run, Slot};
use crate::tree::{Core, Ex, Query};
use crate::value::Value;
use ladon_msgpack::{self as msgpack, write};
use ladon_space::fields::Fields;
use ladon_space::{ErrorCode, Statement, Written};
use std::sync::Arc;

const TUPLE_FOUND: ErrorCode = ErrorCode(3);

/// A bound change.
pub(crate) struct Changing {
    table: Arc<Table>,
    on_conflict: OnConflict,
    how: How,
}

enum How {
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
    rows: Vec<Change>,
}

#[derive(Debug)]
enum Change {
    /// A tuple, and whether a sequence fills in a field.
    Insert(Vec<u8>, bool),
    /// A primary key, operations, and the tuple that comes of them.
    Update(Vec<u8>, Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
}

/// Takes a tuple and what its query sees.
type Visit<'v> = dyn FnMut(&[u8], &Env<'_>) -> Result<(), Error> + 'v;

fn target(binder: &mut Binder<'_>, name: &str) -> Result<Arc<Table>, Error> {
    let table = binder.table(name)?;
    if table.view.is_some() {
        let message = format!("Can't modify space '{name}': space is a view");
        return Err(error::make(error::ALTER_SPACE, message));
    }
    Ok(table)
}

fn check_conflict(on_conflict: OnConflict) -> Result<(), Error> {
    match on_conflict {
        OnConflict::Fail => Err(error::unsupported("OR FAIL")),
        OnConflict::Rollback => Err(error::unsupported("OR ROLLBACK")),
        OnConflict::Abort | OnConflict::Ignore | OnConflict::Replace => Ok(()),
    }
}

pub(crate) fn bind_insert(
    binder: &mut Binder<'_>,
    insert: &ast::Insert,
) -> Result<Changing, Error> {
    check_conflict(insert.on_conflict)?;
    let table = target(binder, &insert.table)?;
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
    Ok(Changing { table, on_conflict: insert.on_conflict, how: How::Insert { columns, rows } })
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
    check_conflict(update.on_conflict)?;
    let table = target(binder, &update.table)?;
    let mut fields = Vec::new();
    let mut values = Vec::new();
    for (names, expr) in &update.assignments {
        for name in names {
            let field = table.column(name).ok_or_else(|| error::no_field(name, &table.name))?;
            fields.push(field);
        }
        match expr {
            Expr::Row(row) if row.len() == names.len() => values.extend(row),
            expr if names.len() == 1 => values.push(expr),
            _ => return Err(error::unsupported("SET of several columns by one value")),
        }
    }
    let with = (&update.with[..], update.is_recursive);
    let mut rows = selected(binder, (&table, &update.index), with, &values, &update.filter)?;
    rows.results.truncate(fields.len());
    let set = fields.into_iter().zip(std::mem::take(&mut rows.results)).collect();
    Ok(Changing { table, on_conflict: update.on_conflict, how: How::Update { rows, set } })
}

pub(crate) fn bind_delete(
    binder: &mut Binder<'_>,
    delete: &ast::Delete,
) -> Result<Changing, Error> {
    let table = target(binder, &delete.table)?;
    let with = (&delete.with[..], delete.is_recursive);
    let rows = selected(binder, (&table, &delete.index), with, &[], &delete.filter)?;
    Ok(Changing { table, on_conflict: OnConflict::Abort, how: How::Delete { rows } })
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

    pub(crate) fn changes(&self, run: &Run<'_>) -> Result<Changes, Error> {
        let rows = match &self.how {
            How::Insert { columns, rows } => self.inserts(run, columns, rows.as_ref())?,
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
        Ok(Changes { table: Arc::clone(&self.table), on_conflict: self.on_conflict, rows })
    }

    /// Visits the tuples that a query finds.
    fn each(&self, run: &Run<'_>, core: &Core, visit: &mut Visit<'_>) -> Result<(), Error> {
        run.each_joined(core, &mut |env| {
            if let Some(Slot::Tuple(tuple)) = env.slots.first() {
                run.budget.take(tuple.bytes().len() * 2 + 64)?;
                visit(tuple.bytes(), env)?;
            }
            Ok(())
        })
    }

    fn key_of(&self, tuple: &[u8]) -> Result<Vec<u8>, Error> {
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

    fn inserts(
        &self,
        run: &Run<'_>,
        columns: &[Result<usize, Ex>],
        rows: Option<&Query>,
    ) -> Result<Vec<Change>, Error> {
        let found = match rows {
            Some(query) => run.query(query, None, None)?,
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
                } else if value.is_null()
                    && !facts.is_nullable
                    && facts.kind != ladon_space::FieldType::Any
                {
                    match self.on_conflict {
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
            let mut fields: Vec<Vec<u8>> = Fields::of(tuple).map(<[u8]>::to_vec).collect();
            let before = fields.len();
            let mut set_fields = Vec::new();
            for (field, ex) in set {
                let facts = &self.table.columns[*field];
                let value = assign(run.eval(ex, env)?, facts.kind)?;
                if value.is_null()
                    && !facts.is_nullable
                    && facts.kind != ladon_space::FieldType::Any
                {
                    return match self.on_conflict {
                        OnConflict::Ignore => Ok(()),
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
            changes.push(Change::Update(self.key_of(tuple)?, operations, new));
            Ok(())
        })?;
        Ok(changes)
    }
}

impl Changes {
    /// How many rows are to be changed.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether nothing is to be changed.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Writes the changes. If it fails, the caller takes back what was written.
    ///
    /// # Errors
    /// Those of the writer, in Tarantool 2.6's words.
    pub fn apply(self, writer: &mut dyn Writer) -> Result<Done, Error> {
        let mut done = Done::default();
        for change in &self.rows {
            match self.apply_one(change, writer, &mut done) {
                Err(error)
                    if error.code == TUPLE_FOUND && self.on_conflict == OnConflict::Ignore => {}
                Err(error) => return Err(self.told(error)),
                Ok(()) => {}
            }
        }
        Ok(done)
    }

    fn apply_one(
        &self,
        change: &Change,
        writer: &mut dyn Writer,
        done: &mut Done,
    ) -> Result<(), Error> {
        let space = self.table.id;
        match change {
            Change::Insert(tuple, is_numbered) => {
                let written = if self.on_conflict == OnConflict::Replace {
                    done.count += self.make_room(tuple, None, writer)?;
                    writer.write(space, Statement::Replace(tuple))?
                } else {
                    writer.write(space, Statement::Insert(tuple))?
                };
                done.count += 1 + u64::from(written.old.is_some());
                if *is_numbered {
                    done.ids.extend(self.id_of(&written));
                }
            }
            Change::Update(key, operations, new) => {
                if self.on_conflict == OnConflict::Replace {
                    self.make_room(new, Some(key), writer)?;
                }
                let update = Statement::Update { index: 0, key, operations, index_base: 0 };
                let written = writer.write(space, update)?;
                done.count += u64::from(written.new.is_some());
            }
            Change::Delete(key) => {
                let written = writer.write(space, Statement::Delete { index: 0, key })?;
                done.count += u64::from(written.old.is_some());
            }
        }
        Ok(())
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
            if own.is_some() {
                return Err(error::unsupported(
                    "UPDATE OR REPLACE with more than one unique index",
                ));
            }
            let mut key = Vec::new();
            write::array(&mut key, index.parts.len() as u32);
            let mut has_null = false;
            for part in &index.parts {
                let value = part.field.and_then(|field| ladon_space::fields::field(tuple, field));
                let value = value.unwrap_or(&[0xc0]);
                has_null |= value == [0xc0];
                key.extend_from_slice(value);
            }
            if has_null {
                continue;
            }
            let delete = Statement::Delete { index: index.id, key: &key };
            count += u64::from(writer.write(self.table.id, delete)?.old.is_some());
        }
        Ok(count)
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
        const CANT_UPDATE_PRIMARY_KEY: u32 = 94;
        if error.code.0 == CANT_UPDATE_PRIMARY_KEY
            && let Some(primary) = self.table.indexes.first()
        {
            let message = format!(
                "Attempt to modify a tuple field which is part of index '{}' in space '{}'",
                primary.name, self.table.name
            );
            return error::make(error.code, message);
        }
        let index = error.message.split('"').nth(1);
        match (error.code == TUPLE_FOUND, index) {
            (true, Some(index)) => {
                let message = format!(
                    "Duplicate key exists in unique index '{index}' in space '{}'",
                    self.table.name
                );
                error::make(TUPLE_FOUND, message)
            }
            _ => error,
        }
    }
}
