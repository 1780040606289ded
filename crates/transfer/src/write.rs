//! A value of the engine to a file or a payload, element by element.

use crate::stream_write;
use ladon_engine::types::hash::HashValue;
use ladon_engine::types::string;
use ladon_engine::{Collection, Object, ValueRef};
use ladon_rdb::{Fault, Head, Sink, ValueWriter, Version, payload as rdb_payload};

/// The oldest version that has all of the value: then the oldest servers take its payload. All
/// versions have the same plain collections; a stream keeps its counters since Redis 7.0.
pub fn oldest_version(value: ValueRef<'_>) -> Version {
    match value {
        ValueRef::Object(Object::Hash(hash)) if hash.next_expiry() != 0 => Version::Redis12,
        ValueRef::Object(Object::Stream(stream)) => match stream_write::has_active_times(stream) {
            true => Version::Redis11,
            false => Version::Redis10,
        },
        _ => Version::Redis9,
    }
}

/// What the value begins with.
///
/// # Errors
/// A value that no version of RDB has.
pub fn head_of(value: ValueRef<'_>) -> Result<Head, Fault> {
    let ValueRef::Object(object) = value else { return Ok(Head::String) };
    let count = object.len() as u64;
    Ok(match object {
        Object::String(_) => Head::String,
        Object::List(_) => Head::List(count),
        Object::Set(set) if set.next_expiry() != 0 => {
            return Err(Fault::Unsupported(
                "no version of RDB has sets whose members expire".to_owned(),
            ));
        }
        Object::Set(_) => Head::Set(count),
        Object::SortedSet(_) => Head::SortedSet(count),
        Object::Hash(hash) => Head::Hash { fields: count, least_expiry_ms: least_expiry(hash) },
        Object::Stream(stream) => stream_write::head_of(stream)?,
    })
}

fn least_expiry(hash: &HashValue) -> Option<u64> {
    if hash.next_expiry() == 0 {
        return None;
    }
    hash.fields().map(|field| field.expire_at).filter(|&at| at != 0).min()
}

/// Writes the value behind its head, which [`head_of`] gave for the same value.
///
/// # Errors
/// If what is written cannot go out.
pub fn write<S: Sink>(value: ValueRef<'_>, mut out: ValueWriter<'_, S>) -> Result<(), Fault> {
    let ValueRef::Object(object) = value else {
        let bytes = string::bytes(value).unwrap_or_default();
        out.string(&bytes)?;
        return out.end();
    };
    // The engine's walks do not end early; after an error, nothing more is written.
    let mut result = Ok(());
    match object {
        Object::String(bytes) => result = out.string(bytes),
        Object::List(list) => list.for_each(|element| {
            if result.is_ok() {
                result = element.with_bytes(|bytes| out.element(bytes));
            }
        }),
        Object::Set(set) => {
            let mut members = set.members();
            result = members.try_for_each(|member| member.with_bytes(|bytes| out.element(bytes)));
        }
        Object::SortedSet(set) => set.for_each_while(0..set.len(), |member, score| {
            result = out.scored(member, score);
            result.is_ok()
        }),
        Object::Hash(hash) => {
            result = hash.fields().try_for_each(|field| {
                let at = Some(field.expire_at).filter(|&at| at != 0);
                out.field(field.name, field.value, at)
            });
        }
        Object::Stream(stream) => result = stream_write::write(stream, &mut out),
    }
    result?;
    out.end()
}

/// The value as a payload of `DUMP`.
///
/// # Errors
/// A value that no version of RDB has.
pub fn payload(value: ValueRef<'_>) -> Result<Vec<u8>, Fault> {
    let version = oldest_version(value);
    let mut out = Vec::new();
    write(value, rdb_payload::begin_value(&mut out, head_of(value)?, version)?)?;
    rdb_payload::seal(&mut out, version);
    Ok(out)
}
