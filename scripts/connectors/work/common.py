"""What the programs in Python share: checks that are counted, the server, and definitions."""
import os
import subprocess
import sys

PORT = int(os.environ["IPROTO_PORT"])
SPACE, ANY = 700, 701
FORMAT = [{"name": "id", "type": "unsigned"}, {"name": "name", "type": "string"},
          {"name": "age", "type": "unsigned", "is_nullable": True}]
# What a connector inserts to make a space, as `box.schema.space.create` does: (space, tuple).
DEFINITIONS = [
    ("_space", [SPACE, 1, "people", "memtx", 0, {}, FORMAT]),
    ("_index", [SPACE, 0, "pk", "tree", {"unique": True}, [[0, "unsigned"]]]),
    ("_index", [SPACE, 1, "name", "tree", {"unique": True}, [[1, "string"]]]),
    ("_index", [SPACE, 2, "age", "tree", {"unique": False}, [{"field": 2, "type": "unsigned", "is_nullable": True}]]),
    ("_space", [ANY, 1, "values", "memtx", 0, {}, []]),
    ("_index", [ANY, 0, "pk", "hash", {"unique": True}, [[0, "unsigned"]]]),
]
checks = 0


def check(what, got, expected):
    global checks
    checks += 1
    if got != expected:
        print(f"  {what}: got {got!r}, not {expected!r}")
        sys.exit(1)


def crash():
    subprocess.run([os.environ["SERVER"], "crash"], check=True)


def done():
    print(f"  {checks} checks passed")
