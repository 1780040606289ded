#!/usr/bin/env bash
# Soak: the crates with `unsafe` memory code under Miri, with sizes cut to what it can bear.
#
#   scripts/miri.sh                the engine's and the log's own tests
#   scripts/miri.sh -p ladon-log   what follows goes to `cargo miri test`
#
# Needs: rustup toolchain install nightly; rustup component add --toolchain nightly miri rust-src
#
# Tree borrows, because crossbeam-epoch does not hold to the older rules; leaks are its design (what
# it defers at the process' end stays). Pointers travel in tagged words, hence the provenance.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export MIRIFLAGS="-Zmiri-tree-borrows -Zmiri-permissive-provenance -Zmiri-ignore-leaks -Zmiri-disable-isolation ${MIRIFLAGS:-}"
if (($#)); then
    exec cargo +nightly miri test "$@"
fi
cargo +nightly miri test -p ladon-engine --lib
cargo +nightly miri test -p ladon-log --lib
