//! What a reader wants to know of a run, computed from its rounds: lines, medians, winners, money.
//!
//! The console's tables, `report.html` and `compare` all show what is computed here, so that they cannot
//! contradict each other.

pub mod answer;
pub mod lasting;
pub mod line;
pub mod money;
pub mod number;
pub mod standing;
pub mod verdict;
