//! The things that clients read and change, and what a single machine would answer.

use ladon_history::Call;
use ladon_testkit::Random;
use std::collections::BTreeSet;

/// A kind of thing: one key, or two that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A string: read, written, compared and swapped by scripts and by `WATCH`.
    Text,
    /// A counter.
    Number,
    Set,
    List,
    /// Two strings, written and read in transactions.
    Pair,
}

/// What is asked. Each written value is written once in a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Get,
    Set(u64),
    /// `SET` with `GET`.
    Exchange(u64),
    /// In a script: the second value, if it has the first.
    Swap(Option<u64>, u64),
    Delete,
    /// `WATCH`, `GET`, `MULTI`, `SET`, `EXEC`: as [`Action::Swap`] of what was read.
    Watched(u64),
    Count,
    Add(u64),
    Remove(u64),
    Members,
    Push(u64),
    Pop,
    Range,
    WriteBoth(u64),
    ReadBoth,
}

/// What a thing is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum State {
    Text(Option<u64>),
    Number(i64),
    Set(BTreeSet<u64>),
    List(Vec<u64>),
    Pair([Option<u64>; 2]),
}

/// What a client sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Done,
    Text(Option<u64>),
    Number(i64),
    Set(BTreeSet<u64>),
    List(Vec<u64>),
    Pair([Option<u64>; 2]),
    /// The thing is of another kind.
    Wrong,
}

impl Kind {
    pub(crate) const ALL: [Kind; 5] = [Kind::Text, Kind::Number, Kind::Set, Kind::List, Kind::Pair];

    /// Before anything was done to it.
    pub(crate) fn initial(self) -> State {
        match self {
            Kind::Text => State::Text(None),
            Kind::Number => State::Number(0),
            Kind::Set => State::Set(BTreeSet::new()),
            Kind::List => State::List(Vec::new()),
            Kind::Pair => State::Pair([None; 2]),
        }
    }

    /// Reads all of it.
    pub(crate) fn read(self) -> Action {
        match self {
            Kind::Text | Kind::Number => Action::Get,
            Kind::Set => Action::Members,
            Kind::List => Action::Range,
            Kind::Pair => Action::ReadBoth,
        }
    }

    /// Something to do. `fresh`: a value that nobody else writes; `seen`: one that was there once.
    pub(crate) fn draw(self, random: &mut Random, fresh: u64, seen: Option<u64>) -> Action {
        if random.chance(2, 5) {
            return self.read();
        }
        match (self, random.below(5)) {
            (Kind::Text, 0) => Action::Exchange(fresh),
            (Kind::Text, 1) => Action::Swap(seen, fresh),
            (Kind::Text, 2) => Action::Watched(fresh),
            (Kind::Text, 3) if random.chance(1, 4) => Action::Delete,
            (Kind::Text, _) => Action::Set(fresh),
            (Kind::Number, _) => Action::Count,
            (Kind::Set, 0 | 1) => Action::Remove(random.below(8)),
            (Kind::Set, _) => Action::Add(random.below(8)),
            (Kind::List, 0 | 1) => Action::Pop,
            (Kind::List, _) => Action::Push(fresh),
            (Kind::Pair, _) => Action::WriteBoth(fresh),
        }
    }
}

impl Action {
    /// Whether nobody can see that it was done.
    pub(crate) fn only_reads(&self) -> bool {
        matches!(self, Action::Get | Action::Members | Action::Range | Action::ReadBoth)
    }
}

impl Call for Action {
    type State = State;
    type Answer = Answer;

    fn run(&self, state: &mut State) -> Answer {
        match (state, self) {
            (State::Text(text), action) => on_text(text, action),
            (State::Number(number), Action::Count) => {
                *number += 1;
                Answer::Number(*number)
            }
            (State::Number(number), Action::Get) => {
                Answer::Text((*number != 0).then_some(*number as u64))
            }
            (State::Set(set), Action::Add(member)) => {
                Answer::Number(i64::from(set.insert(*member)))
            }
            (State::Set(set), Action::Remove(member)) => {
                Answer::Number(i64::from(set.remove(member)))
            }
            (State::Set(set), Action::Members) => Answer::Set(set.clone()),
            (State::List(list), Action::Push(value)) => {
                list.push(*value);
                Answer::Number(list.len() as i64)
            }
            (State::List(list), Action::Pop) => {
                Answer::Text((!list.is_empty()).then(|| list.remove(0)))
            }
            (State::List(list), Action::Range) => Answer::List(list.clone()),
            (State::Pair(pair), Action::WriteBoth(value)) => {
                *pair = [Some(*value); 2];
                Answer::Done
            }
            (State::Pair(pair), Action::ReadBoth) => Answer::Pair(*pair),
            _ => Answer::Wrong,
        }
    }
}

fn on_text(text: &mut Option<u64>, action: &Action) -> Answer {
    let was = *text;
    match *action {
        Action::Get => Answer::Text(was),
        Action::Set(value) => {
            *text = Some(value);
            Answer::Done
        }
        Action::Exchange(value) => {
            *text = Some(value);
            Answer::Text(was)
        }
        Action::Swap(from, to) => {
            if was == from {
                *text = Some(to);
            }
            Answer::Text(was)
        }
        Action::Delete => {
            *text = None;
            Answer::Number(i64::from(was.is_some()))
        }
        _ => Answer::Wrong,
    }
}
