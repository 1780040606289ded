//! `ladon-lab report` and `ladon-lab compare`.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::compare::{CompareError, Options, compare};
use super::html::ReportError;
use super::{console, html, markdown};
use crate::results::Results;
use crate::results::file::{self, ReadError};
use crate::results::merge::merge;

/// Where a report of several runs goes; theirs are in their own folders.
const OUT: &str = "target/lab/report";

/// What `report` is told.
#[derive(Args, Clone, Debug)]
pub struct ReportArguments {
    /// Files (or folders with a results.json) of one or more runs. Runs of the same machine and
    /// versions are added up; others get separate sections.
    #[arg(required = true, value_name = "RESULTS.json")]
    pub results: Vec<PathBuf>,
    /// Folder for report.html. Default: target/lab/report, unless --markdown asks for something
    /// else.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// A document whose measured sections are regenerated from the results: figures between `<!--
    /// measured:begin -->` and `<!-- measured:end -->`, winners between `<!-- winners:begin -->`
    /// and `<!-- winners:end -->`. May be repeated.
    #[arg(long, value_name = "FILE.md")]
    pub markdown: Vec<PathBuf>,
    /// The price of an hour of the machine; overrides that of the runs.
    #[arg(long, value_name = "PRICE")]
    pub price_per_hour: Option<f64>,
}

/// What `compare` is told.
#[derive(Args, Clone, Debug)]
pub struct CompareArguments {
    /// The run to compare with.
    pub old: PathBuf,
    /// The run that is judged.
    pub new: PathBuf,
    /// Only these systems.
    #[arg(long, value_delimiter = ',')]
    pub systems: Vec<String>,
    /// Divide every figure, within its round, by this system's: what the machine did falls out.
    #[arg(long, value_name = "SYSTEM")]
    pub relative_to: Option<String>,
    /// Changes of less than this percentage are none.
    #[arg(long, default_value_t = 3.0, value_name = "PERCENT")]
    pub threshold: f64,
    /// Compare every figure, not only each part's first.
    #[arg(long)]
    pub all_figures: bool,
    /// How to print it.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
}

/// How to print a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A table.
    Text,
    /// One JSON object.
    Json,
}

/// Why nothing came of it.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// A file cannot be used.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The report cannot be drawn or written.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// The runs cannot be compared.
    #[error(transparent)]
    Compare(#[from] CompareError),
    /// An argument makes no sense.
    #[error("{0}")]
    Argument(String),
    /// The folder cannot be made, or the output cannot be written.
    #[error("{0}: {1}")]
    Io(PathBuf, std::io::Error),
}

/// Reads, merges, writes report.html and measured sections; returns the tables and the files
/// written.
///
/// # Errors
/// The first unusable file, or an error of the file system.
pub fn report(arguments: &ReportArguments) -> Result<(String, Vec<PathBuf>), CommandError> {
    let mut runs: Vec<Results> =
        arguments.results.iter().map(|path| file::read(path)).collect::<Result<_, _>>()?;
    if let Some(price) = arguments.price_per_hour {
        if !(price.is_finite() && price > 0.0) {
            return Err(CommandError::Argument("--price-per-hour must be above 0".to_owned()));
        }
        runs.iter_mut().for_each(|run| run.price_per_hour = Some(price));
    }
    let runs = merge(runs);
    let mut written = Vec::new();
    for path in &arguments.markdown {
        let failed = |error| CommandError::Io(path.clone(), error);
        let document = std::fs::read_to_string(path).map_err(failed)?;
        let new = markdown::replaced(&document, &runs).ok_or_else(|| {
            let (begin, end) = (markdown::BEGIN, markdown::END);
            CommandError::Argument(format!("{}: no {begin} and {end}", path.display()))
        })?;
        std::fs::write(path, new).map_err(failed)?;
        written.push(path.clone());
    }
    let usual = || arguments.markdown.is_empty().then(|| PathBuf::from(OUT));
    let tables = match arguments.out.clone().or_else(usual) {
        Some(out) => {
            let (tables, path) = draw(&out, runs)?;
            written.push(path);
            tables
        }
        None => String::new(),
    };
    Ok((tables, written))
}

/// Writes report.html for `runs` into `folder`; returns the tables and the report's path. A run
/// calls this at its end too.
///
/// # Errors
/// An error of the file system, or a chart that cannot be drawn.
pub fn draw(folder: &Path, runs: Vec<Results>) -> Result<(String, PathBuf), CommandError> {
    std::fs::create_dir_all(folder).map_err(|error| CommandError::Io(folder.to_owned(), error))?;
    let path = html::write(folder, &runs)?;
    Ok((console::text(&runs), path))
}

/// Compares two runs; returns what to print, and whether anything regressed.
///
/// # Errors
/// A file that cannot be used, or nothing in common.
pub fn compare_runs(arguments: &CompareArguments) -> Result<(String, bool), CommandError> {
    if !(0.0..100.0).contains(&arguments.threshold) {
        return Err(CommandError::Argument("--threshold must be from 0 to below 100".to_owned()));
    }
    let (old, new) = (file::read(&arguments.old)?, file::read(&arguments.new)?);
    let options = Options {
        systems: arguments.systems.clone(),
        relative_to: arguments.relative_to.clone(),
        threshold: arguments.threshold / 100.0,
        all_figures: arguments.all_figures,
    };
    let comparison = compare(&old, &new, &options)?;
    let text = match arguments.format {
        Format::Text => comparison.text(),
        Format::Json => {
            serde_json::to_string_pretty(&comparison)
                .map_err(|error| CommandError::Argument(error.to_string()))?
                + "\n"
        }
    };
    Ok((text, comparison.regressions > 0))
}
