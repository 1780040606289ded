//! How each program is told its port, its directory and its promise.
//!
//! Saves that a server starts by itself are off everywhere (Ladon's checkpoints, the others'
//! rewrites and snapshots): one that falls into one system's two seconds and not into another's
//! would make the figures a matter of luck. What a save costs is the `checkpoint` work's question.

use std::path::Path;

use super::{Kind, Persistence};

/// What a server is started for.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The promise.
    pub persistence: Persistence,
    /// IO threads of Ladon; of the others, whose commands run on one thread in any case,
    /// `io-threads`.
    pub io_threads: usize,
    /// Further arguments for the program, at the end of its command line.
    pub extra: Vec<String>,
}

impl Setup {
    /// One IO thread, nothing extra.
    #[must_use]
    pub const fn new(persistence: Persistence) -> Self {
        Self { persistence, io_threads: 1, extra: Vec::new() }
    }
}

/// More than any work connects.
const MAX_CLIENTS: &str = "20000";

/// The program's arguments.
#[must_use]
pub fn arguments(kind: Kind, port: u16, directory: &Path, setup: &Setup) -> Vec<String> {
    let directory = directory.display().to_string();
    let mut arguments = match kind {
        Kind::Ladon => ladon(port, &directory, setup),
        Kind::Redis | Kind::Valkey | Kind::Redis8 => redis_like(port, &directory, setup),
    };
    arguments.extend(setup.extra.iter().cloned());
    arguments
}

fn ladon(port: u16, directory: &str, setup: &Setup) -> Vec<String> {
    let words = [
        "serve",
        "--resp",
        &format!("127.0.0.1:{port}"),
        "--data",
        directory,
        "--gate",
        setup.persistence.name(),
        "--io-threads",
        &setup.io_threads.to_string(),
        "--checkpoint-log-percent",
        "0",
        "--maxclients",
        MAX_CLIENTS,
    ];
    words.map(str::to_owned).into()
}

fn redis_like(port: u16, directory: &str, setup: &Setup) -> Vec<String> {
    let (append_only, sync) = match setup.persistence {
        Persistence::None => ("no", "everysec"),
        Persistence::Everysec => ("yes", "everysec"),
        Persistence::Fsync => ("yes", "always"),
    };
    let words = [
        "--bind",
        "127.0.0.1",
        "--port",
        &port.to_string(),
        "--dir",
        directory,
        "--daemonize",
        "no",
        "--save",
        "",
        "--appendonly",
        append_only,
        "--appendfsync",
        sync,
        "--auto-aof-rewrite-percentage",
        "0",
        "--io-threads",
        &setup.io_threads.to_string(),
        "--maxclients",
        MAX_CLIENTS,
    ];
    words.map(str::to_owned).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(kind: Kind, persistence: Persistence) -> String {
        arguments(kind, 7000, Path::new("/data"), &Setup::new(persistence)).join(" ")
    }

    #[test]
    fn the_same_promise_in_both_tongues() {
        assert_eq!(
            line(Kind::Ladon, Persistence::Fsync),
            "serve --resp 127.0.0.1:7000 --data /data --gate fsync --io-threads 1 \
             --checkpoint-log-percent 0 --maxclients 20000"
        );
        assert!(
            line(Kind::Valkey, Persistence::Fsync)
                .contains("--appendonly yes --appendfsync always")
        );
        assert!(line(Kind::Redis, Persistence::None).contains("--save  --appendonly no"));
    }
}
