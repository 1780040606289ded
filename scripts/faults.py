#!/usr/bin/env python3
"""What was once wrong, tried from outside: one line per fault, beside the original server where there is one.

    scripts/faults.py                          every family, with target/release/ladon
    scripts/faults.py --ladon PATH lua rights  these families
    scripts/faults.py --list                   the families and their faults, without running them

Each family is a file in scripts/faults/. The table has what was tried, what the server did, and whether that is
right. The exit code is the number of wrong lines.
"""
import argparse
import importlib
import os
import sys
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "faults")]

from fault import FAULTS, Bench  # noqa: E402


# What families share.
HELPERS = {"fault", "program_bench"}


def families():
    names = sorted(name[:-3] for name in os.listdir(os.path.join(HERE, "faults")) if name.endswith(".py"))
    return [name for name in names if name not in HELPERS]


def tried(fault, bench):
    """What the server did, and whether that is right."""
    try:
        return fault.check(bench)
    except Exception as error:  # A server that died is a wrong answer, not the end of the table.
        traceback.print_exc()
        return "%s: %s" % (type(error).__name__, error), False
    finally:
        bench.stop_all()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ladon", default=os.path.join(HERE, "..", "target", "release", "ladon"))
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--only", default="", help="only the lines that say this of what is tried")
    parser.add_argument("families", nargs="*", choices=[[], *families()])
    given = parser.parse_args()
    for name in given.families or families():
        importlib.import_module(name)
    faults = [fault for fault in FAULTS if given.only in fault.tried]
    if given.list:
        for fault in faults:
            print("%s: %s" % (fault.family, fault.tried))
        return 0
    print("| tried | Ladon | right | |\n|---|---|---|---|")
    wrong = 0
    bench = Bench(os.path.abspath(given.ladon))
    for fault in faults:
        did, is_right = tried(fault, bench)
        wrong += not is_right
        cells = [fault.tried, did, fault.right, "ok" if is_right else "WRONG"]
        print("| %s |" % " | ".join(cell.replace("|", "\\|") for cell in cells), flush=True)
    print("\n%d tried, %d wrong" % (len(faults), wrong))
    return wrong


if __name__ == "__main__":
    sys.exit(main())
