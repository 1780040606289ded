//! How many files and sockets the process may have open.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Raises the process' limit of open files to `wanted`, as far as the system allows. Returns the
/// resulting limit.
///
/// Only a privileged process can exceed the hard limit; nothing is ever lowered.
pub fn allow_open_files(wanted: u64) -> u64 {
    // A system that does not report a limit has none.
    let limits = || getrlimit(Resource::RLIMIT_NOFILE).unwrap_or((u64::MAX, u64::MAX));
    let (present, hard) = limits();
    // The limit afterwards shows which of the two worked.
    if present < wanted && setrlimit(Resource::RLIMIT_NOFILE, wanted, hard.max(wanted)).is_err() {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, wanted.min(hard), hard);
    }
    limits().0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_raised_and_never_lowered() {
        let before = allow_open_files(0);
        assert!(before > 0);
        let after = allow_open_files(before.saturating_add(1));
        assert!(after >= before);
        assert_eq!(allow_open_files(0), after);
    }
}
