//! A work as data: its setup, its requests, and the figures shown of it.
//!
//! ```text
//!   Work ── plan(Scale) ──> Plan ┬ parts: charts and tables, by name
//!                                └ steps: done in this order on one freshly started system
//! ```
//!
//! **Architecture invariant:** a work knows operations, never a protocol, a system or a stage. What
//! is more than traffic has a name here ([`Own`]) and its code in [`crate::run::own`].

use serde::Serialize;

use crate::results::schema::{Axis, Figure};
use crate::topology::Topology;
use crate::traffic::Asked;
use crate::traffic::pick::Distribution;

/// A published comparison, made repeatable.
#[derive(Clone, Copy)]
pub struct Work {
    /// On the command line.
    pub name: &'static str,
    /// For people.
    pub title: &'static str,
    /// Which published test it repeats.
    pub repeats: &'static str,
    /// What is done, in a sentence or two.
    pub what: &'static str,
    /// Which settings of each system it goes through.
    pub settings: Settings,
    /// What is started.
    pub topology: Topology,
    /// What tells its systems apart on a machine that does nothing else: from six rounds on, an
    /// interval is exact, and noisy figures need more of them.
    pub decides: Times,
    /// What is measured and shown.
    pub plan: fn(&Scale) -> Plan,
}

/// Rounds and the length of each measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Times {
    /// Interleaved rounds.
    pub rounds: u32,
    /// Seconds of each measurement, without its warm-up.
    pub seconds: f64,
}

/// Which log settings of a system a work is measured at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Settings {
    /// The one that the user chose, else the weakest: what costs nothing but memory.
    Chosen,
    /// All of them.
    All,
}

/// What the user said of sizes; a work has a default for each that was left open.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Scale {
    /// Whether stores are filled with a tenth of the keys, as little time is left.
    pub small: bool,
    /// Users.
    pub clients: Vec<usize>,
    /// Requests that each user sends at once.
    pub pipeline: Vec<usize>,
    /// Bytes of each value.
    pub value_bytes: Vec<usize>,
    /// Keys that a store is filled with first.
    pub keys: Option<u32>,
    /// Which keys are asked for.
    pub distribution: Option<Distribution>,
    /// As many connections as this process may open, with room for everything else.
    pub connections_max: usize,
    /// Threads of the load generator, which share the keys.
    pub load_threads: usize,
    /// Cores of the servers.
    pub server_cores: usize,
}

impl Scale {
    /// Numbers of users, by default `of_the_work`; none is more than can connect.
    #[must_use]
    pub fn clients_or(&self, of_the_work: &[usize]) -> Vec<usize> {
        let asked = if self.clients.is_empty() { of_the_work } else { &self.clients };
        let mut numbers: Vec<usize> = asked.to_vec();
        if self.connections_max > 0 {
            numbers.retain(|&number| number <= self.connections_max);
        }
        numbers
    }

    /// Depths of pipelines, by default `of_the_work`.
    #[must_use]
    pub fn pipeline_or(&self, of_the_work: &[usize]) -> Vec<usize> {
        if self.pipeline.is_empty() { of_the_work.to_vec() } else { self.pipeline.clone() }
    }

    /// Sizes of values, by default `of_the_work`.
    #[must_use]
    pub fn value_bytes_or(&self, of_the_work: &[usize]) -> Vec<usize> {
        if self.value_bytes.is_empty() { of_the_work.to_vec() } else { self.value_bytes.clone() }
    }

    /// The first size of values, by default `of_the_work`.
    #[must_use]
    pub fn value_bytes_first(&self, of_the_work: usize) -> usize {
        self.value_bytes.first().copied().unwrap_or(of_the_work)
    }

    /// Keys to fill with, by default `of_the_work`, or a tenth of it where all must be small.
    #[must_use]
    pub fn keys_or(&self, of_the_work: u32) -> u32 {
        self.keys.unwrap_or(if self.small { of_the_work / 10 } else { of_the_work })
    }
}

/// What a work does at a scale.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Charts and tables; every measuring step names one.
    pub parts: Vec<Part>,
    /// What is done, in this order, on a freshly started system.
    pub steps: Vec<Step>,
}

/// One chart and one table.
#[derive(Clone, Debug)]
pub struct Part {
    /// The name within the work, `get-p16`.
    pub name: String,
    /// The name for people.
    pub title: String,
    /// What varies within it.
    pub axis: Option<Axis>,
    /// What is shown of it, the first by a chart.
    pub figures: Vec<Figure>,
}

impl Part {
    /// Without an axis.
    #[must_use]
    pub fn new(name: impl Into<String>, title: impl Into<String>, figures: Vec<Figure>) -> Self {
        Self { name: name.into(), title: title.into(), axis: None, figures }
    }
}

/// One thing to do.
#[derive(Clone, Debug)]
pub enum Step {
    /// Traffic that ends by itself and is not measured.
    Prepare(Asked),
    /// Traffic that is measured.
    Measure(Phase),
    /// New keys until a `kill -9`, a restart, and a count of the acknowledged ones that are
    /// missing.
    Crash {
        /// The part to show it in.
        part: String,
        /// Users.
        users: usize,
        /// Keys that are there before they come.
        keys: u32,
        /// Bytes of each value.
        value_bytes: usize,
    },
    /// What only this work loads, once for each start; its parts are filled by later steps.
    Load(Custom),
    /// What only this work does, in each round.
    Custom(Custom),
}

impl Step {
    /// Whether figures come of it.
    #[must_use]
    pub const fn fills_cells(&self) -> bool {
        !matches!(self, Self::Prepare(_) | Self::Load(_))
    }

    /// In how many rounds it is worth its time where time is limited: kills are counted and memory
    /// hardly differs from one start to the next, and both cost starts.
    #[must_use]
    pub const fn rounds_with_budget(&self) -> u32 {
        match self {
            Self::Crash { .. } => 2,
            Self::Custom(Custom { starts: 1.., .. }) => 3,
            _ => u32::MAX,
        }
    }

    /// The cells that it fills: part, and place on its axis. Those of a step in code have none.
    #[must_use]
    pub fn cells(&self) -> Vec<(String, Option<f64>)> {
        match self {
            Self::Prepare(_) | Self::Load(_) => Vec::new(),
            Self::Measure(phase) => vec![(phase.part.clone(), phase.x)],
            Self::Crash { part, .. } => vec![(part.clone(), None)],
            Self::Custom(custom) => {
                custom.parts.iter().map(|part| ((*part).to_owned(), None)).collect()
            }
        }
    }
}

/// Traffic to be measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Phase {
    /// The part to show it in.
    pub part: String,
    /// Where on the part's axis.
    pub x: Option<f64>,
    /// What users ask.
    pub asked: Asked,
    /// How many of them.
    pub users: usize,
    /// Connections that they share; one each where it is `None`.
    pub connections: Option<usize>,
    /// Requests that each user sends at once.
    pub depth: usize,
    /// Operations that count for one request: the changes within a batch.
    pub counts_as: u32,
}

impl Phase {
    /// `users` users with a connection and a request each.
    #[must_use]
    pub fn new(part: impl Into<String>, users: usize, asked: Asked) -> Self {
        Self { part: part.into(), x: None, asked, users, connections: None, depth: 1, counts_as: 1 }
    }

    /// At this place of the part's axis.
    #[must_use]
    pub fn at(mut self, x: f64) -> Self {
        self.x = Some(x);
        self
    }

    /// `depth` requests of each user at once.
    #[must_use]
    pub const fn depth(mut self, depth: usize) -> Self {
        self.depth = depth;
        self
    }

    /// All users over so many connections.
    #[must_use]
    pub const fn over(mut self, connections: usize) -> Self {
        self.connections = Some(connections);
        self
    }
}

/// A step that is more than traffic, and has code of its own.
#[derive(Clone, Copy, Debug)]
pub struct Custom {
    /// What is done.
    pub own: Own,
    /// The parts that it fills: they stay empty, with the reason, if it fails.
    pub parts: &'static [&'static str],
    /// Whether it is asked in commands that only Redis and its like have.
    pub redis_commands: bool,
    /// Whether it is asked in SQL.
    pub sql: bool,
    /// How many measurements it makes, each with its warm-up.
    pub measurements: usize,
    /// Seconds that it takes beside them, roughly: for the plan of a run.
    pub beside_seconds: f64,
    /// Servers of its own that it starts.
    pub starts: usize,
}

impl Custom {
    /// Fills `parts`, without measurements of the usual length.
    #[must_use]
    pub const fn new(own: Own, parts: &'static [&'static str]) -> Self {
        let (redis_commands, sql) = (false, false);
        Self { own, parts, redis_commands, sql, measurements: 0, beside_seconds: 0.0, starts: 0 }
    }

    /// The same, in commands that only Redis and its like have.
    #[must_use]
    pub const fn in_redis_commands(own: Own, parts: &'static [&'static str]) -> Self {
        Self { redis_commands: true, ..Self::new(own, parts) }
    }

    /// The same, in SQL.
    #[must_use]
    pub const fn in_sql(own: Own, parts: &'static [&'static str]) -> Self {
        Self { sql: true, ..Self::new(own, parts) }
    }
}

/// What a [`Custom`] step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Own {
    /// `PING`, alone and in pipelines.
    Ping,
    /// One server on all cores, or as many as there are cores.
    Shards,
    /// Connections that do nothing.
    Idle,
    /// Users who know which shard has which key.
    Slots,
    /// From a write's answer to its copy.
    Lag,
    /// Data of every type, for [`Own::Type`].
    LoadTypes,
    /// An operation of a data type.
    Type,
    /// A script, alone and in pipelines.
    Script,
    /// Messages to many subscribers.
    Publish,
    /// Writes that say what they do to keys, and the same when they do not.
    Notifications,
    /// Tables, for [`Own::Sql`].
    LoadSql,
    /// A statement of SQL.
    Sql,
    /// Large values, for [`Own::Stall`].
    LoadLarge,
    /// Small reads beside a long command.
    Stall,
    /// A polite client beside impolite ones.
    Fairness,
    /// From a push to the client that waits.
    Handover,
    /// What a shape of data takes in memory.
    Memory,
    /// A snapshot under load, and a restart from it.
    Snapshot,
    /// A reader beside a table that grows.
    Growth,
    /// A client of a full cache.
    Eviction,
    /// Memory while data change.
    Churn,
}
