//! Compares two runs: what became slower, and how certain that is.
//!
//! The two share no rounds, so changes of the machine in between are in the ratio too.
//! `--relative-to` divides them out: every figure is first divided, within its round, by that
//! system's.
//!
//! **Invariant:** a change is a regression only if its 99 % interval excludes "no change", and its
//! median is worse by more than the threshold; a single round proves nothing. A cell that was
//! measured before and is empty now is a regression whatever the others do.

use std::collections::BTreeSet;

use serde::Serialize;

use super::table::Table;
use super::view::line::{Line, samples};
use super::view::number::{plain, range, times, with_unit};
use super::view::standing::LEVEL;
use crate::results::statistics::median;
use crate::results::statistics::{Level, unpaired_ratio};
use crate::results::{Better, Cell, Figure, Outcome, PartResult, Results};

/// What to compare.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Only these systems; all if empty.
    pub systems: Vec<String>,
    /// Divide by this system's figures first.
    pub relative_to: Option<String>,
    /// Changes of less than this share are none, 0.03 for 3 %.
    pub threshold: f64,
    /// Every figure and not only each part's first.
    pub all_figures: bool,
}

/// Why two runs cannot be compared.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompareError {
    /// No cell is in both.
    #[error(
        "the two have no measured cell in common (works, parts, systems, settings and axis must match)"
    )]
    NothingInCommon,
    /// `--relative-to` names a system that one of them did not measure.
    #[error("--relative-to {0}: not measured in both, for no cell that is to be compared")]
    NoReference(String),
}

/// What became of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// Surely worse, by more than the threshold.
    Regression,
    /// Measured before, and empty now.
    Lost,
    /// Surely better, by more than the threshold.
    Improvement,
    /// Surely less than the threshold, or than [`LEVEL`] where that is more.
    Unchanged,
    /// Neither: a single round on one side, or an interval that has room for a change and for none.
    Unproven,
}

/// One figure of one cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Where.
    pub work: String,
    /// Where.
    pub part: String,
    /// Whose.
    pub system: String,
    /// At which setting.
    pub setting: String,
    /// Where on the axis.
    pub x: Option<f64>,
    /// Which figure, by its key.
    pub figure: String,
    /// Its unit.
    pub unit: String,
    /// Median before.
    pub old: f64,
    /// Median now.
    pub new: Option<f64>,
    /// How many times the old one the new one is (relative to the reference, where there is one).
    pub ratio: Option<f64>,
    /// The 99 % interval of `ratio`.
    pub interval: Option<(f64, f64)>,
    /// What to make of it.
    pub change: Change,
    /// Why the cell is empty now, if it was lost.
    pub reason: Option<String>,
}

/// All of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// What makes the comparison worth less: another machine, another lay-out.
    pub warnings: Vec<String>,
    /// What was divided by.
    pub relative_to: Option<String>,
    /// The threshold, as a share.
    pub threshold: f64,
    /// Regressions and losses.
    pub regressions: usize,
    /// Cells of the old run that the new one did not try.
    pub not_tried: usize,
    /// Every compared figure.
    pub rows: Vec<Row>,
}

/// Compares `new` with `old`.
///
/// # Errors
/// Nothing in common.
pub fn compare(
    old: &Results,
    new: &Results,
    options: &Options,
) -> Result<Comparison, CompareError> {
    let mut comparison = Comparison {
        warnings: warnings(old, new),
        relative_to: options.relative_to.clone(),
        threshold: options.threshold,
        regressions: 0,
        not_tried: 0,
        rows: Vec::new(),
    };
    let mut without_reference = 0;
    for old_work in &old.works {
        for old_part in &old_work.parts {
            let works = new.works.iter().filter(|work| work.work == old_work.work);
            let new_part =
                works.flat_map(|work| &work.parts).find(|part| part.part == old_part.part);
            let sides = (Side::of(old, old_part), new_part.map(|part| Side::of(new, part)));
            let wanted = |system: &str| {
                (options.systems.is_empty() || options.systems.iter().any(|name| name == system))
                    && options.relative_to.as_deref() != Some(system)
            };
            for line in sides.0.lines.iter().filter(|line| wanted(line.system)) {
                for cell in line.cells.iter().filter(|cell| !cell.rounds().is_empty()) {
                    let after = sides.1.as_ref().and_then(|side| {
                        let line = side.lines.iter().find(|other| {
                            other.system == line.system && other.setting == line.setting
                        })?;
                        Some((side, line.at(cell.x)?))
                    });
                    let Some((side, after)) = after else {
                        comparison.not_tried += 1;
                        continue;
                    };
                    let count = if options.all_figures { old_part.figures.len() } else { 1 };
                    for figure in old_part.figures.iter().take(count) {
                        let ids = (old_work.work.as_str(), old_part.part.as_str());
                        let before = Place { side: &sides.0, line, cell };
                        let after = Place { side, line, cell: after };
                        match row(ids, figure, &before, &after, options, new.seed) {
                            Compared::Row(row) => comparison.rows.push(*row),
                            Compared::Nothing => {}
                            Compared::WithoutReference => without_reference += 1,
                        }
                    }
                }
            }
        }
    }
    if comparison.rows.is_empty() {
        return Err(match &options.relative_to {
            Some(name) if without_reference > 0 => CompareError::NoReference(name.clone()),
            _ => CompareError::NothingInCommon,
        });
    }
    if without_reference > 0 {
        comparison
            .warnings
            .push(format!("{without_reference} figures have no reference and were left out"));
    }
    let worse = |row: &&Row| matches!(row.change, Change::Regression | Change::Lost);
    comparison.regressions = comparison.rows.iter().filter(worse).count();
    Ok(comparison)
}

/// A cell, and its place.
struct Place<'a> {
    side: &'a Side<'a>,
    line: &'a Line<'a>,
    cell: &'a Cell,
}

/// What the comparison of a figure gave.
enum Compared {
    Row(Box<Row>),
    /// It was not measured, or too seldom.
    Nothing,
    /// What it shall be divided by is missing.
    WithoutReference,
}

/// Compares one figure of a cell before and after.
fn row(
    (work, part): (&str, &str),
    figure: &Figure,
    before: &Place<'_>,
    after: &Place<'_>,
    options: &Options,
    seed: u64,
) -> Compared {
    let (line, x) = (before.line, before.cell.x);
    let middle = |cell: &Cell| {
        let samples: Vec<f64> = samples(cell, &figure.key).into_iter().flatten().collect();
        median(&samples)
    };
    let Some(old) = middle(before.cell) else { return Compared::Nothing };
    let mut row = Box::new(Row {
        work: work.to_owned(),
        part: part.to_owned(),
        system: line.system.to_owned(),
        setting: line.setting.to_owned(),
        x,
        figure: figure.key.clone(),
        unit: figure.unit.clone(),
        old,
        new: None,
        ratio: None,
        interval: None,
        change: Change::Lost,
        reason: None,
    });
    if let Outcome::Empty { reason } = &after.cell.outcome {
        row.reason = Some(reason.clone());
        return Compared::Row(row);
    }
    row.new = middle(after.cell);
    let reference = options.relative_to.as_deref();
    let relative = |place: &Place<'_>| place.side.relative(line, x, figure, reference);
    let Some((before, now)) = relative(before).zip(relative(after)) else {
        return Compared::WithoutReference;
    };
    let Some(ratio) = unpaired_ratio(&now, &before, Level::P99, seed) else {
        return Compared::Nothing;
    };
    row.ratio = Some(ratio.median);
    row.interval = ratio.interval;
    row.change = judge(figure, ratio.median, ratio.interval, options.threshold);
    Compared::Row(row)
}

/// The lines of a part of one run.
struct Side<'a> {
    lines: Vec<Line<'a>>,
}

impl<'a> Side<'a> {
    fn of(run: &'a Results, part: &'a PartResult) -> Self {
        Self { lines: Line::all(run, part) }
    }

    /// The figure of each round, divided by the reference's of the same round, promise and place.
    fn relative(
        &self,
        line: &Line<'_>,
        x: Option<f64>,
        figure: &Figure,
        reference: Option<&str>,
    ) -> Option<Vec<f64>> {
        let mine = self
            .lines
            .iter()
            .find(|other| other.system == line.system && other.setting == line.setting)?;
        let values = samples(mine.at(x)?, &figure.key);
        let Some(reference) = reference else {
            return Some(values.into_iter().flatten().collect());
        };
        let base = self
            .lines
            .iter()
            .filter(|other| other.system == reference && other.promise == mine.promise)
            .find_map(|other| other.at(x).filter(|cell| !cell.rounds().is_empty()))?;
        let base = samples(base, &figure.key);
        let pairs = values.into_iter().zip(base);
        let ratios: Vec<f64> = pairs
            .filter_map(|(value, base)| Some(value? / base.filter(|base| *base > 0.0)?))
            .collect();
        (!ratios.is_empty()).then_some(ratios)
    }
}

fn judge(figure: &Figure, ratio: f64, interval: Option<(f64, f64)>, threshold: f64) -> Change {
    let Some((low, high)) = interval else {
        return Change::Unproven;
    };
    let (more, less) =
        (low > 1.0 && ratio >= 1.0 + threshold, high < 1.0 && ratio <= 1.0 - threshold);
    let room = LEVEL.max(1.0 + threshold);
    match (figure.better, more, less) {
        (Better::Higher, true, _) | (Better::Lower, _, true) => Change::Improvement,
        (Better::Higher, _, true) | (Better::Lower, true, _) => Change::Regression,
        _ if low >= 1.0 / room && high <= room => Change::Unchanged,
        _ => Change::Unproven,
    }
}

fn warnings(old: &Results, new: &Results) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut differ = |what: &str, old: String, new: String| {
        if old != new {
            warnings.push(format!("{what} differs: {old}, now {new}"));
        }
    };
    differ("the processor", old.machine.cpu_model.clone(), new.machine.cpu_model.clone());
    differ("the number of cores", old.machine.cores.to_string(), new.machine.cores.to_string());
    differ("the kernel", old.machine.kernel.clone(), new.machine.kernel.clone());
    differ("the cores' use", format!("{:?}", old.cores), format!("{:?}", new.cores));
    differ("the lab's version", old.lab_version.clone(), new.lab_version.clone());
    let options: BTreeSet<&String> = old.load.keys().chain(new.load.keys()).collect();
    for option in options {
        let said =
            |run: &Results| run.load.get(option).cloned().unwrap_or_else(|| "not given".to_owned());
        differ(option, said(old), said(new));
    }
    for system in &old.systems {
        let other = new.systems.iter().find(|other| other.name == system.name);
        if let Some((before, now)) =
            system.version.as_ref().zip(other.and_then(|other| other.version.as_ref()))
        {
            differ(&format!("the version of {}", system.label), before.clone(), now.clone());
        }
    }
    for (name, run) in [("the old run", old), ("the new run", new)] {
        if run.partial {
            warnings.push(format!("{name} is partial"));
        }
        if run.rounds < 3 {
            warnings.push(format!(
                "{name} has {} rounds; 5 or more tell changes from noise",
                run.rounds
            ));
        }
    }
    warnings
}

impl Comparison {
    /// For people: warnings, what changed, and one line at the end.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for warning in &self.warnings {
            text += &format!("note: {warning}\n");
        }
        let relative =
            self.relative_to.as_ref().map_or_else(String::new, |name| format!(" of {name}'s"));
        let ratio = format!("ratio{relative}");
        let mut table =
            Table::new(&["cell", "figure", "old", "new", &ratio, "99 % interval", "change"]);
        let mut rows: Vec<&Row> = self.rows.iter().collect();
        rows.sort_by_key(|row| match row.change {
            Change::Lost => 0,
            Change::Regression => 1,
            Change::Improvement => 2,
            Change::Unproven => 3,
            Change::Unchanged => 4,
        });
        for row in &rows {
            let x = row.x.map_or_else(String::new, |x| format!(" at {}", plain(x)));
            table.row(vec![
                format!("{}/{}{x} {} {}", row.work, row.part, row.system, row.setting),
                row.figure.clone(),
                with_unit(row.old, &row.unit),
                row.new.map_or_else(|| "empty".to_owned(), |new| with_unit(new, &row.unit)),
                row.ratio.map_or_else(|| "-".to_owned(), times),
                row.interval.map_or_else(|| "-".to_owned(), range),
                match row.change {
                    Change::Lost => "LOST",
                    Change::Regression => "REGRESSION",
                    Change::Improvement => "improvement",
                    Change::Unproven => "not told",
                    Change::Unchanged => "unchanged",
                }
                .to_owned(),
            ]);
        }
        text += &table.render();
        for row in rows.iter().filter(|row| row.change == Change::Lost) {
            let reason = row.reason.as_deref().unwrap_or_default();
            text += &format!(
                "lost: {}/{} {} {}: {reason}\n",
                row.work, row.part, row.system, row.setting
            );
        }
        let of = |change: Change| self.rows.iter().filter(|row| row.change == change).count();
        text += &format!(
            "{} figures: {} worse, {} better, {} unchanged, {} not told; {} cells of the old run were not tried\n",
            self.rows.len(),
            self.regressions,
            of(Change::Improvement),
            of(Change::Unchanged),
            of(Change::Unproven),
            self.not_tried
        );
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Cell, Round, WorkResult};

    fn options() -> Options {
        Options { threshold: 0.03, ..Options::default() }
    }

    fn run(cells: &[(&str, &[f64])], better: Better) -> Results {
        let figure = Figure {
            key: "per_second".to_owned(),
            title: "throughput".to_owned(),
            unit: "1/s".to_owned(),
            better,
        };
        let cells = cells.iter().map(|(system, figures)| Cell {
            system: (*system).to_owned(),
            setting: String::new(),
            x: None,
            outcome: if figures.is_empty() {
                Outcome::Empty { reason: "it crashed".to_owned() }
            } else {
                let round = |&per_second: &f64| Round { per_second, ..Round::default() };
                Outcome::Measured { rounds: figures.iter().map(round).collect() }
            },
        });
        let part = PartResult {
            part: "get".to_owned(),
            figures: vec![figure],
            cells: cells.collect(),
            ..PartResult::default()
        };
        let work = WorkResult { work: "kv".to_owned(), parts: vec![part], ..WorkResult::default() };
        Results { rounds: 5, works: vec![work], ..Results::default() }
    }

    fn changes(old: &Results, new: &Results, options: &Options) -> Vec<Change> {
        compare(old, new, options).unwrap().rows.iter().map(|row| row.change).collect()
    }

    const BEFORE: [f64; 5] = [100.0, 101.0, 99.0, 100.5, 99.5];

    #[test]
    fn a_loss_of_a_fifth_is_a_regression_and_the_other_way_an_improvement() {
        let slower = BEFORE.map(|value| value * 0.8);
        let (old, new) =
            (run(&[("a", &BEFORE)], Better::Higher), run(&[("a", &slower)], Better::Higher));
        let comparison = compare(&old, &new, &options()).unwrap();
        assert_eq!((comparison.regressions, comparison.rows[0].change), (1, Change::Regression));
        let (low, high) = comparison.rows[0].interval.unwrap();
        assert!(low < 0.8 && 0.8 < high && high < 0.9, "{low} {high}");
        assert!(comparison.text().contains("REGRESSION"), "{}", comparison.text());
        assert_eq!(changes(&new, &old, &options()), [Change::Improvement]);
        let (old, new) =
            (run(&[("a", &BEFORE)], Better::Lower), run(&[("a", &slower)], Better::Lower));
        assert_eq!(changes(&old, &new, &options()), [Change::Improvement]);
    }

    #[test]
    fn noise_small_changes_and_single_rounds_are_no_regressions() {
        let old = run(&[("a", &BEFORE)], Better::Higher);
        let noisy = run(&[("a", &[80.0, 120.0, 95.0])], Better::Higher);
        assert_eq!(changes(&old, &noisy, &options()), [Change::Unproven]);
        let little = BEFORE.map(|value| value * 0.98);
        let little = run(&[("a", &little)], Better::Higher);
        assert_eq!(changes(&old, &little, &options()), [Change::Unchanged]);
        let once = run(&[("a", &[10.0])], Better::Higher);
        assert_eq!(changes(&old, &once, &options()), [Change::Unproven]);
    }

    #[test]
    fn a_cell_that_is_empty_now_is_lost() {
        let old = run(&[("a", &BEFORE)], Better::Higher);
        let new = run(&[("a", &[])], Better::Higher);
        let comparison = compare(&old, &new, &options()).unwrap();
        assert_eq!((comparison.regressions, comparison.rows[0].change), (1, Change::Lost));
        assert!(comparison.text().contains("it crashed"));
    }

    /// The machine is a third slower today; beside the reference nothing changed.
    #[test]
    fn relative_to_takes_the_machine_out() {
        let slower = BEFORE.map(|value| value * 0.66);
        let old = run(&[("a", &BEFORE), ("redis", &BEFORE)], Better::Higher);
        let new = run(&[("a", &slower), ("redis", &slower)], Better::Higher);
        let both = [Change::Regression, Change::Regression];
        assert_eq!(changes(&old, &new, &options()), both);
        let relative = Options { relative_to: Some("redis".to_owned()), ..options() };
        assert_eq!(changes(&old, &new, &relative), [Change::Unchanged]);
        let unknown = Options { relative_to: Some("nobody".to_owned()), ..options() };
        assert_eq!(
            compare(&old, &new, &unknown),
            Err(CompareError::NoReference("nobody".to_owned()))
        );
    }

    #[test]
    fn another_load_is_said() {
        let (mut old, new) =
            (run(&[("a", &BEFORE)], Better::Higher), run(&[("a", &BEFORE)], Better::Higher));
        old.load.insert("--keys".to_owned(), "1000".to_owned());
        let warnings = compare(&old, &new, &options()).unwrap().warnings;
        assert!(
            warnings.contains(&"--keys differs: 1000, now not given".to_owned()),
            "{warnings:?}"
        );
    }

    #[test]
    fn what_is_not_in_both_is_said() {
        let old = run(&[("a", &BEFORE), ("b", &BEFORE)], Better::Higher);
        let new = run(&[("a", &BEFORE)], Better::Higher);
        assert_eq!(compare(&old, &new, &options()).unwrap().not_tried, 1);
        let other = run(&[("c", &BEFORE)], Better::Higher);
        assert_eq!(compare(&old, &other, &options()), Err(CompareError::NothingInCommon));
        let only = Options { systems: vec!["b".to_owned()], ..options() };
        assert_eq!(compare(&old, &new, &only), Err(CompareError::NothingInCommon));
    }
}
