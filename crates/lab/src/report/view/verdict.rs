//! A standing in words, the same on the console and in the page.

use super::line::Line;
use super::number::{plain, range, times, with_unit};
use super::standing::{Standing, Verdict};
use crate::results::statistics::Estimate;
use crate::results::{Better, Figure, PartResult};

/// A standing in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words {
    /// One word: `wins`, `tie`, `undecided`, `alone`; `best` and `level` of counts.
    pub tag: &'static str,
    /// The winner, or several; names with settings.
    pub who: String,
    /// By how much, over whom, how sure.
    pub how: String,
}

/// The words of a standing of `part`.
#[must_use]
pub fn words(part: &PartResult, lines: &[Line<'_>], standing: &Standing) -> Words {
    let name = |rank: usize| lines[standing.ranks[rank].line].name();
    let leader = name(0);
    let Some(figure) = part.figures.first() else {
        return Words { tag: "alone", who: leader, how: String::new() };
    };
    let next = || {
        let system = lines[standing.ranks[0].line].system;
        let other = |rank: &usize| lines[standing.ranks[*rank].line].system != system;
        (1..standing.ranks.len()).find(other).map(name).unwrap_or_default()
    };
    let ends = |ratio: &Estimate| {
        ratio.interval.map_or_else(String::new, |ends| format!(" ({})", range(ends)))
    };
    let together = |with: &[usize]| -> Vec<String> {
        std::iter::once(0).chain(with.iter().copied()).map(name).collect()
    };
    let (tag, who, how) = match &standing.verdict {
        Verdict::Alone => ("alone", leader, "no other system was measured".to_owned()),
        Verdict::Wins { ratio, at_least, unjudged } => {
            let least = if *at_least { "at least " } else { "" };
            let mut how =
                format!("{least}{}{}", compared(figure, ratio.median, &next()), ends(ratio));
            if !unjudged.is_empty() {
                let names: Vec<String> = unjudged.iter().map(|&rank| name(rank)).collect();
                how += &format!(
                    "; nothing is proven of {}, held back by the load or measured once",
                    listed(&names)
                );
            }
            ("wins", leader, how)
        }
        Verdict::Ties { with, ratio } => {
            let how = format!("level within a tenth: {}{}", times(ratio.median), ends(ratio));
            ("tie", listed(&together(with)), how)
        }
        Verdict::Open { with, ratio } => {
            let how = format!(
                "not told apart, and not known to be level: {}{}",
                times(ratio.median),
                ends(ratio)
            );
            ("undecided", listed(&together(with)), how)
        }
        Verdict::Counted { level, best, worst } => {
            let names: Vec<String> = (0..*level).map(name).collect();
            let value = |value: f64| with_unit(value, &figure.unit);
            let rest = if *level < standing.ranks.len() {
                format!("; the worst: {}", value(*worst))
            } else {
                String::new()
            };
            let tag = if *level == 1 { "best" } else { "level" };
            (tag, listed(&names), format!("{}: {}{rest}", figure.title, value(*best)))
        }
        Verdict::LoadLimited => (
            "undecided",
            leader,
            format!("the load generator was the limit also beside {}", next()),
        ),
        Verdict::Unproven { ratio } => (
            "undecided",
            leader,
            format!(
                "ahead in a single round, which has no interval: {}",
                compared(figure, *ratio, &next())
            ),
        ),
    };
    let over = where_compared(part, standing);
    Words { tag, who, how: how + &over + &not_compared(lines, standing) }
}

/// At which places of the axis, behind a comma; empty without one.
fn where_compared(part: &PartResult, standing: &Standing) -> String {
    let places: Vec<f64> = standing.compared.iter().copied().flatten().collect();
    match (&part.axis, places.as_slice()) {
        (Some(axis), [first, .., last]) => {
            format!(", over {} to {} {}", plain(*first), plain(*last), axis.name)
        }
        (Some(axis), [only]) => format!(", at {} {}", plain(*only), axis.name),
        _ => String::new(),
    }
}

/// Who was measured elsewhere only, behind a semicolon; empty without any.
fn not_compared(lines: &[Line<'_>], standing: &Standing) -> String {
    if standing.apart.is_empty() {
        return String::new();
    }
    let names: Vec<String> = standing.apart.iter().map(|&line| lines[line].name()).collect();
    format!("; not compared: {}, measured at no place of theirs", listed(&names))
}

/// `1.35× the throughput of Valkey`, `Valkey takes 1.35× the CPU per operation`.
fn compared(figure: &Figure, ratio: f64, next: &str) -> String {
    match figure.better {
        Better::Higher => format!("{} the {} of {next}", times(ratio), figure.title),
        Better::Lower => format!("{next}: {} the {}", times(ratio), figure.title),
    }
}

/// `a, b and c`.
fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join("; ")),
    }
}

/// The meaning of a promise, in words; the word itself if it is not one of the four.
#[must_use]
pub fn promise(promise: &str) -> &str {
    match promise {
        "none" => "in memory when acknowledged",
        "os" => "handed to the OS when acknowledged",
        "everysec" => "on the disk within a second",
        "fsync" => "on the disk when acknowledged",
        other => other,
    }
}
