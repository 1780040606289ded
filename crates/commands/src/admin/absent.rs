//! What there is nothing of: modules, a cluster of Redis. Tools ask about these, and expect
//! the answers of a server that has none, not an unknown command.

use crate::shared::help::HELP;
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::command::spec::{Code, LockNeed};
use ladon_kernel::ctx::Ctx;

pub(crate) const COMMANDS: &[Code] = &[
    Code::container("module", &[Code::with_locks("list", LockNeed::None, modules), HELP]),
    no_cluster("asking"),
    no_cluster("readonly"),
    no_cluster("readwrite"),
    Code::container("cluster", CLUSTER),
];

const CLUSTER: &[Code] = &[
    no_cluster("addslots"),
    no_cluster("addslotsrange"),
    no_cluster("bumpepoch"),
    no_cluster("count-failure-reports"),
    no_cluster("countkeysinslot"),
    no_cluster("delslots"),
    no_cluster("delslotsrange"),
    no_cluster("failover"),
    no_cluster("flushslots"),
    no_cluster("forget"),
    no_cluster("getkeysinslot"),
    no_cluster("help"),
    no_cluster("info"),
    no_cluster("keyslot"),
    no_cluster("links"),
    no_cluster("meet"),
    no_cluster("myid"),
    no_cluster("nodes"),
    no_cluster("replicas"),
    no_cluster("replicate"),
    no_cluster("reset"),
    no_cluster("saveconfig"),
    no_cluster("set-config-epoch"),
    no_cluster("setslot"),
    no_cluster("shards"),
    no_cluster("slaves"),
    no_cluster("slots"),
];

const fn no_cluster(name: &'static str) -> Code {
    Code::with_locks(name, LockNeed::None, |_, _| {
        Err(CommandError::text("ERR This instance has cluster support disabled"))
    })
}

fn modules(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    ctx.reply.array(0);
    Ok(())
}
