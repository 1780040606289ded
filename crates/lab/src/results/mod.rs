//! The results of a run: the shape of `results.json`, reading and writing it, and its statistics.
//!
//! **Invariant:** the file holds samples, never conclusions: every round of every cell, with all
//! that is needed to repeat it. Medians, intervals and winners are computed when the file is read,
//! so that an old file gains from a better report.

pub mod file;
pub mod merge;
pub mod schema;
pub mod statistics;

pub use schema::{
    Axis, Better, Cell, FORMAT, Figure, MissingRecord, Outcome, PartResult, Percentiles, Results,
    Round, SettingRecord, SystemRecord, WorkResult,
};
