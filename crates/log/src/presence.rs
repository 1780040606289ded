//! Whether the directory still holds the files that the next start needs.
//!
//! Another program may remove, move or replace them, or the directory. The server has them open and
//! would notice nothing: writes and syncs go on, into files that nobody finds again. So the log looks
//! for them, about once a second while it writes, and whenever it begins a segment or makes a
//! checkpoint. One that is gone is as final as a failed sync.

use crate::log::Log;
use crate::planted::Planted;
use crate::segment::segment_path;
use crate::state::LogError;
use crate::write::OpenSegment;
use ladon_record::Lsn;
use std::collections::HashSet;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// How often to look while the log writes.
const LOOK_EVERY_NS: u64 = 1_000_000_000;

/// What was seen at the last look.
#[derive(Debug, Default)]
pub(crate) struct Looked {
    at_ns: u64,
    /// How far the log was written.
    written: u64,
}

impl Looked {
    /// Whether it is time to look, after a write up to here. Then notes that somebody does.
    pub(crate) fn is_due(&mut self, now_ns: u64, written: u64) -> bool {
        let is_due = written != self.written && now_ns.saturating_sub(self.at_ns) >= LOOK_EVERY_NS;
        if is_due {
            *self = Looked { at_ns: now_ns, written };
        }
        is_due
    }
}

impl Log {
    /// Looks for the files now.
    ///
    /// # Errors
    /// [`LogError::Removed`], also for an earlier look; the log then takes no records until a restart.
    pub(crate) fn look_for_files(&self) -> Result<(), LogError> {
        let mut sync = self.sync.lock();
        let segments = self.unsynced_segments();
        self.look_for(&segments).inspect_err(|error| self.give_up(&mut sync, error))
    }

    /// Files of the log that are open for writing or not synced yet.
    fn unsynced_segments(&self) -> Vec<Arc<OpenSegment>> {
        let io = self.io.lock();
        io.complete.iter().chain([&io.segment]).cloned().collect()
    }

    /// Looks for these open segments, and by their names for all other files that the next start
    /// needs.
    pub(crate) fn look_for(&self, segments: &[Arc<OpenSegment>]) -> Result<(), LogError> {
        if self.options.planted == Planted::UnseenRemoval {
            return Ok(());
        }
        for segment in segments {
            // What cannot be found out is no reason to stop: writes and syncs have their own errors.
            if let Ok(false) = segment.file.is_named(&segment.path) {
                return Err(LogError::Removed { path: segment.path.clone() });
            }
        }
        loop {
            let checkpoint = self.last_checkpoint();
            let missing = match self.missing_name() {
                Some(missing) => missing,
                None => return Ok(()),
            };
            // A newer checkpoint makes files obsolete, which this log removes itself.
            if self.last_checkpoint() == checkpoint {
                return Err(LogError::Removed { path: missing });
            }
        }
    }

    /// A file that the next start would miss.
    fn missing_name(&self) -> Option<PathBuf> {
        let dir = &self.place.dir;
        let checkpoint = self.last_checkpoint();
        let mut needed = vec![dir.join(crate::data_dir::META_NAME)];
        let begin = checkpoint.as_ref().map_or(0, |newest| newest.begin.0);
        needed.extend(checkpoint.map(|newest| newest.path));
        {
            let segments = self.segments.lock();
            let first = segments.range(..=begin).next_back().or(segments.first()).copied();
            let bases = segments.range(first.unwrap_or(0)..);
            needed.extend(bases.map(|base| segment_path(dir, Lsn(*base))));
        }
        let present: HashSet<PathBuf> = match self.place.disk.list(dir) {
            Ok(present) => present.into_iter().collect(),
            Err(error) => return (error.kind() == io::ErrorKind::NotFound).then(|| dir.clone()),
        };
        needed.into_iter().find(|path| !present.contains(path))
    }
}
