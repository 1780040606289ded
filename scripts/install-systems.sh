#!/usr/bin/env bash
# Installs every system that the lab can compare Ladon with and that packages have: Redis, memcached
# and Tarantool of this Debian, Valkey, Redis 8 and memcached of sid (in a tree of their own, see
# install-peers.sh), Go's modules and Hazelcast's jar by the lab's own helpers. For the others,
# `ladon-lab doctor` prints the command of their makers.
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
packages=(redis-server redis-tools memcached tarantool wrk)
# Hazelcast is a jar, fetched by Maven and run by Java.
command -v java >/dev/null || packages+=(default-jdk-headless)
command -v mvn >/dev/null || packages+=(maven)
apt-get update -q
apt-get install -y -q --no-install-recommends "${packages[@]}"

# Debian's Go is older than what the modules of the web programs ask for.
if ! command -v go >/dev/null && [ ! -x /usr/local/go/bin/go ]; then
    echo "install-systems: no Go; the web programs need it: https://go.dev/dl" >&2
fi

"$here/install-peers.sh" "$@"
