//! Which requests on data take no longer than a usual one, as far as that shows before they run.
//!
//! A record that is not yet published holds back all later ones, so a thread publishes before it
//! does something long. Publishing before every request would cost more than many requests do. A
//! mistake here delays others' replies, and does no other harm.

use crate::batch::Batch;
use crate::call::{Arguments, Method, Target, key_of};
use crate::long_select::TUPLES_MAX;
use ladon_engine::Catalog;
use ladon_iproto::request::{Call, Request, Select, SpaceRef};
use ladon_kernel::node::Node;
use ladon_msgpack::read_array;
use ladon_system_spaces as system;

const EQUAL: u32 = 0;

/// Whether a request takes no longer than a usual one.
#[inline]
pub(crate) fn is_quick(node: &Node, batch: &mut Batch, request: &Request<'_>) -> bool {
    let catalog = batch.catalog(&node.keyspace.spaces);
    let space = match request {
        Request::Insert(put) | Request::Replace(put) => number(put.space),
        Request::Update(update) => number(update.space),
        Request::Delete(delete) => number(delete.space),
        Request::Upsert(upsert) => number(upsert.space),
        Request::Select(select) => selected_space(select),
        Request::Call(call) | Request::Call16(call) => called_space(catalog, call),
        _ => None,
    };
    // Definitions may take long, and so may others' that hold the space meanwhile.
    let is_held = |id| catalog.get(id).is_some_and(|cell| cell.is_locked());
    space.is_some_and(|id| id >= system::USER_ID_MIN && !is_held(id))
}

/// The space's number, if it is named by that.
#[inline]
fn number(space: SpaceRef<'_>) -> Option<u32> {
    match space {
        SpaceRef::Id(id) => Some(id),
        SpaceRef::Name(_) => None,
    }
}

/// The space's number, if few tuples are selected.
#[inline]
fn selected_space(select: &Select<'_>) -> Option<u32> {
    let has_key = || read_array(&mut { select.key }).is_ok_and(|parts| parts > 0);
    let is_short = select.limit <= TUPLES_MAX || (select.iterator == EQUAL && has_key());
    number(select.space).filter(|_| is_short)
}

/// The number of the space whose method is called, if it does little.
fn called_space(catalog: &Catalog, call: &Call<'_>) -> Option<u32> {
    let target = Target::parse(std::str::from_utf8(call.name).ok()?)?;
    let is_short = match target.method {
        Method::Select => {
            let mut arguments = Arguments::new(call.arguments, None).ok()?;
            let has_key = *key_of(arguments.next().ok()?).ok()? != [0x90];
            // Options may ask for what follows the key.
            has_key && arguments.next().ok()?.is_none()
        }
        Method::Count | Method::Random | Method::Min | Method::Max => false,
        _ => true,
    };
    catalog.named(target.space).filter(|_| is_short)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ladon_iproto::request::IndexRef;

    fn select(limit: u32, iterator: u32, key: &[u8]) -> Option<u32> {
        selected_space(&Select {
            space: SpaceRef::Id(512),
            index: IndexRef::Id(0),
            iterator,
            offset: 0,
            limit,
            key,
            fetch_position: false,
            after_position: None,
            after_tuple: None,
        })
    }

    #[test]
    fn a_selection_is_short_by_its_limit_or_its_key() {
        let all = u32::MAX;
        assert_eq!(select(256, 2, &[0x90]), Some(512));
        assert_eq!(select(257, 2, &[0x90]), None);
        assert_eq!(select(all, EQUAL, &[0x91, 1]), Some(512));
        // All tuples, and all that follow one.
        assert_eq!(select(all, EQUAL, &[0x90]), None);
        assert_eq!(select(all, 5, &[0x91, 1]), None);
    }
}
