//! The tuples of a copy of a space, a few at a time.

use crate::error::BoxError;
use crate::space::Space;
use crate::statement::Written;
use crate::tuple::Tuple;
use smallvec::SmallVec;

/// Bytes of a tuple that take about as long as a short tuple. Each may be a key of a multikey
/// index.
const BYTES_PER_WORK: usize = 128;
/// Tuples that are visited together: what finding their places needs is fetched at once.
const TOGETHER: usize = 32;

/// The copy, and how far the walk has come.
pub(crate) struct TupleWalk {
    /// The space as it was at the beginning.
    pub(crate) space: Space,
    /// The primary key of the last tuple that was visited.
    after: Option<Vec<u8>>,
    is_over: bool,
}

impl TupleWalk {
    pub(crate) fn of(space: &Space) -> TupleWalk {
        TupleWalk { space: space.clone(), after: None, is_over: false }
    }

    /// Visits tuples that make so much work, one at least, some of them together. Returns whether
    /// none are left.
    ///
    /// # Errors
    /// The first one of `visit`.
    pub(crate) fn go_on(
        &mut self,
        work: usize,
        mut visit: impl FnMut(&Space, &[&Tuple]) -> Result<(), BoxError>,
    ) -> Result<bool, BoxError> {
        if self.is_over {
            return Ok(true);
        }
        let TupleWalk { space, after, is_over } = self;
        let (mut last, mut done) = (None, 0);
        let mut together: SmallVec<[&Tuple; TOGETHER]> = SmallVec::new();
        for tuple in space.require_index(0)?.select_after(after.as_deref()) {
            together.push(tuple);
            if together.len() == TOGETHER {
                visit(space, &together)?;
                together.clear();
            }
            last = Some(tuple);
            done += work_of(tuple);
            if done >= work {
                break;
            }
        }
        visit(space, &together)?;
        *is_over = done < work;
        if let Some(last) = last {
            *after = Some(space.primary_key_of_own(last));
        }
        Ok(*is_over)
    }
}

/// How long what is done with a tuple takes, in short tuples.
fn work_of(tuple: &Tuple) -> usize {
    1 + tuple.bytes().len() / BYTES_PER_WORK
}

impl Written {
    /// How long it takes to follow the change elsewhere, in short tuples.
    pub fn work(&self) -> usize {
        self.old.iter().chain(&self.new).map(work_of).sum()
    }
}
