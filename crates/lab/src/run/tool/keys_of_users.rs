//! What k6 and wrk can do of a phase: what the published scripts do, with keys that each user or
//! connection counts up. Both scripts are the lab's own and check every answer.

use super::super::cell::CellError;
use super::super::stage::Stage;
use crate::load::plain::Plain;
use crate::operation::{Answer, Operation};
use crate::traffic::Asked;
use crate::traffic::iterations::Deed;
use crate::work::Phase;

/// A script of the lab's and how the tool is started with it: `before SCRIPT after`.
pub struct Prepared {
    /// Its file's name and text.
    pub script: (&'static str, &'static str),
    /// Arguments before the script's path.
    pub before: Vec<String>,
    /// Arguments after it.
    pub after: Vec<String>,
    /// What else it is told.
    pub environment: Vec<(String, String)>,
}

/// One deed on keys made of user and iteration.
pub struct Job {
    /// What is done with each key.
    pub deed: Deed,
    /// Bytes of each value.
    pub value_bytes: usize,
}

/// The phase as such a job.
///
/// # Errors
/// [`CellError::Cannot`] where it is none.
pub fn job(phase: &Phase) -> Result<Job, CellError> {
    let cannot = |text: &str| CellError::Cannot(format!("the tool cannot do that: {text}"));
    let Asked::Iterations { deed, value_bytes, .. } = phase.asked else {
        return Err(cannot("its script has keys made of user and iteration"));
    };
    if phase.connections.is_some() || phase.depth > 1 {
        return Err(cannot("each of its users has a connection and waits for every answer"));
    }
    Ok(Job { deed, value_bytes })
}

/// Sent together.
const TOGETHER: usize = 64;

/// Writes what the tool will read or delete, so that its own run is nothing but that.
///
/// # Errors
/// [`CellError::Broken`] when a write fails.
pub fn fill(
    stage: &Stage<'_>,
    pairs: impl Iterator<Item = (String, String)>,
) -> Result<(), CellError> {
    let dialect = stage.subject.dialect().map_err(CellError::Cannot)?;
    let mut plain = Plain::connect(stage.target.address, dialect)?;
    let mut all = pairs.map(|(key, value)| Operation::Set { key: key.into(), value: value.into() });
    loop {
        let some: Vec<Operation> = all.by_ref().take(TOGETHER).collect();
        if some.is_empty() {
            return Ok(());
        }
        let answers = plain.ask(&some)?;
        if let Some(wrong) = answers.iter().find(|answer| **answer != Answer::Done) {
            return Err(CellError::Wrong(format!("a write was answered with {wrong:?}")));
        }
    }
}
