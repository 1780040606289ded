#!/usr/bin/env python3
"""Compares what a suite reported on Ladon with what it reported on tarantool.

    judge.py SUITE FOLDER KNOWN

FOLDER has `ladon.report` and `tarantool.report`: lines of JSON (pytest_report.py), or what
`go tool test2json` makes of a test's output, or what mocha's reporter `json-stream` writes.
KNOWN names what may fail on Ladon. Prints one line, and each other failure; exit status 1 if there
is one, or if no test passed.
"""
import json
import pathlib
import re
import sys


def results(path):
    """Each test's outcome and text: {name: [passed | failed | skipped, text]}."""
    tests = {}
    if not path.exists():
        return tests
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, list):  # mocha
            kind, test = entry
            if kind in ("pass", "fail"):
                outcome = "passed" if kind == "pass" else "failed"
                add(tests, test["fullTitle"], outcome, str(test.get("err", "")) + str(test.get("stack", "")))
        elif "Action" in entry:  # go
            name = entry.get("Test")
            if not name:
                continue
            if entry["Action"] == "output":
                add(tests, name, None, entry["Output"])
            elif entry["Action"] in ("pass", "fail", "skip"):
                add(tests, name, {"pass": "passed", "fail": "failed", "skip": "skipped"}[entry["Action"]], "")
        else:
            add(tests, entry["name"], entry["outcome"], entry["text"])
    for test in tests.values():
        test[0] = test[0] or "failed"  # begun and not ended: the process died in it
    return tests


def add(tests, name, outcome, text):
    test = tests.setdefault(name, [None, ""])
    if outcome and test[0] != "failed":
        test[0] = outcome
    test[1] += text


def reason(rules, name, text):
    for kind, pattern, why in rules:
        if kind == "says" and re.search(pattern, text) or kind != "says" and re.fullmatch(pattern, name):
            return why
    return None


def parents(tests):
    """Tests of Go that only fail because one of their parts does."""
    return {name for name, test in tests.items() if test[0] == "failed"
            and any(other.startswith(name + "/") and tests[other][0] == "failed" for other in tests)}


def main():
    suite, folder, known = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    rules = []
    for line in known.read_text(encoding="utf-8").splitlines():
        match = re.fullmatch(r"(\S+)\s+(\S.*?)\s+# (.+)", line)
        if match and match[1] in (suite, "says"):
            rules.append(match.groups())
        elif not match and line and not line.startswith("#"):
            sys.exit(f"{known}: not understood: {line}")
    here, there = results(folder / "ladon.report"), results(folder / "tarantool.report")
    outer = parents(here)
    count = lambda tests, outcome: sum(test[0] == outcome for name, test in tests.items())
    why, alone = {}, []
    for name, (outcome, text) in sorted(here.items()):
        if outcome != "failed" or name in outer:
            continue
        because = reason(rules, name, text)
        if because:
            why[because] = why.get(because, 0) + 1
        elif there.get(name, ["skipped"])[0] == "failed":
            why["fails on tarantool too"] = why.get("fails on tarantool too", 0) + 1
        else:
            alone.append((name, text))
    missing = sorted(name for name, test in there.items() if test[0] == "passed" and name not in here)
    print(f"{suite:20} ladon {count(here, 'passed'):4} passed, {sum(why.values()):3} known to fail, "
          f"{len(alone):3} others fail; tarantool {count(there, 'passed'):4} passed, "
          f"{count(there, 'failed'):3} failed, {count(there, 'skipped'):3} skipped")
    for because, times in sorted(why.items(), key=lambda item: -item[1]):
        print(f"    {times:4}  {because}")
    for name, text in alone:
        last = [line.strip() for line in text.splitlines() if line.strip()][-1:] or [""]
        print(f"  on Ladon alone: {name}: {last[0][:160]}")
    for name in missing[:5]:
        print(f"  did not run on Ladon: {name}")
    if missing[5:]:
        print(f"  and {len(missing) - 5} more")
    if not count(here, "passed"):
        print("  no test passed")
    sys.exit(1 if alone or missing or not count(here, "passed") else 0)


main()
