#!/usr/bin/env bash
# Runs real work of applications that people run on Redis, against Ladon.
#
#   scripts/applications.sh [NAME...]     bullmq, bullmq_crash, celery_jobs, rq_jobs, node_clients,
#                                         asynq_jobs, asynq_crash, java_clients, sidekiq_jobs,
#                                         sidekiq_crash, spring
#
#   LADON_BIN=PATH     the server; without it cargo builds one in the release profile
#   PORT=21450         where it listens
#
# The applications are fetched with npm, pip, go and mvn, into target/applications. Needs node,
# python3, go, java, mvn, and Sidekiq (Debian: ruby-sidekiq).
# Each one gets a fresh server at gate fsync; `_crash` ones have theirs killed by kill -9 four times.
# Exit status: how many failed.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
cache=${CARGO_TARGET_DIR:-$root/target}/applications
port=${PORT:-21450}
names=("$@")
[ ${#names[@]} -gt 0 ] || names=(bullmq bullmq_crash celery_jobs rq_jobs node_clients \
    asynq_jobs asynq_crash java_clients sidekiq_jobs sidekiq_crash spring)
for tool in node npm python3 go java mvn sidekiq; do
    command -v "$tool" >/dev/null || { echo "this needs $tool" >&2; exit 2; }
done

if [ -z "${LADON_BIN:-}" ]; then
    (cd "$root" && cargo build --quiet --release --package ladon-bin)
    LADON_BIN=${CARGO_TARGET_DIR:-$root/target}/release/ladon
fi
LADON_BIN=$(realpath "$LADON_BIN")
mkdir -p "$cache"
if [ ! -d "$cache/node_modules" ]; then
    npm install --silent --no-audit --no-fund --prefix "$cache" bullmq ioredis redis redlock \
        rate-limiter-flexible socket.io socket.io-client @socket.io/redis-adapter
fi
if [ ! -d "$cache/venv" ]; then
    python3 -m venv "$cache/venv"
    "$cache/venv/bin/pip" install --quiet 'celery[redis]' packaging rq redis
fi
(cd "$here/applications/asynq" && go build -o "$cache/asynq" .)
mvn --quiet --file "$here/applications/java/pom.xml" -Dtarget="$cache/java" compile \
    dependency:build-classpath -Dmdep.outputFile="$cache/java.classpath"

work=$(mktemp -d)
server=
stop() { [ -z "$server" ] || { kill "-${1:-TERM}" "$server" && wait "$server"; } 2>/dev/null || true; server=; }
trap 'stop KILL; rm -rf "$work"' EXIT

start() {
    "$LADON_BIN" serve --resp "127.0.0.1:$port" --data "$work/data" --gate fsync --io-threads 2 \
        >>"$work/ladon.log" 2>&1 &
    server=$!
    for _ in $(seq 200); do
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && return
        kill -0 "$server" 2>/dev/null || break
        sleep 0.05
    done
    echo "Ladon does not listen on port $port:" >&2
    cat "$work/ladon.log" >&2
    exit 2
}

# The programs find their libraries in the cache.
program() {
    if [[ $1 == asynq_* ]]; then
        timeout 220 "$cache/asynq" "${1#asynq_}" "$port"
    elif [ "$1" = java_clients ]; then
        timeout 180 java -cp "$cache/java/classes:$(cat "$cache/java.classpath")" Main "$port"
    elif [ "$1" = spring ]; then
        timeout 180 java -cp "$cache/java/classes:$(cat "$cache/java.classpath")" Springs "$port"
    elif [[ $1 == sidekiq_* ]]; then
        timeout 180 ruby "$here/applications/$1.rb" "$port"
    elif [ -f "$here/applications/$1.js" ]; then
        NODE_PATH=$cache/node_modules timeout 180 node "$here/applications/$1.js" "$port"
    else
        (cd "$here/applications" && PYTHONDONTWRITEBYTECODE=1 timeout 180 \
            "$cache/venv/bin/python" "$1.py" "$port")
    fi
}

failed=0
for name in "${names[@]}"; do
    echo "== $name"
    rm -rf "$work/data"
    start
    program "$name" &
    job=$!
    if [[ $name == *_crash ]]; then
        for _ in 1 2 3 4; do
            sleep 2.2
            stop KILL
            sleep 0.3
            start
        done
    fi
    status=0
    wait "$job" || status=$?
    if ! kill -0 "$server" 2>/dev/null; then
        echo "Ladon is dead:"
        tail -n 20 "$work/ladon.log"
        status=1
    fi
    [ "$status" = 0 ] || { echo "FAILED: $name ($status)"; failed=$((failed + 1)); }
    stop
done
exit "$failed"
