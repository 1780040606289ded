//! The same report for a terminal: a table a part, what may be said of it, and why cells are empty.

use super::table::Table;
use super::view::answer::Answer;
use super::view::lasting::lasting;
use super::view::line::{Line, depends_on_load, load_limited, places};
use super::view::number::{moment, money, per_billion, plain, with_unit};
use super::view::standing::standings;
use super::view::verdict::{promise, words};
use crate::results::{Figure, PartResult, Results, WorkResult};

/// All tables of the runs.
#[must_use]
pub fn text(runs: &[Results]) -> String {
    let mut text = String::new();
    for run in runs {
        text += &format!(
            "{}, {} cores; {}; {}{}\n",
            run.machine.cpu_model,
            run.machine.cores,
            moment(run.started_unix),
            lasting(run),
            if run.partial { "; PARTIAL: the run was ended early" } else { "" }
        );
        if !run.load.is_empty() {
            let load: Vec<String> =
                run.load.iter().map(|(option, value)| format!("{option} {value}")).collect();
            text += &format!("load: {}\n", load.join(" "));
        }
        let mut answer = Answer::default();
        let mut tables = String::new();
        for work in &run.works {
            for part in &work.parts {
                tables += &of_part(run, work, part, &mut answer);
            }
        }
        for sentence in answer.sentences() {
            text += &format!("{}\n", sentence.text());
        }
        text += &tables;
        text.push('\n');
    }
    text
}

fn of_part(run: &Results, work: &WorkResult, part: &PartResult, answer: &mut Answer) -> String {
    let lines = Line::all(run, part);
    let mut text = format!("\n{} ({}): {}\n", work.title, work.work, part.title);
    if lines.iter().any(Line::measured) {
        text.push('\n');
        text += &match &part.axis {
            Some(axis) => part.figures.first().map_or_else(String::new, |figure| {
                along(part, &lines, figure, &format!("{} over {}", figure.title, axis.name))
            }),
            None => across(run, part, &lines),
        };
    }
    if lines.is_empty() {
        text += "  not measured: the run ended before it\n";
    }
    let standings = standings(part, &lines, run.seed);
    let several = standings.len() > 1;
    for standing in &standings {
        answer.add(work, part, &lines, standing, several);
        let words = words(part, &lines, standing);
        let which =
            if several { format!("{}: ", promise(&standing.promise)) } else { String::new() };
        text += &format!("  {}: {which}{}: {}\n", words.tag, words.who, words.how);
    }
    for line in &lines {
        if let Some(reason) = line.reason() {
            text += &format!("  empty: {}: {reason}\n", line.name());
        } else if let Some((x, reason)) = line.breaks_off() {
            text += &format!("  {} breaks off at {}: {reason}\n", line.name(), plain(x));
        }
    }
    let limited = |line: &Line<'_>| line.cells.iter().any(|cell| load_limited(cell));
    if lines.iter().any(limited) && part.figures.iter().any(depends_on_load) {
        text += "  †: the load generator was the limit; the system can do more\n";
    }
    text
}

/// Figures across.
fn across(run: &Results, part: &PartResult, lines: &[Line<'_>]) -> String {
    let price =
        run.price_per_hour.filter(|_| part.figures.iter().any(|figure| figure.key == "per_second"));
    let mut heads = vec!["system"];
    heads.extend(part.figures.iter().map(|figure| figure.title.as_str()));
    heads.extend(price.map(|_| "cost of 10⁹"));
    let mut table = Table::new(&heads);
    for line in lines.iter().filter(|line| line.measured()) {
        let mut row = vec![line.name()];
        row.extend(part.figures.iter().map(|figure| value(line, figure, None)));
        let rate = line.estimate("per_second", None).map(|rate| rate.median);
        row.extend(price.map(|price| {
            rate.and_then(|rate| per_billion(price, rate)).map_or_else(|| "-".to_owned(), money)
        }));
        table.row(row);
    }
    table.render()
}

/// The axis across.
fn along(part: &PartResult, lines: &[Line<'_>], figure: &Figure, title: &str) -> String {
    let places = places(part);
    let numbers: Vec<String> =
        places.iter().map(|place| place.map(plain).unwrap_or_default()).collect();
    let mut heads = vec![title];
    heads.extend(numbers.iter().map(String::as_str));
    let mut table = Table::new(&heads);
    for line in lines.iter().filter(|line| line.measured()) {
        let mut row = vec![line.name()];
        row.extend(places.iter().map(|&place| value(line, figure, place)));
        table.row(row);
    }
    table.render()
}

fn value(line: &Line<'_>, figure: &Figure, place: Option<f64>) -> String {
    let Some(estimate) = line.estimate(&figure.key, place) else {
        return "-".to_owned();
    };
    let limited = depends_on_load(figure) && line.at(place).is_some_and(load_limited);
    with_unit(estimate.median, &figure.unit) + if limited { "†" } else { "" }
}
