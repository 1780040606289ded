//! Replies and results that outlast a turn.

pub mod aside;
pub mod aside_job;
pub mod delivery;
pub mod large;
pub mod long_arguments;
pub mod long_replies;
pub mod long_reply;
pub mod parcel;
pub mod slices;
