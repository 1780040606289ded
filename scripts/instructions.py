#!/usr/bin/env python3
"""Instructions per request of one or several builds of Ladon, by callgrind: unlike times, they are the same
on a busy machine, so that two builds can be told apart within a percent.

    scripts/instructions.py target/fast/ladon ../before/ladon      (needs valgrind)

Each figure is the difference between two servers that were sent FEW and MANY requests, ten connections in turn,
64 requests at once, divided by the difference of requests: starts and ends cancel out. One IO thread, mio.
The server's clock runs at a hundredth of its speed (needs cc): otherwise a turn's limit of time, which callgrind
makes fifty times as tight, and what is done every so many milliseconds would be counted with it.
"""
import argparse
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "faults"))

import iproto  # noqa: E402
from fault import free_port  # noqa: E402

FEW, MANY, AT_ONCE, CONNECTIONS, KEYS = 6_400, 102_400, 64, 10, 2_000
# A clock that is slow enough for callgrind.
SLOW_CLOCK = """
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec *out) {
    static long long first[16];
    int failed = syscall(SYS_clock_gettime, id, out);
    if (failed || id < 0 || id >= 16) return failed;
    long long now = out->tv_sec * 1000000000LL + out->tv_nsec, none = 0;
    __atomic_compare_exchange_n(&first[id], &none, now, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    now = first[id] + (now - first[id]) / 100;
    out->tv_sec = now / 1000000000, out->tv_nsec = now % 1000000000;
    return 0;
}
"""
SCRIPT = b"return redis.call('GET', KEYS[1])"


def resp(*words):
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


def key(n):
    return b"key:%06d" % (n % KEYS)


REQUESTS = {
    "GET": lambda n, sha: resp(b"GET", key(n)),
    "SET": lambda n, sha: resp(b"SET", key(n), b"v" * 32),
    "EVALSHA": lambda n, sha: resp(b"EVALSHA", sha, b"1", key(n)),
    "REPLACE": lambda n, sha: iproto.packet(iproto.REPLACE, {iproto.SPACE_ID: 512, iproto.TUPLE: [n % KEYS, "v" * 32]}),
    "SELECT": lambda n, sha: iproto.packet(iproto.SELECT, {
        iproto.SPACE_ID: 512, iproto.INDEX_ID: 0, iproto.LIMIT: 1, iproto.OFFSET: 0, iproto.ITERATOR: 0,
        iproto.KEY: [n % KEYS]}),
}
IS_IPROTO = {"REPLACE", "SELECT"}


class Stream:
    """A connection that knows how many replies it has read."""

    def __init__(self, port, is_iproto):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.is_iproto, self.input = is_iproto, self.socket.makefile("rb")
        if is_iproto:
            self.input.read(128)

    def reply(self):
        if self.is_iproto:
            length = self.input.read(5)
            packet = self.input.read(int.from_bytes(length[1:], "big"))
            if iproto.code_of(packet):
                raise RuntimeError("refused: %r" % packet)
            return packet
        line = self.input.readline()
        if line[:1] == b"-":
            raise RuntimeError("refused: %r" % line)
        return self.input.read(int(line[1:]) + 2)[:-2] if line[:1] == b"$" and line[1:3] != b"-1" else line

    def try_ping(self):
        self.socket.sendall(resp(b"EXISTS", b"k"))
        return self.input.readline()

    def all_of(self, requests):
        self.socket.sendall(b"".join(requests))
        return [self.reply() for _ in requests]


def prepare(name, port, iproto_port):
    """The hash of the script; fills what is read."""
    admin = Stream(port, False)
    while b"LOADING" in admin.try_ping():
        pass
    if name not in IS_IPROTO:
        admin.all_of([resp(b"SET", key(n), b"v" * 32) for n in range(KEYS)])
        return admin.all_of([resp(b"SCRIPT", b"LOAD", SCRIPT)])[0]
    client = iproto.Iproto(iproto_port, "p")
    space = [512, 1, "t", "memtx", 0, {}, []]
    client.call(iproto.packet(iproto.INSERT, {iproto.SPACE_ID: 280, iproto.TUPLE: space}))
    index = [512, 0, "pk", "tree", {"unique": True}, [[0, "unsigned"]]]
    client.call(iproto.packet(iproto.INSERT, {iproto.SPACE_ID: 288, iproto.TUPLE: index}))
    right = [1, 0, "space", 512, 3]
    client.call(iproto.packet(iproto.INSERT, {iproto.SPACE_ID: 312, iproto.TUPLE: right}))
    filler = Stream(iproto_port, True)
    for n in range(KEYS):
        filler.all_of([REQUESTS["REPLACE"](n, b"")])
    return b""


def slow_clock(directory):
    """The library that slows the clock of who preloads it."""
    path = os.path.join(directory, "slow_clock.so")
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-x", "c", "-o", path, "-"], input=SLOW_CLOCK.encode(), check=True)
    return path


def instructions(binary, name, requests, gate, keep):
    """All instructions of the IO thread of a server that was sent this number of requests."""
    with tempfile.TemporaryDirectory(prefix="ladon-instructions-") as directory:
        port, iproto_port = free_port(), free_port()
        command = [
            "valgrind", "--tool=callgrind", "--separate-threads=yes", "--error-limit=no",
            "--callgrind-out-file=" + os.path.join(directory, "counted"),
            binary, "serve", "--io-backend", "mio", "--io-threads", "1", "--gate", gate, "--dir", directory,
            "--resp", "127.0.0.1:%d" % port, "--iproto", "127.0.0.1:%d" % iproto_port, "--iproto-admin-password", "p"]
        with open(os.path.join(directory, "log"), "w+") as log:
            server = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                      env={**os.environ, "LD_PRELOAD": slow_clock(directory)})
            try:
                wait_for(port, server)
                wait_for(iproto_port, server)
                sha = prepare(name, port, iproto_port)
                streams = [Stream(iproto_port if name in IS_IPROTO else port, name in IS_IPROTO)
                           for _ in range(CONNECTIONS)]
                for first in range(0, requests, AT_ONCE):
                    batch = [REQUESTS[name](n * 7919, sha) for n in range(first, first + AT_ONCE)]
                    streams[first // AT_ONCE % CONNECTIONS].all_of(batch)
            finally:
                server.terminate()
                server.wait()
        # The thread that has counted most is the one that runs requests.
        each = [(int(found[1]), path) for path in Path(directory).glob("counted-*")
                if (found := re.search(r"^totals: (\d+)", path.read_text(), re.M))]
        total, path = max(each)
        if keep:
            shutil.copy(path, "%s.%s.%d" % (keep, name, requests))
        return total


def wait_for(port, server):
    while server.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            pass
    raise RuntimeError("the server has ended: %d" % server.returncode)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--gate", default="none")
    parser.add_argument("--requests", default=",".join(REQUESTS))
    parser.add_argument("--keep", action="store_true",
                        help="leave BINARY.REQUEST.COUNT beside each binary, for callgrind_annotate")
    parser.add_argument("binaries", nargs="+")
    given = parser.parse_args()
    print("| request | %s | last / first |\n|---%s|---|" % (" | ".join(given.binaries), "|---" * len(given.binaries)))
    for name in given.requests.split(","):
        each = []
        for binary in given.binaries:
            few, many = (instructions(os.path.abspath(binary), name, count, given.gate, given.keep and binary)
                         for count in (FEW, MANY))
            each.append((many - few) / (MANY - FEW))
        print("| %s | %s | %.3f |" % (name, " | ".join("%.0f" % one for one in each), each[-1] / each[0]), flush=True)


if __name__ == "__main__":
    main()
