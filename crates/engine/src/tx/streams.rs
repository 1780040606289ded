//! What a transaction does to streams.

use super::Tx;
use crate::key::Key;
use crate::object::Variant;
use crate::types::collection::{Env, WrongType};
use crate::types::stream::{
    Idempotence, Memory, References, Spared, Step, Stream, StreamId, Trim, encode_add,
};
use ladon_record::{Change, DbId, ValueKind};
use std::ops::Deref;

/// A stream that is being changed; the changes are logged.
pub struct StreamEdit<'a> {
    stream: &'a mut Stream,
    op: &'a mut Vec<u8>,
    env: Env<'a>,
    touches_watchers: bool,
    serves_waiters: bool,
    /// What was forgotten of producers, which may take long to drop.
    garbage: Option<Stream>,
}

impl Deref for StreamEdit<'_> {
    type Target = Stream;

    #[inline]
    fn deref(&self) -> &Stream {
        self.stream
    }
}

impl<'a> StreamEdit<'a> {
    #[inline]
    fn new(stream: &'a mut Stream, op: &'a mut Vec<u8>, env: Env<'a>) -> StreamEdit<'a> {
        let (touches_watchers, serves_waiters) = (false, false);
        StreamEdit { stream, op, env, touches_watchers, serves_waiters, garbage: None }
    }

    /// Appends an entry of these words, fields and values in turn. Its id is larger than the
    /// stream's last.
    #[inline]
    pub fn add(&mut self, id: StreamId, words: &[&[u8]]) {
        self.stream.add(self.env.limits.of_streams(), id, words);
        encode_add(id, words, self.op);
        (self.touches_watchers, self.serves_waiters) = (true, true);
    }

    /// Trims the stream; returns how many entries were removed.
    #[inline]
    pub fn trim(&mut self, trim: &Trim, references: References) -> usize {
        if self.stream.is_short_enough(trim) { 0 } else { self.trim_long(trim, references) }
    }

    fn trim_long(&mut self, trim: &Trim, references: References) -> usize {
        let spared = match references {
            References::Spare => self.stream.trimmed_sparing(trim),
            _ => Spared { first: self.stream.trimmed(trim), others: Vec::new() },
        };
        let Spared { first: count, others } = spared;
        if count != 0 {
            if references == References::Remove {
                for (group, ids) in self.stream.pending_of_first(count) {
                    self.apply(Step::Acknowledge { group: &group, ids });
                }
            }
            self.apply(Step::Trim { count });
        }
        let removed = count + others.len();
        if !others.is_empty() {
            self.apply(Step::Remove { ids: others });
        }
        removed
    }

    /// The entry that this producer has sent under this idempotent id.
    pub fn sent(&self, producer: &[u8], id: &[u8]) -> Option<StreamId> {
        self.stream.idempotence()?.entry(self.env.hasher, producer, id)
    }

    /// Remembers who sent the last entry. `memory` is how much a stream remembers that has not
    /// remembered anything yet.
    pub fn remember(&mut self, memory: Memory, producer: &[u8], id: &[u8]) {
        if self.stream.idempotence().is_none() {
            self.apply(Step::SetMemory(memory));
        }
        self.apply(Step::Remember { producer, id });
    }

    /// Sets how much is remembered of each producer; what is remembered already is forgotten,
    /// unless nothing changes.
    pub fn set_memory(&mut self, memory: Memory) {
        if self.stream.idempotence().map(Idempotence::memory) != Some(memory) {
            self.apply(Step::SetMemory(memory));
        }
    }

    /// Makes an entry pending in no group.
    pub fn remove_references(&mut self, id: StreamId) {
        for group in self.stream.groups_with(id) {
            self.apply(Step::Acknowledge { group: &group, ids: vec![id] });
        }
    }

    /// Makes `delivered_until` and `oldest_delivery` quick for a group. No change: it is not
    /// logged.
    pub fn index_by_time(&mut self, group: &[u8]) {
        self.stream.index_by_time(group);
    }

    /// Applies a step that fits the stream.
    ///
    /// # Panics
    /// If it does not.
    pub fn apply(&mut self, step: Step<'_>) {
        if matches!(step, Step::SetMemory(_) | Step::SetId { .. }) {
            self.garbage = self.stream.share_idempotence();
        }
        self.stream.apply(&step, self.env).expect("the step fits the stream");
        self.note(&step);
    }

    /// As `apply`, of a [`Step::Deliver`] whose entries the caller has found already.
    ///
    /// # Panics
    /// As `apply`.
    pub fn deliver(&mut self, step: Step<'_>, ids: &[StreamId]) {
        self.stream.deliver(&step, ids).expect("the step fits the stream");
        self.note(&step);
    }

    /// A step was applied.
    fn note(&mut self, step: &Step<'_>) {
        step.encode(self.op);
        self.touches_watchers |= step.touches_watchers();
        self.serves_waiters |= step.serves_waiters();
    }
}

impl Tx<'_> {
    /// Changes the key's stream; `None` if there is none.
    #[inline]
    pub fn stream_change<R>(
        &mut self,
        db: DbId,
        key: Key<'_>,
        change: impl FnOnce(&mut StreamEdit<'_>) -> R,
    ) -> Result<Option<R>, WrongType> {
        let mut op = std::mem::take(&mut self.scratch.body);
        op.clear();
        let (mut touches_watchers, mut serves_waiters, mut garbage) = (false, false, None);
        let edited = self.edit_found(db, key, &mut op, |stream: &mut Stream, op, env| {
            let mut edit = StreamEdit::new(stream, op, env);
            let result = change(&mut edit);
            (touches_watchers, serves_waiters) = (edit.touches_watchers, edit.serves_waiters);
            garbage = edit.garbage;
            result
        });
        if let Some(garbage) = garbage {
            self.scratch.discard(Some(Box::new(garbage.into_object())));
        }
        if !op.is_empty() {
            self.begin_change(key);
            let (kind, name) = (ValueKind::Stream, key.bytes);
            self.push_change(&mut op, |op| Change::Update { db, key: name, kind, op });
            self.scratch.touched.push(key.hash);
            if touches_watchers {
                self.touch_watchers(db, key, true);
            }
            if serves_waiters {
                self.note_ready(db, key, ValueKind::Stream);
            }
        }
        self.scratch.body = op;
        self.trim_body();
        Ok(edited?.map(|(result, _)| result))
    }

    /// Records what was done to the key's stream, and tells nobody.
    #[inline]
    pub(super) fn record_stream_op(&mut self, db: DbId, key: Key<'_>, op: &[u8]) {
        self.begin_change(key);
        let change = Change::Update { db, key: key.bytes, kind: ValueKind::Stream, op };
        self.scratch.changes.push(change);
        self.scratch.touched.push(key.hash);
    }

    /// As `stream_change`, but creates a stream that is not there.
    #[inline]
    pub fn stream_upsert<R>(
        &mut self,
        db: DbId,
        key: Key<'_>,
        change: impl FnOnce(&mut StreamEdit<'_>) -> R,
    ) -> Result<R, WrongType> {
        let mut change = Some(change);
        let found = self.stream_change(db, key, |edit| change.take().map(|change| change(edit)))?;
        if let Some(Some(result)) = found {
            return Ok(result);
        }
        let Some(change) = change else { unreachable!("what was not found was not changed") };
        // The whole stream is logged: the operation is not.
        let (mut stream, mut op) = (Stream::new(), Vec::new());
        let result = change(&mut StreamEdit::new(&mut stream, &mut op, self.env()));
        self.put_value(db, key, stream, 0);
        Ok(result)
    }
}
