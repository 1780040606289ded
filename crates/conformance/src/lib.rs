//! The proof from outside: one script, two servers, the transcripts compared.
//!
//! ```text
//! scripts/FAMILY/TOPIC.txt --parse--> Script --play--> Transcript (redis-server)
//!                                            --play--> Transcript (ladon)     --compare--> Mismatch*
//! recorded/RESP/FAMILY.txt                              = what redis-server answered, to compare with
//! ```
//!
//! **Architecture invariant:** nothing here uses any other crate of the workspace but the testkit's
//! ports. What reads Ladon's bytes must not share code, and so mistakes, with what wrote them;
//! Ladon is a binary.

pub mod compare;
pub mod connection;
pub mod iproto;
pub mod locate;
pub mod play;
pub mod python;
pub mod random;
pub mod recording;
pub mod reply;
pub mod script;
pub mod server;
pub mod words;

pub use compare::{Mismatch, compare};
pub use connection::Connection;
pub use play::{Entry, Transcript, play};
pub use recording::Recording;
pub use reply::Reply;
pub use script::{Check, Script, Step};
pub use server::Server;
