//! One measurement of one server: warm up, then look at clock, CPU and replies at the same moments.

use std::time::Duration;

use serde::Serialize;

use super::WorkError;
use super::common::{Bench, failed_on};
use crate::load::data::Data;
use crate::load::driver::Driver;
use crate::load::workload::{Mix, Strings, Workload};
use crate::measure::cpu::waited_for_core;
use crate::systems::server::Server;

/// What to put on the server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// Which requests.
    pub mix: Mix,
    /// Requests that each connection sends at once.
    pub depth: usize,
    /// Connections.
    pub clients: usize,
    /// How long to measure, after the warm-up.
    pub seconds: f64,
    /// Seed of the random keys.
    pub seed: u64,
}

/// What one measurement showed.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// CPU microseconds, user and system, of all the server's threads, per operation.
    pub cpu_us: f64,
    /// Of that CPU time the share spent in the kernel, 0 to 1.
    pub kernel_share: f64,
    /// Operations per second.
    pub per_second: f64,
    /// Latency of the median reply in microseconds.
    pub p50_us: f64,
    /// Latency in microseconds that 99 % of replies did not exceed.
    pub p99_us: f64,
    /// The same for 99.9 %.
    pub p999_us: f64,
    /// CPU time of the server through elapsed time: 1 is one core, fully used.
    pub server_busy: f64,
    /// How long the server's threads were ready but had no core, all together, through elapsed time:
    /// other programs took it, or the server has more threads than cores.
    pub server_waited: f64,
    /// Share of the time in which the load generator had something to do.
    pub load_busy: f64,
    /// Checked replies.
    pub replies: u64,
}

/// At the start of each measurement, unmeasured: caches, branch predictors, socket buffers.
const WARM_UP: Duration = Duration::from_millis(200);

/// How long a server that answers nothing at all is waited for.
const PATIENCE_MAX: Duration = Duration::from_secs(10);

impl Measured {
    /// Puts `load` on `server`, whose keys are `data`.
    ///
    /// # Errors
    /// A wrong answer, or none at all.
    pub fn take(
        bench: &Bench,
        server: &Server,
        data: &mut Data,
        load: &Load,
    ) -> Result<Self, WorkError> {
        let strings = Strings::new(data, load.mix, load.depth, load.seed);
        Self::of(bench, server, load.clients, load.seconds, strings)
    }

    /// Puts `workload` on `server` for `seconds` over `clients` connections.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub fn of(
        bench: &Bench,
        server: &Server,
        clients: usize,
        seconds: f64,
        workload: impl Workload,
    ) -> Result<Self, WorkError> {
        let failed = failed_on(server);
        let clock = server.cpu_clock()?;
        let mut driver =
            Driver::connect(server.address, clients, bench.waiting, workload).map_err(&failed)?;
        driver.run(WARM_UP).map_err(&failed)?;
        let (ticks, waited) = (clock.user_and_system_ticks(), waited_for_core(server.pid()));
        let before = clock.now()?;
        let stretch = Duration::from_secs_f64(seconds);
        let mut sample = driver.run(stretch).map_err(&failed)?;
        // On a machine that others keep busy a short stretch may see no reply at all.
        while sample.replies == 0 && sample.elapsed < PATIENCE_MAX {
            sample.add(&driver.run(stretch).map_err(&failed)?);
        }
        let used = clock.now()? - before;
        let waited = waited_for_core(server.pid()).saturating_sub(waited);
        let ticks_after = clock.user_and_system_ticks();
        driver.drain().map_err(&failed)?;
        if sample.replies == 0 {
            let what = format!("answered nothing in {:?}", sample.elapsed);
            return Err(WorkError::Unexpected { system: server.label.clone(), what });
        }
        let kernel_share = ticks.zip(ticks_after).map_or(f64::NAN, |(before, after)| {
            let (user, system) = (after.0 - before.0, after.1 - before.1);
            system as f64 / (user + system).max(1) as f64
        });
        let elapsed = sample.elapsed.as_secs_f64();
        Ok(Self {
            cpu_us: used.as_secs_f64() * 1e6 / sample.replies as f64,
            kernel_share,
            per_second: sample.per_second(),
            p50_us: sample.latency_us(0.5),
            p99_us: sample.latency_us(0.99),
            p999_us: sample.latency_us(0.999),
            server_busy: used.as_secs_f64() / elapsed,
            server_waited: waited.as_secs_f64() / elapsed,
            load_busy: sample.busy.as_secs_f64() / elapsed,
            replies: sample.replies,
        })
    }

    /// For the progress line.
    #[must_use]
    pub fn brief(&self) -> String {
        format!(
            "{:.2} us CPU, {:.0} k/s, p99 {:.0} us, server {:.0} %, load {:.0} %",
            self.cpu_us,
            self.per_second / 1000.0,
            self.p99_us,
            self.server_busy * 100.0,
            self.load_busy * 100.0
        )
    }

    /// Whether the load generator, not the server, held this measurement back.
    #[must_use]
    pub fn limited_by_load(&self) -> bool {
        self.server_busy + self.server_waited < 0.9 && self.load_busy > 0.9
    }
}
