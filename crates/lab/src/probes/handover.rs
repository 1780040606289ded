//! `handover`: how long an element takes from its `LPUSH` to the client that waits in `BLPOP`.
//!
//! Two connections, on different IO threads of Ladon. One step at a time: the consumer asks, the server is left alone for a while, so
//! that the consumer waits and the server sleeps, then the producer pushes. What is measured is the
//! time from before the push is written until the element is read, and until the push's own reply is.

use std::time::Duration;

use clap::Args;
use hdrhistogram::Histogram;
use serde::Serialize;

use super::WorkError;
use super::common::{Bench, Common};
use crate::load::handover::{ELEMENT_BYTES_MIN, HandoverError, Handovers};
use crate::report::statistics::{Spread, median, ratio};
use crate::report::table::{Table, number};
use crate::report::target::{Limit, verdict};
use crate::systems::arguments::Setup;
use crate::systems::server::Server;
use crate::systems::{Kind, Persistence};

/// Options of `handover`.
#[derive(Args, Clone, Debug, Serialize)]
pub struct HandoverArguments {
    /// Options of every work.
    #[command(flatten)]
    pub common: Common,
    /// Interleaved rounds; figures are medians over them.
    #[arg(long, default_value_t = 5)]
    pub rounds: usize,
    /// Seconds of each measurement.
    #[arg(long, default_value_t = 2.0)]
    pub seconds: f64,
    /// IO threads of Ladon; the others run commands on one thread in any case.
    #[arg(long, default_value_t = 2)]
    pub threads: usize,
    /// Microseconds between the consumer's request and the push.
    #[arg(long, default_value_t = 200)]
    pub pause: u64,
    /// What each server promises.
    #[arg(long, value_enum, default_value_t = Persistence::None)]
    pub persistence: Persistence,
    /// Length of each element in bytes.
    #[arg(long, default_value_t = 64)]
    pub element_size: usize,
}

/// What one round showed of a system, microseconds.
#[derive(Clone, Debug, Serialize)]
struct Seen {
    handovers: u64,
    p50_us: f64,
    p99_us: f64,
    p999_us: f64,
    /// Until the push's own reply.
    push_p50_us: f64,
    push_p99_us: f64,
    /// CPU of the server for one handover, with the requests of both sides.
    cpu_us: f64,
}

#[derive(Debug, Serialize)]
struct Outcome {
    system: String,
    kind: Kind,
    command_line: Vec<String>,
    rounds: Vec<Seen>,
}

/// Measures, prints and writes the results.
///
/// # Errors
/// Whatever ends the run early; a wrong answer does.
pub fn run(arguments: &HandoverArguments) -> Result<(), WorkError> {
    if [arguments.rounds, arguments.threads].contains(&0) {
        return Err(WorkError::Argument("--rounds and --threads must be above 0".into()));
    }
    if !(ELEMENT_BYTES_MIN..=1 << 20).contains(&arguments.element_size) {
        return Err(WorkError::Argument(format!(
            "--element-size must be from {ELEMENT_BYTES_MIN} to 1 MiB"
        )));
    }
    if !(0.01..=3600.0).contains(&arguments.seconds) {
        return Err(WorkError::Argument("--seconds must be between 0.01 and 3600".into()));
    }
    let bench = Bench::prepare(&arguments.common, arguments.threads)?;
    let mut outcomes: Vec<Outcome> = Vec::new();
    for program in &bench.programs {
        let (system, kind) = (program.label.clone(), program.kind);
        outcomes.push(Outcome { system, kind, command_line: Vec::new(), rounds: Vec::new() });
    }
    for round in 0..arguments.rounds {
        for turn in 0..bench.programs.len() {
            let system = (turn + round) % bench.programs.len();
            let program = &bench.programs[system];
            let io_threads = if program.kind == Kind::Ladon { arguments.threads } else { 1 };
            let setup = Setup { io_threads, ..Setup::new(arguments.persistence) };
            let server = bench.start(program, &setup)?;
            outcomes[system].command_line.clone_from(&server.command_line);
            let seen = measure(&bench, arguments, &server, program.kind)?;
            eprintln!(
                "round {} {}: p50 {:.1} us, p99 {:.1} us",
                round + 1,
                program.label,
                seen.p50_us,
                seen.p99_us
            );
            outcomes[system].rounds.push(seen);
        }
    }
    let text = render(&bench, arguments, &outcomes);
    bench.finish("handover", arguments, outcomes, &text)
}

fn measure(
    bench: &Bench,
    arguments: &HandoverArguments,
    server: &Server,
    kind: Kind,
) -> Result<Seen, WorkError> {
    let handovers = Handovers {
        time: Duration::from_secs_f64(arguments.seconds),
        pause: Duration::from_micros(arguments.pause),
        element_bytes: arguments.element_size,
        threads: if kind == Kind::Ladon { arguments.threads } else { 1 },
        waiting: bench.waiting,
    };
    let clock = server.cpu_clock()?;
    let mut before = clock.now()?;
    let seen = handovers.run(server.address, || before = clock.now().unwrap_or(before));
    let seen = seen.map_err(|error| match error {
        HandoverError::Unexpected(what) => {
            WorkError::Unexpected { system: server.label.clone(), what }
        }
        HandoverError::NotWaiting => {
            WorkError::Unexpected { system: server.label.clone(), what: error.to_string() }
        }
        HandoverError::Io(error) => error.into(),
    })?;
    let cpu = clock.now()?.saturating_sub(before);
    let us = |histogram: &Histogram<u64>, share| histogram.value_at_quantile(share) as f64 / 1000.0;
    let handovers = seen.handover_ns.len();
    Ok(Seen {
        handovers,
        p50_us: us(&seen.handover_ns, 0.5),
        p99_us: us(&seen.handover_ns, 0.99),
        p999_us: us(&seen.handover_ns, 0.999),
        push_p50_us: us(&seen.push_ns, 0.5),
        push_p99_us: us(&seen.push_ns, 0.99),
        cpu_us: cpu.as_secs_f64() * 1e6 / handovers as f64,
    })
}

fn render(bench: &Bench, arguments: &HandoverArguments, outcomes: &[Outcome]) -> String {
    let mut text = format!(
        "\nfrom LPUSH to the client that waits in BLPOP, microseconds; persistence {}, elements of {} bytes, \
         {} us between the wait's begin and the push, medians of {} rounds of {} s; server on cores {:?}, \
         Ladon with {} IO threads and a connection on each\n\n",
        arguments.persistence.name(),
        arguments.element_size,
        arguments.pause,
        arguments.rounds,
        arguments.seconds,
        bench.cores.server,
        arguments.threads,
    );
    let mut table = Table::new(&[
        "system",
        "p50",
        "p99",
        "p99.9",
        "LPUSH's reply p50",
        "p99",
        "server CPU us",
        "handovers",
    ]);
    for outcome in outcomes {
        let of = |figure: fn(&Seen) -> f64| number(median(&figures(outcome, figure)), 1);
        table.row(vec![
            outcome.system.clone(),
            of(|seen| seen.p50_us),
            of(|seen| seen.p99_us),
            of(|seen| seen.p999_us),
            of(|seen| seen.push_p50_us),
            of(|seen| seen.push_p99_us),
            of(|seen| seen.cpu_us),
            of(|seen| seen.handovers as f64),
        ]);
    }
    text += &table.render();
    text.push('\n');
    for ladon in outcomes.iter().filter(|outcome| outcome.kind == Kind::Ladon) {
        for peer in outcomes.iter().filter(|outcome| outcome.kind != Kind::Ladon) {
            for (name, figure) in FIGURES {
                let ratio: Option<Spread> = ratio(&figures(ladon, figure), &figures(peer, figure));
                let what =
                    format!("{name} of a handover, {} through {}", ladon.system, peer.system);
                text += &verdict(&what, ratio.map(|spread| spread.median), Limit::AtMost(1.0));
            }
        }
    }
    text
}

/// What is compared.
const FIGURES: [(&str, Figure); 2] = [("p50", |seen| seen.p50_us), ("p99", |seen| seen.p99_us)];

type Figure = fn(&Seen) -> f64;

fn figures(outcome: &Outcome, figure: fn(&Seen) -> f64) -> Vec<f64> {
    outcome.rounds.iter().map(figure).collect()
}
