//! The rows of a query as MessagePack: fields of tuples are passed on as they are.

use super::core::empty;
use super::seen::show;
use super::{Env, Run, Slot};
use crate::error::{self, Error};
use crate::tree::{Core, Ex, Place, Query};
use ladon_msgpack::{self as msgpack, write};
use ladon_space::fields::from_field;

/// Where in a tuple the field behind the last one is.
#[derive(Default)]
struct Cursor<'t> {
    slot: usize,
    field: u32,
    rest: &'t [u8],
}

impl<'t> Cursor<'t> {
    /// A field's MessagePack; an empty one if the tuple does not have it.
    #[inline]
    fn field(&mut self, place: Place, tuple: &'t [u8]) -> &'t [u8] {
        if place.field == 0 || (place.slot, place.field) != (self.slot, self.field) {
            self.rest = from_field(tuple, place.field).unwrap_or_default();
        }
        (self.slot, self.field) = (place.slot, place.field + 1);
        msgpack::take(&mut self.rest).unwrap_or_default()
    }
}

/// The one core whose rows need not be kept.
fn plain(query: &Query) -> Option<&Core> {
    let [(_, core)] = &query.cores[..] else { return None };
    let is_ordered = query.order.is_empty() || core.is_in_order;
    let is_plain = core.values.is_empty() && core.group.is_none() && !core.is_distinct;
    (is_ordered && is_plain).then_some(core)
}

impl Run<'_> {
    /// Appends a query's rows, each a MessagePack array. Returns their number.
    pub(crate) fn write_rows(&self, query: &Query, out: &mut Vec<u8>) -> Result<u32, Error> {
        let Some(core) = plain(query) else {
            let rows = self.query(query, None, None)?;
            for row in &rows {
                write::array(out, row.len() as u32);
                row.iter().for_each(|value| value.pack(out));
            }
            return u32::try_from(rows.len()).map_err(|_| too_many());
        };
        let (mut skipped, limit) = self.window(query)?;
        let mut count = 0;
        if limit == 0 || !self.all_hold(&core.filter, &Env::NOTHING)? {
            return Ok(count);
        }
        self.join(core, 0, &mut empty(core), None, &mut |slots| {
            if skipped > 0 {
                skipped -= 1;
                return Ok(true);
            }
            let before = out.len();
            self.write_row(core, slots, out)?;
            self.budget.take(out.len() - before)?;
            count = u32::checked_add(count, 1).ok_or_else(too_many)?;
            Ok((count as usize) < limit)
        })?;
        Ok(count)
    }

    #[inline]
    fn write_row(&self, core: &Core, slots: &[Slot<'_>], out: &mut Vec<u8>) -> Result<(), Error> {
        let env = Env { slots, aggregates: &[], outer: None };
        let mut cursor = Cursor::default();
        write::array(out, core.results.len() as u32);
        for ex in &core.results {
            if let Ex::Column(place @ Place { up: 0, .. }) = ex
                && let Some(tuple) = slots.get(place.slot).and_then(Slot::tuple)
            {
                show(cursor.field(*place, tuple.bytes()), out);
            } else {
                self.see(ex, &env)?.pack(out);
            }
        }
        Ok(())
    }
}

fn too_many() -> Error {
    error::execute("too many rows")
}
