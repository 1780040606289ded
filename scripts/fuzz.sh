#!/usr/bin/env bash
# Soak: the fuzz targets under AddressSanitizer, one after the other, beginning with the kept corpus.
#
#   scripts/fuzz.sh                        every target for ten minutes
#   scripts/fuzz.sh 60 log_reader changes  these for a minute each
#
# What is found new goes to a folder beside the build (named at the end), not to the repository; an
# input that fails is kept there too. Worth keeping are those that `-merge=1` into fuzz/corpus adds.
#
# Needs: rustup toolchain install nightly. What `cargo fuzz` would do is done here, so it is not.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

seconds=${1:-600}
shift $(($# > 0 ? 1 : 0))
targets=("$@")
((${#targets[@]})) || targets=(resp_parser commands changes log_reader checkpoint_reader)

export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/fuzz/target}
export CARGO_PROFILE_RELEASE_DEBUG=line-tables-only
host=$(rustc -vV | sed -n 's/^host: //p')
export RUSTFLAGS="--cfg fuzzing -Zsanitizer=address -Cdebug-assertions -Coverflow-checks -Cpasses=sancov-module \
-Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
-Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares ${RUSTFLAGS:-}"
bins=()
for target in "${targets[@]}"; do bins+=(--bin "$target"); done
cargo +nightly build --release --manifest-path fuzz/Cargo.toml --target "$host" "${bins[@]}"

found=$CARGO_TARGET_DIR/found
for target in "${targets[@]}"; do
    mkdir -p "$found/$target/corpus"
    echo "== $target"
    # Leaks: crossbeam-epoch defers frees past the process' end. Memory: what a peer merely announces
    # must not be allocated.
    ASAN_OPTIONS="detect_leaks=0 ${ASAN_OPTIONS:-}" \
        "$CARGO_TARGET_DIR/$host/release/$target" -max_total_time="$seconds" -timeout=20 \
        -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix="$found/$target/" \
        "$found/$target/corpus" "fuzz/corpus/$target"
done
echo "new inputs: $found"
