//! A request's way: checks, locks, call, outcome.

pub mod admission;
pub mod execute;
pub mod invoke;
pub mod joint;
pub mod mounted;
pub mod on_behalf;
pub mod outcome;
pub mod overdue;
pub mod queued;
pub mod space_statement;
pub mod undo;
pub mod watched;
