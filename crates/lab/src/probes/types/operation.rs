//! How `types` puts an operation on a server.

use crate::load::question::{Asking, Question, things_min};
use crate::load::types::world::{Ground, MeasureError};
pub use crate::load::types::world::{Operation, World};
use crate::probes::WorkError;
use crate::probes::common::{Bench, CLIENTS};
use crate::probes::measured::Measured;
use crate::systems::server::Server;

impl From<MeasureError<WorkError>> for WorkError {
    fn from(error: MeasureError<Self>) -> Self {
        match error {
            MeasureError::NotLoaded => Self::Argument("its data were not loaded".into()),
            MeasureError::Ground(error) => error,
        }
    }
}

/// How an operation is put on a server.
pub struct Load<'a> {
    /// Where.
    pub bench: &'a Bench,
    /// On whom.
    pub server: &'a Server,
    /// Connections.
    pub clients: usize,
    /// Requests that each sends at once.
    pub depth: usize,
    /// How long to measure.
    pub seconds: f64,
    /// Seed of the random numbers.
    pub seed: u64,
}

impl Ground for Load<'_> {
    type Seen = Measured;
    type Error = WorkError;

    fn fill(&mut self, question: impl Question) -> Result<(), WorkError> {
        self.bench.ask_all(self.server, CLIENTS, question)
    }

    fn take<Q: Question>(&mut self, question: Q) -> Result<Measured, WorkError> {
        if Q::ORDERED && question.count() < things_min(self.clients, self.depth) {
            return Err(WorkError::Argument(format!(
                "{} things are too few for {} connections that send {} requests at once",
                question.count(),
                self.clients,
                self.depth
            )));
        }
        let asking = Asking::at_random(question, self.depth, self.clients, self.seed);
        Measured::of(self.bench, self.server, self.clients, self.seconds, asking)
    }
}
