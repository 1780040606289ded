//! `ladon cluster recover DIR`: most members are lost for good, and what one of the others has goes on
//! alone.
//!
//! Nobody can tell whether the lost members had more: whoever accepts that says so, with the position up
//! to which the directory has the log.

use crate::check;
use crate::exit::Exit;
use crate::output::with_stdout;
use clap::ArgMatches;
use ladon_log::frame::FrameKind;
use ladon_log::reader::SegmentReader;
use ladon_log::verify::{Report, verify_dir};
use ladon_log::{LOCK_NAME, Meta};
use ladon_platform::{Disk, SystemDisk};
use ladon_raft::{EntryId, GroupState, decode_entry, finish_incoming};
use ladon_record::Lsn;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

type Failure = (Exit, String);

fn refused(error: impl ToString) -> Failure {
    (Exit::Refused, error.to_string())
}

/// Shows what the directory has, and with consent makes it nobody's.
pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let dir = matches.get_one::<PathBuf>("dir");
    let dir = dir.ok_or_else(|| (Exit::Usage, "a directory is missing".to_owned()))?;
    let accepted = matches.get_one::<u64>("accept-loss-after").copied().map(Lsn);
    let disk = Arc::new(SystemDisk) as Arc<dyn Disk>;
    // A lock would make what it locks.
    let before = verify(dir)?;
    if before.meta.is_none() {
        return Err(refused(format!("there is no data in {}", dir.display())));
    }
    let _lock = disk.lock(&dir.join(LOCK_NAME)).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => {
            refused(format!("a server uses {}: stop it first", dir.display()))
        }
        _ => refused(error),
    })?;
    finish_incoming(&disk, dir).map_err(refused)?;
    let report = verify(dir)?;
    let Some(Meta { dir_id, .. }) = report.meta else {
        return Err(refused(format!("there is no data in {}", dir.display())));
    };
    let state = GroupState::open(Arc::clone(&disk), dir, dir_id).map_err(refused)?;
    if state.member() == 0 {
        return Err(refused(format!("{} is the directory of no member", dir.display())));
    }
    show(dir, &state, &report)?;
    if state.is_witness() {
        return Err(refused(format!(
            "{} is a witness's directory: it has the end of the log and no data",
            dir.display()
        )));
    }
    let end = report.end;
    match accepted {
        None => {
            return Err(refused(format!(
                "if this directory goes on alone, what the other members had and this one has not is \
                 lost. Look at each directory that is left, and take the one whose last entry has the \
                 highest term, and of these the longest log. Then: --accept-loss-after {end}"
            )));
        }
        Some(accepted) if accepted != end => {
            return Err(refused(format!("the log ends at LSN {end}, not at {accepted}")));
        }
        Some(_) => {}
    }
    drop(state);
    GroupState::forget(&*disk, dir).map_err(refused)?;
    eprintln!(
        "{} belongs to no cluster any more: start it, alone or with cluster-enabled and 'ladon cluster \
         create'; the other members' directories must not come back",
        dir.display()
    );
    Ok(())
}

fn verify(dir: &Path) -> Result<Report, Failure> {
    let report = verify_dir(&SystemDisk, dir)
        .map_err(|error| (check::exit_of(&error), error.to_string()))?;
    match report.damages.first() {
        Some(damage) => Err((Exit::Damaged, damage.to_string())),
        None => Ok(report),
    }
}

fn show(dir: &Path, state: &GroupState, report: &Report) -> Result<(), Failure> {
    let cluster: String = state.cluster().iter().map(|byte| format!("{byte:02x}")).collect();
    let last = last_entry(report).map_err(refused)?;
    let term = |entry: EntryId| format!("index {}, term {}", entry.index, entry.leader_id.term);
    let shown = with_stdout(|out| {
        writeln!(out, "{}: member {} of cluster {cluster}", dir.display(), state.member())?;
        if let Some((_, members)) = state.changes().first() {
            for (id, member) in members.nodes() {
                let votes = members.voter_ids().any(|voter| voter == *id);
                let votes = match (votes, member.is_witness) {
                    (true, true) => "votes, and has no data",
                    (true, false) => "votes",
                    (false, _) => "does not vote",
                };
                writeln!(out, "  member {id} at {}: {votes}", member.client)?;
            }
        }
        match state.committed() {
            Some((id, lsn)) => writeln!(out, "  committed: LSN {lsn} at least, {}", term(id))?,
            None => writeln!(out, "  committed: not known")?,
        }
        match last {
            Some((id, lsn)) => writeln!(out, "  last entry: LSN {lsn}, {}", term(id))?,
            None => writeln!(out, "  last entry: none")?,
        }
        writeln!(out, "  the log ends at LSN {}", report.end)
    });
    shown.map_err(|exit| (exit, "its output is closed".to_owned()))
}

/// The last entry of the group in the log, and where it ends.
fn last_entry(report: &Report) -> io::Result<Option<(EntryId, Lsn)>> {
    for segment in report.segments.iter().rev() {
        let unreadable = |error| io::Error::other(format!("{}: {error:?}", segment.path.display()));
        let mut reader = SegmentReader::open(&SystemDisk, &segment.path).map_err(unreadable)?;
        let mut last = None;
        loop {
            let batch = reader.next_batch()?;
            if batch.is_empty() {
                break;
            }
            for frame in batch.frames().filter(|frame| frame.kind == FrameKind::Entry) {
                let (id, _) = decode_entry(frame.payload).map_err(io::Error::other)?;
                last = Some((id, frame.header.lsn));
            }
        }
        if last.is_some() {
            return Ok(last);
        }
    }
    Ok(None)
}
