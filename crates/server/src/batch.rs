//! A batch: up to 64 requests, from one connection or from many. They are parsed, prefetched and
//! executed together, so that cache misses overlap and fixed costs are paid once per batch.

use crate::connection::Connection;
use crate::dialect::Dialect;
use crate::set_aside::SetAside;
use ladon_engine::{AccessedPart, Ahead, Lookahead, PartAhead};
use ladon_iproto::frame;
use ladon_kernel::command::command_id::CommandId;
use ladon_kernel::command::spec::{CommandSpec, KeyPositions, Part};
use ladon_kernel::node::Node;
use ladon_memcached::Piece;
use ladon_record::KeyHash;
use ladon_resp::{Arg, Limits, Progress, ProtocolError, parse_i64};
use ladon_tarantool::GUEST_PACKET_BYTES_MAX;
use std::ops::Range;

/// Enough requests to hide memory latency, few enough that the batch's buckets stay in the cache.
pub(crate) const REQUESTS_MAX: usize = 64;

/// Limit on consecutive empty lines and empty arrays, which contain no command.
const EMPTY_MAX: usize = 1024;

/// An argument list with more capacity than this (512 KiB) is freed after its request has run.
const ARGUMENTS_KEPT_MAX: usize = 64 * 1024;

/// With fewer keys than this, prefetching costs more than it saves.
pub(crate) const LOOKAHEAD_KEYS_MIN: usize = 3;

/// One request of the batch.
pub(crate) struct Item {
    pub(crate) slot: u32,
    /// Offset of the request in its connection's input.
    pub(crate) start: usize,
    /// Offset of the next request.
    pub(crate) end: usize,
    pub(crate) kind: ItemKind,
    pub(crate) id: Option<CommandId>,
    pub(crate) first_key: Option<KeyHash>,
    /// Number of the batch's keys that belong to this request and the earlier ones.
    pub(crate) keys_end: u32,
}

pub(crate) enum ItemKind {
    /// The arguments are in the input, at these positions of the batch's `args`.
    InPlace { first: u32, count: u32 },
    /// An inline request with quotes.
    Owned(Box<[Vec<u8>]>),
    /// The request that lent an argument and has received it back.
    Again,
    /// A packet of IPROTO, with its length.
    Packet,
    /// A piece of memcached's protocols.
    Piece,
    /// Packets that were set aside.
    SetAside,
    /// The stream is malformed from here on.
    Invalid(ProtocolError),
}

impl Item {
    /// A packet of IPROTO.
    #[inline]
    pub(crate) fn packet(slot: u32, at: Range<usize>) -> Item {
        let Range { start, end } = at;
        let kind = ItemKind::Packet;
        Item { slot, start, end, kind, id: None, first_key: None, keys_end: 0 }
    }
}

#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) items: Vec<Item>,
    /// How many of them are packets of IPROTO.
    pub(crate) packets: usize,
    /// Maximum number of requests.
    requests_max: usize,
    pub(crate) args: Vec<Arg>,
    keys: Vec<Ahead>,
    /// Parts of the keys' values that still have to be prefetched.
    insides: Vec<PartAhead>,
    /// Whether to prefetch inside the keys' values.
    looks_inside: bool,
}

/// Why gathering from a connection stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gathered {
    /// The connection has no further complete request.
    Drained,
    /// The batch is full; the connection may have more requests.
    Full,
}

impl Batch {
    pub(crate) fn is_full(&self) -> bool {
        self.items.len() >= self.requests_max
    }

    /// Empties the batch for at most `requests_max` new requests.
    pub(crate) fn clear(&mut self, node: &Node, requests_max: usize) {
        self.requests_max = requests_max;
        self.items.clear();
        self.packets = 0;
        self.args.clear();
        self.keys.clear();
        self.insides.clear();
        self.looks_inside = Lookahead::is_inside_worthwhile(&node.keyspace);
    }

    /// Frees the capacity that a very long request needed, after the batch has run.
    #[inline]
    pub(crate) fn trim(&mut self) {
        if self.args.capacity() > ARGUMENTS_KEPT_MAX {
            self.args = Vec::new();
        }
    }

    /// Parses complete requests from a connection's input. `parsed` is the position that earlier
    /// calls for this batch have reached.
    pub(crate) fn gather(
        &mut self,
        connection: &mut Connection,
        slot: u32,
        node: &Node,
        limits: &Limits,
    ) -> Gathered {
        match connection.dialect {
            Dialect::Resp(_) => self.gather_requests(connection, slot, node, limits),
            Dialect::Iproto(_) => self.gather_packets(connection, slot, node, limits),
            Dialect::Memcached(_) => self.gather_pieces(connection, slot, node),
        }
    }

    /// As `gather`, of RESP.
    #[inline]
    fn gather_requests(
        &mut self,
        connection: &mut Connection,
        slot: u32,
        node: &Node,
        limits: &Limits,
    ) -> Gathered {
        let Connection { dialect, session, input, consumed: ran, expected, .. } = connection;
        let Some(resp) = dialect.resp_mut() else { return Gathered::Drained };
        let mut start = *ran;
        let limits = limits.with_authenticated(session.authenticated);
        // The outcome of each request decides what an unauthenticated client may send next.
        let mut room = if limits.authenticated {
            self.requests_max.saturating_sub(self.items.len())
        } else {
            1
        };
        let mut empty = 0;
        if let Some(again) = &resp.again {
            let (id, keys_end) = (node.table.find(&again.args[0]), self.keys.len() as u32);
            let (end, kind) = (start, ItemKind::Again);
            self.items.push(Item { slot, start, end, kind, id, first_key: None, keys_end });
            room = room.saturating_sub(1);
        }
        while room > 0 {
            let buffer = &input[start..];
            if buffer.is_empty() {
                return Gathered::Drained;
            }
            let first = self.args.len();
            let progress = resp.parser.parse(buffer, &limits, &mut self.args);
            let (end, kind) = match progress {
                Ok(Progress::Complete { consumed }) => {
                    let count = (self.args.len() - first) as u32;
                    if count == 0 {
                        start += consumed;
                        // The parser continues after this argument once the requests before it have
                        // run.
                        match self.items.last_mut().filter(|item| item.slot == slot) {
                            Some(last) => last.end = start,
                            None => *ran = start,
                        }
                        empty += 1;
                        if empty == EMPTY_MAX {
                            return Gathered::Full;
                        }
                        continue;
                    }
                    (start + consumed, ItemKind::InPlace { first: first as u32, count })
                }
                Ok(Progress::Inline { consumed, arguments }) => {
                    (start + consumed, ItemKind::Owned(arguments.into_boxed_slice()))
                }
                Ok(Progress::Incomplete { needed }) => {
                    *expected = needed;
                    return Gathered::Drained;
                }
                Err(error) => (input.len(), ItemKind::Invalid(error)),
            };
            debug_assert!(start < end && end <= input.len(), "a request in the input");
            let (id, first_key) = match &kind {
                ItemKind::InPlace { .. } => self.look_up(node, session.db, &input[start..], first),
                ItemKind::Owned(arguments) => (node.table.find(&arguments[0]), None),
                ItemKind::Again | ItemKind::Packet | ItemKind::Piece | ItemKind::SetAside => {
                    unreachable!("no request of RESP")
                }
                ItemKind::Invalid(_) => (None, None),
            };
            let (keys_end, is_broken) =
                (self.keys.len() as u32, matches!(kind, ItemKind::Invalid(_)));
            self.items.push(Item { slot, start, end, kind, id, first_key, keys_end });
            if is_broken {
                return Gathered::Drained;
            }
            start = end;
            room -= 1;
        }
        Gathered::Full
    }

    /// As `gather`, of memcached's protocols.
    fn gather_pieces(&mut self, connection: &mut Connection, slot: u32, node: &Node) -> Gathered {
        let Connection { dialect, session: client, input, consumed, expected, .. } = connection;
        let Some(memcached) = dialect.memcached_mut() else { return Gathered::Drained };
        let session = &mut memcached.session;
        session.read_again();
        let mut start = *consumed;
        // What comes of a login decides what may follow it.
        let mut room = match client.authenticated {
            true => self.requests_max.saturating_sub(self.items.len()),
            false => 1,
        };
        while room > 0 {
            let buffer = &input[start..];
            if buffer.is_empty() {
                return Gathered::Drained;
            }
            let end = match session.gather(client, node, buffer) {
                Piece::Complete(bytes) => start + bytes,
                Piece::Incomplete(needed) => {
                    *expected = needed;
                    return Gathered::Drained;
                }
            };
            let hash =
                ladon_memcached::first_key(&input[start..end]).map(|key| node.keyspace.hash(key));
            self.keys.extend(hash.map(|hash| Ahead { db: client.db, hash }));
            let keys_end = self.keys.len() as u32;
            let kind = ItemKind::Piece;
            self.items.push(Item { slot, start, end, kind, id: None, first_key: None, keys_end });
            start = end;
            room -= 1;
        }
        Gathered::Full
    }

    /// As `gather`, of IPROTO. What was set aside and what follows in the input have their turns
    /// one after the other.
    fn gather_packets(
        &mut self,
        connection: &mut Connection,
        slot: u32,
        node: &Node,
        limits: &Limits,
    ) -> Gathered {
        match connection.dialect.has_set_aside() {
            false => self.gather_input_packets(connection, slot, node, limits),
            true => self.gather_set_aside(connection, slot, node, limits),
        }
    }

    #[cold]
    fn gather_set_aside(
        &mut self,
        connection: &mut Connection,
        slot: u32,
        node: &Node,
        limits: &Limits,
    ) -> Gathered {
        let Some(others) = set_aside(connection) else { return Gathered::Drained };
        let (is_ready, is_first, has_input) =
            (others.is_ready(), !others.had_turn, !others.holds_input);
        if is_ready && is_first {
            self.add_set_aside(connection, slot);
        }
        let room = self.requests_max;
        // One is left for them; of one in all, the next is theirs.
        self.requests_max -= usize::from(is_ready && !is_first && room > self.items.len() + 1);
        let gathered = match has_input {
            true => self.gather_input_packets(connection, slot, node, limits),
            false => Gathered::Drained,
        };
        self.requests_max = room;
        if is_ready && !is_first && !self.is_full() {
            self.add_set_aside(connection, slot);
        }
        if let Some(others) = set_aside(connection) {
            others.input_is_drained = gathered == Gathered::Drained;
        }
        // If they found no room, they have not had their turn.
        if is_ready { Gathered::Full } else { gathered }
    }

    fn add_set_aside(&mut self, connection: &Connection, slot: u32) {
        let (at, keys_end) = (connection.consumed, self.keys.len() as u32);
        let kind = ItemKind::SetAside;
        self.items.push(Item { kind, keys_end, ..Item::packet(slot, at..at) });
    }

    #[inline]
    fn gather_input_packets(
        &mut self,
        connection: &mut Connection,
        slot: u32,
        node: &Node,
        limits: &Limits,
    ) -> Gathered {
        let of_all = match node.settings.client_query_buffer_limit() {
            0 => frame::PACKET_BYTES_MAX,
            limit => limit.min(frame::PACKET_BYTES_MAX),
        };
        let of_all = of_all.min(limits.bulk_bytes_max);
        let mut start = connection.consumed;
        let keys_end = self.keys.len() as u32;
        while !self.is_full() {
            let buffer = &connection.input[start..];
            if buffer.is_empty() {
                return Gathered::Drained;
            }
            let end = match next_packet(&mut connection.dialect, buffer, node, of_all) {
                frame::Progress::Complete { end, .. } => start + end,
                frame::Progress::Incomplete { needed } => {
                    connection.expected = needed;
                    return Gathered::Drained;
                }
                // Running its length says what is wrong, and ends the connection. All of it may be here,
                // and would run.
                frame::Progress::Invalid(_) => {
                    connection.input.len().min(start + frame::LENGTH_BYTES_MAX)
                }
            };
            let kind = ItemKind::Packet;
            self.packets += 1;
            self.items.push(Item { slot, start, end, kind, id: None, first_key: None, keys_end });
            start = end;
        }
        Gathered::Full
    }

    /// Finds the command of the request that `input` begins with, whose arguments begin at `first`,
    /// and hashes its keys.
    #[inline(always)]
    fn look_up(
        &mut self,
        node: &Node,
        db: u16,
        input: &[u8],
        first: usize,
    ) -> (Option<CommandId>, Option<KeyHash>) {
        let args = &self.args[first..];
        let Some(id) = node.table.find(args[0].of(input)) else { return (None, None) };
        let spec = node.table.spec(id);
        let at = self.keys.len();
        let first_key = hash_keys(node, spec, db, args, input, &mut self.keys);
        if self.looks_inside
            && spec.part != Part::None
            && let Some(key) = first_key
        {
            let inside = inside(node, spec, args, input);
            if inside != AccessedPart::Nothing {
                let key = Ahead { db, hash: key };
                self.insides.push(PartAhead { key, at: at as u32, inside });
            }
        }
        (Some(id), first_key)
    }

    /// Prefetches for the requests after `item`, which is about to run, unless there are too few of
    /// them.
    #[inline]
    pub(crate) fn fetch_ahead(&mut self, item: usize, lookahead: &mut Lookahead<'_>) {
        if self.keys.len() >= LOOKAHEAD_KEYS_MIN {
            let next = self.items[item].keys_end as usize;
            lookahead.advance(&self.keys, next);
            lookahead.advance_inside(&self.insides, next);
        }
    }
}

/// The packet that `unread` begins with, if it is no longer than the client may send.
#[inline]
fn next_packet(dialect: &mut Dialect, unread: &[u8], node: &Node, of_all: u64) -> frame::Progress {
    let next = frame::next(unread, of_all);
    if let frame::Progress::Complete { start, end } = next
        && (end - start) as u64 <= GUEST_PACKET_BYTES_MAX
    {
        return next;
    }
    let announced = frame::announced(unread).unwrap_or(0);
    match dialect.iproto_mut() {
        Some(it) => frame::next(unread, it.session.packet_bytes_max(node, announced, of_all)),
        None => next,
    }
}

fn set_aside(connection: &mut Connection) -> Option<&mut SetAside> {
    connection.dialect.iproto_mut()?.set_aside.as_deref_mut()
}

/// Hashes a request's keys for prefetching, and returns the first one's hash if its place is easily
/// found.
#[inline]
fn hash_keys(
    node: &Node,
    spec: &CommandSpec,
    db: u16,
    args: &[Arg],
    input: &[u8],
    keys: &mut Vec<Ahead>,
) -> Option<KeyHash> {
    let (first, last, step) = match spec.keys {
        KeyPositions::Range { first, last, step } => (first, last, step),
        KeyPositions::Counted { count_at, step } => {
            let count = args.get(usize::from(count_at)).and_then(|arg| parse_i64(arg.of(input)));
            let count = usize::try_from(count.unwrap_or(0)).unwrap_or(0).min(REQUESTS_MAX);
            let found = args.iter().skip(usize::from(count_at) + 1).step_by(usize::from(step));
            let hashes = found.take(count).map(|arg| node.keyspace.hash(arg.of(input)));
            let first = keys.len();
            keys.extend(hashes.map(|hash| Ahead { db, hash }));
            return keys.get(first).map(|key| key.hash);
        }
        _ => return None,
    };
    let first = usize::from(first);
    let ahead = |hash| Ahead { db, hash };
    let hash = node.keyspace.hash(args.get(first)?.of(input));
    keys.push(ahead(hash));
    if last != 1 {
        let end = if last < 0 { args.len() } else { args.len().min(last as usize + 1) };
        let more = args[..end].iter().skip(first).step_by(usize::from(step));
        let more = more.skip(1).take(REQUESTS_MAX);
        keys.extend(more.map(|arg| ahead(node.keyspace.hash(arg.of(input)))));
    }
    Some(hash)
}

/// Which part of its first key's value a request will read. Returns nothing for a missing or
/// malformed argument.
fn inside(node: &Node, spec: &CommandSpec, args: &[Arg], input: &[u8]) -> AccessedPart {
    let argument = |at: u8| args.get(usize::from(at)).map(|arg| arg.of(input));
    match spec.part {
        Part::None => AccessedPart::Nothing,
        Part::Whole => AccessedPart::Whole,
        Part::Element(at) => argument(at).map_or(AccessedPart::Nothing, |element| {
            AccessedPart::Element(node.keyspace.hash(element))
        }),
        Part::Bit(at) => argument(at)
            .and_then(parse_i64)
            .and_then(|offset| usize::try_from(offset / 8).ok())
            .map_or(AccessedPart::Nothing, AccessedPart::Byte),
    }
}
