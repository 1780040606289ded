//! Commands about the server, its clients and its commands, rather than about data.

pub(crate) mod absent;
pub(crate) mod acl;
pub(crate) mod backup;
pub(crate) mod client;
pub(crate) mod cluster;
pub(crate) mod command;
pub(crate) mod command_log;
pub(crate) mod config;
pub(crate) mod debug;
pub(crate) mod fiber;
pub(crate) mod hot_keys;
pub(crate) mod info;
pub(crate) mod latency;
pub(crate) mod memory;
pub(crate) mod monitor;
pub(crate) mod persistence;
pub(crate) mod sentinel;
pub(crate) mod server;
