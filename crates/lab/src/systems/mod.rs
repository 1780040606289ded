//! Real servers: finding their programs, starting them as this process's children, stopping them.
//!
//! One file per system ([`ladon`], [`redis`], ...) says everything that is particular to it, as a
//! [`system::System`]; [`registry`] lists them; [`instance`] starts, pins and stops any of them.
//! [`find`], [`arguments`] and [`server`] are the older way in, by [`Kind`], which the probes use.

pub mod aerospike;
pub mod arguments;
pub mod bare_loop;
pub mod cleanup;
pub mod control;
pub mod dragonfly;
pub mod find;
pub mod hazelcast;
pub mod helpers;
pub mod instance;
pub mod iproto_control;
pub mod java;
pub mod keydb;
pub mod ladon;
pub mod memcached;
pub mod places;
pub mod pogocache;
pub mod redis;
pub mod redis_like;
pub mod redisearch;
pub mod registry;
pub mod server;
pub mod system;
pub mod tarantool;
pub mod voltdb;
pub mod voltdb_control;
pub mod web;

use clap::ValueEnum;
use serde::Serialize;

/// The programs that the lab knows how to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// This repository's `ladon`.
    Ladon,
    /// `redis-server` of this machine (Debian 12 has 7.0.15).
    Redis,
    /// `valkey-server` of the peers' tree.
    Valkey,
    /// `redis-server` of the peers' tree.
    Redis8,
}

impl Kind {
    /// All, in the order in which they are listed.
    pub const ALL: [Self; 4] = [Self::Ladon, Self::Redis, Self::Valkey, Self::Redis8];

    /// The name on the command line and in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ladon => "ladon",
            Self::Redis => "redis",
            Self::Valkey => "valkey",
            Self::Redis8 => "redis8",
        }
    }

    /// The system that it names.
    #[must_use]
    pub const fn system(self) -> &'static dyn system::System {
        match self {
            Self::Ladon => &ladon::Ladon,
            Self::Redis => &redis::REDIS,
            Self::Valkey => &redis::VALKEY,
            Self::Redis8 => &redis::REDIS_8,
        }
    }
}

/// What a server promises of an acknowledged write; the same promise for Ladon and for the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Persistence {
    /// Memory only. Ladon: `--gate none`; the others: no snapshots, no append-only file.
    None,
    /// On the disk within a second. Ladon: `--gate everysec`; the others: `appendfsync everysec`.
    Everysec,
    /// On the disk before the reply. Ladon: `--gate fsync`; the others: `appendfsync always`.
    Fsync,
}

impl Persistence {
    /// The name on the command line and in tables, which is also Ladon's name for the gate.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Everysec => "everysec",
            Self::Fsync => "fsync",
        }
    }

    /// The promise that it is.
    #[must_use]
    pub const fn promise(self) -> system::Promise {
        match self {
            Self::None => system::Promise::None,
            Self::Everysec => system::Promise::Everysec,
            Self::Fsync => system::Promise::Fsync,
        }
    }
}
