//! Loads a checkpoint into a sink, in parallel.

use crate::checkpoint::CheckpointInfo;
use crate::checkpoint::format::PartKind;
use crate::checkpoint::reader::CheckpointReader;
use crate::data_dir::DataDir;
use crate::recover::{RecoverError, checkpoint_error, open_checkpoint};
use crate::sink::{Phase, Progress, RecoverySink};
use std::path::Path;

pub(crate) fn load_checkpoint<S: RecoverySink + ?Sized>(
    dir: &DataDir,
    path: &Path,
    sink: &S,
    workers: usize,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<CheckpointInfo, RecoverError> {
    let reader = open_checkpoint(dir, path)?;
    let work = || load_parts(&reader, path, sink, progress);
    std::thread::scope(|threads| {
        let others: Vec<_> = (1..workers).map(|_| threads.spawn(work)).collect();
        let mut outcome = work();
        for other in others {
            match other.join() {
                Ok(result) => outcome = outcome.and(result),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        outcome
    })?;
    Ok(reader.info())
}

fn load_parts<S: RecoverySink + ?Sized>(
    reader: &CheckpointReader,
    path: &Path,
    sink: &S,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<(), RecoverError> {
    while let Some(part) = reader.next_part().map_err(|error| checkpoint_error(path, error))? {
        let taken = match part.kind {
            PartKind::Block => sink.block(&part.header, &part.payload),
            PartKind::Meta => sink.meta(part.header.lsn, &part.payload),
            PartKind::End => Ok(()),
        };
        let (path, lsn) = (path.to_owned(), part.header.lsn);
        taken.map_err(|message| RecoverError::Sink { path, lsn, message })?;
        progress(Progress {
            phase: Phase::Checkpoint,
            bytes_done: reader.position_bytes(),
            bytes_total: reader.file_bytes(),
            items: reader.info().keys,
        });
    }
    Ok(())
}
