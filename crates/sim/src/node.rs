//! A node's life, from recovery to its crash.

use crate::clock::SimClock;
use crate::oracle_commands::{Call, Datum, Group, Sent, State, Stream};
use crate::plan::{Canary, Plan};
use crate::spaces;
use crate::threads::{Threads, Woken};
use ladon_engine::types::list::End;
use ladon_engine::types::stream::{Step, StreamId};
use ladon_engine::{Key, Keyspace, Library, Locks, Object, Scratch, ValueRef, types};
use ladon_kernel::blocking::SendNow;
use ladon_kernel::client::clients::Monitor;
use ladon_kernel::message::{Message, ThreadHandle};
use ladon_kernel::node::Node;
use ladon_kernel::persistent::PlantedInCalls;
use ladon_kernel::shared::Shared;
use ladon_log::{DataDir, Log, LogOptions};
use ladon_net::{ConnId, Outgoing};
use ladon_platform::{Clock, Disk};
use ladon_record::{Change, Changes, Gate, Lsn};
use ladon_server::{
    Assembly, CheckpointRun, ConnectionStart, Net, Planted, Protocol, Recovered, Worker,
    WorkerParts, dataset, node_over, recover,
};
use ladon_settings::Settings;
use ladon_sim_disk::SimDisk;
use ladon_testkit::Random;
use ladon_testkit::reference::stream::IDS_MAX;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};

/// Settings that take every collection out of its small form early, and compress long elements
/// between a list's ends.
const UNPACKED: [(&str, &str); 6] = [
    ("set-max-intset-entries", "0"),
    ("set-max-listpack-entries", "0"),
    ("hash-max-listpack-entries", "0"),
    ("zset-max-listpack-entries", "0"),
    ("list-max-listpack-size", "1"),
    ("list-compress-depth", "1"),
];

/// Bytes on their way from a worker to its clients.
pub(crate) struct Wire {
    pub(crate) sent: Vec<(ConnId, Outgoing)>,
    pub(crate) closed: Vec<ConnId>,
    /// Connections, by slot, that the worker does not want to hear from.
    pub(crate) paused: BTreeSet<u32>,
    /// What other workers have sent.
    pub(crate) direct: Arc<Mutex<Direct>>,
}

/// Bytes past the worker that owns the connection.
pub(crate) struct Direct {
    pub(crate) sent: Vec<(ConnId, Vec<u8>)>,
    random: Random,
}

impl Wire {
    pub(crate) fn new(seed: u64) -> Wire {
        let direct = Direct { sent: Vec::new(), random: Random::new(seed) };
        Wire {
            sent: Vec::new(),
            closed: Vec::new(),
            paused: BTreeSet::new(),
            direct: Arc::new(Mutex::new(direct)),
        }
    }

    pub(crate) fn take_direct(&self) -> Vec<(ConnId, Vec<u8>)> {
        std::mem::take(&mut self.direct.lock().expect("nothing panics with it").sent)
    }
}

impl Net for Wire {
    fn send(&mut self, conn: ConnId, outgoing: Outgoing, _more: bool) {
        self.sent.push((conn, outgoing));
    }

    fn close(&mut self, conn: ConnId) {
        self.closed.push(conn);
    }

    fn pause_receive(&mut self, conn: ConnId, paused: bool) {
        if paused {
            self.paused.insert(conn.slot);
        } else {
            self.paused.remove(&conn.slot);
        }
    }

    fn send_now(&mut self, conn: ConnId) -> Option<SendNow> {
        let direct = Arc::clone(&self.direct);
        Some(Box::new(move |bytes| {
            let mut direct = direct.lock().expect("nothing panics with it");
            // A socket may have room for all, for a part, or for nothing.
            let taken = match direct.random.below(3) {
                0 => direct.random.below(bytes.len() as u64 + 1) as usize,
                _ => bytes.len(),
            };
            direct.sent.push((conn, bytes[..taken].to_vec()));
            taken
        }))
    }
}

/// Prefix of the inbox messages about evictions; a line of `MONITOR` begins differently.
const EVICTED: &[u8] = b"evicted ";

/// Prefix of the inbox messages about served waits: `served WORKER.SLOT`.
const SERVED: &[u8] = b"served ";

/// Something that the node has run.
pub(crate) enum Ran {
    /// A client's call; the client by its worker and slot.
    Call { worker: usize, slot: u32, call: Call },
    /// The eviction of this key.
    Eviction(Vec<u8>),
    /// A client's call that had to wait.
    Served { worker: usize, slot: u32 },
    /// A command of the script of the last call, one that changes data.
    InScript,
}

pub(crate) struct SimNode {
    node: Arc<Node>,
    pub(crate) keyspace: Arc<Keyspace>,
    pub(crate) log: Arc<Log>,
    pub(crate) threads: Arc<Threads>,
    pub(crate) checkpoint: Option<CheckpointRun>,
    clock: Arc<SimClock>,
}

impl SimNode {
    /// Recovers from the disk.
    pub(crate) fn start(
        disk: &SimDisk,
        clock: &Arc<SimClock>,
        plan: &Plan,
        random: &mut Random,
        canary: Canary,
    ) -> Result<SimNode, String> {
        ladon_app::run_persistent_functions();
        let shared_clock: Arc<dyn Clock> = Arc::<SimClock>::clone(clock);
        let recovered = open(disk, &shared_clock, plan, canary)?;
        let (keyspace, log) = (Arc::clone(&recovered.keyspace), Arc::clone(&recovered.log));
        plant(&keyspace, canary, clock.unix_ms());
        let settings = Arc::new(Settings::new());
        settings
            .set_many(&[("gate", plan.gate.name()), ("busy-reply-threshold", plan.busy_ms)])
            .map_err(|error| format!("cannot set the gate: {error}"))?;
        let woken: Vec<Woken> = (0..plan.workers).map(|_| Woken::default()).collect();
        let wake = |woken: &Woken| {
            let woken = Arc::clone(woken);
            move || woken.store(true, Relaxed)
        };
        let assembly = Assembly {
            settings,
            clock: shared_clock,
            // One more than there are: its inbox gets the node's reports of what it runs.
            threads: (0..plan.workers)
                .map(|at| ThreadHandle::new(wake(&woken[at])))
                .chain([ThreadHandle::new(|| {})])
                .collect(),
            run_id: "0".repeat(40),
            io_backend: "sim".to_owned(),
        };
        let mut shared = assembly.shared();
        watch(&mut shared, plan.workers, canary);
        let (data, _) = dataset(&shared, &recovered, 0, Arc::default());
        let node = Arc::new(node_over(shared, data));
        apply_limits(&node, &keyspace, plan, canary)?;
        node.clients.add_monitor(Monitor { client: u64::MAX, thread: plan.workers, slot: 0 });
        let workers = (0..plan.workers)
            .map(|thread| {
                let mut worker = Worker::new(WorkerParts {
                    node: Arc::clone(&node),
                    thread,
                    seed: random.next_u64(),
                    wake: Arc::new(wake(&woken[thread])),
                    dropper: None,
                    aside: None,
                });
                worker.pace = plan.pace;
                worker.refuse_lock_of_calls(plan.refused_lock);
                worker.set_commit_limits(plan.commit_limits);
                worker.set_preparation_limits(plan.preparation_limits);
                if plan.rehearses {
                    worker.rehearse_changes();
                }
                plant_in_worker(&mut worker, canary);
                worker
            })
            .collect();
        let threads = Threads::new(workers, woken, &log, clock, random);
        let clock = Arc::clone(clock);
        Ok(SimNode { node, keyspace, log, threads, checkpoint: None, clock })
    }

    /// Weight of the messages that are not delivered yet.
    pub(crate) fn undelivered(&self) -> usize {
        self.node.pubsub.undelivered()
    }

    /// What the node has run since the last call, in its order, without refused requests.
    pub(crate) fn ran(&self) -> Vec<Ran> {
        let inbox = self.node.threads[self.threads.len()].take();
        inbox
            .into_iter()
            .filter_map(|message| match message {
                Message::Deliver { bytes, .. } => match bytes.strip_prefix(EVICTED) {
                    Some(key) => Some(Ran::Eviction(key.to_vec())),
                    None => match bytes.strip_prefix(SERVED) {
                        Some(who) => parse_served(who),
                        None => parse_monitored(&bytes),
                    },
                },
                _ => None,
            })
            .collect()
    }

    pub(crate) fn connect(&mut self, worker: usize, slot: u32) -> ConnId {
        self.connect_by(Protocol::Resp, worker, slot)
    }

    /// What its threads share.
    #[cfg(test)]
    pub(crate) fn node(&self) -> Arc<Node> {
        Arc::clone(&self.node)
    }

    pub(crate) fn connect_iproto(&mut self, worker: usize, slot: u32) -> ConnId {
        self.connect_by(Protocol::Iproto, worker, slot)
    }

    fn connect_by(&mut self, protocol: Protocol, worker: usize, slot: u32) -> ConnId {
        let conn = ConnId { slot, generation: 0 };
        let addr = format!("sim:{worker}.{slot}");
        let start = ConnectionStart {
            conn,
            laddr: addr.clone(),
            addr,
            fd: 0,
            unix: false,
            protocol,
            certificate: None,
            user: None,
            transport_bytes: 0,
        };
        self.threads.worker(worker).opened(start, None);
        conn
    }

    pub(crate) fn pass_time_us(&self, us: u64) {
        self.clock.advance_us(us);
    }

    /// Sets the default gate.
    ///
    /// # Errors
    /// If the settings refuse it.
    pub(crate) fn set_gate(&self, gate: Gate) -> Result<(), String> {
        let set = self.node.settings.set_many(&[("gate", gate.name())]);
        set.map_err(|error| format!("cannot set the gate: {error}"))?;
        self.node.durability.gate_changed(gate);
        Ok(())
    }

    /// One step of the checkpoint in the making, or the beginning of one.
    pub(crate) fn step_checkpoint(&mut self) {
        // Errors of the disk are part of the world; the checkpoint is lost then, no more.
        self.checkpoint = match self.checkpoint.take() {
            None => CheckpointRun::begin(&self.keyspace, &self.log).ok(),
            Some(mut run) => match run.step() {
                Ok(true) => Some(run),
                Ok(false) => {
                    let _ = run.finish(0);
                    None
                }
                Err(_) => None,
            },
        };
    }

    /// All data, as the engine holds it.
    pub(crate) fn data(&self) -> State {
        data_of(&self.keyspace, self.clock.unix_ms())
    }
}

/// All data of the first database at this time, as the engine holds it.
pub(crate) fn data_of(keyspace: &Keyspace, now_ms: u64) -> State {
    let mut scratch = Scratch::default();
    let mut tx = keyspace.begin(Locks::All, &mut scratch, now_ms);
    let mut data = State::new();
    let db = keyspace.select(0);
    tx.for_each(db, |entry| {
        let datum = match entry.value() {
            ValueRef::Object(Object::Set(set)) => {
                let hasher = keyspace.hasher();
                let member = |member: types::set::Member<'_>| {
                    member.with_bytes(|bytes| {
                        (bytes.to_vec(), set.expire_at(hasher, bytes).unwrap_or_default())
                    })
                };
                Datum::Set(set.members().map(member).collect())
            }
            ValueRef::Object(Object::List(list)) => {
                let mut elements = Vec::with_capacity(list.len());
                list.for_each(|element| elements.push(element.to_vec()));
                Datum::List(elements.into())
            }
            ValueRef::Object(Object::Hash(hash)) => {
                let field = |field: types::hash::Field<'_>| {
                    (field.name.to_vec(), (field.value.to_vec(), field.expire_at))
                };
                Datum::Hash(hash.fields().map(field).collect())
            }
            ValueRef::Object(Object::SortedSet(set)) => {
                let mut scores = BTreeMap::new();
                set.for_each(0..set.len(), |member, score| {
                    scores.insert(member.to_vec(), score as i64);
                });
                Datum::Sorted(scores)
            }
            ValueRef::Object(Object::Stream(stream)) => Datum::Stream(stream_of(stream)),
            value => {
                Datum::Text(types::string::bytes(value).map(|b| b.into_owned()).unwrap_or_default())
            }
        };
        data.keys.insert(entry.key().to_vec(), datum);
    });
    let libraries = tx.libraries();
    let library = |it: &Arc<Library>| (it.name.to_vec(), it.body.code.clone());
    data.libraries = libraries.iter().map(library).collect();
    data
}

fn stream_of(stream: &types::stream::Stream) -> Stream {
    let id = |id: StreamId| (id.ms, id.seq);
    let mut entries = BTreeMap::new();
    let _ = stream.walk(StreamId::MIN, StreamId::MAX, |entry| {
        entries.insert(id(entry.id), entry.words());
        ControlFlow::<()>::Continue(())
    });
    let group = |group: &types::stream::Group| {
        let consumer = |pending| group.consumer_of(pending).map(|it| it.name().to_vec());
        let pending = group.pending_from(StreamId::MIN);
        let pending = pending.map(|(at, it)| (id(*at), consumer(it).unwrap_or_default())).collect();
        Group { last: id(group.last_id), pending }
    };
    let groups = stream.groups().map(|(name, it)| (name.to_vec(), group(it))).collect();
    let sent = stream.idempotence().map_or_else(Sent::default, sent_of);
    Stream { last: id(stream.last_id()), entries, groups, sent }
}

fn sent_of(idempotence: &types::stream::Idempotence) -> Sent {
    let (added, duplicates) = (idempotence.added(), idempotence.duplicates());
    let mut sent = Sent { added, duplicates, ..Sent::default() };
    for (producer, id, entry) in idempotence.iter() {
        let of_producer = sent.producers.entry(producer.to_vec()).or_default();
        of_producer.push((id.to_vec(), (entry.ms, entry.seq)));
    }
    sent
}

fn parse_served(who: &[u8]) -> Option<Ran> {
    let (worker, slot) = std::str::from_utf8(who).ok()?.split_once('.')?;
    Some(Ran::Served { worker: worker.parse().ok()?, slot: slot.parse().ok()? })
}

/// Reads a line of `MONITOR`: `+0.000000 [0 sim:1.2] "SET" "k" "v"`.
fn parse_monitored(line: &[u8]) -> Option<Ran> {
    let line = std::str::from_utf8(line).ok()?.trim_end();
    let (head, words) = line.split_once("] \"")?;
    if head.ends_with("lua") {
        let is_read = words.to_ascii_lowercase().starts_with("get\"");
        return (!is_read).then_some(Ran::InScript);
    }
    let (worker, slot) = head.rsplit_once("sim:")?.1.split_once('.')?;
    let mut call = parse_words(words)?;
    call[0].make_ascii_uppercase();
    Some(Ran::Call { worker: worker.parse().ok()?, slot: slot.parse().ok()?, call })
}

/// Reads quoted words, behind the first quotation mark.
fn parse_words(words: &str) -> Option<Call> {
    let mut call = vec![Vec::new()];
    let mut bytes = words.bytes();
    loop {
        let byte = match bytes.next()? {
            b'"' if bytes.next().is_none() => return Some(call),
            b'"' => {
                // Behind the space.
                bytes.next()?;
                call.push(Vec::new());
                continue;
            }
            b'\\' => match bytes.next()? {
                b'n' => b'\n',
                b'r' => b'\r',
                b't' => b'\t',
                b'a' => 0x07,
                b'b' => 0x08,
                b'x' => {
                    let mut digit = || char::from(bytes.next()?).to_digit(16);
                    (digit()? << 4 | digit()?) as u8
                }
                byte => byte,
            },
            byte => byte,
        };
        call.last_mut()?.push(byte);
    }
}

/// Makes recovery err as a canary has it.
fn plant(keyspace: &Keyspace, canary: Canary, now_ms: u64) {
    let keys: &[&[u8]] = match canary {
        Canary::IndexForgotten => return spaces::forget_indexes(keyspace),
        Canary::DeliveredTwice => &[b"x0", b"x1"],
        Canary::SentForgotten => &[b"y0", b"y1"],
        Canary::BitLost => &[b"b0", b"b1"],
        Canary::MoveReordered => &[b"l0", b"l1"],
        Canary::SortCutShort => &[b"o0", b"o1"],
        // They are no errors of recovery.
        _ => return,
    };
    let mut scratch = Scratch::default();
    let mut tx = keyspace.begin(Locks::All, &mut scratch, now_ms);
    let db = keyspace.select(0);
    for &bytes in keys {
        let key = Key { bytes, hash: keyspace.hash(bytes) };
        // A key of another type, or none, is left alone.
        let _ = match canary {
            Canary::BitLost => tx.edit_string(db, key, 0, lose_last_bit).map(drop),
            Canary::DeliveredTwice => tx
                .stream_change(db, key, |edit| {
                    if edit.group(b"g").is_some() {
                        let (group, last) = (&b"g"[..], StreamId::MIN);
                        edit.apply(Step::SetGroup { group, last, read: None });
                    }
                })
                .map(drop),
            Canary::SentForgotten => tx
                .stream_change(db, key, |edit| {
                    if let Some(count) = edit.idempotence().map(types::stream::Idempotence::ids) {
                        edit.apply(Step::Forget { count });
                    }
                })
                .map(drop),
            Canary::MoveReordered => tx.list_rotate(db, key, End::Front, End::Back).map(drop),
            _ => tx.list_pop(db, key, End::Back, 1, |_| (), |(), _| ()).map(drop),
        };
    }
    // Not in the log: the next recovery errs again.
    tx.commit(|_| Lsn::ZERO);
}

/// Clears the last bit that is set. Returns which byte has changed.
fn lose_last_bit(bytes: &mut [u8]) -> Range<usize> {
    let Some(at) = bytes.iter().rposition(|&byte| byte != 0) else { return 0..0 };
    bytes[at] &= bytes[at] - 1;
    at..at + 1
}

/// Has the node tell what it evicts and whom it serves, in the inbox of thread `tells`.
fn watch(node: &mut Shared, tells: usize, canary: Canary) {
    node.watch_evictions = Some(Box::new(move |node, changes| {
        for change in Changes::new(changes) {
            let Ok(Change::Delete { key, .. }) = change else {
                panic!("an eviction is no {change:?}");
            };
            node.threads[tells].leave(Message::Deliver {
                client: u64::MAX,
                slot: 0,
                bytes: [EVICTED, key].concat().into(),
                depends: Lsn::ZERO,
            });
        }
        canary != Canary::EvictionUnlogged
    }));
    node.watch_served = Some(Box::new(move |node, client| {
        let who = format!("{}.{}", client.thread, client.slot);
        node.threads[tells].leave(Message::Deliver {
            client: u64::MAX,
            slot: 0,
            bytes: [SERVED, who.as_bytes()].concat().into(),
            depends: Lsn::ZERO,
        });
    }));
}

/// What tuples and transactions are expected to take, where memory is limited.
const SPACES_BYTES: u64 = 48 << 10;

/// The plan's limits of memory, and of what counts as large.
fn apply_limits(
    node: &Node,
    keyspace: &Keyspace,
    plan: &Plan,
    canary: Canary,
) -> Result<(), String> {
    let is_ignored = canary == Canary::BoundIgnored;
    let undelivered_max = if is_ignored { Some(usize::MAX) } else { plan.undelivered_max };
    undelivered_max.into_iter().for_each(|max| node.pubsub.bound_undelivered(max));
    if let Some(limit) = plan.memory {
        let mut bytes = keyspace.fixed_bytes() + limit.bytes;
        if plan.spaces.is_some() {
            keyspace.spaces.catalog();
            bytes += keyspace.spaces.bytes() + SPACES_BYTES;
        }
        let bytes = bytes.to_string();
        node.settings
            .set_many(&[("maxmemory", bytes.as_str()), ("maxmemory-policy", limit.policy)])
            .map_err(|error| format!("cannot limit the memory: {error}"))?;
        node.apply_limits();
    }
    if plan.spaces.is_some() {
        node.settings
            .set_many(&[("iproto-admin-password", spaces::PASSWORD)])
            .map_err(|error| format!("cannot set the password: {error}"))?;
    }
    if plan.listens.is_some() {
        node.settings
            .set_many(&[("notify-keyspace-events", "KEA")])
            .map_err(|error| format!("cannot notify: {error}"))?;
        node.apply_limits();
    }
    if plan.producers.is_some() {
        // No time is long enough to forget: the oracle has no clock.
        let ids_max = IDS_MAX.to_string();
        node.settings
            .set_many(&[
                ("stream-idmp-maxsize", ids_max.as_str()),
                ("stream-idmp-duration", "86400"),
            ])
            .map_err(|error| format!("cannot limit what streams remember: {error}"))?;
    }
    if plan.small_is_large {
        node.settings
            .set_many(&UNPACKED)
            .map_err(|error| format!("cannot unpack collections: {error}"))?;
        node.apply_limits();
        node.slicing.large_elements.store(2, Relaxed);
        node.slicing.slice_elements.store(1, Relaxed);
        node.slicing.aside_elements.store(1, Relaxed);
    }
    Ok(())
}

fn plant_in_worker(worker: &mut Worker, canary: Canary) {
    worker.early_reply_canary = canary == Canary::EarlyReply;
    worker.early_hand_over_canary = canary == Canary::EarlyHandOver;
    worker.unsynced_everysec_canary = canary == Canary::UnsyncedEverysec;
    if canary == Canary::StaleStore {
        worker.plant_stale_stores();
    }
    if canary == Canary::ForgetfulUndo {
        worker.plant_forgetful_undo();
    }
    if canary == Canary::SkippedRead {
        worker.plant_skipped_reads();
    }
    if canary == Canary::UncheckedKeys {
        worker.plant_unchecked_keys();
    }
    if canary == Canary::LostRow {
        worker.plant_lost_rows();
    }
    worker.plant_in_calls(match canary {
        Canary::HalfCall => PlantedInCalls::HalfRecord,
        Canary::KeptCall => PlantedInCalls::Kept,
        Canary::KeptTry => PlantedInCalls::KeptTry,
        Canary::EarlyCall => PlantedInCalls::Early,
        _ => PlantedInCalls::Nothing,
    });
    if canary == Canary::UncheckedRights {
        worker.plant_unchecked_rights();
    }
    if canary == Canary::UnwokenReader {
        worker.plant_unwoken_readers();
    }
    if canary == Canary::EarlyLoad {
        worker.plant_early_loads();
    }
    if canary == Canary::LateSubscription {
        worker.plant_late_subscriptions();
    }
    worker.planted = match canary {
        Canary::StarvedConnections => Planted::StarvedConnections,
        Canary::NewerFirst => Planted::NewerFirst,
        Canary::PublisherForgotten => Planted::ForgottenPublisher,
        Canary::LatePublication => Planted::LatePublication,
        Canary::SkippedWakeUp => Planted::SkippedWakeUp,
        Canary::ReadsOn => Planted::ReadsOn,
        Canary::EarlyWait => Planted::EarlyWait,
        Canary::UnaskedWait => Planted::UnaskedWait,
        Canary::EarlyMessage => Planted::EarlyMessage,
        Canary::MessageOvertakes => Planted::MessageOvertakes,
        Canary::HalfScript => Planted::HalfScript,
        Canary::HalfStatement => Planted::HalfStatement,
        Canary::SplitCommit => Planted::SplitCommit,
        Canary::UnpublishedSpare => Planted::UnpublishedSpare,
        Canary::EarlyPacket => Planted::EarlyPacket,
        Canary::OvertakenStream => Planted::OvertakenStream,
        _ => Planted::Nothing,
    };
}

/// Recovers the data.
fn open(
    disk: &SimDisk,
    clock: &Arc<dyn Clock>,
    plan: &Plan,
    canary: Canary,
) -> Result<Recovered, String> {
    let shared_disk: Arc<dyn Disk> = Arc::new(disk.clone());
    let options = LogOptions {
        segment_bytes: plan.segment_bytes,
        chunk_bytes: 4096,
        backlog_bytes_max: plan.backlog_bytes_max,
        ..LogOptions::default()
    };
    let path = Path::new("/data");
    let dir = DataDir::open(shared_disk, Arc::clone(clock), path, options, 42)
        .map_err(|error| format!("cannot open: {error}"))?;
    let prepare = |keyspace: &Keyspace| {
        keyspace.spaces.lost_tuples_canary.store(canary == Canary::TuplesLost, Relaxed);
        keyspace.spaces.lost_revokes_canary.store(canary == Canary::LostRevoke, Relaxed);
    };
    recover(dir, 1, clock.unix_ms(), 1, prepare, &|_| {}, None)
        .map_err(|error| format!("cannot recover: {error}"))
}
