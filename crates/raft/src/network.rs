//! Between members: what openraft asks of another one, and the answer.

use crate::entry::{Entry, Member};
use crate::group_log::GroupLog;
use crate::incoming::DataFile;
use crate::machine::{Applier, Machine};
use crate::state::MembersChange;
use crate::types::{EntryId, Group, MemberId, Vote};
use bytes::Bytes;
use futures_util::future::{Either, select};
use ladon_log::LogBytes;
use ladon_record::Lsn;
use openraft::errors::{RPCError, ReplicationClosed, StreamingError, Unreachable};
use openraft::network::{RPCOption, RaftNetworkFactory, v2::RaftNetworkV2};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, TransferLeaderRequest,
    VoteRequest, VoteResponse,
};
use openraft::type_config::alias::SnapshotOf;
use openraft::{AnyError, AsyncRuntime, OptionalSend, OptionalSync, Raft};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::sync::Arc;

/// As many bytes of the log go into one message, or one entry.
const MESSAGE_BYTES_MAX: u64 = 1 << 20;

/// So much memory stays for the next message. An entry has what came while the one before was on its way.
const SPARE_BYTES_MAX: usize = 4 << 20;

/// What one member asks another one.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// Take these entries, or none: the leader is there.
    Append {
        /// The leader's vote.
        vote: Vote,
        /// The entry before.
        previous: Option<EntryId>,
        /// How far the log is committed.
        committed: Option<EntryId>,
        /// The entries with their bytes.
        entries: Vec<Entry>,
    },
    /// Vote for me, or only: would you?
    Vote {
        /// For whom and in which term.
        vote: Vote,
        /// The end of the candidate's log.
        last: Option<EntryId>,
        /// The leader itself has asked for it.
        is_transfer: bool,
        /// Nothing is to be remembered of it.
        is_question: bool,
    },
    /// The leader wants this one to lead.
    Transfer {
        /// The leader's vote.
        from: Vote,
        /// Who is to lead.
        to: MemberId,
        /// What it must have.
        last: Option<EntryId>,
    },
    /// How far has the group committed? To the leader, by a member whose clients read at the gate
    /// `quorum`.
    ReadIndex,
    /// This member is too far behind: it gets another one's data, in these files.
    SnapshotBegin {
        /// The leader's vote.
        vote: Vote,
        /// The end of the log in them.
        end: Lsn,
        /// The files.
        files: Vec<DataFile>,
    },
    /// A part of one of these files.
    SnapshotPart {
        /// Which one.
        file: u32,
        /// Where it begins.
        at: u64,
        /// Its bytes.
        bytes: Bytes,
    },
    /// Everything has come.
    SnapshotEnd {
        /// The leader's vote.
        vote: Vote,
        /// The members as of the end of the log in it, and since which entry.
        members: MembersChange,
    },
}

/// The answer to a [`Request`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Response {
    /// They are on the disk here.
    Appended,
    /// Only up to here.
    AppendedUpTo(Option<EntryId>),
    /// The entry before is not the same one.
    Conflict,
    /// Another leader or candidate has come.
    HigherVote(Vote),
    /// To a request for a vote.
    Vote {
        /// The vote of this member now.
        vote: Vote,
        /// Whether the candidate has it.
        granted: bool,
        /// The end of this member's log.
        last: Option<EntryId>,
    },
    /// To a transfer: it is understood, or refused.
    Transfer(bool),
    /// Up to here; `None`: whoever was asked does not answer for the group at the moment.
    Position(Option<Lsn>),
    /// A part of a snapshot is here, or all of it is on the disk.
    SnapshotTaken,
}

/// The way to another member.
pub trait Transport: Send + Sync + 'static {
    /// Sends the request and waits for the answer.
    fn ask(
        &self,
        to: MemberId,
        member: &Member,
        request: Request,
    ) -> impl Future<Output = io::Result<Response>> + OptionalSend;

    /// That member lacks what it had on its disk, and counts as absent; `told` says so. Called as often as
    /// that is seen.
    fn lacks(&self, to: MemberId, told: &str);
}

/// A node of a group.
pub type Node<A, RT> = Raft<Group<RT>, Machine<A, RT>>;

/// What another member asks, answered.
///
/// # Errors
/// A text, if this member has stopped.
pub async fn answer<A: Applier, RT: AsyncRuntime>(
    node: &Node<A, RT>,
    request: Request,
) -> Result<Response, String>
where
    Machine<A, RT>: OptionalSend + OptionalSync,
{
    match request {
        Request::Append { vote, previous, committed, entries } => {
            let request = AppendEntriesRequest {
                vote,
                prev_log_id: previous,
                entries,
                leader_commit: committed,
            };
            let answer = node.append_entries(request).await.map_err(|error| error.to_string())?;
            Ok(match answer {
                AppendEntriesResponse::Success => Response::Appended,
                AppendEntriesResponse::PartialSuccess(upto) => Response::AppendedUpTo(upto),
                AppendEntriesResponse::Conflict => Response::Conflict,
                AppendEntriesResponse::HigherVote(vote) => Response::HigherVote(vote),
            })
        }
        // Whether it answers for the group is known elsewhere.
        Request::ReadIndex => Ok(Response::Position(None)),
        Request::SnapshotBegin { .. }
        | Request::SnapshotPart { .. }
        | Request::SnapshotEnd { .. } => Err("this member takes no other one's data".to_owned()),
        Request::Vote { vote, last, is_transfer, is_question } => {
            let mut request = VoteRequest::new(vote, last);
            request.leadership_transfer = is_transfer;
            let answer = match is_question {
                true => node.pre_vote(request).await,
                false => node.vote(request).await,
            };
            let VoteResponse { vote, vote_granted, last_log_id } =
                answer.map_err(|error| error.to_string())?;
            Ok(Response::Vote { vote, granted: vote_granted, last: last_log_id })
        }
        Request::Transfer { from, to, last } => {
            let request = TransferLeaderRequest::new(from, to, last);
            let answer = node.handle_transfer_leader(request).await;
            Ok(Response::Transfer(answer.map_err(|error| error.to_string())?.is_ok()))
        }
    }
}

/// The last entry that each other member has said to have on its disk, to which leader. The library
/// has several ways to a member, and makes them anew when the members change: they know it together.
type Reached = Arc<Mutex<BTreeMap<MemberId, (Vote, u64)>>>;

/// Makes the ways to the other members.
pub struct Network<T> {
    transport: Arc<T>,
    log: Arc<GroupLog>,
    reached: Reached,
}

impl<T> Network<T> {
    /// Entries are read from this log.
    pub fn new(transport: Arc<T>, log: Arc<GroupLog>) -> Network<T> {
        Network { transport, log, reached: Reached::default() }
    }
}

/// The way to one other member.
pub struct Link<T> {
    transport: Arc<T>,
    to: MemberId,
    member: Member,
    log: Arc<GroupLog>,
    bytes: LogBytes,
    spare: Spare,
    reached: Reached,
}

impl<T: Transport, RT: AsyncRuntime> RaftNetworkFactory<Group<RT>> for Network<T> {
    type Network = Link<T>;

    async fn new_client(&mut self, to: MemberId, member: &Member) -> Link<T> {
        let (log, transport) = (self.log.clone(), self.transport.clone());
        let bytes = LogBytes::new(log.log().clone());
        let reached = Arc::clone(&self.reached);
        let (member, spare) = (member.clone(), Spare::default());
        Link { transport, to, member, log, bytes, spare, reached }
    }
}

fn unreachable<RT: AsyncRuntime>(error: &io::Error) -> RPCError<Group<RT>> {
    RPCError::Unreachable(Unreachable::new(&AnyError::new(error)))
}

/// An answer that belongs to another question.
fn confused<RT: AsyncRuntime>(response: &Response) -> RPCError<Group<RT>> {
    unreachable(&io::Error::other(format!("the other node answers {response:?}")))
}

impl<T: Transport> Link<T> {
    async fn ask<RT: AsyncRuntime>(
        &self,
        request: Request,
    ) -> Result<Response, RPCError<Group<RT>>> {
        let asked = self.transport.ask(self.to, &self.member, request).await;
        asked.map_err(|error| unreachable(&error))
    }

    /// The member has everything up to there, for the leader of this vote. What it had for another one
    /// it may have cut since.
    fn has(&self, vote: Vote, index: u64) {
        let mut reached = self.reached.lock();
        let known = reached.entry(self.to).or_insert((vote, index));
        if known.0 != vote {
            *known = (vote, index);
        }
        known.1 = known.1.max(index);
    }

    /// A member that lacks what it had on its disk counts as absent: the library would stop this node.
    fn must_not_lack(&self, vote: Vote, entry: Option<EntryId>) -> io::Result<()> {
        let Some(index) = entry.map(|entry| entry.index) else { return Ok(()) };
        let had = self.reached.lock().get(&self.to).copied();
        if had.is_none_or(|(of, had)| of != vote || index > had) {
            return Ok(());
        }
        let told = format!(
            "member {} lacks the entry {index}, which it had on its disk: its directory was lost, or \
             is an old one; it has to be replaced by a new member",
            self.to
        );
        self.transport.lacks(self.to, &told);
        Err(io::Error::other(told))
    }

    /// The log's bytes for as many of these entries as fit into a message and follow each other there.
    fn fill(&mut self, entries: &mut Vec<Entry>) -> io::Result<()> {
        let (mut count, mut end) = (0, None);
        let mut from = Lsn::ZERO;
        for entry in &*entries {
            let extent = entry.extent.ok_or_else(|| io::Error::other("it is not in the log"))?;
            match end {
                None => from = extent.from,
                Some(end) if end != extent.from => break,
                Some(_) if extent.to.0 - from.0 > MESSAGE_BYTES_MAX => break,
                Some(_) => {}
            }
            end = Some(extent.to);
            count += 1;
        }
        entries.truncate(count);
        let length = end.map_or(0, |end| (end.0 - from.0) as usize);
        let mut frames = self.spare.lend(length, |bytes| self.bytes.read(from, bytes))?;
        for entry in entries {
            let length = entry.extent.map_or(0, |extent| extent.bytes() as usize);
            entry.frames = frames.split_to(length);
        }
        Ok(())
    }
}

/// Memory of a message that has gone, for the next one: the system gives new memory page by page, which
/// takes longer than to fill it.
#[derive(Clone, Default)]
struct Spare(Arc<Mutex<Vec<u8>>>);

/// Bytes in such memory, which goes back when the last part of them does.
struct Lent {
    bytes: Vec<u8>,
    length: usize,
    back: Spare,
}

impl Spare {
    /// So many bytes, which `read` fills.
    fn lend(
        &self,
        length: usize,
        read: impl FnOnce(&mut [u8]) -> io::Result<()>,
    ) -> io::Result<Bytes> {
        let mut bytes = std::mem::take(&mut *self.0.lock());
        if bytes.len() as u64 > MESSAGE_BYTES_MAX && bytes.len() > 4 * length {
            bytes = Vec::new();
        }
        if bytes.len() < length {
            bytes.resize(length, 0);
        }
        let mut lent = Lent { bytes, length, back: self.clone() };
        read(&mut lent.bytes[..length])?;
        Ok(Bytes::from_owner(lent))
    }
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if self.bytes.len() <= SPARE_BYTES_MAX {
            *self.back.0.lock() = std::mem::take(&mut self.bytes);
        }
    }
}

impl<T: Transport, RT: AsyncRuntime> RaftNetworkV2<Group<RT>> for Link<T> {
    type SnapshotData = ();

    async fn append_entries(
        &mut self,
        request: AppendEntriesRequest<Group<RT>>,
        _: RPCOption,
    ) -> Result<AppendEntriesResponse<Group<RT>>, RPCError<Group<RT>>> {
        let AppendEntriesRequest { vote, prev_log_id, mut entries, leader_commit } = request;
        let wanted = entries.len();
        self.fill(&mut entries).map_err(|error| unreachable(&error))?;
        let sent = entries.last().map(|entry| entry.id);
        let is_all = entries.len() == wanted;
        let request =
            Request::Append { vote, previous: prev_log_id, committed: leader_commit, entries };
        let reached = sent.or(prev_log_id).map(|id| id.index);
        Ok(match self.ask(request).await? {
            Response::Appended => {
                if let Some(reached) = reached {
                    self.has(vote, reached);
                }
                if is_all {
                    AppendEntriesResponse::Success
                } else {
                    AppendEntriesResponse::PartialSuccess(sent)
                }
            }
            Response::AppendedUpTo(upto) => {
                if let Some(upto) = upto {
                    self.has(vote, upto.index);
                }
                AppendEntriesResponse::PartialSuccess(upto)
            }
            Response::Conflict => {
                self.must_not_lack(vote, prev_log_id).map_err(|error| unreachable(&error))?;
                AppendEntriesResponse::Conflict
            }
            Response::HigherVote(vote) => AppendEntriesResponse::HigherVote(vote),
            other => return Err(confused(&other)),
        })
    }

    async fn vote(
        &mut self,
        request: VoteRequest<Group<RT>>,
        _: RPCOption,
    ) -> Result<VoteResponse<Group<RT>>, RPCError<Group<RT>>> {
        self.ask_for_vote(request, false).await
    }

    async fn pre_vote(
        &mut self,
        request: VoteRequest<Group<RT>>,
        _: RPCOption,
    ) -> Result<VoteResponse<Group<RT>>, RPCError<Group<RT>>> {
        self.ask_for_vote(request, true).await
    }

    async fn full_snapshot(
        &mut self,
        vote: Vote,
        _: SnapshotOf<Group<RT>, ()>,
        cancel: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        _: RPCOption,
    ) -> Result<SnapshotResponse<Group<RT>>, StreamingError<Group<RT>>> {
        let sent = std::pin::pin!(self.send_snapshot(vote));
        match select(sent, std::pin::pin!(cancel)).await {
            Either::Left((sent, _)) => sent.map(SnapshotResponse::new).map_err(|error| {
                StreamingError::Unreachable(Unreachable::new(&AnyError::new(&error)))
            }),
            Either::Right((closed, _)) => Err(StreamingError::Closed(closed)),
        }
    }

    async fn transfer_leader(
        &mut self,
        request: TransferLeaderRequest<Group<RT>>,
        _: RPCOption,
    ) -> Result<openraft::raft::TransferLeaderResponse<Group<RT>>, RPCError<Group<RT>>> {
        let request = Request::Transfer {
            from: *request.from_leader(),
            to: *request.to_node_id(),
            last: request.last_log_id().copied(),
        };
        match self.ask(request).await? {
            Response::Transfer(true) => Ok(Ok(())),
            other => Err(confused(&other)),
        }
    }
}

impl<T: Transport> Link<T> {
    /// Sends this member's newest checkpoint and the log behind it, without what is in the checkpoint to
    /// a witness. The newest one may be newer than the library knows. Returns the vote of the other
    /// member.
    async fn send_snapshot(&mut self, vote: Vote) -> io::Result<Vote> {
        let (mut copy, last, members) = self.log.begin_copy()?;
        if self.member.is_witness {
            copy = copy.without_content()?;
        }
        let files: Vec<DataFile> =
            copy.files().iter().map(|file| (file.name.clone(), file.bytes)).collect();
        let (end, names) = (copy.end(), files.clone());
        if let Some(higher) =
            self.send_part(Request::SnapshotBegin { vote, end, files: names }).await?
        {
            return Ok(higher);
        }
        for (index, (_, whole)) in files.iter().enumerate() {
            let mut at = 0;
            while at < *whole {
                let mut bytes = vec![0; (whole - at).min(MESSAGE_BYTES_MAX) as usize];
                let read = copy.read(index, &mut bytes, at)?;
                bytes.truncate(read);
                let (file, bytes) = (index as u32, Bytes::from(bytes));
                let part = Request::SnapshotPart { file, at, bytes };
                if let Some(higher) = self.send_part(part).await? {
                    return Ok(higher);
                }
                at += read as u64;
            }
        }
        let higher = self.send_part(Request::SnapshotEnd { vote, members }).await?;
        if higher.is_none() {
            self.has(vote, last.index);
        }
        Ok(higher.unwrap_or(vote))
    }

    /// Returns the vote of the other member if it follows another one.
    async fn send_part(&self, request: Request) -> io::Result<Option<Vote>> {
        match self.transport.ask(self.to, &self.member, request).await? {
            Response::SnapshotTaken => Ok(None),
            Response::HigherVote(vote) => Ok(Some(vote)),
            other => Err(io::Error::other(format!("the other node answers {other:?}"))),
        }
    }

    async fn ask_for_vote<RT: AsyncRuntime>(
        &self,
        request: VoteRequest<Group<RT>>,
        is_question: bool,
    ) -> Result<VoteResponse<Group<RT>>, RPCError<Group<RT>>> {
        let VoteRequest { vote, last_log_id, leadership_transfer } = request;
        let is_transfer = leadership_transfer;
        let request = Request::Vote { vote, last: last_log_id, is_transfer, is_question };
        match self.ask(request).await? {
            Response::Vote { vote, granted, last } => Ok(VoteResponse::new(vote, last, granted)),
            other => Err(confused(&other)),
        }
    }
}
