//! What is counted and timed: per command, per thread, per event.

pub mod batch_time;
pub mod command_logs;
pub mod counter;
pub mod failed_logins;
pub mod histogram;
pub mod hot_keys;
pub mod item_counts;
pub mod key_prefixes;
pub mod latency_events;
pub mod rates;
pub mod stats;
pub mod sync_times;
pub mod timing;
pub mod undoable_counts;
