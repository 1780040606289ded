//! Definitions of spaces and indexes: tuples of `_space` and `_index`.
//!
//! Source: Tarantool's documentation, "System spaces", and the checks of its `alter.cc`.

use crate::collation::Collation;
use crate::error::{BoxError, ErrorCode};
use crate::field_type::{FieldType, peek};
use crate::fields::Fields;
use crate::foreign_key::ForeignKey;
use crate::format::{Field, Format};
use crate::key_part::Part;
use crate::path::{Path, Step};
use crate::rtree::Distance;
use crate::rtree::bounds::{DIMENSIONS_DEFAULT, DIMENSIONS_MAX};
use ladon_msgpack::{self as msgpack, Value};
use std::collections::HashSet;

/// Longest name.
const NAME_BYTES_MAX: usize = 65_000;
/// Highest number of a space.
const SPACE_ID_MAX: u32 = i32::MAX as u32;
/// Indexes of a space.
const INDEXES_MAX: u32 = 128;
/// Fields that a format or a key may name.
const FIELDS_MAX: u32 = i16::MAX as u32;
/// Longest prefix of keys of a mounted space.
const PREFIX_BYTES_MAX: usize = 256;
/// Parts of a key.
const PARTS_MAX: usize = 255;

/// A space as a tuple of `_space` defines it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpaceDef {
    /// Its number.
    pub id: u32,
    /// The number of its owner, a user.
    pub owner: u32,
    /// Its name.
    pub name: String,
    /// The engine: `memtx`, or `sysview`.
    pub engine: String,
    /// How many fields its tuples have; 0 if any number will do.
    pub field_count: u32,
    /// The content is not kept over a restart.
    pub is_temporary: bool,
    /// Changes are not replicated.
    pub is_local: bool,
    /// Changes wait for a quorum.
    pub is_sync: bool,
    /// It is a view.
    pub is_view: bool,
    /// What tuples must be.
    pub format: Format,
    /// Which tuples its tuples name.
    pub foreign_keys: Vec<ForeignKey>,
    /// SQL's checks: names and texts.
    pub sql_checks: Vec<(String, String)>,
    /// The prefix of Redis' keys under which its tuples are hashes.
    pub resp_prefix: Option<Box<[u8]>>,
}

/// The kind of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexKind {
    /// In order.
    Tree,
    /// By hash.
    Hash,
    /// By bits of a number or a string.
    Bitset,
    /// By boxes in space.
    Rtree,
}

impl IndexKind {
    /// Tarantool's name.
    pub fn name(self) -> &'static str {
        match self {
            IndexKind::Tree => "TREE",
            IndexKind::Hash => "HASH",
            IndexKind::Bitset => "BITSET",
            IndexKind::Rtree => "RTREE",
        }
    }
}

/// An index as a tuple of `_index` defines it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexDef {
    /// The space's number.
    pub space_id: u32,
    /// Its number in the space; the primary index has 0.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: IndexKind,
    /// Whether no two tuples have one key.
    pub is_unique: bool,
    /// What it orders by.
    pub parts: Vec<Part>,
    /// How many dimensions an RTREE index is to have.
    pub dimension: i64,
    /// Which distance `NEIGHBOR` orders by.
    pub distance: Distance,
    /// The number of the function that makes the keys, if one does. The parts are those of its keys.
    pub func: Option<u32>,
}

impl SpaceDef {
    /// A space without a format, for tests and for system spaces.
    pub fn named(id: u32, name: &str) -> SpaceDef {
        SpaceDef {
            id,
            owner: 1,
            name: name.to_owned(),
            engine: "memtx".to_owned(),
            field_count: 0,
            is_temporary: false,
            is_local: false,
            is_sync: false,
            is_view: false,
            format: Format::default(),
            foreign_keys: Vec::new(),
            sql_checks: Vec::new(),
            resp_prefix: None,
        }
    }

    /// The definition that a tuple of `_space` is:
    /// `[id, owner, name, engine, field_count, {options}, [format]]`.
    ///
    /// # Errors
    /// Tarantool's.
    pub fn from_tuple(tuple: &[u8]) -> Result<SpaceDef, BoxError> {
        let mut fields = Fields::of(tuple);
        let id = number(fields.next(), 1)?;
        let owner = number(fields.next(), 2)?;
        let name = text(fields.next(), 3)?;
        let engine = text(fields.next(), 4)?;
        let field_count = number(fields.next(), 5)?;
        let failed = |why: &str| {
            let message = format!("Failed to create space '{name}': {why}");
            BoxError::new(ErrorCode::CREATE_SPACE, message)
        };
        if id > SPACE_ID_MAX {
            return Err(failed("space id is too big"));
        }
        if id == 0 {
            return Err(failed("space id 0 is reserved"));
        }
        check_identifier(&name)?;
        let mut def = SpaceDef { owner, engine, field_count, ..SpaceDef::named(id, &name) };
        if let Some(options) = fields.next() {
            def.read_options(options)?;
        }
        if let Some(format) = fields.next() {
            def.format = read_format(format, &mut def.foreign_keys)?;
        }
        if field_count != 0 && (field_count as usize) < def.format.fields.len() {
            return Err(failed("exact_field_count must be either 0 or >= formatted field count"));
        }
        if !matches!(&def.engine[..], "memtx" | "sysview") {
            let message = format!("Space engine '{}' does not exist", def.engine);
            return Err(BoxError::new(ErrorCode::NO_SUCH_ENGINE, message));
        }
        Ok(def)
    }

    /// As [`SpaceDef::from_tuple`], of a space that is there already: messages say so.
    ///
    /// # Errors
    /// Tarantool's.
    pub fn from_new_tuple(tuple: &[u8]) -> Result<SpaceDef, BoxError> {
        SpaceDef::from_tuple(tuple).map_err(|error| {
            match error.message.strip_prefix("Failed to create space") {
                Some(rest) if error.code == ErrorCode::CREATE_SPACE => {
                    let message = format!("Can't modify space{rest}");
                    BoxError::new(ErrorCode::ALTER_SPACE, message)
                }
                _ => error,
            }
        })
    }

    fn read_options(&mut self, options: &[u8]) -> Result<(), BoxError> {
        let wrong = |why: String| {
            let message = format!("Wrong space options (field 5): {why}");
            BoxError::new(ErrorCode::WRONG_SPACE_OPTIONS, message)
        };
        for (name, value) in pairs(options)? {
            let flag = || match peek(value) {
                Some(Value::Bool(value)) => Ok(value),
                _ => Err(wrong(format!("'{name}' must be boolean"))),
            };
            match &name[..] {
                "temporary" => self.is_temporary = flag()?,
                "is_sync" => self.is_sync = flag()?,
                "view" => self.is_view = flag()?,
                "defer_deletes" => drop(flag()?),
                "group_id" => match peek(value) {
                    Some(Value::Uint(group)) => self.is_local = group == 1,
                    _ => return Err(wrong("'group_id' must be unsigned".to_owned())),
                },
                "type" => match peek(value) {
                    Some(Value::Str(b"normal")) => {}
                    Some(Value::Str(b"temporary")) => self.is_temporary = true,
                    _ => return Err(wrong("unknown space type".to_owned())),
                },
                "sql" | "sql_triggers" => {}
                "sql_checks" => {
                    for (name, text) in pairs(value)? {
                        let Some(Value::Str(text)) = peek(text) else {
                            return Err(wrong("'sql_checks' must be a map of strings".to_owned()));
                        };
                        let text = String::from_utf8_lossy(text).into_owned();
                        self.sql_checks.push((name, text));
                    }
                }
                "foreign_key" => {
                    self.foreign_keys = ForeignKey::read_all(value, None).map_err(wrong)?;
                }
                "resp_prefix" => match peek(value) {
                    Some(Value::Str(prefix)) if (1..=PREFIX_BYTES_MAX).contains(&prefix.len()) => {
                        self.resp_prefix = Some(prefix.into());
                    }
                    Some(Value::Nil) => {}
                    _ => {
                        let why = format!(
                            "'resp_prefix' must be a string of 1 to {PREFIX_BYTES_MAX} bytes"
                        );
                        return Err(wrong(why));
                    }
                },
                "checks" | "constraint" | "upgrade" => {
                    return Err(BoxError::unsupported(
                        "Ladon",
                        &format!("the space option '{name}'"),
                    ));
                }
                _ => return Err(wrong(format!("unexpected option '{name}'"))),
            }
        }
        Ok(())
    }
}

fn read_format(mut bytes: &[u8], keys: &mut Vec<ForeignKey>) -> Result<Format, BoxError> {
    // Connectors write an empty map for an empty array.
    if let Some(Value::Map(0)) = peek(bytes) {
        return Ok(Format::default());
    }
    let count =
        msgpack::read_array(&mut bytes).map_err(|_| wrong_system_field(7, "array", peek(bytes)))?;
    let mut format = Format::default();
    // A format may have a million fields.
    let mut names = HashSet::new();
    for at in 1..=count {
        let field = read_field(at, msgpack::take(&mut bytes)?, keys)?;
        if !names.insert(field.name.clone()) {
            let message = format!("Space field '{}' is duplicate", field.name);
            return Err(BoxError::new(ErrorCode::SPACE_FIELD_IS_DUPLICATE, message));
        }
        format.fields.push(field);
    }
    Ok(format)
}

fn read_field(at: u32, bytes: &[u8], keys: &mut Vec<ForeignKey>) -> Result<Field, BoxError> {
    let wrong = |why: &str| {
        let message = format!("Wrong space format field {at}: {why}");
        BoxError::new(ErrorCode::WRONG_SPACE_FORMAT, message)
    };
    let (name, kind) = (String::new(), FieldType::Any);
    let mut field = Field { name, kind, is_nullable: false, default: None };
    for (name, value) in pairs(bytes).map_err(|_| wrong("expected a map"))? {
        match (&name[..], peek(value)) {
            ("name", Some(Value::Str(name))) => {
                field.name = String::from_utf8(name.to_vec())
                    .map_err(|_| wrong("field name is not valid UTF-8"))?;
            }
            ("name", _) => return Err(wrong("field name must be a string")),
            ("type", Some(Value::Str(name))) => {
                field.kind = FieldType::named(name).ok_or_else(|| wrong("unknown field type"))?;
            }
            ("type", _) => return Err(wrong("field type must be a string")),
            ("is_nullable", Some(Value::Bool(value))) => field.is_nullable = value,
            ("is_nullable", _) => return Err(wrong("'is_nullable' must be boolean")),
            ("nullable_action", Some(Value::Str(action))) => field.is_nullable = action == b"none",
            ("default", Some(Value::Nil)) => field.default = None,
            ("default", _) => field.default = Some(value.into()),
            ("foreign_key", _) => {
                let read = ForeignKey::read_all(value, Some(at - 1));
                keys.extend(read.map_err(|why| wrong(&why))?);
            }
            ("constraint" | "default_func" | "compression", _) => {
                return Err(BoxError::unsupported("Ladon", &format!("the field option '{name}'")));
            }
            // Tarantool lets a format carry what its users please.
            _ => {}
        }
    }
    if field.name.is_empty() {
        return Err(wrong("field name is not specified"));
    }
    check_identifier(&field.name)?;
    check_default(at, &field)?;
    Ok(field)
}

/// Checks that a field may have the value that it has by default.
fn check_default(at: u32, field: &Field) -> Result<(), BoxError> {
    let Some(value) = field.default.as_deref().and_then(peek) else { return Ok(()) };
    if field.kind.accepts(&value) {
        return Ok(());
    }
    let (expected, got) = (field.kind.name(), value.kind().name());
    let message = format!(
        "Type of the default value does not match tuple field {at} ({}) type: expected {expected}, got {got}",
        field.name
    );
    Err(BoxError::new(ErrorCode::DEFAULT_VALUE_TYPE, message))
}

impl IndexDef {
    /// The definition that a tuple of `_index` is: `[space_id, id, name, type, {options},
    /// [parts]]`, where a part is `[field, type]` or `{field=, type=, is_nullable=, ...}`.
    ///
    /// # Errors
    /// Tarantool's.
    pub fn from_tuple(tuple: &[u8], space: &SpaceDef) -> Result<IndexDef, BoxError> {
        let mut fields = Fields::of(tuple);
        let space_id = number(fields.next(), 1)?;
        let id = number(fields.next(), 2)?;
        let name = text(fields.next(), 3)?;
        let kind = read_kind(&text(fields.next(), 4)?, &name, space)?;
        let options = IndexOptions::read(fields.next().unwrap_or(&[0x80]))?;
        check_identifier(&name)?;
        let parts = read_parts(fields.next().unwrap_or(&[0x90]))?;
        let IndexOptions { is_unique, dimension, distance, func } = options;
        let def =
            IndexDef { space_id, id, name, kind, is_unique, parts, dimension, distance, func };
        def.check(space)?;
        Ok(def)
    }

    /// The parts that are fields of tuples: none of a functional index.
    pub fn field_parts(&self) -> &[Part] {
        if self.func.is_some() { &[] } else { &self.parts }
    }

    /// How many dimensions an RTREE index has.
    pub(crate) fn dimensions(&self) -> u32 {
        u32::try_from(self.dimension).unwrap_or(u32::MAX)
    }

    /// Checks what Tarantool checks only when it makes the index: that an RTREE index has a number
    /// of dimensions that it may have.
    pub(crate) fn check_dimensions(&self, space: &str) -> Result<(), BoxError> {
        let dimension = self.dimension;
        if self.kind != IndexKind::Rtree || (1..=DIMENSIONS_MAX).contains(&self.dimensions()) {
            return Ok(());
        }
        let why = format!("dimension ({dimension}): must belong to range [1, {DIMENSIONS_MAX}]");
        Err(self.no_feature(space, &why))
    }

    /// Whether the index would be the same but for its name.
    pub fn has_same_order(&self, other: &IndexDef) -> bool {
        let of = |def: &IndexDef| (def.kind, def.is_unique, def.dimension, def.distance, def.func);
        of(self) == of(other) && self.parts == other.parts
    }

    pub(crate) fn no_feature(&self, space: &str, what: &str) -> BoxError {
        let (name, kind) = (&self.name, self.kind.name());
        let message =
            format!("Index '{name}' ({kind}) of space '{space}' (memtx) does not support {what}");
        BoxError::new(ErrorCode::UNSUPPORTED_INDEX_FEATURE, message)
    }

    /// Checks what does not depend on other indexes.
    ///
    /// # Errors
    /// Tarantool's.
    pub fn check(&self, space: &SpaceDef) -> Result<(), BoxError> {
        let wrong = |why: &str| Err(BoxError::modify_index(&self.name, &space.name, why));
        if self.id >= INDEXES_MAX {
            return wrong("index id too big");
        }
        if self.parts.is_empty() {
            return wrong("part count must be positive");
        }
        if self.parts.len() > PARTS_MAX {
            return wrong("too many key parts");
        }
        if self.id == 0 && !self.is_unique {
            return wrong("primary key must be unique");
        }
        if self.func.is_some() {
            self.check_functional(space)?;
        }
        let is_multikey = self.parts.iter().any(|part| part.array().is_some());
        if self.id == 0 && is_multikey {
            return wrong("primary key cannot be multikey");
        }
        let is_nullable = self.parts.iter().any(|part| part.is_nullable);
        if self.id == 0 && is_nullable {
            let message =
                format!("Primary index of space '{}' can not contain nullable parts", space.name);
            return Err(BoxError::new(ErrorCode::NULLABLE_PRIMARY, message));
        }
        for (at, part) in self.parts.iter().enumerate() {
            if part.field > FIELDS_MAX {
                return wrong("field no is too big");
            }
            if self.parts[..at].iter().any(|other| other.is_same_place(part)) {
                return wrong("same key part is indexed twice");
            }
        }
        if is_nullable && self.kind != IndexKind::Tree {
            return Err(BoxError::unsupported(self.kind.name(), "nullable parts"));
        }
        let first = self.parts[0].kind;
        let why = match self.kind {
            IndexKind::Hash if !self.is_unique => "HASH index must be unique",
            IndexKind::Hash if is_multikey => "HASH index cannot be multikey",
            IndexKind::Rtree if self.parts.len() > 1 => "RTREE index key can not be multipart",
            IndexKind::Rtree if self.is_unique => "RTREE index can not be unique",
            IndexKind::Rtree if first != FieldType::Array => "RTREE index field type must be ARRAY",
            IndexKind::Rtree if is_multikey => "RTREE index cannot be multikey",
            IndexKind::Bitset if self.parts.len() > 1 => "BITSET index key can not be multipart",
            IndexKind::Bitset if self.is_unique => "BITSET can not be unique",
            IndexKind::Bitset if !matches!(first, FieldType::Unsigned | FieldType::String) => {
                "BITSET index field type must be NUM or STR"
            }
            IndexKind::Bitset if is_multikey => "BITSET index cannot be multikey",
            IndexKind::Rtree => return Ok(()),
            _ => match self.parts.iter().find(|part| !part.kind.is_indexable()) {
                None => return Ok(()),
                Some(part) => &format!("field type '{}' is not supported", part.kind.name()),
            },
        };
        wrong(why)
    }
}

impl IndexDef {
    /// Checks what only functional indexes may not be.
    fn check_functional(&self, space: &SpaceDef) -> Result<(), BoxError> {
        let wrong = |why: &str| Err(BoxError::modify_index(&self.name, &space.name, why));
        if self.id == 0 {
            return wrong("primary key can not use a function");
        }
        if self.kind != IndexKind::Tree {
            return wrong(&format!("{} index can not use a function", self.kind.name()));
        }
        if self.parts.iter().any(|part| !part.path.is_empty()) {
            return Err(BoxError::unsupported("Functional index", "json paths"));
        }
        if !self.parts.iter().zip(0..).all(|(part, at)| part.field == at) {
            let message = "Wrong functional index definition: key part numbers must be sequential \
                           and first part number must be 1";
            return Err(BoxError::new(ErrorCode::FUNC_INDEX_PARTS, message));
        }
        Ok(())
    }
}

fn read_kind(kind: &str, name: &str, space: &SpaceDef) -> Result<IndexKind, BoxError> {
    match &kind.to_ascii_lowercase()[..] {
        "tree" => Ok(IndexKind::Tree),
        "hash" => Ok(IndexKind::Hash),
        "bitset" => Ok(IndexKind::Bitset),
        "rtree" => Ok(IndexKind::Rtree),
        _ => {
            let message = format!(
                "Unsupported index type supplied for index '{name}' in space '{}'",
                space.name
            );
            Err(BoxError::new(ErrorCode::INDEX_TYPE, message))
        }
    }
}

/// The options of an index.
struct IndexOptions {
    is_unique: bool,
    dimension: i64,
    distance: Distance,
    func: Option<u32>,
}

impl IndexOptions {
    fn read(options: &[u8]) -> Result<IndexOptions, BoxError> {
        let wrong = |why: &str| {
            let message = format!("Wrong index options (field 4): {why}");
            BoxError::new(ErrorCode::WRONG_INDEX_OPTIONS, message)
        };
        let dimension = DIMENSIONS_DEFAULT.into();
        let distance = Distance::default();
        let mut read = IndexOptions { is_unique: true, dimension, distance, func: None };
        for (name, value) in pairs(options)? {
            match (&name[..], peek(value)) {
                ("unique", Some(Value::Bool(value))) => read.is_unique = value,
                ("unique", _) => return Err(wrong("'unique' must be boolean")),
                ("dimension", Some(Value::Uint(value))) => {
                    read.dimension = i64::try_from(value).unwrap_or(i64::MAX);
                }
                ("dimension", Some(Value::Int(value))) => read.dimension = value,
                ("dimension", _) => return Err(wrong("'dimension' must be integer")),
                ("distance", Some(Value::Str(name))) => {
                    read.distance = match &name.to_ascii_lowercase()[..] {
                        b"euclid" => Distance::Euclid,
                        b"manhattan" => Distance::Manhattan,
                        _ => {
                            let why = "distance must be either 'euclid' or 'manhattan'";
                            return Err(wrong(why));
                        }
                    };
                }
                ("distance", _) => return Err(wrong("'distance' must be enum")),
                ("func", Some(Value::Uint(0))) => {}
                ("func", Some(Value::Uint(id))) if u32::try_from(id).is_ok() => {
                    read.func = u32::try_from(id).ok();
                }
                ("func", _) => return Err(wrong("'func' must be unsigned")),
                // Hints and what vinyl needs change nothing that is visible.
                (
                    "hint"
                    | "range_size"
                    | "page_size"
                    | "bloom_fpr"
                    | "lsn"
                    | "run_count_per_level"
                    | "run_size_ratio"
                    | "stat"
                    | "sql"
                    | "covers"
                    | "layout",
                    _,
                ) => {}
                _ => return Err(wrong(&format!("unexpected option '{name}'"))),
            }
        }
        Ok(read)
    }
}

fn read_parts(mut bytes: &[u8]) -> Result<Vec<Part>, BoxError> {
    let count =
        msgpack::read_array(&mut bytes).map_err(|_| wrong_parts("expected a non-empty array"))?;
    // Tarantool before 1.6.6 had arrays. The first part says which it is.
    let are_arrays = matches!(peek(bytes), Some(Value::Array(_)));
    let mut parts = Vec::new();
    for at in 1..=count {
        let part = msgpack::take(&mut bytes)?;
        parts.push(match (are_arrays, peek(part)) {
            (true, Some(Value::Array(_))) => read_part_array(part)?,
            (false, Some(Value::Map(_))) => read_part_map(at, part)?,
            (true, _) => return Err(wrong_parts("expected an array")),
            (false, _) => {
                return Err(wrong_part(at, "index part is expected to be a map".to_owned()));
            }
        });
        if parts.len() > PARTS_MAX {
            break;
        }
    }
    let array = parts.iter().find_map(Part::array);
    let is_of_another = |part: &Part| part.array().is_some_and(|other| Some(other) != array);
    if let Some(at) = parts.iter().position(is_of_another) {
        return Err(wrong_part(at as u32 + 1, "incompatable multikey index path".to_owned()));
    }
    Ok(parts)
}

/// A part whose field may be nil only if the part says so, whatever the format says. (Where `box`
/// makes an index, it copies what the format says into the part.)
fn new_part(field: u32, kind: FieldType) -> Part {
    Part {
        field,
        path: Path::default(),
        kind,
        is_nullable: false,
        exclude_null: false,
        collation: Collation::None,
    }
}

fn read_part_array(part: &[u8]) -> Result<Part, BoxError> {
    let mut values = Fields::of(part);
    let Some(Value::Uint(field)) = values.next().and_then(peek) else {
        return Err(wrong_parts("field id must be an integer"));
    };
    let field = u32::try_from(field).map_err(|_| wrong_parts("field id must be an integer"))?;
    let kind = match values.next().map(peek) {
        Some(Some(Value::Str(name))) => FieldType::named(name),
        Some(_) => return Err(wrong_parts("field type must be a string")),
        None => return Err(wrong_parts("a field type is missing")),
    };
    Ok(new_part(field, kind.ok_or_else(|| wrong_parts("unknown field type"))?))
}

fn wrong_part(at: u32, why: String) -> BoxError {
    let message = format!("Wrong index options (field {at}): {why}");
    BoxError::new(ErrorCode::WRONG_INDEX_OPTIONS, message)
}

fn read_part_map(at: u32, part: &[u8]) -> Result<Part, BoxError> {
    let wrong = |why: String| wrong_part(at, why);
    let (mut field, mut kind, mut is_nullable) = (None, None, None);
    let (mut collation, mut exclude_null) = (Collation::None, false);
    let mut path = Path::default();
    for (name, value) in pairs(part)? {
        match (&name[..], peek(value)) {
            ("field", Some(Value::Uint(value))) => field = u32::try_from(value).ok(),
            ("type", Some(Value::Str(name))) => kind = FieldType::named(name),
            ("is_nullable", Some(Value::Bool(value))) => is_nullable = Some(value),
            ("nullable_action", Some(Value::Str(action))) => is_nullable = Some(action == b"none"),
            ("exclude_null", Some(Value::Bool(value))) => exclude_null = value,
            ("collation", Some(Value::Uint(id))) => {
                collation = Collation::of_id(id).ok_or_else(|| match Collation::is_known(id) {
                    true => {
                        let what = format!("the collation number {id} in an index");
                        BoxError::unsupported("Ladon", &what)
                    }
                    false => wrong("collation was not found by ID".to_owned()),
                })?;
            }
            ("path", Some(Value::Str(text))) => {
                let parsed = std::str::from_utf8(text).ok().and_then(Path::parse);
                path = parsed.ok_or_else(|| wrong("invalid path".to_owned()))?;
            }
            ("path", _) => return Err(wrong("'path' must be string".to_owned())),
            ("sort_order", Some(Value::Str(b"undef" | b"asc"))) => {}
            ("sort_order", _) => {
                return Err(BoxError::unsupported("Ladon", "descending index parts"));
            }
            ("field" | "type" | "is_nullable" | "exclude_null" | "collation", _) => {
                return Err(wrong(format!("'{name}' has a wrong type")));
            }
            _ => return Err(wrong(format!("unexpected option '{name}'"))),
        }
    }
    let field = field.ok_or_else(|| wrong("index part: field id is missing".to_owned()))?;
    let kind = kind.ok_or_else(|| wrong("index part: unknown field type".to_owned()))?;
    let mut part = new_part(field, kind);
    part.is_nullable = is_nullable.unwrap_or(part.is_nullable || exclude_null);
    (part.path, part.collation, part.exclude_null) = (path, collation, exclude_null);
    check_part(&part).map_err(|why| wrong(why.to_owned()))?;
    if part.path.behind_each().is_some_and(|steps| steps.contains(&Step::Each)) {
        let why = "no more than one array index placeholder [*] is allowed in JSON path";
        return Err(wrong(why.to_owned()));
    }
    Ok(part)
}

/// Checks what does not depend on other parts.
fn check_part(part: &Part) -> Result<(), &'static str> {
    let has_collation = part.collation != Collation::None;
    if has_collation && !matches!(part.kind, FieldType::String | FieldType::Scalar) {
        return Err("collation is reasonable only for string and scalar parts");
    }
    if part.exclude_null && !part.is_nullable {
        return Err("index part: exclude_null=true and is_nullable=false are incompatible");
    }
    Ok(())
}

fn wrong_parts(why: &str) -> BoxError {
    let message =
        format!("Wrong index parts: {why}; expected field1 id (number), field1 type (string), ...");
    BoxError::new(ErrorCode::WRONG_INDEX_PARTS, message)
}

/// Checks a name of a space, an index or a user.
///
/// # Errors
/// `IDENTIFIER`, if it is empty, too long or has characters that are not printable.
pub fn check_identifier(name: &str) -> Result<(), BoxError> {
    let is_printable = !name.is_empty() && !name.chars().any(char::is_control);
    if is_printable && name.len() <= NAME_BYTES_MAX {
        return Ok(());
    }
    let message =
        format!("Invalid identifier '{name}' (expected printable symbols only or it is too long)");
    Err(BoxError::new(ErrorCode::IDENTIFIER, message))
}

/// The pairs of a map whose keys are strings. An empty array is an empty map to Lua.
pub(crate) fn pairs(mut bytes: &[u8]) -> Result<Vec<(String, &[u8])>, BoxError> {
    let count = match msgpack::read(&mut bytes)? {
        Value::Map(count) => count,
        Value::Array(0) | Value::Nil => 0,
        other => return Err(wrong_system_field(6, "map", Some(other))),
    };
    let mut pairs = Vec::new();
    for _ in 0..count {
        let name = String::from_utf8_lossy(msgpack::read_str(&mut bytes)?).into_owned();
        pairs.push((name, msgpack::take(&mut bytes)?));
    }
    Ok(pairs)
}

fn number(field: Option<&[u8]>, at: u32) -> Result<u32, BoxError> {
    let value = field.and_then(peek);
    match value {
        Some(Value::Uint(value)) if u32::try_from(value).is_ok() => Ok(value as u32),
        other => Err(wrong_system_field(at, "unsigned", other)),
    }
}

fn text(field: Option<&[u8]>, at: u32) -> Result<String, BoxError> {
    match field.and_then(peek) {
        Some(Value::Str(value)) => match std::str::from_utf8(value) {
            Ok(value) => Ok(value.to_owned()),
            Err(_) => check_identifier("").map(|()| String::new()),
        },
        other => Err(wrong_system_field(at, "string", other)),
    }
}

fn wrong_system_field(at: u32, expected: &str, found: Option<Value<'_>>) -> BoxError {
    match found {
        Some(found) => BoxError::new(
            ErrorCode::FIELD_TYPE,
            format!(
                "Tuple field {at} type does not match one required by operation: \
                 expected {expected}, got {}",
                found.kind().name()
            ),
        ),
        None => BoxError::new(
            ErrorCode::FIELD_MISSING,
            format!("Tuple field {at} required by space format is missing"),
        ),
    }
}
