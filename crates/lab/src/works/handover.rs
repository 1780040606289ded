//! From a push to the client that waits for it.

use std::time::Duration;

use super::figures::lower;
use super::{Custom, Part, Plan, Scale, Settings, Step, Work};
use crate::load::handover::{HandoverError, Handovers};
use crate::load::io_threads::IoThreads;
use crate::operation::OperationKind;
use crate::results::schema::Round;
use crate::run::round::percentiles_of;
use crate::run::stage::{CellError, Stage};
use crate::systems::system::{DriverKind, Topology};

/// The work.
pub const WORK: Work = Work {
    name: "handover",
    title: "A queue: from a push to the client that waits",
    repeats: "no published test: what job queues over BLPOP do (Celery, Sidekiq, Resque)",
    what: "One connection waits in BLPOP, another pushes an element 200 microseconds later, one step at a time. \
           The time runs from the push until the element is read. Where a server has several threads and \
           tells them apart, the two connections are on different ones.",
    settings: Settings::Chosen,
    topology: Topology::Single,
    rounds_max: u32::MAX,
    plan,
};

fn plan(_: &Scale) -> Plan {
    let part = Part {
        name: "handover".to_owned(),
        title: "LPUSH to BLPOP, two connections".to_owned(),
        axis: None,
        figures: vec![
            lower("p50_us", "median", "us"),
            lower("p99_us", "99 %", "us"),
            lower("p999_us", "99.9 %", "us"),
            lower("push_p50_us", "median until the push's own reply", "us"),
            lower("cpu_us", "server CPU per hand-over", "us"),
        ],
    };
    let step = Custom {
        run,
        parts: &["handover"],
        only: Some(DriverKind::Resp),
        measurements: 1,
        beside_seconds: 0.1,
        starts: 0,
    };
    Plan { parts: vec![part], steps: vec![Step::Custom(step)] }
}

fn run(stage: &mut Stage<'_>, _: &str) -> Result<(), CellError> {
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
        HandoverError::Io(error) => CellError::Broken(error.to_string()),
    })?;
    let operations = seen.handover_ns.len();
    let used = before.zip(stage.usage()).map(|(before, after)| {
        let each = |time: Duration| time.as_secs_f64() * 1e6 / operations.max(1) as f64;
        (
            each(after.user.saturating_sub(before.user)),
            each(after.system.saturating_sub(before.system)),
        )
    });
    let push_p50 = seen.push_ns.value_at_quantile(0.5) as f64 / 1e3;
    let round = Round {
        seconds: seen.elapsed.as_secs_f64(),
        operations,
        per_second: operations as f64 / seen.elapsed.as_secs_f64(),
        cpu_user_us: used.map(|(user, _)| user),
        cpu_system_us: used.map(|(_, system)| system),
        latency_us: Some(percentiles_of(&seen.handover_ns)),
        load_busy: f64::NAN,
        server_busy: f64::NAN,
        extra: [("push_p50_us".to_owned(), push_p50)].into(),
        ..Round::default()
    };
    stage.put("handover", None, round);
    Ok(())
}
