//! Runs a script or a function as one transaction.
//!
//! It begins with the partitions of the declared keys, and locks more when its commands ask for
//! other keys ([`Tx::grow`]). If it is refused one, everything that it did is taken back, and it
//! begins again with all that it asked for, at the same time and with the same random numbers, so
//! that nobody can tell ([why](../../../../docs/decisions/undo.md)):
//!
//! ```text
//! begin: declared keys ──▶ run ──▶ commit: one record
//!    ▲                      │ a lock is refused
//!    └── abort, all wanted ─┘      after two runs in vain: all partitions
//! ```
//!
//! It ends without any effect if it is killed, or meets a lock that another script holds for long.
//!
//! [`Tx::grow`]: ladon_engine::Tx::grow

use crate::client::monitored;
use crate::command::error::{CommandError, CommandResult};
use crate::ctx::{Ctx, Data};
use crate::local::ScriptRun;
use crate::memory::eviction::Room;
use crate::request::admission;
use crate::scripts::host::{Counted, RunHost, Stopped};
use crate::scripts::learnt::Learnt;
use crate::scripts::running::Kind;
use crate::scripts::shebang::ScriptFlags;
use crate::scripts::thread_vm::{Machine, ThreadVm};
use ladon_engine::{Locks, PARTITIONS, partition_of};
use ladon_lua::{Ended, Host, Vm};
use ladon_record::KeyHash;
use smallvec::SmallVec;

/// After so many runs that were refused a lock, a script takes all.
const REFUSALS_MAX: usize = 2;

/// What to run.
#[derive(Clone, Copy)]
pub struct Task<'a> {
    /// The client's command.
    pub arguments: &'a [&'a [u8]],
    /// A script or a function.
    pub kind: Kind,
    /// Its digest or name, for messages.
    pub name: &'a [u8],
    /// The flags that it declares.
    pub flags: ScriptFlags,
    /// The command is one of those that only read.
    pub read_only: bool,
    /// The keys' locks that earlier runs asked for.
    pub learnt: &'a Learnt,
    /// The keys that the client declares.
    pub keys: &'a [&'a [u8]],
    /// It takes hardly any time but that of its commands.
    pub is_quick: bool,
}

impl Task<'_> {
    /// What admission asks of a script.
    pub(super) fn declared(&self) -> admission::Script {
        admission::Script {
            is_undeclared: self.flags.has(ScriptFlags::UNDECLARED),
            no_writes: self.flags.has(ScriptFlags::NO_WRITES),
            allows_oom: self.flags.has(ScriptFlags::ALLOW_OOM),
            read_only: self.read_only,
        }
    }
}

/// Runs a task: `enter` enters the virtual machine, which appends the reply to the buffer. It may
/// be called several times.
pub fn run(
    ctx: &mut Ctx<'_>,
    machine: &mut Machine,
    task: Task<'_>,
    mut enter: impl FnMut(&mut Vm, &mut dyn Host, &mut Vec<u8>) -> Ended,
) -> CommandResult {
    admit(ctx, &task)?;
    if !task.is_quick {
        ctx.local.measure_script(ctx.node);
    }
    let (in_exec, rehearses) = (ctx.in_exec, ctx.local.rehearses);
    let mut wanted = Wanted::default();
    for (at, key) in task.keys.iter().enumerate() {
        let known = ctx.first_key.filter(|_| at == 0);
        let hash = known.unwrap_or_else(|| ctx.keyspace().hash(key));
        debug_assert_eq!(hash, ctx.keyspace().hash(key));
        wanted.add(hash);
    }
    if !in_exec {
        begin(ctx, &task, &wanted.hashes)?;
        ctx.make_undoable();
    }
    let (db, proto, first_key) = (ctx.session.db, ctx.reply.proto(), ctx.first_key.take());
    let replies_later = std::mem::replace(&mut ctx.local.replies_later, false);
    let (script, pump) = (ScriptRun::default(), ctx.pump.take());
    ctx.local.script = Some(script);
    ctx.in_exec = true;
    let mut host = RunHost::new(ctx, task, pump, &mut wanted);
    let mut refusals = 0;
    // As if it had been refused a lock at its end.
    let mut rehearses = cfg!(debug_assertions) && rehearses && !in_exec;
    let result = loop {
        machine.out.clear();
        let ended = enter(&mut machine.vm, &mut host, &mut machine.out);
        let Some(stopped) = host.stopped.take() else {
            debug_assert!(matches!(ended, Ended::Replied), "nobody stopped it");
            if std::mem::take(&mut rehearses) {
                if let Err(stopped) = host.begin_again(false) {
                    break Err(stopped);
                }
                continue;
            }
            break Ok(());
        };
        let Stopped::Refused { wants_all } = stopped else { break Err(stopped) };
        refusals += 1;
        let with_all = wants_all || refusals >= REFUSALS_MAX;
        if with_all {
            task.learnt.learn_all();
        }
        if let Err(stopped) = host.begin_again(with_all) {
            break Err(stopped);
        }
    };
    let (pump, counted) = host.end();
    (ctx.pump, ctx.local.script, ctx.in_exec) = (pump, None, in_exec);
    (ctx.session.db, ctx.first_key) = (db, first_key);
    ctx.reply.set_proto(proto);
    ctx.local.replies_later = replies_later;
    match result {
        Ok(()) => reply(ctx, &task, &machine.out, &counted),
        Err(stopped) => Err(give_up(ctx, &task, stopped)),
    }
}

/// Lends the thread's virtual machine, which is made for its first script, and again after
/// `SCRIPT FLUSH`.
pub fn with_vm<R>(ctx: &mut Ctx<'_>, run: impl FnOnce(&mut Ctx<'_>, &mut ThreadVm) -> R) -> R {
    let kept = ctx.local.vm.take().filter(|vm| vm.is_fresh(ctx.node));
    let mut vm = match kept {
        Some(vm) => vm,
        None => {
            ctx.local.measure_script(ctx.node);
            Box::new(ThreadVm::new(ctx.node))
        }
    };
    let result = run(ctx, &mut vm);
    vm.rest(ctx.node, ctx.local.thread);
    ctx.local.vm = Some(vm);
    result
}

/// Shows the client's command to monitoring clients: before those of its script, as Redis does.
pub fn show(ctx: &mut Ctx<'_>, args: &[&[u8]]) {
    if ctx.node.clients.has_monitors() {
        monitored::note_script(ctx.node, ctx.local, ctx.session, args);
    }
}

/// The checks that depend on what a script declares.
fn admit(ctx: &Ctx<'_>, task: &Task<'_>) -> CommandResult {
    let admitted = admission::script(ctx.node, task.declared(), memory(ctx));
    admitted.map_err(|refusal| refusal.error(ctx.node))
}

/// Whether there was room for more data when the client's request began.
pub(super) fn memory(ctx: &Ctx<'_>) -> Room {
    if ctx.local.is_out_of_memory { Room::None } else { Room::Enough }
}

/// Begins the transaction, unless a long script holds one of its locks.
fn begin(ctx: &mut Ctx<'_>, task: &Task<'_>, hashes: &[KeyHash]) -> CommandResult {
    let Data::Free(scratch) = std::mem::replace(&mut ctx.data, Data::Gone) else {
        unreachable!("a script begins its own transaction")
    };
    let locks = match hashes {
        _ if task.learnt.needs_all() => Locks::All,
        [] => Locks::None,
        [hash] => Locks::One(*hash),
        hashes => Locks::Keys(hashes),
    };
    let node = ctx.node;
    let Some(tx) = node.begin_or_busy(locks, scratch, ctx.now_ms) else {
        return Err(node.scripts.running.busy());
    };
    ctx.data = Data::Held(tx);
    Ok(())
}

/// Passes the virtual machine's reply on. An error is counted once: if it came from a command of
/// the script, that has counted it.
fn reply(ctx: &mut Ctx<'_>, task: &Task<'_>, out: &[u8], counted: &Counted) -> CommandResult {
    if let [b'-', text @ ..] = out {
        let text = text.strip_suffix(b"\r\n").unwrap_or(text);
        let is_counted = counted.has(text);
        if !is_counted && let Ok(text) = std::str::from_utf8(text) {
            return Err(CommandError::Other(text.to_owned().into()));
        }
        if let Some(id) = ctx.node.table.find(task.arguments[0]) {
            ctx.local.stats.command(id).failed.add(1);
        }
    }
    ctx.reply.raw(out);
    Ok(())
}

/// Takes everything back, and says why.
fn give_up(ctx: &mut Ctx<'_>, task: &Task<'_>, stopped: Stopped) -> CommandError {
    let name = String::from_utf8_lossy(task.name);
    if ctx.in_exec {
        // What the transaction did before goes with it.
        ctx.local.abandons_exec = true;
    } else if matches!(ctx.data, Data::Held(_)) {
        ctx.abort();
    }
    match stopped {
        Stopped::Refused { .. } => unreachable!("it runs again"),
        Stopped::Busy => ctx.node.scripts.running.busy(),
        Stopped::Killed => match task.kind {
            Kind::Script => CommandError::err(format_args!(
                "Script killed by user with SCRIPT KILL... script: {name}"
            )),
            Kind::Function => CommandError::err(format_args!(
                "Script killed by user with FUNCTION KILL... script: {name}"
            )),
        },
        Stopped::Ending => CommandError::err("The server or the client ended while the script ran"),
    }
}

/// The keys that a script asked for, one for each partition: locks need no more.
#[derive(Default)]
pub(super) struct Wanted {
    pub(super) hashes: SmallVec<[KeyHash; 8]>,
    partitions: [u64; PARTITIONS.div_ceil(u64::BITS as usize)],
}

impl Wanted {
    pub(super) fn add(&mut self, hash: KeyHash) {
        let partition = partition_of(hash);
        let (word, bit) = (&mut self.partitions[partition / 64], 1 << (partition % 64));
        if *word & bit == 0 {
            *word |= bit;
            self.hashes.push(hash);
        }
    }
}
