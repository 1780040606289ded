//! `PFCOUNT`.

use crate::shared::hyperloglog::{self, Registers, estimate};
use ladon_engine::types::string;
use ladon_engine::{Key, Tx, Written};
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;
use ladon_record::DbId;
use std::collections::HashSet;

pub(super) fn pfcount(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let cardinality = match args {
        [_, _] => count_one(ctx, args)?,
        _ => count_union(ctx, &args[1..])?,
    };
    ctx.reply.integer(cardinality as i64);
    Ok(())
}

fn count_one(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> Result<u64, CommandError> {
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let tx = ctx.tx();
    let Some(entry) = tx.read(db, key) else { return Ok(0) };
    let bytes = string::bytes(entry.value()).ok_or(CommandError::WrongType)?;
    hyperloglog::encoding(&bytes)?;
    if let Some(cardinality) = hyperloglog::cached(&bytes) {
        return Ok(cardinality);
    }
    let cardinality = hyperloglog::count(&bytes)?;
    drop(bytes);
    // The command only reads, so it runs where nothing may change.
    if tx.may_change() {
        let cache = |bytes: &mut [u8], written: &mut Written| {
            written.push(hyperloglog::cache(bytes, cardinality));
        };
        tx.edit_string_in_place(db, key, |_| None, cache)?;
    }
    Ok(cardinality)
}

fn count_union(ctx: &mut Ctx<'_>, names: &[&[u8]]) -> Result<u64, CommandError> {
    let db = ctx.db();
    let mut merged = Merged::new(names.len());
    let tx = ctx.tx();
    for name in names {
        let key = tx.key(name);
        merged.add(tx, db, key)?;
    }
    Ok(estimate(&merged.registers.histogram()))
}

/// The maxima of the HyperLogLogs at several keys.
pub(super) struct Merged<'a> {
    pub(super) registers: Registers,
    pub(super) any_is_dense: bool,
    /// A short request may name the same key many times; each is merged once.
    names: Option<HashSet<&'a [u8]>>,
}

/// From this number of keys on, it is noted which are merged.
const NAMES_NOTED_MIN: usize = 16;

impl<'a> Merged<'a> {
    pub(super) fn new(keys: usize) -> Merged<'a> {
        let names = (keys >= NAMES_NOTED_MIN).then(HashSet::new);
        Merged { registers: Registers::new(), any_is_dense: false, names }
    }

    /// Merges the HyperLogLog at a key, if there is any.
    pub(super) fn add(
        &mut self,
        tx: &mut Tx<'_>,
        db: DbId,
        key: Key<'a>,
    ) -> Result<(), CommandError> {
        let Some(entry) = tx.read(db, key) else { return Ok(()) };
        let bytes = string::bytes(entry.value()).ok_or(CommandError::WrongType)?;
        if self.names.as_mut().is_some_and(|names| !names.insert(key.bytes)) {
            return Ok(());
        }
        let encoding = self.registers.merge(&bytes)?;
        self.any_is_dense |= encoding == hyperloglog::Encoding::Dense;
        Ok(())
    }
}
