//! Which requests on data take no longer than a usual one, as far as that shows before they run.
//!
//! A record that is not yet published holds back all later ones, so a thread publishes before it
//! does something long. Publishing before every request would cost more than many requests do. A
//! mistake here delays others' replies, and does no other harm.

use crate::call::{Arguments, Method, Target};
use crate::long_select::TUPLES_MAX;
use ladon_commands::Node;
use ladon_iproto::{Header, key, request_type as types};
use ladon_msgpack::{read_array, read_map, read_str, read_uint, skip, take};
use ladon_system_spaces as system;

const EQUAL: u64 = 0;

/// Whether a request takes no longer than a usual one.
pub(crate) fn is_quick(node: &Node, header: &Header, body: &[u8]) -> bool {
    let space = match header.request_type {
        types::INSERT | types::REPLACE | types::UPDATE | types::DELETE | types::UPSERT => {
            space_of(body)
        }
        types::SELECT => select_space(body),
        types::CALL | types::CALL_16 => called_space(node, body),
        _ => None,
    };
    // Definitions may take long, and so may others' that hold the space meanwhile.
    space.is_some_and(|id| id >= system::USER_ID_MIN && !node.keyspace.spaces.is_locked(id))
}

/// The space's number. Most connectors send it first.
fn space_of(mut body: &[u8]) -> Option<u32> {
    for _ in 0..read_map(&mut body).ok()? {
        if read_uint(&mut body).ok()? == u64::from(key::SPACE_ID) {
            return u32::try_from(read_uint(&mut body).ok()?).ok();
        }
        skip(&mut body).ok()?;
    }
    None
}

/// The space's number, if few tuples are selected.
fn select_space(mut body: &[u8]) -> Option<u32> {
    let (mut space, mut limit, mut iterator, mut parts) = (None, 0, EQUAL, 0);
    for _ in 0..read_map(&mut body).ok()? {
        match u8::try_from(read_uint(&mut body).ok()?).ok()? {
            key::SPACE_ID => space = u32::try_from(read_uint(&mut body).ok()?).ok(),
            key::LIMIT => limit = read_uint(&mut body).ok()?,
            key::ITERATOR => iterator = read_uint(&mut body).ok()?,
            key::KEY => parts = read_array(&mut take(&mut body).ok()?).ok()?,
            _ => skip(&mut body).ok()?,
        }
    }
    let is_short = limit <= u64::from(TUPLES_MAX) || (iterator == EQUAL && parts > 0);
    space.filter(|_| is_short)
}

/// The number of the space whose method is called, if it does little.
fn called_space(node: &Node, mut body: &[u8]) -> Option<u32> {
    let (mut name, mut arguments) = (None, None);
    for _ in 0..read_map(&mut body).ok()? {
        match u8::try_from(read_uint(&mut body).ok()?).ok()? {
            key::FUNCTION_NAME => name = std::str::from_utf8(read_str(&mut body).ok()?).ok(),
            key::TUPLE => arguments = take(&mut body).ok(),
            _ => skip(&mut body).ok()?,
        }
    }
    let target = Target::parse(name?)?;
    let is_short = match target.method {
        Method::Select => {
            let mut arguments = Arguments::new(arguments?).ok()?;
            let has_key = arguments.next().ok()?.is_some_and(|key| key != [0x90]);
            // Options may ask for what follows the key.
            has_key && arguments.next().ok()?.is_none()
        }
        Method::Count | Method::Random | Method::Min | Method::Max => false,
        _ => true,
    };
    node.keyspace.spaces.catalog().named(target.space).filter(|_| is_short)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ladon_msgpack::write;

    fn select(limit: u64, iterator: u64, key: &[u8]) -> Vec<u8> {
        let mut body = Vec::new();
        write::map(&mut body, 4);
        for (name, value) in [(key::ITERATOR, iterator), (key::LIMIT, limit), (key::SPACE_ID, 512)]
        {
            write::uint(&mut body, name.into());
            write::uint(&mut body, value);
        }
        write::uint(&mut body, key::KEY.into());
        body.extend_from_slice(key);
        body
    }

    #[test]
    fn a_selection_is_short_by_its_limit_or_its_key() {
        let all = u64::from(u32::MAX);
        assert_eq!(select_space(&select(256, 2, &[0x90])), Some(512));
        assert_eq!(select_space(&select(257, 2, &[0x90])), None);
        assert_eq!(select_space(&select(all, EQUAL, &[0x91, 1])), Some(512));
        // All tuples, and all that follow one.
        assert_eq!(select_space(&select(all, EQUAL, &[0x90])), None);
        assert_eq!(select_space(&select(all, 5, &[0x91, 1])), None);
        assert_eq!(select_space(&[0x81]), None);
    }

    #[test]
    fn a_statement_s_space_is_found_wherever_it_is() {
        let tuple = [key::TUPLE, 0x91, 0x91, 1];
        let space = [key::SPACE_ID, 0xcd, 2, 0];
        assert_eq!(space_of(&[&[0x82], &space[..], &tuple].concat()), Some(512));
        assert_eq!(space_of(&[&[0x82], &tuple[..], &space].concat()), Some(512));
        assert_eq!(space_of(&[&[0x81], &tuple[..]].concat()), None);
        assert_eq!(space_of(&[0x93]), None);
    }
}
