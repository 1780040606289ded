//! Passes settings to the keyspace, before the first key is stored and whenever they change.

use ladon_engine::{Keyspace, Tracking};
use ladon_settings::{EvictionPolicy, Settings};
use std::sync::atomic::Ordering::Relaxed;

/// Passes the sizes up to which collections stay packed, and the rules for tracking the use of
/// keys.
pub fn apply(keyspace: &Keyspace, settings: &Settings) {
    let limits = keyspace.limits();
    limits.set_intset_entries.store(settings.set_max_intset_entries(), Relaxed);
    limits.set_listpack_entries.store(settings.set_max_listpack_entries(), Relaxed);
    limits.set_listpack_value.store(settings.set_max_listpack_value(), Relaxed);
    limits.hash_listpack_entries.store(settings.hash_max_listpack_entries(), Relaxed);
    let value = usize::try_from(settings.hash_max_listpack_value());
    limits.hash_listpack_value.store(value.unwrap_or(usize::MAX), Relaxed);
    limits.list_size.store(settings.list_max_listpack_size(), Relaxed);
    limits.list_depth.store(settings.list_compress_depth(), Relaxed);
    limits.zset_listpack_entries.store(settings.zset_max_listpack_entries(), Relaxed);
    limits.zset_listpack_value.store(settings.zset_max_listpack_value(), Relaxed);
    let node_bytes = usize::try_from(settings.stream_node_max_bytes());
    limits.stream_node_bytes.store(node_bytes.unwrap_or(usize::MAX), Relaxed);
    limits.stream_node_entries.store(settings.stream_node_max_entries(), Relaxed);
    apply_rules(keyspace, settings);
}

/// Passes the rules for tracking the use of keys, as the eviction policy needs them.
fn apply_rules(keyspace: &Keyspace, settings: &Settings) {
    let tracking = tracking(settings.maxmemory_policy());
    keyspace.access_rules().set(tracking, settings.lfu_log_factor(), settings.lfu_decay_time());
}

fn tracking(policy: EvictionPolicy) -> Tracking {
    match policy {
        EvictionPolicy::VolatileLfu | EvictionPolicy::AllKeysLfu => Tracking::Frequency,
        EvictionPolicy::VolatileLrm | EvictionPolicy::AllKeysLrm => Tracking::Modification,
        _ => Tracking::Recency,
    }
}
