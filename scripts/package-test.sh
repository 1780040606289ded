#!/usr/bin/env bash
# Tries the packages of scripts/package.sh as a machine would that has never seen Ladon.
#
#   scripts/package-test.sh deb     lintian; installs, starts, upgrades and purges it in a fresh Debian
#   scripts/package-test.sh image   unpacks the image and runs it from its root
#   scripts/package-test.sh page    runs the commands of docs/operating/first-server.md in a fresh Debian
#   scripts/package-test.sh         all of them
#
# Needs root, mmdebstrap, lintian, umoci, redis-cli and redis-server (scripts/package.sh --tools). A
# chroot has no systemd that runs, so the unit is checked by systemd-analyze, and its command is started
# by hand as its user; for the page, a few lines stand in for systemctl. Ports: 16379, 19121; for the
# page those that it names: 6379, 6380, 9121.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

out=target/package
work=$(mktemp -d)
server=
# Ends the server, and everything below the folder.
cleanup() {
    [[ -z $server ]] || kill "$server" 2>/dev/null || true
    rm -rf --one-file-system "$work"
}
trap cleanup EXIT

say() { printf '\n==> %s\n' "$*"; }
fail() { echo "FAILED: $*" >&2; exit 1; }
is() { [[ $2 == "$3" ]] || fail "$1: '$2' instead of '$3'"; }
cli() { redis-cli -p 16379 "$@"; }

# Waits until the server answers.
wait_ready() {
    local _
    for _ in $(seq 200); do
        [[ $(curl -s -o "$work/answer" -w '%{http_code}' http://127.0.0.1:19121/readyz) == 200 ]] && return
        kill -0 "$server" 2>/dev/null || fail "the server has ended"
        sleep 0.05
    done
    fail "the server is not ready: $(cat "$work/answer")"
}

stop_server() {
    kill "$server"
    wait "$server" || fail "the server ended with $?"
    server=
}

# The unit's command, as its user, with what the unit makes for it.
start_in_chroot() {
    local root=$1 user command
    user=$(chroot "$root" id -u ladon)
    command=$(sed -n 's/^ExecStart=//p' "$root/usr/lib/systemd/system/ladon.service")
    install -d -m 0700 -o "$user" -g "$user" "$root/var/lib/ladon" "$root/run/ladon"
    # shellcheck disable=SC2086
    chroot --userspec=ladon:ladon "$root" $command --port 16379 --http-admin 127.0.0.1:19121 &
    server=$!
    wait_ready
}

in_root() { DEBIAN_FRONTEND=noninteractive chroot "$root" "$@"; }

test_deb() {
    local deb root=$work/debian
    deb=$(ls -t "$out"/ladon_*.deb | head -1)
    say "lintian $deb"
    lintian --fail-on error,warning --suppress-tags initial-upload-closes-no-bugs "$deb"
    say "systemd-analyze"
    dpkg-deb -x "$deb" "$work/files"
    local unit=$work/files/usr/lib/systemd/system/ladon.service
    sed -i "s|^ExecStart=/usr/bin/ladon|ExecStart=$work/files/usr/bin/ladon|" "$unit"
    systemd-analyze verify --man=no "$unit"
    local exposure
    exposure=$(systemd-analyze security --offline=true --no-pager "$unit" | tail -1)
    echo "$exposure"
    [[ $exposure =~ :\ ([0-9.]+) ]] || fail "no exposure level"
    awk -v level="${BASH_REMATCH[1]}" 'BEGIN { exit !(level <= 2.0) }' || fail "exposure above 2.0"

    say "a fresh Debian"
    # With what the package depends on; inside, there is no network.
    mmdebstrap --quiet --variant=apt --include=systemd bookworm "$root"
    printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
    chmod +x "$root/usr/sbin/policy-rc.d"
    mount --bind /dev "$root/dev"
    trap 'umount "$root/dev" 2>/dev/null; cleanup' EXIT
    cp "$deb" "$root/ladon.deb"

    say "install"
    in_root apt-get install -qq -y --no-install-recommends /ladon.deb >"$work/install.txt" 2>&1 ||
        { cat "$work/install.txt"; fail "install"; }
    is "the configuration's rights" "$(in_root stat -c '%U:%G %a' /etc/ladon/ladon.toml)" "root:ladon 640"
    [[ -e $root/usr/share/man/man1/ladon.1.gz ]] || fail "no manual page"
    [[ -e $root/usr/share/bash-completion/completions/ladon ]] || fail "no completions"

    say "start"
    start_in_chroot "$root"
    is "SET" "$(cli SET greeting hello)" OK
    is "ladon ping" "$(in_root ladon ping --port 16379)" PONG
    curl -sf http://127.0.0.1:19121/metrics | grep -q '^ladon_keys{db="db0"} 1$' || fail "no metrics"
    stop_server

    say "upgrade"
    # The administrator has changed the configuration; the next version has another one.
    echo 'maxmemory = "64mb"' >>"$root/etc/ladon/ladon.toml"
    dpkg-deb -R "$deb" "$work/next"
    sed -i 's/^Version: .*/&+next/' "$work/next/DEBIAN/control"
    dpkg-deb --root-owner-group -b "$work/next" "$root/next.deb" >/dev/null
    in_root apt-get install -qq -y --no-install-recommends /next.deb >"$work/upgrade.txt" 2>&1 ||
        { cat "$work/upgrade.txt"; fail "upgrade"; }
    [[ $(in_root dpkg-query -W -f '${Version}' ladon) == *+next ]] || fail "not upgraded"
    is "the rights stay" "$(in_root stat -c '%U:%G %a' /etc/ladon/ladon.toml)" "root:ladon 640"
    start_in_chroot "$root"
    is "the data" "$(cli GET greeting)" hello
    is "the configuration" "$(cli CONFIG GET maxmemory | tail -1)" 67108864
    stop_server

    say "remove, purge"
    in_root apt-get remove -qq -y ladon >/dev/null 2>&1
    [[ -e $root/var/lib/ladon && -e $root/etc/ladon/ladon.toml ]] || fail "remove has lost something"
    in_root apt-get purge -qq -y ladon >/dev/null 2>&1
    local left
    left=$(find "$root"/{etc,lib,usr,var/lib} -iname '*ladon*' -not -path '*/apt/*' -not -name 'passwd*' |
        sed "s|^$root||")
    is "what is left" "$left" ""
    umount "$root/dev"
    trap cleanup EXIT
    say "deb: ok"
}

test_image() {
    local version root=$work/bundle bytes
    version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
    say "unpack"
    bytes=$(du -sb "$out/image" | cut -f1)
    ((bytes < 25 << 20)) || fail "the image has $bytes bytes"
    umoci unpack --image "$out/image:$version" "$root"
    is "its user" "$(jq -c '[.process.user.uid, .process.user.gid]' "$root/config.json")" "[65532,65532]"
    is "its command" "$(jq -c .process.args "$root/config.json")" '["/bin/ladon","serve"]'
    local variables=()
    mapfile -t variables < <(jq -r '.process.env[]' "$root/config.json")
    say "run, as its user, on a root that cannot be written"
    install -d -o 65532 -g 65532 "$work/volume"
    unshare --mount --propagation private bash -euc '
        mount --bind "$1/rootfs" "$1/rootfs"
        mount --bind "$2" "$1/rootfs/data"
        mount -o remount,bind,ro "$1/rootfs"
        shift 2
        root=$1
        shift
        exec chroot --userspec=65532:65532 "$root" /bin/ladon "$@"
    ' bash "$root" "$work/volume" "$root/rootfs" version | grep -q '^ladon ' || fail "it does not start"
    unshare --mount --propagation private env -i "${variables[@]}" LADON_PORT=16379 \
        LADON_HTTP_ADMIN=127.0.0.1:19121 LADON_PROTECTED_MODE=yes /bin/bash -euc '
        export PATH=$PATH:/usr/sbin:/usr/bin:/sbin:/bin
        mount --bind "$1/rootfs" "$1/rootfs"
        mount --bind "$2" "$1/rootfs/data"
        mount -o remount,bind,ro "$1/rootfs"
        exec chroot --userspec=65532:65532 "$1/rootfs" /bin/ladon serve
    ' bash "$root" "$work/volume" &
    server=$!
    wait_ready
    is "SET" "$(cli SET greeting hello)" OK

    is "ladon ping" "$(LADON_PORT=16379 chroot --userspec=65532:65532 "$root/rootfs" /bin/ladon ping)" PONG
    stop_server
    [[ -d $work/volume/log || -n $(ls "$work/volume") ]] || fail "no data in the volume"
    say "image: ok ($bytes bytes)"
}

# What the page does with systemctl: the unit's commands as its user, and READY=1 as the end of a start.
systemctl_for_chroot() {
    cat >"$1/usr/local/bin/systemctl" <<'END'
#!/bin/bash
unit=/usr/lib/systemd/system/ladon.service
pid=/run/ladon.pid
# The package's script starts it where systemd runs; then these exist.
install -d -m 0755 -o ladon -g ladon /run/ladon
install -d -m 0700 -o ladon -g ladon /var/lib/ladon
case "$1 $2" in
"start ladon")
    command=$(sed -n 's/^ExecStart=//p' $unit)
    setpriv --reuid ladon --regid ladon --clear-groups $command </dev/null >>/var/log/ladon.log 2>&1 &
    echo $! >$pid
    for _ in $(seq 200); do
        grep -q ' ready: ' /var/log/ladon.log && exit 0
        kill -0 "$(cat $pid)" 2>/dev/null || break
        sleep 0.05
    done
    cat /var/log/ladon.log >&2
    exit 1
    ;;
"stop ladon")
    [ -e $pid ] || exit 0
    kill "$(cat $pid)"
    while kill -0 "$(cat $pid)" 2>/dev/null; do sleep 0.05; done
    rm $pid
    ;;
"reload ladon") MAINPID=$(cat $pid) bash -c "$(sed -n "s/^ExecReload=.bin.sh -c '\(.*\)'$/\1/p" $unit)" ;;
*) echo "systemctl $*: not in this chroot" >&2; exit 1 ;;
esac
END
    chmod +x "$1/usr/local/bin/systemctl"
}

test_page() {
    local deb root=$work/page page=docs/operating/first-server.md
    deb=$(ls -t "$out"/ladon_*.deb | head -1)
    say "a fresh Debian, and last night's data"
    mmdebstrap --quiet --variant=apt --include=systemd,openssl,redis-tools,curl,ca-certificates bookworm "$root"
    printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
    chmod +x "$root/usr/sbin/policy-rc.d"
    mount --bind /dev "$root/dev"
    trap 'chroot "$root" systemctl stop ladon || true; umount "$root/dev" 2>/dev/null || true; cleanup' EXIT
    redis-server --port 16379 --dir "$work" --dbfilename dump.rdb --save "" >/dev/null &
    server=$!
    until cli PING >/dev/null 2>&1; do sleep 0.1; done
    local words
    for words in "SET price:7 12" "RPUSH orders a b c" "HSET cart:9 book 1"; do
        # shellcheck disable=SC2086
        cli $words >/dev/null
    done
    cli SAVE >/dev/null
    stop_server
    systemctl_for_chroot "$root"
    cp "$deb" "$root/root/ladon_0.1.0-1_amd64.deb"
    cp "$work/dump.rdb" "$root/root/"
    say "the page"
    {
        printf 'set -euo pipefail\nset -x\ncd /root\n'
        awk '/^```sh as-root$/ { on = 1; next } /^```$/ { on = 0 } on' "$page"
        # Every line of the page has been run; what it has come to:
        # shellcheck disable=SC2016
        printf '%s\n' '[ "$(admin DBSIZE)" = 4 ]' '[ "$(shop GET price:7)" = 12 ]' \
            '! grep -q "$(cat /root/admin.password)" /var/lib/ladon/users.acl'
    } >"$root/root/page.sh"
    local began=$SECONDS
    DEBIAN_FRONTEND=noninteractive chroot "$root" bash /root/page.sh || fail "the page"
    chroot "$root" systemctl stop ladon
    umount "$root/dev"
    trap cleanup EXIT
    say "page: ok ($((SECONDS - began)) s)"
}

(($#)) || set -- deb image page
for part in "$@"; do
    case "$part" in
        deb | image | page) "test_$part" ;;
        -h | --help) sed -n '2,13s/^# \{0,1\}//p' "$0" ;;
        *) echo "scripts/package-test.sh: '$part' is not a test; use deb, image, page" >&2; exit 2 ;;
    esac
done
