#!/usr/bin/env bash
# Tries clients' libraries with TLS and a client's certificate, against Ladon.
#
#   scripts/tls-clients.sh [NAME...]      redis-cli, python, node, go, java
#
#   LADON_BIN=PATH     the server; without it cargo builds one in the release profile
#   PORT=21470         where it listens (and the port after it, for IPROTO)
#
# The libraries (redis-py, ioredis, node-redis, go-redis, go-tarantool, Jedis, Lettuce) are fetched
# with pip, npm, go and mvn, into target/tls-clients. Exit status: how many failed.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
cache=${CARGO_TARGET_DIR:-$root/target}/tls-clients
port=${PORT:-21470}
names=("$@")
[ ${#names[@]} -gt 0 ] || names=(redis-cli python node go java)
declare -A needs=([redis-cli]=redis-cli [python]=python3 [node]=npm [go]=go [java]=mvn)
for name in "${names[@]}"; do
    [ -n "${needs[$name]:-}" ] || { echo "$name is none of ${!needs[*]}" >&2; exit 2; }
    command -v "${needs[$name]}" >/dev/null || { echo "this needs ${needs[$name]}" >&2; exit 2; }
done
if [ -z "${LADON_BIN:-}" ]; then
    (cd "$root" && cargo build --quiet --release --package ladon-bin)
    LADON_BIN=${CARGO_TARGET_DIR:-$root/target}/release/ladon
fi
LADON_BIN=$(realpath "$LADON_BIN")
mkdir -p "$cache"
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || { kill -KILL "$server" && wait "$server"; } 2>/dev/null || true; rm -rf "$work"' EXIT

# An authority, and certificates for localhost and for a client.
certificates() {
    cd "$work"
    local key=(-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes) name
    openssl req -x509 "${key[@]}" -keyout ca.key -out ca.crt -days 30 -subj '/CN=test authority'
    printf 'subjectAltName=DNS:localhost,IP:127.0.0.1\n' >server.names
    printf 'extendedKeyUsage=clientAuth\n' >client.names
    for name in server client; do
        openssl req "${key[@]}" -keyout $name.key -out $name.csr -subj "/CN=$name"
        openssl x509 -req -in $name.csr -CA ca.crt -CAkey ca.key -CAcreateserial -out $name.crt -days 30 \
            -extfile $name.names
    done
    openssl pkcs12 -export -in client.crt -inkey client.key -out client.p12 -passout pass:secret
    ! command -v keytool >/dev/null || keytool -importcert -noprompt -alias ca -file ca.crt -storetype PKCS12 \
        -keystore trust.p12 -storepass secret
}
(certificates) >"$work/certificates.log" 2>&1 || { cat "$work/certificates.log" >&2; exit 2; }

"$LADON_BIN" serve --port 0 --tls-port "$port" --iproto-tls "127.0.0.1:$((port + 1))" --data "$work/data" \
    --tls-cert-file "$work/server.crt" --tls-key-file "$work/server.key" --tls-ca-cert-file "$work/ca.crt" \
    --io-threads 2 >"$work/ladon.log" 2>&1 &
server=$!
cli() { redis-cli --tls --cacert "$work/ca.crt" --cert "$work/client.crt" --key "$work/client.key" -p "$port" "$@"; }
# `--cert` and `--key`: the server's own certificate is for servers.
for _ in $(seq 100); do
    "$LADON_BIN" ping --port 0 --tls-port "$port" --tls-cert-file "$work/server.crt" --cert "$work/client.crt" \
        --key "$work/client.key" >/dev/null 2>&1 && break
    kill -0 "$server" 2>/dev/null || { cat "$work/ladon.log" >&2; exit 2; }
    sleep 0.05
done

program() {
    case $1 in
    redis-cli)
        [ "$(cli SET cli hello)" = OK ] && [ "$(cli GET cli)" = hello ] || return 1
        ! redis-cli --tls --cacert "$work/ca.crt" -p "$port" PING 2>/dev/null | grep -q PONG || return 1
        ! redis-cli -p "$port" PING 2>/dev/null | grep -q PONG || return 1
        echo "redis-cli: ok; without a certificate, without TLS: refused"
        ;;
    python)
        [ -d "$cache/venv" ] || { python3 -m venv "$cache/venv" && "$cache/venv/bin/pip" install --quiet redis; }
        "$cache/venv/bin/python" "$here/tls-clients/redis_py.py" "$work" "$port"
        ;;
    node)
        [ -d "$cache/node_modules" ] || npm install --silent --no-audit --no-fund --prefix "$cache" ioredis redis
        NODE_PATH=$cache/node_modules node "$here/tls-clients/node.js" "$work" "$port"
        ;;
    go)
        (cd "$here/tls-clients/go" && go build -o "$cache/go-clients" .)
        "$cache/go-clients" "$work" "$port" "$((port + 1))"
        ;;
    java)
        mvn --quiet --file "$here/tls-clients/java/pom.xml" -Dtarget="$cache/java" compile \
            dependency:build-classpath -Dmdep.outputFile="$cache/java.classpath"
        java -cp "$cache/java/classes:$(cat "$cache/java.classpath")" TlsClients "$work" "$port"
        ;;
    esac
}

failed=0
for name in "${names[@]}"; do
    # Not in an `if`: there, nothing inside would end with the first error.
    status=0
    (set -e; program "$name") & wait $! || status=$?
    [ "$status" = 0 ] || { echo "FAILED: $name ($status)"; failed=$((failed + 1)); }
    kill -0 "$server" 2>/dev/null || { echo "Ladon is dead:"; tail -n 20 "$work/ladon.log"; exit 1; }
done
[ "$failed" = 0 ] || tail -n 20 "$work/ladon.log"
exit "$failed"
