//! A count whose tuples have to be looked at: it is made in slices, from a copy of the space, while
//! other requests run.

use crate::long_select::{Selecting, TUPLES_MAX};
use ladon_iproto::reply::{self, ReplyTooLong};
use ladon_kernel::long::slices::{Room, Slices};
use ladon_msgpack::write;
use ladon_resp::Reply;
use ladon_space::{BoxError, Counting, Looked, Selected, Selection, Space};

/// What a request has counted.
pub(crate) enum Counted {
    All(u64),
    /// There is so much to look at that the reply is to be long: a copy of the space, and what is
    /// selected.
    TooMany(Box<(Space, Selected)>),
}

/// How the reply looks around the number.
#[derive(Clone, Copy)]
pub(crate) struct CountShape {
    pub(crate) sync: u64,
    pub(crate) schema_version: u64,
    /// The number is in an array, for CALL_16.
    pub(crate) is_16: bool,
}

/// The reply.
pub(crate) struct LongCount {
    selecting: Selecting,
    counted: u64,
    shape: CountShape,
}

impl Counted {
    /// Counts what is selected, from the first tuple to the last whatever the offset and the limit
    /// say; or a part of it, if it `may_be_long`.
    ///
    /// # Errors
    /// If the space has no such tuples to select.
    pub(crate) fn of(
        space: &Space,
        selected: Selected,
        may_be_long: bool,
    ) -> Result<Counted, BoxError> {
        let Selected { index, iterator, key, .. } = &selected;
        let mut selection = match space.begin_count(*index, *iterator, key)? {
            Counting::Counted(count) => return Ok(Counted::All(count)),
            Counting::OneByOne(selection) => selection,
        };
        let most = if may_be_long { TUPLES_MAX as usize } else { usize::MAX };
        let (count, is_all) = count_some(&mut selection, most);
        if is_all {
            return Ok(Counted::All(count));
        }
        Ok(Counted::TooMany(Box::new((space.clone(), selected))))
    }
}

/// The number of selected tuples, from the first to the last; `None` if that are too many to look at at
/// once.
///
/// # Errors
/// As [`Counted::of`].
pub(crate) fn count_at_once(space: &Space, selected: &Selected) -> Result<Option<u64>, BoxError> {
    let Selected { index, iterator, key, .. } = selected;
    Ok(match space.begin_count(*index, *iterator, key)? {
        Counting::Counted(count) => Some(count),
        Counting::OneByOne(mut selection) => {
            let (count, is_all) = count_some(&mut selection, TUPLES_MAX as usize);
            is_all.then_some(count)
        }
    })
}

/// Looks `most` times at most. Returns how many tuples were found, and whether there are no more.
fn count_some(selection: &mut Selection<'_>, most: usize) -> (u64, bool) {
    let mut count = 0;
    for _ in 0..most {
        match selection.look() {
            Looked::Found(_) => count += 1,
            Looked::AtSome => {}
            Looked::AtAll => return (count, true),
        }
    }
    (count, false)
}

impl CountShape {
    pub(crate) fn write(self, out: &mut Vec<u8>, count: u64) -> Result<(), ReplyTooLong> {
        let data = reply::begin_data(out, self.sync, self.schema_version);
        if self.is_16 {
            write::array(out, 1);
        }
        write::uint(out, count);
        data.finish(out, 1)
    }
}

impl LongCount {
    /// # Errors
    /// As [`Counted::of`].
    pub(crate) fn new(
        space: Space,
        selected: &Selected,
        shape: CountShape,
    ) -> Result<LongCount, BoxError> {
        let selecting = Selecting::try_new(space, |space| selected.of(space))?;
        Ok(LongCount { selecting, counted: 0, shape })
    }
}

impl Slices for LongCount {
    fn write(&mut self, reply: &mut Reply<'_>, room: &mut Room) -> bool {
        let counted = &mut self.counted;
        let is_all = self.selecting.with_dependent_mut(|_, selection| {
            while room.take(reply) {
                let (count, is_all) = count_some(selection, 1);
                *counted += count;
                if is_all {
                    return true;
                }
            }
            false
        });
        if is_all {
            let mut out = Vec::with_capacity(64);
            self.shape.write(&mut out, self.counted).expect("a number is short");
            reply.raw(&out);
        }
        !is_all
    }
}
