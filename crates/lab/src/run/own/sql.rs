//! Statements of SQL, over a server's own protocol for them.

use std::io;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::dialects::sql::{Answers, Said, SqlProtocol, ask};
use crate::load::sample::Sample;
use crate::load::sql::points::{Point, Points};
use crate::load::sql::queries::{Query, is_right};
use crate::load::sql::tables::Tables;
use crate::load::stream::Stream;
use crate::run::cell::CellError;
use crate::run::round::round_of;
use crate::run::stage::Stage;
use crate::systems::cleanup;
use crate::works::sql::{POINTS, QUERIES, depths, rows, users};

/// How long a statement may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// Queries of a measurement, however long they take.
const QUERIES_MIN: u64 = 2;

/// Makes the tables and fills them.
pub(super) fn load(stage: &mut Stage<'_>, _: &str) -> Result<(), CellError> {
    let protocol = protocol(stage)?;
    let mut socket = connect(stage, protocol.as_ref())?;
    for definition in Tables::definitions(protocol.as_ref()) {
        change(protocol.as_ref(), &mut socket, &definition, None)?;
    }
    let tables = Tables::new(i64::from(rows(&stage.bench.scale)));
    for (text, rows) in tables.fills() {
        if cleanup::is_ending() {
            return Err(CellError::Interrupted);
        }
        change(protocol.as_ref(), &mut socket, &text, Some(rows))?;
    }
    stage.kept = Some(Box::new(tables));
    Ok(())
}

/// Measures the statement of `part`.
pub(super) fn run(stage: &mut Stage<'_>, part: &str) -> Result<(), CellError> {
    let not_loaded = || CellError::Broken("its tables were not made".to_owned());
    let kept = stage.kept.take().ok_or_else(not_loaded)?;
    let mut tables = kept.downcast::<Tables>().map_err(|_| not_loaded())?;
    let done = measure(stage, part, &mut tables);
    stage.kept = Some(tables);
    done
}

fn measure(stage: &mut Stage<'_>, part: &str, tables: &mut Tables) -> Result<(), CellError> {
    let protocol = protocol(stage)?;
    if let Some((_, query, _)) = QUERIES.iter().find(|(name, ..)| name[0] == part) {
        return queries(stage, part, protocol.as_ref(), *query, tables);
    }
    let found = POINTS.iter().find(|(name, ..)| name[0] == part);
    let (_, point, _) = found.ok_or_else(|| CellError::Broken(format!("no part {part}")))?;
    for depth in depths(&stage.bench.scale) {
        // Where one statement of a connection is under way at a time, there are no others.
        if depth == 1 || protocol.pipelines() {
            points(stage, part, protocol.as_ref(), (*point, depth), tables)?;
        }
    }
    let counted = match point {
        Point::Insert => Query::Entries,
        Point::Update => Query::Hits,
        _ => return Ok(()),
    };
    let mut socket = connect(stage, protocol.as_ref())?;
    answered(protocol.as_ref(), &mut socket, counted, &counted.answer(tables))
}

fn points(
    stage: &mut Stage<'_>,
    part: &str,
    protocol: &dyn SqlProtocol,
    (point, depth): (Point, usize),
    tables: &mut Tables,
) -> Result<(), CellError> {
    let (mut streams, mut statements) = (Vec::new(), Vec::new());
    let users = users(&stage.bench.scale);
    for _ in 0..users {
        let mut socket = connect(stage, protocol)?;
        statements.push(prepare(protocol, &mut socket, point.statement())?);
        streams.push(Stream::opened(socket).map_err(broken)?);
    }
    let seed = stage.next_seed();
    let workload = Points::new(point, protocol, statements, tables, depth, seed);
    let round = stage.measure_streams(streams, users, workload)?;
    stage.put(part, Some(depth as f64), round);
    Ok(())
}

/// One after the other, from whole one to whole one: in a short stretch there are few.
fn queries(
    stage: &mut Stage<'_>,
    part: &str,
    protocol: &dyn SqlProtocol,
    query: Query,
    tables: &Tables,
) -> Result<(), CellError> {
    let right = query.answer(tables);
    let mut socket = connect(stage, protocol)?;
    answered(protocol, &mut socket, query, &right)?;
    let mut sample = Sample::empty().map_err(broken)?;
    let (began, before) = (Instant::now(), stage.usage());
    while sample.replies < QUERIES_MIN || began.elapsed() < stage.bench.measured() {
        if cleanup::is_ending() {
            return Err(CellError::Interrupted);
        }
        let asked = Instant::now();
        answered(protocol, &mut socket, query, &right)?;
        let took = u64::try_from(asked.elapsed().as_nanos()).unwrap_or(u64::MAX);
        sample.latency_ns[0].saturating_record(took);
        sample.replies += 1;
    }
    sample.elapsed = began.elapsed();
    let round = round_of(&sample, before.zip(stage.usage()), 1, 0.0);
    stage.put(part, None, round);
    Ok(())
}

fn protocol(stage: &Stage<'_>) -> Result<Box<dyn SqlProtocol>, CellError> {
    stage.subject.sql().map(|kind| kind.protocol()).map_err(CellError::Cannot)
}

fn connect(stage: &Stage<'_>, protocol: &dyn SqlProtocol) -> Result<TcpStream, CellError> {
    let open = || {
        let mut socket = TcpStream::connect(stage.target.address)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        protocol.login(&mut socket)?;
        Ok(socket)
    };
    open().map_err(broken)
}

fn prepare(
    protocol: &dyn SqlProtocol,
    socket: &mut TcpStream,
    text: &str,
) -> Result<u64, CellError> {
    let mut request = Vec::new();
    protocol.prepare(0, text, &mut request);
    let said = ask(protocol, socket, Answers::Preparation, &request, |said| match said {
        Said::Prepared(statement) => Ok(*statement),
        other => Err(CellError::Broken(format!("{text}: {other:?}"))),
    });
    said.map_err(broken)?
}

/// Runs a statement that changes so many rows, or any number.
fn change(
    protocol: &dyn SqlProtocol,
    socket: &mut TcpStream,
    text: &str,
    rows: Option<u64>,
) -> Result<(), CellError> {
    let mut request = Vec::new();
    protocol.text(0, text, &mut request);
    let said = ask(protocol, socket, Answers::Text, &request, |said| match said {
        Said::Changed(changed) if rows.is_none_or(|rows| rows == *changed) => Ok(()),
        other => Err(CellError::Broken(format!("{text:.200}: {other:?}"))),
    });
    said.map_err(broken)?
}

/// Asks a query and compares its answer with the right one.
fn answered(
    protocol: &dyn SqlProtocol,
    socket: &mut TcpStream,
    query: Query,
    right: &(usize, Vec<crate::dialects::sql::Value>),
) -> Result<(), CellError> {
    let mut request = Vec::new();
    protocol.text(0, query.text(), &mut request);
    let said = ask(protocol, socket, Answers::Text, &request, |said| match said {
        Said::Refused(words) => Err(CellError::Broken(format!("{}: {words}", query.text()))),
        said if is_right(right, said) => Ok(()),
        said => Err(CellError::Wrong(format!("{}: {said:?}, not {right:?}", query.text()))),
    });
    said.map_err(broken)?
}

fn broken(error: io::Error) -> CellError {
    CellError::Broken(error.to_string())
}
