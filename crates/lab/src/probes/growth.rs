//! `growth`: does a growing table make the others wait?
//!
//! Many connections fill the server while one more reads a key every millisecond; what counts is
//! that reader's longest wait, from when its request was due. Then the same writers overwrite keys
//! that are there, so that the table stays as it is: waits of that stretch are the load's, not the
//! growth's.

use std::time::Duration;

use clap::Args;
use serde::Serialize;

use super::WorkError;
use super::common::{Bench, Common, failed_on};
use crate::load::data::Data;
use crate::load::driver::Driver;
use crate::load::sample::Sample;
use crate::load::workload::{LANE_OF_READS, Mix, Strings};
use crate::report::table::{Table, number};
use crate::report::target::{Limit, verdict};
use crate::systems::arguments::Setup;
use crate::systems::server::Server;
use crate::systems::{Kind, Persistence};

/// Options of `growth`.
#[derive(Args, Clone, Debug, Serialize)]
pub struct GrowthArguments {
    /// Options of every work.
    #[command(flatten)]
    pub common: Common,
    /// Keys.
    #[arg(long, default_value_t = 10_000_000)]
    pub keys: u32,
    /// Length of each key in bytes.
    #[arg(long, default_value_t = 11)]
    pub key_size: usize,
    /// Length of each value in bytes.
    #[arg(long, default_value_t = 8)]
    pub value_size: usize,
    /// Connections that write.
    #[arg(long, default_value_t = 50)]
    pub clients: usize,
    /// Requests that each of them sends at once.
    #[arg(long, default_value_t = 16)]
    pub pipeline: usize,
    /// Microseconds between the reader's requests.
    #[arg(long, default_value_t = 1000)]
    pub interval: u64,
    /// Seconds of overwriting afterwards.
    #[arg(long, default_value_t = 5.0)]
    pub seconds: f64,
}

/// What the reader saw in one stretch.
#[derive(Debug, Serialize)]
struct Stretch {
    seconds: f64,
    writes_per_second: f64,
    p50_us: f64,
    p99_us: f64,
    p999_us: f64,
    longest_us: f64,
    longer_than_5_ms: u64,
    /// The load generator's own longest turn.
    generator_us: f64,
}

#[derive(Debug, Serialize)]
struct Outcome {
    system: String,
    kind: Kind,
    command_line: Vec<String>,
    growing: Stretch,
    steady: Stretch,
}

/// Keys that are there before the growth is measured, for the reader.
const KNOWN: u32 = 1000;

/// Measures, prints and writes the results.
///
/// # Errors
/// Whatever ends the run early; a wrong answer does.
pub fn run(arguments: &GrowthArguments) -> Result<(), WorkError> {
    Data::check(arguments.keys, arguments.key_size).map_err(WorkError::Argument)?;
    if arguments.keys <= KNOWN || arguments.clients == 0 || arguments.pipeline == 0 {
        return Err(WorkError::Argument(format!(
            "--keys must be above {KNOWN}, --clients and --pipeline above 0"
        )));
    }
    let bench = Bench::prepare(&arguments.common, 1)?;
    let mut outcomes = Vec::new();
    for program in &bench.programs {
        eprintln!("growth: {}", program.label);
        let server = bench.start(program, &Setup::new(Persistence::None))?;
        let mut data = Data::new(arguments.keys, arguments.key_size, arguments.value_size);
        bench.load_until(&server, &mut data, KNOWN)?;
        let prober = arguments.clients;
        let growing =
            measure(&bench, arguments, &server, &mut data, Mix::Grow { known: KNOWN, prober })?;
        let steady = measure(&bench, arguments, &server, &mut data, Mix::Probe { prober })?;
        outcomes.push(Outcome {
            system: program.label.clone(),
            kind: program.kind,
            command_line: server.command_line.clone(),
            growing,
            steady,
        });
    }
    let text = render(arguments, &outcomes);
    bench.finish("growth", arguments, outcomes, &text)
}

/// For as long as `mix` grows; for the arguments' seconds where it does not.
fn measure(
    bench: &Bench,
    arguments: &GrowthArguments,
    server: &Server,
    data: &mut Data,
    mix: Mix,
) -> Result<Stretch, WorkError> {
    let failed = failed_on(server);
    let strings = Strings::new(data, mix, arguments.pipeline, arguments.common.seed);
    let mut driver = Driver::connect(server.address, arguments.clients + 1, bench.waiting, strings)
        .map_err(&failed)?;
    driver.probe(arguments.clients, Duration::from_micros(arguments.interval));
    let mut sample = Sample::empty()?;
    if matches!(mix, Mix::Grow { .. }) {
        while !driver.workload().loaded() {
            sample.add(&driver.run(Duration::from_millis(200)).map_err(&failed)?);
        }
    } else {
        sample.add(&driver.run(Duration::from_secs_f64(arguments.seconds)).map_err(&failed)?);
    }
    sample.add(&driver.drain().map_err(&failed)?);
    let reads = sample.latency_ns[LANE_OF_READS].len();
    let latency = |share| sample.lane_latency_us(LANE_OF_READS, share);
    Ok(Stretch {
        seconds: sample.elapsed.as_secs_f64(),
        writes_per_second: (sample.replies - reads) as f64 / sample.elapsed.as_secs_f64(),
        p50_us: latency(0.5),
        p99_us: latency(0.99),
        p999_us: latency(0.999),
        longest_us: sample.lane_max_us(LANE_OF_READS),
        longer_than_5_ms: sample.lane_longer_than(LANE_OF_READS, Duration::from_millis(5)),
        generator_us: sample.longest_turn.as_secs_f64() * 1e6,
    })
}

fn render(arguments: &GrowthArguments, outcomes: &[Outcome]) -> String {
    let mut text = format!(
        "\nfrom {KNOWN} to {} keys of {} bytes, values of {} bytes: {} connections write, pipeline {}; \
         one reads every {} us\n\nthe reader's wait, microseconds\n\n",
        arguments.keys,
        arguments.key_size,
        arguments.value_size,
        arguments.clients,
        arguments.pipeline,
        arguments.interval
    );
    let mut table = Table::new(&[
        "system",
        "table",
        "p50",
        "p99",
        "p99.9",
        "longest",
        "over 5 ms",
        "k writes/s",
        "s",
        "generator's longest turn",
    ]);
    for outcome in outcomes {
        for (name, stretch) in [("grows", &outcome.growing), ("stays", &outcome.steady)] {
            let figure = |value| number(Some(value), 0);
            table.row(vec![
                outcome.system.clone(),
                name.to_owned(),
                figure(stretch.p50_us),
                figure(stretch.p99_us),
                figure(stretch.p999_us),
                figure(stretch.longest_us),
                stretch.longer_than_5_ms.to_string(),
                figure(stretch.writes_per_second / 1000.0),
                number(Some(stretch.seconds), 1),
                figure(stretch.generator_us),
            ]);
        }
    }
    text += &table.render();
    for outcome in outcomes.iter().filter(|outcome| outcome.kind == Kind::Ladon) {
        let longest = Some(outcome.growing.longest_us / 1000.0);
        text +=
            &verdict("milliseconds of the longest wait while growing", longest, Limit::AtMost(5.0));
    }
    text
}
