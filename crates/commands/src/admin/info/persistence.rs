//! The section `Persistence`: Redis' RDB corresponds to the checkpoint, its AOF to the log with the
//! checkpoint that precedes it.

use super::text::Text;
use ladon_kernel::ctx::Ctx;
use ladon_record::Gate;

pub(super) fn write(ctx: &mut Ctx<'_>, text: &mut Text) {
    let node = ctx.node;
    let status = node.durability.status();
    let now = ctx.now_ms / 1000;
    let current = status.checkpoint_started_unix.filter(|_| status.checkpoint_in_progress);
    let current_seconds = current.map_or(-1, |started| now.saturating_sub(started) as i64);
    let last_seconds = status.last_checkpoint_seconds.map_or(-1, |seconds| seconds as i64);
    let word = |ok: bool| if ok { "ok" } else { "err" };
    let last = word(status.last_checkpoint_ok);
    text.section("Persistence");
    text.flag("loading", node.loading.is_some());
    // Nothing is ever forked.
    text.none_of(&["async_loading", "current_cow_peak", "current_cow_size"]);
    text.field("current_cow_size_age", 0);
    text.field("current_fork_perc", format_args!("{:.2}", status.checkpoint_progress * 100.0));
    text.field("rdb_changes_since_last_save", status.changes_since_checkpoint);
    text.flag("rdb_bgsave_in_progress", status.checkpoint_in_progress);
    text.field("rdb_last_save_time", status.last_checkpoint_unix);
    text.field("rdb_last_bgsave_status", last);
    text.field("rdb_last_bgsave_time_sec", last_seconds);
    text.field("rdb_current_bgsave_time_sec", current_seconds);
    text.field("rdb_saves", status.checkpoints_made);
    text.field("rdb_last_cow_size", 0);
    text.field("rdb_last_load_keys_loaded", status.last_recovery_keys);
    let enabled = node.settings.gate() != Gate::None;
    text.flag("aof_enabled", enabled);
    text.flag("aof_rewrite_in_progress", status.checkpoint_in_progress);
    text.flag("aof_rewrite_scheduled", false);
    text.field("aof_last_rewrite_time_sec", last_seconds);
    text.field("aof_current_rewrite_time_sec", current_seconds);
    text.field("aof_last_bgrewrite_status", last);
    text.field("aof_rewrites", status.checkpoints_made);
    text.field("aof_last_write_status", word(status.log_ok));
    text.field("aof_last_cow_size", 0);
    text.none_of(&["module_fork_in_progress", "module_fork_last_cow_size"]);
    if enabled {
        text.field("aof_current_size", status.log_bytes_since_checkpoint);
        text.field("aof_base_size", status.last_checkpoint_bytes);
        text.flag("aof_pending_rewrite", false);
        text.field("aof_buffer_length", status.log_backlog_bytes);
        text.field("aof_pending_bio_fsync", status.log_pending_syncs);
    }
    if let Some(loading) = &node.loading {
        let (done, total) = loading.bytes();
        let spent_ms = ctx.now_ms.saturating_sub(loading.began_ms);
        let eta_ms = (u128::from(spent_ms) * u128::from(total - done)).checked_div(done.into());
        let share = 100.0 * done as f64 / total.max(1) as f64;
        text.field("loading_start_time", loading.began_ms / 1000);
        text.field("loading_total_bytes", total);
        text.field("loading_loaded_bytes", done);
        text.field("loading_loaded_perc", format_args!("{share:.2}"));
        text.field("loading_eta_seconds", eta_ms.map_or(1, |ms| ms / 1000));
    }
}
