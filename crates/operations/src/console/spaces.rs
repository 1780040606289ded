//! The spaces that there are, with their sizes.

use super::{Console, Refusal, json, refusal};
use crate::body::Answer;
use hyper::StatusCode;

impl Console {
    /// As the metrics have them.
    pub(super) async fn spaces(&self) -> Result<Answer, Refusal> {
        match self.texts.spaces().await {
            Some(spaces) => Ok(json(spaces)),
            None => Err(refusal(StatusCode::SERVICE_UNAVAILABLE, "the server stops")),
        }
    }
}
