//! The spaces' contents as the oracle sees them: plain maps, and Tarantool's rules for a few shapes
//! of tuples. It shares no code with `ladon-space`.
//!
//! A tuple is `[id, group, text]`; without a text, it has nil there:
//!
//! | space | primary index | other indexes |
//! |---|---|---|
//! | `plain` | TREE, id; at times group | unique TREE, group; at times a TREE of text |
//! | `numbered` | TREE, id, filled in by a sequence | TREE of group |
//! | `hashed` | HASH, id; at times TREE | |
//! | `naming` | TREE, id | TREE of group |
//!
//! The last one is there in some runs. A foreign key binds it: its group is one of `plain`. At times, the format or the index of text demands a text.

use crate::history::shortened;
use crate::spaces::definition::Definition;
use crate::spaces::request::{
    Call, IteratorType, Key, Operation, Request, Selection, Statement, Who,
};
use ladon_msgpack::{read_array, read_str, read_uint, write};
use std::collections::BTreeMap;
use std::rc::Rc;

/// The spaces' numbers, in the order of `State::tables`.
pub(crate) const SPACES: [u32; 4] = [512, 513, 514, 515];
pub(crate) const PLAIN: usize = 0;
pub(crate) const NUMBERED: usize = 1;
pub(crate) const HASHED: usize = 2;
pub(crate) const NAMING: usize = 3;

/// Those who are granted rights to spaces: their numbers and names.
pub(crate) const USERS: [(u32, &str); 2] = [(40, "ann"), (41, "bob")];

/// Rights to a space, as `_priv` counts them.
pub(crate) mod right {
    pub(crate) const READ: u8 = 1;
    pub(crate) const WRITE: u8 = 2;
}

/// Tarantool's codes of errors.
pub(crate) mod code {
    pub(crate) const TUPLE_FOUND: u32 = 3;
    pub(crate) const MEMORY_ISSUE: u32 = 2;
    pub(crate) const ALTER_SPACE: u32 = 12;
    pub(crate) const UNSUPPORTED: u32 = 5;
    pub(crate) const FIELD_TYPE: u32 = 23;
    pub(crate) const FUNCTION_TX_ACTIVE: u32 = 30;
    pub(crate) const PROC_LUA: u32 = 32;
    pub(crate) const NO_SUCH_INDEX: u32 = 35;
    pub(crate) const WAL_IO: u32 = 40;
    pub(crate) const ACCESS_DENIED: u32 = 42;
    pub(crate) const ACTIVE_TRANSACTION: u32 = 79;
    pub(crate) const CANT_UPDATE_PRIMARY_KEY: u32 = 94;
    pub(crate) const CONFLICT: u32 = 97;
    pub(crate) const TIMEOUT: u32 = 231;
    pub(crate) const IS_NAMED: u32 = 238;
    pub(crate) const NAMES_NOBODY: u32 = 240;
}

#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) id: u64,
    pub(crate) group: u64,
    pub(crate) text: Vec<u8>,
}

impl std::fmt::Debug for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "[{}, {}, {}]", self.id, self.group, shortened(&self.text))
    }
}

impl Row {
    /// Appends the tuple; `id`: what is in its first field, nil if nothing.
    pub(crate) fn write(&self, id: Option<u64>, out: &mut Vec<u8>) {
        write::array(out, 3);
        match id {
            Some(id) => write::uint(out, id),
            None => write::nil(out),
        }
        write::uint(out, self.group);
        write_text(out, &self.text);
    }

    /// Reads a tuple; `None` if it is none of these spaces.
    pub(crate) fn read(mut tuple: &[u8]) -> Option<Row> {
        if read_array(&mut tuple).ok()? != 3 {
            return None;
        }
        let (id, group) = (read_uint(&mut tuple).ok()?, read_uint(&mut tuple).ok()?);
        let text = match tuple {
            [NIL] => Vec::new(),
            _ => {
                let text = read_str(&mut tuple).ok()?.to_vec();
                return tuple.is_empty().then_some(Row { id, group, text });
            }
        };
        Some(Row { id, group, text })
    }
}

/// Nil in MessagePack.
const NIL: u8 = 0xc0;

/// Appends a text, nil for an empty one.
pub(crate) fn write_text(out: &mut Vec<u8>, text: &[u8]) {
    match text {
        [] => write::nil(out),
        text => write::str(out, text),
    }
}

pub(crate) type Rows = Vec<Rc<Row>>;

/// A primary index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Primary {
    /// A TREE of ids.
    #[default]
    Ids,
    /// A TREE of groups.
    Groups,
    /// A HASH of ids.
    HashedIds,
}

/// A space.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Table {
    /// By what the primary index orders.
    pub(crate) rows: BTreeMap<u64, Rc<Row>>,
    pub(crate) primary: Primary,
    pub(crate) has_text_index: bool,
    /// The format demands a text.
    pub(crate) is_strict: bool,
}

/// The rows that a statement showed, took out and put in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) shown: Option<Rc<Row>>,
    pub(crate) old: Option<Rc<Row>>,
    pub(crate) new: Option<Rc<Row>>,
}

impl Change {
    /// The groups that left and came, which the foreign key reads.
    pub(crate) fn groups(&self) -> [Option<u64>; 2] {
        [&self.old, &self.new].map(|row| row.as_ref().map(|row| row.group))
    }
}

/// All that is kept of spaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) tables: [Rc<Table>; 4],
    /// The last number of the sequence of `numbered`.
    pub(crate) sequence: Option<u64>,
    /// By user and space.
    pub(crate) rights: [[u8; 4]; USERS.len()],
}

impl State {
    /// Whether a user must not do this; who is none of `USERS` may do everything. Only `_truncate`
    /// is open to all who may write the space that it is about.
    pub(crate) fn denies(&self, who: Who, request: &Request) -> bool {
        let Who::User(user) = who else { return false };
        let lacks = |space: usize, right: u8| self.rights[user][space] & right == 0;
        match request {
            Request::Select(space, _) | Request::Count(space) => lacks(*space, right::READ),
            Request::Write(space, _) | Request::Define(Definition::Truncate(space)) => {
                lacks(*space, right::WRITE)
            }
            Request::Define(_) => true,
            // A call is denied in its middle.
            Request::Call(_) | Request::Begin(_) | Request::Commit | Request::Rollback => false,
        }
    }

    /// The tuple's number, if it is put into the space with a sequence: the next one, or the given
    /// one, after which the sequence goes on.
    pub(crate) fn number(&mut self, space: usize, statement: &mut Statement) {
        let (Call::Insert | Call::Replace, NUMBERED) = (&statement.call, space) else { return };
        match statement.id {
            None => {
                let next = self.sequence.map_or(1, |last| last + 1);
                self.sequence = Some(next);
                statement.id = Some(next);
            }
            given => self.sequence = self.sequence.max(given),
        }
    }
}

/// Runs a statement that has its number, and checks the foreign key.
pub(crate) fn run(
    tables: &mut [Rc<Table>; 4],
    space: usize,
    statement: &Statement,
) -> Result<Change, u32> {
    let mut table = Table::clone(&tables[space]);
    let change = table.run(space, statement)?;
    let has_group = |space: usize, group: u64| {
        let rows = &tables[space].rows;
        rows.values().any(|row| row.group == group)
    };
    let [left, came] = change.groups();
    match space {
        NAMING if came.is_some_and(|group| !has_group(PLAIN, group)) => {
            return Err(code::NAMES_NOBODY);
        }
        PLAIN if left != came && left.is_some_and(|group| has_group(NAMING, group)) => {
            return Err(code::IS_NAMED);
        }
        _ => {}
    }
    if table != *tables[space] {
        tables[space] = Rc::new(table);
    }
    Ok(change)
}

/// The spaces that a write of one copies as well.
pub(crate) fn linked(space: usize, is_bound: bool) -> &'static [usize] {
    match space {
        PLAIN | NAMING if is_bound => &[PLAIN, NAMING],
        _ => &[],
    }
}

impl Table {
    /// The primary key.
    pub(crate) fn key(&self, row: &Row) -> u64 {
        if self.primary == Primary::Groups { row.group } else { row.id }
    }

    /// Runs a statement that has its number, whatever the foreign key says.
    pub(crate) fn run(&mut self, space: usize, statement: &Statement) -> Result<Change, u32> {
        let id = statement.id.unwrap_or(0);
        let given = Row { id, ..statement.row.clone() };
        let is_put = matches!(statement.call, Call::Insert | Call::Replace | Call::Upsert);
        let old = match statement.by_group {
            true => self.rows.values().find(|row| row.group == given.group).cloned(),
            false if is_put => self.rows.get(&self.key(&given)).cloned(),
            false => self.rows.get(&id).cloned(),
        };
        if is_put {
            self.check_text(&given)?;
        }
        let put = |table: &mut Table, row: Row| {
            table.check_group(space, &row)?;
            let (row, old) = (Rc::new(row), old.clone());
            table.rows.insert(table.key(&row), Rc::clone(&row));
            let shown = (statement.call != Call::Upsert).then(|| Rc::clone(&row));
            Ok(Change { shown, old, new: Some(row) })
        };
        match (&statement.call, old.clone()) {
            (Call::Insert, Some(_)) => Err(code::TUPLE_FOUND),
            (Call::Insert | Call::Replace, _) => put(self, given),
            (Call::Update, None) => Ok(Change::default()),
            (Call::Upsert, None) => put(self, given),
            (Call::Update | Call::Upsert, Some(old)) => {
                let new = statement.applied_to(&old);
                self.check_text(&new)?;
                match (&statement.call, self.key(&new) == self.key(&old)) {
                    (_, true) => put(self, new),
                    (Call::Update, false) if self.rows.contains_key(&self.key(&new)) => {
                        Err(code::TUPLE_FOUND)
                    }
                    (Call::Update, false) => Err(code::CANT_UPDATE_PRIMARY_KEY),
                    (_, false) => Ok(Change::default()),
                }
            }
            (Call::Delete, old) => {
                if let Some(old) = &old {
                    self.rows.remove(&self.key(old));
                }
                Ok(Change { shown: old.clone(), old, new: None })
            }
        }
    }

    pub(crate) fn check_text(&self, row: &Row) -> Result<(), u32> {
        match row.text.is_empty() && (self.is_strict || self.has_text_index) {
            true => Err(code::FIELD_TYPE),
            false => Ok(()),
        }
    }

    /// The groups of `plain` are unique.
    fn check_group(&self, space: usize, row: &Row) -> Result<(), u32> {
        let is_taken = |it: &Rc<Row>| it.group == row.group && self.key(it) != self.key(row);
        match space == PLAIN && self.rows.values().any(is_taken) {
            true => Err(code::TUPLE_FOUND),
            false => Ok(()),
        }
    }

    /// The tuples in the order of an index.
    pub(crate) fn ordered(&self, index: u32) -> Rows {
        let mut rows: Rows = self.rows.values().cloned().collect();
        // Equal ones stay in the order of the primary index.
        match index {
            0 => {}
            1 => rows.sort_by_key(|row| row.group),
            _ => rows.sort_by(|a, b| a.text.cmp(&b.text)),
        }
        rows
    }

    /// What a selection shows; of all of `hashed`, in an order of the oracle's own.
    pub(crate) fn select(&self, selection: &Selection) -> Result<Rows, u32> {
        if selection.index == 2 && !self.has_text_index {
            return Err(code::NO_SUCH_INDEX);
        }
        let compare = |row: &Rc<Row>| match (&selection.key, selection.index) {
            (Key::None, _) => std::cmp::Ordering::Equal,
            (Key::Number(key), 0) => self.key(row).cmp(key),
            (Key::Number(key), _) => row.group.cmp(key),
            (Key::Text(key), _) => row.text.cmp(key),
        };
        let is_in = |row: &Rc<Row>| match selection.iterator {
            IteratorType::Eq | IteratorType::Req => compare(row).is_eq(),
            IteratorType::All | IteratorType::Ge => compare(row).is_ge(),
            IteratorType::Gt => selection.key == Key::None || compare(row).is_gt(),
            IteratorType::Le => compare(row).is_le(),
            IteratorType::Lt => selection.key == Key::None || compare(row).is_lt(),
        };
        let mut rows = self.ordered(selection.index);
        rows.retain(is_in);
        if matches!(selection.iterator, IteratorType::Req | IteratorType::Le | IteratorType::Lt) {
            rows.reverse();
        }
        let (offset, limit) = (selection.offset as usize, selection.limit as usize);
        Ok(rows.into_iter().skip(offset).take(limit).collect())
    }
}

impl Statement {
    /// The tuple after its operations.
    fn applied_to(&self, old: &Row) -> Row {
        let mut row = old.clone();
        for operation in &self.operations {
            match operation {
                Operation::AddToGroup(more) => row.group += more,
                Operation::SetText(text) => row.text.clone_from(text),
            }
        }
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(call: Call, id: u64, group: u64) -> Statement {
        let row = Row { id: 0, group, text: Vec::new() };
        Statement { call, id: Some(id), row, by_group: false, operations: Vec::new(), sql_rows: 0 }
    }

    #[test]
    fn a_unique_group_is_taken_once() {
        let mut table = Table::default();
        assert!(table.run(PLAIN, &put(Call::Insert, 1, 5)).is_ok());
        assert_eq!(table.run(PLAIN, &put(Call::Insert, 2, 5)), Err(code::TUPLE_FOUND));
        assert_eq!(table.run(PLAIN, &put(Call::Insert, 1, 6)), Err(code::TUPLE_FOUND));
        assert!(table.run(PLAIN, &put(Call::Replace, 1, 6)).is_ok());
        assert!(table.run(NUMBERED, &put(Call::Insert, 2, 6)).is_ok());
    }

    #[test]
    fn a_selection_has_its_index_s_order() {
        let mut table = Table::default();
        for (id, group) in [(1, 3), (2, 1), (3, 3)] {
            table.run(NUMBERED, &put(Call::Replace, id, group)).unwrap();
        }
        let select = |iterator, key| {
            let selection = Selection { index: 1, iterator, key, offset: 0, limit: 9 };
            table.select(&selection).unwrap().iter().map(|row| row.id).collect::<Vec<_>>()
        };
        assert_eq!(select(IteratorType::All, Key::None), [2, 1, 3]);
        assert_eq!(select(IteratorType::Req, Key::Number(3)), [3, 1]);
        assert_eq!(select(IteratorType::Lt, Key::Number(3)), [2]);
        assert_eq!(select(IteratorType::Gt, Key::Number(1)), [1, 3]);
    }

    #[test]
    fn a_sequence_goes_on_after_what_was_given() {
        let mut state = State::default();
        let mut number = |id| {
            let mut statement = Statement { id, ..put(Call::Insert, 0, 0) };
            state.number(NUMBERED, &mut statement);
            statement.id
        };
        assert_eq!([None, Some(7), Some(3), None].map(&mut number), [1, 7, 3, 8].map(Some));
    }
}
