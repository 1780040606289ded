#!/usr/bin/env python3
"""From a write's answer to its copy on a read replica, and what many writes a second cost, beside a Redis.

    scripts/replica-lag.py --ladon target/fast/ladon [--redis redis-server] [--gates everysec,fsync] [--rounds 3]

One client writes, and reads at the replica until the value is there; without a pause (`busy`), and with one of 2 ms between
two writes (`idle`). Then, `crowd`: the same beside `redis-benchmark -c 50 -P 16` at the primary. Percentiles of all rounds in
microseconds; CPU microseconds of the primary per write of the first kind. A Redis with a replica runs the same, in
alternation: `appendonly`, `everysec`, and `always` beside the gate fsync.
"""
import argparse
import os
import random
import shutil
import socket
import statistics
import subprocess
import tempfile
import time

TICK = os.sysconf("SC_CLK_TCK")


def free_port(given):
    while True:
        port = random.randrange(*given.ports)
        with socket.socket() as it:
            if it.connect_ex(("127.0.0.1", port)) != 0:
                return port


class Client:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, *words):
        self.socket.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))
        return self.socket.recv(1 << 16)


def cpu(pid):
    with open("/proc/%d/stat" % pid) as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


class Pair:
    """A server and its replica."""

    def __init__(self, given, name, gate):
        self.name = "%s, %s" % (name, gate)
        self.folder = tempfile.mkdtemp(prefix="lag-", dir=given.dir)
        self.ports = [free_port(given), free_port(given)]
        self.processes = []
        for node, port in enumerate(self.ports):
            folder = os.path.join(self.folder, str(node))
            os.mkdir(folder)
            of = "127.0.0.1 %d" % self.ports[0]
            if name == "ladon":
                words = [given.ladon, "serve", "--data", folder, "--resp", "127.0.0.1:%d" % port, "--gate", gate, "--io-threads", "1"]
            else:
                fsync = "always" if gate == "fsync" else "everysec"
                words = [given.redis, "--port", str(port), "--dir", folder, "--save", "", "--appendonly", "yes", "--appendfsync", fsync,
                         "--repl-diskless-sync-delay", "0"]
            words += ["--replicaof", of] if node else []
            log = open(os.path.join(folder, "log.txt"), "w")
            self.processes.append(subprocess.Popen(words, stdout=log, stderr=log))
            self.client(port)
        deadline = time.time() + 30
        while b"master_link_status:up" not in self.client(self.ports[1]).ask(b"INFO", b"replication"):
            if time.time() > deadline:
                raise RuntimeError("%s: no link within 30 s" % self.name)
            time.sleep(0.1)

    @staticmethod
    def client(port):
        deadline = time.time() + 30
        while True:
            try:
                client = Client(port)
                if client.ask(b"PING") == b"+PONG\r\n":
                    return client
            except OSError:
                pass
            if time.time() > deadline:
                raise RuntimeError("nobody answers at %d" % port)
            time.sleep(0.05)

    def lags(self, seconds, pause):
        primary, replica = self.client(self.ports[0]), self.client(self.ports[1])
        lags, began, before = [], time.time(), cpu(self.processes[0].pid)
        while time.time() - began < seconds:
            value = b"%d" % len(lags)
            shown = b"$%d\r\n%s\r\n" % (len(value), value)
            if primary.ask(b"SET", b"lag", value) != b"+OK\r\n":
                raise RuntimeError("%s: a write was not done" % self.name)
            written = time.perf_counter()
            while replica.ask(b"GET", b"lag") != shown:
                if time.perf_counter() - written > 10:
                    raise RuntimeError("%s: no copy within 10 s" % self.name)
            lags.append((time.perf_counter() - written) * 1e6)
            if pause:
                time.sleep(pause)
        return lags, (cpu(self.processes[0].pid) - before) * 1e6 / len(lags)

    def beside_crowd(self, seconds):
        words = ["redis-benchmark", "-p", str(self.ports[0]), "-t", "set", "-c", "50", "-P", "16", "-n", "1000000000", "-q", "-r", "100000"]
        crowd = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            time.sleep(0.5)
            return self.lags(seconds, 0)[0]
        finally:
            crowd.kill()
            crowd.wait()

    def stop(self):
        for process in self.processes:
            process.kill()
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ladon", required=True)
    parser.add_argument("--redis")
    parser.add_argument("--gates", default="everysec,fsync")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--dir", default=tempfile.gettempdir())
    parser.add_argument("--ports", default="20000-32000", type=lambda text: [int(it) for it in text.split("-")])
    given = parser.parse_args()
    names = ["ladon"] + (["redis"] if given.redis else [])
    found = {}
    for _ in range(given.rounds):
        for gate in given.gates.split(","):
            for name in names:
                pair = Pair(given, name, gate)
                try:
                    kinds = found.setdefault(pair.name, {"busy": [], "idle": [], "crowd": [], "cpu": []})
                    lags, cost = pair.lags(given.seconds, 0)
                    kinds["busy"] += lags
                    kinds["cpu"].append(cost)
                    kinds["idle"] += pair.lags(given.seconds, 0.002)[0]
                    kinds["crowd"] += pair.beside_crowd(given.seconds)
                finally:
                    pair.stop()
    print("%-18s %-6s %8s %8s %8s %8s" % ("", "", "p50", "p90", "p99", "writes"))
    for name, kinds in found.items():
        for kind in ["busy", "idle", "crowd"]:
            lags = sorted(kinds[kind])
            at = [lags[min(len(lags) - 1, len(lags) * percent // 100)] for percent in (50, 90, 99)]
            print("%-18s %-6s %8.0f %8.0f %8.0f %8d" % (name, kind, *at, len(lags)))
        print("%-18s CPU of the primary per write, busy: %.1f us" % (name, statistics.median(kinds["cpu"])))


if __name__ == "__main__":
    main()
