#!/usr/bin/env python3
"""What a polite client waits beside an impolite one, without the load generator's own pauses.

    scripts/polite-client.py --systems ladon=target/release/ladon,redis=redis-server --rounds 5

The server has the first core. The polite client has the second one and real-time priority (where the
system allows that, else it says so), so that the impolite client, which shares its core, cannot delay
it: `ladon-lab run --work fairness` sends both from one thread. Milliseconds of PING, SET and GET, one
at a time; the median of the rounds, in which the systems take turns.
"""
import multiprocessing, os, statistics, sys, threading, time

from servers import Server, connect, options, print_head, request

SECONDS = 2


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


IMPOLITE = {
    "nothing": ("nothing else going on", None),
    "pipeline": ("SETs in a pipeline without end", endless),
    "load": ("SETs of new keys in a pipeline without end", loads),
    "delete": ("SETs of 2,000 keys and a DEL of them, without end", deletes),
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


def be_polite(port, answer):
    os.sched_setaffinity(0, {1})
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
    except PermissionError:
        print("no real-time priority: the client's own waits for its core are in the figures", file=sys.stderr)
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
    waits.sort()
    answer.put([waits[int(len(waits) * share)] for share in (0.5, 0.99, 0.999)])


def measure(path, port, requests):
    answer, impolite = multiprocessing.Queue(), None
    with Server(path, port, core=0):
        try:
            if requests:
                impolite = multiprocessing.Process(target=be_impolite, args=(port, requests))
                impolite.start()
            polite = multiprocessing.Process(target=be_polite, args=(port, answer))
            polite.start()
            waits = answer.get(timeout=60)
            polite.join()
            return waits
        finally:
            if impolite:
                impolite.kill()
                impolite.join()


def main():
    parser = options(__doc__, IMPOLITE, port=17500)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    systems = [system.split("=", 1) for system in given.systems.split(",")]
    print_head("wait at 50 / 99 / 99.9 %, ms, beside", systems)
    for name in given.names or IMPOLITE:
        title, requests = IMPOLITE[name]
        waits = {system: [] for system, _ in systems}
        for number in range(given.rounds):
            for offset, (system, path) in enumerate(systems):
                waits[system].append(measure(path, given.port + number * len(systems) + offset, requests))
        cells = [" / ".join("%.2f" % statistics.median(column) for column in zip(*waits[system]))
                 for system, _ in systems]
        print("| %s | %s |" % (title, " | ".join(cells)), flush=True)


if __name__ == "__main__":
    main()
