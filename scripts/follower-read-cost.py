#!/usr/bin/env python3
"""What a read at the gate quorum costs a follower and its leader, beside one at a laxer gate.

    scripts/follower-read-cost.py --ladon target/fast/ladon [--rounds 3] [--seconds 2]

Two members: the leader is pinned to core 0, the follower and the clients to core 1. Each row is a load of GETs at the
follower: its clients have one pipeline each under way. CPU microseconds per GET are the processes' own
(/proc/PID/stat, all threads); latency is that of a pipeline. Rounds alternate between the gates; medians.
"""
import argparse
import importlib.util
import os
import select
import socket
import statistics
import time

HERE = os.path.dirname(os.path.abspath(__file__))
spec = importlib.util.spec_from_file_location("replication_cost", os.path.join(HERE, "replication-cost.py"))
cost = importlib.util.module_from_spec(spec)
spec.loader.exec_module(cost)

REPLY = b"$5\r\nvalue\r\n"
GET = b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"


def connect(port, gate):
    it = socket.create_connection(("127.0.0.1", port))
    it.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    it.sendall(b"*3\r\n$6\r\nCLIENT\r\n$4\r\nGATE\r\n$%d\r\n%s\r\n" % (len(gate), gate.encode()))
    assert it.recv(100) == b"+OK\r\n"
    return it


def load(servers, gate, clients, depth, seconds):
    """(CPU us per GET at the follower, at the leader, GETs per second, latencies in us)"""
    request, reply = GET * depth, REPLY * depth
    sockets = [connect(servers.ports[1], gate) for _ in range(clients)]
    poll, by = select.epoll(), {it.fileno(): it for it in sockets}
    for fd in by:
        poll.register(fd, select.EPOLLIN)
    sent, has, times, count = {}, {fd: b"" for fd in by}, [], 0
    pids = [servers.processes[1].pid, servers.processes[0].pid]
    began, before = time.time(), [cost.cpu(pid) for pid in pids]
    for fd, it in by.items():
        it.sendall(request)
        sent[fd] = time.perf_counter()
    while time.time() - began < seconds:
        for fd, _ in poll.poll(1):
            got = by[fd].recv(1 << 20)
            has[fd] += got
            if has[fd] != reply:
                assert got and reply.startswith(has[fd]), got
                continue
            now = time.perf_counter()
            times.append((now - sent[fd]) * 1e6)
            count, has[fd] = count + depth, b""
            by[fd].sendall(request)
            sent[fd] = now
    spent = [(cost.cpu(pid) - was) / count * 1e6 for pid, was in zip(pids, before)]
    for it in sockets:
        it.close()
    return (*spent, count / (time.time() - began), sorted(times))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ladon", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--dir", default=None, help="where the leader's directory is")
    given = parser.parse_args()
    given.ladon = os.path.abspath(given.ladon)
    os.sched_setaffinity(0, {1})
    servers, found = cost.Ladon(given, 1, "everysec"), {}
    try:
        cost.ask(servers.ports[0], "SET", "k", "value")
        cost.until("the value", lambda: cost.ask(servers.ports[1], "GET", "k") == "value")
        for round_of in range(given.rounds):
            works = [(clients, depth, gate) for clients, depth in [(1, 1), (50, 1), (50, 16)] for gate in
                     (["write", "quorum"] if round_of % 2 == 0 else ["quorum", "write"])]
            for clients, depth, gate in works:
                got = load(servers, gate, clients, depth, given.seconds)
                found.setdefault((clients, depth, gate), []).append(got)
    finally:
        servers.stop()
    print("| clients | GETs at once | gate | us of the follower | us of the leader | GETs a second | p50 us | p99 us |")
    print("|---|---|---|---|---|---|---|---|")
    for (clients, depth, gate), rounds in sorted(found.items()):
        of = [statistics.median(it[at] for it in rounds) for at in range(3)]
        p50, p99 = (statistics.median(it[3][int(len(it[3]) * part)] for it in rounds) for part in (0.5, 0.99))
        print("| %d | %d | %s | %.2f | %.2f | %.0f | %.0f | %.0f |" % (clients, depth, gate, *of, p50, p99))


if __name__ == "__main__":
    main()
