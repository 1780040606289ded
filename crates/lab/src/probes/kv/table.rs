//! The tables that `kv` prints.

use super::cell::Cell;
use super::{KvArguments, Part};
use crate::probes::common::Bench;
use crate::probes::measured::Measured;
use crate::report::statistics::{median, ratio};
use crate::report::table::{Table, number};
use crate::systems::Kind;

/// All tables of one persistence.
pub(super) fn render(bench: &Bench, arguments: &KvArguments, part: &Part) -> String {
    let mut text = format!(
        "\npersistence {}: {} connections, {} keys of {} bytes, values of {} bytes, medians of {} rounds of {} s\n",
        part.persistence.name(),
        arguments.clients,
        arguments.keys,
        arguments.key_size,
        arguments.value_size,
        arguments.rounds,
        arguments.seconds
    );
    text += "\nserver CPU, microseconds per operation (median of the rounds' ratios below; `*`: the load generator was the limit)\n\n";
    text += &cpu(bench, part);
    text += "\nthousand operations per second\n\n";
    text += &figure(bench, part, |measured| measured.per_second / 1000.0, 0);
    text += "\nlatency p50 / p99 / p99.9, microseconds\n\n";
    text += &latency(bench, part);
    text +=
        "\nserver busy / its threads ready but without a core / load generator busy, percent\n\n";
    text += &busy(bench, part);
    text += "\nresident memory after loading, MiB\n\n";
    text += &resident(bench, arguments, part);
    text
}

fn heads(part: &Part, first: &str) -> Table {
    let names: Vec<String> = part.cells.iter().map(Cell::name).collect();
    let mut heads = vec![first];
    heads.extend(names.iter().map(String::as_str));
    Table::new(&heads)
}

fn cpu(bench: &Bench, part: &Part) -> String {
    let mut table = heads(part, "system");
    for (system, program) in bench.programs.iter().enumerate() {
        let mut row = vec![program.label.clone()];
        row.extend(part.cells.iter().map(|cell| {
            let limited =
                cell.samples[system].iter().filter(|measured| measured.limited_by_load()).count();
            let mark = if limited * 2 > cell.samples[system].len() { "*" } else { "" };
            number(median(&cell.figures(system, |measured| measured.cpu_us)), 2) + mark
        }));
        table.row(row);
    }
    for kind in [Kind::Redis, Kind::Valkey] {
        let Some(base) = bench.programs.iter().position(|program| program.kind == kind) else {
            continue;
        };
        for (system, program) in
            bench.programs.iter().enumerate().filter(|(system, _)| *system != base)
        {
            let mut row = vec![format!("{} / {}", program.label, bench.programs[base].label)];
            row.extend(part.cells.iter().map(|cell| {
                let of = |system| cell.figures(system, |measured| measured.cpu_us);
                number(ratio(&of(system), &of(base)).map(|spread| spread.median), 2)
            }));
            table.row(row);
            if program.kind == Kind::Ladon {
                let mut row = vec!["  target, at most".to_owned()];
                row.extend(part.cells.iter().map(|cell| number(target(kind, cell.pipeline), 2)));
                table.row(row);
            }
        }
    }
    table.render()
}

/// What Ladon's CPU per operation is to be at most, of a peer's, at a pipeline depth.
const fn target(base: Kind, pipeline: usize) -> Option<f64> {
    match (base, pipeline) {
        (Kind::Redis, 1) => Some(0.80),
        (Kind::Redis, 16) => Some(0.32),
        (Kind::Redis, 64) => Some(0.22),
        (Kind::Valkey, 1) => Some(0.85),
        (Kind::Valkey, 16) => Some(0.55),
        (Kind::Valkey, 64) => Some(0.45),
        _ => None,
    }
}

fn figure(
    bench: &Bench,
    part: &Part,
    figure: impl Fn(&Measured) -> f64 + Copy,
    digits: usize,
) -> String {
    let mut table = heads(part, "system");
    for (system, program) in bench.programs.iter().enumerate() {
        let mut row = vec![program.label.clone()];
        row.extend(
            part.cells.iter().map(|cell| number(median(&cell.figures(system, figure)), digits)),
        );
        table.row(row);
    }
    table.render()
}

fn latency(bench: &Bench, part: &Part) -> String {
    several(
        bench,
        part,
        &[|measured| measured.p50_us, |measured| measured.p99_us, |measured| measured.p999_us],
    )
}

fn busy(bench: &Bench, part: &Part) -> String {
    several(
        bench,
        part,
        &[
            |measured| measured.server_busy * 100.0,
            |measured| measured.server_waited * 100.0,
            |measured| measured.load_busy * 100.0,
        ],
    )
}

/// Medians of several figures in one cell of the table.
fn several(bench: &Bench, part: &Part, figures: &[fn(&Measured) -> f64]) -> String {
    let mut table = heads(part, "system");
    for (system, program) in bench.programs.iter().enumerate() {
        let mut row = vec![program.label.clone()];
        row.extend(part.cells.iter().map(|cell| {
            let medians =
                figures.iter().map(|figure| number(median(&cell.figures(system, figure)), 0));
            medians.collect::<Vec<String>>().join("/")
        }));
        table.row(row);
    }
    table.render()
}

fn resident(bench: &Bench, arguments: &KvArguments, part: &Part) -> String {
    let mut table = Table::new(&["system", "MiB", "bytes a key"]);
    for (system, program) in bench.programs.iter().enumerate() {
        let bytes = median(&part.resident_bytes[system]);
        table.row(vec![
            program.label.clone(),
            number(bytes.map(|bytes| bytes / f64::from(1 << 20)), 0),
            number(bytes.map(|bytes| bytes / f64::from(arguments.keys)), 0),
        ]);
    }
    table.render()
}
