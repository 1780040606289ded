//! Requests for an answer and nothing else.

use super::source::{Reply, Traffic};
use crate::operation::{Answer, Operation};

/// See the module.
pub struct Pings;

impl Traffic for Pings {
    fn next(&mut self, _: usize, _: usize, operation: &mut Operation) -> bool {
        *operation = Operation::Ping;
        true
    }

    fn judge(&mut self, reply: &Reply<'_>) -> bool {
        reply.is(&Answer::Done)
    }

    fn expected(&self, _: usize, _: usize, _: &Operation) -> String {
        "done".to_owned()
    }
}
