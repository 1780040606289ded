#!/usr/bin/env python3
"""Two builds of Ladon in the lab's works, in alternation: CPU microseconds per operation, their ratio by rounds.

    scripts/compare-builds.py --lab target/release/ladon-lab --rounds 7 OLD/ladon target/release/ladon

Each round is one run of the lab for each build, and every other round begins with the second build. A line is one
place of a work: the medians of both builds, the median of the rounds' ratios, and the smallest and the largest ratio.
The last lines are each work's median over its places. An idle machine is assumed.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile


def cells(path):
    """CPU microseconds per operation by work, part, system, setting and place on the axis."""
    with open(path) as file:
        results = json.load(file)
    found = {}
    for work in results["works"]:
        for part in work["parts"]:
            for cell in part["cells"]:
                for round_of in cell["outcome"].get("measured", {}).get("rounds", []):
                    if round_of.get("cpu_user_us") is None:
                        continue
                    x = "" if cell["x"] is None else " at %g" % cell["x"]
                    key = (work["work"], "%s, %s %s%s" % (part["part"], cell["system"], cell["setting"], x))
                    found.setdefault(key, []).append(round_of["cpu_user_us"] + round_of["cpu_system_us"])
    return {key: statistics.median(values) for key, values in found.items()}


def run(given, binary):
    with tempfile.TemporaryDirectory(prefix="ladon-compare-") as out:
        command = [given.lab, "run", "--work", given.work, "--systems", given.systems, "--ladon", binary,
                   "--rounds", "1", "--seconds", str(given.seconds), "--out", out]
        ran = subprocess.run(command, capture_output=True, text=True)
        if ran.returncode:
            raise RuntimeError("the lab: %s" % ran.stderr[-2000:])
        return cells(os.path.join(out, "results.json"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--lab", required=True)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--work", default="pipeline,types,spaces,scripts")
    parser.add_argument("--systems", default="ladon,ladon-iproto")
    parser.add_argument("old")
    parser.add_argument("new")
    given = parser.parse_args()
    old, new = {}, {}
    for at in range(given.rounds):
        builds = [(old, given.old), (new, given.new)]
        for into, binary in builds if at % 2 == 0 else builds[::-1]:
            for key, value in run(given, os.path.abspath(binary)).items():
                into.setdefault(key, []).append(value)
        print("round %d of %d" % (at + 1, given.rounds), file=sys.stderr, flush=True)
    print("| work | place | old us | new us | ratio | from | to |\n|---|---|---|---|---|---|---|")
    of_works = {}
    for key in old:
        if len(new.get(key, [])) != len(old[key]):
            continue
        ratios = [b / a for a, b in zip(old[key], new[key]) if a > 0]
        if not ratios:
            continue
        ratio = statistics.median(ratios)
        of_works.setdefault(key[0], []).append(ratio)
        print("| %s | %s | %.2f | %.2f | %.3f | %.2f | %.2f |" % (
            *key, statistics.median(old[key]), statistics.median(new[key]), ratio, min(ratios), max(ratios)))
    for work, ratios in of_works.items():
        print("\n%s: median ratio %.3f over %d places" % (work, statistics.median(ratios), len(ratios)))


if __name__ == "__main__":
    main()
