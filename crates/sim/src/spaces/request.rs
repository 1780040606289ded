//! Requests on spaces: what clients ask, as data and as packets.

use crate::plan::Redefine;
use crate::spaces::contents::{HASHED, NAMING, NUMBERED, PLAIN, Row, SPACES, USERS, write_text};
use crate::spaces::definition::Definition;
use crate::spaces::procedure::{NAME, Procedure};
use ladon_iproto::client::write_request;
use ladon_iproto::request::{
    Begin, Call as CallOf, Delete, Execute, IndexRef, Put, Request as Packet, Select, SpaceRef,
    Statement as Text, Update, Upsert,
};
use ladon_msgpack::write;
use ladon_testkit::Random;

/// Long enough that a few tuples make a long reply.
const LONG_TEXT_BYTES: u64 = 16_000;
/// Tuples of the spaces without a sequence.
const IDS: u64 = 10;
const GROUPS: u64 = 12;
/// Tuples of spaces that a foreign key binds, and half of their groups: few, so that they meet.
const BOUND: u64 = 3;
/// New tuples of a crowded space.
const CROWD_IDS: u64 = 1_000;
/// Rows of a statement of SQL: more than a slice of it has.
const SQL_ROWS: u64 = 40;
/// What is selected at most where the order does not matter.
const ALL: u32 = u32::MAX;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    Define(Definition),
    Select(usize, Selection),
    /// `CALL box.space.NAME:count`.
    Count(usize),
    Write(usize, Statement),
    Call(Procedure),
    /// With its milliseconds, if it has a timeout.
    Begin(Option<u64>),
    Commit,
    Rollback,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Insert,
    Replace,
    Update,
    Upsert,
    Delete,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Statement {
    pub(crate) call: Call,
    /// The primary key; of a tuple without one, the sequence's number once it is known.
    pub(crate) id: Option<u64>,
    /// The other fields.
    pub(crate) row: Row,
    /// The key is the row's group, in the index of groups.
    pub(crate) by_group: bool,
    pub(crate) operations: Vec<Operation>,
    /// Rows that it puts as a statement of SQL, with ids one after the other; 0 of none.
    pub(crate) sql_rows: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    AddToGroup(u64),
    SetText(Vec<u8>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Selection {
    pub(crate) index: u32,
    pub(crate) iterator: IteratorType,
    pub(crate) key: Key,
    pub(crate) offset: u32,
    pub(crate) limit: u32,
}

/// Iterators with their numbers in the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IteratorType {
    Eq = 0,
    Req = 1,
    All = 2,
    Lt = 3,
    Le = 4,
    Ge = 5,
    Gt = 6,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    None,
    Number(u64),
    Text(Vec<u8>),
}

/// What a seed's clients do besides the usual.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Habits {
    /// They change formats and primary indexes, and leave out texts.
    pub(crate) redefine: Option<Redefine>,
    /// They add ever new tuples to `hashed`.
    pub(crate) crowd: bool,
    /// There is `naming`, which a foreign key binds to `plain`, and they mostly work on these two.
    pub(crate) binds: bool,
    /// Some of them are users of whom an admin changes the rights.
    pub(crate) users: bool,
    /// Some of what they write is a statement of SQL.
    pub(crate) sql: bool,
    /// They call a function.
    pub(crate) calls: bool,
}

/// The user that a client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// May do everything, but grant.
    Guest,
    Admin,
    /// One of `USERS`.
    User(usize),
}

impl Who {
    /// The client's of this place.
    pub(crate) fn at(place: usize, habits: Habits) -> Who {
        match place {
            0 if habits.users => Who::Admin,
            place if habits.users && place <= USERS.len() => Who::User(place - 1),
            _ => Who::Guest,
        }
    }
}

impl Habits {
    fn space(self, random: &mut Random) -> usize {
        if self.binds && random.chance(2, 3) {
            return random.pick(&[PLAIN, NAMING]);
        }
        random.below(3) as usize
    }
}

fn text(random: &mut Random, value: &str, habits: Habits) -> Vec<u8> {
    if habits.redefine.is_some() && random.chance(1, 16) {
        return Vec::new();
    }
    let mut text = value.as_bytes().to_vec();
    if random.chance(1, 4) {
        text.resize(1 + random.below(LONG_TEXT_BYTES) as usize, b'x');
    }
    text
}

/// A statement; `value` is unlike any other.
fn statement(random: &mut Random, value: &str, habits: Habits) -> Request {
    let space = habits.space(random);
    let id = match space {
        NUMBERED => 1 + random.below(3 * IDS),
        HASHED if habits.crowd && random.chance(2, 3) => random.below(CROWD_IDS),
        PLAIN | NAMING if habits.binds => random.below(BOUND),
        _ => random.below(IDS),
    };
    let call = match random.below(8) {
        0 | 1 => Call::Insert,
        2 | 3 => Call::Replace,
        4 | 5 => Call::Update,
        6 => Call::Upsert,
        _ => Call::Delete,
    };
    let is_put = matches!(call, Call::Insert | Call::Replace);
    let takes_number = space == NUMBERED && is_put && random.chance(3, 4);
    let groups = match space {
        NUMBERED => 4,
        PLAIN | NAMING if habits.binds => 2 * BOUND,
        _ => GROUPS,
    };
    let row = Row { id: 0, group: random.below(groups), text: text(random, value, habits) };
    let mut operations = Vec::new();
    if matches!(call, Call::Update | Call::Upsert) {
        if random.chance(2, 3) {
            operations.push(Operation::AddToGroup(1 + random.below(2)));
        }
        if operations.is_empty() || random.chance(1, 3) {
            operations.push(Operation::SetText(text(random, value, habits)));
        }
    }
    let by_group =
        space == PLAIN && matches!(call, Call::Update | Call::Delete) && random.chance(1, 3);
    let id = (!takes_number).then_some(id);
    let mut statement = Statement { call, id, row, by_group, operations, sql_rows: 0 };
    if habits.sql && random.chance(1, 3) && statement.is_for_sql(space, habits) {
        statement.sql_rows = 1;
        if (space, call) == (HASHED, Call::Replace) && random.chance(1, 2) {
            statement.sql_rows += random.below(SQL_ROWS);
        }
    }
    Request::Write(space, statement)
}

fn selection(random: &mut Random, habits: Habits) -> Request {
    let space = habits.space(random);
    let index = match space {
        PLAIN => random.pick(&[0, 0, 1, 1, 2]),
        NUMBERED | NAMING => random.below(2) as u32,
        _ => 0,
    };
    let key = match index {
        _ if random.chance(1, 4) => Key::None,
        2 => Key::Text(vec![b'0' + random.below(10) as u8]),
        _ => Key::Number(random.below(GROUPS)),
    };
    if space == HASHED {
        let iterator = if key == Key::None { IteratorType::All } else { IteratorType::Eq };
        return Request::Select(space, Selection { index, iterator, key, offset: 0, limit: ALL });
    }
    use IteratorType as I;
    let iterator = random.pick(&[I::Eq, I::Eq, I::Req, I::All, I::Lt, I::Le, I::Ge, I::Gt]);
    let (offset, limit) = match random.below(3) {
        0 => (random.below(3) as u32, 1 + random.below(4) as u32),
        1 => (0, 1),
        _ => (0, ALL),
    };
    Request::Select(space, Selection { index, iterator, key, offset, limit })
}

impl Request {
    /// A request on data; `value` is unlike any other.
    pub(crate) fn on_data(random: &mut Random, value: &str, habits: Habits) -> Request {
        match random.below(20) {
            0 => Request::Count(random.below(3) as usize),
            1..9 => selection(random, habits),
            _ => statement(random, value, habits),
        }
    }

    /// A statement that shows the same whatever others change.
    pub(crate) fn of_no_conflict(random: &mut Random, value: &str, habits: Habits) -> Request {
        // Most are about what the foreign key reads again.
        let only_bound = habits.binds && random.chance(3, 4);
        loop {
            let request = statement(random, value, habits);
            let Request::Write(space, Statement { call, id, .. }) = &request else { continue };
            let is_quiet = matches!(call, Call::Replace | Call::Upsert)
                || *call == Call::Insert && id.is_none();
            // A foreign key of these may conflict, and is to be asked.
            let is_bound =
                habits.binds && (*space == PLAIN || *space == NAMING && *call == Call::Upsert);
            let is_other = !only_bound && matches!(*space, NUMBERED | HASHED);
            if is_quiet && (is_bound || is_other) {
                return request;
            }
        }
    }

    /// Appends the packet.
    pub(crate) fn write(&self, sync: u64, stream: u64, out: &mut Vec<u8>) {
        let mut send = |packet: Packet<'_>| write_request(out, sync, stream, &packet);
        match self {
            Request::Begin(timeout_ms) => {
                let timeout_seconds = timeout_ms.map(|ms| ms as f64 / 1000.0);
                send(Packet::Begin(Begin { timeout_seconds, ..Begin::default() }));
            }
            Request::Commit => send(Packet::Commit(None)),
            Request::Rollback => send(Packet::Rollback),
            Request::Count(space) => {
                let name = format!("box.space.{}:count", NAMES[*space]);
                send(Packet::Call(CallOf { name: name.as_bytes(), arguments: &[0x90] }));
            }
            Request::Select(space, selection) => {
                let key = selection.key.encoded();
                send(Packet::Select(Select {
                    space: SpaceRef::Id(SPACES[*space]),
                    index: IndexRef::Id(selection.index),
                    iterator: selection.iterator as u32,
                    offset: selection.offset,
                    limit: selection.limit,
                    key: &key,
                    fetch_position: false,
                    after_position: None,
                    after_tuple: None,
                }));
            }
            Request::Write(space, statement) => statement.send(*space, send),
            Request::Call(procedure) => {
                let arguments = procedure.arguments();
                send(Packet::Call(CallOf { name: NAME.as_bytes(), arguments: &arguments }));
            }
            Request::Define(definition) => definition.send(send),
        }
    }
}

/// The spaces' names.
pub(crate) const NAMES: [&str; 4] = ["plain", "numbered", "hashed", "naming"];

impl Key {
    pub(crate) fn encoded(&self) -> Vec<u8> {
        let mut key = Vec::new();
        write::array(&mut key, u32::from(*self != Key::None));
        match self {
            Key::None => {}
            Key::Number(number) => write::uint(&mut key, *number),
            Key::Text(text) => write::str(&mut key, text),
        }
        key
    }
}

impl Statement {
    /// Whether SQL means the same by it: its primary key is the id, its REPLACE takes away no row
    /// that has one of its keys of another index, and no null is where none may be.
    fn is_for_sql(&self, space: usize, habits: Habits) -> bool {
        let has_text = |text: &[u8]| !text.is_empty();
        let sets_text = self.operations.iter().all(|operation| match operation {
            Operation::SetText(text) => has_text(text),
            Operation::AddToGroup(_) => true,
        });
        match self.call {
            Call::Insert => has_text(&self.row.text),
            Call::Replace => space != PLAIN && has_text(&self.row.text),
            Call::Update => habits.redefine.is_none() && !self.by_group && sets_text,
            Call::Delete => habits.redefine.is_none() && !self.by_group,
            Call::Upsert => false,
        }
    }

    /// The rows that it puts, each a statement of its own.
    pub(crate) fn rows(&self) -> impl Iterator<Item = Statement> {
        (0..self.sql_rows.max(1)).map(|at| Statement {
            id: self.id.map(|id| id + at),
            sql_rows: self.sql_rows.min(1),
            ..self.clone()
        })
    }

    /// Its text and parameters in SQL.
    fn sql(&self, space: usize) -> (String, Vec<u8>) {
        let name = NAMES[space];
        let mut values: Vec<Vec<u8>> = Vec::new();
        let mut value = |write: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = Vec::new();
            write(&mut bytes);
            values.push(bytes);
        };
        let text = match self.call {
            Call::Update => {
                let mut sets = Vec::new();
                for operation in &self.operations {
                    match operation {
                        Operation::AddToGroup(more) => {
                            sets.push(r#""group" = "group" + ?"#);
                            value(&|out| write::uint(out, *more));
                        }
                        Operation::SetText(text) => {
                            sets.push(r#""text" = ?"#);
                            value(&|out| write::str(out, text));
                        }
                    }
                }
                value(&|out| write::uint(out, self.id.unwrap_or(0)));
                format!(r#"UPDATE "{name}" SET {} WHERE "id" = ?"#, sets.join(", "))
            }
            Call::Delete => {
                value(&|out| write::uint(out, self.id.unwrap_or(0)));
                format!(r#"DELETE FROM "{name}" WHERE "id" = ?"#)
            }
            call => {
                for row in self.rows() {
                    value(&|out| match row.id {
                        Some(id) => write::uint(out, id),
                        None => write::nil(out),
                    });
                    value(&|out| write::uint(out, row.row.group));
                    value(&|out| write::str(out, &row.row.text));
                }
                let rows = vec!["(?, ?, ?)"; self.sql_rows as usize].join(", ");
                let how = if call == Call::Replace { "REPLACE" } else { "INSERT" };
                format!(r#"{how} INTO "{name}" VALUES {rows}"#)
            }
        };
        let mut bind = Vec::new();
        write::array(&mut bind, values.len() as u32);
        values.iter().for_each(|value| bind.extend_from_slice(value));
        (text, bind)
    }

    fn send(&self, space: usize, mut send: impl FnMut(Packet<'_>)) {
        if self.sql_rows > 0 {
            let (text, bind) = self.sql(space);
            let statement = Text::Text(text.as_bytes());
            return send(Packet::Execute(Execute { statement, bind: Some(&bind) }));
        }
        let mut tuple = Vec::new();
        self.row.write(self.id, &mut tuple);
        let key = self.encoded_key();
        let operations = self.encoded_operations(0);
        let (space, index) = (SpaceRef::Id(SPACES[space]), IndexRef::Id(u32::from(self.by_group)));
        let (tuple, key, operations, index_base) = (&tuple[..], &key[..], &operations[..], 0);
        send(match self.call {
            Call::Insert => Packet::Insert(Put { space, tuple }),
            Call::Replace => Packet::Replace(Put { space, tuple }),
            Call::Update => Packet::Update(Update { space, index, index_base, key, operations }),
            Call::Upsert => Packet::Upsert(Upsert { space, index_base, tuple, operations }),
            Call::Delete => Packet::Delete(Delete { space, index, key }),
        });
    }

    pub(crate) fn encoded_key(&self) -> Vec<u8> {
        let number = if self.by_group { self.row.group } else { self.id.unwrap_or(0) };
        Key::Number(number).encoded()
    }

    /// `index_base`: the number of the first field.
    pub(crate) fn encoded_operations(&self, index_base: u64) -> Vec<u8> {
        let mut out = Vec::new();
        write::array(&mut out, self.operations.len() as u32);
        for operation in &self.operations {
            write::array(&mut out, 3);
            match operation {
                Operation::AddToGroup(more) => {
                    write::str(&mut out, b"+");
                    write::uint(&mut out, index_base + 1);
                    write::uint(&mut out, *more);
                }
                Operation::SetText(text) => {
                    write::str(&mut out, b"=");
                    write::uint(&mut out, index_base + 2);
                    write_text(&mut out, text);
                }
            }
        }
        out
    }
}

/// Appends a tuple of `_space`, but for its last field, the format.
pub(crate) fn space(out: &mut Vec<u8>, space: usize) {
    write::array(out, 7);
    write::uint(out, SPACES[space].into());
    write::uint(out, 1);
    write::str(out, NAMES[space].as_bytes());
    write::str(out, b"memtx");
    write::uint(out, 0);
    if space != NAMING {
        return write::map(out, 0);
    }
    write::map(out, 1);
    write::str(out, b"foreign_key");
    write::map(out, 1);
    write::str(out, b"of_group");
    write::map(out, 2);
    write::str(out, b"space");
    write::uint(out, SPACES[PLAIN].into());
    write::str(out, b"field");
    write::map(out, 1);
    write::uint(out, 1);
    write::uint(out, 1);
}

/// Appends a tuple of `_index`.
pub(crate) fn index(
    out: &mut Vec<u8>,
    space: usize,
    (id, name, kind): (u64, &str, &str),
    is_unique: bool,
    (field, field_type): (u64, &str),
) {
    write::array(out, 6);
    write::uint(out, SPACES[space].into());
    write::uint(out, id);
    write::str(out, name.as_bytes());
    write::str(out, kind.as_bytes());
    write::map(out, 1);
    write::str(out, b"unique");
    write::bool(out, is_unique);
    write::array(out, 1);
    write::array(out, 2);
    write::uint(out, field);
    write::str(out, field_type.as_bytes());
}
