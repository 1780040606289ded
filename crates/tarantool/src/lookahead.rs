//! Has the processor fetch what a batch's requests will need of large spaces.
//!
//! A search in a large tree waits for memory at each level. The requests of a batch go down
//! together, one level after the other, so that their waits overlap. Nothing is kept of it: the
//! requests search again, and find everything in the cache.

use crate::batch::Batch;
use crate::packet::{Decoded, Packet};
use ladon_iproto::request::{IndexRef, Request, SpaceRef};
use ladon_kernel::node::Node;
use ladon_space::Sought;
use smallvec::SmallVec;

/// With less data than this, all of it is in a core's own caches anyway.
const CACHED_BYTES: u64 = 2 << 20;
/// Fewer requests have too little to do at once.
const TOGETHER_MIN: usize = 3;

/// What a request looks for: of which space and index, and what.
type Wanted<'a> = (u32, u32, Sought<'a>);

impl Batch {
    /// Begins to fetch what these packets, with their lengths in front, will need. Never waits for
    /// a lock.
    pub fn fetch_ahead<'a>(&mut self, node: &Node, packets: impl Iterator<Item = &'a [u8]>) {
        if node.keyspace.spaces.bytes() < CACHED_BYTES {
            return;
        }
        let catalog = self.catalog(&node.keyspace.spaces);
        let mut wanted: SmallVec<[Wanted<'a>; 64]> = packets.filter_map(wanted).collect();
        while let Some(&(space, index, _)) = wanted.first() {
            let is_of_group = |wanted: &Wanted<'_>| (wanted.0, wanted.1) == (space, index);
            let group: SmallVec<[Sought<'a>; 64]> = wanted
                .iter()
                .filter(|wanted| is_of_group(wanted))
                .map(|(_, _, sought)| *sought)
                .collect();
            if group.len() >= TOGETHER_MIN
                && let Some(cell) = catalog.get(space)
            {
                cell.fetch_ahead(index, &group);
            }
            wanted.retain(|wanted| !is_of_group(wanted));
        }
    }
}

fn wanted(packet: &[u8]) -> Option<Wanted<'_>> {
    let Decoded::Request(_, Ok(request)) = Packet::decode(packet).0 else { return None };
    let (space, index, sought) = match request {
        Request::Select(select) => (select.space, select.index, Sought::Key(select.key)),
        Request::Update(update) => (update.space, update.index, Sought::Key(update.key)),
        Request::Delete(delete) => (delete.space, delete.index, Sought::Key(delete.key)),
        Request::Insert(put) | Request::Replace(put) => {
            (put.space, IndexRef::Id(0), Sought::Tuple(put.tuple))
        }
        Request::Upsert(upsert) => (upsert.space, IndexRef::Id(0), Sought::Tuple(upsert.tuple)),
        _ => return None,
    };
    match (space, index) {
        (SpaceRef::Id(space), IndexRef::Id(index)) => Some((space, index, sought)),
        _ => None,
    }
}
