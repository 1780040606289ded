//! Statements of SQL over tables whose every row is known, and what a server has to answer.

pub mod points;
pub mod queries;
pub mod tables;
