//! From samples to something to read: medians and ratios, tables, JSON.

pub mod chart;
pub mod command;
pub mod compare;
pub mod console;
pub mod file;
pub mod html;
pub mod markdown;
pub mod statistics;
pub mod table;
pub mod target;
pub mod view;
