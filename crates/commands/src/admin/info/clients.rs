//! The section `Clients`.

use super::text::Text;
use ladon_engine::PARTITIONS;
use ladon_kernel::client::clients::ClientInfo;
use ladon_kernel::ctx::Ctx;
use std::sync::atomic::Ordering::Relaxed;

/// Number of keys that clients wait for, and of those whose loss ends a wait.
fn awaited_keys(ctx: &mut Ctx<'_>) -> (usize, usize) {
    // As in the section `Keyspace`: a running transaction holds all partitions already.
    let rounds = if ctx.in_exec { 1 } else { PARTITIONS };
    (0..rounds).fold((0, 0), |(all, by_loss), partition| {
        // Without the partitions that a long script holds.
        let here = ctx.on_partition(partition, |tx| tx.awaited_keys()).unwrap_or_default();
        (all + here.0, by_loss + here.1)
    })
}

pub(super) fn write(ctx: &mut Ctx<'_>, text: &mut Text) {
    let node = ctx.node;
    let clients = node.clients.list();
    let largest = |bytes: fn(&ClientInfo) -> usize| {
        clients.iter().map(|client| bytes(client)).max().unwrap_or(0)
    };
    let watching = clients.iter().map(|client| client.watched.load(Relaxed));
    text.section("Clients");
    text.field("connected_clients", clients.len());
    text.field("cluster_connections", 0);
    text.field("maxclients", node.settings.maxclients());
    let input = largest(|client| client.query_capacity.load(Relaxed));
    text.field("client_recent_max_input_buffer", input);
    let output = largest(|client| client.output_bytes.load(Relaxed));
    text.field("client_recent_max_output_buffer", output);
    let blocked = clients.iter().filter(|client| client.blocked.load(Relaxed)).count();
    text.field("blocked_clients", blocked);
    text.field("tracking_clients", node.tracking.clients());
    let subscribed = clients.iter().filter(|client| client.is_subscribed()).count();
    text.field("pubsub_clients", subscribed);
    text.field("watching_clients", watching.clone().filter(|&watched| watched > 0).count());
    let timed = clients.iter().filter(|client| client.times_out.load(Relaxed)).count();
    text.field("clients_in_timeout_table", timed);
    text.field("total_watched_keys", watching.map(u64::from).sum::<u64>());
    let (awaited, by_loss) = if blocked == 0 { (0, 0) } else { awaited_keys(ctx) };
    text.field("total_blocking_keys", awaited);
    text.field("total_blocking_keys_on_nokey", by_loss);
}
