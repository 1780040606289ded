//! Starts what a stage is about.

use std::time::Duration;

use crate::load::stream::Target;
use crate::run::bench::Bench;
use crate::run::cell::CellError;
use crate::run::record::StartedRecord;
use crate::run::subject::{Subject, SubjectSetting};
use crate::systems::instance::{Instance, Want};
use crate::topology::Topology;
use crate::work::Work;

/// Servers that recover a data set or wait for a slow disk need long.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// Starts the subject at the setting, or begins with a server that runs already.
///
/// # Errors
/// [`CellError::Broken`] when it does not come up.
pub(super) fn start(
    work: &Work,
    subject: &Subject,
    setting: &SubjectSetting,
    bench: &Bench,
) -> Result<(Target, Option<Instance>), CellError> {
    match (subject, setting) {
        (Subject::Found(found), SubjectSetting::Started(setting)) => {
            let want = Want {
                topology: work.topology,
                io_threads: bench.cores.server.len(),
                ..Want::new(*setting)
            };
            let instance =
                Instance::start(found, &want, &bench.data_root, &bench.cores.server, PATIENCE)?;
            Ok((Target::plain(instance.address()), Some(instance)))
        }
        (Subject::Attached(attached), _) if work.topology == Topology::Single => {
            attached.begin_pass().map_err(CellError::Broken)?;
            Ok((attached.target.clone(), None))
        }
        (Subject::Attached(_), _) => {
            let text = "attached: the lab cannot arrange several nodes of it".to_owned();
            Err(CellError::Broken(text))
        }
        (Subject::Found(_), SubjectSetting::AsAttached) => {
            Err(CellError::Broken("a system is started at one of its settings".to_owned()))
        }
    }
}

/// How it was started, for the results.
pub(super) fn started_record(subject: &Subject, instance: Option<&Instance>) -> StartedRecord {
    let (found, instance) = match (subject, instance) {
        (Subject::Attached(attached), _) => {
            let values = attached.told().settings.clone();
            return StartedRecord { values, ..StartedRecord::default() };
        }
        (Subject::Found(_), None) => return StartedRecord::default(),
        (Subject::Found(found), Some(instance)) => (found, instance),
    };
    let command_line = instance.command_lines().into_iter().next().unwrap_or_default();
    let values = found.system.effective_settings(instance.address());
    // A system that does not tell its settings is still measured; the record says why.
    let values =
        values.unwrap_or_else(|error| [("(not told)".to_owned(), error.to_string())].into());
    StartedRecord { command_line, values }
}
