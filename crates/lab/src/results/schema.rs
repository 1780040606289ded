//! `results.json`, format 1: plain data, read and written by serde.
//!
//! ```text
//! Results ── systems: what was measured, its settings in full, or why it is missing
//!    └─ works ─ parts ┬ figures: what to show of a round, and which direction is better
//!                     └ cells: one system at one setting (at one x of the axis)
//!                          └ rounds: one measurement each, interleaved with the other systems'
//! ```
//!
//! Rounds of the same index were taken one after the other, so cells of a part are compared round
//! by round.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

use crate::measure::cores::Cores;
use crate::measure::machine::Machine;

/// The number of this shape of file. A change that an older reader would misread raises it.
pub const FORMAT: u32 = 1;

/// One run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// [`FORMAT`] when written by this version.
    pub format: u32,
    /// Version of the lab that measured.
    pub lab_version: String,
    /// When the run began, seconds since 1970.
    pub started_unix: u64,
    /// When the run ended, seconds since 1970.
    pub finished_unix: u64,
    /// Whether the run was ended before all was measured; cells may be missing or have fewer
    /// rounds.
    pub partial: bool,
    /// The lab's own command line.
    pub command_line: Vec<String>,
    /// Where all of the run's chance came from.
    pub seed: u64,
    /// Interleaved rounds that were asked for, or that fitted into the run's time; of the work that
    /// had most.
    pub rounds: u32,
    /// Seconds of each measurement, after the warm-up; the shortest, where rounds differ.
    pub seconds: f64,
    /// The longest measurement; 0 in results of before this was kept.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub seconds_max: f64,
    /// Set where rounds and seconds followed from the time that the run was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// The user's load options (`--clients`, `--rate`, `--tool`, ...); without one, each work uses
    /// its own value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub load: BTreeMap<String, String>,
    /// Where it ran.
    pub machine: Machine,
    /// Which cores the servers and the load had.
    pub cores: Cores,
    /// What an hour of this machine costs, in the reader's own currency.
    pub price_per_hour: Option<f64>,
    /// All systems that were looked for.
    pub systems: Vec<SystemRecord>,
    /// What was measured.
    pub works: Vec<WorkResult>,
}

/// How a run dealt with the time that it was given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    /// Minutes that it was given.
    pub minutes: f64,
    /// Rounds of the work that had the fewest; zero where that was not noted.
    #[serde(default)]
    pub rounds_min: u32,
    /// Seconds of the longest measurement; zero where that was not noted.
    #[serde(default)]
    pub seconds_max: f64,
    /// Seconds of each measurement, by round, where a run had the same rounds for all works.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seconds_by_round: Vec<f64>,
}

/// A system that was looked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SystemRecord {
    /// The name in cells and on the command line, `tarantool`.
    pub name: String,
    /// The name for people, `Tarantool`.
    pub label: String,
    /// What the program says of itself, `2.6.0`.
    pub version: Option<String>,
    /// Set when it was not found.
    pub missing: Option<MissingRecord>,
    /// The settings it was started with.
    pub settings: Vec<SettingRecord>,
}

/// Why a system was not measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingRecord {
    /// Where it was looked for, or what failed.
    pub reason: String,
    /// The exact command that installs it; empty where there is none.
    pub install: String,
}

/// One way in which a system was started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingRecord {
    /// In the system's own words, `appendfsync always`.
    pub name: String,
    /// What an acknowledged write is worth, the same words for all: `none`, `os`, `everysec`,
    /// `fsync`.
    pub promise: String,
    /// Program and arguments of its (first) process.
    pub command_line: Vec<String>,
    /// Every effective setting, as the running server told it.
    pub values: BTreeMap<String, String>,
}

/// One work: a question, such as "what do reads and writes of single keys cost?".
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkResult {
    /// The name on the command line, `kv`.
    pub work: String,
    /// The name for people.
    pub title: String,
    /// Which published test it repeats.
    pub repeats: String,
    /// What was done, in a sentence or two.
    pub what: String,
    /// Its charts and tables.
    pub parts: Vec<PartResult>,
}

/// One chart and one table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PartResult {
    /// The name within the work, `get-p16`.
    pub part: String,
    /// The name for people.
    pub title: String,
    /// What `x` of the cells counts, if anything varies along it.
    pub axis: Option<Axis>,
    /// What to show; the chart shows the first one, which also decides the winner.
    pub figures: Vec<Figure>,
    /// The measurements, in the order in which to list them.
    pub cells: Vec<Cell>,
}

/// What varies within a part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Axis {
    /// `users`, `batch size`.
    pub name: String,
    /// `users`, `changes`; empty for a bare number.
    pub unit: String,
}

/// Something to show of each round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figure {
    /// A name that [`Round::figure`] knows.
    pub key: String,
    /// The name for people, `throughput`.
    pub title: String,
    /// `1/s`, `us`, `bytes`; empty for a bare number.
    pub unit: String,
    /// Which direction wins.
    pub better: Better,
}

/// Which direction of a figure wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
}

/// One system at one setting and one place of the axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// [`SystemRecord::name`].
    pub system: String,
    /// [`SettingRecord::name`].
    pub setting: String,
    /// Where on the axis.
    pub x: Option<f64>,
    /// What came out.
    pub outcome: Outcome,
}

/// What came out of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It was measured this many times; the index is the round.
    Measured {
        /// The measurements.
        rounds: Vec<Round>,
    },
    /// It was not, and never a zero instead.
    Empty {
        /// What the system cannot do, or what failed.
        reason: String,
    },
}

/// One measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// How long was measured.
    #[serde(deserialize_with = "number_or_null")]
    pub seconds: f64,
    /// Operations answered rightly in that time.
    pub operations: u64,
    /// The same per second.
    #[serde(deserialize_with = "number_or_null")]
    pub per_second: f64,
    /// CPU microseconds in user mode of all the system's processes, per operation.
    pub cpu_user_us: Option<f64>,
    /// CPU microseconds in the kernel of all the system's processes, per operation.
    pub cpu_system_us: Option<f64>,
    /// Resident bytes of all the system's processes at the end.
    pub rss_bytes: Option<u64>,
    /// Bytes that all the system's processes caused to be written to disks.
    pub disk_written_bytes: Option<u64>,
    /// Latency in microseconds, where single operations were timed.
    pub latency_us: Option<Percentiles>,
    /// Whether the load generator, not the system, set the pace.
    pub load_limited: bool,
    /// Share of the time in which the load generator had something to do, 0 to 1.
    #[serde(deserialize_with = "number_or_null")]
    pub load_busy: f64,
    /// CPU time of the system through elapsed time: 1 is one core, fully used.
    #[serde(deserialize_with = "number_or_null")]
    pub server_busy: f64,
    /// Whatever else the work measures, by a key of its own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "finite_ones")]
    pub extra: BTreeMap<String, f64>,
}

/// Latency in microseconds; not a number where it is not known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    /// Half of the operations took no longer.
    #[serde(deserialize_with = "number_or_null")]
    pub p50: f64,
    /// 90 %.
    #[serde(deserialize_with = "number_or_null")]
    pub p90: f64,
    /// 99 %.
    #[serde(deserialize_with = "number_or_null")]
    pub p99: f64,
    /// 99.9 %.
    #[serde(deserialize_with = "number_or_null")]
    pub p999: f64,
    /// 99.99 %.
    #[serde(deserialize_with = "number_or_null")]
    pub p9999: f64,
    /// The longest.
    #[serde(deserialize_with = "number_or_null")]
    pub max: f64,
    /// The whole distribution, thinned: percentile (0 to 100) and microseconds, both ascending.
    #[serde(default)]
    pub curve: Vec<(f64, f64)>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(seconds: &f64) -> bool {
    *seconds <= 0.0
}

impl Round {
    /// So many operations in so many seconds. The rest is unknown: it is set where it was measured.
    #[must_use]
    pub fn new(seconds: f64, operations: u64) -> Self {
        Self {
            seconds,
            operations,
            per_second: operations as f64 / seconds,
            load_busy: f64::NAN,
            server_busy: f64::NAN,
            ..Self::default()
        }
    }

    /// With these figures of the work's own beside those that it has.
    #[must_use]
    pub fn with_extra<'a>(mut self, figures: impl IntoIterator<Item = (&'a str, f64)>) -> Self {
        self.extra.extend(figures.into_iter().map(|(key, value)| (key.to_owned(), value)));
        self
    }

    /// The figure of this name: a field, `cpu_us` for all CPU, a percentile as `p99_us`, or a key
    /// of `extra`. `None` where this round does not have it.
    #[must_use]
    pub fn figure(&self, key: &str) -> Option<f64> {
        let latency = |of: fn(&Percentiles) -> f64| self.latency_us.as_ref().map(of);
        let value = match key {
            "per_second" => Some(self.per_second),
            "seconds" => Some(self.seconds),
            "operations" => Some(self.operations as f64),
            "cpu_us" => {
                self.cpu_user_us.zip(self.cpu_system_us).map(|(user, system)| user + system)
            }
            "cpu_user_us" => self.cpu_user_us,
            "cpu_system_us" => self.cpu_system_us,
            "rss_bytes" => self.rss_bytes.map(|bytes| bytes as f64),
            "disk_written_bytes" => self.disk_written_bytes.map(|bytes| bytes as f64),
            "p50_us" => latency(|latency| latency.p50),
            "p90_us" => latency(|latency| latency.p90),
            "p99_us" => latency(|latency| latency.p99),
            "p999_us" => latency(|latency| latency.p999),
            "p9999_us" => latency(|latency| latency.p9999),
            "max_us" => latency(|latency| latency.max),
            "load_busy" => Some(self.load_busy),
            "server_busy" => Some(self.server_busy),
            _ => self.extra.get(key).copied(),
        };
        value.filter(|value| value.is_finite())
    }
}

impl Cell {
    /// Its rounds; none of an empty cell.
    #[must_use]
    pub fn rounds(&self) -> &[Round] {
        match &self.outcome {
            Outcome::Measured { rounds } => rounds,
            Outcome::Empty { .. } => &[],
        }
    }
}

/// JSON has no word for "not a number": it is written as null, and read back here.
fn number_or_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

fn finite_ones<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, f64>, D::Error> {
    let all: BTreeMap<String, Option<f64>> = BTreeMap::deserialize(deserializer)?;
    Ok(all.into_iter().filter_map(|(key, value)| value.map(|value| (key, value))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_names() {
        let mut round = Round {
            cpu_user_us: Some(1.0),
            cpu_system_us: Some(2.5),
            per_second: f64::NAN,
            latency_us: Some(Percentiles { p99: 7.0, ..Percentiles::default() }),
            ..Round::default()
        };
        round.extra.insert("bytes_per_key".to_owned(), 41.4);
        assert_eq!(round.figure("cpu_us"), Some(3.5));
        assert_eq!(round.figure("p99_us"), Some(7.0));
        assert_eq!(round.figure("bytes_per_key"), Some(41.4));
        assert_eq!(round.figure("rss_bytes"), None);
        assert_eq!(round.figure("per_second"), None, "not a number is no figure");
        assert_eq!(round.figure("nonsense"), None);
    }

    #[test]
    fn what_is_not_a_number_survives_the_file() {
        let mut round = Round { load_busy: f64::NAN, ..Round::default() };
        round.extra.insert("lag".to_owned(), f64::NAN);
        let text = serde_json::to_string(&round).unwrap();
        let back: Round = serde_json::from_str(&text).unwrap();
        assert!(back.load_busy.is_nan());
        assert!(back.extra.is_empty());
    }
}
