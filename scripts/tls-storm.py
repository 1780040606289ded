#!/usr/bin/env python3
"""How long clients wait while others begin handshakes and never end them.

  scripts/tls-storm.py target/release/ladon [--connections 10000] [--seconds 10]

One core for the server, its thread of handshakes included; the other for a polite client (a PING
every millisecond on a plain connection and on one with TLS, both established) and, at low priority,
for the storm. The storm holds as many half-open handshakes as it is told, and opens each again that
is closed. Kinds: `silent` sends nothing, `begun` a ClientHello, so that the server signs and then
waits in vain; `whole` ends its handshakes and hangs up. The control storms a socket of nobody's in
the same way, which shows what the machine's other core has to do with it.

Prints milliseconds and, in brackets, the ratio to the control.
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
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
cost = importlib.import_module("tls-cost")

PORT = 17640

STORM = """
import select, socket, ssl, sys, time, os
os.nice(19)
port, kind, many, hello = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), bytes.fromhex(sys.argv[4])
context = ssl._create_unverified_context()
poll, sockets, begun = select.epoll(), {}, 0
def open_one():
    global begun
    s = socket.socket(); s.setblocking(False)
    try: s.connect(('127.0.0.1', port))
    except BlockingIOError: pass
    sockets[s.fileno()] = s
    poll.register(s, select.EPOLLIN | select.EPOLLHUP | (select.EPOLLOUT if kind == 'begun' else 0))
    begun += 1
end = time.time() + float(sys.argv[5])
if kind == 'whole':
    while time.time() < end:
        try:
            s = socket.create_connection(('127.0.0.1', port), timeout=5)
            context.wrap_socket(s).close()
            begun += 1
        except OSError: pass
else:
    while time.time() < end:
        for _ in range(100):
            if len(sockets) < many: open_one()
        for fd, events in poll.poll(0 if len(sockets) < many else 0.1, 1000):
            s = sockets[fd]
            if events & select.EPOLLOUT:
                poll.modify(s, select.EPOLLIN | select.EPOLLHUP)
                try: s.send(hello)
                except OSError: pass
            elif events & ~select.EPOLLIN or not s.recv(65536):
                poll.unregister(s); del sockets[fd]; s.close()
print(begun)
"""

SINK = """
import select, socket, sys
l = socket.create_server(('127.0.0.1', int(sys.argv[1])), backlog=4096)
kept, poll = {}, select.epoll()
poll.register(l, select.EPOLLIN)
while True:
    for fd, _ in poll.poll():
        if fd == l.fileno():
            s = l.accept()[0]; kept[s.fileno()] = s; poll.register(s, select.EPOLLIN)
        elif not kept[fd].recv(65536):
            poll.unregister(fd); kept.pop(fd).close()
"""


def client_hello():
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = ssl._create_unverified_context().wrap_bio(incoming, outgoing, server_hostname="localhost")
    try:
        tls.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read().hex()


def pings(connections, seconds):
    """Waits for a PING on each connection, in milliseconds."""
    waits = [[] for _ in connections]
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for connection, found in zip(connections, waits):
            began = time.perf_counter()
            connection.sendall(b"PING\r\n")
            connection.recv(100)
            found.append((time.perf_counter() - began) * 1000)
        time.sleep(0.001)
    return waits


def quantile(values, part):
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary")
    parser.add_argument("--connections", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    most = arguments.connections + 2_000
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(most, resource.getrlimit(7)[0]), max(most, resource.getrlimit(7)[1])))
    directory = pathlib.Path(tempfile.mkdtemp())
    cost.make_certificates(directory)
    server = cost.Server("ladon", ["taskset", "-c", "0", arguments.binary, "--data",
                                   f"{directory}/data", "--port", str(PORT), "--tls-port",
                                   str(PORT + 1), "--io-threads", "1", "--gate", "none",
                                   *cost.files(directory)], PORT)
    sink = subprocess.Popen(["taskset", "-c", "0", sys.executable, "-c", SINK, str(PORT + 2)])
    os.sched_setaffinity(0, {1 % os.cpu_count()})
    hello = client_hello()
    try:
        time.sleep(2)
        plain = socket.create_connection(("127.0.0.1", PORT))
        tls = ssl.create_default_context(cafile=f"{directory}/ca.crt").wrap_socket(
            socket.create_connection(("127.0.0.1", PORT + 1)), server_hostname="localhost")
        connections = [plain, tls]
        for connection in connections:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        print(f"{'storm':10}{'handshakes/s':>14}{'plain p99':>12}{'p99.9':>16}{'tls p99':>12}{'p99.9':>16}")
        control = {}
        storms = [("none", 0, 0), ("silent", "control", PORT + 2), ("silent", "ladon", PORT + 1),
                  ("begun", "control", PORT + 2), ("begun", "ladon", PORT + 1),
                  ("whole", "ladon", PORT + 1)]
        for kind, target, port in storms:
            waits, opened = [[], []], 0
            for _ in range(arguments.rounds):
                storm = None
                if port:
                    storm = subprocess.Popen([sys.executable, "-c", STORM, str(port), kind,
                                              str(arguments.connections), hello,
                                              str(arguments.seconds + 0.5)],
                                             stdout=subprocess.PIPE, text=True)
                    time.sleep(0.5)
                for all_of, found in zip(waits, pings(connections, arguments.seconds)):
                    all_of.extend(found)
                if storm:
                    opened += int(storm.communicate()[0] or 0)
            cells = []
            for name, found in zip(("plain", "tls"), waits):
                p999 = quantile(found, 0.999)
                if target == "control" or not target:
                    control[kind, name] = p999
                base = control.get((kind, name)) or control["none", name]
                cells.append(f"{quantile(found, 0.99):>12.3f}{p999:>9.3f} ({p999 / base:.2f})")
            rate = opened / arguments.rounds / (arguments.seconds + 0.5)
            label = f"{kind} {'*' if target == 'control' else ''}"
            print(f"{label:10}{rate:>14.0f}{''.join(cells)}", flush=True)
        print("* the control: the same storm at a socket of nobody's")
    finally:
        sink.kill()
        server.stop()
        shutil.rmtree(directory)


if __name__ == "__main__":
    sys.exit(main())
