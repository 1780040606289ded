//! The sections `Replication`, `Modules` and `Cluster`.

use super::text::Text;
use ladon_kernel::ctx::Ctx;
use ladon_kernel::replication::{Place, Replica, Replication};
use ladon_record::Lsn;
use std::sync::atomic::Ordering::Relaxed;

pub(super) fn write(ctx: &mut Ctx<'_>, text: &mut Text) {
    let node = ctx.node;
    text.section("Replication");
    let Some(replication) = node.replication() else {
        text.field("role", "master");
        write_replicas(ctx, &[], Lsn::ZERO, text);
        let id = node.replication_id.lock().clone();
        write_ids(&id, node.durability.reserved(), text);
        return write_backlog(ctx, text);
    };
    text.field("role", if replication.is_master { "master" } else { "slave" });
    if !replication.is_master {
        write_link(&replication, text);
    }
    write_replicas(ctx, &replication.replicas, replication.offset, text);
    write_ids(&replication.id(), replication.offset, text);
    write_backlog(ctx, text);
}

/// A replica's link to its master.
fn write_link(replication: &Replication, text: &mut Text) {
    let Place { host, port } = replication.master.clone().unwrap_or_default();
    let is_up = replication.master.is_some();
    let heard = replication.heard.map_or(-1, |heard| heard.as_secs() as i64);
    text.field("master_host", host);
    text.field("master_port", port);
    text.field("master_link_status", if is_up { "up" } else { "down" });
    text.field("master_last_io_seconds_ago", if is_up { heard } else { -1 });
    text.flag("master_sync_in_progress", false);
    text.field("slave_read_repl_offset", replication.offset.0);
    text.field("slave_repl_offset", replication.view.applied.0);
    if !is_up {
        text.field("master_link_down_since_seconds", heard);
    }
    // Zero: never to be the master.
    text.field("slave_priority", if replication.votes() { 100 } else { 0 });
    text.flag("slave_read_only", true);
    text.flag("replica_announced", true);
}

fn write_replicas(ctx: &Ctx<'_>, replicas: &[Replica], end: Lsn, text: &mut Text) {
    text.field("connected_slaves", replicas.len());
    if ctx.node.wants_replicas() {
        text.field("min_slaves_good_slaves", ctx.node.good_replicas.load(Relaxed));
    }
    for (number, replica) in replicas.iter().enumerate() {
        let Replica { place: Place { host, port }, has, silent, .. } = replica;
        // One whose log is not known gets the data first.
        let state = if has.is_some() { "online" } else { "wait_bgsave" };
        // What is acknowledged was in the log before.
        let offset = has.unwrap_or_default().min(end);
        let lag = silent.unwrap_or_default().as_secs();
        text.field(
            &format!("slave{number}"),
            format_args!("ip={host},port={port},state={state},offset={offset},lag={lag}"),
        );
    }
}

fn write_ids(id: &str, offset: Lsn, text: &mut Text) {
    text.field("master_failover_state", "no-failover");
    text.field("master_replid", id);
    text.field("master_replid2", "0".repeat(40));
    text.field("master_repl_offset", offset.0);
    text.field("second_repl_offset", -1);
}

fn write_backlog(ctx: &Ctx<'_>, text: &mut Text) {
    let node = ctx.node;
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
