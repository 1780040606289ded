//! Calls of a function that does what its argument says: several statements and selections, in a
//! transaction or not, to its end or to an error in its middle.

use crate::spaces::contents::{HASHED, NUMBERED, Row};
use crate::spaces::request::{Call, Habits, Key, NAMES, Request, Selection, Statement};
use ladon_msgpack::write;
use ladon_testkit::Random;

/// The function's name, and its number in `_func`.
pub(crate) const NAME: &str = "act";
const NUMBER: u64 = 70;
/// Its text.
const TEXT: &str = include_str!("act.lua");
/// Steps, and tuples that one of them shows at most.
const STEPS: u64 = 6;
const SHOWN_MAX: u32 = 4;

/// What a call does, step after step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Procedure {
    pub(crate) steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) act: Act,
    /// Its error is shown, a row of its code, and the function goes on.
    pub(crate) is_caught: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    Write(usize, Statement),
    Select(usize, Selection),
    Begin,
    Commit,
    Rollback,
    /// An error.
    Raise,
    /// What only a program has.
    Leave,
}

impl Act {
    fn some(random: &mut Random, value: &str, habits: Habits) -> Act {
        match random.below(24) {
            0 => Act::Commit,
            1 => Act::Rollback,
            2 => Act::Begin,
            3 => Act::Raise,
            4 if random.chance(1, 2) => Act::Leave,
            _ => Act::on_data(random, value, habits),
        }
    }

    fn on_data(random: &mut Random, value: &str, habits: Habits) -> Act {
        loop {
            match Request::on_data(random, value, habits) {
                Request::Write(space, statement) => return Act::Write(space, statement),
                // All of a HASH index come in no order that is known.
                Request::Select(space, mut selection)
                    if space != HASHED || selection.key != Key::None =>
                {
                    selection.limit = selection.limit.min(SHOWN_MAX);
                    return Act::Select(space, selection);
                }
                _ => {}
            }
        }
    }

    /// Its name in Lua.
    fn name(&self) -> &'static str {
        match self {
            Act::Write(_, Statement { call, .. }) => match call {
                Call::Insert => "insert",
                Call::Replace => "replace",
                Call::Update => "update",
                Call::Upsert => "upsert",
                Call::Delete => "delete",
            },
            Act::Select(..) => "select",
            Act::Begin => "begin",
            Act::Commit => "commit",
            Act::Rollback => "rollback",
            Act::Raise => "raise",
            Act::Leave => "leave",
        }
    }
}

impl Procedure {
    /// `value` is unlike any other.
    pub(crate) fn some(random: &mut Random, value: &str, habits: Habits) -> Procedure {
        let habits = Habits { sql: false, ..habits };
        let mut acts = Vec::new();
        for at in 0..1 + random.below(STEPS) {
            acts.push(Act::some(random, &format!("{value}.{at}"), habits));
        }
        // Many are one transaction.
        if random.chance(1, 3) {
            acts.insert(0, Act::Begin);
            if random.chance(7, 8) {
                acts.push(if random.chance(3, 4) { Act::Commit } else { Act::Rollback });
            }
        }
        let caught = |act| Step { act, is_caught: random.chance(1, 2) };
        Procedure { steps: acts.into_iter().map(caught).collect() }
    }

    /// In short, for who looks at a history.
    pub(crate) fn show(&self) -> String {
        let shown = self.steps.iter().map(|Step { act, is_caught }| {
            let caught = if *is_caught { "?" } else { "" };
            let of = match act {
                Act::Write(space, it) => format!(" {space} {:?} {:?}", it.id, it.row.group),
                Act::Select(space, it) => {
                    format!(" {space}.{} {:?} {:?}", it.index, it.iterator, it.key)
                }
                _ => String::new(),
            };
            format!("{}{of}{caught}", act.name())
        });
        shown.collect::<Vec<_>>().join("; ")
    }

    /// The arguments: an array of one, the array of steps.
    pub(crate) fn arguments(&self) -> Vec<u8> {
        let mut out = Vec::new();
        write::array(&mut out, 1);
        write::array(&mut out, self.steps.len() as u32);
        for Step { act, is_caught } in &self.steps {
            let (space, index, operands) = match act {
                Act::Write(space, statement) => {
                    let index = u64::from(statement.by_group);
                    (Some(*space), index, statement.operands())
                }
                Act::Select(space, selection) => {
                    (Some(*space), selection.index.into(), selection.operands())
                }
                _ => (None, 0, Vec::new()),
            };
            write::array(&mut out, 4 + operands.len() as u32);
            write::bool(&mut out, *is_caught);
            write::str(&mut out, act.name().as_bytes());
            match space {
                Some(space) => write::str(&mut out, NAMES[space].as_bytes()),
                None => write::bool(&mut out, false),
            }
            write::uint(&mut out, index);
            operands.iter().for_each(|operand| out.extend_from_slice(operand));
        }
        out
    }
}

impl Statement {
    /// What its method gets.
    fn operands(&self) -> Vec<Vec<u8>> {
        /// Lua counts fields from 1.
        const INDEX_BASE: u64 = 1;
        let mut tuple = Vec::new();
        self.row.write(self.id, &mut tuple);
        let operations = self.encoded_operations(INDEX_BASE);
        match self.call {
            Call::Insert | Call::Replace => vec![tuple],
            Call::Upsert => vec![tuple, operations],
            Call::Update => vec![self.encoded_key(), operations],
            Call::Delete => vec![self.encoded_key()],
        }
    }

    /// Whether it may take a number of the sequence.
    pub(crate) fn may_take_number(&self, space: usize) -> bool {
        space == NUMBERED && matches!(self.call, Call::Insert | Call::Replace)
    }
}

impl Selection {
    fn operands(&self) -> Vec<Vec<u8>> {
        let mut options = Vec::new();
        write::map(&mut options, 3);
        for (name, value) in [
            ("iterator", self.iterator as u64),
            ("offset", self.offset.into()),
            ("limit", self.limit.into()),
        ] {
            write::str(&mut options, name.as_bytes());
            write::uint(&mut options, value);
        }
        vec![self.key.encoded(), options]
    }
}

/// What a caught error shows.
pub(crate) fn row_of_error(code: u32) -> Row {
    Row { id: code.into(), group: 0, text: Vec::new() }
}

/// The tuple of `_func`. `mark` makes the text unlike that of other runs: what is known of a function
/// is known by its text.
pub(crate) fn definition(mark: u64) -> Vec<u8> {
    let mut out = Vec::new();
    write::array(&mut out, 19);
    write::uint(&mut out, NUMBER);
    write::uint(&mut out, 1);
    write::str(&mut out, NAME.as_bytes());
    write::uint(&mut out, 0);
    write::str(&mut out, b"LUA");
    write::str(&mut out, format!("{TEXT}-- {mark:016x}").as_bytes());
    write::str(&mut out, b"function");
    write::array(&mut out, 0);
    write::str(&mut out, b"any");
    write::str(&mut out, b"none");
    write::str(&mut out, b"none");
    [false, false, true].iter().for_each(|it| write::bool(&mut out, *it));
    write::array(&mut out, 1);
    write::str(&mut out, b"LUA");
    write::map(&mut out, 0);
    for text in ["", "2026-01-01 00:00:00", "2026-01-01 00:00:00"] {
        write::str(&mut out, text.as_bytes());
    }
    out
}
