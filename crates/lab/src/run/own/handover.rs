//! From a push to the client that waits for it.

use std::time::Duration;

use crate::load::handover::{HandoverError, Handovers};
use crate::load::io_threads::IoThreads;
use crate::operation::OperationKind;
use crate::run::cell::CellError;
use crate::run::round::round_of_times;
use crate::run::stage::Stage;

pub(super) fn run(stage: &mut Stage<'_>, _: &str) -> Result<(), CellError> {
    stage.can_do(OperationKind::AddMember)?;
    if stage.instance.is_none() {
        return Err(CellError::Cannot("attached: the lab logs in nowhere for this".to_owned()));
    }
    let address = stage.target.address;
    let cores = stage.bench.cores.server.len();
    let handovers = Handovers {
        time: stage.bench.measured(),
        pause: Duration::from_micros(200),
        element_bytes: 64,
        threads: if IoThreads::are_told(address, cores) { cores } else { 1 },
        waiting: stage.bench.waiting,
    };
    let mut before = None;
    let seen = handovers.run(address, || before = stage.usage()).map_err(|error| match error {
        HandoverError::Unexpected(what) => CellError::Wrong(what),
        HandoverError::NotWaiting => CellError::Broken(error.to_string()),
        HandoverError::Io(error) => error.into(),
    })?;
    let operations = seen.handover_ns.len();
    let push_p50 = seen.push_ns.value_at_quantile(0.5) as f64 / 1e3;
    let usage = before.zip(stage.usage());
    let round = round_of_times(seen.elapsed, operations, &seen.handover_ns, usage);
    stage.put("handover", None, round.with_extra([("push_p50_us", push_p50)]));
    Ok(())
}
