//! What openraft asks of the data.

use crate::entry::Payload;
use crate::group_log::GroupLog;
use crate::storage::{StoredEntry, repeat, wait_until_written};
use crate::types::{EntryId, Group};
use futures_util::{Stream, StreamExt};
use openraft::storage::{EntryResponder, RaftSnapshotBuilder, RaftStateMachine};
use openraft::type_config::alias::{SnapshotMetaOf, SnapshotOf, StoredMembershipOf};
use openraft::{AsyncRuntime, OptionalSend};
use std::io;
use std::sync::Arc;
use std::task::Poll;

/// The data of a member.
pub trait Applier: Send + Sync + 'static {
    /// The entry is committed; its bytes are in this node's log. Called for each entry, in order.
    ///
    /// # Errors
    /// Whatever makes the data unusable: the member stops.
    fn apply(&self, entry: &StoredEntry) -> io::Result<()>;
}

/// The state machine of a group: Ladon's data.
pub struct Machine<A, RT: AsyncRuntime> {
    log: Arc<GroupLog>,
    applier: Arc<A>,
    applied: Option<EntryId>,
    members: StoredMembershipOf<Group<RT>>,
}

impl<A: Applier, RT: AsyncRuntime> Machine<A, RT> {
    /// The data of a member that recovered everything up to the entry `applied`.
    ///
    /// # Errors
    /// What the disk says.
    pub fn new(log: Arc<GroupLog>, applier: Arc<A>, applied: Option<EntryId>) -> io::Result<Self> {
        let known = applied.map(|applied| log.members_at(applied)).transpose()?.flatten();
        let members = known
            .map_or_else(StoredMembershipOf::<Group<RT>>::default, |(id, members)| {
                StoredMembershipOf::<Group<RT>>::new(Some(id), members)
            });
        Ok(Machine { log, applier, applied, members })
    }

    async fn apply_one(&mut self, stored: StoredEntry) -> io::Result<()> {
        self.applier.apply(&stored)?;
        let StoredEntry { id, payload, .. } = stored;
        if let Payload::Membership(members) = payload {
            let log = &*self.log;
            let save = || log.save_change((id, members.clone()));
            repeat::<RT>(log, save).await?;
            self.members = StoredMembershipOf::<Group<RT>>::new(Some(id), members);
        }
        self.applied = Some(id);
        Ok(())
    }
}

/// A snapshot is what the newest checkpoint holds; the library only has to know how far that goes.
pub struct NewestCheckpoint(Arc<GroupLog>);

impl NewestCheckpoint {
    fn snapshot<RT: AsyncRuntime>(&self) -> io::Result<Option<SnapshotOf<Group<RT>, ()>>> {
        let snapshot = self.0.snapshot()?.map(|(last, (since, members))| {
            let last_membership = StoredMembershipOf::<Group<RT>>::new(Some(since), members);
            SnapshotOf::<Group<RT>, ()> {
                meta: SnapshotMetaOf::<Group<RT>> { last_log_id: Some(last), last_membership },
                snapshot: (),
            }
        });
        Ok(snapshot)
    }
}

impl<RT: AsyncRuntime> RaftSnapshotBuilder<Group<RT>> for NewestCheckpoint {
    type SnapshotData = ();

    async fn build_snapshot(&mut self) -> io::Result<SnapshotOf<Group<RT>, ()>> {
        let none = || io::Error::new(io::ErrorKind::NotFound, "there is no checkpoint yet");
        self.snapshot::<RT>()?.ok_or_else(none)
    }
}

/// Lets the other tasks of the thread run.
async fn yield_now() {
    let mut has_yielded = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

impl<A: Applier, RT: AsyncRuntime> RaftStateMachine<Group<RT>> for Machine<A, RT>
where
    Self: OptionalSend + openraft::OptionalSync,
{
    type SnapshotData = ();
    type SnapshotBuilder = NewestCheckpoint;

    async fn applied_state(
        &mut self,
    ) -> io::Result<(Option<EntryId>, StoredMembershipOf<Group<RT>>)> {
        Ok((self.applied, self.members.clone()))
    }

    async fn apply<S>(&mut self, mut entries: S) -> io::Result<()>
    where
        S: Stream<Item = io::Result<EntryResponder<Group<RT>>>> + Unpin + OptionalSend,
    {
        while let Some(next) = entries.next().await {
            let (entry, responder) = next?;
            let extent = entry.extent.ok_or_else(|| {
                io::Error::other(format!("the committed entry {} is not in the log", entry.id))
            })?;
            // A quorum has it on the disk, but this member may not even have it in its file.
            wait_until_written::<RT>(&*self.log, extent.to).await;
            self.apply_one(StoredEntry { id: entry.id, payload: entry.payload, extent }).await?;
            if let Some(responder) = responder {
                responder.send(());
            }
            // Others of the thread have to say that they are there.
            yield_now().await;
        }
        Ok(())
    }

    async fn get_snapshot_builder(&mut self) -> NewestCheckpoint {
        NewestCheckpoint(self.log.clone())
    }

    async fn install_snapshot(&mut self, _: &SnapshotMetaOf<Group<RT>>, (): ()) -> io::Result<()> {
        // Another member's data takes the place of all that this one has, its log included: who
        // receives it begins anew on it (`incoming.rs`).
        Err(io::Error::new(io::ErrorKind::Unsupported, "data is not installed while it is used"))
    }

    async fn get_current_snapshot(&mut self) -> io::Result<Option<SnapshotOf<Group<RT>, ()>>> {
        NewestCheckpoint(self.log.clone()).snapshot::<RT>()
    }
}
