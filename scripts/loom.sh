#!/usr/bin/env bash
# Soak: every interleaving, up to a bound, of the partition locks, of the log's reservation and
# publishing, and of the gate's positions.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export RUSTFLAGS="--cfg loom ${RUSTFLAGS:-}"
cargo test --profile fast -p ladon-engine --test it "$@"
cargo test --profile fast -p ladon-log --test it "$@"
