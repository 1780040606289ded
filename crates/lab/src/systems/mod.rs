//! Real servers: finding their programs, starting them as this process's children, stopping them.
//!
//! One file per system ([`ladon`], [`redis`], ...) says everything that is particular to it, as a
//! [`system::System`]; [`registry`] lists them; [`instance`] starts, pins and stops any of them.

pub mod bare_loop;
pub mod cleanup;
pub mod control;
pub mod hazelcast;
pub mod helpers;
pub mod instance;
pub mod iproto_control;
pub mod java;
pub mod ladon;
pub mod ladon_iproto;
pub mod ladon_speaking;
pub mod mariadb;
pub mod memcached;
pub mod primary;
pub mod program_paths;
pub mod redis;
pub mod redis_like;
pub mod redisearch;
pub mod registry;
mod resp_beside;
pub mod sqlite;
pub mod sqlite_server;
pub mod system;
pub mod tarantool;
pub mod untried;
pub mod voltdb;
pub mod voltdb_control;
pub mod web;
