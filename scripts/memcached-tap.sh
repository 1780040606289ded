#!/usr/bin/env bash
# Runs memcached's own tests (t/*.t of its repository at 1.6.18) by a Ladon and by a real memcached, and says how many of
# the asserts that the real one passes pass.
#
#   scripts/memcached-tap.sh FOLDER LADON [REAL] [FILE...]
#
# FOLDER is a checkout of https://github.com/memcached/memcached at 1.6.18, LADON a build of ladon, REAL an installed
# memcached (default: the one in PATH). Left out: the proxy, external storage, slabs and the upkeep of their LRU lists, TLS'
# settings, UDP, how its command line is read, daemons, restarts from shared memory, tests that
# fill a few megabytes, and the checks of memcached's own sources. Needs: perl.
set -euo pipefail
(($# >= 2)) || { sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 2; }
tests=$(realpath "$1")
export LADON_BIN=$(realpath "$2")
real=$(command -v "${3:-memcached}")
own=$(realpath "$(dirname "${BASH_SOURCE[0]}")/memcached-tap")
shift $(($# < 3 ? $# : 3))
left_out='proxy|extstore|ssl_|slab|lru-maintainer|lru\.t|daemonize|restart|whitespace|udp|dyn-maxbytes|chunked-items|00-startup|binary-sasl|shutdown|issue_14\.t|issue_183|issue_67|evictions|conn-limits|dash-M|issue_22|issue_163'
work=$(mktemp -d)
trap 'pkill -f "$work"; rm -rf "$work"' EXIT
for which in real ladon; do
    mkdir "$work/$which"
    cp -r "$tests/." "$work/$which"
    printf '#!/bin/sh\nshift\nexec "$@"\n' >"$work/$which/timedrun"
    chmod +x "$work/$which/timedrun"
done
# Packages have no relaxed_privileges, which every test asks for.
printf '#!/bin/bash\nwords=\nfor word; do words+=" $word"; done\nexec %q ${words/ -o relaxed_privileges/}\n' "$real" >"$work/real/memcached-debug"
chmod +x "$work/real/memcached-debug"
ln -s "$own/memcached-debug" "$work/ladon/memcached-debug"
# Prints the asserts of a file that passed, one a line.
passed() {
    (cd "$work/$1" && timeout -k 5 90 perl -It/lib "t/$2" >"$work/out" 2>"$work/err" </dev/null) || true
    # Some tests leave a server.
    pkill -f "$work/$1/memcached-debug" || true
    sed -n '/# skip/d; s/memcachetest[0-9.]*/memcachetest/; s/^ok [0-9]*/ok/; s/[0-9][0-9]*/N/g; s/^ok *//p' "$work/out" | sort
}
files=("$@")
((${#files[@]})) || mapfile -t files < <(cd "$tests/t" && ls ./*.t | sed 's#^\./##' | grep -vE "$left_out")
both=0 all=0 clean=0
for file in "${files[@]}"; do
    passed real "$file" >"$work/real.txt"
    passed ladon "$file" >"$work/ladon.txt"
    theirs=$(wc -l <"$work/real.txt")
    ours=$(comm -12 "$work/real.txt" "$work/ladon.txt" | wc -l)
    both=$((both + ours)) all=$((all + theirs))
    if ((ours == theirs)); then clean=$((clean + 1)); else
        echo "$file: $ours of $theirs; first: $(comm -23 "$work/real.txt" "$work/ladon.txt" | head -2 | cut -c1-100 | paste -sd';')"
    fi
done
echo "$both of $all asserts, $clean of ${#files[@]} files"
