//! A client of a full cache: it asks for keys and stores what was missing.

use crate::load::trace::{ExactLru, Trace};
use crate::operation::OperationKind;
use crate::results::schema::Round;
use crate::run::cell::CellError;
use crate::run::stage::Stage;
use crate::systems::cleanup;
use crate::systems::control::{Control, Reply};
use crate::works::eviction::{ROWS, Row, Sizes};

/// Requests that go out together.
const BATCH: usize = 50;
/// Exponent of the popularity.
const EXPONENT: f64 = 0.9;

/// Measures the row `part` on a server of its own.
pub(super) fn run(stage: &mut Stage<'_>, part: &str) -> Result<(), CellError> {
    stage.can_do(OperationKind::Set)?;
    let row = ROWS.iter().find(|row| row.part[0] == part);
    let row = row.ok_or_else(|| CellError::Broken(format!("no row {part}")))?;
    let sizes = row.sizes(&stage.bench.scale);
    let seed = stage.bench.seed;
    let trace = || Trace::new(row.pattern, sizes.keys, EXPONENT, seed);
    let began = std::time::Instant::now();
    let seen = stage.on_another(|stage| ask(stage, row, &sizes, trace()))?;
    let seconds = began.elapsed().as_secs_f64();
    let exact = exact(trace(), &sizes, seen.keys_held as usize);
    let extra = [
        ("hits_percent", seen.hits_percent),
        ("exact_lru_percent", exact),
        ("keys_held", seen.keys_held as f64),
        ("used_of_limit", seen.used_bytes / sizes.maxmemory as f64),
        ("evicted", seen.evicted),
    ];
    stage.put(part, None, Round::new(seconds, u64::from(sizes.requests)).with_extra(extra));
    Ok(())
}

/// What a full cache showed.
struct Seen {
    /// In the second half of the requests.
    hits_percent: f64,
    keys_held: u64,
    used_bytes: f64,
    evicted: f64,
}

fn ask(stage: &Stage<'_>, row: &Row, sizes: &Sizes, mut trace: Trace) -> Result<Seen, CellError> {
    let mut control = Control::connect(stage.target.address)?;
    limit(&mut control, sizes.maxmemory, row.policy)?;
    let value = "v".repeat(sizes.value_bytes);
    let (mut asked, mut hits, mut counted) = (0, 0, 0);
    while asked < sizes.requests {
        if cleanup::is_ending() {
            return Err(CellError::Interrupted);
        }
        let names: Vec<String> =
            (0..BATCH).map(|_| format!("key:{:08}", trace.next_key())).collect();
        let gets: Vec<Vec<&str>> = names.iter().map(|name| vec!["GET", name]).collect();
        let mut missing: Vec<Vec<&str>> = Vec::new();
        for (name, reply) in names.iter().zip(control.calls(&gets)?) {
            let counts = asked >= sizes.requests / 2;
            match reply {
                Reply::Bulk(None) => missing.push(vec!["SET", name, &value]),
                Reply::Bulk(Some(bytes)) if bytes == value.as_bytes() => hits += u32::from(counts),
                reply => return Err(CellError::Wrong(format!("GET answered {reply:?}"))),
            }
            counted += u32::from(counts);
            asked += 1;
        }
        for reply in control.calls(&missing)? {
            if reply != Reply::Simple("OK".to_owned()) {
                return Err(CellError::Wrong(format!("SET answered {reply:?}")));
            }
        }
    }
    let keys_held = control.integer(&["DBSIZE"])?.unsigned_abs();
    Ok(Seen {
        hits_percent: percent(hits, counted),
        keys_held,
        used_bytes: number(&mut control, "memory", "used_memory")?,
        evicted: number(&mut control, "stats", "evicted_keys")?,
    })
}

/// Gives a server a limit of its memory.
pub(super) fn limit(control: &mut Control, bytes: u64, policy: &str) -> Result<(), CellError> {
    for (name, value) in [("maxmemory", bytes.to_string().as_str()), ("maxmemory-policy", policy)] {
        let set = control.text(&["CONFIG", "SET", name, value]);
        set.map_err(|error| CellError::Cannot(error.to_string()))?;
    }
    Ok(())
}

/// A figure of `INFO`.
pub(super) fn number(control: &mut Control, section: &str, field: &str) -> Result<f64, CellError> {
    let text = control.info(section, field)?;
    text.parse().map_err(|_| CellError::Broken(format!("INFO has {field}:{text}")))
}

fn percent(part: u32, whole: u32) -> f64 {
    100.0 * f64::from(part) / f64::from(whole.max(1))
}

/// The hits of an exact LRU over the same requests, in percent.
fn exact(mut trace: Trace, sizes: &Sizes, capacity: usize) -> f64 {
    let mut cache = ExactLru::new(capacity);
    let mut hits = 0;
    for asked in 0..sizes.requests {
        let hit = cache.ask(trace.next_key());
        hits += u32::from(hit && asked >= sizes.requests / 2);
    }
    percent(hits, sizes.requests - sizes.requests / 2)
}
