#!/usr/bin/env bash
# Puts recent releases of the servers that the lab compares Ladon with (Valkey 9, Redis 8, memcached) into a
# directory of their own: a minimal Debian sid tree, so that nothing of this machine is replaced.
# The lab runs the servers out of that tree with the tree's own libraries; no chroot is needed then.
#
#   scripts/install-peers.sh [DIR]      DIR: /opt/ladon-peers unless given
#
# Needs root, debootstrap (installed if it is missing) and a Debian mirror; the one that apt uses
# here is taken, DEBIAN_MIRROR=URL overrides it. Takes about two minutes and 600 MB. Safe to repeat.
set -euo pipefail

dir=${1:-/opt/ladon-peers}
packages=(valkey-server valkey-tools redis-server redis-tools memcached)

die() { echo "install-peers: $*" >&2; exit 1; }

configured_mirror() {
    local file
    for file in /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list; do
        [ -r "$file" ] || continue
        # deb822 form first ("URIs: http..."), then the one-line form ("deb [options] http... suite").
        awk '$1 == "URIs:" { print $2; exit }
             $1 == "deb" { for (i = 2; i <= NF; i++) if ($i ~ /^http/) { print $i; exit } }' "$file"
    done | head -n 1
}

[ "$(id -u)" = 0 ] || die "needs root, to unpack a Debian tree with its owners"
mirror=${DEBIAN_MIRROR:-$(configured_mirror)}
[ -n "$mirror" ] || die "found no Debian mirror in apt's configuration; set DEBIAN_MIRROR=URL"
if ! command -v debootstrap >/dev/null; then
    apt-get update -q
    apt-get install -y -q debootstrap
fi

if [ ! -x "$dir/usr/bin/apt-get" ]; then
    debootstrap --variant=minbase --include=ca-certificates sid "$dir" "$mirror" \
        /usr/share/debootstrap/scripts/sid
fi
# What this machine needs to reach the mirror, the tree needs too.
cp /etc/resolv.conf "$dir/etc/resolv.conf"
find /etc/apt/apt.conf.d -maxdepth 1 -iname '*proxy*' -exec cp {} "$dir/etc/apt/apt.conf.d/" \;
{
    echo 'APT::Install-Recommends "false";'
    echo 'Acquire::Check-Valid-Until "false";' # a mirror may be a dated snapshot
} >"$dir/etc/apt/apt.conf.d/90ladon-lab"
# Package scripts must not start the servers.
printf '#!/bin/sh\nexit 101\n' >"$dir/usr/sbin/policy-rc.d"
chmod 755 "$dir/usr/sbin/policy-rc.d"

mountpoint -q "$dir/proc" || { mount -t proc proc "$dir/proc" && trap 'umount "$dir/proc"' EXIT; }
chroot "$dir" apt-get update -q
DEBIAN_FRONTEND=noninteractive chroot "$dir" apt-get install -y -q "${packages[@]}"
chroot "$dir" valkey-server --version
chroot "$dir" redis-server --version
chroot "$dir" memcached --version
