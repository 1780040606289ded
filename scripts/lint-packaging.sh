#!/usr/bin/env bash
# Lints what is shipped beside the program: the Helm chart, the Grafana dashboard, the alerts, and the
# metrics that both use.
#
#   scripts/lint-packaging.sh [helm] [grafana] [metrics]
#
#   LADON_BIN=PATH   the server whose metrics are scraped; without it cargo builds one (profile fast)
#
# helm: `helm lint --strict`, then each of a few sets of values is rendered and checked against the
#   schemas of Kubernetes (kubernetes-validate, from PyPI). Without helm it is built with go.
# grafana: each expression has to parse (promtool), and to name metrics that a server has; panels may
#   not overlap, and each has a title, a unit and the dashboard's data source.
# metrics: `promtool check metrics` on a scrape; the alerts' rules and their tests.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
cache=${CARGO_TARGET_DIR:-$root/target}/lint-packaging
mkdir -p "$cache"
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || { kill "$server" && wait "$server"; } 2>/dev/null || true; rm -rf "$work"' EXIT
need() { command -v "$1" >/dev/null || { echo "this needs $1: $2" >&2; exit 2; }; }

lint_helm() {
    local helm chart=packaging/helm/ladon number=0 values
    helm=$(command -v helm || echo "$cache/helm")
    if [ ! -x "$helm" ]; then
        need go "apt-get install golang"
        GOBIN=$cache go install helm.sh/helm/v3/cmd/helm@v3.22.0
    fi
    if [ ! -d "$cache/venv" ]; then
        python3 -m venv "$cache/venv"
        "$cache/venv/bin/pip" install --quiet kubernetes-validate
    fi
    for values in "" \
        "--set password.existingSecret=p --set metrics.podMonitor.enabled=true" \
        "--set tls.enabled=true,tls.existingSecret=t,users.existingSecret=u --set service.type=LoadBalancer" \
        "--set tls.enabled=true,tls.existingSecret=t,tls.only=false,tls.authClients=no --set metrics.password.existingSecret=m --set allowedFrom[0].podSelector.matchLabels.app=shop"; do
        number=$((number + 1))
        # shellcheck disable=SC2086
        "$helm" lint --strict --quiet --kube-version 1.30.0 "$chart" $values
        # shellcheck disable=SC2086
        "$helm" template release "$chart" --kube-version 1.30.0 $values >"$work/$number.yaml"
        # What the operator's own types look like, Kubernetes does not say.
        "$cache/venv/bin/python" - "$work/$number.yaml" <<'PYTHON'
import sys, yaml, kubernetes_validate
kinds = []
for document in yaml.safe_load_all(open(sys.argv[1])):
    if document and document["apiVersion"] != "monitoring.coreos.com/v1":
        kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)
        kinds.append(document["kind"])
print("helm: valid:", ", ".join(kinds))
PYTHON
    done
    # What cannot work is refused before it is installed.
    for values in "--set tls.enabled=true" "--set settings.requirepass=x" "--set nosuch=1"; do
        # shellcheck disable=SC2086
        ! "$helm" template release "$chart" --kube-version 1.30.0 $values >/dev/null 2>&1 || { echo "helm takes $values" >&2; exit 1; }
    done
}

start() {
    [ -z "$server" ] || return 0
    if [ -z "${LADON_BIN:-}" ]; then
        cargo build --quiet --locked --profile fast --bin ladon
        LADON_BIN=${CARGO_TARGET_DIR:-$root/target}/fast/ladon
    fi
    "$LADON_BIN" serve --port 16381 --http-admin 127.0.0.1:19122 --data "$work/data" \
        --iproto 127.0.0.1:16382 --iproto-admin-password secret >"$work/log" 2>&1 &
    server=$!
    local _
    for _ in $(seq 100); do
        curl -sf http://127.0.0.1:19122/readyz >/dev/null && break
        sleep 0.1
    done
    # Some series exist once something has happened.
    redis-cli -p 16381 SET key value >/dev/null
    redis-cli -p 16381 NOSUCH >/dev/null
    local words
    for words in 'create people --field id:unsigned' 'index people pk --part id:unsigned'; do
        # shellcheck disable=SC2086
        LADON_IPROTO_PASSWORD=secret "$LADON_BIN" space --iproto 127.0.0.1:16382 $words >/dev/null
    done
    curl -sf http://127.0.0.1:19122/metrics >"$work/metrics"
}

lint_metrics() {
    need promtool "apt-get install prometheus"
    start
    promtool check metrics <"$work/metrics"
    promtool check rules packaging/prometheus/alerts.yml
    promtool test rules packaging/prometheus/alerts_test.yml
}

lint_grafana() {
    need promtool "apt-get install prometheus"
    start
    python3 - packaging/grafana/ladon.json "$work/metrics" "$work/rules.yml" <<'PYTHON'
import json, re, sys
board, metrics = json.load(open(sys.argv[1])), open(sys.argv[2]).read()
known = {line.split()[2] for line in metrics.splitlines() if line.startswith("# TYPE")}
known |= {name + end for name in known for end in ("_bucket", "_sum", "_count")}
wrong, rules, ids, places = [], [], set(), []
for panel in board["panels"]:
    title, at = panel.get("title"), panel["gridPos"]
    if panel["type"] == "row":
        continue
    if not title or panel["id"] in ids:
        wrong.append("a panel has no title, or another's id: %s" % title)
    ids.add(panel["id"])
    if panel["type"] != "text" and "unit" not in panel.get("fieldConfig", {}).get("defaults", {}):
        wrong.append("%s: no unit" % title)
    for x, y, w, h in places:
        if x < at["x"] + at["w"] and at["x"] < x + w and y < at["y"] + at["h"] and at["y"] < y + h:
            wrong.append("%s: it overlaps another panel" % title)
    places.append((at["x"], at["y"], at["w"], at["h"]))
    for target in panel.get("targets", []):
        if target.get("datasource", {}).get("uid") != "${datasource}":
            wrong.append("%s: its data source is not the dashboard's" % title)
        expression = target["expr"]
        for name in set(re.findall(r"\b(?:ladon|process)_[a-z0-9_]+", expression)) - known:
            wrong.append("%s: no server has %s" % (title, name))
        for variable, value in (("$__rate_interval", "5m"), ("$__interval", "1m"), ("$__range", "1h")):
            expression = expression.replace(variable, value)
        expression = re.sub(r"\$\{?\w+(:\w+)?\}?", "x", expression)
        rules.append("  - record: panel:%d:%d\n    expr: %s\n" % (panel["id"], len(rules), json.dumps(expression)))
open(sys.argv[3], "w").write("groups:\n- name: panels\n  rules:\n" + "".join(rules))
print("grafana: %d panels, %d expressions" % (len(ids), len(rules)))
sys.exit("\n".join(wrong) or 0)
PYTHON
    promtool check rules "$work/rules.yml"
}

(($#)) || set -- helm grafana metrics
for part in "$@"; do
    case "$part" in
        helm | grafana | metrics) "lint_$part" ;;
        -h | --help) sed -n '2,15s/^# \{0,1\}//p' "$0" ;;
        *) echo "scripts/lint-packaging.sh: '$part' is none of helm, grafana, metrics" >&2; exit 2 ;;
    esac
done
