//! The parts of a stream, one after the other.
//!
//! ```text
//! stream   := count of nodes, (id of 16 bytes as string, listpack)..., length, last id,
//!             [first id, greatest deleted id, entries added], count of groups, group...
//! id       := milliseconds, number                                   (two lengths)
//! group    := name, last id, [entries read], count, pending..., count, consumer...
//! pending  := id of 16 bytes, delivered at i64, deliveries
//! consumer := name, seen at i64, [active at i64], count, id of 16 bytes...
//! listpack := live entries, deleted entries, count of fields, field..., 0, entry...
//! entry    := flags (1: deleted, 2: the fields above), ms and number less the node's,
//!             [count of fields], ([field], value)..., count of the entry's elements
//! ```
//!
//! What is in brackets came with Redis 7.0, the active time with 7.2.
//! Source: `rdb.c` and `t_stream.c` of Redis 7.4.

use std::io::Read;

use crate::elements::count_down;
use crate::error::Fault;
use crate::packed::{Form, Packed};
use crate::source::Source;
use crate::text::{read_length, read_string};
use crate::value::{ConsumerHead, GroupHead, Pending, StreamCounters, StreamState};
use crate::value::{Element, Entry, StreamId};

const FLAG_DELETED: i64 = 1;
const FLAG_SAME_FIELDS: i64 = 2;

/// What is written for a count of read entries that is not known.
pub(crate) const ENTRIES_READ_UNKNOWN: u64 = u64::MAX;

/// A node of a stream that is being read.
struct Node {
    id: StreamId,
    packed: Packed,
    fields: Vec<Vec<u8>>,
    live_left: i64,
    deleted_left: i64,
}

enum Step {
    Entries,
    Groups,
    GroupPending,
    Consumers,
    ConsumerPending,
}

/// A stream that is being read.
pub(crate) struct StreamElements {
    version: u8,
    step: Step,
    node: Option<Node>,
    nodes_left: u64,
    /// Entries that were yielded.
    live: u64,
    /// The id of the last entry, deleted or not.
    last: Option<StreamId>,
    groups_left: u64,
    consumers_left: u64,
    pending_left: u64,
}

impl StreamElements {
    pub(crate) fn open<R: Read>(
        version: u8,
        source: &mut Source<R>,
    ) -> Result<StreamElements, Fault> {
        Ok(StreamElements {
            version,
            step: Step::Entries,
            node: None,
            nodes_left: read_length(source)?,
            live: 0,
            last: None,
            groups_left: 0,
            consumers_left: 0,
            pending_left: 0,
        })
    }

    pub(crate) fn next<R: Read>(
        &mut self,
        source: &mut Source<R>,
    ) -> Result<Option<Element>, Fault> {
        loop {
            match self.step {
                Step::Entries => match self.next_entry(source)? {
                    Some(entry) => return Ok(Some(Element::Entry(entry))),
                    None => {
                        self.step = Step::Groups;
                        return self.state(source).map(Some);
                    }
                },
                Step::Groups => {
                    if !count_down(&mut self.groups_left) {
                        return Ok(None);
                    }
                    self.step = Step::GroupPending;
                    return self.group(source).map(Some);
                }
                Step::GroupPending => {
                    if count_down(&mut self.pending_left) {
                        let id = raw_id(source)?;
                        let delivered_at_ms = source.i64_le()?;
                        let deliveries = read_length(source)?;
                        let pending = Pending { id, delivered_at_ms, deliveries };
                        return Ok(Some(Element::GroupPending(pending)));
                    }
                    self.consumers_left = read_length(source)?;
                    self.step = Step::Consumers;
                }
                Step::Consumers => {
                    if count_down(&mut self.consumers_left) {
                        self.step = Step::ConsumerPending;
                        return self.consumer(source).map(Some);
                    }
                    self.step = Step::Groups;
                }
                Step::ConsumerPending => {
                    if count_down(&mut self.pending_left) {
                        return Ok(Some(Element::ConsumerPending(raw_id(source)?)));
                    }
                    self.step = Step::Consumers;
                }
            }
        }
    }

    /// What stands between entries and groups.
    fn state<R: Read>(&mut self, source: &mut Source<R>) -> Result<Element, Fault> {
        let length = read_length(source)?;
        if length != self.live {
            return Err(Fault::Malformed("a stream's length is not the number of its entries"));
        }
        let last_id = read_id(source)?;
        if self.last.is_some_and(|last| last > last_id) {
            return Err(Fault::Malformed("a stream's last id is below an entry's"));
        }
        let counters = if self.version >= 2 {
            Some(StreamCounters {
                first_id: read_id(source)?,
                max_deleted_id: read_id(source)?,
                entries_added: read_length(source)?,
            })
        } else {
            None
        };
        self.groups_left = read_length(source)?;
        Ok(Element::StreamState(StreamState { length, last_id, counters }))
    }

    fn group<R: Read>(&mut self, source: &mut Source<R>) -> Result<Element, Fault> {
        let name = read_string(source)?;
        let last_id = read_id(source)?;
        let entries_read = if self.version >= 2 {
            Some(read_length(source)?).filter(|&count| count != ENTRIES_READ_UNKNOWN)
        } else {
            None
        };
        self.pending_left = read_length(source)?;
        Ok(Element::Group(GroupHead { name, last_id, entries_read }))
    }

    fn consumer<R: Read>(&mut self, source: &mut Source<R>) -> Result<Element, Fault> {
        let name = read_string(source)?;
        let seen_at_ms = source.i64_le()?;
        let active_at_ms =
            if self.version >= 3 { Some(source.i64_le()?).filter(|&at| at != -1) } else { None };
        self.pending_left = read_length(source)?;
        Ok(Element::Consumer(ConsumerHead { name, seen_at_ms, active_at_ms }))
    }

    /// The next entry that is not deleted.
    fn next_entry<R: Read>(&mut self, source: &mut Source<R>) -> Result<Option<Entry>, Fault> {
        loop {
            let Some(node) = &mut self.node else {
                if !count_down(&mut self.nodes_left) {
                    return Ok(None);
                }
                self.node = Some(Node::open(source)?);
                continue;
            };
            let Some((entry, is_deleted)) = node.next(source)? else {
                self.node = None;
                continue;
            };
            if self.last.is_some_and(|last| last >= entry.id) {
                return Err(Fault::Malformed("the ids of a stream's entries do not grow"));
            }
            self.last = Some(entry.id);
            if !is_deleted {
                self.live += 1;
                return Ok(Some(entry));
            }
        }
    }
}

impl Node {
    fn open<R: Read>(source: &mut Source<R>) -> Result<Node, Fault> {
        let key: [u8; 16] = read_string(source)?
            .try_into()
            .map_err(|_| Fault::Malformed("the id of a stream's node has not 16 bytes"))?;
        let mut packed = Packed::open(Form::Listpack, source)?;
        let live_left = packed.expect_number(source)?;
        let deleted_left = packed.expect_number(source)?;
        let count = packed.expect_number(source)?;
        let mut fields = Vec::new();
        for _ in 0..count {
            fields.push(packed.expect(source)?.into_bytes());
        }
        if packed.expect_number(source)? != 0 {
            return Err(Fault::Malformed("no 0 follows the fields of a stream's node"));
        }
        Ok(Node { id: id_of(key), packed, fields, live_left, deleted_left })
    }

    /// The next entry and whether it is deleted.
    fn next<R: Read>(&mut self, source: &mut Source<R>) -> Result<Option<(Entry, bool)>, Fault> {
        let packed = &mut self.packed;
        if self.live_left == 0 && self.deleted_left == 0 {
            return match packed.next(source)? {
                None => Ok(None),
                Some(_) => Err(Fault::Malformed("a stream's node has more entries than it says")),
            };
        }
        let flags = packed.expect_number(source)?;
        let is_deleted = flags & FLAG_DELETED != 0;
        let left = if is_deleted { &mut self.deleted_left } else { &mut self.live_left };
        *left -= 1;
        if *left < 0 {
            return Err(Fault::Malformed("a stream's node has other entries than it says"));
        }
        let ms = packed.expect_number(source)?;
        let seq = packed.expect_number(source)?;
        // The differences were taken the same way.
        let id = StreamId {
            ms: self.id.ms.wrapping_add(ms as u64),
            seq: self.id.seq.wrapping_add(seq as u64),
        };
        let mut fields = Vec::new();
        let elements = if flags & FLAG_SAME_FIELDS != 0 {
            for name in &self.fields {
                fields.push((name.clone(), packed.expect(source)?.into_bytes()));
            }
            3 + fields.len() as u64
        } else {
            for _ in 0..packed.expect_number(source)? {
                let name = packed.expect(source)?.into_bytes();
                fields.push((name, packed.expect(source)?.into_bytes()));
            }
            4 + 2 * fields.len() as u64
        };
        if packed.expect_number(source)? as u64 != elements {
            return Err(Fault::Malformed("a stream's entry has another count at its end"));
        }
        Ok(Some((Entry { id, fields }, is_deleted)))
    }
}

fn id_of(raw: [u8; 16]) -> StreamId {
    let (ms, seq) = raw.split_at(8);
    let number = |bytes: &[u8]| u64::from_be_bytes(bytes.try_into().expect("8 of 16 bytes"));
    StreamId { ms: number(ms), seq: number(seq) }
}

fn raw_id<R: Read>(source: &mut Source<R>) -> Result<StreamId, Fault> {
    Ok(id_of(source.array()?))
}

fn read_id<R: Read>(source: &mut Source<R>) -> Result<StreamId, Fault> {
    Ok(StreamId { ms: read_length(source)?, seq: read_length(source)? })
}
