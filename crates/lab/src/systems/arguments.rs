//! How the probes' programs are told their port, their directory and their promise.

use std::path::Path;

use super::system::{Launch, Program, Role};
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

/// The program's arguments.
///
/// # Panics
/// When a system has no setting for a promise that all four have.
#[must_use]
pub fn arguments(kind: Kind, port: u16, directory: &Path, setup: &Setup) -> Vec<String> {
    let promise = setup.persistence.promise();
    let settings = kind.system().settings();
    let setting = settings.into_iter().find(|setting| setting.promise == promise);
    let launch = Launch {
        setting: setting.expect("a setting for every promise"),
        directory,
        ports: &[port],
        io_threads: setup.io_threads,
        role: Role::Single,
        extra: &setup.extra,
    };
    let bare = Program {
        system: kind.name(),
        label: String::new(),
        command: Vec::new(),
        version: String::new(),
        behind: None,
    };
    let processes = kind.system().launch(&bare, &launch);
    processes.expect("a single node").swap_remove(0).command_line
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
