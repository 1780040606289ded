//! `PING` alone, beside the cost of the loop and the kernel without a store.

use crate::load::question::{Asking, Question};
use crate::run::cell::CellError;
use crate::run::stage::Stage;
use crate::works::pipeline;

struct Ping;

impl Question for Ping {
    fn count(&self) -> u32 {
        1
    }

    fn write(&mut self, _: u32, to: &mut Vec<u8>) {
        to.extend_from_slice(b"*1\r\n$4\r\nPING\r\n");
    }

    fn answer(&self, _: u32, to: &mut Vec<u8>) {
        to.extend_from_slice(b"+PONG\r\n");
    }

    fn answer_bytes_max(&self) -> usize {
        7
    }
}

/// Measures `PING` at each depth.
pub(super) fn run(stage: &mut Stage<'_>, part: &str) -> Result<(), CellError> {
    for depth in pipeline::ping_depths(&stage.bench.scale) {
        let seed = stage.next_seed();
        let round = stage.measure_resp(
            pipeline::PING_USERS,
            Asking::at_random(Ping, depth, pipeline::PING_USERS, seed),
        )?;
        stage.put(part, Some(depth as f64), round);
    }
    Ok(())
}
