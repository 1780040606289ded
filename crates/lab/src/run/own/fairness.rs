//! A polite client beside impolite ones; each row has its own server.

use std::time::{Duration, SystemTime};

use crate::load::driver::{LoadError, Waiting};
use crate::load::fairness::{Fairness, Seen};
use crate::load::impolite::{Impolite, Requests};
use crate::load::io_threads::IoThreads;
use crate::load::keys::Keys;
use crate::load::large::{Fill, Sizes, Value};
use crate::load::polite::Polite;
use crate::load::stream::{Stream, Target};
use crate::load::words::{array, bulk, name};
use crate::measure::cpu::stolen;
use crate::measure::memory::forget_peak;
use crate::operation::OperationKind;
use crate::results::schema::Round;
use crate::run::cell::CellError;
use crate::run::round::percentiles_of;
use crate::run::stage::{BULK_USERS, Stage};
use crate::systems::control::Control;
use crate::systems::instance::Instance;
use crate::systems::system::Capability;
use crate::work::Scale;
use crate::works::fairness::{
    DELETED, DELETED_TOGETHER, LOADED, Other, ROWS, SAVED, STRETCH_MIN, keys,
};

/// Half a millisecond shows a stop of a few of them.
const INTERVAL: Duration = Duration::from_micros(500);
const POLITE: Polite = Polite { keys: 1000, fills: false };
/// However long a load takes, and a bound where requests are endless.
const STRETCH_MAX: Duration = Duration::from_secs(15);
/// 27 bytes each: a quarter of a gigabyte.
const PIPELINED: u32 = 10_000_000;
const LOADED_VALUE_BYTES: usize = 40;
/// As many replies of 1 kB as make one and a half gigabytes.
const SILENT: usize = 1000;
const UNREAD: u32 = 1500;
const UNREAD_KEYS: u32 = 100;
const UNREAD_VALUE_BYTES: usize = 1000;
const EXPIRING_EACH_SECOND: u32 = 10_000;
/// Too small for what systems do aside of their other clients; a millisecond or so each.
const SLOW: Sizes = Sizes { sorted_set: 0, hash: 0, set: 4000, list: 0, string: 4 << 20 };
const SLOW_UNDER_WAY: u32 = 500;
/// From one look at a snapshot to the next.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Measures the row `part`.
pub(super) fn run(stage: &mut Stage<'_>, part: &str) -> Result<(), CellError> {
    stage.can_do(OperationKind::Set)?;
    let row = ROWS.iter().find(|(name, ..)| name[0] == part);
    let &(_, _, other) = row.ok_or_else(|| CellError::Broken(format!("no row {part}")))?;
    let (cores, threads) = place(stage, other);
    let Some(server) = stage.another_on(&cores, threads)? else {
        let text = "attached: only a server that the lab started is treated like that";
        return Err(CellError::Cannot(text.to_owned()));
    };
    // The stage's own server has no part in it.
    stage.freeze();
    let own = std::mem::replace(&mut stage.target, Target::plain(server.address()));
    let shares = cores.iter().any(|core| stage.bench.cores.load.contains(core));
    let waiting = if shares { Waiting::Sleep } else { stage.bench.waiting };
    let round = beside(stage, &server, other, threads, waiting);
    stage.target = own;
    stage.put(part, None, round?);
    Ok(())
}

/// The server's cores and threads. Two threads have a core each, the load's if there is no other.
fn place(stage: &Stage<'_>, other: Other) -> (Vec<usize>, usize) {
    let mut cores = stage.bench.cores.server.clone();
    if other != (Other::Slow { apart: true }) {
        return (cores, 1);
    }
    if cores.len() < 2 {
        let load = &stage.bench.cores.load;
        cores.extend(load.iter().copied().filter(|core| !stage.bench.cores.server.contains(core)));
    }
    (cores, 2)
}

/// One row on a server of its own.
fn beside(
    stage: &mut Stage<'_>,
    server: &Instance,
    other: Other,
    threads: usize,
    waiting: Waiting,
) -> Result<Round, CellError> {
    let address = server.address();
    if other == Other::Snapshot {
        server.system.can(Capability::Snapshot).map_err(CellError::Cannot)?;
    }
    let time = stage.bench.measured().clamp(STRETCH_MIN, STRETCH_MAX);
    stage.ask_all(BULK_USERS, Polite { fills: true, ..POLITE })?;
    prepare(stage, other, time)?;
    let told = if IoThreads::are_told(address, threads) { threads } else { 1 };
    let mut io_threads = IoThreads::of(address, told)?;
    let (thread, polite) = io_threads.place(|| connect(stage)).map_err(CellError::from)?;
    let others = connect_others(stage, other, &mut io_threads, thread)?;
    drop(io_threads);
    let endless = matches!(other, Other::Pipeline { .. } | Other::Slow { .. });
    let timed = endless || matches!(other, Other::Nobody | Other::Expiry);
    let fairness = Fairness {
        polite: POLITE,
        interval: INTERVAL,
        time: if timed { time } else { STRETCH_MAX },
        seed: stage.next_seed(),
        waiting,
    };
    server.pids().into_iter().for_each(forget_peak);
    let before = server.usage();
    let mut control = Control::connect(address)?;
    let keys_before = control.integer(&["DBSIZE"])?;
    if other == Other::Snapshot {
        server.system.begin_snapshot(address)?;
    }
    let mut looked = Duration::ZERO;
    let over = |impolite: Option<&Impolite>, since: Duration| -> Result<bool, CellError> {
        if since >= fairness.time {
            return Ok(true);
        }
        if other == Other::Snapshot {
            if since < looked + LOOK_EVERY {
                return Ok(false);
            }
            looked = since;
            return Ok(!server.system.snapshot_under_way(address)?);
        }
        // Who sends a bounded number of requests is done with them; unread ones are done by the
        // server some time after they were sent.
        let through = !timed && impolite.is_some_and(Impolite::is_finished);
        Ok(through && (other != Other::Unread || since >= time))
    };
    let stolen_before = stolen();
    let seen = fairness.run(polite, others, over)?;
    let stolen = stolen().saturating_sub(stolen_before);
    let after = server.usage();
    let expired =
        if other == Other::Expiry { keys_before - control.integer(&["DBSIZE"])? } else { 0 };
    Ok(round(
        &seen,
        after.resident_bytes,
        [
            ("peak_bytes", after.resident_peak_bytes as f64),
            ("before_bytes", before.resident_bytes as f64),
            ("others_per_second", per_second(&seen, expired)),
            ("stolen_ms", stolen.as_secs_f64() * 1e3),
        ],
    ))
}

/// Who is beside the polite client, which `thread` serves; a single stream on that thread as well.
fn connect_others(
    stage: &Stage<'_>,
    other: Other,
    io_threads: &mut IoThreads,
    thread: usize,
) -> Result<Option<Impolite>, CellError> {
    Ok(match requests(&stage.bench.scale, other) {
        None => None,
        Some((1, requests)) => {
            let stream = io_threads.place_beside(thread, || connect(stage));
            Some(Impolite::over(vec![stream.map_err(CellError::from)?], requests))
        }
        Some((connections, requests)) => {
            let mut dialect = stage.subject.dialect().map_err(CellError::Cannot)?;
            Some(Impolite::over(stage.open(connections, dialect.as_mut())?, requests))
        }
    })
}

fn per_second(seen: &Seen, expired: i64) -> f64 {
    (seen.done as f64 + expired.max(0) as f64) / seen.through.as_secs_f64().max(1e-9)
}

fn round(seen: &Seen, resident_bytes: u64, extra: [(&str, f64); 4]) -> Round {
    let more = [
        ("generator_us", seen.generator.as_secs_f64() * 1e6),
        ("closed", seen.closed as f64),
        ("gave_up", f64::from(u8::from(seen.gave_up))),
    ];
    let seconds = seen.elapsed.as_secs_f64();
    let round = Round {
        per_second: seen.answered as f64 / seconds,
        latency_us: Some(percentiles_of(&seen.waits_ns)),
        rss_bytes: Some(resident_bytes),
        ..Round::new(seconds, seen.answered.max(1))
    };
    round.with_extra(extra).with_extra(more)
}

/// A connection that the server has, not only its kernel.
fn connect(stage: &Stage<'_>) -> Result<Stream, LoadError> {
    let dialect = stage.subject.dialect();
    let mut dialect = dialect.map_err(LoadError::Opening)?;
    let mut stream = Stream::open(&stage.target, dialect.as_mut())?;
    let (mut request, right) = (Vec::new(), b"+PONG\r\n");
    array(1, &mut request);
    bulk(b"PING", &mut request);
    if stream.write(&request)? != request.len() {
        return Err(LoadError::Opening("a new connection takes no PING".to_owned()));
    }
    let (mut bytes, mut filled) = ([0; 7], 0);
    while filled < right.len() {
        match stream.read(&mut bytes[filled..]) {
            Ok(0) => return Err(LoadError::Closed(0)),
            Ok(count) => filled += count,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                std::thread::sleep(Duration::from_micros(50));
            }
            Err(error) => return Err(error.into()),
        }
    }
    if bytes == *right {
        Ok(stream)
    } else {
        Err(LoadError::Opening(format!("PING answered {}", bytes.escape_ascii())))
    }
}

/// What must be there before.
fn prepare(stage: &Stage<'_>, other: Other, time: Duration) -> Result<(), CellError> {
    let scale = &stage.bench.scale;
    let plain = |prefix, count, value_bytes| Keys { prefix, count, value_bytes, expiry: None };
    match other {
        Other::Nobody | Other::Pipeline { .. } | Other::Bulk => Ok(()),
        Other::Slow { .. } => {
            stage.ask_all(1, Fill::new(Value::FirstString, SLOW))?;
            stage.ask_all(1, Fill::new(Value::FirstSet, SLOW))?;
            stage.ask_all(1, Fill::new(Value::SecondSet, SLOW))
        }
        Other::Unread => stage.ask_all(BULK_USERS, plain(b'u', UNREAD_KEYS, UNREAD_VALUE_BYTES)),
        Other::Expiry => {
            // They expire from before the stretch until after it.
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            let first = now.as_millis() as u64 + 500;
            let count = (time.as_secs_f64() + 1.0) * f64::from(EXPIRING_EACH_SECOND);
            let expiry = Some((first, EXPIRING_EACH_SECOND));
            stage.ask_all(BULK_USERS, Keys { expiry, ..plain(b'e', count as u32, 64) })?;
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            let wait = (first + 100).saturating_sub(now.as_millis() as u64);
            std::thread::sleep(Duration::from_millis(wait));
            Ok(())
        }
        Other::Delete => stage.ask_all(BULK_USERS, plain(b'd', keys(scale, DELETED), 64)),
        Other::Snapshot => stage.ask_all(BULK_USERS, plain(b's', keys(scale, SAVED), 100)),
    }
}

/// Connections of the impolite, and what each sends.
fn requests(scale: &Scale, other: Other) -> Option<(usize, Requests)> {
    let sets = |write, count, reads| Requests {
        write,
        count,
        answers: b"+OK\r\n".to_vec(),
        replies: 1,
        unanswered_max: u32::MAX,
        reads,
    };
    Some(match other {
        Other::Nobody | Other::Expiry | Other::Snapshot => return None,
        Other::Pipeline { reads } => (1, sets(write_set, PIPELINED, reads)),
        Other::Bulk => (1, sets(write_load, keys(scale, LOADED), true)),
        Other::Slow { .. } => {
            let (bits, members) = (8 * SLOW.string, SLOW.set + SLOW.set / 2);
            let answers = format!(":{bits}\r\n:{members}\r\n").into_bytes();
            let unanswered_max = SLOW_UNDER_WAY;
            let all = sets(write_slow, PIPELINED, true);
            (1, Requests { answers, replies: 2, unanswered_max, ..all })
        }
        Other::Unread => {
            let silent =
                if scale.connections_max == 0 { SILENT } else { SILENT.min(scale.connections_max) };
            (silent, sets(write_get, keys(scale, UNREAD), false))
        }
        Other::Delete => {
            let answers = format!(":{DELETED_TOGETHER}\r\n").into_bytes();
            let all = sets(write_delete, keys(scale, DELETED) / DELETED_TOGETHER, true);
            (1, Requests { answers, ..all })
        }
    })
}

fn write_words(words: &[&[u8]], to: &mut Vec<u8>) {
    array(words.len(), to);
    words.iter().for_each(|word| bulk(word, to));
}

fn write_set(_: u32, to: &mut Vec<u8>) {
    write_words(&[b"SET", b"k", b"v"], to);
}

fn write_load(number: u32, to: &mut Vec<u8>) {
    write_words(&[b"SET", &name(b'b', number), &[b'x'; LOADED_VALUE_BYTES]], to);
}

fn write_slow(number: u32, to: &mut Vec<u8>) {
    if number.is_multiple_of(2) {
        return write_words(&[b"BITCOUNT", Value::FirstString.key().as_bytes()], to);
    }
    let sets = [Value::FirstSet, Value::SecondSet].map(|value| value.key().as_bytes());
    write_words(&[b"SUNIONSTORE", b"large:union", sets[0], sets[1]], to);
}

fn write_get(number: u32, to: &mut Vec<u8>) {
    write_words(&[b"GET", &name(b'u', number % UNREAD_KEYS)], to);
}

fn write_delete(number: u32, to: &mut Vec<u8>) {
    array(1 + DELETED_TOGETHER as usize, to);
    bulk(b"DEL", to);
    let first = number * DELETED_TOGETHER;
    (first..first + DELETED_TOGETHER).for_each(|key| bulk(&name(b'd', key), to));
}
