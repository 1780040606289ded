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

In the rows from `commit` to `storm` all speak IPROTO, and `tarantool` can be among the systems (without
`commit` and `foreign`: Debian's has no streams and other foreign keys). Another connection commits a transaction of 20,000 updates in a space
that has changed since, so that they run again; or it sends one request about a million tuples; or 12
connections create an index each at once; or 50 define whatever they like for 20 seconds (`storm`, see
`definition_storm.py`). The polite client sends PING, and REPLACE and SELECT of a tuple of
a space of its own. The figures are its 99 %, 99.9 % and longest waits from that request to its reply, and the
seconds that the request took.
"""
import multiprocessing, os, statistics, sys, threading, time

import definition_storm, iproto
from servers import Server, connect, is_tarantool, options, print_head, request

SECONDS = 2
UPDATES = 20_000
TUPLES = 1_000_000
INDEXES = 12
POLITE_SPACE = 513
# `ER_ALTER_SPACE`.
ALTER_SPACE = 12
ONCE_MAX_SECONDS = 120
STORM_SECONDS = 20
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


# What a once-only impolite client does before and after what is measured.
SETTLE_SECONDS = 0.1


def commit(port):
    """Prepares to commit a long transaction whose space another one has changed."""
    client, other = iproto.Iproto(port, PASSWORD), iproto.Iproto(port, PASSWORD)
    prepare_commit(client, other)
    return lambda: client.call(iproto.packet(iproto.COMMIT, {}, stream=1))


def prepare_commit(client, other):
    client.make_space(512, "rows")
    space, index = {iproto.SPACE_ID: 512}, {iproto.INDEX_ID: 0}
    put = lambda number: iproto.packet(iproto.REPLACE, {**space, iproto.TUPLE: [number, 0, "x" * 40]})
    client.call(*map(put, range(UPDATES)))
    add = [["+", 1, 1]]
    update = lambda number: {**space, **index, iproto.KEY: [number], iproto.TUPLE: add}
    client.call(iproto.packet(iproto.BEGIN, {}, stream=1))
    client.call(*(iproto.packet(iproto.UPDATE, update(number), stream=1) for number in range(UPDATES)))
    other.call(put(UPDATES))


def filled(port, *indexes, tuples=TUPLES):
    """A client, and a space of many tuples with these indexes beside the primary one."""
    client = iproto.Iproto(port, PASSWORD)
    client.make_space(512, "rows")
    for number, kind in enumerate(indexes, 1):
        client.call(index_request(number, kind))
    put = lambda number: iproto.packet(
        iproto.REPLACE, {iproto.SPACE_ID: 512, iproto.TUPLE: [number, number * 7919 % TUPLES, "x" * 40]})
    for first in range(0, tuples, 10_000):
        client.call(*map(put, range(first, first + 10_000)))
    return client


def index_request(number, kind="tree"):
    index = [512, number, "i%d" % number, kind, {"unique": False}, [[1, "unsigned"]]]
    return iproto.packet(iproto.INSERT, {iproto.SPACE_ID: 288, iproto.TUPLE: index})


def one_request(packet, *indexes):
    """Sends one request about many tuples."""

    def prepare(port):
        client = filled(port, *indexes)
        return lambda: client.call(packet)

    return prepare


def indexes(port):
    """Creates indexes over many tuples from many connections at once."""
    filled(port)
    clients = [iproto.Iproto(port, PASSWORD) for _ in range(INDEXES)]

    def run():
        left = list(enumerate(clients, 1))
        while left:
            for number, client in left:
                client.socket.sendall(index_request(number))
            # Tarantool refuses what comes while the space is being altered.
            left = [(number, client) for number, client in left
                    if iproto.code_of(client.any_reply()) == ALTER_SPACE]

    return run


def run_once(prepare, port, begins, over, seconds):
    """Does what was prepared between two moments, and says how long it took."""
    os.sched_setaffinity(0, {1})
    try:
        run = prepare(port)
        begins.set()
        time.sleep(SETTLE_SECONDS)
        began = time.perf_counter()
        run()
        seconds.put(time.perf_counter() - began)
        time.sleep(SETTLE_SECONDS)
    finally:
        begins.set()
        over.set()


def storm(port):
    """Definitions of a large space from many connections, for a while."""
    definition_storm.fill(filled(port, tuples=0))
    storm = definition_storm.Storm(port, PASSWORD)

    def run():
        storm.run(STORM_SECONDS)
        print("    %s" % storm, file=sys.stderr)

    return run


COUNT = {iproto.FUNCTION_NAME: "box.space.rows.index.i1:count",
         iproto.TUPLE: [[1 << 40], "BITS_ALL_NOT_SET"]}
TRUNCATE = {iproto.SPACE_ID: 330, iproto.TUPLE: [512, 1]}
FORMAT = {iproto.SPACE_ID: 280, iproto.TUPLE: [512, 1, "rows", "memtx", 0, {}, [
    {"name": "id", "type": "unsigned"}, {"name": "number", "type": "unsigned"},
    {"name": "text", "type": "string"}]]}
FOREIGN = {iproto.SPACE_ID: 280, iproto.TUPLE: [512, 1, "rows", "memtx", 0, {}, [
    {"name": "id", "type": "unsigned"}, {"name": "number", "type": "unsigned", "foreign_key": {"k": {"field": 0}}}]]}
REBUILD = {iproto.SPACE_ID: 288, iproto.TUPLE: [
    512, 1, "i1", "tree", {"unique": False}, [[2, "string"], [1, "unsigned"]]]}
PRIMARY = {iproto.SPACE_ID: 288, iproto.TUPLE: [
    512, 0, "pk", "tree", {"unique": True}, [[1, "unsigned"]]]}


foreign = one_request(iproto.packet(iproto.REPLACE, FOREIGN))


class Beside:
    """What happens beside the polite client: an impolite client, busy loops, on how many cores."""

    def __init__(self, title, requests=None, cores=1, loops=0, once=None):
        self.title, self.requests, self.cores, self.loops, self.once = title, requests, cores, loops, once

    def can_run(self, path):
        """Whether this can be measured of the system."""
        if is_tarantool(path):
            return self.once not in (None, commit, foreign)
        return self.once is None or "ladon" in path


IMPOLITE = {
    "nothing": Beside("nothing else going on"),
    "pipeline": Beside("SETs in a pipeline without end", endless),
    "load": Beside("SETs of new keys in a pipeline without end", loads),
    "delete": Beside("SETs of 2,000 keys and a DEL of them, without end", deletes),
    "commit": Beside("a COMMIT of %d updates that run again" % UPDATES, once=commit),
    "index": Beside("an index created over %d tuples" % TUPLES,
                    once=one_request(index_request(1))),
    "indexes": Beside("%d indexes created at once over %d tuples" % (INDEXES, TUPLES),
                      once=indexes),
    "count": Beside("a count of %d tuples by a BITSET index" % TUPLES,
                    once=one_request(iproto.packet(iproto.CALL, COUNT), "bitset")),
    "truncate": Beside("%d tuples truncated" % TUPLES,
                       once=one_request(iproto.packet(iproto.REPLACE, TRUNCATE), "tree")),
    "format": Beside("a new format for %d tuples" % TUPLES,
                     once=one_request(iproto.packet(iproto.REPLACE, FORMAT))),
    "foreign": Beside("a foreign key of %d tuples to each other" % TUPLES, once=foreign),
    "rebuild": Beside("an index of %d tuples with other parts" % TUPLES,
                      once=one_request(iproto.packet(iproto.REPLACE, REBUILD), "tree")),
    "primary": Beside("another primary key, with a secondary index, of %d tuples" % TUPLES,
                      once=one_request(iproto.packet(iproto.REPLACE, PRIMARY), "tree")),
    "storm": Beside("definitions of a space of %d tuples from 50 connections" % TUPLES, once=storm),
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


def be_first():
    """Takes the second core before anybody else does."""
    os.sched_setaffinity(0, {1})
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
    except PermissionError:
        print("no real-time priority: the client's own waits for its core are in the figures", file=sys.stderr)


def be_polite(port, answer):
    be_first()
    connection = connect(port)
    requests = [request("PING"), request("SET", "polite", b"v" * 40), request("GET", "polite")]
    waits, ends = [], time.perf_counter() + SECONDS
    while time.perf_counter() < ends:
        began = time.perf_counter()
        connection.sendall(requests[len(waits) % 3])
        if not connection.recv(4096):
            break
        waits.append((time.perf_counter() - began) * 1000)
        time.sleep(0.0005)
    answer.put(shares(waits, 0.5, 0.99, 0.999))


def be_polite_in_space(port, answer, begins, over):
    """As `be_polite`, over IPROTO between two moments: the 99 %, the 99.9 % and the longest wait, in milliseconds."""
    be_first()
    client = iproto.Iproto(port, PASSWORD)
    client.make_space(POLITE_SPACE, "polite")
    space = {iproto.SPACE_ID: POLITE_SPACE}
    select = {**space, iproto.INDEX_ID: 0, iproto.LIMIT: 1, iproto.OFFSET: 0, iproto.ITERATOR: 0,
              iproto.KEY: [1]}
    requests = [iproto.packet(iproto.PING, {}),
                iproto.packet(iproto.REPLACE, {**space, iproto.TUPLE: [1, "v" * 40]}),
                iproto.packet(iproto.SELECT, select)]
    begins.wait()
    waits = []
    while not over.is_set():
        began = time.perf_counter()
        client.call(requests[len(waits) % 3])
        waits.append((time.perf_counter() - began) * 1000)
        time.sleep(0.0005)
    answer.put(shares(waits, 0.99, 0.999, 1))


def shares(waits, *of):
    waits.sort()
    return [waits[min(int(len(waits) * share), len(waits) - 1)] for share in of]


def measure(path, port, beside):
    answer, others = multiprocessing.Queue(), []

    def start(target, *arguments):
        others.append(multiprocessing.Process(target=target, args=arguments))
        others[-1].start()

    with Server(path, port, cores=beside.cores, password=PASSWORD if beside.once else None) as server:
        try:
            if beside.once:
                begins, over, seconds = multiprocessing.Event(), multiprocessing.Event(), multiprocessing.Queue()
                start(be_polite_in_space, server.iproto_port, answer, begins, over)
                start(run_once, beside.once, server.iproto_port, begins, over, seconds)
                begins.wait(ONCE_MAX_SECONDS)
                memory = [server.resident_bytes()]
                while not over.wait(1):
                    memory.append(server.resident_bytes())
                time.sleep(3)  # What was discarded is freed by another thread.
                memory.append(server.resident_bytes())
                print("    %s: MiB resident before, at most, after: %d, %d, %d" % (
                    path, memory[0] >> 20, max(memory) >> 20, memory[-1] >> 20), file=sys.stderr)
                return answer.get(timeout=10) + [seconds.get(timeout=1)]
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
    print_head("wait at 50 / 99 / 99.9 %, ms, beside; or 99 / 99.9 % / longest, ms / seconds", given.systems)
    for name in given.names or IMPOLITE:
        beside = IMPOLITE[name]
        waits = {system: [] for system, _ in given.systems}
        for number in range(given.rounds):
            for offset, (system, path) in enumerate(given.systems):
                if not beside.can_run(path):
                    continue
                waits[system].append(measure(path, given.port + number * len(given.systems) + offset, beside))
        cells = [" / ".join("%.2f" % statistics.median(column) for column in zip(*waits[system]))
                 for system, _ in given.systems]
        print("| %s | %s |" % (beside.title, " | ".join(cells)), flush=True)


if __name__ == "__main__":
    main()
