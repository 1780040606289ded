#!/bin/bash
# Runs the tests of rocks that use luatest by a server, and beside it by the real Tarantool, and says
# how many tests pass.
#
#   scripts/rocks-luatest.sh FOLDER BINARY [REAL]
#
# FOLDER has git repositories, bare or not: checks, errors, expirationd, http and luatest of
# https://github.com/tarantool. BINARY is a build of ladon, REAL an installed tarantool (default: the
# one in PATH). Each rock runs with the release of luatest that it asks for. http's own server is
# left out, so that its tests meet `http.server` of the server that runs them: the real one has none.
# expirationd's tests need `datetime`, which 2.6 has not. The test that defines a space within a
# transaction is left out: those behind it would all fail with it. The tests listen on ports of
# their own choice: run one at a time.
set -u
export LC_ALL=C
if [ $# -lt 2 ]; then
    sed -n '2,15s/^# \{0,1\}//p' "$0"
    exit 2
fi
repositories=$(realpath "$1")
binary=$(realpath "$2")
real=${3:-tarantool}
seconds=300
for name in checks errors expirationd http luatest; do
    git -C "$repositories/$name" rev-parse >/dev/null 2>&1 ||
        { echo "there is no repository $repositories/$name" >&2; exit 2; }
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# A tag of a repository, as files.
export_tag() {
    mkdir -p "$3"
    git -C "$repositories/$1" archive "$2" | tar x -C "$3"
}

# Makes the rock's folder, with the rocks that its tests need.
prepare() {
    local rock=$1 tag=$2 luatest=$3 rocks=$folder/$1/.rocks/share/tarantool
    export_tag "$rock" "$tag" "$folder/$rock"
    mkdir -p "$rocks"
    for needed in "luatest $luatest" "checks 3.4.1" "errors 2.2.1"; do
        read -r name version <<<"$needed"
        export_tag "$name" "$version" "$folder/needed/$name-$version"
        cp -r "$folder/needed/$name-$version/$name"* "$rocks/"
    done
    [ "$rock" != http ] || rm -rf "$folder/http/http"
}

# Prints how many tests of a rock passed and failed.
tried() {
    local rock=$1 luatest=$2
    shift 2
    local out=$folder/$rock.txt
    (cd "$folder/$rock" && LUA_PATH='./?.lua;./?/init.lua;;' timeout -k 5 "$seconds" "${server[@]}" \
        "$folder/needed/luatest-$luatest/bin/luatest" -o tap "$@" >"$out" 2>&1 </dev/null)
    echo "$(grep -acE '^ok ' "$out") $(grep -acE '^not ok ' "$out")"
}

# ROCK, its tag, luatest's, whether the real server can run it, and luatest's arguments.
while read -r rock tag luatest by_real arguments; do
    prepare "$rock" "$tag" "$luatest"
    if [ "$rock" = checks ]; then
        for name in test types; do cp "$folder/checks/test/$name.lua" "$folder/checks/test/${name}_test.lua"; done
    fi
    server=("$binary" tarantool)
    # shellcheck disable=SC2086
    read -r passed failed < <(tried "$rock" "$luatest" $arguments)
    line="$rock: $passed pass, $failed fail"
    if [ "$by_real" = yes ]; then
        server=("$real")
        # shellcheck disable=SC2086
        read -r passed failed < <(tried "$rock" "$luatest" $arguments)
        line="$line; by the real one $passed pass, $failed fail"
    fi
    echo "$line"
done <<'END'
checks 3.4.1 1.4.5 yes test/test_test.lua test/types_test.lua
errors 2.2.1 0.5.7 yes test/unit
expirationd 1.7.0 1.0.1 no -x test_not_stop_after_drop_and_recreate test/unit
http 1.9.0 1.4.5 no test/integration
END
