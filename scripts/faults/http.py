"""HTTP and memcached: clients that take all they can get, beside clients of Redis' protocol that do the same to Redis."""
import multiprocessing
import resource
import socket
import time

from fault import fault, free_port, linked, pings

SECONDS = 4
# Below this, the other core's scheduler says more than the server.
FLOOR_MS, GROWN_BYTES = 10, 48 << 20
# The most of the log that waits for the disk, besides one large record.
LOG_BYTES = 64 << 20
RIGHT = ("p99.9 of another client's PING at most 1.5 times Redis' (or %d ms), RSS at most Redis' growth and %d MB"
         % (FLOOR_MS, GROWN_BYTES >> 20))
WRITES_RIGHT = RIGHT.replace("Redis'", "those of a Redis with a log", 1) + " and %d MB of log" % (LOG_BYTES >> 20)


def allow_open_files():
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def attack(port, connections, start, endless, reads, begun):
    """Connects, sends `start` on each connection, and then `endless` again and again."""
    allow_open_files()
    sockets = []
    for _ in range(connections):
        sockets.append(socket.create_connection(("127.0.0.1", port), timeout=30))
        if start:
            sockets[-1].sendall(start)
    begun.set()
    if not endless:
        time.sleep(3600)
    for one in sockets:
        one.setblocking(False)
    rests = [b""] * len(sockets)
    while True:
        moved = False
        for at, one in enumerate(sockets):
            try:
                rests[at] = rests[at] or endless
                rests[at] = rests[at][one.send(rests[at]):]
                moved = True
            except BlockingIOError:
                pass
            except OSError:
                return
            try:
                while reads and one.recv(1 << 18):
                    moved = True
            except BlockingIOError:
                pass
        if not moved:
            time.sleep(0.001)


def beside(server, *attacks):
    """p99.9 of PING in milliseconds and the RSS grown, while a process each makes an attack.

    An attack is a port, how many connections, their start, what they send endlessly, and whether they read.
    """
    before, attackers = server.rss_bytes(), []
    try:
        for one in attacks:
            begun = multiprocessing.Event()
            attackers.append(multiprocessing.Process(target=attack, args=(*one, begun), daemon=True))
            attackers[-1].start()
            begun.wait(60)
        time.sleep(0.5)
        p999, _ = pings(server, SECONDS, lambda ends: None)
        return p999, server.rss_bytes() - before
    finally:
        for attacker in attackers:
            attacker.kill()
            attacker.join()


def judged(ladon, redis, allowed_bytes=GROWN_BYTES):
    """What two of `beside` show, and whether that is right."""
    (p999, grown), (redis_p999, redis_grown) = ladon, redis
    did = "%.1f ms, +%d MB; Redis %.1f ms, +%d MB" % (p999, grown >> 20, redis_p999, redis_grown >> 20)
    return did, p999 <= max(1.5 * redis_p999, FLOOR_MS) and grown <= max(redis_grown, 0) + allowed_bytes


def ladon_at(bench, head):
    """A Ladon, and its port of the protocol of `head`."""
    port = free_port()
    return bench.ladon(head, "127.0.0.1:%d" % port, "--gate", "everysec", "--maxclients", "20000"), port


def compared(bench, head, connections, here, there, reads=True, writes=False):
    """Attacks a Ladon on the port of `head` with the first (start, endless), and a Redis with the second.

    Where they write, Redis has a log as well, and some of Ladon's may wait for the disk.
    """
    ladon, port = ladon_at(bench, head)
    log = ["--appendonly", "yes", "--appendfsync", "everysec"] if writes else []
    redis = bench.redis("--maxclients", "20000", *log)
    of_ladon = beside(ladon, (port, connections, *here, reads))
    of_redis = beside(redis, (redis.port, connections, *there, reads))
    return judged(of_ladon, of_redis, GROWN_BYTES + writes * LOG_BYTES)


def post(path, body, length=None):
    head = "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (path, len(body) if length is None else length)
    return head.encode() + body


GET = b"GET /get/k HTTP/1.1\r\nHost: x\r\n\r\n"
RESP_GET = b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"
LONG = b"x" * (8 << 20)
RESP_SET = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$8388608\r\n" + LONG + b"\r\n"


@fault("an endless pipeline over HTTP, 4 connections", RIGHT)
def pipeline(bench):
    return compared(bench, "--http", 4, (b"", GET * 500), (b"", RESP_GET * 500))


@fault("an endless pipeline over HTTP that nobody reads, 50 connections", RIGHT)
def unread(bench):
    return compared(bench, "--http", 50, (b"", GET * 500), (b"", RESP_GET * 500), reads=False)


@fault("8,000 idle connections over HTTP", RIGHT)
def idle(bench):
    return compared(bench, "--http", 8000, (b"", b""), (b"", b""))


@fault("4,000 half heads over HTTP", RIGHT)
def half_heads(bench):
    return compared(bench, "--http", 4000, (b"GET /" + b"a" * 8000, b""), (b"*2\r\n$3\r\nGET\r\n$9000\r\n" + b"a" * 8000, b""))


@fault("2,000 half bodies of JSON, 100 kB each", RIGHT)
def half_bodies(bench):
    return compared(bench, "--http", 2000, (post("/", b'["SET","k","' + b"x" * 100_000, 200_000), b""),
                    (b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$200000\r\n" + b"x" * 100_000, b""))


@fault("8 MB values by PUT over HTTP, endless, 4 connections", WRITES_RIGHT)
def long_values(bench):
    request = b"PUT /v1/keys/k HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(LONG) + LONG
    return compared(bench, "--http", 4, (b"", request), (b"", RESP_SET), writes=True)


@fault("8 MB strings in JSON over HTTP, endless, 4 connections", WRITES_RIGHT)
def long_strings(bench):
    return compared(bench, "--http", 4, (b"", post("/", b'["SET","k","' + LONG + b'"]')), (b"", RESP_SET), writes=True)


@fault("400,000 commands in a body, endless, 4 connections", RIGHT)
def many_commands(bench):
    # None of them runs before the whole body proves to be sound, so they are kept, as Redis keeps those of a MULTI.
    body = b"[" + b",".join([b'["PING"]'] * 400_000) + b"]"
    ping = b"*1\r\n$4\r\nPING\r\n"
    kept = b"*1\r\n$5\r\nMULTI\r\n" + ping * 400_000 + b"*1\r\n$4\r\nEXEC\r\n"
    return compared(bench, "--http", 4, (b"", post("/pipeline", body)), (b"", kept))


@fault("a body of HTTP by single bytes, 500 connections", RIGHT)
def drips(bench):
    return compared(bench, "--http", 500, (post("/", b'["SET","k","', 1 << 20), b"x"),
                    (b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1048576\r\n", b"x"))


@fault("an endless pipeline of memcached's protocol, 4 connections", RIGHT)
def memcached_pipeline(bench):
    return compared(bench, "--memcached", 4, (b"", b"get k\r\n" * 1000), (b"", RESP_GET * 500))


@fault("an endless pipeline of memcached's protocol that nobody reads, 50 connections", RIGHT)
def memcached_unread(bench):
    return compared(bench, "--memcached", 50, (b"", b"get k\r\n" * 1000), (b"", RESP_GET * 500), reads=False)


@fault("8,000 idle connections of memcached's protocol", RIGHT)
def memcached_idle(bench):
    return compared(bench, "--memcached", 8000, (b"", b""), (b"", b""))


@fault("2,000 half values of memcached's protocol, 100 kB each", RIGHT)
def memcached_halves(bench):
    return compared(bench, "--memcached", 2000, (b"set k 0 0 200000\r\n" + b"x" * 100_000, b""),
                    (b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$200000\r\n" + b"x" * 100_000, b""))


@fault("50 watchers of memcached's protocol that nobody reads, beside an endless pipeline and 300 idle connections", RIGHT)
def memcached_watchers(bench):
    ladon, port = ladon_at(bench, "--memcached")
    redis = bench.redis("--maxclients", "20000")
    watch = b"watch fetchers mutations evictions connevents\r\n"
    of_ladon = beside(ladon, (port, 50, watch, b"", False), (port, 300, b"", b"", False),
                      (port, 4, b"", b"set k 0 0 1\r\nx\r\nget k\r\n" * 500, True))
    of_redis = beside(redis, (redis.port, 50, b"MONITOR\r\n", b"", False), (redis.port, 300, b"", b"", False),
                      (redis.port, 4, b"", b"SET k x\r\nGET k\r\n" * 500, True))
    return judged(of_ladon, of_redis)


@fault("lists of 300,000 items by memcached's protocol, 4 connections",
       "p99.9 of another client's PING at most %d ms, RSS +%d MB (Redis answers nobody for 30 s beside as many KEYS)"
       % (2 * FLOOR_MS, GROWN_BYTES >> 20))
def memcached_lists(bench):
    ladon, port = ladon_at(bench, "--memcached")
    client = ladon.client()
    for first in range(0, 300_000, 1000):
        client("MSET", *(word for n in range(first, first + 1000) for word in ("key:%d" % n, "x")))
    p999, grown = beside(ladon, (port, 4, b"", b"stats cachedump 1 0\r\nlru_crawler metadump all\r\n", True))
    return "%.1f ms, +%d MB" % (p999, grown >> 20), p999 <= 2 * FLOOR_MS and grown <= GROWN_BYTES


def at_followers(bench, head, ask, reads):
    """Attacks of a follower whose clients read at the gate `quorum`, and of a Redis' replica; PINGs there, and at the leader."""
    port = free_port()
    (leader, follower, _), _, _ = bench.cluster("--gate", "quorum", "--maxclients", "20000")
    leader.client()("SET", "k", "v")
    follower.client()("CONFIG", "SET", head, "127.0.0.1:%d" % port)
    count = 4 if reads else 50
    of_ladon = beside(follower, (port, count, b"", ask, reads))
    at_leader = beside(leader, (port, count, b"", ask, reads))
    bench.stop_all()
    redis = bench.redis()
    redis.client()("SET", "k", "v")
    replica = bench.redis("--maxclients", "20000", "--replicaof", "127.0.0.1", str(redis.port))
    linked(replica)
    of_redis = beside(replica, (replica.port, count, b"", RESP_GET * 500, reads))
    (did, right), (_, right_too) = judged(of_ladon, of_redis), judged(at_leader, of_redis)
    return "%s; at the leader %.1f ms, +%d MB" % (did, at_leader[0], at_leader[1] >> 20), right and right_too


AT_FOLLOWERS_RIGHT = RIGHT.replace("PING", "PING, there and at the leader,", 1)


@fault("an endless pipeline of memcached's protocol at a follower at quorum, 4 connections", AT_FOLLOWERS_RIGHT)
def memcached_at_follower(bench):
    return at_followers(bench, "memcached", b"get k\r\n" * 1000, True)


@fault("the same pipeline of memcached's protocol at a follower at quorum that nobody reads, 50 connections", AT_FOLLOWERS_RIGHT)
def memcached_unread_at_follower(bench):
    return at_followers(bench, "memcached", b"get k\r\n" * 1000, False)


@fault("an endless pipeline over HTTP at a follower at quorum, 4 connections", AT_FOLLOWERS_RIGHT)
def http_at_follower(bench):
    return at_followers(bench, "http", GET * 500, True)


@fault("the same pipeline over HTTP at a follower at quorum that nobody reads, 50 connections", AT_FOLLOWERS_RIGHT)
def http_unread_at_follower(bench):
    return at_followers(bench, "http", GET * 500, False)
