#!/usr/bin/env bash
# Runs the own test suites of libraries that people use with Redis, on Ladon and on redis-server,
# and names the tests that fail on Ladon alone.
#
#   scripts/library-suites.sh [NAME...]      for example rq asynq; `list` names all
#
#   LADON_BIN=PATH     the server; without it cargo builds one in the release profile
#
# The suites are fetched with go and pip, each of one version, into target/library-suites. Needs go,
# python3, redis-server, ip (iproute2) and unshare: each system gets a network of its own, in which
# port 6379 is free. Ladon runs at gate fsync with two IO threads. Tests that need what Ladon does
# not have yet are named, with the reason, by scripts/library-suites/known.txt.
# Exit status: how many suites have other tests that fail on Ladon alone.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
cache=${CARGO_TARGET_DIR:-$root/target}/library-suites
known=$here/library-suites/known.txt
all=(asynq cache channels_redis django_redis fakeredis go_redis huey limiter miniredis
    python_redis_lock radix redigo redis_py redislock redsync rq rueidis)

# --- the suites: what to fetch, and what to run in it ------------------------------------------

suite_asynq() { go_suite github.com/hibiken/asynq v0.26.0 . ./internal/rdb; }
suite_cache() { go_suite github.com/go-redis/cache/v9 v9.0.0 .; }
suite_go_redis() {
    export REDIS_VERSION=7.2
    local skip=(osscluster sentinel ring_test universal json_test timeseries probabilistic
        search_test vectorset tls)
    go_suite github.com/redis/go-redis/v9 v9.23.0 . -- -test.run TestGinkgoSuite \
        -ginkgo.no-color -ginkgo.skip 'Sentinel|Ring|Cluster|TLS|RediSearch' "${skip[@]/#/-ginkgo.skip-file=}"
}
# Without the rings, clusters and sentinels that its suite connects to first.
adapt_go_redis() { sed -i 's/if !RECluster {/if false {/' main_test.go; }
suite_limiter() {
    export REDIS_URI=redis://127.0.0.1:6379
    go_suite github.com/ulule/limiter/v3 v3.11.2 ./drivers/store/redis
}
# Compares itself with a real server, which here is Ladon: an oracle that is not ours.
suite_miniredis() {
    export INT=1
    go_suite github.com/alicebob/miniredis/v2 v2.40.0 -tags int ./integration -- \
        -test.skip 'Cluster|TLS|TestAuth|TestPing|TestSelect|TestHello'
}
suite_radix() { go_suite github.com/mediocregopher/radix/v4 v4.1.4 .; }
suite_redigo() { go_suite github.com/gomodule/redigo v1.9.3 ./redis; }
suite_redislock() { go_suite github.com/bsm/redislock v0.9.4 .; }
suite_redsync() { go_suite github.com/go-redsync/redsync/v4 v4.18.1 .; }
suite_rueidis() {
    go_suite github.com/redis/rueidis v1.0.79 . -- -test.run 'TestSingleClientIntegration|TestUnblockOnCancel|TestNegative'
}

suite_channels_redis() {
    python_suite channels_redis 4.3.0 'channels_redis[cryptography]' async-timeout pytest-asyncio -- \
        --ignore tests/test_sentinel.py --ignore tests/test_pubsub_sentinel.py tests
}
suite_django_redis() {
    python_suite django_redis 7.0.0 django_redis lz4 msgpack hiredis pytest-django pytest-mock \
        pytest-xdist -- -o addopts= tests
}
# Compares itself with a real server, like miniredis. Without the tests of itself alone.
suite_fakeredis() {
    local mixins=test/test_mixins
    python_suite fakeredis 2.40.0 'fakeredis[lua,valkey,digest]' hypothesis pytest-asyncio \
        pytest-mock -- --hypothesis-seed 1 -m 'not fake' \
        "$mixins" test/test_async test/test_hypothesis \
        test/test_keyspace_notifications.py test/test_subkey_notifications.py
}
adapt_fakeredis() { sed -i 's/\b6390\b/6379/' test/conftest.py test/*/*.py; }
suite_huey() {
    python_suite huey 3.5.4 'huey[redis]' -- -k Redis huey/tests/test_storage.py
}
suite_python_redis_lock() {
    python_suite python_redis_lock 4.0.1 'python-redis-lock[django]' process-tests eventlet -- tests
}
suite_redis_py() {
    python_suite redis 8.1.0 redis pytest-asyncio numpy cachetools mock packaging pyjwt pybreaker -- \
        -m 'not onlycluster and not ssl and not redismod' tests/test_commands.py tests/test_pipeline.py \
        tests/test_pubsub.py tests/test_lock.py tests/test_function.py tests/test_scripting.py \
        tests/test_connection.py tests/test_connection_pool.py tests/test_encoding.py \
        tests/test_monitor.py tests/test_keyspace_notifications.py tests/test_multiprocessing.py
}
suite_rq() { python_suite rq 3.0.0 rq psutil -- tests; }

# --- how they run -----------------------------------------------------------------------------

need() { command -v "$1" >/dev/null || { echo "this needs $1: apt-get install $2" >&2; exit 2; }; }

# go_suite MODULE VERSION [-tags TAGS] PACKAGE... [-- ARGUMENTS]: the tests of these packages.
go_suite() {
    local module=$1 version=$2 tags=() package directory binary
    shift 2
    need go golang
    [ "$1" != -tags ] || { tags=(-tags "$2"); shift 2; }
    local packages=()
    while [ $# -gt 0 ] && [ "$1" != -- ]; do packages+=("$1"); shift; done
    [ $# = 0 ] || shift
    directory=$cache/$name
    if [ ! -d "$directory" ]; then
        # From the module cache, which is read-only.
        (mkdir -p "$cache/fetch" && cd "$cache/fetch" && rm -f go.mod && go mod init fetch 2>/dev/null &&
            go mod download -json "$module@$version") >"$cache/$name.json"
        cp -r "$(sed -n 's/.*"Dir": "\(.*\)".*/\1/p' "$cache/$name.json")" "$directory"
        chmod -R u+w "$directory"
        adapt "$directory"
    fi
    for package in "${packages[@]}"; do
        binary=$cache/$name.${package//[!a-z]/_}.test
        (cd "$directory" && go test -c "${tags[@]}" -o "$binary" "$package")
        beside "$directory/$package" "$binary" -test.v -test.timeout 20m "$@"
    done
}

# python_suite PROJECT VERSION REQUIREMENT... -- ARGUMENTS: pytest on the project's sources.
python_suite() {
    local project=$1 version=$2 venv=$cache/$name.venv requirements=() archive
    shift 2
    need python3 python3-venv
    while [ "$1" != -- ]; do requirements+=("$1"); shift; done
    shift
    if [ ! -d "$cache/$name" ]; then
        rm -rf "$venv" "$cache/$name.part"
        python3 -m venv "$venv"
        "$venv/bin/pip" install --quiet "${requirements[0]}==$version" "${requirements[@]:1}" pytest \
            pytest-timeout
        "$venv/bin/pip" download --quiet --no-deps --no-binary :all: --dest "$cache/fetch" \
            "$project==$version"
        archive=$(find "$cache/fetch" -name "${project//_/?}-$version.tar.gz" -print -quit)
        mkdir "$cache/$name.part"
        tar -xf "$archive" --strip-components 1 -C "$cache/$name.part"
        adapt "$cache/$name.part"
        mv "$cache/$name.part" "$cache/$name"
    fi
    PATH=$venv/bin:$PATH PYTHONDONTWRITEBYTECODE=1 beside "$cache/$name" \
        python -m pytest -p no:cacheprovider -q -rfE --tb=short --timeout=120 "$@"
}

# What the suite changes in its fetched sources.
adapt() {
    if declare -F "adapt_$name" >/dev/null; then (cd "$1" && "adapt_$name"); fi
}

# Runs one command on both systems at once, and adds up what failed.
beside() {
    local system pids=() pid directory=$1
    shift
    for system in ladon redis; do
        rm -rf "$work/$system" && mkdir -p "$work/$system"
        unshare --map-root-user --net "$here/library-suites/in-namespace" "$system" "$work/$system" \
            "$directory" "$@" &
        pids+=($!)
    done
    for system in ladon redis; do
        pid=${pids[0]} pids=("${pids[@]:1}")
        local status=0
        wait "$pid" || status=$?
        [ "$status" -lt 124 ] || echo "(did not finish: $status)" >>"$work/$system.failed"
        failures <"$work/$system/output" >>"$work/$system.failed"
        successes <"$work/$system/output" >>"$work/$system.passed"
        cp "$work/$system/output" "$cache/$name.$system.log"
    done
}

# The names of the tests that failed: of Go, Ginkgo and pytest.
failures() {
    sed -nE -e 's/^ *--- FAIL: ([^ ]+).*/\1/p' -e 's/^ *\[FAIL\] (.*)/\1/p' -e 's/ \[[^]]*\.go:[0-9]+\]$//' \
        -e 's/^(FAILED|ERROR) ([^ ]+).*/\2/p' | grep -v '^TestGinkgoSuite$' | sort -u || true
}

# How many passed.
successes() {
    sed -nE -e 's/^ *--- PASS: .*/1/p' -e 's/.*\b([0-9]+) Passed\b.*/\1/p' -e 's/.*\b([0-9]+) passed\b.*/\1/p'
}

sum() { awk '{ all += $1 } END { print all + 0 }' "$1"; }

[ "${1:-}" != list ] || { printf '%s\n' "${all[@]}"; exit; }
need redis-server redis-server
need ip iproute2
need unshare util-linux
if [ -z "${LADON_BIN:-}" ]; then
    (cd "$root" && cargo build --quiet --release --package ladon-bin)
    LADON_BIN=${CARGO_TARGET_DIR:-$root/target}/release/ladon
fi
LADON_BIN=$(realpath "$LADON_BIN")
export LADON_BIN
mkdir -p "$cache"
cache=$(realpath "$cache")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
names=("$@")
[ ${#names[@]} -gt 0 ] || names=("${all[@]}")
bad=0
for name in "${names[@]}"; do
    declare -F "suite_$name" >/dev/null || { echo "no suite is called $name" >&2; exit 2; }
    rm -f "$work"/*.failed "$work"/*.passed
    touch "$work"/{ladon,redis}.{failed,passed}
    "suite_$name"
    sort -u "$work/redis.failed" >"$work/both"
    sort -u "$work/ladon.failed" | comm -23 - "$work/both" >"$work/alone"
    sed -n "s/^$name  *\([^#]*[^# ]\) *\(#.*\)\{0,1\}$/\1/p" "$known" >"$work/known"
    grep -vxEf "$work/known" "$work/alone" >"$work/unknown" || true
    [ -s "$work/known" ] || cp "$work/alone" "$work/unknown"
    printf '%-18s ladon %5s passed, %3s failed (%s known); redis %5s passed, %3s failed\n' "$name" \
        "$(sum "$work/ladon.passed")" "$(wc -l <"$work/ladon.failed")" \
        "$(($(wc -l <"$work/alone") - $(wc -l <"$work/unknown")))" \
        "$(sum "$work/redis.passed")" "$(wc -l <"$work/redis.failed")"
    if [ "$(sum "$work/ladon.passed")" = 0 ]; then
        echo "  no test ran: see $cache/$name.ladon.log"
        bad=$((bad + 1))
    elif [ -s "$work/unknown" ]; then
        sed 's/^/  on Ladon alone: /' "$work/unknown"
        bad=$((bad + 1))
    fi
done
exit "$bad"
