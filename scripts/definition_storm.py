#!/usr/bin/env python3
"""Definitions of one large space from 50 connections at once, then a kill and a full disk in the midst of it.

    scripts/definition_storm.py --ladon target/release/ladon --small-disk /mnt/small

The connections create, drop and alter indexes, change the primary key and the format, and truncate; one
request in ten they leave before the reply. One more connection writes tuples all the time. After five
seconds the server is killed (`kill -9`), checked by `ladon check` and started again: every index has to have
the tuples that the primary one has. The same with a data directory on a small disk (`--small-disk`, a tmpfs
of some 300 MB), which fills up. What others wait for meanwhile is `scripts/polite-client.py storm`.
"""
import argparse, collections, os, random, selectors, struct, subprocess, sys, threading, time

import iproto
from servers import Server

CLIENTS = 50
SPACE = 512
TUPLES = 1_000_000
INDEXES = 12
PASSWORD = "storm"
TOGETHER = 500
# A truncation makes the space small for a while.
TRUNCATES = 0.002
LEAVES = 0.1


def tuples(numbers):
    tuple_of = lambda number: [number, number * 7919 % TUPLES, "x" * 40]
    return [iproto.packet(iproto.REPLACE, {iproto.SPACE_ID: SPACE, iproto.TUPLE: tuple_of(number)})
            for number in numbers]


def fill(client):
    for first in range(0, TUPLES, 10_000):
        client.call(*tuples(range(first, first + 10_000)))


def definition(chance):
    """A request that defines something of the space, at random, and what it does."""
    put = lambda kind, space, tuple: iproto.packet(kind, {iproto.SPACE_ID: space, iproto.TUPLE: tuple})
    field = chance.randrange(2)
    parts, number = [[field, "unsigned"]], chance.randrange(1, INDEXES + 1)
    if chance.random() < TRUNCATES:
        return "truncated", put(iproto.REPLACE, 330, [SPACE, chance.randrange(1 << 30)])
    what = chance.randrange(10)
    index = [SPACE, number, "i%d" % number, chance.choice(["tree", "tree", "hash"]), {"unique": True}, parts]
    if what < 4:
        return "created", put(iproto.INSERT, 288, index)
    if what < 6:
        return "altered", put(iproto.REPLACE, 288, index)
    if what < 8:
        return "dropped", iproto.packet(iproto.DELETE, {iproto.SPACE_ID: 288, iproto.INDEX_ID: 0,
                                                        iproto.KEY: [SPACE, number]})
    if what < 9:
        return "primary keys", put(iproto.REPLACE, 288, [SPACE, 0, "pk", "tree", {"unique": True}, parts])
    fields = [{"name": "id", "type": chance.choice(["unsigned", "number"])},
              {"name": "number", "type": "unsigned"}, {"name": "text", "type": "string"}]
    return "formats", put(iproto.REPLACE, 280, [SPACE, 1, "rows", "memtx", 0, {}, fields[:chance.randrange(4)]])


class Storm:
    """The connections. `done` counts replies by what they are about, errors among them."""

    def __init__(self, port, password, seed=1):
        self.port, self.password, self.chance = port, password, random.Random(seed)
        self.done = collections.Counter()
        self.is_over = threading.Event()

    def write(self):
        """Writes tuples until the storm is over."""
        try:
            client = iproto.Iproto(self.port, self.password)
            while not self.is_over.is_set():
                first = self.chance.randrange(TUPLES - TOGETHER)
                client.socket.sendall(b"".join(tuples(range(first, first + TOGETHER))))
                for _ in range(TOGETHER):
                    client.any_reply()
        except (OSError, EOFError):
            pass

    def run(self, seconds):
        """Sends definitions for so long, or until the server is gone."""
        writer = threading.Thread(target=self.write, daemon=True)
        writer.start()
        try:
            self.define(time.time() + seconds)
        except (OSError, EOFError):
            pass
        self.is_over.set()
        writer.join(timeout=10)

    def define(self, ends):
        waiting = selectors.DefaultSelector()
        for _ in range(CLIENTS):
            self.begin(waiting)
        while time.time() < ends:
            for key, _ in waiting.select(timeout=0.1):
                client, what = key.data
                self.done["errors" if iproto.code_of(client.any_reply()) else what] += 1
                waiting.unregister(client.socket)
                self.ask(waiting, client)

    def begin(self, waiting):
        self.ask(waiting, iproto.Iproto(self.port, self.password))

    def ask(self, waiting, client):
        what, packet = definition(self.chance)
        client.socket.sendall(packet)
        if self.chance.random() < LEAVES:
            self.done["left"] += 1
            client.socket.close()
            self.begin(waiting)
        else:
            waiting.register(client.socket, selectors.EVENT_READ, (client, what))

    def __str__(self):
        return ", ".join("%d %s" % (count, what) for what, count in sorted(self.done.items()))


def number_of(reply):
    """The unsigned number that a CALL's reply ends with."""
    return struct.unpack(">I", reply[-4:])[0] if reply[-5] == 0xCE else reply[-1]


def check(server):
    """Checks a killed server's data, starts it, and compares its indexes. Returns how many tuples there are."""
    done = subprocess.run([server.path, "check", server.directory], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit("ladon check: %s%s" % (done.stdout, done.stderr))
    server.start()
    client = iproto.Iproto(server.iproto_port, PASSWORD)
    lengths = {}
    for name in ["pk"] + ["i%d" % number for number in range(1, INDEXES + 1)]:
        call = {iproto.FUNCTION_NAME: "box.space.rows.index.%s:count" % name, iproto.TUPLE: []}
        client.socket.sendall(iproto.packet(iproto.CALL, call))
        reply = client.any_reply()
        if iproto.code_of(reply) == 0:
            lengths[name] = number_of(reply)
    if len(set(lengths.values())) != 1:
        sys.exit("indexes differ: %r" % lengths)
    return lengths["pk"], len(lengths)


def disaster(path, port, directory, fills_up, seed):
    with Server(path, port, cores=2, password=PASSWORD, directory=directory) as server:
        client = iproto.Iproto(server.iproto_port, PASSWORD)
        client.make_space(SPACE, "rows")
        try:
            fill(client)
        except ValueError as error:  # The disk is full already.
            print(str(error)[:200])
        storm = Storm(server.iproto_port, PASSWORD, seed)
        killer = threading.Timer(20 if fills_up else 5, server.kill)
        killer.start()
        storm.run(30)
        killer.join()
        if fills_up:  # The next start needs room for its log's segment.
            free = os.statvfs(directory)
            print("free on the small disk: %d KiB" % (free.f_bavail * free.f_frsize >> 10))
            subprocess.run(["mount", "-o", "remount,size=600m", directory], check=True)
        count, indexes = check(server)
        print("%s: %s; %d tuples in each of %d indexes" % (
            "full disk" if fills_up else "kill", storm, count, indexes))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ladon", default="target/release/ladon")
    parser.add_argument("--port", type=int, default=17900)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--small-disk", help="a mounted tmpfs")
    given = parser.parse_args()
    for number in range(given.rounds):
        disaster(given.ladon, given.port + number, None, False, number)
    if given.small_disk:
        disaster(given.ladon, given.port + 100, given.small_disk, True, 1)


if __name__ == "__main__":
    main()
