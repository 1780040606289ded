//! Connections that do nothing: the last part of `connections`.

use std::time::Duration;

use super::figures::lower;
use super::{Custom, Part, Scale, Step};
use crate::results::schema::Round;
use crate::run::stage::{CellError, Stage};
use crate::traffic::Asked;
use crate::traffic::keyed::Deed;

const NAME: &[&str] = &["idle"];
/// As many as a pool of pools of a large site makes; fewer where little time is left.
const CONNECTIONS: usize = 10_000;
const CONNECTIONS_SMALL: usize = 2_000;
/// Timers of servers run every 100 ms, or slower: some of each must be seen.
const IDLE_MIN: Duration = Duration::from_millis(600);

fn connections(scale: &Scale) -> usize {
    let of_the_work = if scale.small { CONNECTIONS_SMALL } else { CONNECTIONS };
    let wanted = scale.clients.iter().copied().max().unwrap_or(of_the_work);
    if scale.connections_max == 0 { wanted } else { wanted.min(scale.connections_max) }
}

/// The part.
pub(super) fn part(scale: &Scale) -> Part {
    Part {
        name: NAME[0].to_owned(),
        title: format!("{} connections that were used once and do nothing", connections(scale)),
        axis: None,
        figures: vec![
            lower("idle_cpu_ms", "server CPU in a second", "ms"),
            lower("bytes_each", "memory of a connection", "bytes"),
        ],
    }
}

/// The step that fills it.
pub(super) fn step(scale: &Scale) -> Step {
    Step::Custom(Custom {
        run,
        parts: NAME,
        only: None,
        measurements: 0,
        beside_seconds: IDLE_MIN.as_secs_f64() + connections(scale) as f64 * 0.000_25,
        starts: 0,
    })
}

fn run(stage: &mut Stage<'_>, part: &str) -> Result<(), CellError> {
    let count = connections(&stage.bench.scale);
    let distribution = stage.bench.scale.distribution.unwrap_or_default();
    let asked = Asked::Keyed {
        space: super::connections::SPACE,
        mix: vec![(100, Deed::Read)],
        distribution,
    };
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
        seconds: idle.time.as_secs_f64(),
        operations: count as u64,
        per_second: f64::NAN,
        rss_bytes: Some(after.resident_bytes),
        load_busy: f64::NAN,
        server_busy: f64::NAN,
        extra: extra.map(|(key, value)| (key.to_owned(), value)).into(),
        ..Round::default()
    };
    stage.put(part, None, round);
    Ok(())
}
