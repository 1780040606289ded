//! The sections `Commandstats`, `Errorstats` and `Latencystats`.

use super::text::Text;
use ladon_kernel::ctx::Ctx;
use ladon_kernel::statistics::stats::CommandStats;
use std::collections::BTreeMap;
use std::fmt::Write;

pub(super) fn write_commandstats(ctx: &mut Ctx<'_>, text: &mut Text) {
    let node = ctx.node;
    text.section("Commandstats");
    for (id, entry) in node.table.iter() {
        let sum = |counter: fn(&CommandStats) -> u64| -> u64 {
            node.stats.iter().map(|stats| counter(stats.command(id))).sum()
        };
        let (calls, rejected) = (sum(|s| s.calls.get()), sum(|s| s.rejected.get()));
        let failed = sum(|s| s.failed.get());
        if calls == 0 && rejected == 0 && failed == 0 {
            continue;
        }
        let nanoseconds = sum(|s| s.nanoseconds.get());
        let per_call = nanoseconds as f64 / 1000.0 / calls.max(1) as f64;
        text.field(
            &format!("cmdstat_{}", entry.full_name),
            format_args!(
                "calls={calls},usec={},usec_per_call={per_call:.2},\
                 rejected_calls={rejected},failed_calls={failed}",
                nanoseconds / 1000
            ),
        );
    }
}

pub(super) fn write_errorstats(ctx: &mut Ctx<'_>, text: &mut Text) {
    let mut errors: BTreeMap<String, u64> = BTreeMap::new();
    for stats in ctx.node.stats.iter() {
        for (code, count) in &*stats.errors.lock() {
            *errors.entry(code.clone()).or_default() += count;
        }
    }
    text.section("Errorstats");
    for (code, count) in errors {
        text.field(&format!("errorstat_{code}"), format_args!("count={count}"));
    }
}

pub(super) fn write_latencystats(ctx: &mut Ctx<'_>, text: &mut Text) {
    let node = ctx.node;
    let percentiles = node.settings.latency_tracking_info_percentiles();
    text.section("Latencystats");
    if !node.settings.latency_tracking() {
        return;
    }
    for (id, entry) in node.table.iter() {
        let latency = node.latency(id);
        if latency.count() == 0 {
            continue;
        }
        let mut shown = String::new();
        for percentile in &percentiles {
            let gap = if shown.is_empty() { "" } else { "," };
            let microseconds = latency.percentile(*percentile) as f64 / 1000.0;
            // Writing to a string cannot fail.
            let _ = write!(shown, "{gap}p{percentile}={microseconds:.3}");
        }
        text.field(&format!("latency_percentiles_usec_{}", entry.full_name), shown);
    }
}
