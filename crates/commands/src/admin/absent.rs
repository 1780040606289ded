//! What there is nothing of: modules, a cluster, masters to follow. Tools ask about these, and expect
//! the answers of a server that has none, not an unknown command.

use crate::shared::help::HELP;
use ladon_kernel::command::args::{integer_or, is};
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::command::spec::{Code, LockNeed};
use ladon_kernel::ctx::Ctx;

pub(crate) const COMMANDS: &[Code] = &[
    Code::container("module", &[Code::with_locks("list", LockNeed::None, modules), HELP]),
    Code::with_locks("replicaof", LockNeed::None, replicaof),
    Code::with_locks("slaveof", LockNeed::None, replicaof),
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

/// A server of its own is a master, and stays one; in a cluster, its leader says who follows.
fn replicaof(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    if !is(args[1], "no") || !is(args[2], "one") {
        integer_or(args[2], 0..=65535, "ERR Invalid master port")?;
        return Err(CommandError::text(
            "ERR a server of its own follows nobody: 'ladon cluster add-node MEMBER THIS --replica' \
             makes a node that follows a cluster's leader",
        ));
    }
    if !ctx.node.role.is_free() {
        return Err(CommandError::text(
            "ERR this node follows the leader of its cluster: 'ladon cluster failover' lets it lead, \
             'ladon cluster remove-node' lets it go",
        ));
    }
    ctx.reply.ok();
    Ok(())
}
