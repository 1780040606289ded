//! `eviction`: which share of requests a full cache can answer.
//!
//! A client asks for keys and stores what was missing, as one does with a cache. All systems get
//! the same `maxmemory`, so that who needs less memory a key holds more of them; for comparison,
//! the table has the share that an exact LRU with as many keys would have answered.

mod trace;

use clap::Args;
use serde::Serialize;

use super::WorkError;
use super::common::{Bench, Common};
use crate::report::table::{Table, number};
use crate::systems::Persistence;
use crate::systems::arguments::Setup;
use crate::systems::control::Reply;
use crate::systems::find::Program;
use trace::{ExactLru, Pattern, Trace};

/// Options of `eviction`.
#[derive(Args, Clone, Debug, Serialize)]
pub struct EvictionArguments {
    /// Options of every work.
    #[command(flatten)]
    pub common: Common,
    /// Keys that are asked for again and again.
    #[arg(long, default_value_t = 200_000)]
    pub keys: u32,
    /// Requests; the second half counts.
    #[arg(long, default_value_t = 2_000_000)]
    pub requests: u32,
    /// Length of each value in bytes.
    #[arg(long, default_value_t = 500)]
    pub value_size: usize,
    /// Bytes of `maxmemory`.
    #[arg(long, default_value_t = 32 << 20)]
    pub maxmemory: u64,
    /// Exponent of the popularity.
    #[arg(long, default_value_t = 0.9)]
    pub exponent: f64,
    /// Policies, as `maxmemory-policy` names them.
    #[arg(long, value_delimiter = ',', default_value = "allkeys-lru,allkeys-lfu")]
    pub policies: Vec<String>,
}

/// What one system showed with one policy and one pattern.
#[derive(Debug, Serialize)]
struct Outcome {
    system: String,
    policy: String,
    pattern: &'static str,
    /// Of the second half of the requests.
    hit_ratio: f64,
    /// In the end.
    keys_held: u64,
    used_memory: u64,
    evicted: u64,
    /// The hit ratio of an exact LRU with as many keys.
    exact_lru_hit_ratio: f64,
}

/// Requests that go out together.
const BATCH: usize = 50;

/// Measures, prints and writes the results.
///
/// # Errors
/// Whatever ends the run early; a wrong answer does.
pub fn run(arguments: &EvictionArguments) -> Result<(), WorkError> {
    if arguments.keys == 0 || arguments.requests < 2 * BATCH as u32 {
        return Err(WorkError::Argument("--keys and --requests must be larger".into()));
    }
    let bench = Bench::prepare(&arguments.common, 1)?;
    let mut outcomes = Vec::new();
    for pattern in Pattern::ALL {
        for policy in &arguments.policies {
            for program in &bench.programs {
                eprintln!("eviction: {}, {policy}, {}", pattern.name(), program.label);
                outcomes.push(measure(&bench, arguments, program, policy, pattern)?);
            }
        }
    }
    let text = render(arguments, &outcomes);
    bench.finish("eviction", arguments, outcomes, &text)
}

fn measure(
    bench: &Bench,
    arguments: &EvictionArguments,
    program: &Program,
    policy: &str,
    pattern: Pattern,
) -> Result<Outcome, WorkError> {
    let server = bench.start(program, &Setup::new(Persistence::None))?;
    let mut control = server.control()?;
    let unexpected = |what: String| WorkError::Unexpected { system: server.label.clone(), what };
    let limit = arguments.maxmemory.to_string();
    for (name, value) in [("maxmemory", limit.as_str()), ("maxmemory-policy", policy)] {
        control.text(&["CONFIG", "SET", name, value])?;
    }
    let value = "v".repeat(arguments.value_size);
    let mut requests = trace(arguments, pattern);
    let (mut asked, mut hits, mut counted) = (0, 0, 0);
    while asked < arguments.requests {
        let names: Vec<String> = (0..BATCH).map(|_| name(requests.next_key())).collect();
        let gets: Vec<Vec<&str>> = names.iter().map(|name| vec!["GET", name]).collect();
        let mut missing: Vec<Vec<&str>> = Vec::new();
        for (name, reply) in names.iter().zip(control.calls(&gets)?) {
            match reply {
                Reply::Bulk(None) => missing.push(vec!["SET", name, &value]),
                Reply::Bulk(Some(bytes)) if bytes == value.as_bytes() => {
                    hits += u32::from(asked >= arguments.requests / 2);
                }
                reply => return Err(unexpected(format!("answered GET with {reply:?}"))),
            }
            counted += u32::from(asked >= arguments.requests / 2);
            asked += 1;
        }
        for reply in control.calls(&missing)? {
            if reply != Reply::Simple("OK".to_owned()) {
                return Err(unexpected(format!("answered SET with {reply:?}")));
            }
        }
    }
    let keys_held = control.integer(&["DBSIZE"])?.unsigned_abs();
    let parsed = |text: String| text.parse().map_err(|_| unexpected(format!("INFO has {text}")));
    Ok(Outcome {
        policy: policy.to_owned(),
        pattern: pattern.name(),
        hit_ratio: f64::from(hits) / f64::from(counted),
        keys_held,
        used_memory: parsed(control.info("memory", "used_memory")?)?,
        evicted: parsed(control.info("stats", "evicted_keys")?)?,
        exact_lru_hit_ratio: exact(arguments, pattern, keys_held as usize),
        system: server.label.clone(),
    })
}

fn trace(arguments: &EvictionArguments, pattern: Pattern) -> Trace {
    Trace::new(pattern, arguments.keys, arguments.exponent, arguments.common.seed)
}

fn name(key: u32) -> String {
    format!("key:{key:08}")
}

/// The hit ratio of an exact LRU over the same requests.
fn exact(arguments: &EvictionArguments, pattern: Pattern, capacity: usize) -> f64 {
    let mut requests = trace(arguments, pattern);
    let mut cache = ExactLru::new(capacity);
    let mut hits = 0;
    for asked in 0..arguments.requests {
        let hit = cache.ask(requests.next_key());
        hits += u32::from(hit && asked >= arguments.requests / 2);
    }
    f64::from(hits) / f64::from(arguments.requests - arguments.requests / 2)
}

fn render(arguments: &EvictionArguments, outcomes: &[Outcome]) -> String {
    let mut text = format!(
        "\n{} keys, popularity 1 / n^{}, values of {} bytes, maxmemory {} MiB; the second half of \
         {} requests\n\n",
        arguments.keys,
        arguments.exponent,
        arguments.value_size,
        arguments.maxmemory >> 20,
        arguments.requests
    );
    let mut table = Table::new(&[
        "system",
        "pattern",
        "policy",
        "hits %",
        "exact LRU %",
        "keys held",
        "used / maxmemory",
        "evicted",
    ]);
    let percent = |ratio: f64| number(Some(ratio * 100.0), 2);
    for outcome in outcomes {
        table.row(vec![
            outcome.system.clone(),
            outcome.pattern.to_owned(),
            outcome.policy.clone(),
            percent(outcome.hit_ratio),
            percent(outcome.exact_lru_hit_ratio),
            outcome.keys_held.to_string(),
            number(Some(outcome.used_memory as f64 / arguments.maxmemory as f64), 3),
            outcome.evicted.to_string(),
        ]);
    }
    text += &table.render();
    text
}
