#!/usr/bin/env python3
"""How long one command keeps another connection waiting.

    scripts/longest-ping.py --systems ladon=target/release/ladon,redis=redis-server exec hdel spop

Starts one server at a time on one core, fills it, sends one long command, and prints the longest
PING of another connection meanwhile and how long the reply took, in milliseconds. Without names it
runs everything. The client shares the machine: compare columns of one run only.
"""
import argparse, select, shutil, socket, subprocess, sys, tempfile, time

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


def request(*words):
    words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        parts += [b"$%d\r\n" % len(word), word, b"\r\n"]
    return b"".join(parts)


class Client:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

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
    "keepttl": ("SET KEEPTTL of 100 MB", of_long, ["SET", "long", b"x" * (100 * MB), "KEEPTTL"]),
}


def start(path, port, directory):
    command = path.split() + (
        ["serve", "--resp", "127.0.0.1:%d" % port, "--io-threads", "1", "--dir", directory, "--gate", "none"]
        if "ladon" in path
        else ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir",
              "/tmp" if "chroot" in path else directory]
    )
    server = subprocess.Popen(["taskset", "-c", "1"] + command, stdout=subprocess.DEVNULL)
    for _ in range(200):
        try:
            Client(port).call("PING")
            return server
        except OSError:
            time.sleep(0.05)
    sys.exit("%s does not start" % path)


def measure(path, name, port):
    _, prepare, words = WORK[name]
    directory = tempfile.mkdtemp()
    server = start(path, port, directory)
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
        server.kill()
        server.wait()
        shutil.rmtree(directory)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--systems", default="ladon=target/release/ladon,redis=redis-server",
                        help="name=command, separated by commas")
    parser.add_argument("--port", type=int, default=17400)
    parser.add_argument("names", nargs="*", metavar="NAME", help=" ".join(WORK))
    options = parser.parse_args()
    systems = [system.split("=", 1) for system in options.systems.split(",")]
    print("| longest PING / reply after, ms | %s |" % " | ".join(name for name, _ in systems))
    print("|---%s|" % ("|---" * len(systems)))
    for name in options.names or WORK:
        cells = ["%.1f / %.0f" % measure(path, name, options.port) for _, path in systems]
        print("| %s | %s |" % (WORK[name][0], " | ".join(cells)), flush=True)


if __name__ == "__main__":
    main()
