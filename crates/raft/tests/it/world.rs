//! Members, their disks, and the network between them, moved step by step from one seed.
//!
//! Every member has a runtime of its own, so that it can stand still, die and come back alone. A
//! message waits in the world until it is delivered, late, or lost.

use bytes::Bytes;
use ladon_log::reader::Batch;
use ladon_log::{Appender, BlockHeader, DataDir, LogBytes, LogOptions, RecoverError, RecoverySink};
use ladon_platform::Clock;
use ladon_raft::{
    Applier, Cut, Entries, EntryId, GroupLog, GroupState, Machine, Member, MemberId, Network, Node,
    Planted, Request, Response, Storage, StoredEntry, Transport, Writers, answer, decode_request,
    decode_response, encode_request, encode_response, group_config,
};
use ladon_record::Lsn;
use ladon_sim_disk::SimDisk;
use ladon_testkit::Random;
use openraft::AsyncRuntime;
use openraft_rt_sim::SimRuntime;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::oneshot;

const DIR: &str = "/data";
/// After so long, a question counts as unanswered.
const ANSWER_MS: u64 = 400;

#[derive(Default)]
pub struct ManualClock(AtomicU64);

impl Clock for ManualClock {
    fn unix_us(&self) -> u64 {
        1_800_000_000_000_000 + self.0.load(Ordering::Relaxed)
    }

    fn monotonic_ns(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed) * 1000
    }
}

/// A message on its way.
enum Envelope {
    Question(Bytes, oneshot::Sender<io::Result<Response>>),
    Answer(Bytes, oneshot::Sender<io::Result<Response>>),
}

struct Posted {
    from: MemberId,
    to: MemberId,
    envelope: Envelope,
}

type Post = Arc<Mutex<Vec<Posted>>>;

/// The way from one member to the others: through the world.
struct Postman {
    from: MemberId,
    post: Post,
}

impl Transport for Postman {
    async fn ask(&self, to: MemberId, _: &Member, request: Request) -> io::Result<Response> {
        let (sender, receiver) = oneshot::channel();
        let envelope = Envelope::Question(encode_request(&request).into(), sender);
        self.post.lock().unwrap().push(Posted { from: self.from, to, envelope });
        match SimRuntime::timeout(Duration::from_millis(ANSWER_MS), receiver).await {
            Ok(Ok(answer)) => answer,
            _ => Err(io::ErrorKind::TimedOut.into()),
        }
    }

    /// No disk is lost here.
    fn lacks(&self, _: MemberId, told: &str) {
        panic!("{told}");
    }
}

/// What all members have applied, together: the oracle.
#[derive(Default)]
pub struct Agreed {
    entries: Vec<(EntryId, Vec<u64>)>,
}

/// Compares what a member applies with what others have.
struct Seen {
    bytes: Mutex<LogBytes>,
    agreed: Arc<Mutex<Agreed>>,
    applied: AtomicU64,
    trouble: Mutex<Option<String>>,
}

impl Seen {
    fn records(&self, entry: &StoredEntry) -> io::Result<Vec<u64>> {
        use ladon_log::frame::{FrameHeader, FrameKind};
        let mut bytes = vec![0; entry.extent.bytes() as usize];
        self.bytes.lock().unwrap().read(entry.extent.from, &mut bytes)?;
        let (mut rest, mut records) = (&bytes[..], Vec::new());
        while let Some(header) = rest.first_chunk() {
            let header = FrameHeader::decode(header);
            let (frame, behind) = rest.split_at(header.frame_bytes() as usize);
            if FrameKind::from_u8(header.kind) == Some(FrameKind::Changes) {
                records.push(u64::from_le_bytes(*frame[24..].first_chunk().unwrap()));
            }
            rest = behind;
        }
        Ok(records)
    }
}

impl Applier for Seen {
    fn apply(&self, entry: &StoredEntry) -> io::Result<()> {
        let records = self.records(entry)?;
        let mut agreed = self.agreed.lock().unwrap();
        let at = entry.id.index as usize;
        let told = match agreed.entries.get(at) {
            Some(known) if *known != (entry.id, records.clone()) => {
                Some(format!("{} has {records:?}, but {known:?} was applied", entry.id))
            }
            Some(_) => None,
            None if at == agreed.entries.len() => {
                agreed.entries.push((entry.id, records));
                None
            }
            None => Some(format!("{} is applied before what is in front of it", entry.id)),
        };
        if told.is_some() {
            *self.trouble.lock().unwrap() = told;
        }
        self.applied.store(entry.id.index + 1, Ordering::SeqCst);
        Ok(())
    }
}

/// The test's own appender: it writes while the member leads.
#[derive(Default)]
struct Leads(AtomicBool);

impl Writers for Leads {
    fn stop(&self) {
        self.0.store(false, Ordering::SeqCst);
    }

    fn may_begin(&self, _: ladon_raft::EntryId) {
        self.0.store(true, Ordering::SeqCst);
    }

    fn was_cut(&self, _: Lsn) {}
}

#[derive(Default)]
pub struct Sink(Mutex<Entries>);

impl Sink {
    pub fn into_entries(self) -> Entries {
        self.0.into_inner().unwrap()
    }
}

impl RecoverySink for Sink {
    fn block(&self, _: &BlockHeader, _: &[u8]) -> Result<(), String> {
        Ok(())
    }

    fn meta(&self, _: Lsn, _: &[u8]) -> Result<(), String> {
        Ok(())
    }

    fn records(&self, _: usize, batch: &Batch) -> Result<(), (Lsn, String)> {
        self.0.lock().unwrap().collect(batch)
    }
}

struct Running {
    runtime: SimRuntime,
    node: Node<Seen, SimRuntime>,
    log: Arc<GroupLog>,
    leads: Arc<Leads>,
    seen: Arc<Seen>,
    appender: Appender,
}

impl Running {
    /// What openraft says of itself.
    fn state(&self) -> String {
        use openraft::async_runtime::WatchReceiver;
        let metrics = self.node.metrics();
        let metrics = metrics.borrow_watched();
        let (last, applied) = (metrics.last_log_index, &metrics.last_applied);
        let (role, running) = (metrics.state, &metrics.running_state);
        format!("{role:?} of {}, log to {last:?}, applied {applied:?}, {running:?}", metrics.vote)
    }

    /// Lets its tasks run, and so much time pass.
    fn live(&mut self, time: Duration) {
        self.runtime.block_on(async { SimRuntime::sleep(time).await });
    }
}

struct Place {
    disk: SimDisk,
    clock: Arc<ManualClock>,
    running: Option<Running>,
}

pub struct World {
    random: Random,
    places: BTreeMap<MemberId, Place>,
    post: Post,
    cut: BTreeSet<(MemberId, MemberId)>,
    agreed: Arc<Mutex<Agreed>>,
    next_record: u64,
    planted: Planted,
    faults: bool,
}

impl World {
    pub fn new(seed: u64, members: u64, planted: Planted) -> World {
        let mut random = Random::new(seed);
        let place = |id| {
            let disk = SimDisk::new(random.next_u64());
            (id, Place { disk, clock: Arc::default(), running: None })
        };
        let places: BTreeMap<_, _> = (1..=members).map(place).collect();
        let mut world = World {
            random,
            places,
            post: Post::default(),
            cut: BTreeSet::new(),
            agreed: Arc::default(),
            next_record: 1,
            planted,
            faults: true,
        };
        for id in 1..=members {
            world.start(id);
        }
        let all = (1..=members).map(|id| (id, Member::default())).collect::<BTreeMap<_, _>>();
        let first = world.running(1).expect("it was started");
        let node = first.node.clone();
        first.runtime.block_on(node.initialize(all)).expect("a new group");
        // Who creates a group sees to it that it is on the first member's disk.
        world.sync(1);
        world
    }

    fn running(&mut self, id: MemberId) -> Option<&mut Running> {
        self.places.get_mut(&id)?.running.as_mut()
    }

    /// Recovers and starts a member; it may lose its power meanwhile.
    fn start(&mut self, id: MemberId) {
        let runtime = SimRuntime::with_seed(self.random.next_u64());
        let Some(place) = self.places.get_mut(&id) else { return };
        let made = recover(place, id, runtime, &self.post, &self.agreed, self.planted);
        match made {
            Ok(running) => place.running = Some(running),
            Err(_) if place.disk.power_is_off() => place.disk.power_cut(),
            Err(error) => panic!("member {id}: {error}"),
        }
    }

    fn end(&mut self, id: MemberId, power: bool) {
        let Some(place) = self.places.get_mut(&id) else { return };
        let Some(running) = place.running.take() else { return };
        drop(running);
        self.post.lock().unwrap().retain(|posted| posted.from != id && posted.to != id);
        if power {
            place.disk.power_cut();
        } else {
            place.disk.kill();
        }
    }

    /// One act of the world. An error says which members do not agree.
    pub fn step(&mut self) -> Result<(), String> {
        let id = 1 + self.random.below(self.places.len() as u64);
        match self.random.below(100) {
            0..=39 => self.deliver(),
            40..=64 => self.tick(id),
            65..=79 => self.sync(id),
            80..=87 => self.write(id),
            88..=92 => self.propose(id),
            _ if !self.faults => self.deliver(),
            93 => self.change_voters(id),
            94..=95 => self.cut_or_heal(),
            96 => self.lose(),
            97 => {
                let power = self.random.chance(1, 2);
                self.end(id, power);
            }
            98 => {
                let operations = 1 + self.random.below(40);
                self.places[&id].disk.cut_power_after(operations);
            }
            _ if self.places[&id].running.is_none() => self.start(id),
            _ => {}
        }
        self.look()
    }

    /// Who has lost its power is gone; who disagrees ends the story.
    fn look(&mut self) -> Result<(), String> {
        let off = |(id, place): (&MemberId, &Place)| {
            (place.running.is_some() && place.disk.power_is_off()).then_some(*id)
        };
        let gone: Vec<_> = self.places.iter().filter_map(off).collect();
        gone.into_iter().for_each(|id| self.end(id, true));
        for (id, place) in &self.places {
            let Some(running) = &place.running else { continue };
            if let Some(trouble) = running.seen.trouble.lock().unwrap().take() {
                return Err(format!("member {id}: {trouble}"));
            }
        }
        Ok(())
    }

    fn tick(&mut self, id: MemberId) {
        let ms = 1 + self.random.below(15);
        let Some(place) = self.places.get_mut(&id) else { return };
        place.clock.0.fetch_add(ms * 1000, Ordering::Relaxed);
        if let Some(running) = &mut place.running {
            running.live(Duration::from_millis(ms));
        }
    }

    fn sync(&mut self, id: MemberId) {
        if let Some(running) = self.running(id) {
            running.log.log().step();
            running.log.serve();
            running.live(Duration::ZERO);
        }
    }

    fn write(&mut self, id: MemberId) {
        let (number, bytes) = (self.next_record, self.random.below(300) as usize);
        let Some(running) = self.running(id) else { return };
        if !running.leads.0.load(Ordering::SeqCst) {
            return;
        }
        let mut record = number.to_le_bytes().to_vec();
        record.resize(8 + bytes, 0);
        running.appender.append(&record, 7);
        running.appender.publish();
        self.next_record += 1;
    }

    fn propose(&mut self, id: MemberId) {
        let Some(running) = self.running(id) else { return };
        if running.node.is_leader() {
            let node = running.node.clone();
            let proposed = async move { node.client_write_ff(Cut, None).await };
            // It may have stopped.
            let _ = running.runtime.block_on(proposed);
        }
    }

    /// Others vote from now on, if this member leads. Nobody leaves the group: who does not vote
    /// goes on learning.
    fn change_voters(&mut self, id: MemberId) {
        let all: Vec<_> = self.places.keys().copied().collect();
        let mut voters: BTreeSet<_> =
            all.iter().copied().filter(|_| self.random.chance(2, 3)).collect();
        voters.insert(all[self.random.below(all.len() as u64) as usize]);
        let Some(running) = self.running(id) else { return };
        if running.node.is_leader() {
            let node = running.node.clone();
            running.runtime.block_on(async move {
                SimRuntime::spawn(async move { node.change_membership(voters, true).await });
                SimRuntime::sleep(Duration::ZERO).await;
            });
        }
    }

    fn cut_or_heal(&mut self) {
        let members = self.places.len() as u64;
        let (from, to) = (1 + self.random.below(members), 1 + self.random.below(members));
        match self.random.below(4) {
            0 => self.cut.clear(),
            1 => drop(self.cut.insert((from, to))),
            _ => {
                // Nobody hears it, and it hears nobody.
                self.cut.extend((1..=members).flat_map(|other| [(from, other), (other, from)]));
            }
        }
    }

    fn lose(&mut self) {
        let mut post = self.post.lock().unwrap();
        if !post.is_empty() {
            let at = self.random.below(post.len() as u64) as usize;
            post.remove(at);
        }
    }

    /// Mostly the oldest message.
    fn deliver(&mut self) {
        let taken = {
            let mut post = self.post.lock().unwrap();
            let count = post.len() as u64;
            if count == 0 {
                return;
            }
            let at = if self.random.chance(1, 5) { self.random.below(count) } else { 0 };
            post.remove(at as usize)
        };
        let Posted { from, to, envelope } = taken;
        if self.cut.contains(&(from, to)) {
            return;
        }
        let post = self.post.clone();
        let Some(running) = self.running(to) else { return };
        match envelope {
            Envelope::Question(request, reply) => {
                let request = decode_request(&request).expect("a member has written it");
                let node = running.node.clone();
                running.runtime.block_on(async move {
                    SimRuntime::spawn(async move {
                        // A member that has stopped says nothing.
                        if let Ok(response) = answer(&node, request).await {
                            let response = encode_response(&response);
                            let envelope = Envelope::Answer(response.into(), reply);
                            post.lock().unwrap().push(Posted { from: to, to: from, envelope });
                        }
                    });
                    SimRuntime::sleep(Duration::ZERO).await;
                });
            }
            Envelope::Answer(response, reply) => {
                let response = decode_response(&response).expect("a member has written it");
                let _ = reply.send(Ok(response));
                running.live(Duration::ZERO);
            }
        }
    }

    /// Everything is well from now on: the members must come to agree, and go on. An error says
    /// that they do not.
    pub fn settle(&mut self) -> Result<(), String> {
        self.faults = false;
        self.cut.clear();
        for place in self.places.values() {
            place.disk.heal();
        }
        let goal = self.agreed.lock().unwrap().entries.len() as u64 + 2;
        for round in 0.. {
            for id in 1..=self.places.len() as u64 {
                if self.places[&id].running.is_none() {
                    self.start(id);
                }
                self.propose(id);
                self.tick(id);
                self.sync(id);
            }
            while !self.post.lock().unwrap().is_empty() {
                self.deliver();
            }
            self.look()?;
            let applied = |place: &Place| match &place.running {
                Some(running) => running.seen.applied.load(Ordering::SeqCst),
                None => 0,
            };
            if self.places.values().map(applied).min() >= Some(goal) {
                return Ok(());
            }
            if round == 3_000 {
                let told = |(id, place): (&MemberId, &Place)| {
                    let state = place.running.as_ref().map(Running::state);
                    format!("\nmember {id} applied {}: {state:?}", applied(place))
                };
                let all: String = self.places.iter().map(told).collect();
                return Err(format!("no progress to {goal}:{all}"));
            }
        }
        unreachable!("the rounds do not end")
    }

    /// How many entries were applied.
    pub fn agreed(&self) -> usize {
        self.agreed.lock().unwrap().entries.len()
    }

    /// How many terms had a leader that committed anything.
    pub fn reigns(&self) -> usize {
        let agreed = self.agreed.lock().unwrap();
        let terms = agreed.entries.iter().map(|(id, _)| id.leader_id.term);
        terms.collect::<BTreeSet<_>>().len()
    }
}

fn recover(
    place: &Place,
    id: MemberId,
    mut runtime: SimRuntime,
    post: &Post,
    agreed: &Arc<Mutex<Agreed>>,
    planted: Planted,
) -> io::Result<Running> {
    let options = LogOptions { segment_bytes: 4000, chunk_bytes: 512, ..LogOptions::default() };
    let (disk, clock) = (Arc::new(place.disk.clone()), place.clock.clone());
    let dir = DataDir::open(disk.clone(), clock.clone(), Path::new(DIR), options, id);
    let dir = dir.map_err(io::Error::other)?;
    let dir_id = dir.meta().dir_id;
    let sink = Sink::default();
    let recovered = dir.recover(&sink, 1, &|_| {});
    let (log, report) = recovered.map_err(|error: RecoverError| io::Error::other(error))?;
    let newest = report.checkpoint.map_or(Lsn::ZERO, |checkpoint| checkpoint.newest);
    let index = sink.into_entries().into_index(newest, Lsn::ZERO).map_err(io::Error::other)?;
    let state = GroupState::open(disk, Path::new(DIR), dir_id)?;
    let leads = Arc::new(Leads::default());
    let made = GroupLog::new(log.clone(), clock, leads.clone(), (index, state), planted)?;
    let group_log = Arc::new(made);
    let committed = ladon_raft::ExtentLog::committed(&*group_log)?;
    let seen = Arc::new(Seen {
        bytes: Mutex::new(LogBytes::new(log.clone())),
        agreed: agreed.clone(),
        applied: AtomicU64::new(0),
        trouble: Mutex::default(),
    });
    // Recovery brings back the data up to what was known to be committed.
    let known = committed.map_or(0, |id| id.index + 1);
    for entry in ladon_raft::ExtentLog::entries(&*group_log, 0, known)? {
        seen.apply(&entry)?;
    }
    let config =
        Arc::new(group_config(Duration::from_millis(300)).validate().map_err(io::Error::other)?);
    let postman = Arc::new(Postman { from: id, post: post.clone() });
    let network = Network::new(postman, group_log.clone());
    let machine = Machine::new(group_log.clone(), seen.clone(), committed)?;
    let storage = Storage::new(group_log.clone());
    let node = runtime.block_on(Node::new(id, config, network, storage, machine));
    let node = node.map_err(io::Error::other)?;
    let appender = log.appender();
    Ok(Running { runtime, node, log: group_log, leads, seen, appender })
}
