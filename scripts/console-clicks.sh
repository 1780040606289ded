#!/usr/bin/env bash
# Clicks through the web console in a headless browser.
#
#   scripts/console-clicks.sh [FOLDER]     screenshots go to FOLDER (target/console-clicks without)
#
#   LADON_BIN=PATH     the server; without it cargo builds one in the profile fast
#   CHROMIUM=PATH      the browser (chromium)
#   PORT=21480         where the server listens (and the two ports after it, for HTTP and IPROTO)
#
# Each page is used as a person would, with the mouse and with keys, as a user who may do everything
# and as one who may only read. axe-core looks at each page in both themes. Last come the compressed
# size of all pages, and the share of a core that a server with an open console takes.
# playwright-core and axe-core are fetched with npm, into target/console-clicks-npm.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
shots=$(realpath -m "${1:-$target/console-clicks}")
port=${PORT:-21480}
chromium=$(command -v "${CHROMIUM:-chromium}") || { echo "this needs chromium" >&2; exit 2; }
for program in node npm; do
    command -v "$program" >/dev/null || { echo "this needs $program" >&2; exit 2; }
done
if [ -z "${LADON_BIN:-}" ]; then
    (cd "$root" && cargo build --quiet --profile fast --package ladon-bin)
    LADON_BIN=$target/fast/ladon
fi
LADON_BIN=$(realpath "$LADON_BIN")
npm=$target/console-clicks-npm
mkdir -p "$npm" "$shots"
[ -d "$npm/node_modules/axe-core" ] ||
    (cd "$npm" && npm install --silent --no-fund --no-audit playwright-core@1.65 axe-core@4.14)
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || { kill "$server" && wait "$server"; } 2>/dev/null || true; rm -rf "$work"' EXIT
"$LADON_BIN" serve --resp "127.0.0.1:$port" --http-admin "127.0.0.1:$((port + 1))" \
    --iproto "127.0.0.1:$((port + 2))" --iproto-admin-password secret \
    --data "$work/data" --requirepass secret --slowlog-log-slower-than 0 >"$work/log" 2>&1 &
server=$!
for _ in $(seq 100); do
    grep -q '^  recovered' "$work/log" && break
    kill -0 "$server" 2>/dev/null || { cat "$work/log" >&2; exit 1; }
    sleep 0.1
done
space() { LADON_IPROTO_PASSWORD=secret "$LADON_BIN" space --iproto "127.0.0.1:$((port + 2))" "$@" >/dev/null; }
space create users --field id:unsigned --field name:string --field age:unsigned --field tags:any
space index users primary --part id:unsigned
space index users age --part age:unsigned --not-unique
space create empty
NODE_PATH=$npm/node_modules CHROMIUM=$chromium SHOTS=$shots PORT=$port SERVER=$server \
    timeout 300 node "$root/scripts/console-clicks/main.cjs" || { tail -5 "$work/log" >&2; exit 1; }
