//! The section `Memory`.
//!
//! `used_memory` is what `maxmemory` limits: the data with its tables, free memory within slabs,
//! values that were removed but not freed yet, and the clients' buffers; and what open transactions
//! on spaces hold, which has limits of its own. `allocator_allocated`
//! excludes free memory within slabs. `allocator_resident` includes free slabs whose memory was not
//! returned to the system.

use super::text::Text;
use ladon_kernel::ctx::Ctx;
use ladon_kernel::node::Node;
use std::sync::atomic::Ordering::Relaxed;

pub(super) fn write(ctx: &mut Ctx<'_>, text: &mut Text) {
    let node = ctx.node;
    let facts = node.process.facts();
    node.look_at_transactions();
    let (used, fixed) = (node.used_memory(), node.keyspace.fixed_bytes());
    let peak = node.used_memory_peak();
    let overhead = node.overhead_memory();
    let data = node.data_memory().saturating_sub(fixed);
    let allocated = Allocated::of(node);
    text.section("Memory");
    text.bytes("used_memory", used);
    if let Some(resident) = facts.resident_bytes {
        text.bytes("used_memory_rss", resident);
    }
    text.bytes("used_memory_peak", peak);
    text.field("used_memory_peak_perc", percent(used, peak));
    text.field("used_memory_overhead", overhead);
    text.field("used_memory_startup", fixed);
    text.field("used_memory_dataset", data);
    text.field("used_memory_transactions", node.keyspace.spaces.transaction_bytes());
    text.field("used_memory_dataset_perc", percent(data, used.saturating_sub(fixed)));
    text.field("allocator_allocated", allocated.in_use);
    text.field("allocator_active", allocated.active);
    text.field("allocator_resident", allocated.resident);
    if let Some(machine) = facts.machine_memory_bytes {
        text.bytes("total_system_memory", machine);
    }
    let (vms, scripts) = (node.scripts.vm_bytes(), node.scripts.cache.bytes() as u64);
    text.bytes("used_memory_lua", vms);
    text.field("used_memory_vm_eval", vms);
    text.field("used_memory_scripts_eval", scripts);
    text.field("number_of_cached_scripts", node.scripts.cache.count());
    let libraries = node.keyspace.library_counts();
    text.field("number_of_functions", libraries.functions);
    text.field("number_of_libraries", libraries.libraries);
    // The same machines run scripts and functions.
    text.none_of(&["used_memory_vm_functions"]);
    text.bytes("used_memory_vm_total", vms);
    text.field("used_memory_functions", libraries.bytes);
    text.bytes("used_memory_scripts", scripts + libraries.bytes as u64);
    text.bytes("maxmemory", node.settings.maxmemory());
    text.field("maxmemory_policy", node.settings.maxmemory_policy().name());
    let share = ratio(allocated.active, allocated.in_use);
    text.field("allocator_frag_ratio", format_args!("{share:.2}"));
    text.field("allocator_frag_bytes", allocated.active - allocated.in_use);
    if let Some(resident) = facts.resident_bytes {
        let overhead = ratio(resident, allocated.resident);
        text.field("rss_overhead_ratio", format_args!("{overhead:.2}"));
        text.field("rss_overhead_bytes", resident as i64 - allocated.resident as i64);
        let ratio = resident as f64 / used.max(1) as f64;
        text.field("mem_fragmentation_ratio", format_args!("{ratio:.2}"));
        text.field("mem_fragmentation_bytes", resident as i64 - used as i64);
    }
    text.none_of(&["mem_not_counted_for_evict", "mem_replication_backlog", "mem_clients_slaves"]);
    text.field("mem_total_replication_buffers", 0);
    text.field("mem_clients_normal", node.clients_memory());
    text.field("mem_cluster_links", 0);
    text.field("mem_aof_buffer", node.durability.status().log_backlog_bytes);
    text.field("mem_allocator", node.process.allocator());
    text.flag("active_defrag_running", node.keyspace.is_compacting());
    text.field("lazyfree_pending_objects", node.lazy_free.pending.load(Relaxed));
    text.field("lazyfree_pending_bytes", node.lazy_free.pending_bytes());
    text.field("lazyfreed_objects", node.lazy_free.freed.load(Relaxed));
}

/// The allocator's memory for data.
pub(crate) struct Allocated {
    /// Bytes in use.
    pub(crate) in_use: u64,
    /// Including free memory within slabs.
    pub(crate) active: u64,
    /// Including free slabs whose memory was not returned to the system.
    pub(crate) resident: u64,
}

impl Allocated {
    pub(crate) fn of(node: &Node) -> Allocated {
        let active = node.used_memory();
        let in_use = active - node.keyspace.slack_bytes().min(active);
        Allocated { in_use, active, resident: active + node.keyspace.idle_slab_bytes() }
    }
}

pub(crate) fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

fn percent(part: u64, whole: u64) -> String {
    format!("{:.2}%", part as f64 * 100.0 / whole.max(1) as f64)
}
