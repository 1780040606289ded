//! Commands in a transaction on spaces (`box.resp.call` between `box.begin` and `box.commit`).
//!
//! ```text
//! call    --> all commands so far run as one transaction of the engine, which is taken back
//!             the reply of the last one is shown
//! commit  --> they run again, under the locks of their keys; then those of the spaces are taken
//!             one replies something else than it did   a conflict: nothing has happened
//!             else                                     both parts are one record in the log
//! ```
//!
//! The transaction on spaces is optimistic ([`Interactive`]), so its commands are as well: others
//! never wait for an open one, and what the client was shown is true at the commit. Draws of random
//! numbers are repeated, and ids that `XADD` makes are kept.

use crate::blocking;
use crate::client::monitored;
use crate::client::session::{Multi, Session};
use crate::command::command_id::CommandId;
use crate::command::error;
use crate::command::flags::Flags;
use crate::command::spec::CommandSpec;
use crate::ctx::{Ctx, Data};
use crate::node::Node;
use crate::request::admission;
use crate::request::execute::{Request, execute};
use crate::request::mounted;
use crate::request::outcome::{Flow, Outcome};
use crate::request::queued::{self, Wanted};
use crate::rng::Rng;
use crate::thread_parts::ThreadParts;
use ladon_engine::{Commit, CommitPace, Interactive, transaction_conflict};
use ladon_record::Lsn;
use ladon_resp::{Proto, Reply};
use ladon_space::{BoxError, ErrorCode};

/// Each call runs all those before it again.
const COMMANDS_MAX: usize = 128;
/// Nanoseconds that the commands of a transaction may take together.
const NANOSECONDS_MAX: u64 = 50_000_000;
/// What publishes or only answers may be in a transaction beside what is about data.
const WITHOUT_DATA: [&str; 4] = ["publish", "spublish", "ping", "echo"];

/// Why a command on tuples is refused.
const OF_TUPLES: &str = "ERR in a transaction of spaces, tuples of mounted spaces are changed and read \
                         by statements, not by commands";

/// The commands of an open transaction, and who runs them.
pub struct Joint {
    /// The user's name.
    user: Box<[u8]>,
    session: Session,
    shown: Vec<Shown>,
    /// Where the draws of random numbers begin each time.
    rng: Rng,
    /// What the commands took when they ran last.
    nanoseconds: u64,
}

/// A command, and the reply that the client was shown.
struct Shown {
    /// Its place among the transaction's statements and savepoints.
    number: u64,
    id: CommandId,
    args: Vec<Box<[u8]>>,
    flags: Flags,
    /// `None` while it has not run.
    reply: Option<Vec<u8>>,
}

/// What became of running commands.
enum Ran {
    /// They replied what they did before, or for the first time.
    Alike,
    /// A script was stopped, for this reason: nothing is done.
    Stopped(String),
    /// One replied something else.
    Otherwise,
    /// Another client's script holds a lock for long: nothing is done.
    Busy,
    /// A key is a tuple of a mounted space, which is changed by statements.
    Tuples,
}

impl Joint {
    /// Without commands. `session` is no connection's, of the user who runs them.
    pub fn new(user: &[u8], session: Session, rng: Rng) -> Joint {
        Joint { user: user.into(), session, shown: Vec::new(), rng, nanoseconds: 0 }
    }

    /// The name of the user whose commands they are.
    pub fn user(&self) -> &[u8] {
        &self.user
    }

    /// Whether a command may change data.
    pub fn writes(&self) -> bool {
        self.shown.iter().any(|shown| shown.flags.has(Flags::WRITE.or(Flags::RUNS_SCRIPT)))
    }

    /// Runs one more command on the data as the transaction sees it, and appends its reply, of RESP3.
    /// Nobody else sees what it did before the commit.
    ///
    /// # Errors
    /// `TRANSACTION_CONFLICT`, if an earlier command would reply something else by now; if the
    /// transaction holds too much.
    pub fn call(
        &mut self,
        thread: &mut ThreadParts<'_>,
        transaction: &mut Interactive,
        args: &[&[u8]],
        out: &mut Vec<u8>,
    ) -> Result<Outcome, BoxError> {
        if self.shown.len() >= COMMANDS_MAX || self.nanoseconds > NANOSECONDS_MAX {
            return Err(too_much());
        }
        let mut next = match self.queue(thread, args, out) {
            Ok(next) => next,
            Err(outcome) => return Ok(outcome),
        };
        next.number = transaction.step_beside();
        self.shown.push(next);
        let live = histories(&self.shown, transaction.returns()).pop().unwrap_or_default();
        let began_ns = thread.node.clock.monotonic_ns();
        let (ran, depends) = self.run(thread, &[live], |ctx| {
            ctx.abort();
            ctx.commit()
        });
        self.nanoseconds = thread.node.clock.monotonic_ns().saturating_sub(began_ns);
        // Only what was shown stays.
        let last = self.shown.pop();
        let why = match (ran, last) {
            (Ran::Alike, Some(mut last)) => {
                transaction.hold_beside(last.bytes())?;
                last.keep_id(thread.node);
                out.extend_from_slice(last.reply.as_deref().unwrap_or_default());
                self.shown.push(last);
                return Ok(Outcome::new(depends, Flow::Continue));
            }
            (Ran::Busy, _) => return Ok(Outcome::new(Lsn::ZERO, Flow::Again)),
            (Ran::Stopped(why), _) => why,
            (Ran::Tuples, _) => OF_TUPLES.to_owned(),
            (Ran::Alike | Ran::Otherwise, _) => return Err(transaction_conflict()),
        };
        Reply::new(out, Proto::Resp3).error(error::bytes_of(&why));
        Ok(Outcome::new(depends, Flow::Continue))
    }

    /// Admits a command as `MULTI` does, with its rights, room and arguments checked. An error
    /// replies what is wrong.
    fn queue(
        &mut self,
        thread: &mut ThreadParts<'_>,
        args: &[&[u8]],
        out: &mut Vec<u8>,
    ) -> Result<Shown, Outcome> {
        let (node, start) = (thread.node, out.len());
        let unfit = |id, out: &mut Vec<u8>| {
            let name = &node.table.entry(id).full_name;
            let why = format!("ERR '{name}' cannot be in a transaction of spaces");
            Reply::new(out, Proto::Resp3).error(error::bytes_of(&why));
            Err(Outcome::new(Lsn::ZERO, Flow::Continue))
        };
        let id = node.table.find(args[0]);
        if let Some(id) = id.filter(|id| node.table.spec(*id).flags.has(Flags::NOT_QUEUED)) {
            return unfit(id, out);
        }
        self.session.multi = Some(Box::default());
        self.session.db = 0;
        let request = Request { id, args, first_key: None };
        let outcome = execute(thread, &mut self.session, request, out);
        let multi = self.session.multi.take();
        let queued = multi.as_ref().and_then(|multi| Some((multi.queued.first()?, multi.flags)));
        let Some((queued, flags)) = queued else { return Err(outcome) };
        if matches!(outcome.flow, Flow::Drop) {
            return Err(outcome);
        }
        out.truncate(start);
        if !fits(node.table.spec(queued.id)) {
            return unfit(queued.id, out);
        }
        let args = args.iter().map(|&arg| arg.into()).collect();
        Ok(Shown { number: 0, id: queued.id, args, flags, reply: None })
    }

    /// Commits the transaction with its commands, or does a part of that, as [`Interactive::commit`].
    pub fn commit(
        &mut self,
        thread: &mut ThreadParts<'_>,
        transaction: &mut Interactive,
        pace: CommitPace,
    ) -> (Result<Commit, BoxError>, Lsn) {
        let lists = histories(&self.shown, transaction.returns());
        let keyspace = &thread.node.keyspace;
        let mut spare = thread.scratch.spare();
        let mut done = Ok(Commit::Waits);
        let (ran, depends) = self.run(thread, &lists, |ctx| {
            let mut is_logged = false;
            let (committed, depends) = transaction.commit(keyspace, &mut spare, pace, |record| {
                is_logged = true;
                ctx.commit_beside(record)
            });
            if !matches!(committed, Ok(Commit::Done)) {
                ctx.abort();
            }
            done = committed;
            if is_logged { depends } else { depends.max(ctx.commit()) }
        });
        thread.scratch.take_over(spare);
        if !thread.scratch.ready.is_empty() {
            blocking::serve(thread);
        }
        match ran {
            Ran::Alike => {}
            Ran::Otherwise => done = Err(transaction_conflict()),
            Ran::Busy => done = Ok(Commit::Waits),
            Ran::Stopped(why) => done = Err(BoxError::new(ErrorCode::PROC_LUA, why)),
            Ran::Tuples => done = Err(BoxError::new(ErrorCode::PROC_LUA, OF_TUPLES)),
        }
        (done, depends)
    }

    /// Runs lists of commands as one transaction of the engine, each as if it were the first; all but
    /// the last are taken back. Then `end` ends the transaction, if all replied what they should.
    /// Returns what a reply depends on as well.
    fn run(
        &mut self,
        thread: &mut ThreadParts<'_>,
        lists: &[Vec<usize>],
        end: impl FnOnce(&mut Ctx<'_>) -> Lsn,
    ) -> (Ran, Lsn) {
        let Joint { session, shown, rng, .. } = self;
        let ThreadParts { node, local, scratch, now_ms, append, .. } = thread;
        let node: &Node = node;
        let flags = shown.iter().fold(Flags::default(), |all, one| all.or(one.flags));
        (scratch.read_only, scratch.no_touch) = (!node.may_change(), false);
        let multi = multi_of(shown);
        let own_rng = std::mem::replace(&mut local.rng, rng.clone());
        let mut replies = Vec::new();
        let reply = Reply::new(&mut replies, Proto::Resp3);
        let mut ctx = Ctx::new(node, local, session, reply, *now_ms, &mut **append);
        ctx.data = Data::Free(scratch);
        ctx.depends = admission::depends(node, flags);
        let wanted = Wanted::by(&ctx, &multi);
        if !wanted.begin(&mut ctx) {
            ctx.local.rng = own_rng;
            return (Ran::Busy, Lsn::ZERO);
        }
        let ran = match mounted::are_tuples(&mut ctx, &multi) {
            true => Ran::Tuples,
            false => run_lists(&mut ctx, (&multi, &wanted), lists, shown),
        };
        let depends = match ran {
            Ran::Alike => end(&mut ctx),
            _ => ctx.commit(),
        };
        let at = (ctx.session.gate, ctx.local.leader_read);
        ctx.local.rng = own_rng;
        if !ctx.local.monitored.is_empty() {
            monitored::show(node, ctx.local, depends);
        }
        (ran, admission::depends_after(node, at, flags, depends))
    }
}

/// Runs the lists, of which there is one at least; what the last one did is still undoable then, if all replied what they should.
fn run_lists(
    ctx: &mut Ctx<'_>,
    (multi, wanted): (&Multi, &Wanted),
    lists: &[Vec<usize>],
    shown: &mut [Shown],
) -> Ran {
    for (n, list) in lists.iter().enumerate() {
        if n > 0 {
            ctx.abort();
        }
        ctx.make_undoable();
        ctx.session.db = 0;
        for &at in list {
            ctx.in_exec = true;
            queued::run(ctx, multi, multi.queued[at], wanted.first_keys[at]);
            (ctx.in_exec, ctx.first_key, ctx.deferred) = (false, None, None);
            let reply = ctx.reply.take_from(0);
            if std::mem::take(&mut ctx.local.abandons_exec) {
                ctx.abort();
                return Ran::Stopped(reason(&reply));
            }
            match &shown[at].reply {
                None => shown[at].reply = Some(reply),
                Some(before) if *before == reply => {}
                Some(_) => {
                    ctx.abort();
                    return Ran::Otherwise;
                }
            }
        }
    }
    Ran::Alike
}

/// Why a script was stopped, as its reply says.
fn reason(reply: &[u8]) -> String {
    let text = String::from_utf8_lossy(reply);
    let line = text.lines().find_map(|line| line.strip_prefix('-'));
    line.unwrap_or("ERR a script was stopped").to_owned()
}

/// Whether a command may run several times, and be taken back: it is about data, or does nothing that
/// anybody sees before the commit.
fn fits(spec: &CommandSpec) -> bool {
    const UNDOABLE: u32 = Flags::WRITE.0 | Flags::READONLY.0 | Flags::RUNS_SCRIPT.0;
    spec.flags.0 & UNDOABLE != 0 || WITHOUT_DATA.contains(&spec.name)
}

/// All commands, queued.
fn multi_of(shown: &[Shown]) -> Multi {
    let mut multi = Multi::default();
    for one in shown {
        let args: Vec<&[u8]> = one.args.iter().map(|arg| &**arg).collect();
        multi.flags = multi.flags.or(one.flags);
        multi.push(one.id, &args);
    }
    multi
}

/// What has been done in a row, by places: up to each return to a savepoint that took back a command,
/// and up to now. `returns` are the savepoints and the transaction's step at each return.
fn histories(shown: &[Shown], returns: &[(u64, u64)]) -> Vec<Vec<usize>> {
    let mut returns = returns.iter().peekable();
    let (mut done, mut live) = (Vec::new(), Vec::new());
    let go_back = |live: &mut Vec<usize>, savepoint: u64, done: &mut Vec<Vec<usize>>| {
        let kept = live.partition_point(|&at| shown[at].number < savepoint);
        if kept < live.len() {
            done.push(live.clone());
            live.truncate(kept);
        }
    };
    for (at, one) in shown.iter().enumerate() {
        while let Some((savepoint, _)) = returns.next_if(|(_, step)| *step < one.number) {
            go_back(&mut live, *savepoint, &mut done);
        }
        live.push(at);
    }
    returns.for_each(|(savepoint, _)| go_back(&mut live, *savepoint, &mut done));
    done.push(live);
    done
}

fn too_much() -> BoxError {
    let why = format!(
        "a transaction of spaces has {COMMANDS_MAX} commands of Redis at most, which take {} ms \
         together at most",
        NANOSECONDS_MAX / 1_000_000
    );
    BoxError::new(ErrorCode::ILLEGAL_PARAMS, why)
}

impl Shown {
    /// Bytes that it holds.
    fn bytes(&self) -> usize {
        let args: usize = self.args.iter().map(|arg| arg.len() + size_of::<Box<[u8]>>()).sum();
        args + self.reply.as_ref().map_or(0, Vec::len)
    }

    /// The id that `XADD` has made is the entry's from now on, as the client knows it.
    fn keep_id(&mut self, node: &Node) {
        if node.table.spec(self.id).name != "xadd" {
            return;
        }
        let id = self.reply.as_deref().and_then(|reply| {
            let text = reply.strip_prefix(b"$")?;
            let at = text.iter().position(|&byte| byte == b'\n')?;
            text[at + 1..].strip_suffix(b"\r\n")
        });
        let place = self.args.iter_mut().skip(2).find(|arg| ***arg == *b"*");
        if let (Some(id), Some(place)) = (id, place) {
            *place = id.into();
        }
    }
}
