#!/usr/bin/env bash
# Requests that schemathesis makes of Ladon's own description of its HTTP, sound ones and others, on a server with a space and a
# function: no answer may be one that the description does not have.
#
#   scripts/schemathesis.sh LADON [EXAMPLES]
#
# Installs schemathesis and tarantool-python for itself.
set -euo pipefail
ladon=$(realpath "$1")
examples=${2:-40}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/ladon-schemathesis
[[ -x $cache/bin/schemathesis ]] || { python3 -m venv "$cache" && "$cache/bin/pip" install -q schemathesis tarantool; }
folder=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$folder"' EXIT
read -r resp http iproto < <(python3 -c '
import socket
sockets = [socket.socket() for _ in range(3)]
[s.bind(("127.0.0.1", 0)) for s in sockets]
print(*[s.getsockname()[1] for s in sockets])')
"$ladon" serve --port "$resp" --http "127.0.0.1:$http" --iproto "127.0.0.1:$iproto" --iproto-admin-password secret \
    --data "$folder/data" >"$folder/log" 2>&1 &
sleep 2
"$cache/bin/python" - "$iproto" "$resp" <<'P'
import socket
import sys

import tarantool

SPACE, INDEX = 280, 288
made = tarantool.connect("127.0.0.1", int(sys.argv[1]), user="admin", password="secret")
fields = [{"name": "id", "type": "unsigned"}, {"name": "name", "type": "string"},
          {"name": "age", "type": "integer", "is_nullable": True}, {"name": "tags", "type": "array", "is_nullable": True}]
made.insert(SPACE, [512, 1, "people", "memtx", 0, {}, fields])
made.insert(INDEX, [512, 0, "pk", "tree", {"unique": True}, [[0, "unsigned"]]])
made.insert(INDEX, [512, 1, "name", "tree", {"unique": False}, [[1, "string"], [0, "unsigned"]]])
for number in range(20):
    made.insert(512, [number, "n%d" % number, number, [1, "a"]])
library = "#!lua name=lib\nredis.register_function{function_name='echo', callback=function(k, a) return a end, flags={'no-writes'}}\n"
with socket.create_connection(("127.0.0.1", int(sys.argv[2]))) as one:
    one.sendall(b"*3\r\n$8\r\nFUNCTION\r\n$4\r\nLOAD\r\n$%d\r\n%s\r\n" % (len(library), library.encode()))
    assert one.recv(100).startswith(b"$3\r\nlib"), "the function is loaded"
P
# It keeps what it found where it runs.
cd "$folder"
"$cache/bin/schemathesis" run "http://127.0.0.1:$http/v1/openapi.json" --max-examples "$examples" \
    --phases examples,coverage,fuzzing --suppress-health-check all
