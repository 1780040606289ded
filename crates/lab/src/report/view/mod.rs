//! Everything that a report shows of a run, computed from its rounds: lines, medians, winners,
//! costs.
//!
//! The console's tables, `report.html` and `compare` all show these values, so that they cannot
//! contradict each other.

pub mod answer;
pub mod lasting;
pub mod line;
pub mod number;
pub mod standing;
pub mod verdict;
