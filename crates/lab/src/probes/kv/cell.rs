//! One combination of pipeline depth and operation, with its samples.

use serde::Serialize;

use crate::load::workload::Mix;
use crate::probes::measured::Measured;

/// A column of the tables, with what every round showed.
#[derive(Debug, Serialize)]
pub struct Cell {
    /// Requests that a connection sends at once.
    pub pipeline: usize,
    /// `SET` or `GET`.
    pub operation: &'static str,
    /// Per system, per round.
    pub samples: Vec<Vec<Measured>>,
    /// Which requests.
    #[serde(skip)]
    pub mix: Mix,
}

impl Cell {
    pub(super) fn new(pipeline: usize, mix: Mix, systems: usize) -> Self {
        let operation = if mix == Mix::Set { "SET" } else { "GET" };
        Self { pipeline, operation, samples: vec![Vec::new(); systems], mix }
    }

    /// For the table, such as `SET P=16`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{} P={}", self.operation, self.pipeline)
    }

    /// One figure of every round of system `system`.
    #[must_use]
    pub fn figures(&self, system: usize, figure: impl Fn(&Measured) -> f64) -> Vec<f64> {
        self.samples[system].iter().map(figure).collect()
    }
}
