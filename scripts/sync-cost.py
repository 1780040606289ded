#!/usr/bin/env python3
"""What a replica's first sync costs those who read from the primary, and whether it applies as fast as that writes.

    scripts/sync-cost.py --ladon target/fast/ladon [--redis redis-server] [--gigabytes 2] [--rounds 3] [--only sync|apply]

The primary is pinned to core 0, its replica to core 1. The primary's directory is where --dir says, the replica's in
memory (/dev/shm).

sync: a primary with strings of 1,000 bytes is asked for random keys over one connection, alone for ten seconds once it
is idle, and then while a new replica gets everything. Waits of both times, the seconds until the replica has all keys,
and the memory of the primary with its children (Pss of /proc/PID/smaps_rollup) before and at most meanwhile. Who asks
is on the primary's core: it sleeps while that works, and nothing of the replica's is in its waits.

apply: the replica is stopped (SIGSTOP) while the primary takes SETs from core 1, and continued. Its rate is what was
written by the time from there until it has everything.

Redis (appendonly yes, everysec) does the same with its replica in the same run, one system at a time.
"""
import argparse
import importlib.util
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time

_spec = importlib.util.spec_from_file_location(
    "replication_cost", os.path.join(os.path.dirname(os.path.abspath(__file__)), "replication-cost.py"))
cost = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(cost)

VALUE_BYTES = 1_000
ALONE_S = 10


def pss_mb(pid):
    """Megabytes that a process and its children have; a page that several share counts once."""
    pids, total = [pid], 0
    for one in pids:
        try:
            with open("/proc/%d/task/%d/children" % (one, one)) as file:
                pids += [int(child) for child in file.read().split()]
            with open("/proc/%d/smaps_rollup" % one) as file:
                total += next(int(line.split()[1]) for line in file if line.startswith("Pss:"))
        except (OSError, StopIteration):
            pass
    return total / 1024


class Peak(threading.Thread):
    """The most memory of a process, looked at ten times a second."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.most, self.ends = pid, 0.0, threading.Event()

    def run(self):
        while not self.ends.wait(0.1):
            self.most = max(self.most, pss_mb(self.pid))


def fill(port, keys):
    """Sets key:0 to key:KEYS-1, in pipelines of a thousand."""
    value = bytes(random.Random(1).choices(b"abcdefghijklmnopqrstuvwxyz0123456789", k=VALUE_BYTES))
    with socket.create_connection(("127.0.0.1", port)) as it:
        reader = it.makefile("rb")
        for first in range(0, keys, 1000):
            names = [b"key:%d" % key for key in range(first, min(first + 1000, keys))]
            it.sendall(b"".join(b"*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n" % (len(name), name, len(value), value)
                                for name in names))
            for _ in names:
                if reader.readline() != b"+OK\r\n":
                    raise RuntimeError("a SET was refused")


def gets(port, keys, goes_on):
    """Waits in microseconds of GETs of random keys over one connection, one at a time, while goes_on()."""
    waits, chosen, length = [], random.Random(2), b"$%d\r\n" % VALUE_BYTES
    with socket.create_connection(("127.0.0.1", port)) as it:
        it.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while goes_on():
            name = b"key:%d" % chosen.randrange(keys)
            request = b"*2\r\n$3\r\nGET\r\n$%d\r\n%s\r\n" % (len(name), name)
            began = time.perf_counter()
            it.sendall(request)
            got = it.recv(65536)
            while len(got) < len(length) + VALUE_BYTES + 2:
                more = it.recv(65536)
                if not more:
                    raise RuntimeError("the primary ended the connection")
                got += more
            waits.append((time.perf_counter() - began) * 1e6)
            if not got.startswith(length):
                raise RuntimeError("a wrong answer: %r" % got[:40])
    return waits


def percentile(waits, percent):
    ordered = sorted(waits)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


class Pair(cost.Servers):
    """A primary that runs alone until its replica is started."""

    def __init__(self, given, kind):
        self.kind, self.given, self.name = kind, given, kind.name
        super().__init__(given, 0, "write")
        self.followers = 1
        self.ports += cost.free_ports(1)

    def command(self, given, node, folder, gate):
        return self.kind.command(self, given, node, folder, gate)

    def form(self, given):
        pass

    def start_replica(self):
        folder = cost.tempfile.mkdtemp(prefix="cost-", dir="/dev/shm")
        self.folders.append(folder)
        words = ["taskset", "-c", "1", *self.command(self.given, 1, folder, "write")]
        log = open(os.path.join(folder, "log.txt"), "w")
        self.processes.append(subprocess.Popen(words, stdout=log, stderr=log))

    def await_idle(self):
        """What the filling has begun has ended: checkpoints, or a log that is written anew."""
        seen, quiet = cost.cpu(self.leader), 0
        while quiet < 3:
            time.sleep(1)
            now = cost.cpu(self.leader)
            busy = now - seen > 0.05 or "aof_rewrite_in_progress:1" in cost.ask(self.ports[0], "INFO", "persistence")
            seen, quiet = now, 0 if busy else quiet + 1

    def has_all(self, keys):
        return "master_link_status:up" in cost.ask(self.ports[1], "INFO", "replication") and \
            cost.ask(self.ports[1], "DBSIZE") == str(keys)


def sync(given, kind):
    """One first sync: what it was like for readers, how long it took, megabytes before and at most."""
    keys = int(given.gigabytes * 1e9 / VALUE_BYTES)
    pair = Pair(given, kind)
    try:
        fill(pair.ports[0], keys)
        pair.await_idle()
        alone, _ = read_while(pair.ports[0], keys, lambda: time.sleep(ALONE_S))
        before, peak = pss_mb(pair.leader), Peak(pair.leader)
        peak.start()

        def comes():
            pair.start_replica()
            cost.until("the first sync", lambda: pair.has_all(keys), given.patience)

        try:
            waits, seconds = read_while(pair.ports[0], keys, comes)
        finally:
            peak.ends.set()
        return {"alone": alone, "beside": waits, "seconds": seconds, "before": before, "most": max(peak.most, before)}
    finally:
        pair.stop()


def read_while(port, keys, runs):
    """Waits of a process that reads meanwhile, and how long that took."""
    reader = subprocess.Popen(
        ["taskset", "-c", "0", sys.executable, os.path.abspath(__file__), "--gets", str(port), str(keys)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    began = time.time()
    try:
        reader.stdout.readline()
        began = time.time()
        runs()
        seconds = time.time() - began
    finally:
        out, _ = reader.communicate("end\n")
    return [float(line) for line in out.split()], seconds


def reads_until_told(port, keys):
    """The process beside a sync: GETs until a line comes, then all waits."""
    told = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.readline(), told.set()), daemon=True).start()
    print("begins", flush=True)
    print("\n".join("%.1f" % wait for wait in gets(port, keys, lambda: not told.is_set())))


def apply(given, kind, pipeline):
    """(SETs a second of the primary, SETs a second of its replica)"""
    pair = Pair(given, kind)
    try:
        pair.start_replica()
        cost.until("a link", lambda: "master_link_status:up" in cost.ask(pair.ports[1], "INFO", "replication"))
        count = int(given.sets * min(1, pipeline / 16))
        words = ["taskset", "-c", "1", "redis-benchmark", "-p", str(pair.ports[0]), "-t", "set", "-P", str(pipeline),
                 "-c", "50", "-r", "1000000", "-d", "100", "-q", "-n", str(count)]
        pair.processes[1].send_signal(signal.SIGSTOP)
        began = time.time()
        ran = subprocess.run(words, capture_output=True, text=True)
        written = time.time() - began
        if "requests per second" not in ran.stdout:
            raise RuntimeError(ran.stdout + ran.stderr)
        end = pair.offset(0)
        pair.processes[1].send_signal(signal.SIGCONT)
        began = time.time()
        while pair.offset(1) < end:
            if time.time() - began > given.patience:
                raise RuntimeError("the replica does not catch up")
            time.sleep(0.02)
        return count / written, count / (time.time() - began)
    finally:
        pair.stop()


def show_syncs(found):
    print("| system | GETs alone: p50, p99 | beside the sync: p50, p99, p99.9 | p99 of alone | seconds | memory before, "
          "at most (MB) |\n|---|---|---|---|---|---|")
    for name, rounds in found.items():
        middle = lambda take: statistics.median(take(it) for it in rounds)
        us = lambda which, percent: middle(lambda it: percentile(it[which], percent))
        ratio = middle(lambda it: percentile(it["beside"], 99) / percentile(it["alone"], 99))
        print("| %s | %.0f, %.0f us | %.0f, %.0f, %.0f us | %.2f | %.1f | %.0f, %.0f |" % (
            name, us("alone", 50), us("alone", 99), us("beside", 50), us("beside", 99), us("beside", 99.9), ratio,
            middle(lambda it: it["seconds"]), middle(lambda it: it["before"]), middle(lambda it: it["most"])))


def show_applied(found):
    print("| system | requests at once | SETs/s of the primary | of its replica | ratio |\n|---|---|---|---|---|")
    for (name, pipeline), rates in found.items():
        writes, applies = (statistics.median(it) for it in zip(*rates))
        print("| %s | %d | %.0f | %.0f | %.2f |" % (
            name, pipeline, writes, applies, statistics.median(applied / wrote for wrote, applied in rates)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ladon", required="--gets" not in sys.argv)
    parser.add_argument("--redis")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--gigabytes", type=float, default=2.0, help="values of the primary in the first syncs")
    parser.add_argument("--sets", type=int, default=4_000_000, help="SETs that a stopped replica lacks")
    parser.add_argument("--only", choices=["sync", "apply"])
    parser.add_argument("--dir", default=None, help="where the primary's directory is")
    parser.add_argument("--patience", type=float, default=300, help="seconds that a replica may take")
    parser.add_argument("--gets", nargs=2, type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.gets:
        return reads_until_told(*given.gets)
    os.sched_setaffinity(0, {1})
    given.ladon = os.path.abspath(given.ladon)
    kinds = [cost.ReadReplicas] + ([cost.Redis] if given.redis else [])
    syncs, applied = {}, {}
    for round_of in range(given.rounds):
        for kind in kinds if round_of % 2 == 0 else kinds[::-1]:
            if given.only != "apply":
                syncs.setdefault(kind.name, []).append(sync(given, kind))
            for pipeline in (1, 16, 64) if given.only != "sync" else ():
                applied.setdefault((kind.name, pipeline), []).append(apply(given, kind, pipeline))
        print("round %d of %d" % (round_of + 1, given.rounds), file=sys.stderr, flush=True)
    if syncs:
        show_syncs(syncs)
    if applied:
        show_applied(applied)


if __name__ == "__main__":
    main()
