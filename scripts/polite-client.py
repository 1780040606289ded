#!/usr/bin/env python3
"""What a polite client waits beside an impolite one, without the load generator's own pauses.

    scripts/polite-client.py --systems ladon=target/release/ladon,redis=redis-server --rounds 5

The server has the first core. The polite client has the second one and real-time priority (where the
system allows that, else it says so), so that the impolite client, which shares its core, cannot delay
it: `ladon-lab run --work fairness` sends both from one thread. Milliseconds of PING, SET and GET, one
at a time; the median of the rounds, in which the systems take turns.

In the rows named `two-` the server has both cores, and Ladon has an IO thread for each. The impolite
client's connection is on one thread, the polite one's on the other. Beside a busy loop, three threads
want two cores.

The rows from `commit` on are Ladon's alone, over IPROTO. Another connection commits a transaction of
20,000 updates in a space that has changed since, so that they run again; or it sends one request about a
million tuples; or 12 connections create an index each at once. The figure is the longest wait of the
polite client from that request to its reply.
"""
import multiprocessing, os, statistics, sys, threading, time

import iproto
from servers import Server, connect, options, print_head, request

SECONDS = 2
UPDATES = 20_000
TUPLES = 1_000_000
INDEXES = 12
PASSWORD = "polite"


def endless():
    yield from iter(lambda: request("SET", "k", "v") * 1000, None)


def deletes():
    value, first = b"x" * 40, 0
    while True:
        names = [b"d%d" % number for number in range(first, first + 2000)]
        yield b"".join(request("SET", name, value) for name in names) + request("DEL", *names)
        first += 2000


def loads():
    template = b"".join(request("SET", b"load:########:%03d" % key, b"x" * 40) for key in range(1000))
    for number in range(100_000_000):
        yield template.replace(b"########", b"%08d" % number)


def slow():
    yield request("SETRANGE", "long", 100_000_000, "x")
    yield from iter(lambda: request("BITCOUNT", "long"), None)


def commit(port, begins, ends):
    """Commits a long transaction whose space another one has changed, between two moments."""
    os.sched_setaffinity(0, {1})
    client, other = iproto.Iproto(port, PASSWORD), iproto.Iproto(port, PASSWORD)
    client.make_space(512, "rows")
    space, index = {iproto.SPACE_ID: 512}, {iproto.INDEX_ID: 0}
    put = lambda number: iproto.packet(iproto.REPLACE, {**space, iproto.TUPLE: [number, 0, "x" * 40]})
    client.call(*map(put, range(UPDATES)))
    add = [["+", 1, 1]]
    update = lambda number: {**space, **index, iproto.KEY: [number], iproto.TUPLE: add}
    client.call(iproto.packet(iproto.BEGIN, {}, stream=1))
    client.call(*(iproto.packet(iproto.UPDATE, update(number), stream=1) for number in range(UPDATES)))
    other.call(put(UPDATES))
    begins.set()
    time.sleep(0.1)
    client.call(iproto.packet(iproto.COMMIT, {}, stream=1))
    ends.set()


def filled(port, *indexes):
    """A client, and a space of many tuples with these indexes beside the primary one."""
    client = iproto.Iproto(port, PASSWORD)
    client.make_space(512, "rows")
    for number, kind in enumerate(indexes, 1):
        client.call(index_request(number, kind))
    put = lambda number: iproto.packet(
        iproto.REPLACE, {iproto.SPACE_ID: 512, iproto.TUPLE: [number, number * 7919 % TUPLES, "x" * 40]})
    for first in range(0, TUPLES, 10_000):
        client.call(*map(put, range(first, first + 10_000)))
    return client


def index_request(number, kind="tree"):
    index = [512, number, "i%d" % number, kind, {"unique": False}, [[1, "unsigned"]]]
    return iproto.packet(iproto.INSERT, {iproto.SPACE_ID: 288, iproto.TUPLE: index})


def one_request(packet, *indexes):
    """Sends one request about many tuples, between two moments."""

    def run(port, begins, ends):
        os.sched_setaffinity(0, {1})
        client = filled(port, *indexes)
        begins.set()
        time.sleep(0.1)
        client.call(packet)
        time.sleep(0.1)
        ends.set()

    return run


def indexes(port, begins, ends):
    """Creates indexes over many tuples from many connections at once, between two moments."""
    os.sched_setaffinity(0, {1})
    filled(port)
    clients = [iproto.Iproto(port, PASSWORD) for _ in range(INDEXES)]
    begins.set()
    time.sleep(0.1)
    for number, client in enumerate(clients, 1):
        client.socket.sendall(index_request(number))
    for client in clients:
        client.reply()
    ends.set()


COUNT = {iproto.FUNCTION_NAME: "box.space.rows.index.i1:count",
         iproto.TUPLE: [[1 << 40], "BITS_ALL_NOT_SET"]}
TRUNCATE = {iproto.SPACE_ID: 330, iproto.TUPLE: [512, 1]}
FORMAT = {iproto.SPACE_ID: 280, iproto.TUPLE: [512, 1, "rows", "memtx", 0, {}, [
    {"name": "id", "type": "unsigned"}, {"name": "number", "type": "unsigned"},
    {"name": "text", "type": "string"}]]}
REBUILD = {iproto.SPACE_ID: 288, iproto.TUPLE: [
    512, 1, "i1", "tree", {"unique": False}, [[2, "string"], [1, "unsigned"]]]}


class Beside:
    """What happens beside the polite client: an impolite client, busy loops, on how many cores."""

    def __init__(self, title, requests=None, cores=1, loops=0, once=None):
        self.title, self.requests, self.cores, self.loops, self.once = title, requests, cores, loops, once


IMPOLITE = {
    "nothing": Beside("nothing else going on"),
    "pipeline": Beside("SETs in a pipeline without end", endless),
    "load": Beside("SETs of new keys in a pipeline without end", loads),
    "delete": Beside("SETs of 2,000 keys and a DEL of them, without end", deletes),
    "commit": Beside("a COMMIT of %d updates that run again; the longest wait" % UPDATES, once=commit),
    "index": Beside("an index created over %d tuples; the longest wait" % TUPLES,
                    once=one_request(index_request(1))),
    "indexes": Beside("%d indexes created at once over %d tuples; the longest wait" % (INDEXES, TUPLES),
                      once=indexes),
    "count": Beside("a count of %d tuples by a BITSET index; the longest wait" % TUPLES,
                    once=one_request(iproto.packet(iproto.CALL, COUNT), "bitset")),
    "truncate": Beside("%d tuples truncated; the longest wait" % TUPLES,
                       once=one_request(iproto.packet(iproto.REPLACE, TRUNCATE), "tree")),
    "format": Beside("a new format for %d tuples; the longest wait" % TUPLES,
                     once=one_request(iproto.packet(iproto.REPLACE, FORMAT))),
    "rebuild": Beside("an index of %d tuples with other parts; the longest wait" % TUPLES,
                      once=one_request(iproto.packet(iproto.REPLACE, REBUILD), "tree")),
    "two-slow": Beside("BITCOUNTs of 100 MB on another thread, two cores", slow, cores=2),
    "two-slow-loop": Beside("the same, and a busy loop", slow, cores=2, loops=1),
    "two-loops": Beside("two busy loops and nothing else, two cores", cores=2, loops=2),
}


def be_impolite(port, requests):
    os.sched_setaffinity(0, {1})
    connection = connect(port)

    def read():
        try:
            while connection.recv(1 << 18):
                pass
        except OSError:
            pass

    threading.Thread(target=read, daemon=True).start()
    try:
        for batch in requests():
            connection.sendall(batch)
    except OSError:
        pass


def be_busy():
    os.sched_setaffinity(0, {0, 1})
    while True:
        pass


def be_polite(port, answer, begins=None, over=None):
    os.sched_setaffinity(0, {1})
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
    except PermissionError:
        print("no real-time priority: the client's own waits for its core are in the figures", file=sys.stderr)
    connection = connect(port)
    requests = [request("PING"), request("SET", "polite", b"v" * 40), request("GET", "polite")]
    if begins:
        begins.wait()
    waits, ends = [], time.perf_counter() + SECONDS
    while not over.is_set() if over else time.perf_counter() < ends:
        began = time.perf_counter()
        connection.sendall(requests[len(waits) % 3])
        if not connection.recv(4096):
            break
        waits.append((time.perf_counter() - began) * 1000)
        time.sleep(0.0005)
    waits.sort()
    answer.put(waits[-1:] if over else [waits[int(len(waits) * share)] for share in (0.5, 0.99, 0.999)])


def measure(path, port, beside):
    answer, others = multiprocessing.Queue(), []

    def start(target, *arguments):
        others.append(multiprocessing.Process(target=target, args=arguments))
        others[-1].start()

    extra = []
    if beside.once:
        extra = ["--iproto", "127.0.0.1:%d" % (port + 500), "--iproto-admin-password", PASSWORD]
    with Server(path, port, cores=beside.cores, extra=extra):
        try:
            if beside.once:
                begins, over = multiprocessing.Event(), multiprocessing.Event()
                start(be_polite, port, answer, begins, over)
                start(beside.once, port + 500, begins, over)
                return answer.get(timeout=120)
            if beside.requests:
                start(be_impolite, port, beside.requests)
                time.sleep(0.3)  # The polite client connects later, so that it gets the other thread.
            for _ in range(beside.loops):
                start(be_busy)
            polite = multiprocessing.Process(target=be_polite, args=(port, answer))
            polite.start()
            waits = answer.get(timeout=60)
            polite.join()
            return waits
        finally:
            for other in others:
                other.kill()
                other.join()


def main():
    parser = options(__doc__, IMPOLITE, port=17500)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    systems = [system.split("=", 1) for system in given.systems.split(",")]
    print_head("wait at 50 / 99 / 99.9 %, ms, beside", systems)
    for name in given.names or IMPOLITE:
        beside = IMPOLITE[name]
        waits = {system: [] for system, _ in systems}
        for number in range(given.rounds):
            for offset, (system, path) in enumerate(systems):
                if beside.once and "ladon" not in path:
                    continue
                waits[system].append(measure(path, given.port + number * len(systems) + offset, beside))
        cells = [" / ".join("%.2f" % statistics.median(column) for column in zip(*waits[system]))
                 for system, _ in systems]
        print("| %s | %s |" % (beside.title, " | ".join(cells)), flush=True)


if __name__ == "__main__":
    main()
