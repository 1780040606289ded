#!/usr/bin/env python3
"""What a follower, or a read replica, costs the leader, and quorum beside fsync.

    scripts/replication-cost.py --ladon target/fast/ladon [--redis redis-server] [--rounds 3] [--followers 1]

The leader (or the single server) is pinned to core 0, all else to core 1: the load by redis-benchmark, the followers.
CPU microseconds per SET are the process' own (/proc/PID/stat, all threads), over rounds in alternation; medians. The
followers' directories are in memory (/dev/shm), the leader's where --dir says. With --redis, a Redis with as many
replicas runs the same beside it (appendonly yes, everysec), which is what gate `write` is compared with.
"""
import argparse
import os
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

TICK = os.sysconf("SC_CLK_TCK")


def free_ports(count):
    """Free ones below those that connections take for their own ends."""
    ports = []
    while len(ports) < count:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as it:
            if port not in ports and it.connect_ex(("127.0.0.1", port)) != 0:
                ports.append(port)
    return ports


def ask(port, *words):
    out = subprocess.run(["redis-cli", "-p", str(port), *words], capture_output=True, text=True, timeout=60)
    return out.stdout.strip()


def until(what, look, patience=20):
    began = time.time()
    while time.time() - began < patience:
        try:
            if look():
                return
        except (OSError, subprocess.SubprocessError):
            pass
        time.sleep(0.1)
    raise RuntimeError("%s: not in %d s" % (what, patience))


def cpu(pid, threads=False):
    """CPU seconds of a process, or of its threads by name."""
    if not threads:
        with open("/proc/%d/stat" % pid) as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICK
    found = {}
    for task in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/stat" % (pid, task)) as file:
            name, rest = file.read().split("(", 1)[1].rsplit(")", 1)
        fields = rest.split()
        found[name] = found.get(name, 0) + (int(fields[11]) + int(fields[12])) / TICK
    return found


class Servers:
    """One that takes writes and so many that follow it."""

    def __init__(self, given, followers, gate):
        self.followers, self.processes, self.folders = followers, [], []
        self.ports = free_ports(1 + followers)
        self.mesh = free_ports(1 + followers)
        for node in range(1 + followers):
            folder = tempfile.mkdtemp(prefix="cost-", dir=given.dir if node == 0 else "/dev/shm")
            self.folders.append(folder)
            core = "0" if node == 0 else "1"
            words = ["taskset", "-c", core, *self.command(given, node, folder, gate)]
            log = open(os.path.join(folder, "log.txt"), "w")
            self.processes.append(subprocess.Popen(words, stdout=log, stderr=log))
        for port, folder in zip(self.ports, self.folders):
            try:
                until("an answer", lambda: ask(port, "PING") == "PONG")
            except RuntimeError as error:
                with open(os.path.join(folder, "log.txt")) as log:
                    raise RuntimeError("%s, %s: %s" % (self.name, error, log.read()[-2000:])) from None
        self.form(given)
        self.leader = self.processes[0].pid

    def stop(self):
        for process in self.processes:
            process.kill()
            process.wait()
        for folder in self.folders:
            shutil.rmtree(folder, ignore_errors=True)

    def offset(self, node):
        info = ask(self.ports[node], "INFO", "replication")
        key = "master_repl_offset" if node == 0 else "slave_repl_offset"
        return next(int(line.split(":")[1]) for line in info.splitlines() if line.startswith(key + ":"))

    def caught_up(self):
        return all(self.offset(node) >= self.offset(0) for node in range(1, 1 + self.followers))


class Ladon(Servers):
    name = "ladon"

    def command(self, given, node, folder, gate):
        words = [given.ladon, "serve", "--data", os.path.join(folder, "d"), "--resp", "127.0.0.1:%d" % self.ports[node],
                 "--gate", gate, "--io-threads", "1"]
        if self.followers:
            words += ["--cluster-enabled", "yes", "--cluster-secret", "s", "--cluster-port", str(self.mesh[node]),
                      "--failover-timeout", "3000"]
        return words

    def form(self, given):
        if self.followers:
            first, *others = ["127.0.0.1:%d" % port for port in self.ports]
            for words in [["create", first], *[["add-node", first, other] for other in others]]:
                made = subprocess.run([given.ladon, "cluster", *words], capture_output=True, text=True)
                if made.returncode:
                    raise RuntimeError(made.stdout + made.stderr)
            if "role:master" not in ask(self.ports[0], "INFO", "replication"):
                raise RuntimeError("the first does not lead")


class ReadReplicas(Servers):
    """A plain server, with read replicas that follow it."""
    name = "ladon, read replicas"

    def command(self, given, node, folder, gate):
        words = [given.ladon, "serve", "--data", os.path.join(folder, "d"), "--resp", "127.0.0.1:%d" % self.ports[node],
                 "--gate", gate, "--io-threads", "1"]
        return words + (["--replicaof", "127.0.0.1 %d" % self.ports[0]] if node else [])

    def form(self, given):
        for port in self.ports[1:]:
            until("a link", lambda: "master_link_status:up" in ask(port, "INFO", "replication"))


class Redis(Servers):
    name = "redis"

    def command(self, given, node, folder, gate):
        words = [given.redis, "--port", str(self.ports[node]), "--dir", folder, "--save", "", "--appendonly", "yes",
                 "--appendfsync", "always" if gate == "fsync" else "everysec", "--repl-diskless-sync-delay", "0"]
        if node:
            words += ["--replicaof", "127.0.0.1 %d" % self.ports[0]]
        return words

    def form(self, given):
        for port in self.ports[1:]:
            until("a link", lambda: "master_link_status:up" in ask(port, "INFO", "replication"))


def load(given, servers, pipeline, clients, count):
    """(operations per second, CPU microseconds per operation at the leader, by thread)"""
    before, threads, began = cpu(servers.leader), cpu(servers.leader, True), time.time()
    words = ["taskset", "-c", "1", "redis-benchmark", "-p", str(servers.ports[0]), "-t", "set", "-n", str(count),
             "-P", str(pipeline), "-c", str(clients), "-r", "100000", "-d", "32", "-q"]
    ran = subprocess.run(words, capture_output=True, text=True)
    seconds = time.time() - began
    if servers.followers:
        until("followers", servers.caught_up, 120)
    after = cpu(servers.leader, True)
    by = {name: round((after[name] - threads.get(name, 0)) / count * 1e6, 2) for name in after}
    if "requests per second" not in ran.stdout:
        raise RuntimeError(ran.stdout + ran.stderr)
    return count / seconds, (cpu(servers.leader) - before) / count * 1e6, {k: v for k, v in by.items() if v >= 0.01}


def kind_of(kind):
    return "cluster" if kind[0] is Ladon else "replica"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ladon", required=True)
    parser.add_argument("--redis")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--followers", type=int, default=1)
    parser.add_argument("--only", choices=["cluster", "replica"], help="followers of this kind, and the single server")
    parser.add_argument("--dir", default=None, help="where the leader's directory is")
    parser.add_argument("--scale", type=float, default=1.0, help="of the number of operations")
    given = parser.parse_args()
    given.ladon = os.path.abspath(given.ladon)
    kinds = [(Ladon, 0, "write"), (Ladon, given.followers, "write"), (Ladon, 0, "fsync"),
             (Ladon, given.followers, "fsync"), (Ladon, given.followers, "quorum"),
             (ReadReplicas, given.followers, "write")]
    kinds = [kind for kind in kinds if given.only in (None, kind_of(kind)) or not kind[1]]
    if given.redis:
        kinds += [(Redis, 0, "write"), (Redis, given.followers, "write")]
    works = [(1, 50, 150_000), (16, 50, 1_000_000), (64, 50, 2_000_000), (1, 256, 200_000)]
    found = {}
    for round_of in range(given.rounds):
        for kind, followers, gate in kinds if round_of % 2 == 0 else kinds[::-1]:
            servers = kind(given, followers, gate)
            try:
                load(given, servers, 16, 50, 100_000)
                for pipeline, clients, count in works:
                    if gate in ("fsync", "quorum"):
                        count //= 4
                    got = load(given, servers, pipeline, clients, int(count * given.scale))
                    found.setdefault((pipeline, clients), {}).setdefault((kind.name, followers, gate), []).append(got)
            finally:
                servers.stop()
        print("round %d of %d" % (round_of + 1, given.rounds), file=sys.stderr, flush=True)
    print("| P | clients | system | followers | gate | CPU us/op | of alone | op/s | by thread |\n|---|---|---|---|---|---|---|---|---|")
    for (pipeline, clients), rows in found.items():
        for (name, followers, gate), got in rows.items():
            us = statistics.median(it[1] for it in got)
            alone = rows.get((name.split(",")[0], 0, gate))
            ratio = "%.2f" % (us / statistics.median(it[1] for it in alone)) if alone else ""
            print("| %d | %d | %s | %d | %s | %.2f | %s | %.0f | %s |" % (
                pipeline, clients, name, followers, gate, us, ratio, statistics.median(it[0] for it in got), got[-1][2]))


if __name__ == "__main__":
    main()
