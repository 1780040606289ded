//! `PFADD`.

use crate::shared::hyperloglog::sparse::Cursor;
use crate::shared::hyperloglog::{
    self, Encoding, HEADER_BYTES, Invalid, STALE_AT, dense, position,
};
use ladon_engine::{EventClass, Written};
use ladon_kernel::command::error::CommandResult;
use ladon_kernel::ctx::Ctx;

pub(super) fn pfadd(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let elements = &args[2..];
    let sparse_bytes_max = ctx.node.settings.hll_sparse_max_bytes();
    let tx = ctx.tx();
    // A dense one is changed where it is; the bytes of a sparse one move.
    let look = |bytes: &[u8]| match hyperloglog::encoding(bytes) {
        Ok(Encoding::Dense) => None,
        Ok(Encoding::Sparse) => {
            Some(add_sparse(bytes, elements, sparse_bytes_max).map(Added::Copied))
        }
        Err(invalid) => Some(Err(invalid)),
    };
    let added = tx.edit_string_in_place(db, key, look, |bytes, written| {
        Ok(Added::InPlace(add_dense(bytes, elements, written)))
    })?;
    let is_changed = match added.transpose()? {
        Some(Added::InPlace(is_changed)) => is_changed,
        Some(Added::Copied(changed)) => {
            if let Some(bytes) = &changed {
                tx.replace_string(db, key, bytes)?;
            }
            changed.is_some()
        }
        None => {
            let mut bytes = hyperloglog::empty();
            add(&mut bytes, elements, sparse_bytes_max)?;
            hyperloglog::invalidate(&mut bytes);
            tx.put_grown_string(db, key, &bytes, 0);
            true
        }
    };
    if is_changed {
        tx.notify(EventClass::STRING, "pfadd", db, key);
    }
    ctx.reply.integer(i64::from(is_changed));
    Ok(())
}

enum Added {
    /// Whether something changed.
    InPlace(bool),
    /// The new bytes, if something changed.
    Copied(Option<Vec<u8>>),
}

fn add_dense(bytes: &mut [u8], elements: &[&[u8]], written: &mut Written) -> bool {
    let registers = &mut bytes[HEADER_BYTES..];
    for element in elements {
        if let Some(raised) = dense::raise(registers, position(element)) {
            written.push(raised.start + HEADER_BYTES..raised.end + HEADER_BYTES);
        }
    }
    if written.is_empty() {
        return false;
    }
    if hyperloglog::invalidate(bytes) {
        written.push(STALE_AT..STALE_AT + 1);
    }
    true
}

fn add_sparse(
    bytes: &[u8],
    elements: &[&[u8]],
    sparse_bytes_max: usize,
) -> Result<Option<Vec<u8>>, Invalid> {
    let mut bytes = bytes.to_vec();
    let is_changed = add(&mut bytes, elements, sparse_bytes_max)?;
    if is_changed {
        hyperloglog::invalidate(&mut bytes);
    }
    Ok(is_changed.then_some(bytes))
}

/// Adds elements to a copy; whether a register changed.
fn add(bytes: &mut Vec<u8>, elements: &[&[u8]], sparse_bytes_max: usize) -> Result<bool, Invalid> {
    let mut is_changed = false;
    for element in elements {
        is_changed |=
            hyperloglog::raise(bytes, position(element), sparse_bytes_max, &mut Cursor::start())?;
    }
    Ok(is_changed)
}
