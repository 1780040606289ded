//! `report.html`: one file with no outside reference, for a desktop, a phone and paper.
//!
//! **Invariant:** every text that came from a server or a command line goes through `maud`'s
//! escaping or the charts' own; the page forbids itself scripts and requests by its content
//! security policy.

mod legend;
mod part;
mod summary;
mod systems;

use std::path::{Path, PathBuf};

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::report::chart::{ChartError, palette};
use crate::report::view::lasting::lasting;
use crate::report::view::number::{moment, money, with_unit};
use crate::results::{Results, WorkResult, file};

/// The file's name in a run's folder.
pub const NAME: &str = "report.html";

const STYLE: &str = include_str!("style.css");

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A chart could not be drawn.
    #[error(transparent)]
    Chart(#[from] ChartError),
    /// The file system refused.
    #[error("{path}: {source}")]
    Io {
        /// The report's file.
        path: PathBuf,
        /// What was said.
        source: std::io::Error,
    },
}

/// Writes the report of `runs` into `folder`, which exists. Returns the file's path.
///
/// # Errors
/// Why there is none.
pub fn write(folder: &Path, runs: &[Results]) -> Result<PathBuf, ReportError> {
    let page = page(runs)?;
    let path = folder.join(NAME);
    file::replace(&path, &page).map_err(|source| ReportError::Io { path: path.clone(), source })?;
    Ok(path)
}

/// The page.
///
/// # Errors
/// A chart that cannot be drawn.
pub fn page(runs: &[Results]) -> Result<String, ChartError> {
    let sections: Vec<Markup> = runs
        .iter()
        .enumerate()
        .map(|(index, run)| section(run, index, runs.len()))
        .collect::<Result<_, _>>()?;
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'";
                title { (title(runs)) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                (hatches())
                @for section in &sections { (section) }
                footer {
                    p {
                        "Drawn by ladon-lab " (env!("CARGO_PKG_VERSION")) " from " code { "results.json" }
                        ", which holds every round of every measurement."
                    }
                }
            }
        }
    };
    Ok(page.into_string())
}

fn title(runs: &[Results]) -> String {
    match runs {
        [run] => format!("Side by side: {}", moment(run.started_unix)),
        runs => format!("Side by side: {} runs", runs.len()),
    }
}

/// A run.
fn section(run: &Results, index: usize, count: usize) -> Result<Markup, ChartError> {
    let id = |name: &str| format!("run{}-{name}", index + 1);
    let works: Vec<Markup> = run
        .works
        .iter()
        .map(|work| work_section(run, work, &id(&work.work)))
        .collect::<Result<_, _>>()?;
    let summary = summary::summary(run, &id);
    Ok(html! {
        header {
            p.kicker { "ladon-lab " (run.lab_version) @if count > 1 { ", run " (index + 1) " of " (count) } }
            h1 { "In-memory stores, side by side" }
            p.lead {
                (run.machine.cpu_model) ", " (run.machine.cores) " cores, "
                (with_unit(run.machine.memory_bytes as f64, "bytes")) ". " (moment(run.started_unix)) ". "
                (lasting(run)) "."
            }
            @if let Some(tool) = run.load.get("--tool") {
                p.warning role="note" { strong { "Another load generator: " } (tool) " measured this, not the lab's own driver; its figures are for comparison with what was published." }
            }
            @if let Some(rate) = run.load.get("--rate") {
                p.warning role="note" { strong { "Open loop: " } (rate) " requests a second were sent when they were due, whatever the servers did; latency counts from then." }
            }
            @if run.partial {
                p.warning role="note" {
                    strong { "Partial: " } "the run was ended before everything was measured. What is here is whole; the rest is missing."
                }
            }
            @if run.rounds == 1 {
                p.warning role="note" {
                    strong { "One round: " } "no intervals, so nobody is called a winner. Use " code { "--rounds 5" } " or more."
                }
            }
        }
        (summary.answer)
        nav aria-label="Contents" {
            ul {
                li { a href={ "#" (id("summary")) } { "Part by part" } }
                @for work in &run.works { li { a href={ "#" (id(&work.work)) } { (work.title) } } }
                li { a href={ "#" (id("method")) } { "Machine and method" } }
                li { a href={ "#" (id("systems")) } { "Versions and settings" } }
            }
        }
        main {
            (fold("Part by part", "", &summary.rest))
            @for (work, its) in run.works.iter().zip(&works) { (fold(&work.title, &work.work, its)) }
            (fold("Machine and method", "", &method(run, &id("method"))))
            (fold("Versions and settings", "", &systems::systems(run, &id("systems"))))
        }
    })
}

/// A section behind its title. What links to something in it opens it, and a printer does.
fn fold(title: &str, name: &str, section: &Markup) -> Markup {
    html! {
        details.fold {
            summary { h2 { (title) @if !name.is_empty() { " " code.name { (name) } } } }
            (section)
        }
    }
}

fn work_section(run: &Results, work: &WorkResult, id: &str) -> Result<Markup, ChartError> {
    let parts: Vec<Markup> = work
        .parts
        .iter()
        .map(|part| part::part(run, part, &format!("{id}-{}", part.part)))
        .collect::<Result<_, _>>()?;
    Ok(html! {
        section id=(id) {
            p { (work.what) }
            @if !work.repeats.is_empty() { p.muted { "Repeats: " (work.repeats) "." } }
            @for part in &parts { (part) }
        }
    })
}

/// Patterns for bars of the ninth system and on, once per page.
fn hatches() -> Markup {
    html! {
        svg.defs width="0" height="0" aria-hidden="true" focusable="false" {
            defs {
                @for colour in 0..palette::COLOURS {
                    pattern id={ "hatch-" (colour) } width="8" height="8" patternUnits="userSpaceOnUse" patternTransform="rotate(45)" {
                        rect width="8" height="8" fill="var(--page)" {}
                        rect width="4" height="8" fill={ "var(--s" (colour) ")" } {}
                    }
                }
            }
        }
    }
}

fn method(run: &Results, id: &str) -> Markup {
    let machine = &run.machine;
    let cores =
        |cores: &[usize]| cores.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let shared = run.cores.shared();
    let load: Vec<String> =
        run.load.iter().map(|(option, value)| format!("{option} {value}")).collect();
    let load = load.join(" ");
    let facts = [
        (
            "Processor",
            format!(
                "{}{}",
                machine.cpu_model,
                if machine.virtual_machine { " (virtual machine)" } else { "" }
            ),
        ),
        (
            "Cores",
            format!(
                "{}: servers on {}, load on {}",
                machine.cores,
                cores(&run.cores.server),
                cores(&run.cores.load)
            ),
        ),
        ("Memory", with_unit(machine.memory_bytes as f64, "bytes")),
        ("Huge pages", machine.huge_pages.clone()),
        ("Kernel", machine.kernel.clone()),
        ("Data on", machine.data_filesystem.clone()),
        ("Load before the run", format!("{:.2}", machine.load_average)),
        ("Run", format!("{} to {}", moment(run.started_unix), moment(run.finished_unix))),
        ("Seed", run.seed.to_string()),
        ("Load, as asked for", load),
    ];
    html! {
        section id=(id) {
            @if shared {
                p.warning role="note" { strong { "Shared core: " } "servers and load ran on the same core, so they disturbed each other." }
            }
            @if machine.load_average > 0.5 {
                p.warning role="note" { strong { "Busy machine: " } "something else was running when the run began (load " (format!("{:.2}", machine.load_average)) ")." }
            }
            dl.facts {
                @for (name, value) in &facts { @if !value.is_empty() { div { dt { (name) } dd { (value) } } } }
                @if let Some(price) = run.price_per_hour { div { dt { "Price of an hour" } dd { (money(price)) } } }
            }
            h3 { "The command" }
            pre tabindex="0" { code { (systems::command_line(&run.command_line)) } }
            h3 { "How to read this" }
            ul.notes {
                li { "A figure is the median of the rounds. Below it is its 95 % interval, by a bootstrap that is widened for few rounds." }
                li { "Rounds are interleaved (A B C, A B C), and ratios are formed within each round, so that the machine's drift falls out of them." }
                li { "A lead is called a win only if the interval of its ratio excludes 1, and a tie only if that interval lies within a tenth of 1; else it is undecided, and more rounds would tell." }
                li { "Only settings with the same promise of an acknowledged write are compared." }
                li { "† the load generator, not the system, was the limit: the system can do more than is shown." }
                li { "Along an axis, the ratio is the geometric mean over the places that all reached." }
                li { "Every reply was checked; the first wrong one would have ended the run." }
            }
        }
    }
}
