"""Data on its way to other servers (MIGRATE) and to clients (SYNC): what peers can do to the others."""
import socket
import threading
import time

from fault import fault, pings

SECONDS, OTHER_MS, GROWN_BYTES = 4, 30, 48 << 20
MB = 1 << 20


def both(bench, fill, meanwhile, ladon_seconds=SECONDS):
    """p99.9 of PING and the growth of Ladon, and of Redis beside it; `meanwhile(server, ends)` is what is done."""
    told, right = [], True
    for name, server in [("Ladon", bench.ladon("--io-threads", "1")), ("Redis", bench.redis())]:
        fill(server.client())
        slow, grown = pings(server, ladon_seconds, lambda ends, server=server: meanwhile(server, ends))
        told.append("%s p99.9 %.1f ms, +%d MB" % (name, slow, grown // MB))
        if name == "Ladon":
            right = slow <= OTHER_MS and grown <= GROWN_BYTES and server.client()("PING") == "PONG"
    return "; ".join(told), right


class Silent:
    """Accepts connections, or does not even do that, and says nothing."""

    def __init__(self, accepts=True, answer=None):
        self.listener = socket.socket()
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(1 if not accepts else 512)
        self.port, self.kept, self.answer = self.listener.getsockname()[1], [], answer
        if accepts:
            threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            self.kept.append(client)
            if self.answer:
                threading.Thread(target=self.say, args=(client,), daemon=True).start()

    def say(self, client):
        try:
            while True:
                client.sendall(self.answer)
        except OSError:
            pass


def migrating(target, count=1, timeout_ms=1000):
    def run(server, ends):
        def one():
            try:
                client = server.client(timeout=60)
                while not ends.is_set():
                    # Refused are those that are too many.
                    if "too many" in client.error("MIGRATE", "127.0.0.1", target.port, "k", 0, timeout_ms):
                        time.sleep(0.5)
            except (OSError, EOFError):
                pass  # The server was ended.
        threads = [threading.Thread(target=one, daemon=True) for _ in range(count)]
        for thread in threads:
            thread.start()
        ends.wait()
    return run


def small(client):
    client("SET", "k", "v")


RIGHT = "others' PING p99.9 at most 30 ms, RSS +48 MB at most"


@fault("MIGRATE to a target that says nothing, timeout a second", RIGHT)
def silent(bench):
    return both(bench, small, migrating(Silent()))


@fault("200 clients MIGRATE to it at once", RIGHT)
def silent_for_many(bench):
    target = Silent()
    server = bench.ladon("--io-threads", "1")
    small(server.client())
    run = migrating(target, 200, 60000)
    slow, grown = pings(server, SECONDS, lambda ends: run(server, ends))
    return "p99.9 %.1f ms, +%d MB" % (slow, grown // MB), slow <= OTHER_MS and grown <= GROWN_BYTES


@fault("MIGRATE to a target that sends bytes without an end", RIGHT)
def endless(bench):
    return both(bench, small, migrating(Silent(answer=b"x" * 65536)))


@fault("MIGRATE of a value of 64 MB, there and back again", RIGHT)
def large(bench):
    told, right = [], True
    for name, begin in [("Ladon", lambda: bench.ladon("--io-threads", "1")), ("Redis", bench.redis)]:
        server, target = begin(), bench.redis("--proto-max-bulk-len", "512mb")
        server.client()("SET", "k", b"x" * (64 * MB))
        done = []

        def run(ends):
            client = server.client(timeout=60)
            while not ends.is_set():
                done.append(client.error("MIGRATE", "127.0.0.1", target.port, "k", 0, 10000, "COPY", "REPLACE"))
        slow, grown = pings(server, SECONDS, run)
        told.append("%s p99.9 %.1f ms, +%d MB, %d times" % (name, slow, grown // MB, len(done)))
        if name == "Ladon":
            right = slow <= OTHER_MS and grown <= GROWN_BYTES and set(done) == {"OK"}
    return "; ".join(told), right


@fault("8 SYNC clients that read nothing, 64 MB of data", RIGHT)
def sync_unread(bench):
    def fill(client):
        for number in range(64):
            client("SET", "k%d" % number, b"x" * MB)

    def run(server, ends):
        idle = []
        for _ in range(8):
            client = server.client()
            client("REPLCONF", "capa", "eof")
            client.send("SYNC")
            idle.append(client)
        ends.wait()
        for client in idle:
            client.close()
    return both(bench, fill, run)


@fault("SYNC again and again by a client that reads, 64 MB in small keys", RIGHT)
def sync_read(bench):
    def fill(client):
        for first in range(0, 400000, 1000):
            client("MSET", *(word for n in range(first, first + 1000) for word in ("key:%d" % n, "x" * 100)))

    def run(server, ends):
        while not ends.is_set():
            client = server.client()
            client("REPLCONF", "capa", "eof", "rdb-only", "1")
            client.send("SYNC")
            while not ends.is_set() and client.socket.recv(1 << 20):
                pass
            client.close()
            time.sleep(0.01)
    return both(bench, fill, run)
