//! A connection's session, and the list of all clients.

pub mod clients;
pub mod disconnect;
pub mod events;
pub mod item_watchers;
pub mod line;
pub mod monitored;
pub mod schema_watchers;
pub mod session;
