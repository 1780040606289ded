//! What connections cost that do nothing.

use crate::results::schema::Round;
use crate::run::cell::CellError;
use crate::run::stage::Stage;
use crate::traffic::Asked;
use crate::traffic::keyed::Deed;
use crate::works::connections::{IDLE_MIN, SPACE, idle_connections};

/// Opens them, uses each once, and watches the server meanwhile.
pub(super) fn run(stage: &mut Stage<'_>, part: &str) -> Result<(), CellError> {
    let count = idle_connections(&stage.bench.scale);
    let distribution = stage.bench.scale.distribution.unwrap_or_default();
    let asked = Asked::Keyed { space: SPACE, mix: vec![(100, Deed::Read)], distribution };
    let time = stage.bench.measured().max(IDLE_MIN);
    let idle = stage.idle(count, &asked, time)?;
    let (before, after) = idle.usage;
    let cpu = after.cpu().saturating_sub(idle.began.cpu());
    let grown = after.resident_bytes.saturating_sub(before.resident_bytes);
    let extra = [
        ("idle_cpu_ms", cpu.as_secs_f64() * 1e3 / idle.time.as_secs_f64()),
        ("bytes_each", grown as f64 / count as f64),
    ];
    let round = Round {
        per_second: f64::NAN,
        rss_bytes: Some(after.resident_bytes),
        ..Round::new(idle.time.as_secs_f64(), count as u64)
    };
    stage.put(part, None, round.with_extra(extra));
    Ok(())
}
