#!/usr/bin/env bash
# Checks the libraries: licences, sources, and what deny.toml forbids.
#
#   scripts/deny.sh                without a network
#   scripts/deny.sh --advisories   known vulnerabilities as well, from RustSec's database
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
command -v cargo-deny >/dev/null || cargo install --locked cargo-deny
checks=(bans licenses sources)
[[ ${1:-} == --advisories ]] && checks+=(advisories)
exec cargo deny --locked --log-level error check --hide-inclusion-graph "${checks[@]}"
