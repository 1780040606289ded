//! CREATE, ALTER, DROP and TRUNCATE: tuples of the system spaces, as Tarantool 2.6 makes them.

use crate::ast::{ColumnDef, CreateTable, Expr, ForeignDef, KeyDef, Statement};
use crate::catalog::Table;
use crate::constraints::{
    add_check, add_checks, add_foreign, drop_constraint, foreign_keys, named_fields,
    unnamed_foreign,
};
use crate::define_trigger;
use crate::definition::{
    Definition, Definitions, Named, Schema, existing, numbers, one, option_of, text, with_field,
};
use crate::error::{self, Error};
use crate::prepared::{Definable, Prepared};
use crate::view_tables;
use ladon_msgpack::write;
use ladon_space::FieldType;
use ladon_space::fields::Fields;
use ladon_system_spaces::{INDEX, SEQUENCE, SEQUENCE_DATA, SPACE, SPACE_SEQUENCE, TRUNCATE};

impl Definable<'_> {
    /// The tuples that the statement means.
    ///
    /// # Errors
    /// What is wrong with it, in Tarantool 2.6's words.
    pub fn definitions(
        &self,
        prepared: &Prepared,
        schema: &mut dyn Schema,
    ) -> Result<Definitions, Error> {
        match self.0 {
            Statement::CreateTable(table) => create_table(table, schema),
            Statement::CreateView { name, columns, if_not_exists, text, .. } => {
                let kinds: Vec<_> = prepared.view_columns().iter().map(|it| it.kind).collect();
                create_view((name, *if_not_exists), columns, &kinds, text, schema)
            }
            Statement::CreateIndex { name, table, columns, is_unique, if_not_exists } => {
                let table = existing(schema, table)?;
                if table.indexes.iter().any(|index| index.name == *name) {
                    if *if_not_exists {
                        return Ok(Definitions::default());
                    }
                    let message =
                        format!("Index '{name}' already exists in space '{}'", table.name);
                    return Err(error::make(error::INDEX_EXISTS_IN_SPACE, message));
                }
                let step = add_index(&table, name, columns, *is_unique, schema)?;
                Ok(one(step, 1))
            }
            Statement::AddCheck { table, name, text } => {
                add_check(&*existing(schema, table)?, (name, text))
            }
            Statement::AddColumn(table) => add_column(table, schema),
            Statement::AddForeign { table, foreign } => {
                let table = existing(schema, table)?;
                let mut definitions = add_foreign(&table, foreign, schema)?;
                definitions.steps.splice(0..0, foreign_index(&table, foreign));
                Ok(definitions)
            }
            Statement::AddUnique { table, key, is_primary } => {
                let table = existing(schema, table)?;
                if *is_primary {
                    return Err(error::unsupported("ALTER TABLE ADD CONSTRAINT PRIMARY KEY"));
                }
                let name = key.name.clone().unwrap_or_default();
                Ok(one(add_index(&table, &name, key, true, schema)?, 0))
            }
            Statement::DropIndex { name, table, if_exists } => {
                drop_index(name, table, *if_exists, schema)
            }
            Statement::DropConstraint { table, name } => drop_constraint(table, name, schema),
            Statement::DropTable { name, if_exists } => drop_space(name, *if_exists, false, schema),
            Statement::DropView { name, if_exists } => drop_space(name, *if_exists, true, schema),
            Statement::CreateTrigger(trigger) => define_trigger::create(trigger, schema),
            Statement::DropTrigger { name, if_exists } => {
                define_trigger::drop(name, *if_exists, schema)
            }
            Statement::RenameTable { from, to } => rename(from, to, schema),
            Statement::Truncate(name) => {
                let table = existing(schema, name)?;
                if table.view.is_some() {
                    let message = format!("Can't truncate space '{name}': space is a view");
                    return Err(error::make(error::ALTER_SPACE, message));
                }
                Ok(one(Definition::Truncate { system: TRUNCATE, space: table.id }, 0))
            }
            _ => Err(error::unsupported("this statement")),
        }
    }
}

fn exists(name: &str) -> Error {
    error::make(error::SPACE_EXISTS, format!("Space '{name}' already exists"))
}

fn cannot_create(name: &str, why: &str) -> Error {
    error::make(error::CREATE_SPACE, format!("Failed to create space '{name}': {why}"))
}

fn nullable(out: &mut Vec<u8>, is_nullable: bool) {
    write::str(out, b"is_nullable");
    write::bool(out, is_nullable);
    text(out, "nullable_action", if is_nullable { "none" } else { "abort" });
}

fn format(fields: &[Named<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    write::array(&mut out, fields.len() as u32);
    for field in fields {
        let pairs = 4 + u32::from(field.collation != 0) + u32::from(field.default.is_some());
        write::map(&mut out, pairs);
        text(&mut out, "name", field.name);
        text(&mut out, "type", field.kind.name());
        nullable(&mut out, field.is_nullable);
        if field.collation != 0 {
            write::str(&mut out, b"collation");
            write::uint(&mut out, field.collation.into());
        }
        // Not `default`: that is a value for nil and for every protocol.
        if let Some(default) = field.default {
            text(&mut out, "sql_default", default);
        }
    }
    out
}

fn index(
    (space, id, name): (u32, u32, &str),
    is_unique: bool,
    parts: &[(u32, FieldType, bool, u32)],
) -> Definition {
    let mut tuple = Vec::new();
    write::array(&mut tuple, 6);
    write::uint(&mut tuple, space.into());
    write::uint(&mut tuple, id.into());
    write::str(&mut tuple, name.as_bytes());
    write::str(&mut tuple, b"tree");
    write::map(&mut tuple, 1);
    write::str(&mut tuple, b"unique");
    write::bool(&mut tuple, is_unique);
    write::array(&mut tuple, parts.len() as u32);
    for (field, kind, is_nullable, collation) in parts {
        write::map(&mut tuple, 5 + u32::from(*collation != 0));
        text(&mut tuple, "type", kind.name());
        write::str(&mut tuple, b"field");
        write::uint(&mut tuple, (*field).into());
        nullable(&mut tuple, *is_nullable);
        text(&mut tuple, "sort_order", "asc");
        if *collation != 0 {
            write::str(&mut tuple, b"collation");
            write::uint(&mut tuple, (*collation).into());
        }
    }
    Definition::Insert { space: INDEX, tuple, key: numbers(&[space, id]) }
}

fn collation(schema: &mut dyn Schema, name: &str) -> Result<u32, Error> {
    schema.collation(name).ok_or_else(|| {
        error::make(error::NO_SUCH_COLLATION, format!("Collation '{name}' does not exist"))
    })
}

/// Parts of an index: field, type, whether it may be null, collation.
type Parts = Vec<(u32, FieldType, bool, u32)>;

/// The columns of a key, as parts of an index.
fn parts(
    key: &KeyDef,
    (table, fields): (&str, &[Named<'_>]),
    schema: &mut dyn Schema,
) -> Result<Parts, Error> {
    let mut found = Vec::new();
    for (name, collate) in &key.columns {
        let at = fields.iter().position(|field| field.name == *name);
        let Some(at) = at else {
            return Err(error::no_field(name, table));
        };
        let field = &fields[at];
        let collation = match collate {
            Some(name) => collation(schema, name)?,
            None => field.collation,
        };
        found.push((at as u32, field.kind, field.is_nullable, collation));
    }
    Ok(found)
}

fn create_table(table: &CreateTable, schema: &mut dyn Schema) -> Result<Definitions, Error> {
    let name = &table.name[..];
    if schema.table(name)?.is_some() {
        return if table.if_not_exists { Ok(Definitions::default()) } else { Err(exists(name)) };
    }
    let Some(primary) = &table.primary else {
        return Err(cannot_create(name, "PRIMARY KEY missing"));
    };
    let mut fields: Vec<Named<'_>> = Vec::new();
    for column in &table.columns {
        if fields.iter().any(|field| field.name == column.name) {
            let message = format!("Space field '{}' is duplicate", column.name);
            return Err(error::make(ladon_space::ErrorCode(149), message));
        }
        let is_key = primary.columns.iter().any(|(key, _)| *key == column.name);
        if is_key && column.is_nullable == Some(true) {
            let message = format!("Primary index of space '{name}' can not contain nullable parts");
            return Err(error::make(ladon_space::ErrorCode(152), message));
        }
        let collation = match &column.collation {
            Some(name) => collation(schema, name)?,
            None => 0,
        };
        check_default(name, column)?;
        fields.push(Named {
            name: &column.name,
            kind: column.kind,
            is_nullable: column.is_nullable.unwrap_or(true) && !is_key,
            collation,
            default: column.default.as_ref().map(|(_, text)| &text[..]),
        });
    }
    let id = schema.new_space_id();
    let owner = schema.owner();
    let mut options = foreign_keys(table, id, &fields, schema)?;
    let has_collations = fields.iter().any(|field| field.collation != 0);
    add_checks(&mut options, table, has_collations)?;
    let mut steps = vec![space_tuple(&SpaceTuple {
        id,
        owner,
        name,
        options: &options,
        format: &format(&fields),
        count: fields.len(),
    })];
    let made = add_keys(&mut steps, (table, primary, id), &fields, schema)?;
    add_foreign_indexes(&mut steps, (table, id), &fields, &made);
    if let Some(column) = &table.autoincrement {
        let field = fields.iter().position(|field| field.name == *column);
        let field = field.ok_or_else(|| error::no_column(column))?;
        steps.extend(autoincrement(id, owner, name, field as u32, schema));
    }
    Ok(Definitions { steps, count: 1 })
}

/// Adds the indexes of a table's keys.
fn add_keys(
    steps: &mut Vec<Definition>,
    (table, primary, id): (&CreateTable, &KeyDef, u32),
    fields: &[Named<'_>],
    schema: &mut dyn Schema,
) -> Result<Vec<Parts>, Error> {
    let name = &table.name[..];
    // Their numbers in names are those of the text.
    let before = table.keys_before_primary;
    let mut all = vec![(primary, "pk", before + 1)];
    all.extend(
        table
            .unique
            .iter()
            .enumerate()
            .map(|(at, key)| (key, "unique", at + 1 + usize::from(at >= before))),
    );
    let mut made: Vec<Parts> = Vec::new();
    let mut skipped = 0;
    for (key, prefix, place) in all {
        let parts = parts(key, (name, fields), schema)?;
        // The same columns again need no index of their own.
        if key.name.is_none() && made.contains(&parts) {
            skipped += 1;
            continue;
        }
        let number = made.len() as u32;
        let unnamed = format!("{prefix}_unnamed_{name}_{}", place - skipped);
        let index_name = key.name.clone().unwrap_or(unnamed);
        steps.push(index((id, number, &index_name), true, &parts));
        made.push(parts);
    }
    Ok(made)
}

/// Adds indexes over the columns of foreign keys that have none: by them it is found who names a row
/// that leaves.
fn add_foreign_indexes(
    steps: &mut Vec<Definition>,
    (table, id): (&CreateTable, u32),
    fields: &[Named<'_>],
    made: &[Parts],
) {
    let mut made = made.to_vec();
    for (at, key) in table.foreign.iter().enumerate() {
        let parts = foreign_parts(&key.columns, fields);
        if made.iter().any(|other| covers(other, &parts)) {
            continue;
        }
        let name = key.name.clone().unwrap_or_else(|| unnamed_foreign(&table.name, at));
        steps.push(index((id, made.len() as u32, &name), false, &parts));
        made.push(parts);
    }
}

/// The index that a table needs for a new foreign key, if it has none.
fn foreign_index(table: &Table, key: &ForeignDef) -> Option<Definition> {
    let parts = foreign_parts(&key.columns, &named_fields(table));
    let has = |index: &crate::catalog::Index, field: u32| {
        index.parts.iter().any(|part| part.field == Some(field))
    };
    let is_covered = table.indexes.iter().any(|index| {
        index.parts.len() == parts.len() && parts.iter().all(|part| has(index, part.0))
    });
    let id = table.indexes.iter().map(|index| index.id + 1).max().unwrap_or(0);
    let name = key.name.as_deref().unwrap_or_default();
    (!is_covered).then(|| index((table.id, id, name), false, &parts))
}

/// The columns of a foreign key, as parts of an index.
fn foreign_parts(columns: &[String], fields: &[Named<'_>]) -> Parts {
    let place = |name: &String| fields.iter().position(|field| field.name == *name);
    let places = columns.iter().filter_map(place);
    places
        .map(|at| (at as u32, fields[at].kind, fields[at].is_nullable, fields[at].collation))
        .collect()
}

/// Whether an index is over just the fields of another one's parts.
fn covers(index: &Parts, parts: &Parts) -> bool {
    let has = |field: u32| index.iter().any(|part| part.0 == field);
    index.len() == parts.len() && parts.iter().all(|part| has(part.0))
}

/// Checks that a default does not depend on a row.
fn check_default(table: &str, column: &ColumnDef) -> Result<(), Error> {
    let Some((default, _)) = &column.default else { return Ok(()) };
    let mut is_constant = true;
    default.each(&mut |part| {
        is_constant &= !matches!(
            part,
            Expr::Column(..) | Expr::Select(_) | Expr::Exists(_) | Expr::InSelect(..)
        );
    });
    match is_constant {
        true => Ok(()),
        false => {
            let why = format!("default value of column '{}' is not constant", column.name);
            Err(cannot_create(table, &why))
        }
    }
}

/// What a tuple of `_space` is made of.
struct SpaceTuple<'t> {
    id: u32,
    owner: u32,
    name: &'t str,
    options: &'t [u8],
    format: &'t [u8],
    count: usize,
}

fn space_tuple(of: &SpaceTuple<'_>) -> Definition {
    let mut tuple = Vec::new();
    write::array(&mut tuple, 7);
    write::uint(&mut tuple, of.id.into());
    write::uint(&mut tuple, of.owner.into());
    write::str(&mut tuple, of.name.as_bytes());
    write::str(&mut tuple, b"memtx");
    write::uint(&mut tuple, of.count as u64);
    tuple.extend_from_slice(of.options);
    tuple.extend_from_slice(of.format);
    Definition::Insert { space: SPACE, tuple, key: numbers(&[of.id]) }
}

fn autoincrement(
    space: u32,
    owner: u32,
    name: &str,
    field: u32,
    schema: &mut dyn Schema,
) -> [Definition; 2] {
    let id = schema.new_sequence_id();
    let mut sequence = Vec::new();
    write::array(&mut sequence, 9);
    write::uint(&mut sequence, id.into());
    write::uint(&mut sequence, owner.into());
    write::str(&mut sequence, name.as_bytes());
    for number in [1, 0, i64::MAX as u64, 1, 0] {
        write::uint(&mut sequence, number);
    }
    write::bool(&mut sequence, false);
    let mut filler = Vec::new();
    write::array(&mut filler, 5);
    write::uint(&mut filler, space.into());
    write::uint(&mut filler, id.into());
    write::bool(&mut filler, true);
    write::uint(&mut filler, field.into());
    write::str(&mut filler, b"");
    [
        Definition::Insert { space: SEQUENCE, tuple: sequence, key: numbers(&[id]) },
        Definition::Insert { space: SPACE_SEQUENCE, tuple: filler, key: numbers(&[space]) },
    ]
}

/// ALTER TABLE .. ADD COLUMN: a field of the format. Rows that there are do not have it, and show
/// null: so their number of fields is free from then on.
fn add_column(added: &CreateTable, schema: &mut dyn Schema) -> Result<Definitions, Error> {
    const COUNT: usize = 4;
    const FORMAT: usize = 6;
    let table = existing(schema, &added.name)?;
    if table.view.is_some() {
        let message = format!("Can't modify space '{}': space is a view", table.name);
        return Err(error::make(error::ALTER_SPACE, message));
    }
    let Some(column) = added.columns.first() else { return Ok(Definitions::default()) };
    if table.column(&column.name).is_some() {
        let message = format!("Space field '{}' is duplicate", column.name);
        return Err(error::make(ladon_space::ErrorCode(149), message));
    }
    let checks = option_of(&table.definition, "sql_checks");
    let collation = match &column.collation {
        Some(_) if checks.is_some() => {
            return Err(error::unsupported("CHECK in a table with COLLATE"));
        }
        Some(name) => collation(schema, name)?,
        None => 0,
    };
    check_default(&table.name, column)?;
    let fields = format(&[Named {
        name: &column.name,
        kind: column.kind,
        is_nullable: column.is_nullable.unwrap_or(true),
        collation,
        default: column.default.as_ref().map(|(_, text)| &text[..]),
    }]);
    let known = Fields::of(&table.definition).nth(FORMAT).unwrap_or(&[0x90]);
    let mut all = Vec::new();
    write::array(&mut all, Fields::of(known).count() as u32 + 1);
    for field in Fields::of(known).chain(Fields::of(&fields)) {
        all.extend_from_slice(field);
    }
    let mut count = Vec::new();
    let exact = if schema.is_empty(table.id) { table.columns.len() as u64 + 1 } else { 0 };
    write::uint(&mut count, exact);
    let tuple = with_field(&with_field(&table.definition, FORMAT, &all), COUNT, &count);
    Ok(one(Definition::Replace { space: SPACE, tuple }, 0))
}

/// Names, with a number behind those that were there before.
fn distinct(names: &[String]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for name in names {
        let mut found = name.clone();
        let mut number = 0;
        while all.contains(&found) {
            number += 1;
            let digits = found.trim_end_matches(|char: char| char.is_ascii_digit());
            let base = digits.strip_suffix('_').filter(|_| digits.len() < found.len());
            found = format!("{}_{number}", base.unwrap_or(&found));
        }
        all.push(found);
    }
    all
}

fn create_view(
    (name, if_not_exists): (&str, bool),
    columns: &[String],
    kinds: &[&'static str],
    text: &str,
    schema: &mut dyn Schema,
) -> Result<Definitions, Error> {
    if schema.table(name)?.is_some() {
        return if if_not_exists { Ok(Definitions::default()) } else { Err(exists(name)) };
    }
    let columns = distinct(columns);
    let fields: Vec<Named<'_>> = columns
        .iter()
        .zip(kinds)
        .map(|(name, kind)| Named {
            name,
            kind: FieldType::named(kind.as_bytes()).unwrap_or(FieldType::Any),
            is_nullable: true,
            collation: 0,
            default: None,
        })
        .collect();
    let mut options = Vec::new();
    write::map(&mut options, 2);
    self::text(&mut options, "sql", text);
    write::str(&mut options, b"view");
    write::bool(&mut options, true);
    let tuple = SpaceTuple {
        id: schema.new_space_id(),
        owner: schema.owner(),
        name,
        options: &options,
        format: &format(&fields),
        count: fields.len(),
    };
    Ok(one(space_tuple(&tuple), 1))
}

fn add_index(
    table: &Table,
    name: &str,
    key: &KeyDef,
    is_unique: bool,
    schema: &mut dyn Schema,
) -> Result<Definition, Error> {
    if table.view.is_some() {
        let message = format!("Can't modify space '{}': views can not be indexed", table.name);
        return Err(error::make(error::ALTER_SPACE, message));
    }
    let fields = named_fields(table);
    let mut parts = parts(key, (&table.name, &fields), schema).map_err(|error| {
        let is_no_field = error.code == error::NO_SUCH_FIELD_NAME;
        let known = |name: &str| fields.iter().any(|field| field.name == name);
        match key.columns.iter().find(|(name, _)| !known(name)) {
            Some((name, _)) if is_no_field => error::no_column(name),
            _ => error,
        }
    })?;
    // A column that is named twice orders nothing the second time.
    let all = parts.clone();
    let mut at = 0;
    parts.retain(|part| {
        at += 1;
        !all[..at - 1].contains(part)
    });
    let id = table.indexes.iter().map(|index| index.id + 1).max().unwrap_or(0);
    Ok(index((table.id, id, name), is_unique, &parts))
}

fn drop_index(
    name: &str,
    table: &str,
    if_exists: bool,
    schema: &mut dyn Schema,
) -> Result<Definitions, Error> {
    let Some(table) = schema.table(table)? else {
        return if if_exists { Ok(Definitions::default()) } else { Err(error::no_space(table)) };
    };
    let Some(index) = table.indexes.iter().find(|index| index.name == name) else {
        return match if_exists {
            true => Ok(Definitions::default()),
            false => Err(error::no_index(name, &table.name)),
        };
    };
    Ok(one(Definition::Delete { space: INDEX, key: numbers(&[table.id, index.id]) }, 1))
}

fn drop_space(
    name: &str,
    if_exists: bool,
    is_view: bool,
    schema: &mut dyn Schema,
) -> Result<Definitions, Error> {
    let Some(table) = schema.table(name)? else {
        return if if_exists { Ok(Definitions::default()) } else { Err(error::no_space(name)) };
    };
    if table.view.is_some() != is_view {
        let hint = if is_view { "use DROP TABLE" } else { "use DROP VIEW" };
        let message = format!("Can't drop space '{name}': {hint}");
        return Err(error::make(error::DROP_SPACE, message));
    }
    if schema.views_before_drop(table.id)?.iter().any(|view| view_tables::names(view, name)) {
        let message = format!("Can't drop space '{name}': other views depend on this space");
        return Err(error::make(error::DROP_SPACE, message));
    }
    let delete = |space: u32, key: &[u32]| Definition::Delete { space, key: numbers(key) };
    let mut steps = Vec::new();
    if table.autoincrement.is_some() {
        steps.push(delete(SPACE_SEQUENCE, &[table.id]));
        if let Some(sequence) = schema.sequence_of(table.id) {
            steps.push(delete(SEQUENCE_DATA, &[sequence]));
            steps.push(delete(SEQUENCE, &[sequence]));
        }
    }
    let mut ids: Vec<u32> = table.indexes.iter().map(|index| index.id).collect();
    ids.sort_unstable_by(|a, b| b.cmp(a));
    steps.extend(ids.iter().map(|id| delete(INDEX, &[table.id, *id])));
    steps.push(delete(TRUNCATE, &[table.id]));
    steps.push(delete(SPACE, &[table.id]));
    Ok(Definitions { steps, count: 1 })
}

fn rename(from: &str, to: &str, schema: &mut dyn Schema) -> Result<Definitions, Error> {
    const NAME: usize = 2;
    let table = existing(schema, from)?;
    if schema.table(to)?.is_some() {
        return Err(exists(to));
    }
    let mut name = Vec::new();
    write::str(&mut name, to.as_bytes());
    let tuple = with_field(&table.definition, NAME, &name);
    Ok(one(Definition::Replace { space: SPACE, tuple }, 0))
}
