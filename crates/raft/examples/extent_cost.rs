//! What one extent costs the leader of a group of three, and how much later than its sync it is
//! committed:
//!
//! ```text
//! cargo run --release -p ladon-raft --example extent_cost \
//!     [PER_SECOND [BYTES [SYNC_US [SECONDS [floor]]]]]
//! ```
//! With `floor`, the same bytes go to both followers and one answer is awaited, but nothing
//! decides: what any protocol costs on this machine.
//!
//! Each node has a thread and a runtime of its own, so that the leader's CPU time can be told from
//! the others'. Messages pass through channels, and the extent's bytes are copied once on each
//! side. The disk is a thread that sleeps; one sync serves everything that waits for it.

use bytes::Bytes;
use futures_util::StreamExt;
use ladon_raft::{
    Cut, Entry, EntryId, Extent, ExtentLog, Group, Member, MemberId, OnDurable, Payload, Storage,
    StoredEntry, Vote, group_config,
};
use ladon_record::Lsn;
use openraft::errors::{RPCError, ReplicationClosed, StreamingError, Unreachable};
use openraft::network::{RPCOption, RaftNetworkFactory, v2::RaftNetworkV2};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, VoteRequest, VoteResponse,
};
use openraft::storage::{EntryResponder, RaftSnapshotBuilder, RaftStateMachine};
use openraft::type_config::alias::{SnapshotMetaOf, SnapshotOf, StoredMembershipOf};
use openraft::{AnyError, OptionalSend, Raft};
use openraft_rt_tokio::TokioRuntime;
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, mpsc};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

type Types = Group<TokioRuntime>;
type Node = Raft<Types, Machine>;

const MEMBERS: [MemberId; 3] = [1, 2, 3];
/// Time to elect a leader, and for caches to warm.
const WARM: Duration = Duration::from_secs(2);

/// What comes to a node's thread.
enum Message {
    Append(AppendEntriesRequest<Types>, oneshot::Sender<AppendEntriesResponse<Types>>),
    Vote(VoteRequest<Types>, oneshot::Sender<VoteResponse<Types>>),
    /// The floor: bytes, to be answered.
    Echo(Bytes, oneshot::Sender<()>),
    /// Everything up to here is on the disk.
    Synced(u64),
    /// Bytes were appended; time to propose them.
    Cut(Instant),
    /// Measure from now on.
    Begin,
    /// Print and stop.
    End(mpsc::Sender<Report>),
}

struct Report {
    cpu: Duration,
    extents: usize,
    latencies: Vec<Duration>,
}

/// A log in memory.
struct MemLog {
    bytes: usize,
    disk: Option<mpsc::Sender<u64>>,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    entries: Vec<StoredEntry>,
    data: Vec<u8>,
    end: u64,
    waiting: VecDeque<(u64, OnDurable)>,
    vote: Option<Vote>,
    committed: Option<EntryId>,
    /// When each proposal came that is not in the log yet.
    asked: VecDeque<Instant>,
    /// The same, for those that are not committed yet, by index.
    begun: BTreeMap<u64, Instant>,
    latencies: Vec<Duration>,
}

impl Inner {
    fn store(&mut self, id: EntryId, payload: Payload, bytes: u64) -> Extent {
        let extent = Extent { from: Lsn(self.end), to: Lsn(self.end + bytes) };
        self.end = extent.to.0;
        self.entries.push(StoredEntry { id, payload, extent });
        extent
    }
}

impl MemLog {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("nothing panics with the log")
    }

    fn synced(&self, upto: u64) {
        loop {
            let mut inner = self.inner();
            if inner.waiting.front().is_none_or(|waits| waits.0 > upto) {
                return;
            }
            let (_, then) = inner.waiting.pop_front().expect("looked at above");
            drop(inner);
            then(Ok(()));
        }
    }

    fn committed_now(&self, index: u64) {
        let mut inner = self.inner();
        if let Some(begun) = inner.begun.remove(&index) {
            inner.latencies.push(begun.elapsed());
        }
    }
}

impl ExtentLog for MemLog {
    fn bounds(&self) -> (Option<EntryId>, Option<EntryId>) {
        (None, self.inner().entries.last().map(|entry| entry.id))
    }

    fn append_entry(&self, id: EntryId, payload: &Payload) -> io::Result<Extent> {
        let mut inner = self.inner();
        if let (Payload::Normal(Cut), Some(asked)) = (payload, inner.asked.pop_front()) {
            inner.begun.insert(id.index, asked);
        }
        Ok(inner.store(id, payload.clone(), self.bytes as u64))
    }

    fn append_frames(&self, entry: Entry) -> io::Result<Extent> {
        let mut inner = self.inner();
        inner.data.clear();
        inner.data.extend_from_slice(&entry.frames);
        Ok(inner.store(entry.id, entry.payload, entry.frames.len() as u64))
    }

    fn end_with_entries(&self) -> io::Result<()> {
        Ok(())
    }

    fn is_repeating(&self) -> bool {
        false
    }

    fn is_written(&self, _: Lsn) -> bool {
        true
    }

    fn when_durable(&self, lsn: Lsn, then: OnDurable) {
        let Some(disk) = &self.disk else { return then(Ok(())) };
        self.inner().waiting.push_back((lsn.0, then));
        disk.send(lsn.0).expect("the disk's thread lives as long as the log");
    }

    fn truncate_after(&self, last: Option<EntryId>) -> io::Result<()> {
        self.inner().entries.retain(|entry| Some(entry.id) <= last);
        Ok(())
    }

    fn purge(&self, _: EntryId) -> io::Result<()> {
        Ok(())
    }

    fn entries(&self, from: u64, until: u64) -> io::Result<Vec<StoredEntry>> {
        let entries = &self.inner().entries;
        let until = until.min(entries.len() as u64);
        Ok(entries[from.min(until) as usize..until as usize].to_vec())
    }

    fn end_before_vote(&self) -> Lsn {
        Lsn(self.inner().end)
    }

    fn save_vote(&self, vote: &Vote) -> io::Result<()> {
        self.inner().vote = Some(*vote);
        Ok(())
    }

    fn vote(&self) -> io::Result<Option<Vote>> {
        Ok(self.inner().vote)
    }

    fn save_committed(&self, committed: Option<EntryId>) -> io::Result<()> {
        self.inner().committed = committed;
        Ok(())
    }

    fn committed(&self) -> io::Result<Option<EntryId>> {
        Ok(self.inner().committed)
    }
}

/// Notes when a proposal was committed.
struct Machine {
    log: Arc<MemLog>,
    applied: Option<EntryId>,
    members: StoredMembershipOf<Types>,
}

struct NoSnapshots;

impl RaftSnapshotBuilder<Types> for NoSnapshots {
    type SnapshotData = ();

    async fn build_snapshot(&mut self) -> io::Result<SnapshotOf<Types, ()>> {
        Err(io::Error::other("there are no snapshots here"))
    }
}

impl RaftStateMachine<Types> for Machine {
    type SnapshotData = ();
    type SnapshotBuilder = NoSnapshots;

    async fn applied_state(&mut self) -> io::Result<(Option<EntryId>, StoredMembershipOf<Types>)> {
        Ok((self.applied, self.members.clone()))
    }

    async fn apply<S>(&mut self, mut entries: S) -> io::Result<()>
    where
        S: futures_util::Stream<Item = Result<EntryResponder<Types>, io::Error>>
            + Unpin
            + OptionalSend,
    {
        while let Some(entry) = entries.next().await {
            let (entry, responder) = entry?;
            self.applied = Some(entry.id);
            self.log.committed_now(entry.id.index);
            if let Payload::Membership(members) = entry.payload {
                self.members = StoredMembershipOf::<Types>::new(Some(entry.id), members);
            }
            if let Some(responder) = responder {
                responder.send(());
            }
        }
        Ok(())
    }

    async fn get_snapshot_builder(&mut self) -> NoSnapshots {
        NoSnapshots
    }

    async fn install_snapshot(&mut self, _: &SnapshotMetaOf<Types>, (): ()) -> io::Result<()> {
        Err(io::Error::other("there are no snapshots here"))
    }

    async fn get_current_snapshot(&mut self) -> io::Result<Option<SnapshotOf<Types, ()>>> {
        Ok(None)
    }
}

#[derive(Clone)]
struct Network {
    peers: Vec<UnboundedSender<Message>>,
    source: Bytes,
}

struct Link {
    peer: UnboundedSender<Message>,
    source: Bytes,
}

impl RaftNetworkFactory<Types> for Network {
    type Network = Link;

    async fn new_client(&mut self, target: MemberId, _: &Member) -> Link {
        let peer = self.peers[target as usize - 1].clone();
        Link { peer, source: self.source.clone() }
    }
}

impl Link {
    async fn ask<T>(
        &self,
        message: impl FnOnce(oneshot::Sender<T>) -> Message,
    ) -> Result<T, RPCError<Types>> {
        let unreachable = || RPCError::Unreachable(Unreachable::new(&AnyError::error("is gone")));
        let (sender, receiver) = oneshot::channel();
        self.peer.send(message(sender)).map_err(|_| unreachable())?;
        receiver.await.map_err(|_| unreachable())
    }
}

impl RaftNetworkV2<Types> for Link {
    type SnapshotData = ();

    async fn append_entries(
        &mut self,
        mut request: AppendEntriesRequest<Types>,
        _: RPCOption,
    ) -> Result<AppendEntriesResponse<Types>, RPCError<Types>> {
        for entry in &mut request.entries {
            let bytes = entry.extent.expect("it is in the log").bytes() as usize;
            // As reading them from the log would.
            entry.frames = Bytes::copy_from_slice(&self.source[..bytes]);
        }
        self.ask(|reply| Message::Append(request, reply)).await
    }

    async fn vote(
        &mut self,
        request: VoteRequest<Types>,
        _: RPCOption,
    ) -> Result<VoteResponse<Types>, RPCError<Types>> {
        self.ask(|reply| Message::Vote(request, reply)).await
    }

    async fn full_snapshot(
        &mut self,
        _: Vote,
        _: SnapshotOf<Types, ()>,
        _: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        _: RPCOption,
    ) -> Result<SnapshotResponse<Types>, StreamingError<Types>> {
        Err(StreamingError::Unreachable(Unreachable::new(&AnyError::error("no snapshots here"))))
    }
}

fn thread_cpu() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: The pointer is to a timespec that lives through the call.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    assert_eq!(result, 0, "every thread has a clock");
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The thread that plays the disk: one sync serves everything that was asked for before it began.
fn disk(asked: mpsc::Receiver<u64>, sync: Duration, node: UnboundedSender<Message>) {
    while let Ok(mut upto) = asked.recv() {
        upto = asked.try_iter().last().unwrap_or(upto);
        std::thread::sleep(sync);
        if node.send(Message::Synced(upto)).is_err() {
            return;
        }
    }
}

struct Setup {
    id: MemberId,
    bytes: usize,
    sync: Duration,
    network: Network,
    is_floor: bool,
}

fn node(setup: Setup, inbox: UnboundedReceiver<Message>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime without sockets");
    runtime.block_on(run(setup, inbox));
}

/// A group's member, begun; the first one begins the group.
async fn begin(setup: &Setup) -> (Arc<MemLog>, Node) {
    let (id, sync, network) = (setup.id, setup.sync, setup.network.clone());
    let disk = (!sync.is_zero()).then(|| {
        let (sender, receiver) = mpsc::channel();
        let node = network.peers[id as usize - 1].clone();
        std::thread::spawn(move || disk(receiver, sync, node));
        sender
    });
    let log = Arc::new(MemLog { bytes: setup.bytes, disk, inner: Mutex::default() });
    let members = StoredMembershipOf::<Types>::default();
    let machine = Machine { log: log.clone(), applied: None, members };
    let config = Arc::new(
        group_config(Duration::from_millis(300)).validate().expect("the settings fit together"),
    );
    let storage = Storage::new(log.clone());
    let raft = Node::new(id, config, network, storage, machine).await.expect("it starts");
    if id == 1 {
        let members = MEMBERS.map(|id| (id, Member::default()));
        raft.initialize(BTreeMap::from(members)).await.expect("a new group");
    }
    (log, raft)
}

async fn run(setup: Setup, mut inbox: UnboundedReceiver<Message>) {
    let (log, raft) = begin(&setup).await;
    let mut cpu_before = Duration::ZERO;
    while let Some(message) = inbox.recv().await {
        match message {
            Message::Append(request, reply) => {
                let raft = raft.clone();
                tokio::task::spawn(async move {
                    let _ = reply.send(raft.append_entries(request).await.expect("it runs"));
                });
            }
            Message::Vote(request, reply) => {
                let raft = raft.clone();
                tokio::task::spawn(async move {
                    let _ = reply.send(raft.vote(request).await.expect("it runs"));
                });
            }
            Message::Echo(frames, reply) => {
                let mut inner = log.inner();
                inner.data.clear();
                inner.data.extend_from_slice(&frames);
                let _ = reply.send(());
            }
            Message::Cut(asked) if setup.is_floor => send_only(&setup, &log, asked),
            Message::Synced(upto) => log.synced(upto),
            Message::Cut(asked) => {
                log.inner().asked.push_back(asked);
                raft.client_write_ff(Cut, None).await.expect("it runs");
            }
            Message::Begin => {
                assert!(raft.is_leader(), "node {} does not lead any more", setup.id);
                log.inner().latencies.clear();
                cpu_before = thread_cpu();
            }
            Message::End(report) => {
                let latencies = std::mem::take(&mut log.inner().latencies);
                let cpu = thread_cpu() - cpu_before;
                let _ = report.send(Report { cpu, extents: latencies.len(), latencies });
                return;
            }
        }
    }
}

/// The floor: the bytes go to both followers, and one answer counts.
fn send_only(setup: &Setup, log: &Arc<MemLog>, asked: Instant) {
    let Network { peers, source } = &setup.network;
    for (index, peer) in peers[1..].iter().enumerate() {
        let (sender, receiver) = oneshot::channel();
        let frames = Bytes::copy_from_slice(&source[..setup.bytes]);
        peer.send(Message::Echo(frames, sender)).expect("the followers live");
        let log = log.clone();
        tokio::task::spawn(async move {
            receiver.await.expect("the followers live");
            if index == 0 {
                log.inner().latencies.push(asked.elapsed());
            }
        });
    }
}

fn main() {
    let argument = |at: usize, usual: u64| {
        std::env::args().nth(at).map_or(usual, |text| text.parse().expect("a number"))
    };
    let per_second = argument(1, 5_000);
    let bytes = argument(2, 4_096) as usize;
    let sync = Duration::from_micros(argument(3, 0));
    let seconds = argument(4, 5);
    let is_floor = std::env::args().nth(5).is_some_and(|text| text == "floor");
    let (peers, inboxes): (Vec<_>, Vec<_>) = MEMBERS.iter().map(|_| unbounded_channel()).unzip();
    let network = Network { peers: peers.clone(), source: vec![7; bytes.max(64)].into() };
    for (id, inbox) in MEMBERS.into_iter().zip(inboxes) {
        let setup = Setup { id, bytes, sync, network: network.clone(), is_floor };
        std::thread::spawn(move || node(setup, inbox));
    }
    std::thread::sleep(WARM);
    let leader = &peers[0];
    let pause = Duration::from_nanos(1_000_000_000 / per_second);
    let load = |during: Duration| {
        let begin = Instant::now();
        let mut sent = 0;
        while begin.elapsed() < during {
            std::thread::sleep(pause);
            // Sleep is never exact: catch up, so that the rate is.
            while sent < (begin.elapsed().as_secs_f64() * per_second as f64) as u64 {
                leader.send(Message::Cut(Instant::now())).expect("the leader lives");
                sent += 1;
            }
        }
    };
    load(WARM);
    leader.send(Message::Begin).expect("the leader lives");
    load(Duration::from_secs(seconds));
    let (sender, receiver) = mpsc::channel();
    leader.send(Message::End(sender)).expect("the leader lives");
    let Report { cpu, extents, mut latencies } = receiver.recv().expect("the leader answers");
    latencies.sort();
    let at = |part: f64| latencies[((latencies.len() - 1) as f64 * part) as usize].as_micros();
    println!(
        "{extents} extents of {bytes} bytes in {seconds} s, syncs of {} us: the leader's thread \
         took {:.1} us of CPU each; committed after {} us (median), {} us (p99), {} us (p99.9)",
        sync.as_micros(),
        cpu.as_secs_f64() * 1e6 / extents as f64,
        at(0.5),
        at(0.99),
        at(0.999),
    );
}
