//! A line of a chart or table: one system at one setting, with its cells along the axis.

use crate::results::statistics::median;
use crate::results::statistics::{Estimate, Level, estimate};
use crate::results::{Cell, Figure, Outcome, PartResult, Results};

/// One system at one setting within a part.
#[derive(Clone, Debug)]
pub struct Line<'a> {
    /// [`crate::results::SystemRecord::name`].
    pub system: &'a str,
    /// Its name for people, with its version.
    pub label: String,
    /// The setting in the system's own words; may be empty.
    pub setting: &'a str,
    /// What an acknowledged write is worth at that setting; empty where it was not said.
    pub promise: &'a str,
    /// Its cells in order of the axis.
    pub cells: Vec<&'a Cell>,
    seed: u64,
}

impl<'a> Line<'a> {
    /// The lines of a part, in the order of their first cells.
    #[must_use]
    pub fn all(results: &'a Results, part: &'a PartResult) -> Vec<Self> {
        let mut lines: Vec<Self> = Vec::new();
        for cell in &part.cells {
            let known = lines
                .iter_mut()
                .find(|line| line.system == cell.system && line.setting == cell.setting);
            match known {
                Some(line) => line.cells.push(cell),
                None => lines.push(Self {
                    system: &cell.system,
                    label: label(results, &cell.system),
                    setting: &cell.setting,
                    promise: promise(results, cell),
                    cells: vec![cell],
                    seed: results.seed,
                }),
            }
        }
        for line in &mut lines {
            let x = |cell: &Cell| cell.x.unwrap_or(0.0);
            line.cells.sort_by(|a, b| x(a).total_cmp(&x(b)));
        }
        lines
    }

    /// Label and setting.
    #[must_use]
    pub fn name(&self) -> String {
        if self.setting.is_empty() {
            self.label.clone()
        } else {
            format!("{}, {}", self.label, self.setting)
        }
    }

    /// Its cell at `x`.
    #[must_use]
    pub fn at(&self, x: Option<f64>) -> Option<&'a Cell> {
        self.cells.iter().copied().find(|cell| cell.x == x)
    }

    /// Median and interval of a figure at `x`.
    #[must_use]
    pub fn estimate(&self, key: &str, x: Option<f64>) -> Option<Estimate> {
        let samples: Vec<f64> = samples(self.at(x)?, key).into_iter().flatten().collect();
        estimate(&samples, Level::P95, self.seed)
    }

    /// Whether anything was measured.
    #[must_use]
    pub fn measured(&self) -> bool {
        self.cells.iter().any(|cell| !cell.rounds().is_empty())
    }

    /// Why nothing was measured, if nothing was.
    #[must_use]
    pub fn reason(&self) -> Option<&'a str> {
        if self.measured() {
            return None;
        }
        let said = self.cells.iter().find_map(|cell| match &cell.outcome {
            Outcome::Empty { reason } => Some(reason.as_str()),
            Outcome::Measured { .. } => None,
        });
        said.or(Some("the run ended before its first round"))
    }

    /// Where on the axis it gave up, and why.
    #[must_use]
    pub fn breaks_off(&self) -> Option<(f64, &'a str)> {
        if !self.measured() {
            return None;
        }
        self.cells.iter().find_map(|cell| match &cell.outcome {
            Outcome::Empty { reason } => Some((cell.x?, reason.as_str())),
            Outcome::Measured { .. } => None,
        })
    }
}

/// A figure of each round of a cell; `None` for a round without it.
#[must_use]
pub fn samples(cell: &Cell, key: &str) -> Vec<Option<f64>> {
    cell.rounds().iter().map(|round| round.figure(key)).collect()
}

/// Whether the load generator was the limit in most rounds of a cell.
#[must_use]
pub fn load_limited(cell: &Cell) -> bool {
    let present = cell.rounds().iter().filter(|round| round.seconds.is_finite());
    let limited = present.clone().filter(|round| round.load_limited).count();
    limited * 2 > present.count()
}

/// Whether a figure says less than it seems where the load generator was the limit. CPU per
/// operation, memory and bytes written are the system's own whichever system set the pace.
#[must_use]
pub fn depends_on_load(figure: &Figure) -> bool {
    let latency = ["p50_us", "p90_us", "p99_us", "p999_us", "p9999_us", "max_us"];
    figure.key == "per_second" || latency.contains(&figure.key.as_str())
}

/// The places of a part's axis, ascending; one `None` where there is no axis.
#[must_use]
pub fn places(part: &PartResult) -> Vec<Option<f64>> {
    if part.axis.is_none() {
        return vec![None];
    }
    let mut places: Vec<f64> = part.cells.iter().filter_map(|cell| cell.x).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    places.into_iter().map(Some).collect()
}

/// The thinned latency distribution of a cell, each percentile the median of the rounds'.
#[must_use]
pub fn latency_curve(cell: &Cell) -> Vec<(f64, f64)> {
    let curves: Vec<&Vec<(f64, f64)>> = cell
        .rounds()
        .iter()
        .filter_map(|round| round.latency_us.as_ref())
        .map(|latency| &latency.curve)
        .filter(|curve| !curve.is_empty())
        .collect();
    let mut percentiles: Vec<f64> =
        curves.iter().flat_map(|curve| curve.iter().map(|point| point.0)).collect();
    percentiles.sort_by(f64::total_cmp);
    percentiles.dedup();
    let at = |percentile: f64| {
        let values: Vec<f64> =
            curves.iter().filter_map(|curve| value_at(curve, percentile)).collect();
        Some((percentile, median(&values)?))
    };
    percentiles.into_iter().filter_map(at).collect()
}

/// The latency of the first point at or beyond `percentile`: a histogram's step, not a slope.
fn value_at(curve: &[(f64, f64)], percentile: f64) -> Option<f64> {
    curve.iter().find(|point| point.0 >= percentile).map(|point| point.1)
}

fn label(results: &Results, name: &str) -> String {
    let Some(system) = results.systems.iter().find(|system| system.name == name) else {
        return name.to_owned();
    };
    let label = if system.label.is_empty() { name } else { &system.label };
    let Some(number) = system.version.as_deref().and_then(version_number) else {
        return label.to_owned();
    };
    if label.contains(number) {
        return label.to_owned();
    }
    // `Redis 8` of version 8.0.6 is `Redis 8.0.6`.
    let words = label.rsplit_once(' ').filter(|(_, last)| number.starts_with(&format!("{last}.")));
    format!("{} {number}", words.map_or(label, |(first, _)| first))
}

/// The first dotted number in a program's version output, which may be a whole line.
#[must_use]
pub fn version_number(version: &str) -> Option<&str> {
    let apart = |letter: char| !(letter.is_ascii_digit() || letter == '.');
    version.split(apart).map(|word| word.trim_matches('.')).find(|word| word.contains('.'))
}

fn promise<'a>(results: &'a Results, cell: &Cell) -> &'a str {
    let system = results.systems.iter().find(|system| system.name == cell.system);
    system
        .and_then(|system| system.settings.iter().find(|setting| setting.name == cell.setting))
        .map_or("", |setting| setting.promise.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Percentiles, Round};

    fn cell(rounds: Vec<Round>) -> Cell {
        Cell {
            system: "a".to_owned(),
            setting: String::new(),
            x: None,
            outcome: Outcome::Measured { rounds },
        }
    }

    #[test]
    fn most_rounds_decide_about_the_load() {
        let round = |load_limited| Round { seconds: 1.0, load_limited, ..Round::default() };
        let absent = Round { seconds: f64::NAN, ..Round::default() };
        assert!(load_limited(&cell(vec![round(true), round(true), round(false)])));
        assert!(!load_limited(&cell(vec![round(true), round(false)])));
        assert!(load_limited(&cell(vec![round(true), absent.clone(), absent])));
        assert!(!load_limited(&cell(vec![])));
    }

    #[test]
    fn labels_have_the_number_of_the_version() {
        let said = "Redis server v=8.0.6 sha=00000000:0 malloc=jemalloc-5.3.1 bits=64";
        let label_of = |title: &str, version: &str| {
            let system = crate::results::SystemRecord {
                name: "a".to_owned(),
                label: title.to_owned(),
                version: Some(version.to_owned()),
                ..Default::default()
            };
            label(&Results { systems: vec![system], ..Results::default() }, "a")
        };
        assert_eq!(label_of("Redis", said), "Redis 8.0.6");
        assert_eq!(label_of("Redis 8", said), "Redis 8.0.6");
        assert_eq!(label_of("Tarantool", "Tarantool 2.6.0-0-g47aa4e01e"), "Tarantool 2.6.0");
        assert_eq!(label_of("", "no number"), "a");
    }

    #[test]
    fn curves_are_medians_by_percentile() {
        let round = |curve: &[(f64, f64)]| Round {
            latency_us: Some(Percentiles { curve: curve.to_vec(), ..Percentiles::default() }),
            ..Round::default()
        };
        let cell = cell(vec![
            round(&[(50.0, 10.0), (99.0, 20.0)]),
            round(&[(50.0, 12.0), (99.0, 90.0)]),
            round(&[(50.0, 11.0), (90.0, 15.0), (99.0, 30.0)]),
        ]);
        assert_eq!(latency_curve(&cell), [(50.0, 11.0), (90.0, 20.0), (99.0, 30.0)]);
    }
}
