//! `_session_settings`: a space of each session, which can be read and updated.
//!
//! Most settings are SQL's: each keeps its value, and `sql_full_metadata` and
//! `sql_recursive_triggers` are obeyed. `error_marshaling_enabled` is whether errors are values in
//! answers; a client that knows them by its features (ID) need not set it.
//! Tarantool's `graceful_shutdown_required` is not here, because a feature of the protocol decides
//! that.
//!
//! Source: Tarantool's documentation, "System space `_session_settings`".

use crate::error;
use crate::session::Session;
use crate::statements::Running;
use ladon_engine::Privilege;
use ladon_msgpack::{self as msgpack, Kind, Value, write};
use ladon_space::{
    BoxError, ErrorCode, Field, FieldType, IndexDef, Space, SpaceDef, Statement, Written,
};
use ladon_system_spaces as system;
use std::sync::atomic::Ordering::Relaxed;

const NAME: &str = "_session_settings";
const OWNER: u32 = 1;
const FULL_METADATA: &str = "sql_full_metadata";
const RECURSIVE_TRIGGERS: &str = "sql_recursive_triggers";
const ENGINE_SETTING: &str = "sql_default_engine";
const ERROR_MARSHALING: &str = "error_marshaling_enabled";

/// The settings that are true or false, by name, with their values in 2.11.
const SWITCHES: [(&str, bool); 9] = [
    (ERROR_MARSHALING, false),
    ("sql_full_column_names", false),
    (FULL_METADATA, false),
    ("sql_parser_debug", false),
    (RECURSIVE_TRIGGERS, true),
    ("sql_reverse_unordered_selects", false),
    ("sql_select_debug", false),
    ("sql_seq_scan", true),
    ("sql_vdbe_debug", false),
];

/// The number of the space with this name, if it is this one.
pub(crate) fn named(name: &str) -> Option<u32> {
    (name == NAME).then_some(system::SESSION_SETTINGS)
}

/// The settings of a new session.
fn defaults() -> Result<Space, BoxError> {
    let field =
        |name: &str, kind| Field { name: name.to_owned(), kind, is_nullable: false, default: None };
    let mut def = SpaceDef::named(system::SESSION_SETTINGS, NAME);
    def.owner = OWNER;
    def.field_count = 2;
    def.format.fields = vec![field("name", FieldType::String), field("value", FieldType::Any)];
    "service".clone_into(&mut def.engine);
    let mut index = Vec::new();
    write::array(&mut index, 6);
    write::uint(&mut index, system::SESSION_SETTINGS.into());
    write::uint(&mut index, 0);
    ["primary", "tree"].into_iter().for_each(|text| write::str(&mut index, text.as_bytes()));
    write::map(&mut index, 1);
    write::str(&mut index, b"unique");
    write::bool(&mut index, true);
    write::array(&mut index, 1);
    write::array(&mut index, 2);
    write::uint(&mut index, 0);
    write::str(&mut index, b"string");
    let mut space = Space::new(def);
    let index = IndexDef::from_tuple(&index, space.def())?;
    space.create_index(index)?;
    let mut tuple = Vec::new();
    for (name, value) in SWITCHES {
        space.insert(&switch(name, value))?;
    }
    tuple.clear();
    write::array(&mut tuple, 2);
    [ENGINE_SETTING, "memtx"].into_iter().for_each(|text| write::str(&mut tuple, text.as_bytes()));
    space.insert(&tuple)?;
    Ok(space)
}

/// A setting that is true or false, as a tuple.
fn switch(name: &str, value: bool) -> Vec<u8> {
    let mut tuple = Vec::new();
    write::array(&mut tuple, 2);
    write::str(&mut tuple, name.as_bytes());
    write::bool(&mut tuple, value);
    tuple
}

impl Session {
    /// Whether metadata of SQL is to tell all that is known of a column.
    pub(crate) fn has_full_metadata(&self) -> bool {
        self.is_on(FULL_METADATA).unwrap_or(false)
    }

    /// Whether a trigger that runs is not fired again.
    pub(crate) fn runs_triggers_once(&self) -> bool {
        self.is_on(RECURSIVE_TRIGGERS) == Some(false)
    }

    /// A setting that is true or false, if the session has looked at its settings.
    fn is_on(&self, name: &str) -> Option<bool> {
        let settings = self.settings.as_ref()?;
        let mut key = vec![0x91];
        write::str(&mut key, name.as_bytes());
        let tuple = settings.get(0, &key).ok().flatten()?;
        Some(tuple.field(1) == Some(&[0xc3]))
    }
}

impl Running<'_, '_> {
    fn settings(&mut self, right: Privilege) -> Result<&mut Space, BoxError> {
        self.rights()?.check_space((system::SESSION_SETTINGS, NAME, OWNER), right)?;
        if self.session.settings.is_none() {
            self.session.settings = Some(Box::new(defaults()?));
        }
        // A program may have changed it.
        let marshals = self.session.info().marshals_errors.load(Relaxed);
        match &mut self.session.settings {
            Some(settings) => {
                settings.replace(&switch(ERROR_MARSHALING, marshals))?;
                Ok(settings)
            }
            None => unreachable!("they were just made"),
        }
    }

    /// Reads the session's settings.
    pub(crate) fn read_settings<T>(
        &mut self,
        read: impl FnOnce(&Space) -> Result<T, BoxError>,
    ) -> Result<T, BoxError> {
        read(self.settings(Privilege::READ)?)
    }

    /// Runs a statement on the session's settings: only an update of a value.
    pub(crate) fn write_settings(&mut self, statement: Statement<'_>) -> Result<Written, BoxError> {
        let settings = self.settings(Privilege::WRITE)?;
        let refused = match statement {
            Statement::Update { .. } => None,
            Statement::Insert(_) | Statement::Replace(_) => Some("replace()"),
            Statement::Upsert { .. } => Some("upsert()"),
            Statement::Delete { .. } => Some("delete()"),
        };
        if let Some(what) = refused {
            let message = format!("{NAME} space does not support {what}");
            return Err(BoxError::new(ErrorCode::UNSUPPORTED, message));
        }
        let written = statement.run(settings)?;
        let checked = written.new.as_ref().map_or(Ok(()), |new| check(new.bytes()));
        if checked.is_err() {
            settings.undo(&written);
        }
        checked?;
        let marshals = self.session.is_on(ERROR_MARSHALING) == Some(true);
        self.session.info().marshals_errors.store(marshals, Relaxed);
        Ok(written)
    }
}

/// Checks a setting's new value.
fn check(tuple: &[u8]) -> Result<(), BoxError> {
    let mut rest = tuple;
    msgpack::read_array(&mut rest)?;
    let name = String::from_utf8_lossy(msgpack::read_str(&mut rest)?);
    let value = msgpack::read(&mut rest)?;
    let (kind, expected) = match &*name {
        ENGINE_SETTING => (Kind::Str, FieldType::String),
        _ => (Kind::Bool, FieldType::Boolean),
    };
    match value {
        _ if value.kind() != kind => Err(error::invalid_setting(&name, expected.name())),
        Value::Str(engine) if engine != b"memtx" && engine != b"vinyl" => {
            Err(error::no_such_engine(&String::from_utf8_lossy(engine)))
        }
        _ => Ok(()),
    }
}
