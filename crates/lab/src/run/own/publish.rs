//! Messages to many subscribers, and events about keys.

use std::io::Read as _;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::load::fan_out::{FanOut, FanOutError};
use crate::load::question::{Asking, ask};
use crate::load::words::{NAME_BYTES, Pattern, Word, ok};
use crate::operation::OperationKind;
use crate::run::cell::CellError;
use crate::run::round::round_of_times;
use crate::run::stage::Stage;
use crate::systems::control::Control;
use crate::works::publish::{EVENTS, subscribers};

/// Deliveries that a batch makes, unless a message makes more.
const DELIVERIES_AT_ONCE: usize = 1000;
/// Messages of a batch at most: as many as a pipeline is deep.
const BATCH_MAX: usize = 16;

/// Measures each number of subscribers.
pub(super) fn run(stage: &mut Stage<'_>, part: &str) -> Result<(), CellError> {
    can_do(stage)?;
    for subscribers in subscribers(&stage.bench.scale) {
        let fan_out = FanOut {
            time: stage.bench.measured(),
            warm_up: stage.bench.warm_up(),
            subscribers,
            batch: (DELIVERIES_AT_ONCE / subscribers).clamp(1, BATCH_MAX),
            waiting: stage.bench.waiting,
        };
        let mut before = None;
        let seen = fan_out.run(stage.target.address, || before = stage.usage());
        let seen = seen.map_err(|error| match error {
            FanOutError::Unexpected(what) => CellError::Wrong(what),
            FanOutError::Io(error) => error.into(),
        })?;
        let usage = before.zip(stage.usage());
        let round = round_of_times(seen.elapsed, seen.delivered, &seen.batches_ns, usage);
        stage.put(part, Some(subscribers as f64), round);
    }
    Ok(())
}

fn can_do(stage: &Stage<'_>) -> Result<(), CellError> {
    stage.can_do(OperationKind::AddMember)?;
    if stage.instance.is_none() {
        return Err(CellError::Cannot("attached: the lab logs in nowhere for this".to_owned()));
    }
    Ok(())
}

const USERS: usize = 50;
const DEPTH: usize = 16;
const KEYS: u32 = 100_000;

/// Measures `SET` without events, with events, and with somebody who reads them.
pub(super) fn notifications(stage: &mut Stage<'_>, _: &str) -> Result<(), CellError> {
    can_do(stage)?;
    for part in EVENTS {
        events(stage, if *part == "set-silent" { "" } else { "KEA" })?;
        let reader = (*part == "set-heard").then(|| Reader::start(stage)).transpose()?;
        let words = [Word::Is("SET"), Word::Open(NAME_BYTES), Word::Is("0123456789abcdef")];
        let set = ask((), KEYS, Pattern::new(&words).about(b'n'), |_, _, to| ok(to));
        let seed = stage.next_seed();
        let round = stage.measure_resp(USERS, Asking::at_random(set, DEPTH, USERS, seed));
        let read = reader.map(Reader::stop);
        events(stage, "")?;
        let mut round = round?;
        if let Some(bytes) = read {
            if bytes == 0 {
                return Err(CellError::Wrong("no event came".to_owned()));
            }
            round = round.with_extra([("events_read_bytes", bytes as f64)]);
        }
        stage.put(part, None, round);
    }
    Ok(())
}

fn events(stage: &Stage<'_>, classes: &str) -> Result<(), CellError> {
    let set = Control::connect(stage.target.address).and_then(|mut control| {
        control.text(&["CONFIG", "SET", "notify-keyspace-events", classes])
    });
    match set {
        Ok(text) if text == "OK" => Ok(()),
        Ok(text) => Err(CellError::Cannot(text)),
        Err(error) => Err(error.into()),
    }
}

/// A subscriber to all events, who reads them on a thread of its own.
struct Reader {
    stop: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<u64>,
}

impl Reader {
    fn start(stage: &Stage<'_>) -> std::io::Result<Self> {
        let mut stream = TcpStream::connect(stage.target.address)?;
        std::io::Write::write_all(&mut stream, b"PSUBSCRIBE __key*__:*\r\n")?;
        stream.set_read_timeout(Some(Duration::from_millis(20)))?;
        let stop = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let (mut bytes, mut sum) = (vec![0; 1 << 20], 0);
            while !is_over.load(Ordering::Relaxed) {
                match stream.read(&mut bytes) {
                    Ok(0) => break,
                    Ok(count) => sum += count as u64,
                    // Nothing came for a while.
                    Err(_) => {}
                }
            }
            sum
        });
        Ok(Self { stop, thread })
    }

    /// How many bytes it read.
    fn stop(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or(0)
    }
}
