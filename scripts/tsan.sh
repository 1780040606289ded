#!/usr/bin/env bash
# Soak: threads under ThreadSanitizer: on the engine (locks, prefetching, frozen values), on the log
# (appenders, writer, large records), in the server (its own units).
#
#   scripts/tsan.sh             all of that
#   scripts/tsan.sh --no-run    only builds it; what is given goes to `cargo test`, before a filter
#
# Needs: rustup toolchain install nightly; rustup component add --toolchain nightly rust-src
# The standard library is built as well, as its locks and channels must be seen.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export RUSTFLAGS="-Zsanitizer=thread ${RUSTFLAGS:-}"
export TSAN_OPTIONS="halt_on_error=1 ${TSAN_OPTIONS:-}"
target=$(rustc -vV | sed -n 's/^host: //p')
timed() {
    SECONDS=0
    cargo +nightly test -q -Zbuild-std --target "$target" "$@"
    echo "$*: $SECONDS s"
}
timed -p ladon-engine --test it "$@" threads::
timed -p ladon-log --test it "$@" threads::
timed -p ladon-log --lib "$@"
timed -p ladon-engine --lib "$@"
timed -p ladon-server --lib "$@"
