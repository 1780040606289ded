//! `PING` alone, beside the cost of the loop and the kernel without a store.

use crate::load::question::{Asking, ask};
use crate::run::cell::CellError;
use crate::run::stage::Stage;
use crate::works::pipeline;

/// Measures `PING` at each depth.
pub(super) fn run(stage: &mut Stage<'_>, part: &str) -> Result<(), CellError> {
    for depth in pipeline::ping_depths(&stage.bench.scale) {
        let seed = stage.next_seed();
        let ping = ask(
            (),
            1,
            |_, _, to| to.extend_from_slice(b"*1\r\n$4\r\nPING\r\n"),
            |_, _, to| to.extend_from_slice(b"+PONG\r\n"),
        )
        .answer_bytes_max(7);
        let asking = Asking::at_random(ping, depth, pipeline::PING_USERS, seed);
        let round = stage.measure_resp(pipeline::PING_USERS, asking)?;
        stage.put(part, Some(depth as f64), round);
    }
    Ok(())
}
