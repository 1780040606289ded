#!/usr/bin/env python3
"""What items and idle connections of memcached's protocol hold: resident memory of Ladon and of the real memcached.

  scripts/memcached-memory.py --systems ladon=target/release/ladon,memcached=memcached [NAME...]

Items have keys of 16 bytes and values of 64. An idle connection has asked once.
"""
import resource
import socket
import sys
import time

import servers

ITEMS, IDLE, AT_ONCE = 1_000_000, 8000, 1000


class Memcached(servers.Server):
    """A server that speaks memcached's protocol at `port + 500`."""

    def arguments(self, cores, extra):
        self.item_port = self.port + 500
        if "ladon" in self.path:
            return super().arguments(cores, ["--memcached", "127.0.0.1:%d" % self.item_port, *extra])
        return ["-u", "root", "-l", "127.0.0.1", "-p", str(self.item_port), "-m", "4096", "-c", "20000", "-t", str(cores)]

    def answers(self):
        with servers.connect(self.item_port) as connection:
            connection.sendall(b"version\r\n")
            return connection.recv(100).startswith(b"VERSION")


def settled(server):
    """Resident bytes, once they have stopped to change."""
    before = -1
    while before != (now := server.resident_bytes()):
        before = now
        time.sleep(1)
    return now


def items(server, flags):
    """Bytes of the process for each item."""
    with servers.connect(server.item_port) as connection:
        replies = connection.makefile("rb")
        def add(first, count):
            connection.sendall(b"".join(b"set key:%012d %d 0 64\r\n%s\r\n" % (number, flags, b"v" * 64)
                                        for number in range(first, first + count)))
            for _ in range(count):
                reply = replies.readline()
                if reply != b"STORED\r\n":
                    sys.exit("a set was answered %r" % reply)
        # What the first items make a server reserve is not theirs.
        add(ITEMS, AT_ONCE)
        before = settled(server)
        for first in range(0, ITEMS, AT_ONCE):
            add(first, AT_ONCE)
        return "%.0f bytes" % ((settled(server) - before) / ITEMS)


def idle(server):
    """Megabytes for all of them."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    before, kept = settled(server), []
    for _ in range(IDLE):
        kept.append(socket.create_connection(("127.0.0.1", server.item_port)))
        kept[-1].sendall(b"get k\r\n")
        if kept[-1].recv(100) != b"END\r\n":
            sys.exit("a get of nothing found something")
    return "%.1f MB" % ((settled(server) - before) / 1e6)


WORKS = {
    "an item without flags": lambda server: items(server, 0),
    "an item with flags of 1": lambda server: items(server, 1),
    "an item with flags of 100,000": lambda server: items(server, 100_000),
    "%s idle connections" % format(IDLE, ","): idle,
}


def main():
    parser = servers.options(__doc__, WORKS, 17300)
    parser.set_defaults(systems=servers.systems("ladon=target/release/ladon,memcached=memcached"))
    options = parser.parse_args()
    servers.print_head("memory of", options.systems)
    for name in options.names or WORKS:
        cells = []
        for at, (_, path) in enumerate(options.systems):
            # A port of its own: the kernel takes a moment to close those of a killed process.
            with Memcached(path, options.port + at) as server:
                cells.append(WORKS[name](server))
        print("| %s | %s |" % (name, " | ".join(cells)), flush=True)


if __name__ == "__main__":
    main()
