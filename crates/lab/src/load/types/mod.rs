//! Data of every type, and the requests on it: one file per type. Each keeps a model of what the
//! server must hold, so that every reply has one right answer.

pub mod bitmap;
pub mod counter;
pub mod geo;
pub mod hash;
pub mod hyperloglog;
pub mod list;
pub mod script;
pub mod set;
pub mod sorted_set;
pub mod stream;
pub mod world;

/// Members that one request of a load carries.
const MEMBERS_AT_ONCE: u32 = 50;

/// The numbers below `count` that request `about` of a load carries.
fn members_of(about: u32, count: u32) -> std::ops::Range<u32> {
    let start = about * MEMBERS_AT_ONCE;
    start..count.min(start + MEMBERS_AT_ONCE)
}
