//! Other programs that generate load: which there are, and where each is found.

use std::path::PathBuf;
use std::process::Command;

use clap::ValueEnum;
use serde::Serialize;

use crate::systems::program_paths::on_path;
use crate::systems::system::DriverKind;

/// A load generator that may be on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tool {
    /// `redis-benchmark`.
    RedisBenchmark,
    /// `memtier_benchmark`, as the Dragonfly test used it.
    Memtier,
    /// `k6`, as the tests of Redis, Tarantool and Hazelcast used it.
    K6,
    /// `wrk`, as the test of Go with LevelDB used it.
    Wrk,
}

impl Tool {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::RedisBenchmark, Self::Memtier, Self::K6, Self::Wrk];

    /// The program.
    #[must_use]
    pub const fn program(self) -> &'static str {
        match self {
            Self::RedisBenchmark => "redis-benchmark",
            Self::Memtier => "memtier_benchmark",
            Self::K6 => "k6",
            Self::Wrk => "wrk",
        }
    }

    /// What it says when it is asked for its version: the first line. wrk says it and then fails,
    /// as it was given nothing to do.
    #[must_use]
    pub fn version(self) -> Option<String> {
        let question = match self {
            Self::K6 => "version",
            Self::RedisBenchmark | Self::Memtier | Self::Wrk => "--version",
        };
        let output = Command::new(self.find()?).arg(question).output().ok()?;
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        said.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
    }

    /// How to get it.
    #[must_use]
    pub const fn install(self) -> &'static str {
        match self {
            Self::RedisBenchmark => "apt-get install redis-tools",
            Self::Memtier => {
                "curl -fsSL https://packages.redis.io/gpg | gpg --dearmor -o \
                 /usr/share/keyrings/redis.gpg && echo \"deb [signed-by=/usr/share/keyrings/redis.gpg] \
                 https://packages.redis.io/deb $(lsb_release -cs) main\" \
                 >/etc/apt/sources.list.d/redis.list && apt-get update && apt-get install \
                 memtier-benchmark"
            }
            Self::K6 => {
                "GOBIN=/usr/local/bin go install go.k6.io/k6@latest (Go from https://go.dev/dl)"
            }
            Self::Wrk => "apt-get install wrk",
        }
    }

    /// Where it is.
    #[must_use]
    pub fn find(self) -> Option<PathBuf> {
        on_path(self.program()).into_iter().find(|path| path.is_file())
    }

    /// The protocol that it speaks.
    #[must_use]
    pub const fn speaks(self) -> DriverKind {
        match self {
            Self::RedisBenchmark | Self::Memtier | Self::K6 => DriverKind::Resp,
            Self::Wrk => DriverKind::Http,
        }
    }
}
