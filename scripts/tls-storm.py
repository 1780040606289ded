#!/usr/bin/env python3
"""How long clients wait while others begin handshakes by the thousand, at Ladon and at redis-server.

  scripts/tls-storm.py target/release/ladon [--connections 10000] [--seconds 3] [--rounds 3]

One core for the servers, their handshakes included; the other for polite clients (a PING every
millisecond on a plain connection and on one with TLS, both established; a new one with TLS every
half second, from the storm's address and from another one) and, at low priority, for the storm. It holds as many half-open handshakes as it is
told, and opens each again that is closed. Kinds:

  silent    sends nothing
  begun     sends a ClientHello, so that the server signs, and then waits in vain
  partial   sends 60 kB of a message that never ends
  whole     four clients end their handshakes, hang up and come again

The control storms a socket of nobody's in the same way while the PINGs go to Ladon: that is what the
other core and the kernel have to do with it. Each storm runs at control, Ladon and Redis in turns.

Prints milliseconds (in brackets: p99.9 as a ratio to the control's), how long newcomers took, and how
much memory the server got.
"""

import argparse
import importlib
import os
import pathlib
import resource
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
cost = importlib.import_module("tls-cost")

PORT = 17640
# Where newcomers come from: as the storm, and from elsewhere.
SOURCES = ["127.0.0.1", "127.0.0.2"]
KINDS = ["silent", "begun", "partial", "whole"]
# A record of a handshake, 16 kB, and in it the head of a ClientHello of 65,000 bytes.
PARTIAL = (b"\x16\x03\x01\x40\x00\x01\x00\xfd\xe8" + bytes(0x3FFC) + (b"\x16\x03\x01\x40\x00" + bytes(0x4000)) * 3)[:60_000]

STORM = """
import os, select, socket, sys, time
os.nice(19)
port, many, first = int(sys.argv[1]), int(sys.argv[2]), sys.stdin.buffer.read()
poll, sockets, begun = select.epoll(), {}, 0
def open_one():
    global begun
    s = socket.socket(); s.setblocking(False)
    try: s.connect(('127.0.0.1', port))
    except BlockingIOError: pass
    sockets[s.fileno()] = s
    poll.register(s, select.EPOLLIN | select.EPOLLHUP | (select.EPOLLOUT if first else 0))
    begun += 1
end = time.time() + float(sys.argv[3])
while time.time() < end:
    for _ in range(100):
        if len(sockets) < many: open_one()
    for fd, events in poll.poll(0 if len(sockets) < many else 0.1, 1000):
        s = sockets[fd]
        try:
            if events & select.EPOLLOUT:
                poll.modify(s, select.EPOLLIN | select.EPOLLHUP)
                s.send(first)
            elif events & ~select.EPOLLIN or not s.recv(65536):
                raise OSError
        except OSError:
            poll.unregister(fd); del sockets[fd]; s.close()
print(begun)
"""

SINK = """
import select, socket, sys
l = socket.create_server(('127.0.0.1', int(sys.argv[1])), backlog=4096)
kept, poll = {}, select.epoll()
poll.register(l, select.EPOLLIN)
while True:
    for fd, _ in poll.poll():
        try:
            if fd == l.fileno():
                s = l.accept()[0]; kept[s.fileno()] = s; poll.register(s, select.EPOLLIN)
            elif not kept[fd].recv(65536):
                raise OSError
        except OSError:
            if fd in kept: poll.unregister(fd); kept.pop(fd).close()
"""


def client_hello():
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = ssl._create_unverified_context().wrap_bio(incoming, outgoing, server_hostname="localhost")
    try:
        tls.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


class Storm:
    """A storm at a port, from its beginning to its end."""

    def __init__(self, kind, port, connections, seconds):
        self.kind, self.began = kind, time.time()
        if kind == "whole":
            words = ["nice", "-n", "19", "openssl", "s_time", "-new", "-time", str(int(seconds) + 1),
                     "-connect", f"127.0.0.1:{port}"]
            self.processes = [subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                               text=True) for _ in range(4)]
            return
        first = {"silent": b"", "begun": client_hello(), "partial": PARTIAL}[kind]
        words = [sys.executable, "-c", STORM, str(port), str(connections), str(seconds)]
        process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        process.stdin.write(first)
        process.stdin.close()
        process.stdin = None
        self.processes = [process]

    def end(self):
        """How many handshakes it has begun in a second."""
        outputs = [process.communicate()[0] for process in self.processes]
        seconds = time.time() - self.began
        if self.kind == "whole":
            # "N connections in S real seconds, ..."
            return sum(int(line.split()[0]) for output in outputs for line in output.splitlines()
                       if "real seconds" in line) / seconds
        return int(outputs[0] or 0) / seconds


class Target:
    """A server, and what its clients have waited in each storm."""

    def __init__(self, server, context):
        self.server, self.context = server, context
        self.plain = socket.create_connection(("127.0.0.1", server.port))
        self.tls = self.connect()
        for connection in self.plain, self.tls:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def connect(self, source="127.0.0.1"):
        connection = socket.create_connection(("127.0.0.1", self.server.port + 1), timeout=10, source_address=(source, 0))
        return self.context.wrap_socket(connection, server_hostname="localhost")

    def rss_kb(self):
        with open(f"/proc/{self.server.process.pid}/statm") as file:
            return int(file.read().split()[1]) * 4

    def newcomers(self, source, found, ends):
        while not ends.wait(0.5):
            began = time.perf_counter()
            try:
                with self.connect(source) as connection:
                    connection.sendall(b"PING\r\n")
                    connection.recv(100)
                    found.append((time.perf_counter() - began) * 1000)
            except OSError:
                found.append(float("inf"))

    def waits(self, seconds):
        """Waits for a PING on each connection and of newcomers, in milliseconds, and memory in KB."""
        waits, newcomers, most, ends = ([], []), ([], []), 0, threading.Event()
        threads = [threading.Thread(target=self.newcomers, args=(source, found, ends))
                   for source, found in zip(SOURCES, newcomers)]
        for thread in threads:
            thread.start()
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            for connection, found in zip((self.plain, self.tls), waits):
                began = time.perf_counter()
                connection.sendall(b"PING\r\n")
                connection.recv(100)
                found.append((time.perf_counter() - began) * 1000)
            most = max(most, self.rss_kb())
            time.sleep(0.001)
        ends.set()
        for thread in threads:
            thread.join()
        return waits, newcomers, most


class Found:
    """What the rounds of a storm at a target have shown."""

    def __init__(self):
        self.plain, self.tls, self.newcomers, self.others, self.rss_kb, self.rates = [], [], [], [], 0, []

    def add(self, waits, newcomers, rss_kb, rate):
        self.plain += waits[0]
        self.tls += waits[1]
        self.newcomers += newcomers[0]
        self.others += newcomers[1]
        self.rss_kb = max(self.rss_kb, rss_kb)
        self.rates.append(rate)

    def rate(self):
        return sum(self.rates) / len(self.rates)


def quantile(values, part):
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


class Field:
    """The servers, the socket of nobody's, and a client of each server."""

    def __init__(self, binary, redis):
        self.directory = pathlib.Path(tempfile.mkdtemp())
        cost.make_certificates(self.directory)
        # Redis counts half-open handshakes as clients. Whom its limit refuses says nothing here.
        most = ["--maxclients", "12000"]
        pin = ["taskset", "-c", "0"]
        self.servers = [cost.Server("ladon", [*pin, binary, "--data", f"{self.directory}/data", "--port", str(PORT),
                                              "--tls-port", str(PORT + 1), "--io-threads", "1", "--gate", "none",
                                              *most, *cost.files(self.directory)], PORT)]
        if redis:
            self.servers.append(cost.Server("redis", [
                *pin, redis, "--port", str(PORT + 10), "--tls-port", str(PORT + 11), "--save", "", "--dir",
                str(self.directory), *most, *cost.files(self.directory)], PORT + 10))
        self.sink = subprocess.Popen([*pin, sys.executable, "-c", SINK, str(PORT + 2)])
        os.sched_setaffinity(0, {1 % os.cpu_count()})
        time.sleep(2)
        context = ssl.create_default_context(cafile=f"{self.directory}/ca.crt")
        self.targets = [Target(server, context) for server in self.servers]

    def round(self, kind, seconds, connections, found):
        """A storm at each: `found` gets more for each name. The control has no whole handshakes."""
        ladon = self.targets[0]
        fields = [("control", ladon, PORT + 2)] + [(t.server.name, t, t.server.port + 1) for t in self.targets]
        for name, target, port in fields:
            is_calm = kind == "none" or name == "control" and kind == "whole"
            storm = None if is_calm else Storm(kind, port, connections, seconds + 1)
            time.sleep(0 if is_calm else 1)
            waits = target.waits(seconds)
            rate = storm.end() if storm else 0
            found.setdefault(name, Found()).add(*waits, rate)
            # What is half-open ends with its clients; sockets are closed in the background.
            time.sleep(0.3)

    def stop(self):
        self.sink.kill()
        self.sink.wait()
        for server in self.servers:
            server.stop()
        shutil.rmtree(self.directory, ignore_errors=True)
        os.sched_setaffinity(0, range(os.cpu_count()))


def allow_open_files(connections):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + 2_000
    if hard < wanted:
        sys.exit(f"tls-storm: {wanted} open files are needed (ulimit -Hn: {hard})")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary")
    parser.add_argument("--connections", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kinds", default=",".join(["none", *KINDS]))
    parser.add_argument("--redis", default="redis-server")
    arguments = parser.parse_args()
    allow_open_files(arguments.connections)
    field = Field(arguments.binary, arguments.redis)
    try:
        print(f"{'storm':18}{'begun/s':>9}{'plain p99':>11}{'p99.9':>15}{'tls p99':>11}{'p99.9':>15}"
              f"{'newcomers: median, worst':>28}{'from elsewhere':>20}{'MB':>6}")
        for kind in arguments.kinds.split(","):
            found = {}
            for _ in range(arguments.rounds):
                field.round(kind, arguments.seconds, arguments.connections, found)
            for name, here in found.items():
                cells = []
                for values, base in (here.plain, found["control"].plain), (here.tls, found["control"].tls):
                    p999 = quantile(values, 0.999)
                    cells.append(f"{quantile(values, 0.99):>11.3f}{p999:>8.3f} ({p999 / quantile(base, 0.999):.2f})")
                newcomers, others = (f"{quantile(found, 0.5):.1f}, {max(found):.1f}" for found in (here.newcomers, here.others))
                print(f"{kind + ' ' + name:18}{here.rate():>9.0f}{''.join(cells)}{newcomers:>28}{others:>20}"
                      f"{here.rss_kb >> 10:>6}", flush=True)
    finally:
        field.stop()


if __name__ == "__main__":
    sys.exit(main())
