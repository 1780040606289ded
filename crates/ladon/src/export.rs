//! `ladon export`: a data directory, or a running server, to a file that Redis or Valkey loads.

use crate::cli;
use crate::exit::Exit;
use crate::progress::Line;
use crate::running_server;
use clap::ArgMatches;
use ladon_files::{
    BackupError, ExportError, ExportProgress, Exported, export_directory, export_scan,
    export_snapshot,
};
use ladon_log::{OpenError, RecoverError};
use ladon_rdb::Version;
use std::path::PathBuf;
use std::time::Instant;

/// Exports what the command line names.
pub fn run(matches: &ArgMatches) -> Exit {
    let Some(path) = matches.get_one::<PathBuf>("file") else { return Exit::Usage };
    let number = matches.get_one::<String>("rdb-version").map_or("10", String::as_str);
    let is_it = |version: &Version| version.number().to_string() == number;
    let Some(version) = Version::ALL.into_iter().find(is_it) else { return Exit::Usage };
    let (began, mut line) = (Instant::now(), Line::default());
    let mut show = |progress: ExportProgress| line.show(|| text_of(progress));
    let settings = match cli::load(matches) {
        Ok((settings, _)) => settings,
        Err(error) => {
            eprintln!("{error}\nladon export: these settings cannot be used");
            return Exit::Usage;
        }
    };
    let is_scan = matches.get_one::<String>("online").is_some_and(|how| how == "scan");
    let ended = match running_server::named(matches, "from") {
        Err(error) => {
            eprintln!("ladon export: {error}");
            return Exit::Refused;
        }
        Ok(Some(server)) if is_scan => export_scan(path, version, &server, &mut show),
        Ok(Some(server)) => export_snapshot(path, version, &server, &settings, &mut show),
        Ok(None) => export_directory(path, version, &settings, &mut show),
    };
    line.end();
    match ended {
        Ok(Exported { keys, functions }) => {
            let (path, seconds) = (path.display(), began.elapsed().as_secs_f64());
            eprintln!(
                "exported {keys} keys, {functions} libraries of functions to {path} in \
                 {seconds:.1} s"
            );
            Exit::Ok
        }
        Err(error) => {
            eprintln!("ladon export: {error}");
            match error {
                ExportError::Open(OpenError::Damaged(_))
                | ExportError::Fetch(BackupError::Damaged(_))
                | ExportError::Recover(RecoverError::Damaged(_)) => Exit::Damaged,
                _ => Exit::Refused,
            }
        }
    }
}

fn text_of(progress: ExportProgress) -> String {
    let share = |done: u64, total: u64| {
        let percent = (u128::from(done) * 100).checked_div(total.into()).unwrap_or(100);
        format!("{percent} % ({} of {} MB)", done >> 20, total >> 20)
    };
    match progress {
        ExportProgress::Fetching { bytes_done, bytes_total } => {
            format!("fetching: {}", share(bytes_done, bytes_total))
        }
        ExportProgress::Loading { bytes_done, bytes_total } => {
            format!("loading: {}", share(bytes_done, bytes_total))
        }
        ExportProgress::Writing(exported) => format!("{} keys", exported.keys),
    }
}
