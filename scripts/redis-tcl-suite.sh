#!/usr/bin/env bash
# Runs Redis' own Tcl tests, in their external mode, against Ladon.
#
#   scripts/redis-tcl-suite.sh [UNIT...]      for example unit/type/string unit/multi
#
#   SUITE=valkey-8.1   whose tests: redis-7.0, redis-8 or valkey-8.1 (the fork of 7.2: its tests
#                      say what 7.2 answers; 7.0's disagree with it in a few places)
#   LADON_BIN=PATH     the server; without it cargo builds one in the release profile
#   PORT=21400         where it listens
#   SUITE_VERBOSE=1    the suite's own output as well
#
# The suite is not in this repository: it is fetched as the source package of Debian, with apt's
# own checks of signatures, into target/redis-tcl-suite. Needs apt-get, tclsh and redis-cli.
#
# Each unit gets a fresh server; those that the suite does not run in external mode start their own,
# through scripts/redis-tcl-suite/redis-server. Tests that need what Ladon does not have yet are left out by
# scripts/redis-tcl-suite/skip.txt, which gives a reason for each. Exit status: 0 if nothing failed.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
suite=${SUITE:-valkey-8.1}
port=${PORT:-21400}
cache=${CARGO_TARGET_DIR:-$root/target}/redis-tcl-suite
required="unit/type/string unit/type/incr unit/type/set unit/type/hash unit/type/list unit/type/list-2
  unit/type/list-3 unit/type/zset unit/type/stream unit/type/stream-cgroups unit/bitops unit/bitfield unit/tracking
  unit/hyperloglog unit/geo unit/sort unit/expire unit/scan unit/keyspace unit/dump
  unit/functions unit/scripting unit/multi unit/protocol unit/info unit/info-command unit/introspection unit/introspection-2
  unit/other unit/querybuf unit/quit unit/latency-monitor unit/slowlog unit/lazyfree unit/pause
  unit/replybufsize unit/violations unit/client-eviction unit/auth unit/acl unit/acl-v2
  unit/tls"
# Units that start their servers themselves.
own=" unit/client-eviction unit/auth unit/acl unit/acl-v2 unit/tls "
read -r -a units <<<"$(echo ${*:-$required})"

case $suite in
redis-7.0) release=bookworm package=redis ;;
valkey-8.1) release=trixie package=valkey ;;
redis-8) release=sid package=redis ;;
*) echo "SUITE=$suite is none of redis-7.0, valkey-8.1, redis-8" >&2; exit 2 ;;
esac

need() { command -v "$1" >/dev/null || { echo "this needs $1: apt-get install $2" >&2; exit 2; }; }
need tclsh tcl
need redis-cli redis-tools

# The source package by apt's own means, with a configuration of its own: the machine's
# sources stay as they are.
fetch() {
    local apt=$cache/apt key=/usr/share/keyrings/debian-archive-keyring.gpg
    need apt-get apt
    mkdir -p "$apt"/{etc,lists/partial,cache/archives/partial}
    echo "deb-src [signed-by=$key] http://deb.debian.org/debian $release main" >"$apt/etc/sources.list"
    cat >"$apt/apt.conf" <<EOF
Dir::Etc::sourcelist "$apt/etc/sources.list";
Dir::Etc::sourceparts "-";
Dir::State::lists "$apt/lists";
Dir::Cache "$apt/cache";
APT::Sandbox::User "";
EOF
    rm -rf "$cache/$suite.part" && mkdir -p "$cache/$suite.part"
    (
        cd "$cache/$suite.part"
        export APT_CONFIG=$apt/apt.conf
        apt-get update -q
        apt-get source -q --download-only "$package"
        tar xf "$package"_*.orig.tar.* --strip-components=1
    ) >"$cache/fetch.log" 2>&1 || { tail -n 20 "$cache/fetch.log" >&2; exit 2; }
    rm -rf "${cache:?}/$suite" && mv "$cache/$suite.part" "$cache/$suite"
}
mkdir -p "$cache"
[ -f "$cache/$suite/tests/test_helper.tcl" ] || fetch

# 7.2 keeps a short list as a listpack, 7.0 called every list a quicklist: what its tests do with lists
# is worth more than that name. Which list is which the younger suites check.
if [ "$suite" = redis-7.0 ]; then
    sed -i 's/assert_encoding quicklist/assert_encoding *list*/; s/ lpush quicklist / lpush *list* /' \
        "$cache/$suite"/tests/unit/{type/list,sort}.tcl
    # One client is to wait before the other, but 7.0's test asks both at once: on connections of two
    # threads either may come first. The younger suites wait in between, so this does as they do.
    sed -i -E 's/(brpoplpush blist\{t\} target([12])\{t\} 0)$/\1; wait_for_blocked_clients_count \2/' \
        "$cache/$suite"/tests/unit/type/list.tcl
fi

# Redis takes memory for all that a request announces, so that its tests count on a client's size as
# soon as the request is sent. Ladon's grows with what has arrived: wait for that. Redis also resizes
# reply buffers by and by, which DEBUG REPLYBUFFER stops, and counts each as full: leave room for the replies that
# the tests ask for between setting a limit and looking who is left.
eviction=$cache/$suite/tests/unit/client-eviction.tcl
if [ -f "$eviction" ] && ! grep -q 'proc wait_for_qbuf' "$eviction"; then
    sent='$n'
    if grep -q 'string repeat v \[expr {$n - 1}\]' "$eviction"; then sent='[expr {$n - 1}]'; fi
    sed -i -e '/r debug replybuffer resizing/d' \
        -e 's/^proc gen_client .*/proc wait_for_qbuf {name bytes count} {\
    wait_for_condition 500 10 {\
        [llength [regexp -all -inline "name=$name .*? qbuf=$bytes " [r client list]]] == $count\
    } else {\
        fail "what was sent does not arrive"\
    }\
}\n\n&/' \
        -e 's/^\( *\)assert {!\[client_exists $cname\]}/\1wait_for_condition 50 10 {![client_exists $cname]} else { fail "nobody is evicted" }/' \
        -e 's/^ *set tot_mem \[client_field/        wait_for_qbuf $cname '"$sent"' 1\n&/' \
        -e 's/\[client_field client$j tot-mem\] >= $client_mem/[client_field client$j qbuf] == $client_mem/' \
        -e 's/\[client_field control tot-mem\]/[expr {[client_field control tot-mem] + 16384}]/' \
        -e 's/^ *set client_mem \[client_field client-$i/            wait_for_qbuf client-$i $size $clients_per_size\n&/' \
        "$eviction"
fi

# How an append-only file is written is no setting of Ladon's.
sed -i 's/ aof-use-rdb-preamble no//' "$cache/$suite"/tests/unit/type/stream*.tcl

# Which commands scripts may run cannot be switched off. The tests that need it are left out.
sed -i '/[dD][eE][bB][uU][gG] set-disable-deny-scripts/d' "$cache/$suite"/tests/unit/scripting.tcl

for name in redis-server valkey-server; do install "$here/redis-tcl-suite/redis-server" "$cache/$suite/src/$name"; done

if [ -z "${LADON_BIN:-}" ]; then
    (cd "$root" && cargo build --quiet --release --package ladon-bin)
    LADON_BIN=${CARGO_TARGET_DIR:-$root/target}/release/ladon
fi

LADON_BIN=$(realpath "$LADON_BIN")
work=$(mktemp -d)
server=
stop() { [ -z "$server" ] || { kill "$server" && wait "$server"; } 2>/dev/null || true; server=; }
trap 'stop; rm -rf "$work"' EXIT

start() {
    rm -rf "$work/data"
    "$LADON_BIN" serve --resp "127.0.0.1:$port" --data "$work/data" --gate none --io-threads 2 \
        --enable-debug-command yes >"$work/ladon.log" 2>&1 &
    server=$!
    for _ in $(seq 100); do
        [ "$(redis-cli -p "$port" ping 2>/dev/null)" = PONG ] && return
        kill -0 "$server" 2>/dev/null || break
        sleep 0.05
    done
    echo "Ladon does not answer on port $port:" >&2
    cat "$work/ladon.log" >&2
    exit 2
}

# The suite's own certificates. It never uses the parameters that take a minute.
certificates() {
    echo 'package require tls' | tclsh 2>/dev/null || { echo "this needs Tcl's tls: apt-get install tcl-tls" >&2; exit 2; }
    [ -f "$cache/$suite/tests/tls/client.crt" ] && return
    (
        cd "$cache/$suite"
        mkdir -p tests/tls
        touch tests/tls/valkey.dh tests/tls/redis.dh
        bash utils/gen-test-certs.sh
    ) >"$cache/certificates.log" 2>&1
}

# Which tests of a unit are left out: the lines "SUITES | UNIT | TEST | REASON" of the skip list.
skips() {
    awk -F ' *\\| *' -v suite="$suite" -v unit="$1" '
        /^#/ || NF < 4 { next }
        ($1 == "all" || index(suite, $1)) && $2 == unit { print $3 }' "$here/redis-tcl-suite/skip.txt"
}

failed=0
printf '%-24s %6s %6s %6s %6s\n' "$suite" passed failed left-out n/a
for unit in "${units[@]}"; do
    [ -f "$cache/$suite/tests/$unit.tcl" ] || { printf '%-24s is not in this suite\n' "$unit"; continue; }
    skips "$unit" >"$work/skip"
    status=0
    # Servers that a unit starts itself may follow others, which no test of the others asks for.
    where=() tags="-needs:repl -repl" tls=()
    if [[ $unit == unit/tls ]]; then
        certificates
        tls=(--tls)
    fi
    if [[ $own != *" $unit "* ]]; then
        start
        where=(--host 127.0.0.1 --port "$port") tags=-needs:repl
    fi
    (
        cd "$cache/$suite"
        LADON_BIN=$LADON_BIN timeout "${SUITE_TIMEOUT:-300}" tclsh tests/test_helper.tcl "${where[@]}" \
            --baseport $((port + 60)) --durable --skipfile "$work/skip" \
            --tags "$tags" --single "$unit" "${tls[@]}"
    ) </dev/null 2>&1 | sed 's/\x1b\[[0-9;]*m//g' >"$work/out" || status=$?
    if [ -n "$server" ]; then
        kill -0 "$server" 2>/dev/null || { echo "Ladon is dead:"; tail -n 20 "$work/ladon.log"; status=1; }
    fi
    stop
    count() { grep -c "^\[$1\]" "$work/out" || true; }
    bad=$(($(count err) + $(count exception)))
    printf '%-24s %6d %6d %6d %6d\n' "$unit" "$(count ok)" "$bad" "$(count skip)" "$(count ignore)"
    [ -z "${SUITE_VERBOSE:-}" ] || cat "$work/out"
    if [ "$bad" -gt 0 ] || [ "$status" -ne 0 ]; then
        failed=1
        awk '/^\[/ { failure = /^\[(err|exception)\]/ } /^\*\*\*|^Cleanup|The End/ { failure = 0 } failure' "$work/out"
        [ "$status" -eq 0 ] || tail -n 5 "$work/out"
    fi
done
exit $failed
