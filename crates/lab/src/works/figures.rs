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

/// The same where requests come at a given rate: the throughput is then the user's choice, and what
/// tells systems apart is how long requests wait.
#[must_use]
pub fn at_a_rate(figures: Vec<Figure>) -> Vec<Figure> {
    let first = figures.iter().position(|figure| figure.key == "p99_us");
    let (Some(_), Some(0)) = (first, figures.iter().position(|figure| figure.key == "per_second"))
    else {
        return figures;
    };
    let place = |figure: &Figure| match figure.key.as_str() {
        "p99_us" => 0,
        "per_second" => 2,
        _ => 1,
    };
    let mut figures = figures;
    figures.sort_by_key(place);
    figures.push(lower("behind_ms", "behind the rate at the end", "ms"));
    figures
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_that_all_keep_decides_nothing() {
        let keys: Vec<String> = at_a_rate(usual()).into_iter().map(|figure| figure.key).collect();
        assert_eq!(keys[..3], ["p99_us", "cpu_us", "p50_us"]);
        assert_eq!(keys[keys.len() - 2..], ["per_second", "behind_ms"]);
        let other = vec![lower("bytes_each", "memory of a key", "bytes")];
        assert_eq!(at_a_rate(other.clone()), other);
    }
}
