//! Bringing a TOML file up to date.

use crate::draft::{Draft, default_value};
use crate::kind::{Kind, Value as Stored};
use crate::setting::Setting;
use crate::table::{Id, TABLE, lookup};
use crate::users::TOML_NAME;
use std::io;
use toml_edit::{Array, DocumentMut, Item, Value};

/// The file's text with the values of `draft`.
pub(super) fn rewritten(present: &str, draft: &Draft, users: &[String]) -> io::Result<String> {
    let mut document: DocumentMut = present.parse().map_err(|error| {
        io::Error::new(io::ErrorKind::InvalidData, format!("not TOML: {error}"))
    })?;
    let mut written: Vec<Id> = Vec::new();
    for (name, item) in document.iter_mut() {
        let Some(setting) = lookup(name.get()) else { continue };
        written.push(setting.id);
        if let Item::Value(present) = item {
            let mut next = value(setting, draft);
            *next.decor_mut() = present.decor().clone();
            *present = next;
        }
    }
    for setting in TABLE {
        let missing = !written.contains(&setting.id)
            && draft.entry(setting.id).value != default_value(setting);
        if missing && setting.part_of.is_none() {
            document.insert(setting.name, Item::Value(value(setting, draft)));
        }
    }
    match users {
        [] => drop(document.remove(TOML_NAME)),
        users => {
            document.insert(TOML_NAME, Item::Value(users.iter().collect::<Array>().into()));
        }
    }
    Ok(document.to_string())
}

/// A setting's value in the most natural TOML that reads back.
pub(crate) fn value(setting: &Setting, draft: &Draft) -> Value {
    let text = draft.text(setting);
    match (&draft.entry(setting.id).value, setting.kind) {
        (Stored::Number(number), Kind::Bool) => Value::from(*number != 0),
        (Stored::Number(number), Kind::Integer { .. } | Kind::Clamped { .. }) => {
            Value::from(*number)
        }
        (Stored::Number(bytes), Kind::Memory { .. }) => {
            Value::from(crate::memory_size::shorten(*bytes))
        }
        (_, Kind::Endpoints) => Value::from(text.split_ascii_whitespace().collect::<Array>()),
        _ => Value::from(text),
    }
}
