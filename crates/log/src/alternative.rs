//! Advice for a newest checkpoint that cannot be used.
//!
//! Usually only a backup helps, because the log before the checkpoint is gone. But an older
//! checkpoint with the log after it, or a log that was never shortened, may still hold everything.

use crate::checkpoint::CheckpointInfo;
use crate::checkpoint::format::{CheckpointHeader, checkpoint_begin};
use crate::checkpoint::reader::{CheckpointError, CheckpointReader};
use crate::damage::Damage;
use crate::log_end::LogEnd;
use crate::scan::{Known, Scan, Source};
use ladon_record::Lsn;
use std::path::{Path, PathBuf};

/// The advice about the last of `checkpoints`, which is damaged. Reads its possible replacement to
/// the end.
pub(crate) fn way_out_of_checkpoint(
    source: Source<'_>,
    checkpoints: &[PathBuf],
    bases: &[Lsn],
    end: Option<LogEnd>,
) -> String {
    let Some((damaged, older)) = checkpoints.split_last() else { return String::new() };
    let reaches = checkpoint_begin(damaged).unwrap_or_default();
    // A start uses the newest remaining checkpoint and no other.
    let instead = match older.last() {
        Some(path) => whole_checkpoint(source, path).map(Some),
        None => Some(None),
    };
    let is_enough = instead
        .as_ref()
        .is_some_and(|checkpoint| log_is_whole(source, checkpoint.as_ref(), bases, reaches, end));
    match instead {
        Some(Some(checkpoint)) if is_enough => format!(
            "remove this file: the older checkpoint {} and the log after it hold everything",
            checkpoint.path.display()
        ),
        Some(None) if is_enough => {
            "remove this file: the log still begins at LSN 0 and holds everything".to_owned()
        }
        _ => "restore the directory from a backup".to_owned(),
    }
}

fn whole_checkpoint(source: Source<'_>, path: &Path) -> Option<CheckpointInfo> {
    let read = || -> Result<Option<CheckpointInfo>, CheckpointError> {
        let reader = CheckpointReader::open(source.disk, path)?;
        let is_ours = source.dir_id.is_none_or(|id| misplaced(reader.header(), id, path).is_none());
        while reader.next_part()?.is_some() {}
        Ok(is_ours.then(|| reader.info()))
    };
    read().ok().flatten()
}

fn log_is_whole(
    source: Source<'_>,
    checkpoint: Option<&CheckpointInfo>,
    bases: &[Lsn],
    reaches: Lsn,
    end: Option<LogEnd>,
) -> bool {
    let mut scan = Scan::new(source, bases, Known { checkpoint, end, ..Known::default() });
    let outcome = scan.run(&mut |batch, _| Ok(batch), &|_| {});
    outcome.is_ok() && !bases.is_empty() && scan.finish().end >= reaches
}

/// Why a checkpoint does not belong in this place, if so; without advice.
pub(crate) fn misplaced(header: &CheckpointHeader, dir_id: u64, path: &Path) -> Option<Damage> {
    let found = if header.dir_id != dir_id {
        "this checkpoint belongs to another data directory"
    } else if checkpoint_begin(path) != Some(header.begin) {
        "its header names another position than its file name"
    } else {
        return None;
    };
    let (path, found) = (path.to_owned(), found.to_owned());
    Some(Damage { path, offset: 0, found, advice: String::new() })
}
