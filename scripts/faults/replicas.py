"""Read replicas that stop, or ask and read nothing, and what clients of their server see of it, beside Redis."""
import random
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time

from fault import Client, fault, free_port, linked, pings

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


KEYS, MISSED = 200_000, 1_500_000


def small_sets(server, count):
    """So many SETs of 100 bytes under the same keys, 500 at once."""
    client = server.client()
    for at in range(0, count, 500):
        keys = (random.randrange(KEYS) for _ in range(500))
        client.socket.sendall(b"".join(command("SET", b"small:%d" % key, b"v" * 100) for key in keys))
        for _ in range(500):
            client.reply()


def beside_catching_up(primary, replica):
    """p99.9 of GETs at a replica that takes what it missed, its growth, and the seconds that it takes."""
    linked(replica)
    small_sets(primary, MISSED // 3)
    primary.client()("SET", "first", "one")
    shows(replica, "first")
    replica.process.send_signal(signal.SIGSTOP)
    small_sets(primary, MISSED)
    primary.client()("SET", "last", "one")
    took = []

    def go_on(ends):
        replica.process.send_signal(signal.SIGCONT)
        began = time.monotonic()
        while not ends.is_set() and replica.client()("GET", "last") != b"one":
            time.sleep(0.05)
        took.append(time.monotonic() - began)

    get = lambda: ("GET", b"small:%d" % random.randrange(KEYS))
    slow, grown = pings(replica, 3, go_on, get)
    return slow, grown, took[0] if shows(replica, "last") else None


@fault("a replica takes 1.5 million SETs that it missed (SIGSTOP), while it answers; Redis with its log, too",
       "p99.9 of another client's GET at the replica at most 1.5 times Redis' (or %d ms), RSS at most Redis' growth and %d MB; it "
       "catches up" % (FLOOR_MS, GROWN_BYTES // MB))
def catching_up(bench):
    limits = ("--client-output-buffer-limit", "replica 0 0 0", "--repl-backlog-size", "1gb", "--appendonly", "yes")
    redis = bench.redis(*limits)
    follows = ("--replicaof", "127.0.0.1", str(redis.port), "--appendonly", "yes")
    redis_slow, redis_grown, redis_took = beside_catching_up(redis, bench.redis(*follows))
    bench.stop_all()
    primary = bench.ladon("--io-threads", "1")
    replica = bench.ladon("--io-threads", "1", "--replicaof", "127.0.0.1 %d" % primary.port)
    slow, grown, took = beside_catching_up(primary, replica)
    right = slow <= max(1.5 * redis_slow, FLOOR_MS) and grown <= max(redis_grown, 0) + GROWN_BYTES and took is not None
    seconds = lambda took: "not in time" if took is None else "%.1f s" % took
    return "%.1f ms, +%d MB, %s; Redis %.1f ms, +%d MB, %s" % (
        slow, grown // MB, seconds(took), redis_slow, redis_grown // MB, seconds(redis_took)), right


def flood_of_waits(port, connections, seconds):
    """Connections that write, and ask ROLE, SENTINEL and WAIT, each again once it is answered. Returns the answers."""
    ask = b"".join(command(*words) for words in (
        ("SET", "flood", "1"), ("ROLE",), ("SENTINEL", "masters"), ("WAIT", 1, 50)))
    selector, answers, end = selectors.DefaultSelector(), 0, time.monotonic() + seconds
    for _ in range(connections):
        one = socket.create_connection(("127.0.0.1", port), timeout=30)
        one.setblocking(False)
        one.send(ask)
        selector.register(one, selectors.EVENT_READ)
    while time.monotonic() < end:
        for key, _ in selector.select(0.1):
            try:
                # A WAIT's answer is a number, and the last line of a round.
                got = key.fileobj.recv(1 << 16)
                if got.rsplit(b"\r\n", 2)[-2:-1] and got.rsplit(b"\r\n", 2)[-2].startswith(b":"):
                    answers += 1
                    key.fileobj.send(ask)
            except BlockingIOError:
                pass
    print(answers)


def beside_flood_of_waits(primary, replica):
    linked(replica)
    source = "import sys; sys.path[:0] = %r; import replicas; replicas.flood_of_waits(%d, 10_000, 8)" % (sys.path[:2], primary.port)
    flood = subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE)
    end = time.monotonic() + 30
    while time.monotonic() < end and int(primary.client()("INFO", "clients").split(b"connected_clients:")[1].split()[0]) < 9_000:
        time.sleep(0.2)
    slow, grown = pings(primary, 5, lambda ends: ends.wait())
    answers = int(flood.communicate(timeout=60)[0])
    primary.client()("SET", "last", "one")
    return slow, grown, answers, shows(replica, "last")


def shows(replica, key, seconds=30):
    """Whether the replica gets that write."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if replica.client()("GET", key) == b"one":
            return True
        time.sleep(0.1)
    return False


@fault("10,000 connections write and ask ROLE, SENTINEL and WAIT 1 of a server with a replica, for ever",
       "p99.9 of another client's PING at most 1.5 times Redis' (or 30 ms), RSS at most Redis' growth and %d MB; the replica goes on"
       % (GROWN_BYTES // MB))
def waiting_crowd(bench):
    redis = bench.redis("--maxclients", "12000", "--appendonly", "yes")
    redis_slow, redis_grown, redis_answers, _ = beside_flood_of_waits(redis, bench.redis("--replicaof", "127.0.0.1", str(redis.port)))
    bench.stop_all()
    primary = bench.ladon("--io-threads", "1", "--maxclients", "12000")
    replica = bench.ladon("--io-threads", "1", "--replicaof", "127.0.0.1 %d" % primary.port)
    slow, grown, answers, served = beside_flood_of_waits(primary, replica)
    right = slow <= max(1.5 * redis_slow, 30) and grown <= max(redis_grown, 0) + GROWN_BYTES and served
    return "%.1f ms, +%d MB, %d rounds, a replica %s; Redis %.1f ms, +%d MB, %d rounds" % (
        slow, grown // MB, answers, "goes on" if served else "stands", redis_slow, redis_grown // MB, redis_answers), right


def flap(replica, primary):
    """REPLICAOF there and NO ONE, every 10 ms, until it ends; then there."""
    there = ("REPLICAOF", "127.0.0.1", str(primary.port))

    def run(ends):
        client = replica.client()
        while not ends.is_set():
            for words in (there, ("REPLICAOF", "NO", "ONE")):
                client.error(*words)
                time.sleep(0.01)
        client(*there)
    return run


def beside_flapping(primary, replica):
    write(primary)(threading.Event())
    before = replica.rss_bytes()
    slow, grown = pings(primary, 6, flap(replica, primary))
    linked(replica)
    primary.client()("SET", "last", "one")
    return slow, max(grown, replica.rss_bytes() - before), shows(replica, "last")


@fault("a server is told to follow another one, and nobody, every 10 ms",
       "p99.9 of another client's PING at the other one at most 1.5 times Redis' (or %d ms), RSS of both at most Redis' growth and "
       "%d MB; in the end it follows" % (FLOOR_MS, GROWN_BYTES // MB))
def flapping(bench):
    redis = bench.redis("--repl-diskless-sync-delay", "0")
    redis_slow, redis_grown, _ = beside_flapping(redis, bench.redis())
    bench.stop_all()
    slow, grown, served = beside_flapping(bench.ladon("--io-threads", "1"), bench.ladon("--io-threads", "1"))
    right = slow <= max(1.5 * redis_slow, FLOOR_MS) and grown <= max(redis_grown, 0) + GROWN_BYTES and served
    return "%.1f ms, +%d MB, %s; Redis %.1f ms, +%d MB" % (
        slow, grown // MB, "follows" if served else "does not follow", redis_slow, redis_grown // MB), right


def beside_half_open(server, port):
    """p99.9 and growth while strangers keep connections to the nodes' port open, with half a greeting or none."""
    def strangers(ends):
        held = []
        while not ends.is_set():
            try:
                one = socket.create_connection(("127.0.0.1", port), timeout=1)
                if len(held) % 2:
                    one.sendall(b"\x40\x00\x00\x00\x01RCmb"[:1 + len(held) % 9])
                held.append(one)
            except OSError:
                time.sleep(0.01)
            if len(held) >= 200:
                ends.wait(0.02)
                held.pop(0).close()
    return pings(server, 6, strangers)


@fault("200 connections of strangers to the port of a cluster's nodes, who say half a greeting or nothing",
       "p99.9 of another client's PING at most 1.5 times Redis' (or %d ms), RSS at most Redis' growth and %d MB; a node that restarts "
       "belongs again, and writes at quorum are done" % (FLOOR_MS, GROWN_BYTES // MB))
def strangers_at_the_mesh(bench):
    bus = free_port()
    redis = bench.redis("--cluster-enabled", "yes", "--cluster-port", str(bus))
    redis_slow, redis_grown = beside_half_open(redis, bus)
    bench.stop_all()
    (leader, other, third), ports, own = bench.cluster()
    held = [socket.create_connection(("127.0.0.1", ports[0]), timeout=5) for _ in range(100)]
    slow, grown = beside_half_open(leader, ports[0])
    other.kill()
    words = [bench.ladon_path, "serve", "--resp", "127.0.0.1:%d" % other.port, "--dir", other.directory, *own]
    again = bench.started(other, words + ["--cluster-port", str(ports[1])])
    third.kill()
    client = leader.client()
    client("CLIENT", "GATE", "quorum")
    written = client("SET", "last", "one") in (b"OK", "OK")
    served = written and shows(again, "last")
    right = slow <= max(1.5 * redis_slow, FLOOR_MS) and grown <= max(redis_grown, 0) + GROWN_BYTES and served
    return "%.1f ms, +%d MB, %s (%d held); Redis %.1f ms, +%d MB" % (
        slow, grown // MB, "belongs again" if served else "stays away", len(held), redis_slow, redis_grown // MB), right
