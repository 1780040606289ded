#!/usr/bin/env bash
# Soak: the crates with `unsafe` memory code under Miri, with sizes cut to what it can bear.
#
#   scripts/miri.sh                the tests of engine, log and tuples, part by part
#   scripts/miri.sh -p ladon-log   what follows goes to `cargo miri test`
#
# Needs: rustup toolchain install nightly; rustup component add --toolchain nightly miri rust-src
#
# It takes long: on a busy machine of two cores, frozen tables 4 minutes, packed values' memory 2,
# entries, access and waits 1 together; a part that takes over 10 minutes wants smaller sizes.
#
# Tree borrows, because crossbeam-epoch does not hold to the older rules; leaks are its design (what
# it defers at the process' end stays). Pointers travel in tagged words, hence the provenance.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export MIRIFLAGS="-Zmiri-tree-borrows -Zmiri-permissive-provenance -Zmiri-ignore-leaks -Zmiri-disable-isolation ${MIRIFLAGS:-}"
if (($#)); then
    exec cargo +nightly miri test "$@"
fi
# Each filter is a prefix of test names; what no filter names is the rest.
parts=(
    pieces table::tests table::arena table::entry
    types::buffer types::hash types::list types::set:: types::shown types::sorted_set types::string
)
rest=()
timed() {
    SECONDS=0
    cargo +nightly miri test -q "${@:2}"
    echo "$1: $SECONDS s"
}
for part in "${parts[@]}"; do
    timed "$part" -p ladon-engine --lib "$part"
    rest+=(--skip "$part")
done
timed "the engine's rest" -p ladon-engine --lib -- "${rest[@]}"
timed log -p ladon-log --lib
timed tuples -p ladon-space --lib -- tuple:: hash_table::tests::items_of_one
