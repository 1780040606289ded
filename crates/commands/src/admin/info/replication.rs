//! The sections `Replication`, `Modules` and `Cluster`, for a standalone node.

use super::text::Text;
use ladon_kernel::ctx::Ctx;

pub(super) fn write(ctx: &mut Ctx<'_>, text: &mut Text) {
    let node = ctx.node;
    text.section("Replication");
    text.field("role", "master");
    text.field("connected_slaves", 0);
    if node.lacks_replicas() {
        text.field("min_slaves_good_slaves", 0);
    }
    text.field("master_failover_state", "no-failover");
    text.field("master_replid", &*node.replication_id.lock());
    text.field("master_replid2", "0".repeat(40));
    text.field("master_repl_offset", node.durability.reserved().0);
    text.field("second_repl_offset", -1);
    text.flag("repl_backlog_active", false);
    text.field("repl_backlog_size", node.settings.log_keep_bytes());
    text.none_of(&["repl_backlog_first_byte_offset", "repl_backlog_histlen"]);
}

pub(super) fn write_modules(_ctx: &mut Ctx<'_>, text: &mut Text) {
    text.section("Modules");
}

pub(super) fn write_cluster(_ctx: &mut Ctx<'_>, text: &mut Text) {
    text.section("Cluster");
    text.flag("cluster_enabled", false);
}
