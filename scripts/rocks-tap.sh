#!/bin/bash
# Runs a rock's own tests by a server, and beside it by the real Tarantool, and says how many of the
# files that the real one passes pass.
#
#   scripts/rocks-tap.sh FOLDER BINARY [REAL]
#
# FOLDER is a checkout of a rock whose tests are programs that print TAP, t/*.t
# (https://github.com/tarantool/queue). BINARY is a build of ladon, REAL an installed tarantool
# (default: the one in PATH). Each file runs in a copy of the checkout of its own, for 60 seconds at
# most. A file passes if its status is 0 and no assert of it fails; one in which the real server
# asserts nothing is left out. The tests listen on ports of their own choice: run one at a time.
set -u
export LC_ALL=C
if [ $# -lt 2 ]; then
    sed -n '2,12s/^# \{0,1\}//p' "$0"
    exit 2
fi
rock=$(realpath "$1")
binary=$(realpath "$2")
real=${3:-tarantool}
seconds=60
[ -d "$rock/t" ] || { echo "there is no $rock/t" >&2; exit 2; }

# Prints the status, and how many asserts passed and failed; those of subtests count as well.
tried() {
    local file=$1 folder status
    shift
    folder=$(mktemp -d)
    cp -r "$rock/." "$folder"
    (cd "$folder" && timeout -k 5 "$seconds" "$@" "t/$file" >"$folder.txt" 2>&1 </dev/null)
    status=$?
    echo "$status $(grep -acE '^ *ok( |$)' "$folder.txt") $(grep -acE '^ *not ok( |$)' "$folder.txt")"
    rm -rf "$folder" "$folder.txt"
}

total=0 reached=0 files=0 whole=0
for path in "$rock"/t/*.t; do
    file=$(basename "$path")
    read -r status expected failed < <(tried "$file" "$real")
    if [ "$status" -ne 0 ] || [ "$failed" -ne 0 ] || [ "$expected" -eq 0 ]; then
        printf '%-40s left out\n' "$file"
        continue
    fi
    read -r status found failed < <(tried "$file" "$binary" tarantool)
    verdict='' files=$((files + 1))
    total=$((total + expected)) reached=$((reached + found))
    if [ "$status" -eq 0 ] && [ "$failed" -eq 0 ] && [ "$found" -eq "$expected" ]; then
        whole=$((whole + 1)) verdict=passes
    fi
    printf '%-40s %4d of %4d  %s\n' "$file" "$found" "$expected" "$verdict"
done
echo "$reached of $total asserts, $whole of $files files whole"
