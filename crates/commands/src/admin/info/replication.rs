//! The sections `Replication`, `Modules` and `Cluster`.

use super::text::Text;
use ladon_kernel::ctx::Ctx;
use ladon_kernel::replication::{Place, Replica, Replication};
use ladon_kernel::upstream::{LinkState, UpstreamView};
use ladon_record::Lsn;
use std::sync::atomic::Ordering::Relaxed;

pub(super) fn write(ctx: &mut Ctx<'_>, text: &mut Text) {
    let node = ctx.node;
    text.section("Replication");
    let Some(replication) = node.replication() else {
        text.field("role", "master");
        write_replicas(ctx, &[], Lsn::ZERO, text);
        let id = node.replication_id.lock().clone();
        write_id(ctx, &id, None, node.durability.reserved(), text);
        return write_backlog(ctx, text);
    };
    text.field("role", if replication.is_master { "master" } else { "slave" });
    if !replication.is_master {
        write_link(&replication, text);
    }
    write_replicas(ctx, &replication.replicas, replication.offset, text);
    write_ids(ctx, &replication, text);
    write_backlog(ctx, text);
}

/// A replica's link to its master.
fn write_link(replication: &Replication, text: &mut Text) {
    let link = replication.link.as_ref();
    let known = link.map(|link| link.primary.clone());
    let Place { host, port } = known.or_else(|| replication.master.clone()).unwrap_or_default();
    let is_up = replication.master.is_some();
    let heard = replication.heard.map_or(-1, |heard| heard.as_secs() as i64);
    text.field("master_host", host);
    text.field("master_port", port);
    text.field("master_link_status", if is_up { "up" } else { "down" });
    text.field("master_last_io_seconds_ago", if is_up { heard } else { -1 });
    let is_syncing = link.is_some_and(|link| link.state == LinkState::Sync);
    text.flag("master_sync_in_progress", is_syncing);
    text.field("slave_read_repl_offset", replication.offset.0);
    text.field("slave_repl_offset", replication.view.applied.0);
    if let Some(UpstreamView { sync: (read, total), .. }) = link.filter(|_| is_syncing) {
        let share = *read as f64 * 100.0 / (*total).max(1) as f64;
        text.field("master_sync_total_bytes", total);
        text.field("master_sync_read_bytes", read);
        text.field("master_sync_left_bytes", total.saturating_sub(*read));
        text.field("master_sync_perc", format_args!("{share:.2}"));
        text.field("master_sync_last_io_seconds_ago", heard);
    }
    if !is_up {
        let down = link.and_then(|link| link.down).map(|down| down.as_secs() as i64);
        text.field("master_link_down_since_seconds", down.unwrap_or(heard));
    }
    // Zero: never to be the master.
    text.field("slave_priority", if replication.votes() || link.is_some() { 100 } else { 0 });
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

fn write_ids(ctx: &Ctx<'_>, replication: &Replication, text: &mut Text) {
    let before = replication.runs.as_ref().and_then(|(_, before)| before.as_ref());
    write_id(ctx, &replication.id(), before, replication.offset, text);
}

/// What identifies the data's history, and what did before, up to where.
fn write_id(ctx: &Ctx<'_>, id: &str, before: Option<&(String, Lsn)>, offset: Lsn, text: &mut Text) {
    let state = ctx.node.upstream.as_ref().map(|upstream| upstream.failover_state());
    text.field("master_failover_state", state.unwrap_or_default().name());
    text.field("master_replid", id);
    match before {
        Some((id, _)) => text.field("master_replid2", id),
        None => text.field("master_replid2", "0".repeat(40)),
    }
    text.field("master_repl_offset", offset.0);
    text.field("second_repl_offset", before.map_or(-1, |(_, end)| end.0 as i64));
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
