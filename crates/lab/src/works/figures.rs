//! What most works show.

use crate::results::schema::{Axis, Better, Figure};

/// A figure that is better when it is higher.
#[must_use]
pub fn higher(key: &str, title: &str, unit: &str) -> Figure {
    figure(key, title, unit, Better::Higher)
}

/// A figure that is better when it is lower.
#[must_use]
pub fn lower(key: &str, title: &str, unit: &str) -> Figure {
    figure(key, title, unit, Better::Lower)
}

fn figure(key: &str, title: &str, unit: &str, better: Better) -> Figure {
    Figure { key: key.to_owned(), title: title.to_owned(), unit: unit.to_owned(), better }
}

/// An axis.
#[must_use]
pub fn axis(name: &str, unit: &str) -> Option<Axis> {
    Some(Axis { name: name.to_owned(), unit: unit.to_owned() })
}

/// Throughput first, then what it cost.
#[must_use]
pub fn usual() -> Vec<Figure> {
    vec![
        higher("per_second", "throughput", "1/s"),
        lower("cpu_us", "server CPU per operation", "us"),
        lower("p50_us", "median latency", "us"),
        lower("p99_us", "latency, 99 %", "us"),
        lower("p999_us", "latency, 99.9 %", "us"),
        lower("p9999_us", "latency, 99.99 %", "us"),
        lower("rss_bytes", "memory", "bytes"),
        lower("disk_written_bytes", "written to disk", "bytes"),
    ]
}
