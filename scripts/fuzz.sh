#!/usr/bin/env bash
# Soak: the fuzz targets under AddressSanitizer, one after the other, beginning with the kept corpus.
#
#   scripts/fuzz.sh                        every target for ten minutes
#   scripts/fuzz.sh 60 log_reader changes  these for a minute each
#   scripts/fuzz.sh keep log_reader        adds what was found to the kept corpus, as far as it reaches
#                                          code that the kept corpus does not; commit it then
#
# The kept corpus is one text file for each target, fuzz/corpus/TARGET.txt, which the ordinary tests
# replay; `cargo run -p ladon-testkit -- unpack TARGET FOLDER` makes it a folder of files, as libFuzzer
# and `cargo fuzz` take it, and `... pack TARGET FOLDER` a file again. What is found new goes to a folder
# beside the build (named at the end), not to the repository; an input that fails is kept there too.
#
# Needs: rustup toolchain install nightly. What `cargo fuzz` would do is done here, so it is not.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

seconds=${1:-600}
shift $(($# > 0 ? 1 : 0))
targets=("$@")
((${#targets[@]})) || targets=(
    resp_parser http_requests http_connections iproto_packets memcache_pieces commands function_payload restore_payload hyperloglog geo_options
    stream_options shebang
    cjson cmsgpack struct_format msgpack_values rdb_reader update_operations json_paths sql_texts acl_rules changes log_reader group_files mesh_messages
    checkpoint_reader
)

export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/fuzz/target}
export CARGO_PROFILE_RELEASE_DEBUG=line-tables-only
host=$(rustc -vV | sed -n 's/^host: //p')
export RUSTFLAGS="--cfg fuzzing -Zsanitizer=address -Cdebug-assertions -Coverflow-checks -Cpasses=sancov-module \
-Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
-Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares ${RUSTFLAGS:-}"
bins=()
for target in "${targets[@]}"; do bins+=(--bin "$target"); done
cargo +nightly build --release --manifest-path fuzz/Cargo.toml --target "$host" "${bins[@]}"

testkit() { env -u CARGO_TARGET_DIR -u RUSTFLAGS cargo run -q -p ladon-testkit -- "$@"; }
found=$CARGO_TARGET_DIR/found
for target in "${targets[@]}"; do
    mkdir -p "$found/$target/corpus"
    kept=$found/$target/kept
    rm -rf "$kept"
    echo "== $target"
    testkit unpack "$target" "$kept"
    # Leaks: crossbeam-epoch defers frees past the process' end. Memory: what a peer merely announces
    # must not be allocated.
    export ASAN_OPTIONS="detect_leaks=0 ${ASAN_OPTIONS:-}"
    program=$CARGO_TARGET_DIR/$host/release/$target
    if [[ $seconds == keep ]]; then
        "$program" -merge=1 -timeout=20 -rss_limit_mb=2048 "$kept" "$found/$target/corpus"
        testkit pack "$target" "$kept"
    else
        "$program" -max_total_time="$seconds" -timeout=20 \
            -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix="$found/$target/" \
            "$found/$target/corpus" "$kept"
    fi
done
echo "new inputs: $found"
