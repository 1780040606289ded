//! `churn`: how much memory a server keeps while its data changes.
//!
//! ```text
//! tenth     fill with values of random sizes, delete nine of ten at random
//! shifting  maxmemory, allkeys-lru: fill with values of one size, then of another, ...
//! random    maxmemory, allkeys-lru: values of random sizes, several times the limit
//! huge      one value of 512 MB, deleted; nothing else happens
//! flooder   a client asks for much, reads nothing, and hangs up; nothing else happens
//! ```
//!
//! Resident bytes come from the operating system, used bytes from the server's `INFO`.

use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;

use super::WorkError;
use super::common::{Bench, Common};
use crate::report::table::{Table, number};
use crate::systems::Persistence;
use crate::systems::arguments::Setup;
use crate::systems::control::{Control, Reply};
use crate::systems::find::Program;
use crate::systems::server::Server;

/// Options of `churn`.
#[derive(Args, Clone, Debug, Serialize)]
pub struct ChurnArguments {
    /// Options of every work.
    #[command(flatten)]
    pub common: Common,
    /// Parts to measure: tenth, shifting, random, huge, flooder. Default: all.
    #[arg(long, value_delimiter = ',')]
    pub only: Vec<String>,
    /// Keys of `tenth`.
    #[arg(long, default_value_t = 100_000)]
    pub keys: u32,
    /// SETs of `random`.
    #[arg(long, default_value_t = 300_000)]
    pub sets: u32,
    /// Bytes of `maxmemory`.
    #[arg(long, default_value_t = 200 << 20)]
    pub maxmemory: u64,
    /// The shortest value of random length, bytes.
    #[arg(long, default_value_t = 20)]
    pub value_size_min: usize,
    /// The longest, bytes.
    #[arg(long, default_value_t = 8000)]
    pub value_size_max: usize,
}

#[derive(Debug, Serialize)]
struct Outcome {
    part: &'static str,
    system: String,
    /// Resident bytes of the empty server.
    empty_bytes: u64,
    /// Most resident bytes of the part.
    peak_bytes: u64,
    /// Resident bytes 1.5 s after the part's end, with nothing happening in between.
    soon_bytes: u64,
    /// Resident bytes after six more seconds.
    settled_bytes: u64,
    /// What `INFO` calls used then.
    used_bytes: u64,
    /// What `INFO` calls the fragmentation ratio then.
    reported_ratio: f64,
    keys_held: u64,
    seconds: f64,
}

/// Requests that go out together.
const BATCH: usize = 50;
/// Lengths of `shifting`, one after the other.
const SHIFTING: [usize; 6] = [100, 700, 3000, 8000, 300, 1500];
const HUGE_BYTES: usize = 512 << 20;

type Part = fn(&ChurnArguments, &Server, &mut Control, &mut Random) -> Result<(), WorkError>;

const PARTS: [(&str, Part); 5] = [
    ("tenth", tenth),
    ("shifting", shifting),
    ("random", random),
    ("huge", huge),
    ("flooder", flooder),
];

/// Measures, prints and writes the results.
///
/// # Errors
/// Whatever ends the run early; a wrong answer does.
pub fn run(arguments: &ChurnArguments) -> Result<(), WorkError> {
    let is_known = |name: &String| PARTS.iter().any(|(part, _)| part == name);
    if let Some(unknown) = arguments.only.iter().find(|name| !is_known(name)) {
        return Err(WorkError::Argument(format!("churn has no part '{unknown}'")));
    }
    if arguments.value_size_min >= arguments.value_size_max {
        return Err(WorkError::Argument("--value-size-max must be above the minimum".into()));
    }
    let bench = Bench::prepare(&arguments.common, 1)?;
    let mut outcomes = Vec::new();
    for (name, part) in PARTS {
        if !arguments.only.is_empty() && !arguments.only.iter().any(|only| only == name) {
            continue;
        }
        for program in &bench.programs {
            eprintln!("churn: {name}, {}", program.label);
            outcomes.push(measure(&bench, arguments, program, name, part)?);
        }
    }
    let text = render(arguments, &outcomes);
    bench.finish("churn", arguments, outcomes, &text)
}

fn measure(
    bench: &Bench,
    arguments: &ChurnArguments,
    program: &Program,
    name: &'static str,
    part: Part,
) -> Result<Outcome, WorkError> {
    let server = bench.start(program, &Setup::new(Persistence::None))?;
    let gone = || WorkError::Unexpected { system: server.label.clone(), what: "is gone".into() };
    let resident = || server.resident().ok_or_else(gone);
    let mut control = server.control()?;
    std::thread::sleep(Duration::from_millis(500));
    let empty_bytes = resident()?.now;
    let began = Instant::now();
    let mut numbers = Random(arguments.common.seed | 1);
    part(arguments, &server, &mut control, &mut numbers)?;
    let seconds = began.elapsed().as_secs_f64();
    let peak_bytes = resident()?.peak;
    std::thread::sleep(Duration::from_millis(1500));
    let soon_bytes = resident()?.now;
    std::thread::sleep(Duration::from_secs(6));
    let settled_bytes = resident()?.now;
    let unexpected = |what: String| WorkError::Unexpected { system: server.label.clone(), what };
    let mut info = |field: &str| -> Result<f64, WorkError> {
        let text = control.info("memory", field)?;
        text.parse().map_err(|_| unexpected(format!("INFO has {field}:{text}")))
    };
    let (used_bytes, reported_ratio) = (info("used_memory")?, info("mem_fragmentation_ratio")?);
    Ok(Outcome {
        part: name,
        system: server.label.clone(),
        empty_bytes,
        peak_bytes,
        soon_bytes,
        settled_bytes,
        used_bytes: used_bytes as u64,
        reported_ratio,
        keys_held: control.integer(&["DBSIZE"])?.unsigned_abs(),
        seconds,
    })
}

fn tenth(
    arguments: &ChurnArguments,
    server: &Server,
    control: &mut Control,
    random: &mut Random,
) -> Result<(), WorkError> {
    set_all(arguments, server, control, random, arguments.keys)?;
    let names: Vec<String> = (0..arguments.keys).map(name).collect();
    let mut gone: Vec<&String> = names.iter().filter(|_| random.below(10) != 0).collect();
    random.shuffle(&mut gone);
    for some in gone.chunks(BATCH) {
        let deletions: Vec<Vec<&str>> = some.iter().map(|name| vec!["DEL", name]).collect();
        for reply in control.calls(&deletions)? {
            expect(server, &reply, &Reply::Integer(1))?;
        }
    }
    Ok(())
}

fn shifting(
    arguments: &ChurnArguments,
    server: &Server,
    control: &mut Control,
    _random: &mut Random,
) -> Result<(), WorkError> {
    limit(arguments, control)?;
    let value = "v".repeat(SHIFTING.into_iter().max().unwrap_or(0));
    let mut next = 0;
    for size in SHIFTING {
        // So many that everything of the size before has left.
        let sets = (arguments.maxmemory as usize * 3 / 2 / (size + 40)) as u32;
        set(server, control, next..next + sets, |_| &value[..size])?;
        next += sets;
    }
    Ok(())
}

fn random(
    arguments: &ChurnArguments,
    server: &Server,
    control: &mut Control,
    random: &mut Random,
) -> Result<(), WorkError> {
    limit(arguments, control)?;
    set_all(arguments, server, control, random, arguments.sets)
}

fn huge(
    _arguments: &ChurnArguments,
    server: &Server,
    control: &mut Control,
    _random: &mut Random,
) -> Result<(), WorkError> {
    let last = (HUGE_BYTES - 1).to_string();
    let length = Reply::Integer(HUGE_BYTES as i64);
    expect(server, &control.call(&["SETRANGE", "huge", &last, "v"])?, &length)?;
    // Every page of it is touched.
    expect(server, &control.call(&["BITOP", "NOT", "huge", "huge"])?, &length)?;
    expect(server, &control.call(&["DEL", "huge"])?, &Reply::Integer(1))
}

fn flooder(
    _arguments: &ChurnArguments,
    server: &Server,
    control: &mut Control,
    _random: &mut Random,
) -> Result<(), WorkError> {
    let value = "v".repeat(100_000);
    let ok = Reply::Simple("OK".to_owned());
    expect(server, &control.call(&["SET", "asked", &value])?, &ok)?;
    let mut flooder = TcpStream::connect(server.address)?;
    flooder.write_all("GET asked\r\n".repeat(4000).as_bytes())?;
    std::thread::sleep(Duration::from_secs(2));
    drop(flooder);
    Ok(())
}

fn limit(arguments: &ChurnArguments, control: &mut Control) -> Result<(), WorkError> {
    let bytes = arguments.maxmemory.to_string();
    for (name, value) in [("maxmemory", bytes.as_str()), ("maxmemory-policy", "allkeys-lru")] {
        control.text(&["CONFIG", "SET", name, value])?;
    }
    Ok(())
}

fn set_all(
    arguments: &ChurnArguments,
    server: &Server,
    control: &mut Control,
    random: &mut Random,
    keys: u32,
) -> Result<(), WorkError> {
    let (min, max) = (arguments.value_size_min, arguments.value_size_max);
    let value = "v".repeat(max);
    set(server, control, 0..keys, |_| &value[..min + random.below(max - min + 1)])
}

fn set<'v>(
    server: &Server,
    control: &mut Control,
    keys: std::ops::Range<u32>,
    mut value: impl FnMut(u32) -> &'v str,
) -> Result<(), WorkError> {
    let ok = Reply::Simple("OK".to_owned());
    let names: Vec<String> = keys.map(name).collect();
    for some in names.chunks(BATCH) {
        let sets: Vec<Vec<&str>> = some.iter().map(|key| vec!["SET", key, value(0)]).collect();
        for reply in control.calls(&sets)? {
            expect(server, &reply, &ok)?;
        }
    }
    Ok(())
}

fn expect(server: &Server, reply: &Reply, wanted: &Reply) -> Result<(), WorkError> {
    if reply == wanted {
        return Ok(());
    }
    let what = format!("answered {reply:?} where {wanted:?} is right");
    Err(WorkError::Unexpected { system: server.label.clone(), what })
}

fn name(key: u32) -> String {
    format!("key:{key:08}")
}

/// Numbers by chance, the same for every system.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((u128::from(self.0) * bound as u128) >> 64) as usize
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.below(at + 1));
        }
    }
}

fn render(arguments: &ChurnArguments, outcomes: &[Outcome]) -> String {
    let text = format!(
        "\nresident memory in MB while data changes; {} keys and {} SETs of {} to {} bytes, maxmemory {}\n\n",
        arguments.keys,
        arguments.sets,
        arguments.value_size_min,
        arguments.value_size_max,
        arguments.maxmemory
    );
    let mut table = Table::new(&[
        "part",
        "system",
        "empty",
        "peak",
        "1.5 s later",
        "settled",
        "used",
        "of the peak",
        "of maxmemory",
        "of used",
        "reported",
        "keys",
        "s",
    ]);
    for outcome in outcomes {
        let mb = |bytes: u64| number(Some(bytes as f64 / 1e6), 0);
        let ratio = |part: u64, whole: u64| number(Some(part as f64 / whole.max(1) as f64), 2);
        let has_limit = matches!(outcome.part, "shifting" | "random");
        table.row(vec![
            outcome.part.to_owned(),
            outcome.system.clone(),
            mb(outcome.empty_bytes),
            mb(outcome.peak_bytes),
            mb(outcome.soon_bytes),
            mb(outcome.settled_bytes),
            mb(outcome.used_bytes),
            ratio(outcome.settled_bytes, outcome.peak_bytes),
            if has_limit { ratio(outcome.peak_bytes, arguments.maxmemory) } else { String::new() },
            ratio(outcome.settled_bytes, outcome.used_bytes),
            number(Some(outcome.reported_ratio), 2),
            outcome.keys_held.to_string(),
            number(Some(outcome.seconds), 1),
        ]);
    }
    text + &table.render()
}
