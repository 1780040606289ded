#!/bin/sh
# Runs all tests: test/run.sh [COMMAND], by default `tarantool`; or `test/run.sh ladon tarantool`.
cd "$(dirname "$0")/.." || exit 1
[ $# -gt 0 ] || set -- tarantool
# The data of all tests.
TMPDIR=$(mktemp -d) || exit 1
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
failed=0
for file in test/*.test.lua; do
    echo "# $file"
    "$@" "$file" || failed=1
done
exit $failed
