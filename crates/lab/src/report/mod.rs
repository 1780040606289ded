//! From samples to something to read: medians and ratios, tables, JSON.

pub mod file;
pub mod statistics;
pub mod table;
pub mod target;
pub mod view;
