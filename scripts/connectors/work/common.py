"""What the programs in Python share: checks that are counted, the server, definitions, a crash."""
import os
import subprocess
import sys
import threading
import time

PORT = int(os.environ["IPROTO_PORT"])
SPACE, ANY, COUNTED, LOG = 700, 701, 702, 703
UNICODE_CI = 2
FORMAT = [{"name": "id", "type": "unsigned"}, {"name": "name", "type": "string"},
          {"name": "age", "type": "unsigned", "is_nullable": True}]
NULLABLE_AGE = {"field": 2, "type": "unsigned", "is_nullable": True}
# What a connector inserts to make a space, as `box.schema.space.create` does: (space, tuple).
DEFINITIONS = [
    ("_space", [SPACE, 1, "people", "memtx", 0, {}, FORMAT]),
    ("_index", [SPACE, 0, "pk", "tree", {"unique": True}, [[0, "unsigned"]]]),
    ("_index", [SPACE, 1, "name", "tree", {"unique": True}, [[1, "string"]]]),
    ("_index", [SPACE, 2, "age", "tree", {"unique": False}, [NULLABLE_AGE]]),
    ("_index", [SPACE, 3, "age_name", "tree", {"unique": True}, [NULLABLE_AGE, {"field": 1, "type": "string"}]]),
    ("_index", [SPACE, 4, "any_case", "tree", {"unique": False},
                [{"field": 1, "type": "string", "collation": UNICODE_CI}]]),
    ("_space", [ANY, 1, "values", "memtx", 0, {}, []]),
    ("_index", [ANY, 0, "pk", "hash", {"unique": True}, [[0, "unsigned"]]]),
    ("_space", [COUNTED, 1, "counted", "memtx", 0, {}, []]),
    ("_index", [COUNTED, 0, "pk", "tree", {"unique": True}, [[0, "unsigned"]]]),
    ("_sequence", [60, 1, "counted_seq", 5, 1, 1000, 10, 0, False]),
    ("_space_sequence", [COUNTED, 60, False, 0, ""]),
    ("_space", [LOG, 1, "log", "memtx", 0, {}, []]),
    ("_index", [LOG, 0, "pk", "tree", {"unique": True}, [[0, "unsigned"]]]),
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


def crash_under_load(connect, writers=4, seconds=0.5):
    """Kills the server while it takes writes; returns what it acknowledged: {id: [id, text, times]}.

    `connect` returns a connection to the space `log`. Each writer has one, and its own numbers. The
    server may also have the write that each writer did not get an answer to: [acknowledged, next].
    """
    acknowledged, stop = {}, threading.Event()

    def write(writer):
        try:
            conn = connect()
            for number in range(writer * 1_000_000, (writer + 1) * 1_000_000):
                conn.insert("log", [number, f"text {number}", 0])
                acknowledged[number] = [number, f"text {number}", 0]
                conn.update("log", number, [("+", 2, 1)])
                acknowledged[number] = [number, f"text {number}", 1]
        except Exception:  # the connection ends with the server
            if not stop.is_set():
                raise

    threads = [threading.Thread(target=write, args=[writer]) for writer in range(writers)]
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    stop.set()
    crash()
    for thread in threads:
        thread.join()
    return acknowledged


def check_survived(acknowledged, found, writers=4):
    """Everything acknowledged is there; each writer's last write, unanswered, may be there too."""
    found = {row[0]: list(row) for row in found}
    check("some writes were acknowledged", len(acknowledged) > 20, True)
    lost = [row for number, row in acknowledged.items()
            if number not in found or found[number][2] < row[2] or found[number][1] != row[1]]
    check(f"of {len(acknowledged)} acknowledged rows, lost", lost[:3], [])
    ahead = [row for number, row in found.items() if acknowledged.get(number) != row]
    check("more than one unanswered write of a writer", len(ahead) <= writers, True)


def done():
    print(f"  {checks} checks passed")
