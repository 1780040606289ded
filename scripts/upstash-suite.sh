#!/usr/bin/env bash
# The own tests of Upstash's clients, @upstash/redis and @upstash/ratelimit, against a Ladon over HTTP.
#
#   scripts/upstash-suite.sh LADON [FOLDER]
#
# LADON is the program; the tests are fetched from GitHub into FOLDER (a temporary one), unless they are
# there. What they need of npm is installed there too, bun among it. Prints each suite's summary and the
# names of what failed; docs/compat/http.md says why those do.
#
# Needs: git, node with npm, the internet.
set -euo pipefail
ladon=$(realpath "$1")
folder=${2:-$(mktemp -d)}
mkdir -p "$folder"
cd "$folder"
[[ -d redis-js ]] || git clone -q --depth 1 https://github.com/upstash/redis-js
[[ -d ratelimit-js ]] || git clone -q --depth 1 https://github.com/upstash/ratelimit-js
[[ -x bun/node_modules/.bin/bun ]] || npm install --silent --prefix bun bun@latest
bun=$folder/bun/node_modules/.bin/bun
(cd redis-js/packages/redis && npm install --silent --no-save uncrypto @types/bun)
(cd ratelimit-js && npm install --silent --no-save @upstash/redis @upstash/core-analytics)

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
http=$(free_port)
resp=$(free_port)
"$ladon" serve --port "$resp" --http "127.0.0.1:$http" --requirepass upstash --data "$folder/data" \
    --gate none >"$folder/server.txt" 2>&1 &
server=$!
trap 'kill $server' EXIT
export UPSTASH_REDIS_REST_URL=http://127.0.0.1:$http UPSTASH_REDIS_REST_TOKEN=upstash
export REDIS_URL=redis://default:upstash@127.0.0.1:$resp
for _ in {1..100}; do
    curl -sf -H 'Authorization: Bearer upstash' "$UPSTASH_REDIS_REST_URL/healthz" >/dev/null && break
    sleep 0.1
done
for suite in redis-js/packages/redis:pkg ratelimit-js:src; do
    echo "== ${suite%%/*}"
    log=$folder/${suite%%[/:]*}.txt
    (cd "${suite%:*}" && "$bun" test "${suite#*:}" --timeout 60000) >"$log" 2>&1 || true
    grep -E '^\(fail\)' "$log" | sed 's/ \[[0-9.]*ms\]//' | sort -u || true
    grep -E '^ *[0-9]+ (pass|fail|skip)$' "$log"
done
