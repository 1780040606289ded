//! The client's side of the protocol, for the load generator, the simulator and tests: requests
//! to bytes, bytes to reply values.

mod decoder;
mod request;
mod value;

pub use decoder::{DecodeError, DecodeLimits, Decoded, Decoder};
pub use request::write_request;
pub use value::Value;
