//! What data of each shape take in memory, and how fast they come in.

use std::time::{Duration, Instant};

use crate::load::plain::Plain;
use crate::load::question::Question;
use crate::load::types::{hash, list, sorted_set};
use crate::operation::{Answer, Operation, OperationKind};
use crate::results::schema::Round;
use crate::run::cell::CellError;
use crate::run::stage::{BULK_USERS, Stage};
use crate::systems::cleanup;
use crate::works::memory::{
    Data, ELEMENTS, FIELDS, MEMBERS, SHAPES, TOGETHER, TUPLE, elements, things,
};

/// However slow a store is, no shape is loaded for longer.
const LOAD_MAX: Duration = Duration::from_secs(60);
const LOAD_MAX_SMALL: Duration = Duration::from_secs(3);

/// Loads the shape of `part` into a server of its own.
pub(super) fn run(stage: &mut Stage<'_>, part: &str) -> Result<(), CellError> {
    let shape = SHAPES.iter().chain([&TUPLE]).find(|shape| shape.part[0] == part);
    let shape = shape.ok_or_else(|| CellError::Broken(format!("no shape {part}")))?;
    match shape.data {
        Data::Strings { key_bytes, value_bytes } => {
            load_strings(stage, part, key_bytes, value_bytes)
        }
        Data::Sets => load_members(stage, part),
        Data::SortedSet => load_sorted_set(stage, part),
        Data::Hashes => load_hashes(stage, part),
        Data::Lists => load_lists(stage, part),
        Data::Tuples => load_tuples(stage, part),
    }
}

fn load_strings(
    stage: &mut Stage<'_>,
    part: &str,
    key_bytes: usize,
    value_bytes: usize,
) -> Result<(), CellError> {
    // The first letter distinguishes the shapes; the number of digits fills the rest.
    let letter = char::from(b'a' + (key_bytes % 26) as u8);
    let set = move |number: u32| Operation::Set {
        key: format!("{letter}{number:0width$}", width = key_bytes - 1).into(),
        value: format!("{number:0value_bytes$}").into(),
    };
    load(stage, part, OperationKind::Set, set)
}

fn load_members(stage: &mut Stage<'_>, part: &str) -> Result<(), CellError> {
    let add = |number: u32| Operation::AddMember {
        set: format!("set:{:010}", number / MEMBERS).into(),
        member: format!("{number:08}").into(),
    };
    load(stage, part, OperationKind::AddMember, add)
}

fn load_tuples(stage: &mut Stage<'_>, part: &str) -> Result<(), CellError> {
    let insert = |number: u32| Operation::InsertTuple {
        id: u64::from(number),
        value: format!("{number:08}").into(),
    };
    load(stage, part, OperationKind::InsertTuple, insert)
}

fn load_sorted_set(stage: &mut Stage<'_>, part: &str) -> Result<(), CellError> {
    let count = things(&stage.bench.scale);
    let set = sorted_set::SortedSet::new(count);
    load_all(stage, part, count, count, sorted_set::fill(&set))
}

const FIELD_VALUE_BYTES: usize = 16;

fn load_hashes(stage: &mut Stage<'_>, part: &str) -> Result<(), CellError> {
    let count = (elements(&stage.bench.scale) / FIELDS).max(1);
    let mut hashes = hash::Hashes::new(count, FIELDS, FIELD_VALUE_BYTES);
    load_all(stage, part, count, count * FIELDS, hash::fill(&mut hashes))
}

const ELEMENT_BYTES: usize = 10;

fn load_lists(stage: &mut Stage<'_>, part: &str) -> Result<(), CellError> {
    let count = (elements(&stage.bench.scale) / ELEMENTS).max(1);
    let lists = list::Lists::new(count, ELEMENTS as usize, ELEMENT_BYTES);
    load_all(stage, part, count, count * ELEMENTS, list::fill_lists(&lists))
}

/// Loads things one by one and puts what each took.
fn load(
    stage: &mut Stage<'_>,
    part: &str,
    kind: OperationKind,
    make: impl Fn(u32) -> Operation,
) -> Result<(), CellError> {
    stage.can_do(kind)?;
    on_a_fresh_server(stage, |stage, plain| {
        let before = settled(stage)?;
        let most = things(&stage.bench.scale) / TOGETHER * TOGETHER;
        let right = match kind {
            OperationKind::AddMember => Answer::Existed(false),
            _ => Answer::Done,
        };
        let longest = if stage.bench.scale.small { LOAD_MAX_SMALL } else { LOAD_MAX };
        let began = Instant::now();
        let mut loaded = 0;
        while loaded < most && (loaded == 0 || began.elapsed() < longest) {
            ask(plain, loaded..loaded + TOGETHER, &make, &right)?;
            loaded += TOGETHER;
        }
        put(stage, part, loaded, loaded, before, began.elapsed())
    })
}

/// Asks a whole question, which loads `count` things of `elements` elements in all, and puts what
/// each thing took.
fn load_all(
    stage: &mut Stage<'_>,
    part: &str,
    count: u32,
    elements: u32,
    question: impl Question,
) -> Result<(), CellError> {
    stage.can_do(OperationKind::AddMember)?;
    on_a_fresh_server(stage, |stage, _| {
        let before = settled(stage)?;
        let began = Instant::now();
        stage.ask_all(BULK_USERS, question)?;
        put(stage, part, count, elements, before, began.elapsed())
    })
}

/// Keys that a server holds before its memory is read: its buffers exist then, and are attributed
/// to no shape.
const FIRST_KEYS: u32 = 20_000;

/// Runs `what` on a new server: memory left free by another shape would not be counted.
pub(super) fn on_a_fresh_server(
    stage: &mut Stage<'_>,
    what: impl FnOnce(&mut Stage<'_>, &mut Plain) -> Result<(), CellError>,
) -> Result<(), CellError> {
    // Who cannot be asked need not start.
    stage.subject.dialect().map_err(CellError::Cannot)?;
    stage.on_another(|stage| {
        let mut plain = connect(stage)?;
        let first = |number: u32| Operation::Set {
            key: format!("first:{number:010}").into(),
            value: vec![b'f'; 16],
        };
        for from in (0..FIRST_KEYS).step_by(TOGETHER as usize) {
            ask(&mut plain, from..from + TOGETHER, &first, &Answer::Done)?;
        }
        what(stage, &mut plain)
    })
}

/// A connection for requests beside a load.
pub(super) fn connect(stage: &Stage<'_>) -> Result<Plain, CellError> {
    let dialect = stage.subject.dialect().map_err(CellError::Cannot)?;
    Ok(Plain::connect(stage.target.address, dialect)?)
}

/// Sends the requests of these numbers together, and compares each answer with the right one.
pub(super) fn ask(
    plain: &mut Plain,
    numbers: std::ops::Range<u32>,
    make: &impl Fn(u32) -> Operation,
    right: &Answer,
) -> Result<(), CellError> {
    if cleanup::is_ending() {
        return Err(CellError::Interrupted);
    }
    let operations: Vec<Operation> = numbers.map(make).collect();
    let answers = plain.ask(&operations)?;
    match answers.iter().find(|answer| *answer != right) {
        Some(wrong) => Err(CellError::Wrong(format!("{wrong:?} instead of {right:?}"))),
        None => Ok(()),
    }
}

fn put(
    stage: &mut Stage<'_>,
    part: &str,
    count: u32,
    elements: u32,
    before: u64,
    took: Duration,
) -> Result<(), CellError> {
    let after = settled(stage)?;
    let each = after.saturating_sub(before) as f64 / f64::from(count.max(1));
    let round =
        Round { rss_bytes: Some(after), ..Round::new(took.as_secs_f64(), u64::from(elements)) };
    let extra = [("bytes_each", each), ("count", f64::from(count))];
    stage.put(part, None, round.with_extra(extra));
    Ok(())
}

/// Resident bytes once they hardly change any more: logs are written and tables grow behind the
/// answers.
fn settled(stage: &Stage<'_>) -> Result<u64, CellError> {
    let resident = || {
        stage.usage().map(|usage| usage.resident_bytes).ok_or_else(|| {
            CellError::Cannot("attached: the memory of another machine is not seen".to_owned())
        })
    };
    let mut last = resident()?;
    for _ in 0..SETTLING_LOOKS {
        std::thread::sleep(SETTLING);
        let now = resident()?;
        let same = now.abs_diff(last) <= last / 1_000;
        last = now;
        if same {
            break;
        }
    }
    Ok(last)
}

/// How long memory must not have changed, and how often that is tried.
const SETTLING: Duration = Duration::from_millis(50);
const SETTLING_LOOKS: usize = 20;
