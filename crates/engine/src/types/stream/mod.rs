//! Streams: entries in the order of their ids, in packed nodes, and consumer groups.
//!
//! ```text
//! nodes        1-0 ->[fields | 1-0 1-1 5-0]   7-0 ->[fields | 7-0 8-0]     an ordered map (id_map.rs)
//! groups       name -> last id, pending entries, consumers
//! idempotence  what was sent under which idempotent id, once that was used (idempotence.rs)
//! ```
//!
//! Nodes, runs of the map and groups are shared with frozen copies and copied before their next
//! change, so that freezing costs a pointer for some thousand entries. A stream without entries is
//! a value like any other: its key stays, and so do its last id and its groups.

mod apply;
mod collection;
mod delta;
mod group;
mod id;
mod id_map;
mod idempotence;
mod idle;
mod node;
mod reference;
mod restore;
mod show;
mod trim;
mod value;

#[cfg(test)]
mod tests;

pub(crate) use delta::encode_add;
pub use delta::{Claimed, Step};
pub use group::{Consumer, Group, Pending};
pub use id::StreamId;
pub use idempotence::{Idempotence, Memory};
pub use node::Entry;
pub use reference::{References, Spared};
pub use restore::GroupRestore;
pub use trim::{Threshold, Trim};
pub use value::Value;

use crate::prefetch::prefetch;
use crate::prefetch_target::AccessedPart;
use crate::table::bucket::BucketHint;
use crossbeam_epoch::Guard;
use id_map::IdMap;
use node::Node;
use std::collections::BTreeMap;
use std::ops::ControlFlow::{self, Continue};
use std::ops::Deref;
use std::ptr::without_provenance;
use std::sync::Arc;

/// Sizes of a node.
#[derive(Clone, Copy, Debug)]
pub struct StreamLimits {
    /// Maximum of bytes; 0 for the largest possible.
    pub(crate) node_bytes: usize,
    /// Maximum of entries; 0 for any number.
    pub(crate) node_entries: usize,
}

/// Fields and values of an entry have no more bytes than this together.
pub const ENTRY_BYTES_MAX: usize = 1 << 30;

/// Room that a stream's first node begins with, as a number of its first entries.
const FIRST_NODE_ENTRIES: usize = 2;

/// A stream.
pub struct Stream(Box<Inner>, Tail);

/// Addresses of what the next entry will touch, each reached through the one before. They are only
/// prefetched, and may be stale. An object has room for them: other types take as much.
#[derive(Clone, Copy, Default)]
struct Tail {
    run: usize,
    item: usize,
    node: usize,
    end: usize,
}

#[derive(Clone, Default)]
struct Inner {
    nodes: IdMap<SharedNode>,
    /// Number of entries.
    len: usize,
    last_id: StreamId,
    /// The largest id that was removed other than by trimming.
    max_deleted_id: StreamId,
    /// Number of entries that were ever added.
    entries_added: u64,
    groups: BTreeMap<Arc<[u8]>, Arc<Group>>,
    idempotence: Option<Arc<Idempotence>>,
    /// Bytes of all nodes.
    node_bytes: usize,
    /// Bytes of all groups.
    group_bytes: usize,
}

/// A node and the number of its entries, which is needed more often.
#[derive(Clone)]
struct SharedNode {
    count: u32,
    node: Arc<Node>,
}

impl Deref for SharedNode {
    type Target = Node;

    fn deref(&self) -> &Node {
        &self.node
    }
}

impl SharedNode {
    /// Changes the node, after copying it if it is shared; adds to `bytes` by how much it grew.
    #[inline]
    fn edit<R>(&mut self, bytes: &mut usize, change: impl FnOnce(&mut Node) -> R) -> R {
        let before = self.node.bytes();
        let node = Arc::make_mut(&mut self.node);
        let result = change(node);
        *bytes = *bytes + node.bytes() - before;
        self.count = node.count() as u32;
        result
    }
}

impl Tail {
    #[inline]
    fn of(nodes: &IdMap<SharedNode>) -> Tail {
        let Some((run, item)) = nodes.last_run() else { return Tail::default() };
        Tail {
            run,
            item: (&raw const item.1).addr(),
            node: Arc::as_ptr(&item.1.node).addr(),
            end: item.1.end(),
        }
    }
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Stream({} entries, {} groups)", self.len(), self.group_count())
    }
}

impl Default for Stream {
    fn default() -> Self {
        Stream::new()
    }
}

impl Stream {
    /// An empty stream.
    pub fn new() -> Stream {
        Stream(Box::default(), Tail::default())
    }

    /// Number of entries.
    #[allow(clippy::len_without_is_empty, reason = "an empty stream is a value like any other")]
    #[inline]
    pub fn len(&self) -> usize {
        self.0.len
    }

    /// The largest id that an entry ever had, or that was set.
    #[inline]
    pub fn last_id(&self) -> StreamId {
        self.0.last_id
    }

    /// The largest id that was removed other than by trimming; zero if none was.
    pub fn max_deleted_id(&self) -> StreamId {
        self.0.max_deleted_id
    }

    /// Number of entries that were ever added.
    pub fn entries_added(&self) -> u64 {
        self.0.entries_added
    }

    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        self.0.nodes.len()
    }

    /// The id of the first entry; zero if there is none.
    pub fn first_entry_id(&self) -> StreamId {
        let first = self.0.nodes.first().and_then(|(id, node)| node.iter(*id).next());
        first.map_or(StreamId::MIN, |entry| entry.id)
    }

    /// The id of the last entry.
    #[inline]
    pub fn last_entry_id(&self) -> Option<StreamId> {
        self.0.nodes.last().map(|(_, node)| node.last())
    }

    /// Bytes of memory beyond the value itself.
    pub fn bytes(&self) -> usize {
        let inner = &*self.0;
        let idempotence = inner.idempotence.as_ref().map_or(0, |it| it.bytes());
        let nodes = inner.nodes.bytes() + inner.node_bytes;
        size_of::<Inner>() + nodes + inner.group_bytes + idempotence
    }

    /// Cost of dropping it, in allocations.
    pub(super) fn drop_effort(&self) -> usize {
        let groups: usize = self.0.groups.values().map(|group| group.drop_effort()).sum();
        let idempotence = self.idempotence().map_or(0, Idempotence::drop_effort);
        1 + 2 * self.nodes() + groups + idempotence
    }

    /// The same stream; both share what they hold.
    pub(super) fn duplicate(&self) -> Stream {
        Stream(self.0.clone(), Tail::default())
    }

    /// See [`crate::Object::prefetch`].
    pub(crate) fn prefetch(&self, _inside: AccessedPart, _guard: &Guard) -> BucketHint {
        const LINE_BYTES: usize = 64;
        let inner = (&raw const *self.0).addr();
        let Tail { run, item, node, end } = self.1;
        let node_end = node + size_of::<Node>() - 1;
        let lines = [inner, inner + LINE_BYTES, inner + 2 * LINE_BYTES];
        for address in lines.into_iter().chain([run, item, node, node_end, end]) {
            prefetch(without_provenance::<u8>(address));
        }
        BucketHint::NONE
    }

    // ---- entries ----

    /// The id that the next entry gets at `now_ms`; `None` if all are used up.
    #[inline]
    pub fn next_id(&self, now_ms: u64) -> Option<StreamId> {
        let last = self.0.last_id;
        if now_ms > last.ms { Some(StreamId::new(now_ms, 0)) } else { last.next() }
    }

    /// Appends an entry of these words, fields and values in turn. Its id is larger than
    /// `last_id`.
    #[inline]
    pub fn add(&mut self, limits: StreamLimits, id: StreamId, words: &[&[u8]]) {
        debug_assert!(id > self.0.last_id && words.len() >= 2 && words.len().is_multiple_of(2));
        let inner = &mut *self.0;
        let added: usize = words.iter().map(|word| word.len()).sum();
        let node_bytes = &mut inner.node_bytes;
        let is_in = inner.nodes.update_last(|node_id, node| {
            if !limits.admit(node, added) {
                let room = node.len();
                node.edit(node_bytes, Node::seal);
                return Err(room);
            }
            node.edit(node_bytes, |node| node.push(node_id, id, words));
            Ok(())
        });
        let room = match is_in {
            Some(Ok(())) => None,
            // Streams are uniform: this node will be about as large as the one before.
            Some(Err(room)) => Some(room.max(added)),
            None => Some(added * FIRST_NODE_ENTRIES),
        };
        if let Some(room) = room {
            let mut node = Node::new(words, room);
            node.push(id, id, words);
            inner.node_bytes += node.bytes();
            inner.nodes.insert(id, SharedNode { count: 1, node: Arc::new(node) });
        }
        inner.len += 1;
        inner.entries_added = inner.entries_added.saturating_add(1);
        inner.last_id = id;
        self.1 = Tail::of(&inner.nodes);
    }

    /// Whether there is an entry with this id.
    pub fn contains(&self, id: StreamId) -> bool {
        self.0.nodes.floor(id).is_some_and(|(node_id, node)| node.contains(*node_id, id))
    }

    /// Removes an entry; returns whether it existed.
    pub fn remove(&mut self, id: StreamId) -> bool {
        let inner = &mut *self.0;
        // A shared node is copied only if the entry is in it.
        let node_id = match inner.nodes.floor(id) {
            Some((node_id, node)) if node.contains(*node_id, id) => *node_id,
            _ => return false,
        };
        let node_bytes = &mut inner.node_bytes;
        let left = inner.nodes.update(node_id, |node| {
            node.edit(node_bytes, |node| node.remove(node_id, id));
            node.count
        });
        if left == Some(0)
            && let Some(node) = inner.nodes.remove(node_id)
        {
            inner.node_bytes -= node.bytes();
        }
        inner.len -= 1;
        inner.max_deleted_id = inner.max_deleted_id.max(id);
        true
    }

    /// Removes the first `count` entries.
    pub fn remove_first(&mut self, count: usize) {
        let inner = &mut *self.0;
        let count = count.min(inner.len);
        let (mut rest, mut nodes) = (count, 0);
        for (_, node) in inner.nodes.iter() {
            if node.count as usize > rest {
                break;
            }
            rest -= node.count as usize;
            nodes += 1;
            inner.node_bytes -= node.bytes();
        }
        inner.nodes.remove_first(nodes);
        if rest > 0
            && let Some(&(node_id, _)) = inner.nodes.first()
        {
            let node_bytes = &mut inner.node_bytes;
            inner.nodes.update(node_id, |node| {
                node.edit(node_bytes, |node| node.remove_first(node_id, rest));
            });
        }
        inner.len -= count;
    }

    // ---- idempotence ----

    /// What is remembered of idempotent producers; `None` if there never were any.
    #[inline]
    pub fn idempotence(&self) -> Option<&Idempotence> {
        self.0.idempotence.as_deref()
    }

    fn idempotence_mut(&mut self) -> Option<&mut Idempotence> {
        self.0.idempotence.as_mut().map(Arc::make_mut)
    }

    /// Sets how much is remembered, and forgets all that is.
    fn set_memory(&mut self, memory: Memory) -> Option<()> {
        let cleared = match self.idempotence() {
            Some(idempotence) => idempotence.cleared(memory)?,
            None => Idempotence::new(memory)?,
        };
        self.0.idempotence = Some(Arc::new(cleared));
        Some(())
    }

    /// A stream that has nothing but what this one remembers of producers, to be dropped elsewhere
    /// if this one is about to forget it.
    pub(crate) fn share_idempotence(&self) -> Option<Stream> {
        let idempotence = self.0.idempotence.clone()?;
        let inner = Inner { idempotence: Some(idempotence), ..Inner::default() };
        Some(Stream(Box::new(inner), Tail::default()))
    }

    /// Sets the last id, the number of entries ever added, and the largest id removed.
    pub fn set_id(&mut self, last_id: StreamId, entries_added: u64, max_deleted_id: StreamId) {
        let inner = &mut *self.0;
        (inner.last_id, inner.entries_added) = (last_id, entries_added);
        inner.max_deleted_id = max_deleted_id;
        // Ids that may be given again are no answer to who sends an entry again.
        if let Some(idempotence) = self.idempotence()
            && idempotence.last().is_some_and(|last| last > last_id)
        {
            let memory = idempotence.memory();
            self.set_memory(memory).expect("it was valid before");
        }
    }

    /// Calls `visit` with the entries from `first` to `last`, both included, until it breaks.
    #[inline]
    pub fn walk<'a, B>(
        &'a self,
        first: StreamId,
        last: StreamId,
        mut visit: impl FnMut(Entry<'a>) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let from = self.0.nodes.floor(first).map_or(first, |(node_id, _)| *node_id);
        for (node_id, node) in self.0.nodes.from(from) {
            if *node_id > last {
                break;
            }
            for entry in node.iter_from(*node_id, first) {
                if entry.id < first {
                    continue;
                }
                if entry.id > last {
                    return Continue(());
                }
                visit(entry)?;
            }
        }
        Continue(())
    }

    /// As `walk`, from `last` to `first`.
    pub fn walk_reversed<'a, B>(
        &'a self,
        first: StreamId,
        last: StreamId,
        mut visit: impl FnMut(Entry<'a>) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        for (node_id, node) in self.0.nodes.up_to(last) {
            if node.last() < first {
                break;
            }
            for entry in node.iter_reversed(*node_id) {
                if entry.id > last {
                    continue;
                }
                if entry.id < first {
                    return Continue(());
                }
                visit(entry)?;
            }
        }
        Continue(())
    }

    /// The entry with this id.
    pub fn get(&self, id: StreamId) -> Option<Entry<'_>> {
        let (node_id, node) = self.0.nodes.floor(id)?;
        node.get(*node_id, id)
    }

    /// Number of entries from `first` to `last`, both included, or `max` if there are more.
    pub fn count(&self, first: StreamId, last: StreamId, max: usize) -> usize {
        let from = self.0.nodes.floor(first).map_or(first, |(node_id, _)| *node_id);
        let nodes = self.0.nodes.from(from).take_while(|(node_id, _)| *node_id <= last);
        let mut nodes = nodes.peekable();
        let mut count = 0;
        while let Some((node_id, node)) = nodes.next() {
            // Only at the two ends is a part of a node outside.
            count += if *node_id >= first && nodes.peek().is_some() {
                node.count as usize
            } else {
                let is_in = |entry: &Entry<'_>| (first..=last).contains(&entry.id);
                node.iter(*node_id).filter(is_in).count()
            };
            if count >= max {
                return max;
            }
        }
        count
    }

    // ---- groups ----

    /// Number of groups.
    pub fn group_count(&self) -> usize {
        self.0.groups.len()
    }

    /// The groups in the order of their names.
    pub fn groups(&self) -> impl Iterator<Item = (&[u8], &Group)> {
        self.0.groups.iter().map(|(name, group)| (&**name, &**group))
    }

    /// The group of this name.
    pub fn group(&self, name: &[u8]) -> Option<&Group> {
        self.0.groups.get(name).map(|group| &**group)
    }

    /// Changes a group, after copying it if it is shared; `None` if there is none.
    fn edit_group<R>(&mut self, name: &[u8], change: impl FnOnce(&mut Group) -> R) -> Option<R> {
        let inner = &mut *self.0;
        let group = inner.groups.get_mut(name)?;
        let before = group.bytes();
        let group = Arc::make_mut(group);
        let result = change(group);
        inner.group_bytes = inner.group_bytes + group.bytes() - before;
        Some(result)
    }

    /// Adds a group; returns false if there is one of this name.
    fn add_group(&mut self, name: &[u8], group: Group) -> bool {
        let inner = &mut *self.0;
        if inner.groups.contains_key(name) {
            return false;
        }
        inner.group_bytes += group_bytes(name, &group);
        inner.groups.insert(name.into(), Arc::new(group));
        true
    }

    /// See [`Group::delivered_until`].
    pub(crate) fn index_by_time(&mut self, group: &[u8]) {
        self.edit_group(group, Group::index_by_time);
    }

    fn remove_group(&mut self, name: &[u8]) -> bool {
        let inner = &mut *self.0;
        let Some(group) = inner.groups.remove(name) else { return false };
        inner.group_bytes -= group_bytes(name, &group);
        true
    }

    /// Whether some id from `first` on was removed other than by trimming.
    fn has_gaps_from(&self, first: StreamId) -> bool {
        let deleted = self.0.max_deleted_id;
        self.len() != 0 && !deleted.is_zero() && first <= deleted
    }

    /// How many entries were ever added up to this id, where that can be known.
    fn entries_up_to(&self, id: StreamId) -> Option<u64> {
        let (added, length, deleted) =
            (self.0.entries_added, self.len() as u64, self.0.max_deleted_id);
        if added == 0 {
            return Some(0);
        }
        if length == 0 && id <= self.0.last_id {
            return Some(added);
        }
        if !id.is_zero() && id < deleted {
            return None;
        }
        if id >= self.0.last_id {
            return (id == self.0.last_id).then_some(added);
        }
        let first = self.first_entry_id();
        if deleted.is_zero() || deleted < first {
            if id < first {
                return Some(added.saturating_sub(length));
            }
            if id == first {
                return Some(added.saturating_sub(length) + 1);
            }
        }
        None
    }

    /// How many entries a group has read once it has read `id`, if it read `before` up to
    /// `last_id`.
    pub fn read_after(&self, before: Option<u64>, last_id: StreamId, id: StreamId) -> Option<u64> {
        match before {
            Some(read) if last_id >= self.first_entry_id() && !self.has_gaps_from(last_id) => {
                Some(read.saturating_add(1))
            }
            _ if self.0.entries_added != 0 => self.entries_up_to(id),
            before => before,
        }
    }

    /// How many entries a group has yet to read, where that can be known.
    pub fn lag(&self, group: &Group) -> Option<i64> {
        let added = self.0.entries_added as i64;
        if added == 0 {
            return Some(0);
        }
        let read = match group.entries_read {
            Some(read) if !self.has_gaps_from(group.last_id) => Some(read),
            _ => self.entries_up_to(group.last_id),
        };
        read.map(|read| added.wrapping_sub(read as i64))
    }

    #[cfg(test)]
    fn check(&self) {
        let inner = &*self.0;
        inner.nodes.check();
        let nodes = || inner.nodes.iter().map(|(_, node)| node);
        assert_eq!(nodes().map(|node| node.bytes()).sum::<usize>(), inner.node_bytes);
        assert!(nodes().all(|node| node.count() == node.count as usize && node.count != 0));
        assert_eq!(nodes().map(|node| node.count()).sum::<usize>(), inner.len);
        for (id, node) in inner.nodes.iter() {
            assert_eq!(node.iter(*id).last().map(|entry| entry.id), Some(node.last()));
            assert_eq!(node.iter(*id).count(), node.count());
        }
        let groups = inner.groups.iter().map(|(name, group)| group_bytes(name, group));
        assert_eq!(groups.sum::<usize>(), inner.group_bytes);
        inner.groups.values().for_each(|group| group.check());
        if let Some(idempotence) = self.idempotence() {
            idempotence.check();
            assert!(idempotence.last().is_none_or(|last| last <= inner.last_id));
        }
    }
}

/// Bytes that a group takes in its stream.
fn group_bytes(name: &[u8], group: &Group) -> usize {
    let pointers = size_of::<Arc<[u8]>>() + size_of::<Arc<Group>>() + 2 * size_of::<usize>();
    name.len() + pointers + group.bytes()
}

impl StreamLimits {
    /// Whether a node takes another entry with so many bytes of words.
    #[inline]
    fn admit(self, node: &Node, added: usize) -> bool {
        let bytes = match self.node_bytes {
            0 => ENTRY_BYTES_MAX,
            bytes => bytes.min(ENTRY_BYTES_MAX),
        };
        node.len() + added < bytes
            && (self.node_entries == 0 || node.count_ever() < self.node_entries)
    }
}
