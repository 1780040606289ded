//! What the keyspace has to know of the settings, before the first key gets into it and whenever
//! they change.

use crate::kernel::eviction;
use ladon_engine::Keyspace;
use ladon_settings::Settings;
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
    eviction::apply_rules(keyspace, settings);
}
