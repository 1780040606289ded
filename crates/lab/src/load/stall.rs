//! One connection that does long commands while others read small values at fixed times: see
//! [`super::large`] for the commands.

use std::time::{Duration, Instant};

use super::data::Data;
use super::driver::{Driver, LoadError};
use super::large::{Command, Sizes, Stall};
use super::sample::Sample;
use super::stream::Stream;
use super::workload::{Mix, Strings};
use crate::load::driver::Waiting;

/// What is put on a server.
#[derive(Clone, Debug)]
pub struct Stretch<'a> {
    /// Commands, done in turn.
    pub commands: &'a [Command],
    /// On values of this size.
    pub sizes: Sizes,
    /// How long, at least.
    pub time: Duration,
    /// When a server that the readers alone keep busy, so that they never catch up, is given up.
    pub longest: Duration,
    /// From one command to the next, where it does not take longer.
    pub every: Duration,
    /// From one read to the next of each connection that reads.
    pub interval: Duration,
    /// Seed of the keys that are read.
    pub seed: u64,
    /// How the thread waits.
    pub waiting: Waiting,
}

/// What was seen of a stretch.
#[derive(Clone, Debug)]
pub struct Stalled {
    /// Reads in one lane, commands in the other.
    pub sample: Sample,
    /// Commands that were done.
    pub commands: usize,
}

/// Why a stretch is worth nothing.
#[derive(Debug, thiserror::Error)]
pub enum StretchError {
    /// A wrong answer, or none at all.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The readers alone keep the server busy.
    #[error("had not caught up after {0:?}")]
    Behind(Duration),
}

impl Stretch<'_> {
    /// Runs until no command is wanted any more, the time is over and every read that was due is
    /// answered. `streams` are the readers' connections and, the last, that of the commands.
    ///
    /// # Errors
    /// See [`StretchError`].
    pub fn run(
        &self,
        streams: Vec<Stream>,
        data: &mut Data,
        more: impl Fn() -> bool,
    ) -> Result<Stalled, StretchError> {
        let readers = streams.len() - 1;
        let gets = Strings::new(data, Mix::Get, 1, self.seed);
        let stall = Stall::new(gets, readers, self.sizes, self.commands, more);
        let mut driver = Driver::over(streams, readers + 1, self.waiting, stall)?;
        for reader in 0..readers {
            // Spread over the interval.
            let offset = self.interval * reader as u32 / readers.max(1) as u32;
            driver.pace(reader, self.interval, offset);
        }
        driver.probe(readers, self.every);
        let began = Instant::now();
        let mut sample = Sample::empty().map_err(LoadError::Io)?;
        let over = |driver: &Driver<Stall<'_>>| {
            began.elapsed() >= self.time
                && driver.workload().ended()
                && driver.behind() < CAUGHT_UP.max(self.interval * 2)
        };
        while !over(&driver) {
            sample.add(&driver.run(SLICE)?);
            if began.elapsed() > self.longest {
                return Err(StretchError::Behind(self.longest));
            }
        }
        sample.add(&driver.drain()?);
        Ok(Stalled { sample, commands: driver.workload().asked() })
    }
}

/// How often it is asked whether a stretch is over.
const SLICE: Duration = Duration::from_millis(20);
/// Readers that are at most this late have caught up with what they missed.
const CAUGHT_UP: Duration = Duration::from_millis(5);
