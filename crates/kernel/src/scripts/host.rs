//! What a running script asks of its surroundings: commands, and from time to time whether to go
//! on.

use crate::access;
use crate::command::command_id::CommandId;
use crate::command::error::CommandError;
use crate::command::flags::Flags;
use crate::command::spec::{Handler, LockNeed};
use crate::ctx::{Ctx, Data};
use crate::local::Pump;
use crate::message::ThreadHandle;
use crate::request::admission::{self, Call};
use crate::request::invoke::{self, Caller, Command};
use crate::request::mounted;
use crate::scripts;
use crate::scripts::runner::{self, Task, Wanted};
use crate::scripts::running::{Kind, LongRun};
use crate::statistics::timing::Started;
use ladon_engine::{Grown, Locks};
use ladon_identity::Context;
use ladon_lua::{Host, LogLevel, Stop};
use ladon_record::KeyHash;
use ladon_resp::{Proto, Reply};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;

/// Commands of a script from one [`Host::tick`] to the next, if its instructions ask for none.
const TICK_CALLS: u32 = 1024;

/// Why a script ends before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stopped {
    /// Another thread holds a lock that must not be waited for: run it again with all it wanted, or
    /// with all partitions.
    Refused { wants_all: bool },
    /// Another script holds a lock for long.
    Busy,
    /// `SCRIPT KILL`.
    Killed,
    /// The server ends, or the client was killed.
    Ending,
}

/// One run of a script, or several if locks are refused.
pub(super) struct RunHost<'h, 'a> {
    ctx: &'h mut Ctx<'a>,
    task: Task<'h>,
    pump: Option<Pump<'a>>,
    wanted: &'h mut Wanted,
    proto: Proto,
    /// A command that writes was admitted: from then on none is refused for lack of memory.
    wrote: bool,
    began_ns: u64,
    /// The script runs long.
    is_long: bool,
    /// Commands that it asked for.
    calls: u32,
    /// It is measured on its own, not together with its batch.
    is_measured: bool,
    pub(super) stopped: Option<Stopped>,
    counted: Counted,
}

/// Texts of errors that were counted when they were made: the latest ones, of which the script may
/// return one.
#[derive(Default)]
pub(super) struct Counted(VecDeque<Vec<u8>>);

impl Counted {
    const MAX: usize = 16;

    fn add(&mut self, text: &[u8]) {
        if self.0.len() == Counted::MAX {
            self.0.pop_front();
        }
        self.0.push_back(text.to_vec());
    }

    /// Whether this error is one of them; where it was raised may follow.
    pub(super) fn has(&self, text: &[u8]) -> bool {
        self.0.iter().any(|error| text.starts_with(error))
    }
}

/// An error that a command of the script gets instead of being run.
struct Refusal {
    command: Option<CommandId>,
    error: CommandError,
}

impl<'h, 'a> RunHost<'h, 'a> {
    #[inline]
    pub(super) fn new(
        ctx: &'h mut Ctx<'a>,
        task: Task<'h>,
        pump: Option<Pump<'a>>,
        wanted: &'h mut Wanted,
    ) -> RunHost<'h, 'a> {
        let began_ns = ctx.local.began_ns(ctx.node);
        RunHost {
            ctx,
            task,
            pump,
            wanted,
            proto: Proto::Resp2,
            wrote: false,
            began_ns,
            is_long: false,
            calls: 0,
            is_measured: !task.is_quick,
            stopped: None,
            counted: Counted::default(),
        }
    }

    /// Takes the run back and begins another one, unless it was killed or a lock is busy.
    pub(super) fn begin_again(&mut self, with_all: bool) -> Result<(), Stopped> {
        if self.ctx.node.scripts.running.is_killed(self.ctx.local.thread) {
            return Err(Stopped::Killed);
        }
        self.leave_long();
        if !std::mem::replace(&mut self.is_measured, true) {
            self.ctx.local.measure_script(self.ctx.node);
        }
        self.ctx.abort();
        self.counted = Counted::default();
        (self.proto, self.wrote) = (Proto::Resp2, false);
        let locks = match self.wanted.hashes.as_slice() {
            _ if with_all => Locks::All,
            [] => Locks::None,
            hashes => Locks::Keys(hashes),
        };
        let node = self.ctx.node;
        let is_busy = |partition| node.scripts.running.is_held(partition);
        if !self.ctx.tx().begin_again_or_busy(locks, is_busy) {
            self.ctx.data = Data::Gone;
            return Err(Stopped::Busy);
        }
        self.ctx.make_undoable();
        Ok(())
    }

    /// The script has ended. Returns what was lent, and the errors that are counted already.
    pub(super) fn end(mut self) -> (Option<Pump<'a>>, Counted) {
        self.leave_long();
        (self.pump, self.counted)
    }

    fn leave_long(&mut self) {
        if std::mem::take(&mut self.is_long) {
            let node = self.ctx.node;
            node.scripts.running.ends_long(self.ctx.local.thread);
            // They may have put off what needs its locks.
            node.threads.iter().for_each(ThreadHandle::wake);
        }
    }

    fn stop(&mut self, why: Stopped) -> Stop {
        self.stopped.get_or_insert(why);
        Stop
    }

    /// Finds what a script wants to run, and whether it may.
    fn resolve<'c>(&mut self, args: &'c [&'c [u8]]) -> Result<Command<'c>, Refusal> {
        let table = self.ctx.node.table;
        let refuse = |command, text| Refusal { command, error: CommandError::text(text) };
        let unknown = || refuse(None, "ERR Unknown Redis command called from script");
        let mut id = table.find(args.first().ok_or_else(unknown)?).ok_or_else(unknown)?;
        let mut spec = table.spec(id);
        let is_container = match spec.handler {
            Handler::Run(_) => false,
            Handler::Container => true,
            Handler::RunOrContainer(_) => args.len() > 1,
        };
        if is_container && let Some(name) = args.get(1) {
            id = table.find_subcommand(id, name).ok_or_else(unknown)?;
            spec = table.spec(id);
        }
        let refuse = |text| Refusal { command: Some(id), error: CommandError::text(text) };
        let (Handler::Run(handler) | Handler::RunOrContainer(handler)) = spec.handler else {
            return Err(refuse("ERR Wrong number of args calling Redis command from script"));
        };
        if !spec.accepts(args.len()) {
            return Err(refuse("ERR Wrong number of args calling Redis command from script"));
        }
        self.admit(id, spec.flags, args).map_err(|error| Refusal { command: Some(id), error })?;
        Ok(Command { id, spec, handler, args })
    }

    fn admit(&mut self, id: CommandId, flags: Flags, args: &[&[u8]]) -> Result<(), CommandError> {
        let writes = flags.has(Flags::WRITE);
        let may_change = !writes || self.ctx.tx().may_change();
        let call = Call { flags, may_change, wrote: self.wrote };
        let (node, memory) = (self.ctx.node, runner::memory(self.ctx));
        let admitted = admission::call(node, call, self.task.declared(), memory);
        if let Err(refusal) = self.has_right(id, flags, args).and(admitted) {
            return Err(self.error(refusal, id, args));
        }
        self.wrote |= writes;
        Ok(())
    }

    /// Whether the client's user may run this. Its rights are those that it had when the script
    /// began: they do not change in the middle of a transaction.
    #[inline]
    fn has_right(
        &self,
        id: CommandId,
        flags: Flags,
        args: &[&[u8]],
    ) -> Result<(), admission::Refusal> {
        let session = &*self.ctx.session;
        if session.access.user.is_unlimited() || flags.has(Flags::NOSCRIPT) {
            return Ok(());
        }
        let may_run = access::may_run(self.ctx.node, &session.access.user, session.db, id, args);
        may_run.map_err(admission::Refusal::Denied)
    }

    #[cold]
    fn error(&self, refusal: admission::Refusal, id: CommandId, args: &[&[u8]]) -> CommandError {
        let node = self.ctx.node;
        let admission::Refusal::Denied(denied) = refusal else { return refusal.error(node) };
        let text = access::note(node, self.ctx.session, Context::Lua, denied, id, args);
        CommandError::err(format_args!("ACL failure in script: {text}"))
    }

    /// Locks what the command needs.
    #[inline]
    fn lock(&mut self, command: &Command<'_>) -> Result<(), Stop> {
        self.ctx.first_key = None;
        let Command { spec, args, .. } = *command;
        match spec.locks {
            LockNeed::None => Ok(()),
            LockNeed::Keys => self.lock_keys(command),
            LockNeed::KeysUnless(reaches_further) if !reaches_further(args) => {
                self.lock_keys(command)
            }
            _ => self.lock_all(),
        }
    }

    #[inline]
    fn lock_keys(&mut self, command: &Command<'_>) -> Result<(), Stop> {
        let Command { spec, args, .. } = *command;
        if spec.keys.is_one(args.len()) {
            let hash = self.ctx.keyspace().hash(args[1]);
            self.ctx.first_key = Some(hash);
            if self.ctx.tx().holds(hash) {
                return Ok(());
            }
            return self.grow(&[hash]);
        }
        let positions = spec.keys.positions(args);
        let hashes: SmallVec<[KeyHash; 8]> =
            positions.map(|at| self.ctx.keyspace().hash(args[at])).collect();
        self.grow(&hashes)
    }

    fn grow(&mut self, hashes: &[KeyHash]) -> Result<(), Stop> {
        let node = self.ctx.node;
        let is_busy = |partition| node.scripts.running.is_held(partition);
        let grown = self.ctx.tx().grow_or_busy(hashes, is_busy);
        hashes.iter().for_each(|&hash| self.wanted.add(hash));
        self.has_grown(grown, false)
    }

    #[cold]
    fn lock_all(&mut self) -> Result<(), Stop> {
        self.task.learnt.learn_all();
        let node = self.ctx.node;
        let is_busy = |partition| node.scripts.running.is_held(partition);
        let grown = self.ctx.tx().grow_to_all_or_busy(is_busy);
        self.has_grown(grown, true)
    }

    fn has_grown(&mut self, grown: Grown, wants_all: bool) -> Result<(), Stop> {
        match grown {
            Grown::Held => {
                if self.is_long {
                    self.publish_held();
                }
                Ok(())
            }
            Grown::Refused => Err(self.stop(Stopped::Refused { wants_all })),
            Grown::Busy => Err(self.stop(Stopped::Busy)),
        }
    }

    /// A script that runs few and quick commands is timed together with its batch, as these are.
    #[inline]
    fn times_with_batch(&mut self, command: Started) {
        if !self.ctx.local.is_quick_script(command, self.calls) {
            self.is_measured = true;
            self.ctx.local.measure_script(self.ctx.node);
        }
    }

    fn publish_held(&mut self) {
        let held = self.ctx.tx().held_partitions();
        self.ctx.node.scripts.running.holds(self.ctx.local.thread, &held);
    }
}

impl Host for RunHost<'_, '_> {
    fn call(&mut self, arguments: &[&[u8]], reply: &mut Vec<u8>) -> Result<(), Stop> {
        if self.stopped.is_some() {
            return Err(Stop);
        }
        self.calls = self.calls.wrapping_add(1);
        if self.calls.is_multiple_of(TICK_CALLS) {
            // A function of C may call for ever (`string.gsub(text, '.', redis.call)`).
            self.tick()?;
        }
        let mut command = match self.resolve(arguments) {
            Ok(command) => command,
            Err(Refusal { command, error }) => {
                let text = error.to_string();
                invoke::count_rejection(self.ctx, command, &text);
                Reply::new(reply, self.proto).error(&text);
                self.counted.add(text.as_bytes());
                return Ok(());
            }
        };
        self.lock(&command)?;
        let started = self.ctx.local.start(self.ctx.node, command.spec, arguments);
        if !self.is_measured {
            self.times_with_batch(started);
        }
        let (ctx, at) = (&mut *self.ctx, reply.len());
        ctx.reply.exchange(reply);
        ctx.reply.set_proto(self.proto);
        if ctx.node.keyspace.spaces.has_mounts() {
            mounted::redirect_in_script(ctx, &mut command);
        }
        invoke::call(ctx, command, started, Caller::Script);
        ctx.reply.exchange(reply);
        if let Some((b'-', text)) = reply.get(at..).and_then(<[u8]>::split_first) {
            self.counted.add(text.strip_suffix(b"\r\n").unwrap_or(text));
        }
        Ok(())
    }

    fn set_resp(&mut self, proto: Proto) {
        self.proto = proto;
    }

    fn log(&mut self, level: LogLevel, text: &[u8]) {
        scripts::log(level, text);
    }

    fn may_run(&mut self, arguments: &[&[u8]]) -> Result<bool, String> {
        let (node, session) = (self.ctx.node, &*self.ctx.session);
        let Some(id) = node.table.find_with_subcommand(arguments) else {
            return Err("ERR Invalid command passed to redis.acl_check_cmd()".to_owned());
        };
        Ok(access::may_run(node, &session.access.user, session.db, id, arguments).is_ok())
    }

    fn tick(&mut self) -> Result<(), Stop> {
        if self.stopped.is_some() {
            return Err(Stop);
        }
        if self.ctx.session.info.killed.load(Relaxed) {
            return Err(self.stop(Stopped::Ending));
        }
        let node = self.ctx.node;
        let threshold_ms = node.settings.busy_reply_threshold();
        let taken_ns = node.clock.monotonic_ns().saturating_sub(self.began_ns);
        if threshold_ms == 0 || taken_ns < threshold_ms.saturating_mul(1_000_000) {
            return Ok(());
        }
        let thread = self.ctx.local.thread;
        if !self.is_long {
            self.is_long = true;
            if !std::mem::replace(&mut self.is_measured, true) {
                self.ctx.local.measure_script_from(self.began_ns);
            }
            self.publish_held();
            let run = LongRun {
                kind: self.task.kind,
                name: self.task.name.into(),
                command: self.task.arguments.iter().map(|&argument| argument.into()).collect(),
                began_ns: self.began_ns,
            };
            node.scripts.running.begins_long(thread, run);
            let kill = match self.task.kind {
                Kind::Script => "SCRIPT KILL",
                Kind::Function => "FUNCTION KILL",
            };
            tracing::warn!(
                "slow script detected: still running after {} ms. Ladon is busy where the script \
                 has locks. You can stop it with {kill}. Script name: {}",
                taken_ns / 1_000_000,
                String::from_utf8_lossy(self.task.name)
            );
        }
        if let Some(pump) = &mut self.pump
            && !pump()
        {
            return Err(self.stop(Stopped::Ending));
        }
        if node.scripts.running.is_killed(thread) {
            let name = String::from_utf8_lossy(self.task.name);
            tracing::info!("a script was killed: {name}");
            return Err(self.stop(Stopped::Killed));
        }
        Ok(())
    }
}
