#!/usr/bin/env python3
"""How long one command keeps another connection waiting.

    scripts/longest-ping.py --systems ladon=target/release/ladon,redis=redis-server exec hdel spop

Starts one server at a time on one core, fills it, sends one long command, and prints the longest
PING of another connection meanwhile and how long the reply took, in milliseconds. Without names it
runs everything. The client shares the machine: compare columns of one run only.
"""
import select, subprocess, sys, time

from servers import Server, connect, options, print_head, request

COUNT = 100_000
MB = 1 << 20

PINGER = """
import select, socket, sys, time
s = socket.create_connection(('127.0.0.1', int(sys.argv[1])))
s.setsockopt(6, 1, 1)
longest = 0
while True:
    began = time.perf_counter()
    s.sendall(b'PING\\r\\n')
    s.recv(100)
    longest = max(longest, time.perf_counter() - began)
    if select.select([sys.stdin], [], [], 0.0005)[0]:
        if not sys.stdin.readline():
            break
        print(longest * 1000, flush=True)
        longest = 0
"""


class Client:
    def __init__(self, port):
        self.socket = connect(port)

    def exchange(self, data):
        """Sends requests; seconds until the last byte that came before a pause."""
        began = time.perf_counter()
        self.socket.sendall(data)
        end = None
        while select.select([self.socket], [], [], 30 if end is None else 0.06)[0]:
            if not self.socket.recv(1 << 20):
                break
            end = time.perf_counter()
        return (end or time.perf_counter()) - began

    def call(self, *words):
        self.exchange(request(*words))


def names(prefix, count=COUNT):
    return [b"%s%d" % (prefix, number * 7919 % (4 * COUNT)) for number in range(count)]


def fill(client, *head, element, count=4 * COUNT):
    for first in range(0, count, 10_000):
        words = [word for number in range(first, first + 10_000) for word in element(number)]
        client.call(*head, *words)


def of_set(client):
    fill(client, "SADD", "s", element=lambda n: ["m%d" % n])


def of_hash(client):
    fill(client, "HSET", "h", element=lambda n: ["f%d" % n, "v%d" % n])


def of_sorted_set(client):
    fill(client, "ZADD", "z", element=lambda n: [n, "m%d" % n])


def of_list(client):
    fill(client, "RPUSH", "l", element=lambda n: ["e%d" % (n * 7919 % (4 * COUNT))])


def of_keys(client):
    fill(client, "MSET", element=lambda n: ["w_e%d" % n, n * 7 % 1_000_003])


def of_weights(client):
    of_list(client)
    of_keys(client)


def of_transaction(client):
    of_keys(client)
    sets = [request("SET", "k%d" % (n * 7919 % (4 * COUNT)), "value%d" % n) for n in range(COUNT)]
    client.exchange(request("MULTI") + b"".join(sets))


def of_bits(client):
    client.call("SET", "big", b"x" * (300 * MB))


def of_short(client):
    client.call("SET", "short", "short")


def of_long(client):
    client.call("SET", "long", b"x" * (100 * MB))


def of_written(client):
    of_long(client)
    time.sleep(2)


WORK = {
    "exec": ("EXEC of 100,000 SETs", of_transaction, ["EXEC"]),
    "hset": ("HSET of 100,000", of_hash, ["HSET", "h"] + [w for n in names(b"f") for w in (n, "v")]),
    "hdel": ("HDEL of 100,000", of_hash, ["HDEL", "h"] + names(b"f")),
    "sadd": ("SADD of 100,000", of_set, ["SADD", "s"] + names(b"x")),
    "srem": ("SREM of 100,000", of_set, ["SREM", "s"] + names(b"m")),
    "spop": ("SPOP of 100,000", of_set, ["SPOP", "s", COUNT]),
    "srandmember": ("SRANDMEMBER of -500,000", of_set, ["SRANDMEMBER", "s", -5 * COUNT]),
    "hrandfield": ("HRANDFIELD of 200,000", of_hash, ["HRANDFIELD", "h", 2 * COUNT]),
    "zrem": ("ZREM of 100,000", of_sorted_set, ["ZREM", "z"] + names(b"m")),
    "zpopmin": ("ZPOPMIN of 100,000", of_sorted_set, ["ZPOPMIN", "z", COUNT]),
    "zremrange": ("ZREMRANGEBYRANK of 100,000", of_sorted_set, ["ZREMRANGEBYRANK", "z", 1, COUNT]),
    "lrem": ("LREM of nothing", of_list, ["LREM", "l", 0, "nothing"]),
    "linsert": ("LINSERT at nothing", of_list, ["LINSERT", "l", "BEFORE", "nothing", "x"]),
    "ltrim": ("LTRIM to 200", of_list, ["LTRIM", "l", 100, -100]),
    "sortby": ("SORT BY", of_weights, ["SORT", "l", "BY", "w_*"]),
    "keys": ("KEYS * of 400,000", of_keys, ["KEYS", "*"]),
    "scan": ("SCAN COUNT 1000000000", of_keys, ["SCAN", 0, "COUNT", 10**9]),
    "docs": ("COMMAND DOCS", of_short, ["COMMAND", "DOCS"]),
    "set": ("SET of 300 MB", of_short, ["SET", "big", b"x" * (300 * MB)]),
    "bitcount": ("BITCOUNT of 300 MB", of_bits, ["BITCOUNT", "big"]),
    "setrange": ("SETRANGE at 500 MB", of_short, ["SETRANGE", "short", 500_000_000, "x"]),
    "mset": ("MSET of 100 MB", of_short, ["MSET", "a", b"x" * (100 * MB)]),
    "append": ("APPEND of 100 MB to 100 MB", of_long, ["APPEND", "long", b"x" * (100 * MB)]),
    "append-later": ("the same, two seconds later", of_written, ["APPEND", "long", b"x" * (100 * MB)]),
    "keepttl": ("SET KEEPTTL of 100 MB", of_long, ["SET", "long", b"x" * (100 * MB), "KEEPTTL"]),
}


def measure(path, name, port):
    _, prepare, words = WORK[name]
    with Server(path, port, core=1):
        pinger = subprocess.Popen(
            ["taskset", "-c", "0", sys.executable, "-c", PINGER, str(port)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

        def longest():
            pinger.stdin.write("\n")
            pinger.stdin.flush()
            return float(pinger.stdout.readline())

        try:
            client = Client(port)
            prepare(client)
            time.sleep(0.15)
            longest()
            took = client.exchange(request(*words))
            return longest(), took * 1000
        finally:
            pinger.kill()


def main():
    given = options(__doc__, WORK, port=17400).parse_args()
    print_head("longest PING / reply after, ms", given.systems)
    for name in given.names or WORK:
        cells = ["%.1f / %.0f" % measure(path, name, given.port) for _, path in given.systems]
        print("| %s | %s |" % (WORK[name][0], " | ".join(cells)), flush=True)


if __name__ == "__main__":
    main()
