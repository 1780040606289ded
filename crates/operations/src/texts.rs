//! The thread that makes the metrics' text, and how the port asks for it.
//!
//! It takes locks that IO threads wait for, so it has their priority, and it bounds itself: each text
//! is made again after [`KEPT_FOR`] at the earliest, and what takes a look at all keys or spaces is
//! counted once in [`CENSUS_KEPT_FOR`].

use crate::metrics::{self, Census};
use crate::respond::State;
use bytes::Bytes;
use hyper::header::HeaderValue;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
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

struct Wanted {
    names: Names,
    format: Format,
    reply: oneshot::Sender<Bytes>,
}

/// Asks the thread for texts. It ends with the last clone.
#[derive(Clone)]
pub struct Texts(Sender<Wanted>);

impl Texts {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system has no thread to give.
    pub fn start(state: State) -> io::Result<Texts> {
        let (sender, receiver) = channel();
        let thread = thread::Builder::new().name("ladon-metrics".into());
        thread.spawn(move || Maker { state, census: None, made: Vec::new() }.run(&receiver))?;
        Ok(Texts(sender))
    }

    /// A text; `None` if the thread has ended.
    pub(crate) async fn get(&self, names: Names, format: Format) -> Option<Bytes> {
        let (reply, text) = oneshot::channel();
        self.0.send(Wanted { names, format, reply }).ok()?;
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
}

impl Maker {
    fn run(mut self, wanted: &Receiver<Wanted>) {
        for Wanted { names, format, reply } in wanted {
            if !reply.is_closed() {
                // An error means that the client has left meanwhile.
                let _ = reply.send(self.text(names, format));
            }
        }
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
