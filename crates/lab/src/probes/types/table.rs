//! The tables that `types` prints: an operation in each row.

use super::{Cell, TypesArguments};
use crate::probes::common::Bench;
use crate::probes::measured::Measured;
use crate::report::statistics::{median, ratio};
use crate::report::table::{Table, number};
use crate::report::target::{Limit, verdict};
use crate::systems::Kind;

/// All tables and the verdicts.
pub(super) fn render(bench: &Bench, arguments: &TypesArguments, cells: &[Cell]) -> String {
    let mut text = format!(
        "\npersistence {}: {} connections, medians of {} rounds of {} s\n\
         {} hashes of {} fields with values of {} bytes; {} lists of {} elements of {} bytes; a set and a sorted \
         set of {} members of 10 bytes, ZRANGE of {}; {} bitmaps of {} bytes; {} counters\n",
        arguments.persistence.name(),
        arguments.clients,
        arguments.rounds,
        arguments.seconds,
        arguments.fields / arguments.fields_per_hash,
        arguments.fields_per_hash,
        arguments.value_size,
        arguments.lists,
        arguments.list_length,
        arguments.element_size,
        arguments.members,
        arguments.range_length,
        arguments.bitmaps,
        arguments.bitmap_bytes,
        arguments.counters,
    );
    text += "\nserver CPU, microseconds per operation (ratios: medians of the rounds' ratios; `*`: the load generator was the limit)\n\n";
    text += &cpu(bench, cells);
    text += "\nthousand operations per second\n\n";
    text += &figures(bench, cells, &[|measured| measured.per_second / 1000.0]);
    text += "\nlatency p50 / p99 / p99.9, microseconds\n\n";
    text += &figures(
        bench,
        cells,
        &[|measured| measured.p50_us, |measured| measured.p99_us, |measured| measured.p999_us],
    );
    text +=
        "\nserver busy / its threads ready but without a core / load generator busy, percent\n\n";
    text += &figures(
        bench,
        cells,
        &[
            |measured| measured.server_busy * 100.0,
            |measured| measured.server_waited * 100.0,
            |measured| measured.load_busy * 100.0,
        ],
    );
    text.push('\n');
    text += &verdicts(bench, cells);
    text
}

impl Cell {
    fn name(&self) -> String {
        format!("{} P={}", self.operation.name(), self.pipeline)
    }

    fn figures(&self, system: usize, figure: impl Fn(&Measured) -> f64) -> Vec<f64> {
        self.samples[system].iter().map(figure).collect()
    }

    /// CPU of system `system` through that of `base`.
    fn ratio(&self, system: usize, base: usize) -> Option<f64> {
        let of = |system| self.figures(system, |measured| measured.cpu_us);
        ratio(&of(system), &of(base)).map(|spread| spread.median)
    }
}

/// System and base of every ratio worth a column, with the target where there is one.
fn pairs(bench: &Bench) -> Vec<(usize, usize, Option<f64>)> {
    let mut pairs = Vec::new();
    for (kind, target) in [(Kind::Redis, 0.6), (Kind::Valkey, 0.8)] {
        let Some(base) = bench.programs.iter().position(|program| program.kind == kind) else {
            continue;
        };
        for (system, program) in bench.programs.iter().enumerate() {
            if system != base {
                pairs.push((system, base, (program.kind == Kind::Ladon).then_some(target)));
            }
        }
    }
    pairs
}

fn cpu(bench: &Bench, cells: &[Cell]) -> String {
    let label = |system: usize| bench.programs[system].label.as_str();
    let pairs = pairs(bench);
    let mut heads = vec!["operation".to_owned()];
    heads.extend(bench.programs.iter().map(|program| program.label.clone()));
    heads.extend(
        pairs.iter().map(|&(system, base, _)| format!("{} / {}", label(system), label(base))),
    );
    let mut table = Table::new(&heads.iter().map(String::as_str).collect::<Vec<&str>>());
    for cell in cells {
        let mut row = vec![cell.name()];
        for samples in &cell.samples {
            let limited = samples.iter().filter(|measured| measured.limited_by_load()).count();
            let mark = if limited * 2 > samples.len() { "*" } else { "" };
            let figures: Vec<f64> = samples.iter().map(|measured| measured.cpu_us).collect();
            row.push(number(median(&figures), 2) + mark);
        }
        row.extend(pairs.iter().map(|&(system, base, _)| number(cell.ratio(system, base), 2)));
        table.row(row);
    }
    table.render()
}

/// Medians of several figures in each cell of a table.
fn figures(bench: &Bench, cells: &[Cell], figures: &[fn(&Measured) -> f64]) -> String {
    let mut heads = vec!["operation"];
    heads.extend(bench.programs.iter().map(|program| program.label.as_str()));
    let mut table = Table::new(&heads);
    for cell in cells {
        let mut row = vec![cell.name()];
        row.extend((0..bench.programs.len()).map(|system| {
            let medians =
                figures.iter().map(|figure| number(median(&cell.figures(system, figure)), 0));
            medians.collect::<Vec<String>>().join("/")
        }));
        table.row(row);
    }
    table.render()
}

fn verdicts(bench: &Bench, cells: &[Cell]) -> String {
    let mut text = String::new();
    for (system, base, target) in pairs(bench) {
        let Some(target) = target else { continue };
        let (system_label, base_label) =
            (&bench.programs[system].label, &bench.programs[base].label);
        for cell in cells {
            let what = format!("CPU of {}, {system_label} through {base_label},", cell.name());
            text += &verdict(&what, cell.ratio(system, base), Limit::AtMost(target));
        }
    }
    text
}
