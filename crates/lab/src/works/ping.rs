//! PING alone, beside what the loop and the kernel cost without a store: the first part of `pipeline`.

use super::figures::{axis, higher, lower};
use super::{Custom, Part, Scale, Step};
use crate::load::question::{Asking, Question};
use crate::run::stage::{CellError, Stage};
use crate::systems::system::DriverKind;

const NAME: &[&str] = &["ping"];
const DEPTHS: [usize; 3] = [1, 16, 64];
const USERS: usize = 50;

/// The part.
pub(super) fn part() -> Part {
    Part {
        name: NAME[0].to_owned(),
        title: format!("PING, {USERS} users; the bare loop is no store: what any costs at least"),
        axis: axis("requests at once", "requests"),
        figures: vec![
            lower("cpu_us", "server CPU per operation", "us"),
            higher("per_second", "throughput", "1/s"),
            lower("p50_us", "median latency", "us"),
            lower("p99_us", "latency, 99 %", "us"),
        ],
    }
}

/// The step that fills it.
pub(super) fn step() -> Step {
    Step::Custom(Custom {
        run,
        parts: NAME,
        only: Some(DriverKind::Resp),
        measurements: DEPTHS.len(),
        beside_seconds: 0.1,
        starts: 0,
    })
}

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

fn run(stage: &mut Stage<'_>, part: &str) -> Result<(), CellError> {
    for depth in depths(&stage.bench.scale) {
        let seed = stage.next_seed();
        let round = stage.measure_resp(USERS, Asking::at_random(Ping, depth, USERS, seed))?;
        stage.put(part, Some(depth as f64), round);
    }
    Ok(())
}

fn depths(scale: &Scale) -> Vec<usize> {
    scale.pipeline_or(&DEPTHS)
}
