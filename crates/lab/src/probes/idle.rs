//! `idle`: what connections cost that do nothing.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use clap::Args;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde::Serialize;

use super::WorkError;
use super::common::{Bench, Common};
use crate::report::table::{Table, number};
use crate::report::target::{Limit, verdict};
use crate::systems::arguments::Setup;
use crate::systems::server::Server;
use crate::systems::{Kind, Persistence};

/// Options of `idle`.
#[derive(Args, Clone, Debug, Serialize)]
pub struct IdleArguments {
    /// Options of every work.
    #[command(flatten)]
    pub common: Common,
    /// Connections.
    #[arg(long, default_value_t = 10_000)]
    pub connections: usize,
    /// Seconds over which CPU time is counted, without and with them.
    #[arg(long, default_value_t = 10.0)]
    pub seconds: f64,
}

/// What one system showed.
#[derive(Debug, Serialize)]
struct Outcome {
    system: String,
    kind: Kind,
    command_line: Vec<String>,
    /// Resident bytes without and with the connections.
    rss_without_bytes: u64,
    rss_with_bytes: u64,
    bytes_per_connection: f64,
    /// CPU milliseconds of a second without and with them.
    cpu_without_ms: f64,
    cpu_with_ms: f64,
}

/// Files that the lab and a server have open beside the connections.
const OTHER_FILES: u64 = 200;

/// Measures, prints and writes the results.
///
/// # Errors
/// Whatever ends the run early; a connection that does not answer does.
pub fn run(arguments: &IdleArguments) -> Result<(), WorkError> {
    if arguments.connections == 0 {
        return Err(WorkError::Argument("--connections must be above 0".into()));
    }
    let bench = Bench::prepare(&arguments.common, 1)?;
    allow_open_files(arguments.connections as u64 + OTHER_FILES)?;
    let mut outcomes = Vec::new();
    for program in &bench.programs {
        eprintln!("idle: {}", program.label);
        let server = bench.start(program, &Setup::new(Persistence::None))?;
        outcomes.push(measure(arguments, &server, program.kind)?);
    }
    let text = render(arguments, &outcomes);
    bench.finish("idle", arguments, outcomes, &text)
}

/// Servers inherit the limit.
fn allow_open_files(count: u64) -> Result<(), WorkError> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if hard < count {
        let what = format!("{count} open files are needed, {hard} are allowed (ulimit -Hn)");
        return Err(WorkError::Argument(what));
    }
    Ok(setrlimit(Resource::RLIMIT_NOFILE, soft.max(count), hard)?)
}

fn measure(arguments: &IdleArguments, server: &Server, kind: Kind) -> Result<Outcome, WorkError> {
    let failed = |what: String| WorkError::Unexpected { system: server.label.clone(), what };
    let rss =
        || server.resident().map(|resident| resident.now).ok_or_else(|| failed("is gone".into()));
    let period = Duration::from_secs_f64(arguments.seconds);
    std::thread::sleep(Duration::from_secs(1)); // the start is over
    let without = rss()?;
    let cpu_without_ms = cpu_ms_per_second(server, period)?;
    let mut connections = Vec::with_capacity(arguments.connections);
    for number in 0..arguments.connections {
        let mut connection = TcpStream::connect(server.address)?;
        connection.set_read_timeout(Some(Duration::from_secs(10)))?;
        ping(&mut connection).map_err(|error| failed(format!("connection {number}: {error}")))?;
        connections.push(connection);
    }
    let connected = server.control()?.info("clients", "connected_clients")?;
    if connected.parse::<usize>().unwrap_or(0) < arguments.connections {
        return Err(failed(format!("says that {connected} clients are connected")));
    }
    std::thread::sleep(Duration::from_secs(1));
    let cpu_with_ms = cpu_ms_per_second(server, period)?;
    let with = rss()?;
    for (number, connection) in connections.iter_mut().enumerate() {
        ping(connection).map_err(|error| failed(format!("idle connection {number}: {error}")))?;
    }
    Ok(Outcome {
        system: server.label.clone(),
        kind,
        command_line: server.command_line.clone(),
        rss_without_bytes: without,
        rss_with_bytes: with,
        bytes_per_connection: (with as f64 - without as f64) / arguments.connections as f64,
        cpu_without_ms,
        cpu_with_ms,
    })
}

/// Each connection has been used, so that buffers made at first use count.
fn ping(connection: &mut TcpStream) -> std::io::Result<()> {
    connection.write_all(b"*1\r\n$4\r\nPING\r\n")?;
    let mut reply = [0; 7];
    connection.read_exact(&mut reply)?;
    if &reply == b"+PONG\r\n" {
        return Ok(());
    }
    Err(std::io::Error::other(format!("answered PING with `{}`", reply.escape_ascii())))
}

fn cpu_ms_per_second(server: &Server, period: Duration) -> Result<f64, WorkError> {
    let clock = server.cpu_clock()?;
    let before = clock.now()?;
    std::thread::sleep(period);
    Ok((clock.now()? - before).as_secs_f64() * 1000.0 / period.as_secs_f64())
}

fn render(arguments: &IdleArguments, outcomes: &[Outcome]) -> String {
    let mut text = format!(
        "\n{} connections, each used once; CPU over {} s without and with them\n\n",
        arguments.connections, arguments.seconds
    );
    let mut table = Table::new(&[
        "system",
        "RSS without MiB",
        "RSS with MiB",
        "bytes a connection",
        "CPU ms/s without",
        "CPU ms/s with",
    ]);
    let mib = |bytes: u64| number(Some(bytes as f64 / f64::from(1 << 20)), 1);
    for outcome in outcomes {
        table.row(vec![
            outcome.system.clone(),
            mib(outcome.rss_without_bytes),
            mib(outcome.rss_with_bytes),
            number(Some(outcome.bytes_per_connection), 0),
            number(Some(outcome.cpu_without_ms), 2),
            number(Some(outcome.cpu_with_ms), 2),
        ]);
    }
    text += &table.render();
    for outcome in outcomes.iter().filter(|outcome| outcome.kind == Kind::Ladon) {
        text += &verdict(
            "bytes a connection",
            Some(outcome.bytes_per_connection),
            Limit::AtMost(4096.0),
        );
    }
    text
}
