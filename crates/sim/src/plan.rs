//! What a seed decides once: size, settings and how severe the faults are.

use crate::spaces::{Habits, USERS};
use ladon_engine::{CommitLimits, PreparationLimits};
use ladon_record::Gate;
use ladon_server::Pace;
use ladon_testkit::Random;

/// A known bug, put in on purpose to see the oracle find it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Canary {
    /// None: the server as it is.
    #[default]
    None,
    /// Replies leave without waiting at the gate.
    EarlyReply,
    /// Recovery loses the last bit that is set of a bitmap.
    BitLost,
    /// Recovery puts the first element of a list that BLMOVE fills after the last.
    MoveReordered,
    /// Recovery has what SORT stored without its last element.
    SortCutShort,
    /// Evictions are not logged.
    EvictionUnlogged,
    /// A reply sent directly to a waiting client leaves before the gate has passed it.
    EarlyHandOver,
    /// Stores that are computed aside do not look whether their sources have changed.
    StaleStore,
    /// A connection that always has requests keeps its worker to itself.
    StarvedConnections,
    /// A record is published only at the end of its turn, so that a slow command after it holds
    /// back every gate.
    LatePublication,
    /// Published records are neither written nor reported to the writer.
    SkippedWakeUp,
    /// A connection is read however many of its requests wait.
    ReadsOn,
    /// `WAITAOF` reports unsynced changes as durable.
    EarlyWait,
    /// `WAITAOF` waits and asks for no sync.
    UnaskedWait,
    /// Nothing syncs what left at the gate `everysec` of a single connection.
    UnsyncedEverysec,
    /// Published messages leave without waiting at the gate.
    EarlyMessage,
    /// A published message overtakes those that are not delivered yet.
    MessageOvertakes,
    /// A subscription misses the first message after its acknowledgement.
    LateSubscription,
    /// What a script did is not all taken back before it runs again.
    ForgetfulUndo,
    /// The first change of a script is not in its record.
    HalfScript,
    /// Recovery forgets how far a stream's group was given entries.
    DeliveredTwice,
    /// Who waits for a stream's entries without a group is not woken when one comes.
    UnwokenReader,
    /// Who waits until messages are delivered goes on behind newer requests.
    NewerFirst,
    /// Publishers never wait, however much is undelivered.
    BoundIgnored,
    /// Recovery forgets what a stream's producers have sent.
    SentForgotten,
    /// Somebody who waits until messages are delivered is forgotten.
    PublisherForgotten,
    /// A load of functions is answered before its record is where the gate wants it.
    EarlyLoad,
    /// The commit of a transaction on spaces does not look at the first thing that was read.
    SkippedRead,
    /// Records of requests that run while a script does are not published.
    UnpublishedSpare,
    /// What a transaction on spaces has changed is logged as two records.
    SplitCommit,
    /// Replies to requests of IPROTO leave without waiting at the gate.
    EarlyPacket,
    /// Requests of IPROTO do not wait for those of their stream that take long.
    OvertakenStream,
    /// Recovery leaves a space as it was while it was loaded: with its secondary indexes left
    /// alone.
    IndexForgotten,
    /// A primary index that is prepared misses what is written meanwhile.
    MissedWrites,
    /// What is written while a stricter format is prepared is not checked.
    UncheckedWrites,
    /// Recovery loses the tuples of a space whose primary index has changed since the checkpoint.
    TuplesLost,
    /// A commit on spaces does not check the foreign keys of what it repeats.
    UncheckedKeys,
    /// A write in a transaction on spaces needs no right.
    UncheckedRights,
    /// The record of a statement of SQL lacks one of its rows.
    HalfStatement,
    /// A statement of SQL loses the row at which a slice of it ends.
    LostRow,
    /// Recovery forgets what was revoked since the checkpoint.
    LostRevoke,
    /// The record of a function's call has what it changed in its first space, and nothing else.
    HalfCall,
    /// What a call has done that asks for a program is not taken back.
    KeptCall,
    /// What a call has done that begins again with more locks is not taken back.
    KeptTry,
    /// Replies to calls leave without waiting at the gate.
    EarlyCall,
}

impl Canary {
    /// Whether it is about calls of functions.
    fn is_of_calls(self) -> bool {
        matches!(self, Canary::HalfCall | Canary::KeptCall | Canary::KeptTry | Canary::EarlyCall)
    }
}

/// Which definitions of spaces clients change besides the usual.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Redefine {
    All,
    Formats,
    PrimaryKeys,
}

#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) workers: usize,
    pub(crate) clients: usize,
    /// Steps of the whole run.
    pub(crate) steps: u64,
    /// The default gate at a node's start.
    pub(crate) gate: Gate,
    /// Gates that clients ask for, for themselves and occasionally as another default; empty if all
    /// keep the first.
    pub(crate) own_gates: &'static [Gate],
    pub(crate) default_gates: &'static [Gate],
    /// The machine may fail; otherwise only the process.
    pub(crate) power_cuts: bool,
    pub(crate) write_errors: bool,
    pub(crate) sync_errors: bool,
    pub(crate) segment_bytes: u64,
    /// No collection is packed, and replies about all of one are made an element a turn.
    pub(crate) small_is_large: bool,
    /// Clients mostly put into a list and wait for what comes.
    pub(crate) queues: bool,
    /// Keys are evicted, or commands refused.
    pub(crate) memory: Option<MemoryLimit>,
    /// Limits of a turn.
    pub(crate) pace: Pace,
    /// Clients wait for the log and for replicas; the source of the numbers for that.
    pub(crate) waits: Option<u64>,
    /// Clients publish, and others have subscribed; the source of the numbers for that.
    pub(crate) listens: Option<u64>,
    /// Weight of undelivered messages above which publishers wait, if it is not the server's own.
    pub(crate) undelivered_max: Option<usize>,
    /// Clients run scripts; the source of the numbers for that.
    pub(crate) scripts: Option<u64>,
    /// Clients load and call functions; the source of the numbers for that.
    pub(crate) functions: Option<u64>,
    /// Clients work on streams; the source of the numbers for that.
    pub(crate) streams: Option<u64>,
    /// Idempotent producers add to streams; the source of the numbers for that.
    pub(crate) producers: Option<u64>,
    /// Clients work on spaces; the source of the numbers for that.
    pub(crate) spaces: Option<u64>,
    /// How many of them.
    pub(crate) space_clients: usize,
    pub(crate) space_habits: Habits,
    /// The lock that is refused to each call at first.
    pub(crate) refused_lock: Option<u32>,
    /// Limits of commits on them, and of preparations of definitions.
    pub(crate) commit_limits: CommitLimits,
    pub(crate) preparation_limits: PreparationLimits,
    /// A connection of each worker sends without end.
    pub(crate) floods: bool,
    /// Unwritten records above which writes wait.
    pub(crate) backlog_bytes_max: u64,
    /// Every command on data is first run and taken back.
    pub(crate) rehearses: bool,
    /// `busy-reply-threshold`, milliseconds.
    pub(crate) busy_ms: &'static str,
}

/// How little memory a node has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemoryLimit {
    pub(crate) policy: &'static str,
    /// Beyond what an empty keyspace takes; a key alone in its partition takes some 8 KiB.
    pub(crate) bytes: u64,
}

const POLICIES: [&str; 8] = [
    "allkeys-lru",
    "allkeys-lfu",
    "allkeys-lrm",
    "allkeys-random",
    "volatile-lru",
    "volatile-ttl",
    "volatile-random",
    "noeviction",
];

impl MemoryLimit {
    /// Whether every key may be evicted, and whether that frees enough, besides the buffers of this
    /// many connections, for no command to be refused.
    pub(crate) fn is_enough(self, connections: u64) -> bool {
        /// Four requests with a long value each, and their replies.
        const BUFFER_BYTES_MAX: u64 = 32 << 10;
        self.policy.starts_with("allkeys") && self.bytes >= connections * BUFFER_BYTES_MAX
    }
}

/// All gates, the laxest first.
pub(crate) static GATES: [Gate; 4] = [Gate::None, Gate::Write, Gate::EverySec, Gate::Fsync];

impl Plan {
    pub(crate) fn new(random: &mut Random, canary: Canary) -> Plan {
        let mut plan = Plan::with_one_gate(random);
        // A separate generator, so that the other seeds' runs stay what they were.
        let mut more = Random::new(random.clone().next_u64() ^ 0x6a7e);
        match canary {
            Canary::None if more.chance(1, 2) => {
                (plan.own_gates, plan.default_gates) = (&GATES, &GATES);
                plan.gate = GATES[more.below(4) as usize];
                plan.power_cuts = more.chance(3, 4);
                plan.sync_errors = more.chance(1, 6);
            }
            // Where no other connection causes a sync.
            Canary::UnsyncedEverysec => {
                (plan.own_gates, plan.default_gates) = (&GATES[..3], &GATES[..2]);
                plan.gate = GATES[more.below(2) as usize];
                (plan.power_cuts, plan.sync_errors) = (true, false);
                // The end of a segment asks for a sync as well.
                plan.segment_bytes = 1 << 20;
            }
            // Where nothing but the wait promises anything.
            Canary::EarlyWait | Canary::UnaskedWait => {
                (plan.own_gates, plan.default_gates) = (&GATES[..2], &GATES[..2]);
                plan.gate = GATES[more.below(2) as usize];
                (plan.power_cuts, plan.sync_errors) = (true, false);
            }
            // Where nothing else ends a wait or removes an entry.
            Canary::UnwokenReader => {
                (plan.clients, plan.memory, plan.queues) = (5, None, false);
                (plan.power_cuts, plan.write_errors, plan.sync_errors) = (false, false, false);
            }
            // Rare otherwise.
            Canary::EarlyHandOver => plan.queues = true,
            Canary::SkippedWakeUp => {
                (plan.workers, plan.clients, plan.gate) = (2, 5, Gate::Write);
                plan.pace = Pace::default();
                plan.power_cuts = false;
            }
            Canary::StarvedConnections | Canary::ReadsOn => plan.floods = true,
            _ => {}
        }
        let is_early = matches!(canary, Canary::EarlyWait | Canary::UnaskedWait);
        if is_early || canary == Canary::None && more.chance(1, 3) {
            plan.waits = Some(more.next_u64());
        }
        let mut again = Random::new(random.clone().next_u64() ^ 0x4e4e);
        plan.rehearses = canary == Canary::None && again.chance(1, 4);
        let is_message = matches!(
            canary,
            Canary::EarlyMessage | Canary::MessageOvertakes | Canary::LateSubscription
        );
        if is_message || canary == Canary::None && again.chance(1, 3) {
            plan.listens = Some(again.next_u64());
        }
        let is_script = matches!(canary, Canary::ForgetfulUndo | Canary::HalfScript);
        if is_script || canary == Canary::None && again.chance(1, 3) {
            plan.scripts = Some(again.next_u64());
        }
        let is_stream = matches!(canary, Canary::DeliveredTwice | Canary::UnwokenReader);
        if is_stream || canary == Canary::None && again.chance(1, 3) {
            plan.streams = Some(again.next_u64());
        }
        plan.rehearses |= canary == Canary::ForgetfulUndo;
        let mut third = Random::new(random.clone().next_u64() ^ 0xf0c5);
        if canary == Canary::EarlyLoad || canary == Canary::None && third.chance(1, 4) {
            plan.functions = Some(third.next_u64());
        }
        plan.add_producers(random, canary);
        plan.add_spaces(random, canary);
        plan.add_definitions(random, canary);
        plan.bind_spaces(random, canary);
        plan.add_users(random, canary);
        plan.add_sql(random, canary);
        plan.add_calls(random, canary);
        plan
    }

    /// A foreign key between spaces whose definitions stay. With a generator of its own.
    fn bind_spaces(&mut self, random: &Random, canary: Canary) {
        let mut more = Random::new(random.clone().next_u64() ^ 0xf0e1);
        let is_fit = self.spaces.is_some() && self.space_habits.redefine.is_none();
        let may_be = canary == Canary::None && is_fit && more.chance(1, 3);
        self.space_habits.binds = may_be || canary == Canary::UncheckedKeys;
        if canary == Canary::UncheckedKeys {
            // Where two meet in a certain order, and nothing is refused.
            (self.space_clients, self.steps) = (6, 3_000);
            (self.pace.batch_requests, self.pace.turn_ns) = (2, 0);
        }
    }

    /// Users who get and lose rights to spaces. With a generator of its own.
    fn add_users(&mut self, random: &Random, canary: Canary) {
        let mut more = Random::new(random.clone().next_u64() ^ 0x05e4);
        let is_fit = self.spaces.is_some() && !self.space_habits.crowd;
        let may_be = canary == Canary::None && is_fit && more.chance(1, 3);
        self.space_habits.users =
            may_be || matches!(canary, Canary::UncheckedRights | Canary::LostRevoke);
        if self.space_habits.users {
            // Besides one who grants, and may do everything as those before.
            self.space_clients += USERS.len();
        }
    }

    /// Statements of SQL among the requests on spaces. With a generator of its own.
    fn add_sql(&mut self, random: &Random, canary: Canary) {
        let mut more = Random::new(random.clone().next_u64() ^ 0x5c1);
        let Habits { binds, users, .. } = self.space_habits;
        let may_be = canary == Canary::None && self.spaces.is_some() && more.chance(1, 2);
        self.space_habits.sql =
            may_be && !binds && !users || matches!(canary, Canary::HalfStatement | Canary::LostRow);
    }

    /// Calls of functions on spaces. With a generator of its own.
    fn add_calls(&mut self, random: &Random, canary: Canary) {
        let mut more = Random::new(random.clone().next_u64() ^ 0xca11);
        let may_be = canary == Canary::None && self.spaces.is_some() && more.chance(1, 2);
        self.space_habits.calls = may_be || canary.is_of_calls();
        self.refused_lock = match canary {
            // Behind the first space that a call writes, and the definitions of the second one.
            Canary::KeptTry => Some(2 + more.below(6) as u32),
            _ => more.chance(1, 2).then(|| 1 + more.below(8) as u32),
        };
    }

    /// Idempotent producers, and publishers that wait. A generator of its own again.
    fn add_producers(&mut self, random: &Random, canary: Canary) {
        let mut more = Random::new(random.clone().next_u64() ^ 0x1d3f);
        if canary == Canary::SentForgotten || canary == Canary::None && more.chance(1, 4) {
            self.producers = Some(more.next_u64());
        }
        if canary == Canary::PublisherForgotten {
            self.listens = Some(more.next_u64());
        }
        let is_forgotten = canary == Canary::PublisherForgotten;
        if self.listens.is_some() && (is_forgotten || canary == Canary::None && more.chance(1, 2)) {
            self.undelivered_max = Some([0, 2, 8][more.below(3) as usize]);
        }
    }

    /// Clients of spaces. A generator of its own, once more.
    fn add_spaces(&mut self, random: &Random, canary: Canary) {
        let mut more = Random::new(random.clone().next_u64() ^ 0x5bace);
        let is_of_spaces = matches!(
            canary,
            Canary::SkippedRead
                | Canary::SplitCommit
                | Canary::EarlyPacket
                | Canary::OvertakenStream
                | Canary::IndexForgotten
                | Canary::MissedWrites
                | Canary::UncheckedWrites
                | Canary::TuplesLost
                | Canary::UncheckedKeys
                | Canary::UncheckedRights
                | Canary::LostRevoke
                | Canary::HalfStatement
                | Canary::LostRow
        ) || canary.is_of_calls();
        if is_of_spaces || canary == Canary::None && more.chance(1, 3) {
            self.spaces = Some(more.next_u64());
            self.space_clients = 1 + more.below(3) as usize;
            let work = more.pick(&[1, 1, 3, 32]);
            self.commit_limits =
                CommitLimits { work, rounds_without_waiting: more.pick(&[0, 0, 2]) };
        }
        if is_of_spaces {
            // Where they meet.
            (self.space_clients, self.memory) = (3, None);
        }
        if canary == Canary::SplitCommit {
            (self.gate, self.power_cuts) = (Gate::Fsync, true);
        }
    }

    /// Other formats and primary indexes of spaces, prepared in small slices. A generator of its own,
    /// too.
    fn add_definitions(&mut self, random: &Random, canary: Canary) {
        let mut more = Random::new(random.clone().next_u64() ^ 0xa17e);
        let redefine = match canary {
            Canary::None if self.spaces.is_some() && more.chance(1, 3) => Redefine::All,
            Canary::MissedWrites | Canary::TuplesLost => Redefine::PrimaryKeys,
            Canary::UncheckedWrites => Redefine::Formats,
            _ => return,
        };
        let crowd = canary == Canary::None && more.chance(1, 8);
        self.space_habits = Habits { redefine: Some(redefine), crowd, ..Habits::default() };
        if crowd {
            // The many tuples would take it, and their selections too many turns.
            (self.memory, self.small_is_large) = (None, false);
            self.pace.turn_output_bytes = 1 << 20;
            // With the usual limits, the space takes a few slices.
            return;
        }
        self.preparation_limits = PreparationLimits {
            tuples_at_once: more.below(3),
            slice_work: more.pick(&[1, 1, 4, 30]),
            ready_work: more.pick(&[1, 2, 8]),
            granted_at_first: more.pick(&[2, 10, 1 << 16]),
            misses_changes: matches!(canary, Canary::MissedWrites | Canary::UncheckedWrites),
        };
        if canary == Canary::UncheckedWrites {
            (self.space_clients, self.steps) = (8, 2_000);
            // So few tuples are checked soon, and who writes meanwhile is not to wait.
            let limits = &mut self.preparation_limits;
            (limits.tuples_at_once, limits.slice_work) = (0, 1);
            limits.granted_at_first = 1 << 16;
        }
    }

    /// For a crowd of publishers (`crowd`): nothing fails, and nothing but messages makes anybody
    /// wait.
    pub(crate) fn of_crowd(random: &mut Random) -> Plan {
        let plan = Plan::with_one_gate(random);
        Plan {
            workers: 1 + random.below(2) as usize,
            clients: 20 + random.below(10) as usize,
            gate: Gate::None,
            memory: None,
            pace: Pace {
                batch_requests: [1, 2, 5, 64][random.below(4) as usize],
                // A turn runs many requests, and delivers few messages.
                turn_ns: 200_000,
                turn_output_bytes: 1 << 20,
                unread_bytes_max: 1 << 20,
                ..plan.pace
            },
            backlog_bytes_max: 64 << 20,
            ..plan
        }
    }

    /// For clients of spaces beside a long script (`beside_script`): nothing fails, and nothing but
    /// the script makes anybody wait.
    pub(crate) fn beside_script(random: &mut Random) -> Plan {
        let plan = Plan::with_one_gate(random);
        Plan {
            workers: 1,
            clients: 1,
            memory: None,
            power_cuts: false,
            write_errors: false,
            sync_errors: false,
            spaces: Some(random.next_u64()),
            space_clients: 2,
            backlog_bytes_max: 64 << 20,
            busy_ms: "1",
            pace: Pace { unread_bytes_max: 1 << 20, ..plan.pace },
            ..plan
        }
    }

    fn with_one_gate(random: &mut Random) -> Plan {
        let gate = match random.below(4) {
            0 => Gate::Write,
            1 => Gate::EverySec,
            _ => Gate::Fsync,
        };
        Plan {
            rehearses: false,
            busy_ms: "5000",
            workers: 1 + random.below(3) as usize,
            clients: 1 + random.below(5) as usize,
            steps: 200 + random.below(800),
            gate,
            own_gates: &[],
            default_gates: &[],
            power_cuts: gate == Gate::Fsync && random.chance(3, 4),
            write_errors: random.chance(1, 4),
            sync_errors: gate == Gate::Fsync && random.chance(1, 6),
            segment_bytes: 1024 << random.below(8),
            small_is_large: random.chance(1, 2),
            queues: random.chance(1, 5),
            memory: random.chance(1, 3).then(|| MemoryLimit {
                policy: POLICIES[random.below(POLICIES.len() as u64) as usize],
                bytes: (16 + random.below(64)) << 10,
            }),
            pace: Pace {
                batch_requests: [1, 2, 64][random.below(3) as usize],
                turn_ns: [0, 5_000, 200_000][random.below(3) as usize],
                turn_output_bytes: [1, 1 << 20][random.below(2) as usize],
                unread_bytes_max: [16, 256, 128 << 10][random.below(3) as usize],
                housekeeping_ns: [0, 100_000][random.below(2) as usize],
                ..Pace::default()
            },
            waits: None,
            listens: None,
            undelivered_max: None,
            scripts: None,
            functions: None,
            streams: None,
            producers: None,
            spaces: None,
            space_clients: 0,
            space_habits: Habits::default(),
            refused_lock: None,
            commit_limits: CommitLimits { work: 32, rounds_without_waiting: 2 },
            preparation_limits: PreparationLimits::default(),
            floods: random.chance(1, 5),
            backlog_bytes_max: [100, 64 << 20][random.below(2) as usize],
        }
    }
}
