#!/usr/bin/env bash
# Runs connectors of Tarantool against Ladon: real work of each, impolite clients, and their own test
# suites beside a real tarantool, and names what fails on Ladon alone.
#
#   scripts/connectors.sh [NAME...]      for example work_go suite_go attack; `list` names all
#
#   LADON_BIN=PATH     the server; without it cargo builds one in the release profile
#
# The connectors are fetched with go, pip, npm and mvn, each of one version, into target/connectors.
# Needs go, python3, node, npm, java, mvn, tarantool (Debian's 2.6), ip (iproute2) and unshare.
# Real work runs on a server at gate fsync on a free port, which each program kills with kill -9.
# The suites start `tarantool` with programs in Lua, which `ladon tarantool` runs on Ladon. Each system gets a network of its own. Tests that need what Ladon does not have are named, with
# the reason, by scripts/connectors/known.txt.
# Exit status: how many of the names have something that fails.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
own=$here/connectors
cache=${CARGO_TARGET_DIR:-$root/target}/connectors
all=(work_go work_python work_asynctnt work_node work_java work_cartridge canary attack
    suite_go suite_go_types suite_go_pool suite_go_v2 suite_go_v2_types suite_go_v2_pool suite_go_v1
    suite_python suite_asynctnt suite_node)
go_version=v3.0.2 go_v2_version=v2.3.2 go_v1_version=v1.12.2 python_version=1.3.0 asynctnt_version=2.4.0 node_version=3.1.0
# Not run: io.tarantool:tarantool-client, which Maven Central does not have.
absent='io.tarantool:tarantool-client (not on Maven Central)'

# --- what they need ---------------------------------------------------------------------------

need() { command -v "$1" >/dev/null || { echo "this needs $1: apt-get install $2" >&2; exit 2; }; }

fetch_python() {
    need python3 python3-venv
    [ ! -f "$cache/venv/complete" ] || return 0
    rm -rf "$cache/venv"
    python3 -m venv "$cache/venv"
    "$cache/venv/bin/pip" install --quiet "tarantool==$python_version" "asynctnt==$asynctnt_version" \
        msgpack pytest pytest-timeout pyyaml dbapi-compliance==1.15.0 pytz python-dateutil
    touch "$cache/venv/complete"
}

# fetch_source PROJECT VERSION: the project's sources, with their tests.
fetch_source() {
    fetch_python
    [ ! -d "$cache/$1" ] || return 0
    "$cache/venv/bin/pip" download --quiet --no-deps --no-binary :all: --dest "$cache/fetch" "$1==$2"
    rm -rf "$cache/$1.part" && mkdir "$cache/$1.part"
    tar -xf "$cache/fetch/$1-$2.tar.gz" --strip-components 1 -C "$cache/$1.part"
    (cd "$cache/$1.part" && "adapt_$1")
    mv "$cache/$1.part" "$cache/$1"
}

adapt_tarantool() { :; }

# Its package lacks app.lua.
adapt_asynctnt() {
    rm -rf asynctnt
    mkdir tests/files
    cp "$own/asynctnt-app.lua" tests/files/app.lua
}

# fetch_go FOLDER MODULE VERSION: go-tarantool's sources, with their tests.
fetch_go() {
    local folder=$cache/$1
    need go golang
    [ ! -d "$folder" ] || return 0
    mkdir -p "$cache/fetch"
    (cd "$cache/fetch" && rm -f go.mod && go mod init fetch 2>/dev/null &&
        go mod download -json "$2@$3") >"$folder.json"
    rm -rf "$folder.part"
    cp -r "$(sed -n 's/.*"Dir": "\(.*\)".*/\1/p' "$folder.json")" "$folder.part"
    chmod -R u+w "$folder.part"
    # The real tarantool that makes the spaces knows no datetimes.
    sed -i -e '/^local has_datetime/,/^end/d' -e "s/type = 'datetime'/type = 'scalar'/" \
        "$folder.part/datetime/config.lua"
    mv "$folder.part" "$folder"
}

fetch_node() {
    need npm npm
    [ ! -d "$cache/node_modules" ] || return 0
    npm install --silent --no-audit --no-fund --prefix "$cache" "tarantool-driver@$node_version" \
        mocha@10 chai@4 sinon@3 msgpack-lite
    local test=$cache/node_modules/tarantool-driver/test
    sed -i 's/listen *= *33013/listen = "127.0.0.1:33013"/' "$test/box.lua"
    cp "$own/mocha_report.js" "$test/report.js"
}

# --- real work --------------------------------------------------------------------------------

work_python() { on_server "$cache/venv/bin/python" "$own/work/tarantool_python.py"; }
work_asynctnt() { on_server "$cache/venv/bin/python" "$own/work/asynctnt_work.py"; }
work_node() {
    fetch_node
    on_server env NODE_PATH="$cache/node_modules" node "$own/work/tarantool_driver.js"
}
work_go() {
    need go golang
    (cd "$own/work/go" && go build -o "$cache/work_go" .)
    on_server "$cache/work_go"
}
# work_java is org.tarantool:connector, work_cartridge io.tarantool:cartridge-driver.
work_java() { java_work Connector; }
work_cartridge() { java_work Cartridge; }
java_work() {
    need java default-jdk-headless
    need mvn maven
    mvn --quiet --file "$own/work/java/pom.xml" -Dtarget="$cache/java" compile dependency:build-classpath \
        -Dmdep.outputFile="$cache/java.classpath" >"$cache/mvn.log" 2>&1 || { cat "$cache/mvn.log"; return 1; }
    on_server java -cp "$cache/java/classes:$(cat "$cache/java.classpath")" "$1"
}
# Impolite clients, and a polite one beside them; also on the real tarantool.
attack() {
    WORK=$work/$name PYTHONDONTWRITEBYTECODE=1 "$cache/venv/bin/python" "$own/work/attack.py"
}
# At gate `none` replies leave before the log has what they acknowledge: the program must notice.
canary() {
    local said attempt
    for attempt in 1 2 3; do
        rm -rf "$work/$name/server"
        said=$(GATE=none on_server "$cache/venv/bin/python" "$own/work/tarantool_python.py" 2>&1) || break
    done
    said=$(grep 'acknowledged rows, lost' <<<"$said") || { echo "  nothing was missing after a crash"; return 1; }
    printf '%-20s %s\n' "$name" "$said"
}

# on_server COMMAND...: runs it beside a fresh server.
on_server() {
    local status=0
    export WORK=$work/$name/server SERVER=$own/work/server PYTHONDONTWRITEBYTECODE=1
    IPROTO_PORT=$(python3 -c 'import socket; print(socket.create_server(("127.0.0.1", 0)).getsockname()[1])')
    export IPROTO_PORT
    mkdir -p "$WORK"
    "$SERVER" start
    timeout -k 5 300 "$@" >"$WORK/output" 2>&1 || status=$?
    "$SERVER" stop || status=1
    cp "$WORK/output" "$cache/$name.log"
    if [ "$status" = 0 ]; then
        printf '%-20s %s\n' "$name" "$(tail -n 1 "$WORK/output")"
    else
        tail -n 30 "$WORK/output" "$WORK/server.log"
    fi
    return "$status"
}

# --- the suites -------------------------------------------------------------------------------

suite_go() { go_v3 .; }
suite_go_types() { go_v3 uuid decimal datetime; }
suite_go_pool() { go_v3 pool; }
suite_go_v2() { go_v2 .; }
suite_go_v2_types() { go_v2 uuid decimal datetime; }
suite_go_v2_pool() { go_v2 pool; }
suite_go_v1() { go_suite go1 github.com/tarantool/go-tarantool "$go_v1_version" .; }
go_v3() { go_suite go github.com/tarantool/go-tarantool/v3 "$go_version" "$@"; }
go_v2() { go_suite go2 github.com/tarantool/go-tarantool/v2 "$go_v2_version" "$@"; }
suite_python() {
    fetch_source tarantool "$python_version"
    python_suite "$cache/tarantool" test/suites
}
suite_asynctnt() {
    fetch_source asynctnt "$asynctnt_version"
    python_suite "$cache/asynctnt" -o addopts= tests
}
# Without what kills Docker's containers, and what connects to another machine.
suite_node() {
    fetch_node
    local driver=$cache/node_modules/tarantool-driver
    beside "$driver" "$own/with-tarantool" test/box.lua 33013 node "$cache/node_modules/mocha/bin/mocha.js" \
        --exit --timeout 8000 --reporter test/report.js --invert \
        --grep 'multihost|connect eventially|should close the connection when timeout' test/app.js
    verdict
}

# go_suite FOLDER MODULE VERSION PACKAGE...: the tests of these packages, but for two whose program ends with
# an error when it is started again, by tarantool as well (later than the test looks). Examples end the process
# when they fail.
go_suite() {
    local package binary folder=$1
    fetch_go "$1" "$2" "$3"
    shift 3
    for package; do
        binary=$cache/$folder.${package//[!a-z]/_}.test
        (cd "$cache/$folder/$package" && go test -c -o "$binary" .)
        beside "$cache/$folder/$package" "$own/go-report" "$package" "$binary" -test.v -test.timeout 5m \
            -test.run '^Test' -test.skip '^(TestConnection_named_index_after_reconnect|TestFutureReleaseRaceOnReconnect)$'
    done
    verdict
}

python_suite() {
    local directory=$1
    shift
    beside "$directory" python -m pytest -p no:cacheprovider -p pytest_report -q --tb=short --timeout=60 "$@"
    verdict
}

# Runs one command on both systems at once.
beside() {
    local system directory=$1 pids=()
    shift
    for system in ladon tarantool; do
        mkdir -p "$work/$name/$system"
        PATH=$cache/venv/bin:$PATH PYTHONPATH=$own PYTHONDONTWRITEBYTECODE=1 REPORT=$work/$name/$system.report \
            unshare --map-root-user --net "$own/in-namespace" "$system" "$work/$name/$system" "$directory" "$@" &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do wait "$pid" || true; done
    for system in ladon tarantool; do
        cp "$work/$name/$system/output" "$cache/$name.$system.log"
    done
}

verdict() { python3 "$own/judge.py" "$name" "$work/$name" "$own/known.txt"; }

# --- how it runs ------------------------------------------------------------------------------

end() {
    local pid
    for pid in "$work"/*/server/pid; do
        [ ! -f "$pid" ] || kill -KILL "$(cat "$pid")" 2>/dev/null || true
    done
    rm -rf "$work"
}

[ "${1:-}" != list ] || { printf '%s\n' "${all[@]}"; exit; }
need tarantool tarantool
need ip iproute2
need unshare util-linux
if [ -z "${LADON_BIN:-}" ]; then
    (cd "$root" && cargo build --quiet --release --package ladon-bin)
    LADON_BIN=${CARGO_TARGET_DIR:-$root/target}/release/ladon
fi
LADON_BIN=$(realpath "$LADON_BIN")
REAL_TARANTOOL=$(command -v tarantool)
export LADON_BIN REAL_TARANTOOL
mkdir -p "$cache"
cache=$(realpath "$cache")
work=$(mktemp -d)
trap end EXIT
names=("$@")
[ ${#names[@]} -gt 0 ] || names=("${all[@]}")
echo "not to be had: $absent"
bad=0
for name in "${names[@]}"; do
    declare -F "$name" >/dev/null || { echo "nothing is called $name" >&2; exit 2; }
    mkdir -p "$work/$name"
    fetch_python
    # In a shell of its own, where an error ends it.
    status=0
    (set -e; "$name") & wait $! || status=$?
    [ "$status" = 0 ] || { echo "FAILED: $name"; bad=$((bad + 1)); }
done
exit "$bad"
