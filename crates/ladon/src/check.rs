//! `ladon check DIR`: is every byte of a data directory as it was written?
//!
//! A directory without data is neither sound nor damaged: a script that checks a backup must learn of
//! it.

use crate::exit::Exit;
use crate::output::with_stdout;
use crate::readable::Time;
use clap::ArgMatches;
use ladon_log::verify::{Report, VerifyError, verify_dir};
use ladon_platform::SystemDisk;
use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Verifies the directory and reports what a server would find there.
pub fn run(matches: &ArgMatches) -> Exit {
    let Some(dir) = matches.get_one::<PathBuf>("dir") else { return Exit::Usage };
    let report = match verify_dir(&SystemDisk, dir) {
        Ok(report) => report,
        Err(error) => {
            eprintln!("ladon check: {error}");
            return exit_of(&error);
        }
    };
    if let Err(exit) = with_stdout(|out| print(out, dir, &report)) {
        return exit;
    }
    if report.meta.is_none() && report.damages.is_empty() {
        eprintln!(
            "ladon check: there is no data in {}: a server started there begins with none",
            dir.display()
        );
        return Exit::Refused;
    }
    match (report.damages.is_empty(), report.not_needed.is_empty()) {
        (true, true) => Exit::Ok,
        (true, false) => Exit::NotNeeded,
        (false, _) => Exit::Damaged,
    }
}

/// The exit code for a directory that cannot be read.
pub fn exit_of(error: &VerifyError) -> Exit {
    match error {
        VerifyError::Damaged(_) => Exit::Damaged,
        _ => Exit::Refused,
    }
}

fn print(out: &mut dyn Write, dir: &Path, report: &Report) -> io::Result<()> {
    match &report.meta {
        Some(meta) => {
            let created = Time(meta.created_ms);
            writeln!(out, "{}: node {}, created {created}", dir.display(), meta.node)?;
        }
        None => writeln!(out, "{}: no data", dir.display())?,
    }
    print_files(out, report)?;
    if report.meta.is_some() {
        writeln!(out, "{}", Totals(report))?;
    }
    for damage in report.damages.iter().chain(&report.not_needed) {
        writeln!(out, "{damage}")?;
    }
    print_verdict(out, report)
}

/// A line for each file.
fn print_files(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    for checkpoint in &report.checkpoints {
        writeln!(
            out,
            "{}: checkpoint, LSN {} to {}, {} keys in {} blocks, {} bytes",
            checkpoint.path.display(),
            checkpoint.begin,
            checkpoint.newest,
            checkpoint.keys,
            checkpoint.blocks,
            checkpoint.bytes
        )?;
    }
    for segment in &report.segments {
        writeln!(
            out,
            "{}: log, LSN {} to {}, {} records, {} bytes",
            segment.path.display(),
            segment.base,
            segment.end,
            segment.records,
            segment.bytes
        )?;
    }
    if let Some(torn) = &report.torn {
        writeln!(
            out,
            "{}: ends at byte {}: {}; a start cuts off the {} bytes behind it ({} records that \
             were never synced)",
            torn.path.display(),
            torn.offset,
            torn.found,
            torn.bytes,
            torn.frames
        )?;
    }
    for path in &report.behind_the_end {
        writeln!(out, "{}: behind the end of the log; a start deletes it", path.display())?;
    }
    for path in &report.strangers {
        writeln!(out, "{}: none of Ladon's files; not looked into", path.display())?;
    }
    Ok(())
}

/// The last line: sound or not, and how the log ends.
fn print_verdict(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    let end = match (report.in_use, report.clean) {
        (true, _) => format!(
            "a server is using it: read up to LSN {}, to which the log was on the disk",
            report.end
        ),
        (false, true) => "closed in good order".to_owned(),
        (false, false) => "not closed in good order".to_owned(),
    };
    let places = |count| if count == 1 { "1 place".to_owned() } else { format!("{count} places") };
    match (report.damages.len(), report.not_needed.len()) {
        (0, 0) if report.meta.is_none() => Ok(()),
        (0, 0) => writeln!(out, "sound; {end}"),
        (0, count) => writeln!(
            out,
            "nothing is lost: damaged in {} that no start needs; {end}",
            places(count)
        ),
        (count, _) => writeln!(out, "DAMAGED in {}; {end}", places(count)),
    }
}

/// Everything that was read, in one line.
struct Totals<'a>(&'a Report);

impl fmt::Display for Totals<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { checkpoints, segments, saved_changes, logged_changes, .. } = self.0;
        let keys: u64 = checkpoints.iter().map(|checkpoint| checkpoint.keys).sum();
        let records: u64 = segments.iter().map(|segment| segment.records).sum();
        let saved_bytes: u64 = checkpoints.iter().map(|checkpoint| checkpoint.bytes).sum();
        let logged_bytes: u64 = segments.iter().map(|segment| segment.bytes).sum();
        write!(
            f,
            "checked {} checkpoints ({keys} keys, {saved_changes} changes, {saved_bytes} bytes) and \
             {} log files ({records} records, {logged_changes} changes, {logged_bytes} bytes)",
            checkpoints.len(),
            segments.len()
        )
    }
}
