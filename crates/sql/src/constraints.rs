//! CHECK and FOREIGN KEY: options of a space in its tuple of `_space`.

use crate::ast::{CreateTable, Expr, ForeignAction, ForeignDef, KeyDef, Unary};
use crate::catalog::Table;
use crate::checks;
use crate::convert::assign;
use crate::definition::{
    Definition, Definitions, Named, Schema, existing, map_pairs, numbers, one, option_of, text,
    with_option,
};
use crate::error::{self, Error};
use crate::operators::negate;
use crate::parser::statement::expression;
use crate::value::Value;
use ladon_msgpack::{self as msgpack, Value as Packed, write};
use ladon_space::FieldType;
use ladon_system_spaces::{INDEX, SPACE};
use std::sync::Arc;

/// The option with a table's checks.
const CHECKS: &str = "sql_checks";
/// `ER_CREATE_FK_CONSTRAINT`, by its number in 2.6.0.
const FOREIGN_KEY_REFUSED: ladon_space::ErrorCode = ladon_space::ErrorCode(167);
/// The option with a table's foreign keys.
const FOREIGN_KEYS: &str = "foreign_key";

/// The options of a space with foreign keys, as 2.11 has them.
pub(crate) fn foreign_keys(
    table: &CreateTable,
    id: u32,
    fields: &[Named<'_>],
    schema: &mut dyn Schema,
) -> Result<Vec<u8>, Error> {
    let mut options = Vec::new();
    let count = u32::from(!table.foreign.is_empty()) + u32::from(!table.checks.is_empty());
    write::map(&mut options, count);
    if table.foreign.is_empty() {
        return Ok(options);
    }
    write::str(&mut options, b"foreign_key");
    write::map(&mut options, table.foreign.len() as u32);
    for (at, key) in table.foreign.iter().enumerate() {
        let name = key.name.clone().unwrap_or_else(|| unnamed_foreign(&table.name, at));
        foreign_key(&mut options, (&name, key), (table, id, fields), schema)?;
    }
    Ok(options)
}

/// The name of a table's foreign key that was given none.
pub(crate) fn unnamed_foreign(table: &str, at: usize) -> String {
    format!("fk_unnamed_{table}_{}", at + 1)
}

fn foreign_key(
    options: &mut Vec<u8>,
    (name, key): (&str, &ForeignDef),
    (table, _, fields): (&CreateTable, u32, &[Named<'_>]),
    schema: &mut dyn Schema,
) -> Result<(), Error> {
    let refused = |why: &str| {
        let message = format!("Failed to create foreign key constraint '{name}': {why}");
        error::make(FOREIGN_KEY_REFUSED, message)
    };
    let is_own = key.parent == table.name;
    let parent = if is_own { None } else { Some(existing(schema, &key.parent)?) };
    let primary = |parent: &Option<Arc<Table>>| -> Vec<String> {
        match parent {
            None => {
                table.primary.iter().flat_map(|it| &it.columns).map(|it| it.0.clone()).collect()
            }
            Some(parent) => {
                let parts = parent.indexes.first().map(|it| &it.parts[..]).unwrap_or_default();
                let fields = parts.iter().filter_map(|part| part.field);
                fields
                    .filter_map(|it| Some(parent.columns.get(it as usize)?.name.clone()))
                    .collect()
            }
        }
    };
    let foreign = match key.parent_columns.is_empty() {
        true => primary(&parent),
        false => key.parent_columns.clone(),
    };
    if foreign.len() != key.columns.len() {
        return Err(refused(
            "number of columns in foreign key does not match the number of columns in the primary \
             index of referenced table",
        ));
    }
    let unknown =
        |column: &str| refused(&format!("unknown column {column} in foreign key definition"));
    begin_key(options, (name, key), fields)?;
    write::str(options, b"space");
    write::uint(options, parent.as_ref().map_or(0, |parent| parent.id).into());
    write::str(options, b"field");
    write::map(options, foreign.len() as u32);
    for (local, foreign) in key.columns.iter().zip(&foreign) {
        let own = |name: &str| fields.iter().position(|field| field.name == name);
        let local_at = own(local).ok_or_else(|| unknown(local))?;
        let found = match &parent {
            None => own(foreign),
            Some(parent) => parent.column(foreign),
        };
        let foreign_at = found.ok_or_else(|| {
            refused(&format!("foreign key refers to nonexistent field {foreign}"))
        })?;
        let (kind, collation) = match &parent {
            None => (fields[foreign_at].kind, fields[foreign_at].collation),
            Some(parent) => (parent.columns[foreign_at].kind, parent.columns[foreign_at].collation),
        };
        if !holds(kind, fields[local_at].kind) {
            return Err(refused("field type mismatch"));
        }
        if collation != fields[local_at].collation {
            return Err(refused("field collation mismatch"));
        }
        write::uint(options, local_at as u64);
        write::uint(options, foreign_at as u64);
    }
    Ok(())
}

/// The name and the actions of a foreign key, whose map is to have two pairs more.
fn begin_key(
    options: &mut Vec<u8>,
    (name, key): (&str, &ForeignDef),
    fields: &[Named<'_>],
) -> Result<(), Error> {
    let actions = [("on_delete", key.on_delete), ("on_update", key.on_update)];
    let sets_default = actions.iter().any(|(_, action)| *action == ForeignAction::SetDefault);
    let actions = actions.into_iter().filter(|(_, action)| *action != ForeignAction::None);
    write::str(options, name.as_bytes());
    write::map(options, 2 + u32::from(sets_default) + actions.clone().count() as u32);
    if sets_default {
        write::str(options, b"default");
        write::array(options, key.columns.len() as u32);
        for column in &key.columns {
            let field = fields.iter().find(|field| field.name == column);
            // One that there is not is refused where all are looked at.
            field.map_or(Ok(Value::Null), default_of)?.pack(options);
        }
    }
    actions.for_each(|(option, action)| text(options, option, action.name()));
    Ok(())
}

/// The value that SET DEFAULT sets in a column: null, if it has no default.
///
/// # Errors
/// If its default is no literal, or not of its type.
fn default_of(field: &Named<'_>) -> Result<Value, Error> {
    let Some(text) = field.default else { return Ok(Value::Null) };
    let value = match expression(text)? {
        Expr::Literal(value) => value,
        Expr::Unary(Unary::Minus, inner) => match *inner {
            Expr::Literal(value) => negate(&value)?,
            _ => return Err(error::unsupported("SET DEFAULT of a default that is computed")),
        },
        _ => return Err(error::unsupported("SET DEFAULT of a default that is computed")),
    };
    assign(value, field.kind)
}

/// Whether all values of a type are of another one as well.
fn holds(wide: FieldType, narrow: FieldType) -> bool {
    use FieldType::{Any, Array, Decimal, Double, Integer, Map, Number, Scalar, Unsigned};
    match (wide, narrow) {
        _ if wide == narrow => true,
        (Any, _) | (Number, Integer | Unsigned | Double | Decimal) | (Integer, Unsigned) => true,
        (Scalar, Any | Array | Map) => false,
        (Scalar, _) => true,
        _ => false,
    }
}

/// Appends the option of a table's checks to its others, if it has some.
pub(crate) fn add_checks(
    options: &mut Vec<u8>,
    table: &CreateTable,
    has_collations: bool,
) -> Result<(), Error> {
    if table.checks.is_empty() {
        return Ok(());
    }
    if has_collations {
        return Err(error::unsupported("CHECK in a table with COLLATE"));
    }
    write::str(options, CHECKS.as_bytes());
    write::map(options, table.checks.len() as u32);
    let mut names = Vec::new();
    for (at, (name, check)) in table.checks.iter().enumerate() {
        let unnamed = format!("ck_unnamed_{}_{}", table.name, at + 1);
        let name = name.clone().unwrap_or(unnamed);
        if names.contains(&name) {
            return Err(checks::exists(&name, &table.name));
        }
        text(options, &name, check);
        names.push(name);
    }
    Ok(())
}

/// ALTER TABLE .. ADD CONSTRAINT .. CHECK.
pub(crate) fn add_check(table: &Table, (name, check): (&str, &str)) -> Result<Definitions, Error> {
    if table.columns.iter().any(|column| column.collation != 0) {
        return Err(error::unsupported("CHECK in a table with COLLATE"));
    }
    let option = option_of(&table.definition, CHECKS);
    let all = option.map(map_pairs).unwrap_or_default();
    if all.iter().any(|(known, _)| is_named(known, name)) {
        return Err(checks::exists(name, &table.name));
    }
    let mut value = pairs_packed(&all, 1);
    text(&mut value, name, check);
    Ok(with_space_option(table, CHECKS, Some(&value)))
}

/// ALTER TABLE .. ADD CONSTRAINT .. FOREIGN KEY.
pub(crate) fn add_foreign(
    table: &Table,
    foreign: &ForeignDef,
    schema: &mut dyn Schema,
) -> Result<Definitions, Error> {
    let name = foreign.name.clone().unwrap_or_default();
    let option = option_of(&table.definition, FOREIGN_KEYS);
    let all = option.map(map_pairs).unwrap_or_default();
    if all.iter().any(|(known, _)| is_named(known, &name)) {
        let message =
            format!("FOREIGN KEY constraint '{name}' already exists in space '{}'", table.name);
        return Err(error::make(ladon_space::ErrorCode(170), message));
    }
    let fields = named_fields(table);
    let primary = table.indexes.first().map(|index| KeyDef {
        name: None,
        columns: index
            .parts
            .iter()
            .filter_map(|part| Some((table.columns.get(part.field? as usize)?.name.clone(), None)))
            .collect(),
    });
    let own = CreateTable { name: table.name.clone(), primary, ..CreateTable::default() };
    let mut value = pairs_packed(&all, 1);
    foreign_key(&mut value, (&name, foreign), (&own, table.id, &fields), schema)?;
    Ok(with_space_option(table, FOREIGN_KEYS, Some(&value)))
}

fn with_space_option(table: &Table, option: &str, value: Option<&[u8]>) -> Definitions {
    let tuple = with_option(&table.definition, option, value);
    one(Definition::Replace { space: SPACE, tuple }, 1)
}

/// A map of pairs and of so many that are to follow.
fn pairs_packed(pairs: &[(&[u8], &[u8])], more: usize) -> Vec<u8> {
    let mut out = Vec::new();
    write::map(&mut out, (pairs.len() + more) as u32);
    for (name, value) in pairs {
        out.extend_from_slice(name);
        out.extend_from_slice(value);
    }
    out
}

fn is_named(bytes: &[u8], name: &str) -> bool {
    matches!(msgpack::read(&mut { bytes }), Ok(Packed::Str(it)) if it == name.as_bytes())
}

pub(crate) fn named_fields(table: &Table) -> Vec<Named<'_>> {
    let named =
        |column: &'_ crate::catalog::Column| (column.kind, column.is_nullable, column.collation);
    table
        .columns
        .iter()
        .map(|column| {
            let (kind, is_nullable, collation) = named(column);
            let default = column.default.as_deref();
            Named { name: &column.name, kind, is_nullable, collation, default }
        })
        .collect()
}

pub(crate) fn drop_constraint(
    table: &str,
    name: &str,
    schema: &mut dyn Schema,
) -> Result<Definitions, Error> {
    let table = existing(schema, table)?;
    for option in [FOREIGN_KEYS, CHECKS] {
        let all = option_of(&table.definition, option).map(map_pairs).unwrap_or_default();
        let mut left = all.clone();
        left.retain(|(known, _)| !is_named(known, name));
        if left.len() < all.len() {
            let value = pairs_packed(&left, 0);
            let value = (!left.is_empty()).then_some(&value[..]);
            return Ok(with_space_option(&table, option, value));
        }
    }
    if let Some(index) = table.indexes.iter().find(|index| index.name == name) {
        let key = numbers(&[table.id, index.id]);
        return Ok(one(Definition::Delete { space: INDEX, key }, 1));
    }
    let message = format!("Constraint '{name}' does not exist in space '{}'", table.name);
    Err(error::make(ladon_space::ErrorCode(169), message))
}
