#!/usr/bin/env bash
# Soak: threads on the engine (locks, prefetching) and on the log, under ThreadSanitizer.
#
# Needs: rustup toolchain install nightly; rustup component add --toolchain nightly rust-src
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export RUSTFLAGS="-Zsanitizer=thread ${RUSTFLAGS:-}"
export TSAN_OPTIONS="halt_on_error=1 ${TSAN_OPTIONS:-}"
target=$(rustc -vV | sed -n 's/^host: //p')
for test in ladon-engine ladon-log; do
    cargo +nightly test -Zbuild-std --target "$target" -p "$test" --test threads "$@"
done
