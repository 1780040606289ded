//! `handover`: how long an element takes from its `LPUSH` to the client that waits in `BLPOP`.
//!
//! Two connections, on different IO threads of Ladon. One step at a time: the consumer asks, the server is left alone for a while, so
//! that the consumer waits and the server sleeps, then the producer pushes. What is measured is the
//! time from before the push is written until the element is read, and until the push's own reply is.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use clap::Args;
use hdrhistogram::Histogram;
use serde::Serialize;

use super::WorkError;
use super::common::{Bench, Common, PATIENCE};
use crate::load::driver::Waiting;
use crate::report::statistics::{Spread, median, ratio};
use crate::report::table::{Table, number};
use crate::report::target::{Limit, verdict};
use crate::systems::arguments::Setup;
use crate::systems::control::Control;
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
    if !(ELEMENT_SIZE_MIN..=1 << 20).contains(&arguments.element_size) {
        return Err(WorkError::Argument(format!(
            "--element-size must be from {ELEMENT_SIZE_MIN} to 1 MiB"
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

/// The list.
const KEY: &str = "queue";
/// An element is a number of this many digits, and padding.
const ELEMENT_SIZE_MIN: usize = 10;
/// Handovers before anything counts.
const WARM_UP: u64 = 50;
/// Every so often the server is asked whether the consumer waits already when the push comes.
const ASKED_EVERY: u64 = 256;

fn measure(
    bench: &Bench,
    arguments: &HandoverArguments,
    server: &Server,
    kind: Kind,
) -> Result<Seen, WorkError> {
    let failed = |what: String| WorkError::Unexpected { system: server.label.clone(), what };
    let mut control = server.control()?;
    let (mut consumer, mut producer, _others) = pair(bench, arguments, server, kind)?;
    let mut handover = histogram()?;
    let mut push = histogram()?;
    let pause = Duration::from_micros(arguments.pause);
    let ask = request(&["BLPOP", KEY, "0"]);
    let clock = server.cpu_clock()?;
    let (mut began, mut cpu_before) = (Instant::now(), clock.now()?);
    let mut number: u64 = 0;
    while number <= WARM_UP || began.elapsed().as_secs_f64() < arguments.seconds {
        if number == WARM_UP {
            (began, cpu_before) = (Instant::now(), clock.now()?);
        }
        let element = format!("{number:0width$}", width = arguments.element_size);
        let right = request(&[KEY, &element]);
        consumer.stream.write_all(&ask)?;
        wait(pause, bench.waiting);
        if number.is_multiple_of(ASKED_EVERY)
            && control.info("clients", "blocked_clients")?.trim() != "1"
        {
            let what = "has not made the consumer wait yet: a longer --pause is needed";
            return Err(failed(what.into()));
        }
        let command = request(&["LPUSH", KEY, &element]);
        let sent = Instant::now();
        producer.stream.write_all(&command)?;
        consumer.expect(&right).map_err(|error| failed(format!("handed over: {error}")))?;
        let handed_over = sent.elapsed();
        producer.expect(b":1\r\n").map_err(|error| failed(format!("LPUSH: {error}")))?;
        let answered = sent.elapsed();
        if number >= WARM_UP {
            handover.saturating_record(nanoseconds(handed_over));
            push.saturating_record(nanoseconds(answered));
        }
        number += 1;
    }
    let handovers = number - WARM_UP;
    let cpu = clock.now()?.saturating_sub(cpu_before);
    let us = |histogram: &Histogram<u64>, share| histogram.value_at_quantile(share) as f64 / 1000.0;
    Ok(Seen {
        handovers,
        p50_us: us(&handover, 0.5),
        p99_us: us(&handover, 0.99),
        p999_us: us(&handover, 0.999),
        push_p50_us: us(&push, 0.5),
        push_p99_us: us(&push, 0.99),
        cpu_us: cpu.as_secs_f64() * 1e6 / handovers as f64,
    })
}

/// The two sides, on different IO threads of Ladon, and what had to be connected beside them for that:
/// a connection goes to the thread that has fewest, and earlier ones may not be quite gone.
fn pair(
    bench: &Bench,
    arguments: &HandoverArguments,
    server: &Server,
    kind: Kind,
) -> Result<(Peer, Peer, Vec<Peer>), WorkError> {
    let mut control = server.control()?;
    let threads = if kind == Kind::Ladon { arguments.threads } else { 1 };
    let mut place = || -> Result<(usize, Peer), WorkError> {
        let before = if threads > 1 { dealt(&mut control, threads)? } else { vec![0] };
        let peer = Peer::connect(server, bench.waiting)?;
        let after = if threads > 1 { dealt(&mut control, threads)? } else { vec![0] };
        let place = before.iter().zip(&after).position(|(before, after)| after > before);
        Ok((place.unwrap_or(0), peer))
    };
    let (consumers_thread, consumer) = place()?;
    let mut others = Vec::new();
    for _ in 0..CONNECTIONS_MAX {
        let (thread, peer) = place()?;
        if threads == 1 || thread != consumers_thread {
            return Ok((consumer, peer, others));
        }
        others.push(peer);
    }
    let what = format!("dealt {CONNECTIONS_MAX} connections to one IO thread");
    Err(WorkError::Unexpected { system: server.label.clone(), what })
}

/// More than it can take until another thread has its turn.
const CONNECTIONS_MAX: usize = 64;

/// Connections that the first `threads` IO threads of Ladon were ever dealt.
fn dealt(control: &mut Control, threads: usize) -> io::Result<Vec<u64>> {
    let of = |thread| {
        let line = control.info("ladon", &format!("io_thread{thread}"))?;
        let count = line.split(',').find_map(|part| part.strip_prefix("connections="));
        count
            .and_then(|count| count.trim().parse().ok())
            .ok_or_else(|| io::Error::other(line.clone()))
    };
    (0..threads).map(of).collect()
}

/// One side.
struct Peer {
    stream: TcpStream,
    waiting: Waiting,
    received: Vec<u8>,
}

impl Peer {
    fn connect(server: &Server, waiting: Waiting) -> io::Result<Peer> {
        let stream = TcpStream::connect(server.address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nonblocking(false)?;
        let mut peer = Peer { stream, waiting, received: Vec::new() };
        // It has its thread before the next one comes.
        peer.stream.write_all(&request(&["PING"]))?;
        peer.expect(b"+PONG\r\n")?;
        Ok(peer)
    }

    /// Reads exactly what is expected.
    fn expect(&mut self, right: &[u8]) -> io::Result<()> {
        self.received.resize(right.len(), 0);
        let spins = self.waiting == Waiting::Spin;
        if spins {
            self.stream.set_nonblocking(true)?;
        }
        let read = read_exactly(&mut self.stream, &mut self.received);
        if spins {
            self.stream.set_nonblocking(false)?;
        }
        read?;
        if self.received == right {
            return Ok(());
        }
        Err(io::Error::other(format!(
            "expected `{}`, got `{}`",
            right.escape_ascii(),
            self.received.escape_ascii()
        )))
    }
}

/// Spins where the stream does not wait.
fn read_exactly(stream: &mut TcpStream, bytes: &mut [u8]) -> io::Result<()> {
    let (mut filled, until) = (0, Instant::now() + PATIENCE);
    while filled < bytes.len() {
        match stream.read(&mut bytes[filled..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && Instant::now() < until => {
                std::hint::spin_loop();
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn wait(pause: Duration, waiting: Waiting) {
    match waiting {
        Waiting::Sleep => std::thread::sleep(pause),
        Waiting::Spin => {
            let began = Instant::now();
            while began.elapsed() < pause {
                std::hint::spin_loop();
            }
        }
    }
}

/// An array of bulk strings: a request, and also `BLPOP`'s reply.
fn request(words: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len());
    for word in words {
        bytes += &format!("${}\r\n{word}\r\n", word.len());
    }
    bytes.into_bytes()
}

fn histogram() -> io::Result<Histogram<u64>> {
    Histogram::new_with_bounds(100, 60_000_000_000, 3).map_err(io::Error::other)
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
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
