//! Waits of a polite client beside impolite ones: see [`super::polite`] and [`super::impolite`].
//!
//! The polite client sends at fixed times, one request at a time, and skips times that pass while
//! it waits. Its waits are then corrected for the skipped times: a wait of 100 ms counts as the
//! waits of every client that would have asked during it. So a stop weighs by its length, and a
//! client that falls behind adds no queue of its own.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::driver::{Driver, LoadError, Waiting};
use super::impolite::{Impolite, WithImpolite};
use super::polite::Polite;
use super::question::Asking;
use super::sample::Sample;
use super::stream::Stream;
use super::workload::LANE_OF_READS;

/// What is put on a server.
#[derive(Clone, Debug)]
pub struct Fairness {
    /// What the polite client asks.
    pub polite: Polite,
    /// From one of its requests to the next.
    pub interval: Duration,
    /// How long impolite clients send, if they have so much to send.
    pub time: Duration,
    /// Seed of the polite client's keys.
    pub seed: u64,
    /// How the thread waits.
    pub waiting: Waiting,
}

/// What was seen.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The polite client's waits, corrected.
    pub waits_ns: Histogram<u64>,
    /// Its requests that were answered.
    pub answered: u64,
    /// How long it took.
    pub elapsed: Duration,
    /// The load generator's own longest turn.
    pub generator: Duration,
    /// Requests of the impolite clients that were answered, or sent where they do not read.
    pub done: u64,
    /// When the impolite clients were through.
    pub through: Duration,
    /// Their connections that the server closed.
    pub closed: usize,
    /// Whether the polite client's last request was never answered: it counts as long as it waited.
    pub gave_up: bool,
}

/// How long the polite client waits for a reply.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often it is asked whether the stretch is over.
const SLICE: Duration = Duration::from_millis(20);

impl Fairness {
    /// Runs until `is_over` returns true for the impolite clients and the elapsed time, and the
    /// polite client's last request is answered.
    ///
    /// # Errors
    /// A wrong reply; an error of `is_over`; a closed connection of a reading client.
    pub fn run<E: From<LoadError>>(
        &self,
        polite: Stream,
        impolite: Option<Impolite>,
        mut is_over: impl FnMut(Option<&Impolite>, Duration) -> Result<bool, E>,
    ) -> Result<Seen, E> {
        let asking = Asking::at_random(self.polite, 1, 1, self.seed);
        let began = Instant::now();
        let mut impolite = impolite;
        if let Some(impolite) = &mut impolite {
            impolite.send_until(began + self.time);
        }
        let workload = WithImpolite::new(asking, impolite);
        let mut driver = Driver::over(vec![polite], 1, self.waiting, workload)?;
        driver.set_patience(PATIENCE);
        driver.probe(0, self.interval);
        let mut sample = Sample::empty().map_err(LoadError::Io)?;
        let mut through = None;
        while !is_over(driver.workload().impolite.as_ref(), began.elapsed())?
            && driver.oldest().is_none_or(|oldest| oldest < PATIENCE)
        {
            sample.add(&driver.run(SLICE)?);
            let finished = driver.workload().impolite.as_ref().is_some_and(Impolite::is_finished);
            if finished && through.is_none() {
                through = Some(began.elapsed());
            }
        }
        if let Some(impolite) = &mut driver.workload_mut().impolite {
            impolite.send_until(Instant::now());
        }
        match driver.drain() {
            Ok(last) => sample.add(&last),
            Err(LoadError::Stalled(..)) => {}
            Err(error) => return Err(error.into()),
        }
        let elapsed = began.elapsed();
        let done = driver.workload().impolite.as_ref().map_or(0, Impolite::done);
        let waits = &mut sample.latency_ns[LANE_OF_READS];
        let answered = waits.len();
        let oldest = driver.oldest();
        if let Some(oldest) = oldest {
            waits.saturating_record(nanoseconds(oldest));
        }
        Ok(Seen {
            waits_ns: waits.clone_correct(nanoseconds(self.interval)),
            answered,
            elapsed,
            generator: sample.longest_turn,
            done,
            through: through.unwrap_or(elapsed),
            closed: driver.workload().impolite.as_ref().map_or(0, Impolite::closed),
            gave_up: oldest.is_some(),
        })
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpListener};

    use super::*;
    use crate::load::question::Question;

    /// A server that answers the polite client's requests rightly, and once late.
    #[test]
    fn a_stop_weighs_by_its_length() {
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let stream = Stream::plain(listener.local_addr().unwrap()).unwrap();
        let polite = Polite { keys: 1, fills: false };
        let stop = Duration::from_millis(200);
        let served = std::thread::spawn(move || {
            let mut socket = listener.accept().unwrap().0;
            let mut asked: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
            for about in 0..3 {
                let (mut request, mut answer) = (Vec::new(), Vec::new());
                let mut polite = polite;
                polite.write(about, &mut request);
                polite.answer(about, &mut answer);
                asked.push((request, answer));
            }
            let (mut bytes, mut number) = ([0; 256], 0);
            while let Ok(count @ 1..) = socket.read(&mut bytes) {
                let request = &bytes[..count];
                let answer = asked.iter().find(|(known, _)| known == request).unwrap();
                if number == 20 {
                    std::thread::sleep(stop);
                }
                number += 1;
                socket.write_all(&answer.1).unwrap();
            }
        });
        let fairness = Fairness {
            polite,
            interval: Duration::from_millis(1),
            time: Duration::from_millis(400),
            seed: 1,
            waiting: Waiting::Sleep,
        };
        let over =
            |_: Option<&Impolite>, since: Duration| Ok::<bool, LoadError>(since > fairness.time);
        let seen = fairness.run(stream, None, over).unwrap();
        served.join().unwrap();
        assert!(!seen.gave_up && seen.answered > 20, "{}", seen.answered);
        assert!(seen.waits_ns.max() >= 200_000_000);
        // All that would have been asked within the stop, not the one that was.
        assert!(seen.waits_ns.len() >= seen.answered + 195, "{}", seen.waits_ns.len());
    }
}
