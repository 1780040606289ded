//! Functions, as tuples of `_func` describe them. Who may call one, and who owns it, takes effect
//! here, and that functional indexes call it.
//!
//! Source: the checks of Tarantool's `alter.cc` and `func_def.c`.

use super::catalog::Catalog;
use super::error::{cannot_create_function, unknown_language, wrong_function_options};
use super::users::{number, text};
use ladon_msgpack::{Value, read, read_map, skip};
use ladon_space::fields::{Fields, field};
use ladon_space::{
    BoxError, ErrorCode, FieldType, KeyFunction, check_identifier, function_of_index, make_function,
};
use ladon_system_spaces as system;
use std::sync::Arc;

/// The highest number of a function.
const ID_MAX: u32 = 32_000;
/// The numbers of fields of `_func`.
mod at {
    pub(super) const LANGUAGE: usize = 4;
    pub(super) const BODY: u32 = 5;
    pub(super) const ROUTINE: usize = 6;
    pub(super) const PARAMETERS: u32 = 7;
    pub(super) const RETURNS: usize = 8;
    pub(super) const AGGREGATE: usize = 9;
    pub(super) const DATA_ACCESS: usize = 10;
    pub(super) const IS_DETERMINISTIC: u32 = 11;
    pub(super) const IS_SANDBOXED: u32 = 12;
    pub(super) const IS_NULL_CALL: u32 = 13;
    pub(super) const EXPORTS: u32 = 14;
    pub(super) const OPTIONS: u32 = 15;
    /// From here on: when it was made.
    pub(super) const CREATED: usize = 17;
}

/// What is needed of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionDef {
    /// Its number.
    pub id: u32,
    /// The number of its owner, a user.
    pub owner: u32,
    /// Its name.
    pub name: String,
}

impl FunctionDef {
    /// Reads a tuple that was checked before.
    ///
    /// # Errors
    /// If the numbers are too large.
    pub fn of_checked(tuple: &[u8]) -> Result<FunctionDef, BoxError> {
        let (id, owner) = (number(tuple, 0)?, number(tuple, 1)?);
        Ok(FunctionDef { id, owner, name: text(tuple, 2) })
    }

    /// Reads a tuple that fits the format of `_func`.
    ///
    /// # Errors
    /// Tarantool's.
    pub fn from_tuple(tuple: &[u8]) -> Result<FunctionDef, BoxError> {
        let (name, language) = (text(tuple, 2), text(tuple, at::LANGUAGE));
        check_identifier(&name)?;
        if !matches!(&*language, "LUA" | "C" | "SQL_EXPR") {
            return Err(unknown_language(&language, &name));
        }
        let refused = |why: &str| Err(cannot_create_function(&name, why));
        if !text(tuple, at::ROUTINE).eq_ignore_ascii_case("function") {
            return refused("unsupported routine_type value");
        }
        if !text(tuple, at::DATA_ACCESS).eq_ignore_ascii_case("none") {
            return refused("unsupported sql_data_access value");
        }
        if !is_true(tuple, at::IS_NULL_CALL) {
            return refused("unsupported is_null_call value");
        }
        let (id, owner) = (number(tuple, 0)?, number(tuple, 1)?);
        if id > ID_MAX {
            return refused("function id is too big");
        }
        if FieldType::named(text(tuple, at::RETURNS).as_bytes()).is_none() {
            return refused("invalid returns value");
        }
        let is_exported = |word: &str| matches!(word, "LUA" | "SQL");
        if !words(tuple, at::EXPORTS).iter().all(|word| is_exported(word)) {
            return refused("invalid exports value");
        }
        let parameters = words(tuple, at::PARAMETERS);
        match &*text(tuple, at::AGGREGATE) {
            "none" => {}
            "group" if words(tuple, at::EXPORTS).iter().any(|word| word == "LUA") => {
                return refused("aggregate function can only be accessed in SQL");
            }
            "group" if parameters.is_empty() => {
                return refused("aggregate function must have at least one argument");
            }
            "group" => {}
            _ => return refused("invalid aggregate value"),
        }
        if !parameters.iter().all(|word| FieldType::named(word.as_bytes()).is_some()) {
            return refused("invalid argument type");
        }
        check_options(tuple)?;
        let has_body = field(tuple, at::BODY).is_some_and(|body| body != [0xa0]);
        let is_sandboxed = is_true(tuple, at::IS_SANDBOXED);
        if language == "C" && (has_body || is_sandboxed) {
            return refused("body and is_sandboxed options are not compatible with C language");
        }
        if language == "LUA" && is_sandboxed && !has_body {
            let why = "is_sandboxed option may be set only for a persistent Lua function \
                       (one with a non-empty body)";
            return refused(why);
        }
        Ok(FunctionDef { id, owner, name })
    }

    /// Whether two tuples are of the same function, whenever they were made.
    pub fn is_same(one: &[u8], other: &[u8]) -> bool {
        let [one, other] = [one, other].map(|tuple| Fields::of(tuple).take(at::CREATED));
        one.eq(other)
    }
}

/// A function that makes keys, with its number before it.
pub(crate) type Numbered = (u32, Arc<dyn KeyFunction>);

/// The function that a tuple of `_index` names, if it names one, and its number. `_func` is locked
/// meanwhile: who asks has locked nothing behind it.
///
/// # Errors
/// There is no such function, it may not make keys, or its text is none.
pub(crate) fn index_function(
    catalog: &Catalog,
    index: &[u8],
) -> Result<Option<Numbered>, BoxError> {
    let Some(id) = function_of_index(index)? else { return Ok(None) };
    let mut key = Vec::new();
    ladon_msgpack::write::array(&mut key, 1);
    ladon_msgpack::write::uint(&mut key, id.into());
    let found = catalog.lock(system::FUNC)?.space.get(0, &key)?;
    let Some(function) = found else {
        let message = format!("Function '{id}' does not exist");
        return Err(BoxError::new(ErrorCode::NO_SUCH_FUNCTION, message));
    };
    let tuple = function.bytes();
    let body = text(tuple, at::BODY as usize);
    let is_fit = text(tuple, at::LANGUAGE) == "LUA"
        && !body.is_empty()
        && is_true(tuple, at::IS_DETERMINISTIC)
        && is_true(tuple, at::IS_SANDBOXED);
    if !is_fit {
        let message = "Wrong index options (field 0): referenced function doesn't satisfy \
                       functional index function constraints";
        return Err(BoxError::new(ErrorCode::WRONG_INDEX_OPTIONS, message));
    }
    let made = make_function(&text(tuple, 2), &body, has_option(tuple, b"is_multikey"))?;
    Ok(Some((id, made)))
}

fn has_option(tuple: &[u8], wanted: &[u8]) -> bool {
    let Some(mut options) = field(tuple, at::OPTIONS) else { return false };
    for _ in 0..read_map(&mut options).unwrap_or(0) {
        let (name, value) = (read(&mut options), read(&mut options));
        if name == Ok(Value::Str(wanted)) {
            return value == Ok(Value::Bool(true));
        }
    }
    false
}

fn is_true(tuple: &[u8], at: u32) -> bool {
    field(tuple, at) == Some(&[0xc3])
}

/// The elements of a field that is an array; what is no string is an empty one.
fn words(tuple: &[u8], at: u32) -> Vec<String> {
    let elements = Fields::of(field(tuple, at).unwrap_or_default());
    let word = |mut bytes: &[u8]| match read(&mut bytes) {
        Ok(Value::Str(word)) => String::from_utf8_lossy(word).into_owned(),
        _ => String::new(),
    };
    elements.map(word).collect()
}

fn check_options(tuple: &[u8]) -> Result<(), BoxError> {
    let Some(mut options) = field(tuple, at::OPTIONS) else { return Ok(()) };
    for _ in 0..read_map(&mut options).unwrap_or(0) {
        let name = match read(&mut options)? {
            Value::Str(name) => String::from_utf8_lossy(name).into_owned(),
            _ => return Err(wrong_function_options("key must be a string")),
        };
        if !matches!(&*name, "is_multikey" | "takes_raw_args") {
            return Err(wrong_function_options(&format!("unexpected option '{name}'")));
        }
        let is_bool = matches!(options.first(), Some(0xc2 | 0xc3));
        skip(&mut options)?;
        if !is_bool {
            let why = format!("'{name}' must be boolean");
            return Err(wrong_function_options(&why));
        }
    }
    Ok(())
}
