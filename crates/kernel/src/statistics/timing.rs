//! How long commands take, without reading the clock for each.
//!
//! A clock read costs a tenth of a pipelined GET. So a worker brackets its batch with
//! `Local::begin_batch` and `Local::end_batch`, and commands that are quick by nature (Redis calls
//! most of them "fast") share the time since the last clock read equally. All other commands are
//! measured exactly, as are quick ones with many or large arguments or a large reply. Every command
//! is measured exactly outside a batch, or while a setting asks for less than a millisecond.
//!
//! Of commands that are measured one behind the other, each begins when the one before it ends,
//! which saves every other reading. The quick commands of a script share the script's time. A script
//! whose code shows that it takes hardly any time itself, and that runs a few quick commands, is quick
//! as well. That it is not may show while it runs; then it is measured from that moment on.

use crate::client::session::Session;
use crate::command::command_id::CommandId;
use crate::command::flags::Flags;
use crate::command::secrets;
use crate::command::spec::CommandSpec;
use crate::local::Local;
use crate::long::long_reply::LongReply;
use crate::node::Node;
use crate::statistics::command_logs::CommandLog;
use smallvec::SmallVec;

/// Not measured on its own.
const SHARED: u64 = 0;

/// Up to this many arguments, a quick command's time does not depend on them.
const QUICK_ARGUMENTS_MAX: usize = 8;
const QUICK_BYTES_MAX: usize = 16 << 10;

impl Local {
    /// A batch begins: quick commands share its time until [`Local::end_batch`].
    pub fn begin_batch(&mut self, node: &Node) {
        self.timing.exact = wants_exact(node);
        let now_ns = node.clock.monotonic_ns();
        self.timing.since_ns = Some(now_ns);
        self.timing.began = (now_ns, self.stats.commands_processed.get());
    }

    /// The batch's last clock read, monotonic nanoseconds. The clock is read after every command
    /// that is not quick.
    pub fn clock_seen_ns(&self) -> u64 {
        self.timing.since_ns.unwrap_or_default()
    }

    /// After a request of another protocol, which has no statistics. Reads the clock if the request
    /// was not quick.
    #[inline]
    pub fn ran_other(&mut self, node: &Node, is_quick: bool) {
        self.timing.ran_other = true;
        if !is_quick && self.timing.since_ns.is_some() {
            // The quick commands before it took almost none of this time.
            self.settle(node, 0);
            self.timing.since_ns = Some(node.clock.monotonic_ns());
        }
    }

    /// Ends the batch. Returns its last clock read.
    pub fn end_batch(&mut self, node: &Node) -> u64 {
        let Some(mut end_ns) = self.timing.since_ns.take() else { return 0 };
        if std::mem::take(&mut self.timing.ran_other) || !self.timing.pending.is_empty() {
            let since_ns = end_ns;
            end_ns = node.clock.monotonic_ns();
            self.settle(node, end_ns - since_ns);
        }
        let (began_ns, commands) = self.timing.began;
        self.stats.commands_nanoseconds.add(end_ns - began_ns);
        let commands = self.stats.commands_processed.get().saturating_sub(commands);
        self.stats.eventloop_commands_max.raise(commands);
        end_ns
    }

    /// Called before a command runs; pass the result to [`Local::stop`].
    #[inline]
    pub fn start(&mut self, node: &Node, spec: &CommandSpec, args: &[&[u8]]) -> Started {
        let shares = self.timing.since_ns.is_some() && !self.timing.exact;
        if shares && (is_quick(spec, args) || runs_script(spec) && are_small(args)) {
            return Started(SHARED);
        }
        if let Some(since_ns) = self.timing.since_ns {
            if self.timing.pending.is_empty() && !self.timing.exact {
                return Started(since_ns);
            }
            let now_ns = node.clock.monotonic_ns();
            self.settle(node, now_ns - since_ns);
            self.timing.since_ns = Some(now_ns);
            return Started(now_ns);
        }
        Started(node.clock.monotonic_ns())
    }

    /// The script that runs is not quick: it counts as begun now.
    pub fn measure_script(&mut self, node: &Node) {
        self.settle_now(node);
        if let Some(since_ns) = self.timing.since_ns {
            self.measure_script_from(since_ns);
        }
    }

    /// The script that runs has begun a command, its `calls`th; whether it is still quick: the turn's
    /// time shows only when the clock is read, so the scripts of a batch run few commands until then.
    #[inline]
    pub fn is_quick_script(&mut self, command: Started, calls: u32) -> bool {
        const CALLS_MAX: u32 = 4;
        const CALLS_OF_ALL_MAX: u32 = 64;
        self.timing.by_scripts += 1;
        command.0 == SHARED && calls <= CALLS_MAX && self.timing.by_scripts <= CALLS_OF_ALL_MAX
    }

    /// The script that runs is not quick: it began at this moment, monotonic nanoseconds.
    pub fn measure_script_from(&mut self, began_ns: u64) {
        self.timing.script_began_ns.get_or_insert(began_ns);
    }

    /// When the command that runs began, or a moment before. Monotonic nanoseconds.
    pub fn began_ns(&self, node: &Node) -> u64 {
        self.timing.since_ns.unwrap_or_else(|| node.clock.monotonic_ns())
    }

    /// After a command ran and wrote `reply_bytes`.
    #[inline]
    pub(crate) fn stop(
        &mut self,
        node: &Node,
        session: &Session,
        id: CommandId,
        args: &[&[u8]],
        started: Started,
        reply_bytes: usize,
    ) {
        match self.timing.since_ns {
            Some(since_ns) if started.0 == SHARED => {
                if self.script.is_none()
                    && let Some(began_ns) = self.timing.script_began_ns
                {
                    self.stop_exactly(node, session, id, args, began_ns, reply_bytes);
                } else if reply_bytes <= QUICK_BYTES_MAX {
                    self.timing.count(id);
                } else {
                    // The quick commands before it took almost none of this time.
                    self.settle(node, 0);
                    self.stop_exactly(node, session, id, args, since_ns, reply_bytes);
                    if self.script.is_some() {
                        self.measure_script_from(since_ns);
                    }
                }
            }
            _ => self.stop_exactly(node, session, id, args, started.0, reply_bytes),
        }
    }

    /// Pauses the measurement of a command whose reply continues: returns the nanoseconds so far,
    /// for [`Local::finish`].
    pub(crate) fn pause(&mut self, node: &Node, started: Started) -> u64 {
        self.timing.script_began_ns = None;
        let now_ns = node.clock.monotonic_ns();
        let started_ns = match self.timing.since_ns {
            Some(since_ns) if started.0 == SHARED => since_ns,
            _ => started.0,
        };
        if self.timing.since_ns.is_some() {
            self.timing.since_ns = Some(now_ns);
        }
        now_ns.saturating_sub(started_ns)
    }

    #[inline(never)]
    fn stop_exactly(
        &mut self,
        node: &Node,
        session: &Session,
        id: CommandId,
        args: &[&[u8]],
        started_ns: u64,
        reply_bytes: usize,
    ) {
        if self.script.is_none() {
            self.timing.script_began_ns = None;
        }
        let now_ns = node.clock.monotonic_ns();
        let nanoseconds = now_ns.saturating_sub(started_ns);
        if let Some(since_ns) = self.timing.since_ns {
            // Those of a script.
            self.settle(node, now_ns - since_ns);
            self.timing.since_ns = Some(now_ns);
            // The command may have been the CONFIG SET that demands it.
            self.timing.exact = wants_exact(node);
        }
        self.finish(node, session, id, args, (nanoseconds, reply_bytes));
    }

    /// Counts a finished command that took `nanoseconds` and had a reply of so many bytes.
    pub(crate) fn finish(
        &mut self,
        node: &Node,
        session: &Session,
        id: CommandId,
        args: &[&[u8]],
        (nanoseconds, reply_bytes): (u64, usize),
    ) {
        self.record(id, 1, nanoseconds, node.settings.latency_tracking());
        let spec = node.table.spec(id);
        let microseconds = nanoseconds / 1000;
        if !spec.flags.has(Flags::SKIP_SLOWLOG) {
            self.log(node, session, args, [microseconds, reply_bytes as u64]);
        }
        // The commands of a script are part of it.
        if node.hot_keys.is_on() && self.script.is_none() {
            let keys = spec.keys.positions(args).map(|at| args[at]);
            let keys: SmallVec<[&[u8]; 8]> = keys.collect();
            let amounts = (nanoseconds, request_bytes(args) + reply_bytes as u64);
            let now_ms = node.clock.unix_ms();
            node.hot_keys.count(self.thread, keys.iter().copied(), amounts, now_ms);
        }
        if node.latency_events.is_on() {
            let event = if spec.flags.has(Flags::FAST) { "fast-command" } else { "command" };
            node.latency_events.note(event, microseconds / 1000, node.clock.unix_ms() / 1000);
        }
    }

    /// Enters a command into the logs that want it.
    fn log(
        &self,
        node: &Node,
        session: &Session,
        args: &[&[u8]],
        [microseconds, reply_bytes]: [u64; 2],
    ) {
        let (settings, logs) = (&node.settings, &node.command_logs);
        let reaches = |limit: i64, amount: u64| limit >= 0 && amount >= limit as u64;
        let enter = |log: &CommandLog, amount: u64, keep: usize| {
            let unix_seconds = node.clock.unix_ms() / 1000;
            let name = session.info.name.lock();
            // A script's commands are its caller's.
            let client = (&*session.info.addr, &**name);
            log.push(client, secrets::shown(args), amount, unix_seconds, keep);
        };
        if reaches(settings.commandlog_execution_slower_than(), microseconds) {
            enter(&logs.slow, microseconds, settings.commandlog_slow_execution_max_len());
        }
        let limit = settings.commandlog_request_larger_than();
        if reaches(limit, request_bytes_max(args)) {
            let request_bytes = request_bytes(args);
            if reaches(limit, request_bytes) {
                enter(
                    &logs.large_request,
                    request_bytes,
                    settings.commandlog_large_request_max_len(),
                );
            }
        }
        if reaches(settings.commandlog_reply_larger_than(), reply_bytes) {
            enter(&logs.large_reply, reply_bytes, settings.commandlog_large_reply_max_len());
        }
    }

    /// Counts a command once its long reply is complete or no longer wanted.
    pub fn finish_long_reply(&mut self, node: &Node, session: &Session, reply: &LongReply) {
        let Some(command) = reply.command else { return };
        let args: Vec<&[u8]> = reply.args.iter().map(Vec::as_slice).collect();
        self.finish(node, session, command, &args, (reply.nanoseconds, reply.bytes));
        if let Some(error) = &reply.error {
            self.stats.command(command).failed.add(1);
            let line = error.split(|&byte| byte == b'\r').next().unwrap_or_default();
            self.stats.count_error(&line[1..]);
        }
    }

    /// Counts the quick commands so far.
    pub(crate) fn settle_now(&mut self, node: &Node) {
        if let Some(since_ns) = self.timing.since_ns
            && !self.timing.pending.is_empty()
        {
            let now_ns = node.clock.monotonic_ns();
            self.settle(node, now_ns - since_ns);
            self.timing.since_ns = Some(now_ns);
        }
    }

    /// Distributes `nanoseconds` among the quick commands so far.
    fn settle(&mut self, node: &Node, nanoseconds: u64) {
        self.timing.by_scripts = 0;
        let total: u64 = self.timing.pending.iter().map(|(_, count)| count).sum();
        if total == 0 {
            return;
        }
        let tracking = node.settings.latency_tracking();
        let mut pending = std::mem::take(&mut self.timing.pending);
        let begun = self.undoable.as_mut();
        let before = begun.map(|begun| std::mem::take(&mut begun.pending)).unwrap_or_default();
        for (id, count) in pending.drain(..) {
            self.enter(id, count, nanoseconds / total, tracking);
            if let Some(begun) = &mut self.undoable {
                let earlier = before.iter().find(|(other, _)| *other == id);
                let count = count - earlier.map_or(0, |(_, count)| *count);
                begun.counted(id, count, nanoseconds / total * count);
            }
        }
        self.timing.pending = pending;
    }

    /// Counts a command that waited and was not served.
    pub(crate) fn count_unserved(&mut self, node: &Node, id: CommandId) {
        self.record(id, 1, 0, node.settings.latency_tracking());
    }

    fn record(&mut self, id: CommandId, times: u64, nanoseconds: u64, tracking: bool) {
        if let Some(begun) = &mut self.undoable {
            begun.counted(id, times, nanoseconds * times);
        }
        self.enter(id, times, nanoseconds, tracking);
    }

    fn enter(&mut self, id: CommandId, times: u64, nanoseconds: u64, tracking: bool) {
        let stats = self.stats.command(id);
        stats.calls.add(times);
        stats.nanoseconds.add(nanoseconds * times);
        if tracking {
            stats.latency.get_or_init(Default::default).record(nanoseconds, times);
        }
        self.stats.commands_processed.add(times);
    }
}

/// When a command began.
#[derive(Clone, Copy, Debug)]
pub struct Started(u64);

impl Started {
    /// The same, begun this many nanoseconds earlier.
    pub(crate) fn earlier(self, nanoseconds: u64) -> Started {
        if self.0 == SHARED { self } else { Started(self.0.saturating_sub(nanoseconds).max(1)) }
    }
}

/// Whether a command is quick by nature, and has few and short arguments.
#[inline]
pub fn is_quick(spec: &CommandSpec, args: &[&[u8]]) -> bool {
    spec.flags.0 & (Flags::FAST.0 | Flags::QUICK.0) != 0 && are_small(args)
}

#[inline]
fn are_small(args: &[&[u8]]) -> bool {
    args.len() <= QUICK_ARGUMENTS_MAX && args[1..].iter().all(|arg| arg.len() <= QUICK_BYTES_MAX)
}

/// Whether a command runs one script or function, and nothing else.
#[inline]
fn runs_script(spec: &CommandSpec) -> bool {
    spec.flags.has(Flags::RUNS_SCRIPT)
}

fn wants_exact(node: &Node) -> bool {
    /// Quick requests and replies are smaller.
    const QUICK_MAX: i64 = ((QUICK_ARGUMENTS_MAX + 1) * QUICK_BYTES_MAX) as i64;
    let settings = &node.settings;
    (0..1000).contains(&settings.commandlog_execution_slower_than())
        || (0..QUICK_MAX).contains(&settings.commandlog_request_larger_than())
        || (0..QUICK_MAX).contains(&settings.commandlog_reply_larger_than())
        || node.latency_events.is_on()
        || node.hot_keys.is_on()
}

/// At least as many bytes as a request has, without counting digits.
fn request_bytes_max(args: &[&[u8]]) -> u64 {
    /// Sign, length and ends of a header's line and of an argument's two.
    const AROUND_MAX: usize = 32;
    let bytes = args.iter().map(|arg| arg.len()).sum::<usize>();
    (bytes + AROUND_MAX * (args.len() + 1)) as u64
}

/// Bytes of a request as clients send it.
fn request_bytes(args: &[&[u8]]) -> u64 {
    /// Sign and end of a line.
    const AROUND: usize = 3;
    let digits = |number: usize| itoa::Buffer::new().format(number).len();
    let of_arg = |arg: &&[u8]| AROUND + digits(arg.len()) + arg.len() + 2;
    let header = AROUND + digits(args.len());
    (header + args.iter().map(of_arg).sum::<usize>()) as u64
}
