"""Read replicas that stop, or ask and read nothing, and what clients of their server see of it, beside Redis."""
import signal
import socket
import threading
import time

from fault import Client, fault, pings

FLOOR_MS, GROWN_BYTES, MB = 10, 48 << 20, 1 << 20
WRITTEN_BYTES = 400 * MB
VALUE = b"x" * 100_000


def write(server):
    """SETs of the same hundred keys, until so much is written."""
    def run(ends):
        client = server.client()
        for at in range(WRITTEN_BYTES // len(VALUE)):
            if ends.is_set():
                return
            client("SET", "key:%d" % (at % 100), VALUE)
    return run


def linked(replica, seconds=60):
    end = time.monotonic() + seconds
    while b"master_link_status:up" not in replica.client()("INFO", "replication"):
        if time.monotonic() > end:
            raise RuntimeError("the replica gets no link")
        time.sleep(0.05)


def beside_stopped(primary, replica):
    """p99.9 and growth of a primary that is written to while its replica stands still; whether that catches up."""
    linked(replica)
    write(primary)(threading.Event())
    replica.process.send_signal(signal.SIGSTOP)
    slow, grown = pings(primary, 5, write(primary))
    replica.process.send_signal(signal.SIGCONT)
    primary.client()("SET", "last", "one")
    end = time.monotonic() + 60
    while time.monotonic() < end and replica.client()("GET", "last") != b"one":
        time.sleep(0.1)
    return slow, grown, replica.client()("GET", "last") == b"one"


@fault("a replica stands still (SIGSTOP) while 400 MB are written",
       "p99.9 of another client's PING at most 1.5 times Redis' (or %d ms), RSS at most Redis' growth and %d MB; it catches up"
       % (FLOOR_MS, GROWN_BYTES // MB))
def stopped_replica(bench):
    redis = bench.redis()
    redis_slow, redis_grown, _ = beside_stopped(redis, bench.redis("--replicaof", "127.0.0.1", str(redis.port)))
    bench.stop_all()
    primary = bench.ladon("--io-threads", "1")
    replica = bench.ladon("--io-threads", "1", "--replicaof", "127.0.0.1 %d" % primary.port)
    slow, grown, caught_up = beside_stopped(primary, replica)
    right = slow <= max(1.5 * redis_slow, FLOOR_MS) and grown <= max(redis_grown, 0) + GROWN_BYTES and caught_up
    said = "catches up" if caught_up else "does not catch up"
    return "%.1f ms, +%d MB, %s; Redis %.1f ms, +%d MB" % (slow, grown // MB, said, redis_slow, redis_grown // MB), right


def command(*words):
    parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)


@fault("60 connections follow, ask for 100 MB of log each at once, and read nothing",
       "p99.9 of another client's PING at most 30 ms, RSS +300 MB at most; a true replica gets everything")
def unread_frames(bench):
    primary = bench.ladon("--io-threads", "1", "--client-reply-backlog", "64mb")
    write(primary)(threading.Event())
    held = []

    def follow(ends):
        for at in range(60):
            one = Client(primary.port)
            one("LADON.REPLICA", "HELLO", "1", "%040x" % at, "-", 7000 + at)
            _, runs = one("LADON.REPLICA", "POSITION", "-", 0)
            ask = command("LADON.REPLICA", "FRAMES", runs[-1][0], runs[-1][1], runs[-1][1], runs[-1][1], 1000, MB)
            one.socket.settimeout(0.2)
            try:
                one.socket.sendall(ask * 100)
            except socket.timeout:
                pass
            held.append(one)
        ends.wait()

    slow, grown = pings(primary, 8, follow)
    replica = bench.ladon("--io-threads", "1", "--replicaof", "127.0.0.1 %d" % primary.port)
    linked(replica)
    primary.client()("SET", "last", "one")
    end = time.monotonic() + 30
    while time.monotonic() < end and replica.client()("GET", "last") != b"one":
        time.sleep(0.1)
    served = replica.client()("GET", "last") == b"one"
    right = slow <= 30 and grown <= 300 * MB and served and len(held) == 60
    return "%.1f ms, +%d MB with %d; a replica %s" % (
        slow, grown // MB, len(held), "is served" if served else "is not served"), right
