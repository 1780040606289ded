//! For people: a line a change, under a line for the record or block that holds it.

use super::Format;
use crate::readable::{Quoted, Time};
use ladon_engine::types::dump_value::DumpValue;
use ladon_log::checkpoint::format::{CheckpointHeader, PartKind};
use ladon_log::checkpoint::reader::Part;
use ladon_log::frame::FrameKind;
use ladon_log::reader::Frame;
use ladon_log::segment::SegmentHeader;
use ladon_record::{Change, Changes, LibraryBody};
use std::io::{self, Write};

/// Longer values are cut; JSON lines have all of them.
const VALUE_BYTES_MAX: usize = 256;

/// Elements of a value beyond this are only counted.
const ELEMENTS_MAX: usize = 64;

pub struct Text;

impl Format for Text {
    fn checkpoint(
        &self,
        out: &mut dyn Write,
        file: &str,
        header: &CheckpointHeader,
    ) -> io::Result<()> {
        let (begin, node) = (header.begin, header.node);
        let created = Time(header.created_ms);
        writeln!(out, "# {file}: checkpoint from LSN {begin}, node {node}, begun {created}")
    }

    fn part(&self, out: &mut dyn Write, _file: &str, part: &Part) -> io::Result<()> {
        let header = &part.header;
        if part.kind == PartKind::Meta {
            return writeln!(out, "metadata as of LSN {}: {}", header.lsn, quoted(&part.payload));
        }
        writeln!(
            out,
            "block of db {}, hashes {:016x} to {:016x}, as of LSN {}, {} keys",
            header.db, header.hash_first, header.hash_last, header.lsn, header.keys
        )?;
        changes(out, &part.payload)
    }

    fn segment(&self, out: &mut dyn Write, file: &str, header: &SegmentHeader) -> io::Result<()> {
        let (base, node) = (header.base, header.node);
        let created = Time(header.created_ms);
        writeln!(out, "# {file}: log from LSN {base}, node {node}, begun {created}")
    }

    fn frame(&self, out: &mut dyn Write, _file: &str, frame: &Frame<'_>) -> io::Result<()> {
        let header = &frame.header;
        let (lsn, time) = (header.lsn, Time(header.unix_ms));
        match (frame.kind, frame.durable_mark()) {
            (FrameKind::Changes, _) => {
                writeln!(out, "LSN {lsn} at {time}, node {}", header.node)?;
                changes(out, frame.payload)
            }
            (kind, Some(mark)) => {
                writeln!(out, "LSN {lsn} at {time}: {}, on the disk up to {mark}", kind.name())
            }
            (kind, None) => writeln!(out, "LSN {lsn} at {time}: {}", kind.name()),
        }
    }
}

fn changes(out: &mut dyn Write, encoded: &[u8]) -> io::Result<()> {
    for change in Changes::new(encoded) {
        match change {
            Ok(change) => writeln!(out, "  {}", one_change(&change))?,
            Err(error) => writeln!(out, "  cannot be read on: {error}")?,
        }
    }
    Ok(())
}

fn one_change(change: &Change<'_>) -> String {
    match *change {
        Change::Put { db, key, expire_at, kind, body } => {
            let expires = match expire_at {
                0 => String::new(),
                at => format!(" expires {}", Time(at)),
            };
            let value =
                DumpValue::body(kind, body).map_or_else(|| quoted(body), |body| shown(&body));
            format!("put {db} {} {} {value}{expires}", key_of(key), kind.name())
        }
        Change::PutItem { db, key, expire_at, marks, body } => {
            let expires = match expire_at {
                0 => String::new(),
                at => format!(" expires {}", Time(at)),
            };
            format!("put {db} {} item marks {marks} {}{expires}", key_of(key), quoted(body))
        }
        Change::Update { db, key, kind, op } => {
            let what = match DumpValue::op(kind, op) {
                Some(op) => shown(&op),
                None => format!("unknown {}", quoted(op)),
            };
            format!("update {db} {} {} {what}", key_of(key), kind.name())
        }
        Change::Delete { db, key } => format!("delete {db} {}", key_of(key)),
        Change::Expire { db, key, expire_at: 0 } => format!("expire {db} {} never", key_of(key)),
        Change::Expire { db, key, expire_at } => {
            format!("expire {db} {} {}", key_of(key), Time(expire_at))
        }
        Change::FlushDb { db } => format!("flushdb {db}"),
        Change::SwapDb { first, second } => format!("swapdb {first} {second}"),
        Change::Library { name, body } => match LibraryBody::decode(body) {
            Some(LibraryBody { code, functions }) => {
                let names: Vec<String> =
                    functions.iter().map(|function| key_of(&function.name)).collect();
                let names = names.join(" ");
                format!("library {} functions {{{names}}} code {}", key_of(name), quoted(&code))
            }
            None => format!("library {} unknown {}", key_of(name), quoted(body)),
        },
        Change::DeleteLibrary { name } => format!("delete library {}", key_of(name)),
        Change::FlushLibraries => "flush libraries".to_owned(),
        Change::SpacePut { space, tuple } => format!("put space {space} {}", quoted(tuple)),
        Change::SpaceDelete { space, key } => format!("delete space {space} {}", quoted(key)),
    }
}

fn key_of(key: &[u8]) -> String {
    Quoted { bytes: key, bytes_max: usize::MAX }.to_string()
}

fn quoted(bytes: &[u8]) -> String {
    Quoted { bytes, bytes_max: VALUE_BYTES_MAX }.to_string()
}

fn shown(what: &DumpValue<'_>) -> String {
    match what {
        DumpValue::Bytes(bytes) => quoted(bytes),
        DumpValue::Text(text) => text.clone(),
        DumpValue::Int(int) => int.to_string(),
        DumpValue::Float(float) => float.to_string(),
        DumpValue::List(all) => {
            let few = &all[..all.len().min(ELEMENTS_MAX)];
            let words: Vec<String> = few.iter().map(shown).collect();
            let more = match all.len() - few.len() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            format!("{{{}}}{more}", words.join(" "))
        }
        DumpValue::Record(parts) => {
            let words: Vec<String> =
                parts.iter().map(|(label, part)| format!("{label} {}", shown(part))).collect();
            words.join(" ")
        }
    }
}
