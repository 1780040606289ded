#!/usr/bin/env python3
"""CPU that statements of SQL take of the server: Ladon beside Tarantool, in one run.

    scripts/sql-cost.py --ladon target/release/ladon [--rounds N] [--seconds S] [--port PORT]

Both hold a table of 1,000 rows (id, n, name) and get the same packets of EXECUTE, up to 64 at once on
one connection; Ladon at gate `none` with its log, Tarantool without one (`wal_mode = 'none'`). Printed
are the medians, over interleaved rounds, of the servers' CPU microseconds a statement (user and
system, all threads), and Ladon's divided by Tarantool's. Needs `tarantool` 2.6.
"""
import argparse
import base64
import hashlib
import os
import shutil
import socket
import statistics
import struct
import subprocess
import tempfile
import time

ROWS = 1000
TARANTOOL = """
box.cfg{{wal_mode = 'none', log = 'log.txt', checkpoint_interval = 0}}
box.schema.user.grant('guest', 'super')
box.cfg{{listen = '127.0.0.1:{port}'}}
"""


def pack(value):
    if isinstance(value, int):
        return bytes([value]) if value < 0x80 else b"\xcf" + struct.pack(">Q", value)
    if isinstance(value, bytes):
        return b"\xdb" + struct.pack(">I", len(value)) + value
    if isinstance(value, str):
        return pack(value.encode())
    if isinstance(value, list):
        return bytes([0x90 | len(value)]) + b"".join(map(pack, value))
    return bytes([0x80 | len(value)]) + b"".join(pack(k) + pack(v) for k, v in value.items())


def request(kind, body):
    packet = pack({0: kind, 1: 1}) + pack(body)
    return b"\xce" + struct.pack(">I", len(packet)) + packet


def execute(text, *values):
    """EXECUTE (11): SQL_TEXT 0x40, SQL_BIND 0x41."""
    return request(11, {0x40: text, 0x41: list(values)})


class Client:
    def __init__(self, port, password):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.unread = b""
        greeting = self.take(128)
        if password:
            salt = base64.b64decode(greeting[64:108])[:20]
            first = hashlib.sha1(password.encode()).digest()
            second = hashlib.sha1(salt + hashlib.sha1(first).digest()).digest()
            scramble = bytes(a ^ b for a, b in zip(first, second))
            self.ask([request(7, {0x23: "admin", 0x21: ["chap-sha1", scramble]})])

    def take(self, count):
        while len(self.unread) < count:
            part = self.socket.recv(1 << 20)
            assert part, "the connection ended"
            self.unread += part
        taken, self.unread = self.unread[:count], self.unread[count:]
        return taken

    def ask(self, packets):
        """Sends packets at once. Returns the replies; an error ends the program."""
        self.socket.sendall(b"".join(packets))
        replies = [self.take(struct.unpack(">I", self.take(5)[1:])[0]) for _ in packets]
        for reply in replies:
            code = struct.unpack(">I", reply[3:7])[0]
            assert code == 0, reply
        return replies


class Server:
    def __init__(self, name, command, port, folder, password):
        self.name, self.folder = name, folder
        self.process = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for _ in range(100):
            try:
                self.client = Client(port, password)
                break
            except OSError:
                time.sleep(0.1)
        self.client.ask([execute("CREATE TABLE p (id INT PRIMARY KEY, n INT, name TEXT)")])
        numbers = f"WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < {ROWS})"
        fill = f"{numbers} INSERT INTO p SELECT i, i, 'name' || CAST(i AS TEXT) FROM r"
        self.client.ask([execute(fill)])
        reply = self.client.ask([request(13, {0x40: "SELECT * FROM p WHERE id = ?"})])[0]
        at = reply.find(b"\x43\xce") + 2
        self.statement = struct.unpack(">I", reply[at : at + 4])[0]

    def cpu_us(self):
        with open(f"/proc/{self.process.pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) * 1_000_000 / os.sysconf("SC_CLK_TCK")

    def cost(self, packets, seconds):
        """CPU microseconds a statement."""
        count, end, begun = 0, time.monotonic() + seconds, self.cpu_us()
        while time.monotonic() < end:
            self.client.ask(packets)
            count += len(packets)
        return (self.cpu_us() - begun) / count


def works(server):
    point = "SELECT * FROM p WHERE id = "
    keys = [1 + at * 15 for at in range(64)]
    yield "point, prepared", [request(11, {0x43: server.statement, 0x41: [key]}) for key in keys]
    yield "point, one text with a parameter", [execute(point + "?", key) for key in keys]
    yield "point, 64 texts", [execute(f"{point}{key}") for key in keys]
    yield "two keys by OR, 256 texts", [
        execute(f"{point}{1 + at % 200} OR id = {1 + at}") for at in range(256)
    ]
    yield "range of 100", [
        execute("SELECT * FROM p WHERE id BETWEEN ? AND ?", key, key + 99) for key in keys[:16]
    ]
    yield "SUM of 1,000", [execute("SELECT sum(n) FROM p")] * 8
    yield "join 1,000 x 1,000 by key", [execute("SELECT count(*) FROM p a, p b WHERE a.n = b.id")] * 4
    yield "join 1,000 x 1,000 without an index", [
        execute("SELECT count(*) FROM p a, p b WHERE a.n = b.n")
    ]
    yield "INSERT OR REPLACE", [
        execute("INSERT OR REPLACE INTO p VALUES (?, ?, 'x')", key, key) for key in keys
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ladon", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--port", type=int, default=4541)
    options = parser.parse_args()
    folders = [tempfile.mkdtemp(prefix="sql-cost-") for _ in range(2)]
    program = os.path.join(folders[1], "init.lua")
    with open(program, "w") as file:
        file.write(TARANTOOL.format(port=options.port + 1))
    ladon = [os.path.abspath(options.ladon), "--port", str(options.port + 2), "--dir", folders[0]]
    ladon += ["--iproto", f"127.0.0.1:{options.port}", "--iproto-admin-password", "secret"]
    ladon += ["--gate", "none", "--io-threads", "1"]
    servers = []
    try:
        servers.append(Server("Ladon", ladon, options.port, folders[0], "secret"))
        peer = ["tarantool", program]
        servers.append(Server("Tarantool", peer, options.port + 1, folders[1], None))
        print("| CPU microseconds a statement | Ladon | Tarantool 2.6 | ratio |\n|---|---|---|---|")
        for (name, ours), (_, theirs) in zip(works(servers[0]), works(servers[1])):
            found = ([], [])
            for _ in range(options.rounds):
                for server, packets, costs in zip(servers, (ours, theirs), found):
                    costs.append(server.cost(packets, options.seconds))
            a, b = map(statistics.median, found)
            print(f"| {name} | {a:.2f} | {b:.2f} | {a / b:.2f} |", flush=True)
    finally:
        for server in servers:
            server.process.kill()
            server.process.wait()
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
