//! What the keyspace has to know of the settings, before the first key gets into it and whenever
//! they change.

use ladon_engine::{Keyspace, Tracking};
use ladon_settings::{EvictionPolicy, Settings};
use std::sync::atomic::Ordering::Relaxed;

/// Tells the keyspace up to where collections stay packed, and what is to be known of the use of
/// keys, as the settings say now.
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
    apply_rules(keyspace, settings);
}

/// Tells the keyspace what the policy needs to know of each key's use.
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
