#!/usr/bin/env bash
# wrk at a page that writes a key, reads it back and answers JSON: Ladon over HTTP beside the lab's Go program over LevelDB.
#
#   scripts/web-wrk.sh LADON [WEB]
#
# WEB is the Go program that the lab has built (`ladon-lab doctor` says whether there is Go; `ladon-lab run --work web`
# builds it under ~/.cache/ladon-lab). The server has core 0, wrk core 1; each pair of lines is one round of both, with
# and without a sync before the answer. Needs: wrk, two cores.
set -euo pipefail
ladon=$(realpath "$1")
web=${2:-$(find "${XDG_CACHE_HOME:-$HOME/.cache}/ladon-lab" -type f -path '*/web-*/web' | head -1)}
folder=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$folder"' EXIT
value=$(printf '0123456789abcdef%.0s' 1 2 3 4)
printf 'wrk.method="POST"\nwrk.body=[==[[["SET","k","%s"],["GET","k"]]]==]\n' "$value" >"$folder/ladon.lua"
printf 'wrk.method="POST"\nwrk.body="%s"\n' "$value" >"$folder/go.lua"
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

loaded() { # name, threads, connections, script, address
    local said
    said=$(taskset -c 1 wrk -t"$2" -c"$3" -d4s --latency -s "$folder/$4" "$5" | grep -E '99%|Requests/sec|Non-2xx' | tr -s ' \n' ' ')
    echo "$1, $2 threads, $3 connections, sync $sync: $said"
}

# Ten threads of wrk on one core wait for each other, up to a tick (4 ms) each: one thread shows what the server takes.
for pair in "4 10" "10 100" "1 100"; do
    read -r threads connections <<<"$pair"
    for sync in no yes; do
        [[ $sync == yes ]] && gate=fsync || gate=none
        resp=$(free_port) http=$(free_port) go=$(free_port)
        taskset -c 0 "$ladon" serve --port "$resp" --http "127.0.0.1:$http" --io-threads 1 --gate "$gate" \
            --data "$folder/ladon-$threads-$sync" >/dev/null 2>&1 &
        first=$!
        taskset -c 0 "$web" -listen="127.0.0.1:$go" -store=leveldb -threads=1 \
            -path="$folder/leveldb-$threads-$sync" -sync="$([[ $sync == yes ]] && echo true || echo false)" >/dev/null 2>&1 &
        second=$!
        sleep 2
        for _ in 1 2 3; do
            loaded ladon "$threads" "$connections" ladon.lua "http://127.0.0.1:$http/pipeline"
            loaded go-leveldb "$threads" "$connections" go.lua "http://127.0.0.1:$go/kv/k"
        done
        kill "$first" "$second"
        wait "$first" "$second" 2>/dev/null || true
    done
done
