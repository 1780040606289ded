//! Makes the spaces as a connector does, and reads back what a recovery has found of them.

use crate::node::SimNode;
use crate::spaces::contents::{
    HASHED, NAMING, NUMBERED, PLAIN, Primary, Row, SPACES, State, Table, USERS,
};
use crate::spaces::definition::{ALL_RIGHTS, format, grant, grant_key};
use crate::spaces::procedure;
use crate::spaces::request::{Habits, Who, index, space};
use ladon_engine::{Keyspace, Scratch};
use ladon_iproto::auth::{Credentials, StoredPassword, scramble};
use ladon_iproto::client::{Reply, write_request};
use ladon_iproto::greeting::{self, GREETING_BYTES};
use ladon_iproto::request::{Auth, Put, Request, SpaceRef};
use ladon_iproto::{Progress, frame};
use ladon_msgpack::{read_array, read_uint, write};
use ladon_net::ConnId;
use ladon_space::{FieldType, Index, IndexKind, Space, Written};
use ladon_system_spaces as system;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The password of `admin`.
pub(crate) const PASSWORD: &str = "secret";

const SEQUENCE: u64 = 1;

/// Whether the spaces are there.
pub(crate) fn is_done(keyspace: &Keyspace) -> bool {
    keyspace.spaces.catalog().get(SPACES[0]).is_some()
}

/// Makes the spaces; all of it is on the disk then. Nothing fails meanwhile.
pub(crate) fn make(node: &mut SimNode, slot: u32, habits: Habits) -> Result<(), String> {
    let mut admin = Session::log_in(node, (0, slot), "admin")?;
    let mut tuples = definitions(habits.binds);
    if habits.users {
        tuples.extend(users());
    }
    if habits.crowd {
        tuples.extend(crowd());
    }
    if habits.calls {
        /// How many of this process have them.
        static MARK: AtomicU64 = AtomicU64::new(0);
        tuples.push((system::FUNC, procedure::definition(MARK.fetch_add(1, Relaxed))));
    }
    admin.replace(node, &tuples);
    let mut answered = 0;
    for _ in 0..10_000 {
        answered += admin.turn(node)?;
        if answered == tuples.len() {
            return Ok(());
        }
    }
    Err("the definitions are not answered".to_owned())
}

/// A connection that has logged in.
///
/// # Errors
/// If the login is refused.
pub(crate) fn log_in(node: &mut SimNode, at: (usize, u32), who: Who) -> Result<ConnId, String> {
    let name = if let Who::User(user) = who { USERS[user].1 } else { "admin" };
    Session::log_in(node, at, name).map(|client| client.conn)
}

/// A connection of somebody to a thread.
struct Session {
    worker: usize,
    conn: ConnId,
    input: Vec<u8>,
}

impl Session {
    fn log_in(
        node: &mut SimNode,
        (worker, slot): (usize, u32),
        name: &str,
    ) -> Result<Session, String> {
        let conn = node.connect_iproto(worker, slot);
        let mut admin = Session { worker, conn, input: Vec::new() };
        admin.take_in(node);
        let greeting = admin.input.first_chunk::<GREETING_BYTES>().ok_or("no greeting")?;
        let salt = greeting::read(greeting).ok_or("a greeting that is none")?.salt;
        admin.input.drain(..GREETING_BYTES);
        let mut credentials = Vec::new();
        Credentials::ChapSha1(scramble(PASSWORD.as_bytes(), &salt)).write(&mut credentials);
        let auth = Request::Auth(Auth { user_name: name.as_bytes(), tuple: &credentials });
        let mut packet = Vec::new();
        write_request(&mut packet, 0, 0, &auth);
        node.threads.receive(worker, admin.conn, &packet);
        for _ in 0..100 {
            if admin.turn(node)? == 1 {
                return Ok(admin);
            }
        }
        Err("the login is not answered".to_owned())
    }

    fn replace(&self, node: &SimNode, tuples: &[(u32, Vec<u8>)]) {
        let mut packets = Vec::new();
        for (at, (space, tuple)) in tuples.iter().enumerate() {
            let put = Put { space: SpaceRef::Id(*space), tuple };
            write_request(&mut packets, 1 + at as u64, 0, &Request::Replace(put));
        }
        node.threads.receive(self.worker, self.conn, &packets);
    }

    /// Has a turn done; returns how many requests were answered. An error is one.
    fn turn(&mut self, node: &mut SimNode) -> Result<usize, String> {
        self.take_in(node);
        let (mut answered, mut done) = (0, 0);
        while let Progress::Complete { start, end } =
            frame::next(&self.input[done..], frame::PACKET_BYTES_MAX)
        {
            let reply = Reply::decode(&self.input[done..][start..end]);
            if let Some(error) = reply.map_err(|error| error.to_string())?.error {
                return Err(format!("reply {answered}: {}", error.escape_ascii()));
            }
            answered += 1;
            done += end;
        }
        self.input.drain(..done);
        Ok(answered)
    }

    fn take_in(&mut self, node: &mut SimNode) {
        node.pass_time_us(1_000);
        node.threads.turn(self.worker, false);
        node.threads.write();
        for (conn, bytes) in std::mem::take(&mut node.threads.wire(self.worker).sent) {
            self.input.extend_from_slice(&bytes);
            node.threads.worker(self.worker).sent(conn, bytes);
        }
    }
}

/// With a few more, a segment of a HASH index is divided more often than not.
const CROWD: u64 = 448;
/// What a HASH index takes at least that has two segments, each of them a page.
const DIVIDED_BYTES: usize = 2 * 4096;
/// The first one's, behind those that clients choose.
const CROWD_FIRST: u64 = 1_000;

/// Tuples that fill `hashed`.
fn crowd() -> impl Iterator<Item = (u32, Vec<u8>)> {
    (CROWD_FIRST..CROWD_FIRST + CROWD).map(|id| {
        let mut tuple = Vec::new();
        Row { id, group: 0, text: b"one of many".to_vec() }.write(Some(id), &mut tuple);
        (SPACES[HASHED], tuple)
    })
}

/// Tuples of system spaces.
fn definitions(binds: bool) -> Vec<(u32, Vec<u8>)> {
    let mut definitions = Vec::new();
    let is_there = |space: &usize| binds || *space != NAMING;
    for at in (0..SPACES.len()).filter(is_there) {
        let mut tuple = Vec::new();
        space(&mut tuple, at);
        format(&mut tuple, false);
        definitions.push((system::SPACE, tuple));
    }
    let indexes = [
        (PLAIN, (0, "primary", "tree"), true),
        (PLAIN, (1, "group", "tree"), true),
        (NUMBERED, (0, "primary", "tree"), true),
        (NUMBERED, (1, "group", "tree"), false),
        (HASHED, (0, "primary", "hash"), true),
        (NAMING, (0, "primary", "tree"), true),
        (NAMING, (1, "group", "tree"), false),
    ];
    for (space, of, is_unique) in indexes.into_iter().filter(|(space, ..)| is_there(space)) {
        let mut tuple = Vec::new();
        // The number of an index is that of its field.
        index(&mut tuple, space, of, is_unique, (of.0, "unsigned"));
        definitions.push((system::INDEX, tuple));
    }
    let mut sequence = Vec::new();
    write::array(&mut sequence, 9);
    write::uint(&mut sequence, SEQUENCE);
    write::uint(&mut sequence, 1);
    write::str(&mut sequence, b"numbers");
    // Step, smallest, largest, first, cache.
    [1, 1, 1_000_000, 1, 0].iter().for_each(|number| write::uint(&mut sequence, *number));
    write::bool(&mut sequence, false);
    definitions.push((system::SEQUENCE, sequence));
    let mut filler = Vec::new();
    write::array(&mut filler, 5);
    write::uint(&mut filler, SPACES[NUMBERED].into());
    write::uint(&mut filler, SEQUENCE);
    write::bool(&mut filler, true);
    write::uint(&mut filler, 0);
    write::str(&mut filler, b"");
    definitions.push((system::SPACE_SEQUENCE, filler));
    // Guests may do everything: read, write, execute, log in, and create, drop and alter.
    let mut privilege = Vec::new();
    grant(&mut privilege, (0, "universe", 0), 255);
    definitions.push((system::PRIV, privilege));
    definitions
}

/// Tuples of `_user` and `_priv`: users who may log in, call, do what everybody may, such as write
/// `_truncate`, and everything with the tuples of three spaces, at first.
fn users() -> impl Iterator<Item = (u32, Vec<u8>)> {
    /// Also the right to have a role.
    const EXECUTE: u8 = 4;
    /// With session and usage.
    const RIGHTS: u8 = EXECUTE | 8 | 16;
    /// The role that everybody has.
    const PUBLIC: u32 = 2;
    USERS.iter().flat_map(|(id, name)| {
        let mut user = Vec::new();
        write::array(&mut user, 7);
        write::uint(&mut user, (*id).into());
        write::uint(&mut user, 1);
        write::str(&mut user, name.as_bytes());
        write::str(&mut user, b"user");
        StoredPassword::chap_sha1(PASSWORD.as_bytes()).write_map(&mut user);
        write::array(&mut user, 0);
        write::uint(&mut user, 0);
        let mut privilege = Vec::new();
        grant(&mut privilege, (*id, "universe", 0), RIGHTS);
        let mut role = Vec::new();
        grant(&mut role, (*id, "role", PUBLIC), EXECUTE);
        let mut all = vec![(system::USER, user), (system::PRIV, privilege), (system::PRIV, role)];
        all.extend([PLAIN, NUMBERED, HASHED].map(|space| {
            let mut privilege = Vec::new();
            grant(&mut privilege, (*id, "space", SPACES[space]), ALL_RIGHTS);
            (system::PRIV, privilege)
        }));
        all
    })
}

/// What there is in the spaces, if their indexes agree with each other.
pub(crate) fn found(keyspace: &Keyspace) -> Result<State, String> {
    let mut scratch = Scratch::default();
    let catalog = keyspace.spaces.catalog();
    let mut state = State::default();
    for (at, id) in SPACES.into_iter().enumerate() {
        if at == NAMING && catalog.get(id).is_none() {
            continue;
        }
        let begun = keyspace.begin_on_spaces(&catalog, &[id], &mut scratch);
        let mut tx = begun.map_err(|error| error.to_string())?;
        state.tables[at] = Rc::new(table(tx.space(id))?);
    }
    let ids = [system::SEQUENCE_DATA];
    let begun = keyspace.begin_on_spaces(&catalog, &ids, &mut scratch);
    let mut tx = begun.map_err(|error| error.to_string())?;
    let mut key = vec![0x91];
    write::uint(&mut key, SEQUENCE);
    let data = tx.space(system::SEQUENCE_DATA).get(0, &key).map_err(|error| error.to_string())?;
    if let Some(data) = data {
        let mut bytes = data.bytes();
        let mut number = || {
            read_array(&mut bytes).ok().and_then(|_| {
                read_uint(&mut bytes).ok()?;
                read_uint(&mut bytes).ok()
            })
        };
        state.sequence = Some(number().ok_or("a sequence without a number")?);
    }
    drop(tx);
    state.rights = rights(keyspace)?;
    Ok(state)
}

/// What `_priv` says that users were granted of spaces.
fn rights(keyspace: &Keyspace) -> Result<[[u8; SPACES.len()]; USERS.len()], String> {
    let (mut scratch, catalog) = (Scratch::default(), keyspace.spaces.catalog());
    let begun = keyspace.begin_on_spaces(&catalog, &[system::PRIV], &mut scratch);
    let mut tx = begun.map_err(|error| error.to_string())?;
    let mut rights = [[0; SPACES.len()]; USERS.len()];
    for (user, space) in
        (0..USERS.len()).flat_map(|user| (0..SPACES.len()).map(move |it| (user, it)))
    {
        let mut key = Vec::new();
        grant_key(&mut key, user, space);
        let granted = tx.space(system::PRIV).get(0, &key).map_err(|error| error.to_string())?;
        // The last byte of the tuple, which is a small number.
        rights[user][space] = granted.and_then(|it| it.bytes().last().copied()).unwrap_or(0);
    }
    Ok(rights)
}

/// Whether `hashed` has a HASH index of several segments.
pub(crate) fn is_divided(keyspace: &Keyspace) -> Result<bool, String> {
    let (id, mut scratch) = (SPACES[HASHED], Scratch::default());
    let catalog = keyspace.spaces.catalog();
    let begun = keyspace.begin_on_spaces(&catalog, &[id], &mut scratch);
    let mut tx = begun.map_err(|error| error.to_string())?;
    let is_divided =
        |index: &Index| index.def().kind == IndexKind::Hash && index.bytes() >= DIVIDED_BYTES;
    Ok(tx.space(id).index(0).is_some_and(is_divided))
}

fn table(space: &Space) -> Result<Table, String> {
    let name = &space.def().name;
    let primary = space.index(0).map(|index| index.def());
    let primary = match primary.map(|def| (def.kind, def.parts[0].field)) {
        Some((IndexKind::Tree, 0)) => Primary::Ids,
        Some((IndexKind::Tree, 1)) => Primary::Groups,
        Some((IndexKind::Hash, 0)) => Primary::HashedIds,
        _ => return Err(format!("{name} has no such primary index: {:?}", space.def())),
    };
    let mut table = Table {
        rows: BTreeMap::new(),
        primary,
        has_text_index: space.index(2).is_some(),
        is_strict: space.def().format.fields.iter().any(|field| field.kind == FieldType::String),
    };
    for at in space.indexes() {
        let rows: Option<Vec<Row>> = at.tuples().map(|tuple| Row::read(tuple.bytes())).collect();
        let rows = rows.ok_or_else(|| format!("a tuple of {name} cannot be read"))?;
        let id = at.def().id;
        if id == 0 {
            table.rows = rows.into_iter().map(|row| (table.key(&row), Rc::new(row))).collect();
            let count = table.rows.len() as u64;
            if count != space.len() {
                return Err(format!("{name} says it has {} tuples: {count}", space.len()));
            }
            continue;
        }
        debug_assert!(at.def().kind == IndexKind::Tree);
        let expected = table.ordered(id);
        if !rows.iter().eq(expected.iter().map(|row| &**row)) {
            return Err(format!("index {id} of {name} has {rows:?}, and the first {expected:?}"));
        }
    }
    Ok(table)
}

/// Makes recovery err: a canary.
pub(crate) fn forget_indexes(keyspace: &Keyspace) {
    let mut scratch = Scratch::default();
    let catalog = keyspace.spaces.catalog();
    for id in SPACES {
        // Not there in a node's first life.
        let Ok(mut tx) = keyspace.begin_on_spaces(&catalog, &[id], &mut scratch) else { continue };
        let written = tx.write(id, |space| {
            space.begin_loading();
            Ok(Written::default())
        });
        debug_assert!(written.is_ok());
        tx.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SimClock;
    use crate::plan::{Canary, Plan};
    use ladon_engine::{Garbage, PreparationLimits};
    use ladon_sim_disk::SimDisk;
    use ladon_testkit::Random;
    use std::sync::Arc;

    /// Otherwise definitions could leave more than is freed.
    #[test]
    fn a_long_definition_waits_for_what_earlier_ones_have_left() {
        let mut random = Random::new(1);
        let mut plan = Plan::of_crowd(&mut random);
        (plan.spaces, plan.preparation_limits) = (Some(1), PreparationLimits::default());
        let (disk, clock) = (SimDisk::new(1), Arc::new(SimClock::new()));
        let node = SimNode::start(&disk, &clock, &plan, &mut random, Canary::None);
        let mut node = node.expect("an empty disk");
        let habits = Habits { crowd: true, ..Habits::default() };
        make(&mut node, 0, habits).expect("spaces");
        let mut admin = Session::log_in(&mut node, (0, 1), "admin").expect("a login");
        let mut tuple = Vec::new();
        index(&mut tuple, HASHED, (1, "group", "tree"), false, (1, "unsigned"));
        let parts = node.node();
        parts.lazy_free.add(vec![Garbage::of_definition((), 65 << 20)]);
        admin.replace(&node, &[(system::INDEX, tuple)]);
        for _ in 0..200 {
            assert_eq!(admin.turn(&mut node), Ok(0), "it waits");
        }
        assert!(parts.lazy_free.free_next(usize::MAX));
        let answered = (0..200).map(|_| admin.turn(&mut node).expect("no error")).sum::<usize>();
        assert_eq!(answered, 1);
    }
}
