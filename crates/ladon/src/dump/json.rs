//! For programs: one JSON object per line. Bytes that are not UTF-8 are `{"hex": "..."}`.
//!
//! | `type` | fields |
//! |---|---|
//! | `checkpoint` | `file`, `begin`, `node`, `created_ms` |
//! | `block` | `file`, `offset`, `db`, `hash_first`, `hash_last`, `lsn`, `keys`; its keys follow |
//! | `key` | `file`, `lsn`, and those of a `put` below |
//! | `metadata` | `file`, `offset`, `lsn`, `bytes` |
//! | `segment` | `file`, `base`, `durable`, `node`, `created_ms` |
//! | `changes` | `file`, `offset`, `lsn`, `time_ms`, `node`, `changes` (a list, see below) |
//! | `sync-mark`, `clean-end` | `file`, `offset`, `lsn`, `time_ms`, `node`, `durable` |
//!
//! A change has `op` (`put`, `update`, `delete`, `expire`, `flushdb`, `swapdb`), `db`, and
//! depending on its kind `key`, `kind`, `value` (a string, or a list of members), `expire_at_ms`
//! (0: never). Those of libraries (`library`, `delete-library`, `flush-libraries`) have `name`,
//! `code` and `functions` instead.

use super::Format;
use ladon_engine::types::dump_value::DumpValue;
use ladon_log::checkpoint::format::{CheckpointHeader, PartKind};
use ladon_log::checkpoint::reader::Part;
use ladon_log::frame::FrameKind;
use ladon_log::reader::Frame;
use ladon_log::segment::SegmentHeader;
use ladon_record::{Change, ChangeError, Changes, FunctionFacts, LibraryBody};
use serde_json::{Value, json};
use std::io::{self, Write};

pub struct Json;

impl Format for Json {
    fn checkpoint(
        &self,
        out: &mut dyn Write,
        file: &str,
        header: &CheckpointHeader,
    ) -> io::Result<()> {
        let line = json!({
            "type": "checkpoint", "file": file, "begin": header.begin.0, "node": header.node,
            "created_ms": header.created_ms,
        });
        writeln!(out, "{line}")
    }

    fn part(&self, out: &mut dyn Write, file: &str, part: &Part) -> io::Result<()> {
        let (header, lsn) = (&part.header, part.header.lsn.0);
        if part.kind == PartKind::Meta {
            let line = json!({
                "type": "metadata", "file": file, "offset": part.offset, "lsn": lsn,
                "bytes": bytes(&part.payload),
            });
            return writeln!(out, "{line}");
        }
        let line = json!({
            "type": "block", "file": file, "offset": part.offset, "db": header.db,
            "hash_first": format!("{:016x}", header.hash_first),
            "hash_last": format!("{:016x}", header.hash_last),
            "lsn": lsn, "keys": header.keys,
        });
        writeln!(out, "{line}")?;
        for change in Changes::new(&part.payload) {
            let mut line = one_change(&change);
            line["type"] = "key".into();
            line["file"] = file.into();
            line["lsn"] = lsn.into();
            writeln!(out, "{line}")?;
        }
        Ok(())
    }

    fn segment(&self, out: &mut dyn Write, file: &str, header: &SegmentHeader) -> io::Result<()> {
        let line = json!({
            "type": "segment", "file": file, "base": header.base.0, "durable": header.durable.0,
            "node": header.node, "created_ms": header.created_ms,
        });
        writeln!(out, "{line}")
    }

    fn frame(&self, out: &mut dyn Write, file: &str, frame: &Frame<'_>) -> io::Result<()> {
        let header = &frame.header;
        let mut line = json!({
            "type": frame.kind.name(), "file": file, "offset": frame.offset, "lsn": header.lsn.0,
            "time_ms": header.unix_ms, "node": header.node,
        });
        match frame.kind {
            FrameKind::Changes => {
                let changes = Changes::new(frame.payload).map(|change| one_change(&change));
                line["changes"] = changes.collect();
            }
            FrameKind::SyncMark | FrameKind::CleanEnd => {
                line["durable"] = frame.durable_mark().map(|lsn| lsn.0).into();
            }
            FrameKind::Entry => line["payload"] = bytes(frame.payload),
        }
        writeln!(out, "{line}")
    }
}

fn one_change(change: &Result<Change<'_>, ChangeError>) -> Value {
    match *change {
        Ok(Change::Put { db, key, expire_at, kind, body }) => {
            let value =
                DumpValue::body(kind, body).map_or_else(|| bytes(body), |body| shown(&body));
            json!({
                "op": "put", "db": db, "key": bytes(key), "kind": kind.name(), "value": value,
                "expire_at_ms": expire_at,
            })
        }
        Ok(Change::PutItem { db, key, expire_at, marks, body }) => json!({
            "op": "put", "db": db, "key": bytes(key), "kind": "item", "marks": marks,
            "value": bytes(body), "expire_at_ms": expire_at,
        }),
        Ok(Change::Update { db, key, kind, op }) => {
            let mut line = json!({
                "op": "update", "db": db, "key": bytes(key), "kind": kind.name(),
            });
            match DumpValue::op(kind, op) {
                Some(DumpValue::Record(parts)) => {
                    for (label, part) in parts {
                        line[label] = shown(&part);
                    }
                }
                Some(other) => line["change"] = shown(&other),
                None => line["unknown"] = bytes(op),
            }
            line
        }
        Ok(Change::Delete { db, key }) => json!({ "op": "delete", "db": db, "key": bytes(key) }),
        Ok(Change::Expire { db, key, expire_at }) => {
            json!({ "op": "expire", "db": db, "key": bytes(key), "expire_at_ms": expire_at })
        }
        Ok(Change::FlushDb { db }) => json!({ "op": "flushdb", "db": db }),
        Ok(Change::SwapDb { first, second }) => {
            json!({ "op": "swapdb", "db": first, "other": second })
        }
        Ok(Change::Library { name, body }) => match LibraryBody::decode(body) {
            Some(library) => json!({
                "op": "library", "name": bytes(name), "code": bytes(&library.code),
                "functions": library.functions.iter().map(function).collect::<Value>(),
            }),
            None => json!({ "op": "library", "name": bytes(name), "unknown": bytes(body) }),
        },
        Ok(Change::DeleteLibrary { name }) => {
            json!({ "op": "delete-library", "name": bytes(name) })
        }
        Ok(Change::FlushLibraries) => json!({ "op": "flush-libraries" }),
        Ok(Change::SpacePut { space, tuple }) => {
            json!({ "op": "space-put", "space": space, "tuple": bytes(tuple) })
        }
        Ok(Change::SpaceDelete { space, key }) => {
            json!({ "op": "space-delete", "space": space, "key": bytes(key) })
        }
        Err(error) => json!({ "error": error.to_string() }),
    }
}

fn function(function: &FunctionFacts) -> Value {
    let FunctionFacts { name, description, flags } = function;
    json!({
        "name": bytes(name), "description": description.as_deref().map(bytes), "flags": flags,
    })
}

fn shown(what: &DumpValue<'_>) -> Value {
    match what {
        DumpValue::Bytes(raw) => bytes(raw),
        DumpValue::Text(text) => text.as_str().into(),
        DumpValue::Int(int) => (*int).into(),
        // JSON has no infinities.
        DumpValue::Float(float) if float.is_infinite() => float.to_string().into(),
        DumpValue::Float(float) => (*float).into(),
        DumpValue::List(all) => all.iter().map(shown).collect(),
        DumpValue::Record(parts) => {
            parts.iter().map(|(label, part)| ((*label).to_owned(), shown(part))).collect()
        }
    }
}

fn bytes(raw: &[u8]) -> Value {
    match str::from_utf8(raw) {
        Ok(text) => text.into(),
        Err(_) => {
            let hex: String = raw.iter().map(|byte| format!("{byte:02x}")).collect();
            json!({ "hex": hex })
        }
    }
}
