//! A reader beside many clients that fill a server, and beside the same clients overwriting.

use std::time::Duration;

use crate::load::data::Data;
use crate::load::driver::Driver;
use crate::load::sample::Sample;
use crate::load::workload::{LANE_OF_READS, Mix, Strings};
use crate::operation::OperationKind;
use crate::results::schema::Round;
use crate::run::cell::CellError;
use crate::run::round::percentiles_of;
use crate::run::stage::{BULK_USERS, Stage};
use crate::systems::cleanup;
use crate::works::growth::{KNOWN, PARTS, depth, keys, users};

const KEY_BYTES: usize = 11;
const VALUE_BYTES: usize = 8;
/// Between the reader's requests.
const INTERVAL: Duration = Duration::from_millis(1);
/// How often it is asked whether all keys are there.
const SLICE: Duration = Duration::from_millis(200);
const LONG: Duration = Duration::from_millis(5);

/// Fills a server of its own and measures both parts.
pub(super) fn run(stage: &mut Stage<'_>, _: &str) -> Result<(), CellError> {
    stage.can_do(OperationKind::Set)?;
    stage.on_another(|stage| {
        let keys = keys(&stage.bench.scale);
        let mut data = Data::new(keys, KEY_BYTES, VALUE_BYTES);
        let first = Strings::new(&mut data, Mix::Load { until: KNOWN }, BULK_USERS, 0);
        stage.run_resp(BULK_USERS, first)?;
        let prober = users(&stage.bench.scale);
        for (part, mix) in
            PARTS.iter().zip([Mix::Grow { known: KNOWN, prober }, Mix::Probe { prober }])
        {
            let round = beside(stage, &mut data, mix, prober)?;
            stage.put(part, None, round);
        }
        Ok(())
    })
}

/// For as long as `mix` grows; for as long as a measurement takes where it does not.
fn beside(
    stage: &mut Stage<'_>,
    data: &mut Data,
    mix: Mix,
    prober: usize,
) -> Result<Round, CellError> {
    let mut dialect = stage.subject.dialect().map_err(CellError::Cannot)?;
    let streams = stage.open(prober + 1, dialect.as_mut())?;
    let strings = Strings::new(data, mix, depth(&stage.bench.scale), stage.next_seed());
    let mut driver = Driver::over(streams, prober + 1, stage.bench.waiting, strings)?;
    driver.probe(prober, INTERVAL);
    let mut sample = Sample::empty()?;
    if matches!(mix, Mix::Grow { .. }) {
        while !driver.workload().loaded() {
            if cleanup::is_ending() {
                return Err(CellError::Interrupted);
            }
            sample.add(&driver.run(SLICE)?);
        }
    } else {
        sample.add(&driver.run_while(stage.bench.measured(), cleanup::go_on())?);
    }
    sample.add(&driver.drain()?);
    let reads = &sample.latency_ns[LANE_OF_READS];
    let seconds = sample.elapsed.as_secs_f64();
    let extra = [
        ("over_5_ms", sample.lane_longer_than(LANE_OF_READS, LONG) as f64),
        ("writes_per_second", (sample.replies - reads.len()) as f64 / seconds),
        ("generator_us", sample.longest_turn.as_secs_f64() * 1e6),
    ];
    let latency_us = Some(percentiles_of(reads));
    Ok(Round { latency_us, ..Round::new(seconds, reads.len()) }.with_extra(extra))
}
