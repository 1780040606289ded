//! What puts load on a stage's system: the lab's driver on one thread or several, the system's own
//! client, or another program.

use std::time::{Duration, Instant};

use super::{BULK_DEPTH, BULK_USERS, CellError, QUESTIONS_DEPTH, Stage};
use crate::dialects::Dialect;
use crate::load::driver::Driver;
use crate::load::question::{Asking, Question};
use crate::load::stream::Stream;
use crate::load::workload::Workload;
use crate::measure::usage::Usage;
use crate::results::schema::Round;
use crate::run::bench::Bench;
use crate::run::helper::Helper;
use crate::run::round::round_of;
use crate::run::subject::Subject;
use crate::run::{tool, watch};
use crate::systems::cleanup;
use crate::systems::instance::Instance;
use crate::systems::system::DriverKind;
use crate::traffic::Asked;
use crate::traffic::speaking::Speaking;
use crate::work::Phase;
use crate::works;

/// How long a reply is waited for where the run's time is limited.
const PATIENCE_WITH_BUDGET: Duration = Duration::from_secs(8);

/// Why a client of a system's own has no part in works about connections.
const ONE_CONNECTION: &str =
    "all users of its client share a connection: that is the work `shared`";

/// What connections cost that do nothing.
pub struct Idle {
    /// Without them, and at the end.
    pub usage: (Usage, Usage),
    /// When all had been used.
    pub began: Usage,
    /// How long they did nothing.
    pub time: Duration,
}

impl Stage<'_> {
    /// Does all of `asked`, which ends by itself, unmeasured.
    ///
    /// # Errors
    /// See [`CellError`].
    pub fn prepare(&mut self, asked: &Asked) -> Result<(), CellError> {
        if self.has_helper() {
            self.can_all(asked)?;
            return self.helper()?.prepare(asked, BULK_USERS, BULK_DEPTH);
        }
        // Requests that must not be under way together on one connection are sent one by one.
        let depth = if self.subject.can_pipeline().is_ok() { BULK_DEPTH } else { 1 };
        for number in 0..self.worlds.len() {
            let mut dialect = self.dialect_for(asked)?;
            let streams = self.open(BULK_USERS, dialect.as_mut())?;
            let traffic = self.worlds[number].traffic(asked, BULK_USERS, depth);
            let speaking = Speaking::new(dialect, traffic, BULK_USERS, depth);
            let mut driver = Driver::over(streams, BULK_USERS, self.bench.waiting, speaking)?;
            let day = Duration::from_secs(86_400);
            driver.run_while(day, cleanup::go_on())?;
            if cleanup::is_ending() {
                return Err(CellError::Interrupted);
            }
        }
        Ok(())
    }

    /// Connects `connections` times and says what `dialect` says first.
    ///
    /// # Errors
    /// [`CellError::Broken`] when that fails.
    pub fn open(
        &self,
        connections: usize,
        dialect: &mut dyn Dialect,
    ) -> Result<Vec<Stream>, CellError> {
        let open = |number| {
            Stream::open(&self.target, dialect).map_err(|error| {
                CellError::Broken(format!("connection {number} of {connections}: {error}"))
            })
        };
        (0..connections).map(open).collect()
    }

    /// What all processes of the system have used so far; nothing is known of one that is attached.
    #[must_use]
    pub fn usage(&self) -> Option<Usage> {
        self.instance.as_ref().map(Instance::usage)
    }

    /// Puts a phase on the system and looks at clock, CPU and replies at the same moments.
    ///
    /// # Errors
    /// See [`CellError`].
    pub fn measure(&mut self, phase: &Phase) -> Result<Round, CellError> {
        if let Some(tool) = self.bench.tool {
            return tool::measure(tool, self, phase);
        }
        if self.has_helper() {
            return self.measure_by_helper(phase);
        }
        let mut dialect = self.dialect_for(&phase.asked)?;
        let connections = phase.connections.unwrap_or(phase.users).min(phase.users);
        if phase.depth > 1 || phase.users > connections {
            self.subject.can_pipeline().map_err(CellError::Cannot)?;
        }
        // One connection is one thread's, and a scan must know all keys that it passes.
        if self.worlds.len() > 1 && connections >= self.worlds.len() && !phase.asked.scans() {
            return self.measure_by_threads(phase, connections);
        }
        let streams = self.open(connections, dialect.as_mut())?;
        self.measure_over(phase, dialect, streams)
    }

    /// Whether a client of the system's own puts the load on it.
    pub(super) fn has_helper(&self) -> bool {
        matches!(self.subject, Subject::Found(found) if found.system.driver() == DriverKind::Helper)
    }

    fn can_all(&self, asked: &Asked) -> Result<(), CellError> {
        asked.kinds().into_iter().try_for_each(|kind| self.can_do(kind))
    }

    /// The running client, started if it is not.
    pub(super) fn helper(&mut self) -> Result<&mut Helper, CellError> {
        if self.helper.is_none() {
            let Subject::Found(found) = self.subject else {
                return Err(CellError::Cannot("attached: no client of its own".to_owned()));
            };
            let (address, seed) = (self.target.address, self.bench.seed);
            let process = found.system.helper(&found.program, address, seed);
            self.helper = Some(Helper::start(&process.map_err(CellError::Cannot)?, self.bench)?);
        }
        let none = || CellError::Broken("the client's helper is gone".to_owned());
        self.helper.as_mut().ok_or_else(none)
    }

    fn measure_by_helper(&mut self, phase: &Phase) -> Result<Round, CellError> {
        self.can_all(&phase.asked)?;
        // Where a connection takes one request at a time, a client has as many as there are users.
        let shares = self.subject.can_pipeline();
        if phase.connections.is_some() {
            shares.map_err(CellError::Cannot)?;
        } else if self.work.name == works::connections::WORK.name && shares.is_ok() {
            return Err(CellError::Cannot(ONE_CONNECTION.to_owned()));
        }
        self.helper()?;
        let (instance, bench) = (&self.instance, self.bench);
        let Some(helper) = &mut self.helper else {
            return Err(CellError::Broken("the client's helper is gone".to_owned()));
        };
        let usage = || instance.as_ref().map(Instance::usage);
        let measured = helper.measure(phase, bench, usage)?;
        if measured.sample.replies == 0 {
            let text = format!("answered nothing in {:?}", measured.sample.elapsed);
            return Err(CellError::Broken(text));
        }
        let own = measured.own.as_secs_f64() / measured.sample.elapsed.as_secs_f64();
        let load_busy = own / bench.cores.load.len().max(1) as f64;
        let mut round = round_of(&measured.sample, measured.usage, phase.counts_as, load_busy);
        let cores = bench.cores.server.len().max(1) as f64;
        round.load_limited = load_busy > 0.9 && round.server_busy < 0.9 * cores;
        if bench.rate.is_some() {
            round.extra.insert("behind_ms".to_owned(), measured.behind.as_secs_f64() * 1e3);
        }
        Ok(round)
    }

    /// As [`Self::measure`], in this dialect and over these connections, which may lead to
    /// different nodes: user `number` speaks on connection `number` modulo their count. On one
    /// thread.
    ///
    /// # Errors
    /// See [`CellError`].
    pub fn measure_over(
        &mut self,
        phase: &Phase,
        dialect: Box<dyn Dialect>,
        streams: Vec<Stream>,
    ) -> Result<Round, CellError> {
        // No keys come after the last one's: a scan that runs off its end finds what it should.
        let (last, pids) = (self.worlds.len() - 1, self.pids());
        let warm_up = self.warm_up(phase);
        let world = &mut self.worlds[last];
        let traffic = world.traffic(&phase.asked, phase.users, phase.depth);
        let speaking = Speaking::new(dialect, traffic, phase.users, phase.depth);
        let users = 0..phase.users;
        let driver = paced(self.bench, phase, users, streams, speaking)?;
        watch::watch(self.bench, warm_up, &pids, phase.counts_as, driver)
    }

    /// Several threads, each with its part of the users and of the keys.
    fn measure_by_threads(
        &mut self,
        phase: &Phase,
        connections: usize,
    ) -> Result<Round, CellError> {
        let threads = self.worlds.len();
        let mut parts: Vec<watch::LoadThread<'_>> = Vec::new();
        let mut opened = Vec::new();
        for number in 0..threads {
            let mut dialect = self.dialect_for(&phase.asked)?;
            let streams =
                self.open(part_of(connections, number, threads).len(), dialect.as_mut())?;
            opened.push((dialect, streams));
        }
        let (bench, asked, pids) = (self.bench, &phase.asked, self.pids());
        let warm_up = self.warm_up(phase);
        for (number, (world, (dialect, streams))) in self.worlds.iter_mut().zip(opened).enumerate()
        {
            let users = part_of(phase.users, number, threads);
            parts.push(Box::new(move |share| {
                let traffic = world.traffic(asked, users.len(), phase.depth);
                let speaking = Speaking::new(dialect, traffic, users.len(), phase.depth);
                share.run(paced(bench, phase, users, streams, speaking))
            }));
        }
        watch::watch_threads(bench, warm_up, &pids, phase.counts_as, parts)
    }

    /// Opens `count` connections, asks once over each, and lets them be for `time`.
    ///
    /// # Errors
    /// See [`CellError`].
    pub fn idle(&mut self, count: usize, asked: &Asked, time: Duration) -> Result<Idle, CellError> {
        if self.has_helper() {
            let text = "only driven in the lab's own protocols: its client opens what it needs";
            return Err(CellError::Cannot(text.to_owned()));
        }
        let pids = self.pids();
        if pids.is_empty() {
            let text = "attached: the processes of another machine are not seen";
            return Err(CellError::Cannot(text.to_owned()));
        }
        let before = Usage::of_processes(&pids);
        let mut dialect = self.dialect_for(asked)?;
        let streams = self.open(count, dialect.as_mut())?;
        let traffic = self.worlds[0].traffic(asked, count, 1);
        let speaking = Speaking::new(dialect, traffic, count, 1);
        let mut driver = Driver::over(streams, count, self.bench.waiting, speaking)?;
        driver.run_while(Duration::ZERO, cleanup::go_on())?;
        driver.drain()?;
        let began = Usage::of_processes(&pids);
        let clock = Instant::now();
        while clock.elapsed() < time && !cleanup::is_ending() {
            std::thread::sleep(Duration::from_millis(20).min(time));
        }
        let time = clock.elapsed();
        let after = Usage::of_processes(&pids);
        drop(driver);
        Ok(Idle { usage: (before, after), began, time })
    }

    /// What goes before a phase's measurement.
    fn warm_up(&self, phase: &Phase) -> Duration {
        if phase.asked.ends() { Duration::ZERO } else { self.bench.warm_up() }
    }

    /// The system's processes; none are known of one that is attached.
    fn pids(&self) -> Vec<u32> {
        self.instance.as_ref().map(Instance::pids).unwrap_or_default()
    }

    /// Lets a workload in RESP run to its end, unmeasured: `users` users with a connection each.
    ///
    /// # Errors
    /// See [`CellError`].
    pub fn run_resp<W: Workload>(&self, users: usize, workload: W) -> Result<(), CellError> {
        let mut dialect = self.subject.dialect().map_err(CellError::Cannot)?;
        let streams = self.open(users, dialect.as_mut())?;
        let mut driver = Driver::over(streams, users, self.bench.waiting, workload)?;
        driver.run_while(Duration::from_secs(86_400), cleanup::go_on())?;
        if cleanup::is_ending() { Err(CellError::Interrupted) } else { Ok(()) }
    }

    /// Measures any workload in RESP: `users` users with a connection each.
    ///
    /// # Errors
    /// See [`CellError`].
    pub fn measure_resp<W: Workload>(
        &mut self,
        users: usize,
        workload: W,
    ) -> Result<Round, CellError> {
        let mut dialect = self.subject.dialect().map_err(CellError::Cannot)?;
        let streams = self.open(users, dialect.as_mut())?;
        let driver = Driver::over(streams, users, self.bench.waiting, workload)?;
        watch::watch(self.bench, self.bench.warm_up(), &self.pids(), 1, driver)
    }

    /// Measures any workload over streams that are open: `users` users share them.
    ///
    /// # Errors
    /// See [`CellError`].
    pub fn measure_streams<W: Workload>(
        &self,
        streams: Vec<Stream>,
        users: usize,
        workload: W,
    ) -> Result<Round, CellError> {
        let driver = Driver::over(streams, users, self.bench.waiting, workload)?;
        watch::watch(self.bench, self.bench.warm_up(), &self.pids(), 1, driver)
    }

    /// Asks `question` about everything that it can be about, once, in RESP, unmeasured.
    ///
    /// # Errors
    /// See [`CellError`].
    pub fn ask_all(&self, users: usize, question: impl Question) -> Result<(), CellError> {
        self.run_resp(users, Asking::all_in_order(question, QUESTIONS_DEPTH))
    }
}

/// A driver for the users `users` of a phase, who keep to the run's rate, if there is one.
fn paced<W: Workload>(
    bench: &Bench,
    phase: &Phase,
    users: std::ops::Range<usize>,
    streams: Vec<Stream>,
    workload: W,
) -> Result<Driver<W>, CellError> {
    let mut driver = Driver::over(streams, users.len(), bench.waiting, workload)?;
    if bench.budget.is_some() {
        driver.set_patience(PATIENCE_WITH_BUDGET);
    }
    if let Some(rate) = bench.rate {
        let interval = Duration::from_secs_f64((phase.users * phase.depth) as f64 / rate);
        for (place, user) in users.enumerate() {
            let offset = interval.mul_f64(user as f64 / phase.users as f64);
            driver.pace(place, interval, offset);
        }
    }
    Ok(driver)
}

/// The part `number` of `parts` of `count` things, as even as it can be.
fn part_of(count: usize, number: usize, parts: usize) -> std::ops::Range<usize> {
    count * number / parts..count * (number + 1) / parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_threads_are_all_of_it_and_even() {
        for (count, parts) in [(5, 2), (100, 7), (3, 3)] {
            let ranges: Vec<_> = (0..parts).map(|number| part_of(count, number, parts)).collect();
            assert_eq!(ranges.iter().map(ExactSizeIterator::len).sum::<usize>(), count);
            assert!(ranges.iter().all(|range| range.len().abs_diff(count / parts) <= 1));
        }
    }
}
