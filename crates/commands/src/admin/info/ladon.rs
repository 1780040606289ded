//! The section `Ladon`: figures without a name in Redis.

use super::text::Text;
use ladon_engine::PARTITIONS;
use ladon_kernel::ctx::Ctx;
use ladon_settings::Id;
use std::sync::atomic::Ordering::Relaxed;

pub(super) fn write(ctx: &mut Ctx<'_>, text: &mut Text) {
    let (node, status) = (ctx.node, ctx.node.durability.status());
    text.section("Ladon");
    text.field("gate", node.settings.value(Id::gate));
    text.field("log_end_lsn", node.durability.reserved().0);
    text.field("log_written_lsn", node.durability.written().0);
    text.field("log_durable_lsn", node.durability.durable().0);
    text.field("log_bytes", status.log_bytes);
    text.field("log_bytes_since_checkpoint", status.log_bytes_since_checkpoint);
    text.flag("log_accepts_writes", node.durability.accepts_writes());
    text.field("log_last_error", status.log_last_error.unwrap_or_default());
    text.field("checkpoint_keys", status.last_checkpoint_keys);
    text.field("checkpoint_bytes", status.last_checkpoint_bytes);
    text.field("recovery_keys", status.last_recovery_keys);
    text.field("recovery_seconds", format_args!("{:.3}", status.last_recovery_seconds));
    text.field("io_backend", &node.io_backend);
    text.field("io_threads", node.settings.io_threads());
    text.field("partitions", PARTITIONS);
    let aside = &ctx.node.aside;
    text.field("aside_jobs", aside.jobs.load(Relaxed));
    text.field("aside_repeated", aside.repeated.load(Relaxed));
    text.field("aside_gave_up", aside.gave_up.load(Relaxed));
    write_group(ctx, text);
    for (thread, stats) in node.stats.iter().enumerate() {
        let (commands, connections) = (&stats.commands_processed, &stats.connections_received);
        text.field(
            &format!("io_thread{thread}"),
            format_args!("commands={},connections={}", commands.get(), connections.get()),
        );
    }
}

/// How the node takes part in its group, where it may.
fn write_group(ctx: &Ctx<'_>, text: &mut Text) {
    let Some(cluster) = &ctx.node.cluster else { return };
    let view = cluster.view();
    text.field("group_role", ctx.node.role.get().name());
    text.field("group_member", view.member);
    text.field("group_leader", view.leader.unwrap_or(0));
    text.field("group_term", view.term);
    text.field("group_committed_lsn", view.committed.0);
    text.field("group_applied_lsn", view.applied.0);
    text.field("group_rewinds", view.rewinds);
    text.field("group_taken_back_bytes", view.taken_back_bytes);
}
