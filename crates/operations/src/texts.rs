//! The thread that makes the metrics' text, and how the port asks for it.
//!
//! It takes locks that IO threads wait for, so it has their priority, and it bounds itself: each text
//! is made again after [`KEPT_FOR`] at the earliest, and what takes a look at all keys or spaces is
//! counted once in [`CENSUS_KEPT_FOR`]. In between, it takes the samples of the console
//! (`live/sample.rs`), which only read counters.

use crate::live::{EVERY, History, Object, Sampler};
use crate::metrics::{self, Census};
use crate::respond::State;
use bytes::Bytes;
use hyper::header::HeaderValue;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// A text is this old at most. A scrape every 10 ms makes the server compute no more than five a
/// second.
const KEPT_FOR: Duration = Duration::from_millis(200);

/// Counting keys locks each partition for a moment.
const CENSUS_KEPT_FOR: Duration = Duration::from_secs(1);

/// Whose names the metrics have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// `ladon_...`.
    Ladon,
    /// Those of redis_exporter.
    Redis,
}

/// How the text is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Prometheus' own text format, 0.0.4.
    Prometheus,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

impl Format {
    pub(crate) fn content_type(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Format::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        })
    }
}

enum What {
    Metrics(Names, Format),
    /// For the console.
    Spaces,
}

struct Wanted {
    what: What,
    reply: oneshot::Sender<Bytes>,
}

/// Asks the thread for texts. It ends with the last clone.
#[derive(Clone)]
pub struct Texts {
    sender: Sender<Wanted>,
    history: Arc<History>,
}

impl Texts {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system has no thread to give.
    pub fn start(state: State) -> io::Result<Texts> {
        let (sender, receiver) = channel();
        let thread = thread::Builder::new().name("ladon-metrics".into());
        let history = Arc::<History>::default();
        let samples = Arc::clone(&history);
        let (made, sampler) = (Vec::new(), Sampler::default());
        let maker = Maker { state, census: None, made, sampler, history };
        thread.spawn(move || maker.run(&receiver))?;
        Ok(Texts { sender, history: samples })
    }

    /// A text; `None` if the thread has ended.
    pub(crate) async fn get(&self, names: Names, format: Format) -> Option<Bytes> {
        self.ask(What::Metrics(names, format)).await
    }

    /// Names and sizes of spaces, as JSON; `None` if the thread has ended.
    pub(crate) async fn spaces(&self) -> Option<Bytes> {
        self.ask(What::Spaces).await
    }

    /// The samples of the last minutes.
    pub(crate) fn history(&self) -> Arc<History> {
        Arc::clone(&self.history)
    }

    async fn ask(&self, what: What) -> Option<Bytes> {
        let (reply, text) = oneshot::channel();
        self.sender.send(Wanted { what, reply }).ok()?;
        text.await.ok()
    }
}

struct Made {
    names: Names,
    format: Format,
    at: Instant,
    text: Bytes,
}

struct Maker {
    state: State,
    census: Option<(Instant, Arc<Census>)>,
    /// At most one of each kind.
    made: Vec<Made>,
    sampler: Sampler,
    history: Arc<History>,
}

impl Maker {
    fn run(mut self, wanted: &Receiver<Wanted>) {
        let mut due = Instant::now();
        loop {
            match wanted.recv_timeout(due.saturating_duration_since(Instant::now())) {
                Ok(Wanted { what, reply }) if !reply.is_closed() => {
                    // An error means that the client has left meanwhile.
                    let _ = reply.send(match what {
                        What::Metrics(names, format) => self.text(names, format),
                        What::Spaces => self.spaces(),
                    });
                }
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            let now = Instant::now();
            if now >= due {
                // Samples that are late are left out.
                due = (due + EVERY).max(now);
                let sample = self.sampler.sample(&self.state.0.node());
                sample.into_iter().for_each(|sample| self.history.add(sample.into()));
            }
        }
    }

    fn spaces(&mut self) -> Bytes {
        let census = self.census();
        let spaces = census.spaces().map(|(id, space)| {
            let mut out = Object::new();
            out.number("id", u64::from(id)).text("name", &space.name);
            out.number("tuples", space.tuples).number("bytes", space.bytes).end()
        });
        let spaces: Vec<String> = spaces.collect();
        Bytes::from(format!("[{}]", spaces.join(",")))
    }

    fn text(&mut self, names: Names, format: Format) -> Bytes {
        self.made.retain(|made| made.at.elapsed() < KEPT_FOR);
        let is_it = |made: &&Made| (made.names, made.format) == (names, format);
        if let Some(made) = self.made.iter().find(is_it) {
            return made.text.clone();
        }
        let census = self.census();
        let node = self.state.0.node();
        let text = Bytes::from(metrics::text(&node, &census, names, format));
        self.made.push(Made { names, format, at: Instant::now(), text: text.clone() });
        text
    }

    fn census(&mut self) -> Arc<Census> {
        let node = self.state.0.node();
        let before = self.census.take().filter(|(_, census)| census.is_of(&node));
        let census = match before {
            Some((at, census)) if at.elapsed() < CENSUS_KEPT_FOR => (at, census),
            before => {
                let census = Census::take(&node, before.map(|(_, census)| census).as_deref());
                (Instant::now(), Arc::new(census))
            }
        };
        let newest = Arc::clone(&census.1);
        self.census = Some(census);
        newest
    }
}
