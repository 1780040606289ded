//! Applying steps: the same code for commands and for replay.

use super::{Claimed, Group, Step, Stream, StreamId};
use crate::types::collection::Env;
use std::ops::ControlFlow::Continue;

impl Stream {
    /// Applies a step; `None` if it does not fit the stream, which may then be partly changed.
    pub(crate) fn apply(&mut self, step: &Step<'_>, env: Env<'_>) -> Option<()> {
        match step {
            Step::Add { id, words } => {
                if *id <= self.last_id() {
                    return None;
                }
                self.add(env.limits.of_streams(), *id, words);
            }
            Step::Remove { ids } => {
                for id in ids {
                    self.remove(*id).then_some(())?;
                }
            }
            Step::Trim { count } => self.remove_first(*count),
            Step::SetId { last, added, deleted } => {
                if self.last_entry_id().is_some_and(|entry| *last < entry) {
                    return None;
                }
                self.set_id(*last, *added, *deleted);
            }
            Step::CreateGroup { group, last, read } => {
                self.add_group(group, Group::new(*last, *read)).then_some(())?;
            }
            Step::RemoveGroup { group } => self.remove_group(group).then_some(())?,
            Step::Deliver { group, last, .. } => {
                let ids = self.undelivered(group, *last)?;
                self.deliver(step, &ids)?;
            }
            Step::Redeliver { group, consumer, at_ms, first, count } => {
                let ids = self.redelivered(group, consumer, *first, *count)?;
                self.edit_group(group, |group| {
                    ids.into_iter().for_each(|id| group.redeliver(id, *at_ms));
                })?;
            }
            Step::SetMemory(memory) => self.set_memory(*memory)?,
            Step::Remember { producer, id } => {
                let entry = self.last_id();
                let idempotence = self.idempotence_mut()?;
                idempotence.remember(env.hasher, producer, id, entry)?;
                idempotence.added += 1;
            }
            Step::Duplicate => self.idempotence_mut()?.duplicates += 1,
            Step::Forget { count } => self.idempotence_mut()?.forget_first(*count),
            Step::SetGroup { group, .. }
            | Step::See { group, .. }
            | Step::RemoveConsumer { group, .. }
            | Step::Acknowledge { group, .. }
            | Step::Claim { group, .. }
            | Step::Release { group, .. } => {
                self.edit_group(group, |group| group.apply(step))??
            }
        }
        Some(())
    }

    /// Applies a [`Step::Deliver`] of these entries, which are those that it is about.
    pub(crate) fn deliver(&mut self, step: &Step<'_>, ids: &[StreamId]) -> Option<()> {
        let &Step::Deliver { group, consumer, at_ms, last, read } = step else { return None };
        debug_assert_eq!(self.undelivered(group, last).as_deref(), Some(ids));
        self.edit_group(group, |group| {
            let number = group.number(consumer)?;
            for id in ids {
                group.assign(*id, number, at_ms, 1)?;
            }
            group.set_active(number, Some(at_ms));
            (group.last_id, group.entries_read) = (last, read);
            Some(())
        })?
    }

    /// The entries after the group's last id, up to `last`.
    fn undelivered(&self, group: &[u8], last: StreamId) -> Option<Vec<StreamId>> {
        let first = self.group(group)?.last_id.next()?;
        if last < first {
            return None;
        }
        let mut ids = Vec::new();
        let _ = self.walk::<()>(first, last, |entry| {
            ids.push(entry.id);
            Continue(())
        });
        Some(ids)
    }

    /// The existing entries among up to `count` that are pending with a consumer, from `first` on.
    fn redelivered(
        &self,
        group: &[u8],
        consumer: &[u8],
        first: StreamId,
        count: u64,
    ) -> Option<Vec<StreamId>> {
        let group = self.group(group)?;
        let consumer = group.consumer(consumer)?;
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let pending = group.pending_with(consumer, first).take(count);
        Some(pending.map(|(id, _)| id).filter(|id| self.contains(*id)).collect())
    }
}

impl Group {
    /// Applies a step that needs the group alone; `None` if it does not fit.
    fn apply(&mut self, step: &Step<'_>) -> Option<()> {
        match step {
            Step::SetGroup { last, read, .. } => {
                (self.last_id, self.entries_read) = (*last, *read);
            }
            Step::See { consumer, at_ms, .. } => {
                self.see(consumer, *at_ms);
            }
            Step::RemoveConsumer { consumer, .. } => {
                self.remove_consumer(consumer)?;
            }
            Step::Acknowledge { ids, .. } => {
                for id in ids {
                    self.acknowledge(*id).then_some(())?;
                }
            }
            Step::Claim { consumer, at_ms, claimed, .. } => {
                let number = self.number(consumer)?;
                for Claimed { id, delivered_ms, count } in claimed {
                    self.assign(*id, number, *delivered_ms, *count)?;
                }
                self.set_active(number, Some(*at_ms));
            }
            Step::Release { released, .. } => {
                for (id, count) in released {
                    self.release(*id, *count);
                }
            }
            _ => return None,
        }
        Some(())
    }
}
