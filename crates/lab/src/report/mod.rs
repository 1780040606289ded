//! From samples to something to read: tables, charts, pages, comparisons.

pub mod chart;
pub mod command;
pub mod compare;
pub mod console;
pub mod html;
pub mod markdown;
pub mod table;
pub mod view;
