//! The last ten minutes of the server, a sample a second.
//!
//! A sample is made once, as JSON, whoever looks: it goes to the history and to all open streams.

mod history;
mod json_object;
mod sample;

pub(crate) use history::History;
pub(crate) use json_object::Object;
pub(crate) use sample::{EVERY, Sampler};
