#!/bin/bash
# Runs Tarantool's own tests that are programs which print TAP (of its repository at 2.6.0) by a
# server, and beside it by the real one, and says how many of the asserts that the real one passes
# pass.
#
#   scripts/tarantool-tap.sh FOLDER SUITE BINARY [REAL]
#
# FOLDER is a checkout of https://github.com/tarantool/tarantool, SUITE a folder of its tests:
# app-tap (the modules) or box-tap (the database). BINARY is a build of ladon, REAL an installed
# tarantool (default: the one in PATH). Each file runs in a copy of the tests' folder of its own, for
# 60 seconds at most; programs that are told where to listen get LISTEN (default:
# 127.0.0.1:3391). tarantoolctl.test.lua is left out: it tests a program of the installed server,
# whichever server runs the test. Files that need the tests' own runner pass nothing anywhere.
set -u
export LC_ALL=C LISTEN=${LISTEN:-127.0.0.1:3391}
if [ $# -lt 3 ]; then
    sed -n '2,14s/^# \{0,1\}//p' "$0"
    exit 2
fi
tests=$(realpath "$1")/test/$2
real=${4:-tarantool}
seconds=60
[ -d "$tests" ] || { echo "there is no $tests" >&2; exit 2; }
# Tests start the program that runs them again: by its name alone, it is to run programs.
link=$(mktemp -d)
trap 'rm -rf "$link"' EXIT
ln -s "$(realpath "$3")" "$link/tarantool"

# Prints the asserts that passed, one a line; those of subtests count as well.
passed() {
    local file=$1 folder
    shift
    folder=$(mktemp -d)
    cp -r "$tests/." "$folder"
    (cd "$folder" && timeout -k 5 "$seconds" "$@" "$file" 2>&1 </dev/null) |
        grep -aE '^ *ok( |$)' | sed 's/^ *//' | sort
    rm -rf "$folder"
}

total=0 reached=0 files=0 whole=0
for path in "$tests"/*.test.lua; do
    file=$(basename "$path")
    [ "$file" != tarantoolctl.test.lua ] || continue
    expected=$(passed "$file" "$real")
    [ -n "$expected" ] || continue
    found=$(passed "$file" "$link/tarantool")
    count=$(wc -l <<<"$expected")
    common=$(comm -12 <(echo "$expected") <(echo "$found") | grep -c .)
    printf '%-44s %4d of %4d\n' "$file" "$common" "$count"
    total=$((total + count)) reached=$((reached + common)) files=$((files + 1))
    [ "$common" -eq "$count" ] && whole=$((whole + 1))
done
echo "$reached of $total asserts, $whole of $files files whole"
