#!/usr/bin/env bash
# memcached's clients against a Ladon: the own tests of gomemcache and pymemcache, and work of memjs,
# memcached (npm), dalli, spymemcached and xmemcached, memcached_exporter; then 10,000 connections.
#
#   scripts/memcached-clients.sh LADON [FOLDER]
#
# LADON is the program; sources and packages are fetched into FOLDER (a temporary one), unless they are
# there. Prints a summary of each; docs/compat/memcached.md says why tests fail that do. The servers
# run in network namespaces of their own, so that port 11211 is free.
#
# Needs: git, go, python3, node with npm, java with mvn, the internet, root (unshare -n); dalli where
# ruby has it (apt-get install ruby-dalli).
set -euo pipefail
export LADON_BIN=$(realpath "$1")
own=$(realpath "$(dirname "${BASH_SOURCE[0]}")/memcached-clients")
folder=$(realpath -m "${2:-$(mktemp -d)}")
mkdir -p "$folder"
cd "$folder"
export PATH=$own:$PATH STAND_IN_LOG=$folder/server.txt

if [[ ! -d gomemcache ]]; then
    module=$(cd / && go mod download -json github.com/bradfitz/gomemcache@latest | sed -n 's/.*"Dir": "\(.*\)",/\1/p')
    cp -r "$module" gomemcache
    chmod -R u+w gomemcache
fi
(cd gomemcache && go test -c -o ../gomemcache.test ./memcache)
[[ -d pymemcache ]] || git clone -q --depth 1 https://github.com/pinterest/pymemcache
[[ -d venv ]] || python3 -m venv venv
venv/bin/pip -q install pytest pytest-cov Faker gevent pylibmc python-memcached zstd
npm install --silent --prefix node memjs memcached
mvn -q -B -Dtarget="$folder/java" -f "$own/java/pom.xml" compile dependency:copy-dependencies \
    -DoutputDirectory="$folder/java/jars"

# Runs a command beside a server at port 11211, where nothing else listens.
beside_server() {
    unshare -n bash -c 'ip link set lo up
        memcached -p 11211 & server=$!
        trap "kill $server; wait $server" EXIT
        for _ in {1..100}; do (exec 3<>/dev/tcp/127.0.0.1/11211) 2>/dev/null && break; sleep 0.05; done
        "$@"' - "$@"
}
status=0
echo "== gomemcache"
(cd gomemcache/memcache && beside_server "$folder/gomemcache.test" -test.v >"$folder/gomemcache.txt" 2>&1) || true
grep -E '^--- (PASS|FAIL|SKIP)' gomemcache.txt | sort | uniq
echo "== pymemcache"
(cd pymemcache && beside_server "$folder/venv/bin/python" -m pytest -q -o addopts= -m 'unit or integration' \
    -k 'not tls' pymemcache/test >"$folder/pymemcache.txt" 2>&1) || true
grep -E '^(FAILED|ERROR)|passed|failed' pymemcache.txt
echo "== memjs, memcached"
NODE_PATH=node/node_modules beside_server node "$own/work.js" 11211 && echo ok || status=1
echo "== dalli"
if ruby -e 'require "dalli"' 2>/dev/null; then
    beside_server ruby "$own/work.rb" 11211 || status=1
else
    echo "not installed"
fi
echo "== spymemcached, xmemcached"
beside_server java -cp "java/classes:java/jars/*" Main 11211 2>"$folder/java.txt" || { tail -5 java.txt; status=1; }
echo "== memcached_exporter"
# Parses all of `stats`, `stats items`, `slabs` and `settings`: up is 0 where one is not as memcached's.
[[ -d exporter ]] || git clone -q --depth 1 https://github.com/prometheus/memcached_exporter exporter
(cd exporter && go build -o ../memcached_exporter ./cmd/memcached_exporter)
beside_server bash -c 'printf "set a 0 0 1\r\n1\r\nget a\r\nget b\r\nincr a 1\r\nquit\r\n" | { exec 3<>/dev/tcp/127.0.0.1/11211; cat >&3; cat <&3; } >exporter.replies
    ./memcached_exporter --memcached.address 127.0.0.1:11211 --web.listen-address 127.0.0.1:9150 2>exporter.txt & exporter=$!
    trap "kill $exporter" EXIT
    for _ in {1..100}; do curl -s --noproxy "*" 127.0.0.1:9150/metrics >exporter.metrics && break; sleep 0.1; done
    grep -E "^memcached_(up|commands_total.*[1-9]$)" exporter.metrics && grep -qx "memcached_up 1" exporter.metrics' || status=1
echo "== connections"
ulimit -n "$(ulimit -Hn)"
beside_server bash -c 'exec python3 "$0" 11211 "$(ss -ltnpH "sport = :11211" | grep -oP "pid=\K\d+" | head -1)"' "$own/connections.py" || status=1
exit "$status"
