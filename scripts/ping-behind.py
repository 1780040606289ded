#!/usr/bin/env python3
"""How long a PING waits behind a request that takes long on its own connection.

    scripts/ping-behind.py --systems ladon=target/release/ladon --rounds 5 commit count

The server has the first core, the client the second one and real-time priority, where it may. The client sends the
long request (the commit in a stream, the others in none) and then one PING after the other, until the long request's
reply has come. The figures are medians of the rounds: the longest wait of a PING in milliseconds, how many PINGs were
answered before the long reply, and the milliseconds that the long request took. Where the PING waits for the long
request, no PING passes.
"""
import importlib, statistics, time

import iproto
from servers import Server, options, print_head

polite = importlib.import_module("polite-client")

TUPLES = 200_000
LONG_SYNC, PING_SYNC = 1_000, 2_000


def commit(port):
    client, other = iproto.Iproto(port, polite.PASSWORD), iproto.Iproto(port, polite.PASSWORD)
    polite.prepare_commit(client, other)
    return client, iproto.packet(iproto.COMMIT, {}, stream=1, sync=LONG_SYNC)


def behind(kind, body, *indexes):
    return lambda port: (polite.filled(port, *indexes, tuples=TUPLES),
                         iproto.packet(kind, body, sync=LONG_SYNC))


ALL = {iproto.SPACE_ID: 512, iproto.INDEX_ID: 0, iproto.LIMIT: 1 << 31, iproto.OFFSET: 0, iproto.ITERATOR: 2,
       iproto.KEY: []}
INDEX = {iproto.SPACE_ID: 288, iproto.TUPLE: [512, 1, "i1", "tree", {"unique": False}, [[1, "unsigned"]]]}

LONG = {
    "commit": ("a COMMIT of %d updates that run again" % polite.UPDATES, commit),
    "count": ("a count of %d tuples by a BITSET index" % TUPLES, behind(iproto.CALL, polite.COUNT, "bitset")),
    "select": ("a selection of %d tuples" % TUPLES, behind(iproto.SELECT, ALL)),
    "index": ("an index created over %d tuples" % TUPLES, behind(iproto.INSERT, INDEX)),
}


def measure(path, port, prepare):
    with Server(path, port, password=polite.PASSWORD) as server:
        polite.be_first()
        client, request = prepare(server.iproto_port)
        time.sleep(polite.SETTLE_SECONDS)
        began = time.perf_counter()
        client.socket.sendall(request)
        waits, passed, seconds = [], 0, None
        while seconds is None:
            asked = time.perf_counter()
            client.socket.sendall(iproto.packet(iproto.PING, {}, sync=PING_SYNC))
            while iproto.sync_of(client.reply()) == LONG_SYNC:
                seconds = time.perf_counter() - began
            waits.append(time.perf_counter() - asked)
            passed += seconds is None
        return max(waits) * 1000, passed, seconds * 1000


def main():
    parser = options(__doc__, LONG, port=17700)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    print_head("PING behind", given.systems)
    for name in given.names or LONG:
        title, prepare = LONG[name]
        found = {system: [] for system, _ in given.systems}
        for _ in range(given.rounds):
            for system, path in given.systems:
                found[system].append(measure(path, given.port, prepare))
        cells = ["%.2f / %d / %.1f" % tuple(map(statistics.median, zip(*found[system]))) for system, _ in given.systems]
        print("| %s | %s |" % (title, " | ".join(cells)), flush=True)


if __name__ == "__main__":
    main()
