//! Tables as statements see them, and who knows them.

use crate::error::Error;
use ladon_msgpack::{self as msgpack, Value as Packed};
use ladon_space::{Collation, FieldType, IndexKind, Space};
use std::sync::Arc;

/// A column of a table or of a result.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its name, as it is looked up.
    pub name: String,
    /// The type of its values.
    pub kind: FieldType,
    /// Whether it may be null.
    pub is_nullable: bool,
    /// The number of its collation; 0 for none.
    pub collation: u32,
    /// The text of its default.
    pub default: Option<String>,
}

/// A part of an index.
#[derive(Clone, Copy, Debug)]
pub struct IndexPart {
    /// The field's number; none if it is inside of a field.
    pub field: Option<u32>,
    /// The type of its values.
    pub kind: FieldType,
    /// The number of its collation.
    pub collation: u32,
    /// Whether tuples without it are left out.
    pub excludes_null: bool,
}

/// An index of a table.
#[derive(Clone, Debug)]
pub struct Index {
    /// Its number in the space.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: IndexKind,
    /// Whether no two rows have one key.
    pub is_unique: bool,
    /// What it orders by.
    pub parts: Vec<IndexPart>,
}

/// A trigger of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trigger {
    /// Its name.
    pub name: String,
    /// The text that created it.
    pub text: String,
}

/// A space with a format, or a view.
#[derive(Clone, Debug)]
pub struct Table {
    /// The space's number.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// Its columns: the fields of its format.
    pub columns: Vec<Column>,
    /// Its indexes.
    pub indexes: Vec<Index>,
    /// The field that a sequence fills in.
    pub autoincrement: Option<u32>,
    /// The text of the view that it is.
    pub view: Option<String>,
    /// Its triggers, in the order in which they were created.
    pub triggers: Vec<Trigger>,
    /// The tuple of `_space` that defines it.
    pub definition: Vec<u8>,
}

impl Table {
    /// The table that a space is; `definition` is its tuple of `_space`, in which columns have what
    /// the space itself does not need: collations, texts of defaults, a view's text.
    pub fn of(space: &Space, definition: &[u8], autoincrement: Option<u32>) -> Table {
        let def = space.def();
        let plain = |field: &ladon_space::Field| Column {
            name: field.name.clone(),
            kind: field.kind,
            is_nullable: field.is_nullable,
            collation: 0,
            default: None,
        };
        let mut table = Table {
            id: def.id,
            name: def.name.clone(),
            columns: def.format.fields.iter().map(plain).collect(),
            indexes: space.indexes().map(index_of).collect(),
            autoincrement,
            view: None,
            triggers: Vec::new(),
            definition: definition.to_vec(),
        };
        table.read_definition(definition);
        table
    }

    fn read_definition(&mut self, definition: &[u8]) {
        const OPTIONS: usize = 5;
        let fields: Vec<&[u8]> = ladon_space::fields::Fields::of(definition).collect();
        if let Some(options) = fields.get(OPTIONS) {
            each_pair(options, |name, value| match (name, msgpack::read(&mut { value })) {
                (b"sql", Ok(Packed::Str(text))) => {
                    self.view = Some(String::from_utf8_lossy(text).into_owned());
                }
                (b"sql_triggers", _) => self.triggers = texts(value),
                _ => {}
            });
        }
        let format = fields.get(OPTIONS + 1).copied().unwrap_or(&[0x90]);
        for (column, field) in self.columns.iter_mut().zip(ladon_space::fields::Fields::of(format))
        {
            each_pair(field, |name, value| match (name, msgpack::read(&mut { value })) {
                (b"collation", Ok(Packed::Uint(id))) => {
                    column.collation = u32::try_from(id).unwrap_or(0);
                }
                (b"sql_default", Ok(Packed::Str(text))) => {
                    column.default = Some(String::from_utf8_lossy(text).into_owned());
                }
                _ => {}
            });
        }
    }

    /// The place of a column.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }
}

/// The text of the view that a space's tuple of `_space` defines.
pub fn view_of(definition: &[u8]) -> Option<String> {
    const OPTIONS: usize = 5;
    let mut text = None;
    each_pair(ladon_space::fields::Fields::of(definition).nth(OPTIONS)?, |name, value| {
        if let (b"sql", Ok(view)) = (name, msgpack::read_str(&mut { value })) {
            text = Some(String::from_utf8_lossy(view).into_owned());
        }
    });
    text
}

/// The triggers that a space's tuple of `_space` has.
pub fn triggers_of(definition: &[u8]) -> Vec<Trigger> {
    const OPTIONS: usize = 5;
    let mut triggers = Vec::new();
    if let Some(options) = ladon_space::fields::Fields::of(definition).nth(OPTIONS) {
        each_pair(options, |name, value| {
            if name == b"sql_triggers" {
                triggers = texts(value);
            }
        });
    }
    triggers
}

/// The triggers of a map of names and texts.
fn texts(map: &[u8]) -> Vec<Trigger> {
    let mut triggers = Vec::new();
    each_pair(map, |name, value| {
        if let Ok(text) = msgpack::read_str(&mut { value }) {
            let [name, text] = [name, text].map(|it| String::from_utf8_lossy(it).into_owned());
            triggers.push(Trigger { name, text });
        }
    });
    triggers
}

/// A foreign key as the option of a space has it.
pub(crate) struct ForeignKeyOption {
    /// The space whose rows it names; 0 is its own.
    pub(crate) space: u32,
    pub(crate) on_delete: String,
    pub(crate) on_update: String,
    /// The numbers of its fields and of those that they name.
    pub(crate) fields: Vec<(usize, usize)>,
}

/// The foreign keys that a space's tuple of `_space` has; of those that name fields by their names,
/// the keys alone.
pub(crate) fn foreign_keys_of(definition: &[u8]) -> Vec<ForeignKeyOption> {
    const OPTIONS: usize = 5;
    let number = |value: &[u8]| msgpack::read_uint(&mut { value }).unwrap_or(0) as usize;
    let text = |value: &[u8]| {
        let text = msgpack::read_str(&mut { value }).unwrap_or_default();
        String::from_utf8_lossy(text).into_owned()
    };
    let mut all = Vec::new();
    let read = |definition: &[u8]| {
        let none = || "no_action".to_owned();
        let (on_delete, on_update) = (none(), none());
        let mut key = ForeignKeyOption { space: 0, on_delete, on_update, fields: Vec::new() };
        each_pair(definition, |name, value| match name {
            b"space" => key.space = number(value) as u32,
            b"on_delete" => key.on_delete = text(value),
            b"on_update" => key.on_update = text(value),
            b"field" => {
                let mut rest = value;
                let Ok(Packed::Map(count)) = msgpack::read(&mut rest) else { return };
                for _ in 0..count {
                    let pair = [(); 2].map(|()| msgpack::read_uint(&mut rest));
                    let [Ok(local), Ok(foreign)] = pair else { return };
                    key.fields.push((local as usize, foreign as usize));
                }
            }
            _ => {}
        });
        key
    };
    if let Some(options) = ladon_space::fields::Fields::of(definition).nth(OPTIONS) {
        each_pair(options, |name, value| {
            if name == b"foreign_key" {
                each_pair(value, |_, definition| all.push(read(definition)));
            }
        });
    }
    all
}

/// The pairs of a map whose keys are strings.
fn each_pair<'a>(mut map: &'a [u8], mut visit: impl FnMut(&'a [u8], &'a [u8])) {
    let Ok(Packed::Map(count)) = msgpack::read(&mut map) else { return };
    for _ in 0..count {
        let (Ok(name), Ok(value)) = (msgpack::read_str(&mut map), msgpack::take(&mut map)) else {
            return;
        };
        visit(name, value);
    }
}

fn index_of(index: &ladon_space::Index) -> Index {
    let def = index.def();
    let part = |part: &ladon_space::Part| IndexPart {
        field: (part.path.is_empty() && def.func.is_none()).then_some(part.field),
        kind: part.kind,
        collation: collation_id(part.collation),
        excludes_null: part.exclude_null,
    };
    Index {
        id: def.id,
        name: def.name.clone(),
        kind: def.kind,
        is_unique: def.is_unique,
        parts: def.parts.iter().map(part).collect(),
    }
}

/// The number of a collation in `_collation`.
fn collation_id(collation: Collation) -> u32 {
    match collation {
        Collation::None => 0,
        Collation::Binary => 3,
        Collation::Unicode(unicode) => unicode.id(),
    }
}

/// Who knows the tables.
pub trait Catalog {
    /// The table or view with this name. Whoever asks may read it, or gets an error.
    ///
    /// # Errors
    /// If the name's space may not be seen.
    fn table(&mut self, name: &str) -> Result<Option<Arc<Table>>, Error>;

    /// The table of a space. Whoever asks may read it, or gets an error.
    ///
    /// # Errors
    /// If the space may not be seen.
    fn table_of_space(&mut self, id: u32) -> Result<Option<Arc<Table>>, Error>;

    /// The name of the table or view that has the trigger with this name.
    ///
    /// # Errors
    /// If definitions cannot be read.
    fn trigger_table(&mut self, trigger: &str) -> Result<Option<String>, Error>;

    /// The number of the collation with this name.
    fn collation(&mut self, name: &str) -> Option<u32>;
}
