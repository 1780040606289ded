//! What `redis-benchmark` and `memtier_benchmark` can do of a phase: set or get random keys of a
//! store that was filled. They count replies and do not check them.

use super::super::cell::CellError;
use super::super::stage::Stage;
use crate::traffic::Asked;
use crate::traffic::keyed::Deed;
use crate::work::Phase;

/// One operation on random keys.
pub struct Job {
    /// Set, else get.
    pub write: bool,
    /// How many keys.
    pub keys: u32,
    /// Bytes of each value.
    pub value_bytes: usize,
}

/// The phase as such a job.
///
/// # Errors
/// [`CellError::Cannot`] where it is none.
pub fn job(stage: &Stage<'_>, phase: &Phase) -> Result<Job, CellError> {
    let cannot = |text: &str| CellError::Cannot(format!("the tool cannot do that: {text}"));
    let Asked::Keyed { space, mix, .. } = &phase.asked else {
        return Err(cannot("it only sets and gets random keys"));
    };
    let write = match mix.as_slice() {
        [(_, Deed::Write)] => true,
        [(_, Deed::Read)] => false,
        _ => return Err(cannot("it only sets or only gets")),
    };
    if phase.connections.is_some() {
        return Err(cannot("each of its users has a connection"));
    }
    let ledger = stage.ledger(space)?.ok_or_else(|| cannot("nothing was filled in"))?;
    Ok(Job { write, keys: ledger.keys(), value_bytes: ledger.value_bytes() })
}
