"""Commands: what they answer, and how long they keep others waiting."""
import threading
import time

from fault import fault


def longest_get(server, work, rounds=1):
    """The longest GET of another client while `work(client)` runs, in ms: the least over the rounds."""
    return min(longest_get_of_one(server, work) for _ in range(rounds))


def longest_get_of_one(server, work):
    worker, other, is_over = server.client(), server.client(), threading.Event()

    def run():
        try:
            work(worker)
        finally:
            is_over.set()

    thread, longest = threading.Thread(target=run), 0
    other("SET", "other", "x")
    thread.start()
    while not is_over.is_set():
        began = time.monotonic()
        other("GET", "other")
        longest = max(longest, time.monotonic() - began)
        time.sleep(0.0005)
    thread.join()
    return longest * 1000


def beside_redis(bench, prepare, work, *, factor, rounds=3):
    """Ladon's and Redis' longest GET in the same run; right if Ladon's is at most `factor` times Redis'."""
    times = []
    for server in bench.ladon("--io-threads", "1", "--gate", "none"), bench.redis():
        prepare(server.client())
        times.append(longest_get(server, work, rounds))
        server.kill()
    return "%.0f ms (Redis: %.0f ms)" % tuple(times), times[0] <= max(times[1] * factor, 5)


LONG = b"x" * 50_000_000
# Each byte of a name is looked for in the whole class if a class is read anew for each.
LONG_CLASS = b"*[" + b"bc" * 500_000 + b"]*"


def while_matching(bench, work):
    """The longest GET of another client while names of 1,000 bytes are matched with the class."""
    server = bench.ladon("--io-threads", "1")
    client = server.client()
    for number in range(3):
        client("SET", b"a" * 999 + b"%d" % number, "x")
    longest = longest_get(server, work)
    return "%.0f ms" % longest, longest < 50


@fault("KEYS with a class of 1 MB, names of 1,000 bytes: longest GET of another client", "under 50 ms")
def keys_class(bench):
    return while_matching(bench, lambda client: client("KEYS", LONG_CLASS))


@fault("SCAN MATCH with a class of 1 MB, names of 1,000 bytes: longest GET of another client", "under 50 ms")
def scan_class(bench):
    return while_matching(bench, lambda client: client("SCAN", 0, "MATCH", LONG_CLASS, "COUNT", 10_000))


@fault("PUBLISH on a channel of 1,000 bytes to a pattern with a class of 1 MB: longest GET of another client",
       "under 50 ms")
def publish_class(bench):
    def work(client):
        publisher = work.server.client()
        client("PSUBSCRIBE", LONG_CLASS)
        publisher("PUBLISH", b"a" * 1000, "x")
    server = work.server = bench.ladon("--io-threads", "1")
    longest = longest_get(server, work)
    return "%.0f ms" % longest, longest < 50
