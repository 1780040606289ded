"""Impolite clients against Ladon and a real tarantool, one attack after the other, each on fresh servers.

    attack.py [ATTACK...]     environment: LADON_BIN, REAL_TARANTOOL, WORK (a folder)

Prints, for each attack, the waits of a polite client beside it (50 and 99.9 percent, milliseconds)
and the server's largest resident memory. Speed is not judged: all share the machine's cores. What
Ladon must do: live, answer the polite client correctly and within PATIENCE, stay below the attack's
bound of memory, and be of use to a new client afterwards. Replies to attacks are checked where the
attack says so. Exit status 1 if Ladon does not.
"""
import multiprocessing
import os
import random
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import time

import msgpack
import tarantool

SECONDS, PATIENCE = 3, 15
SPACE, ROWS = 700, 2000
MIB = 1 << 20
INSERT, SELECT, REPLACE, AUTH, BEGIN, PING, WATCH = 2, 1, 3, 7, 14, 64, 74
DEFINITIONS = [
    (280, [SPACE, 1, "rows", "memtx", 0, {}, []]),
    (288, [SPACE, 0, "pk", "tree", {"unique": True}, [[0, "unsigned"]]]),
    # To guests, everything.
    (312, [1, 0, "universe", 0, 1 | 2 | 4 | 8 | 16]),
]


# --- servers ----------------------------------------------------------------------------------

class Server:
    """A fresh server with a space of rows; killed at the end of its `with`."""

    def __init__(self, system, name):
        self.folder = os.path.join(os.environ["WORK"], f"{name}-{system}")
        os.makedirs(self.folder)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        address = f"127.0.0.1:{self.port}"
        if system == "ladon":
            command = [os.environ["LADON_BIN"], "serve", "--resp", "off", "--iproto", address, "--gate", "fsync",
                       "--iproto-admin-password", "secret", "--data", os.path.join(self.folder, "data"),
                       "--client-reply-backlog", "64mb", "--client-query-buffer-limit", "16mb", "--maxclients", "10000"]
        else:
            command = [os.environ["REAL_TARANTOOL"], "-e", f"box.cfg{{listen='{address}', wal_mode='fsync', log_level=2}} "
                       "box.schema.user.passwd('admin', 'secret')"]
        with open(os.path.join(self.folder, "log"), "wb") as log:
            self.process = subprocess.Popen(command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        for attempt in range(500):
            try:
                admin = tarantool.Connection("127.0.0.1", self.port, user="admin", password="secret")
                break
            except tarantool.error.Error:
                time.sleep(0.02)
        else:
            sys.exit(f"{system} does not start")
        for space, row in DEFINITIONS:
            admin.replace(space, row)
        for number in range(ROWS):
            admin.insert(SPACE, [number, "x" * 100])
        admin.close()

    def peak(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM"))

    def lives(self):
        return self.process.poll() is None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


# --- bytes ------------------------------------------------------------------------------------

def framed(payload):
    return b"\xce" + struct.pack(">I", len(payload)) + payload


def packet(kind, body, sync=1, stream=0):
    header = {0: kind, 1: sync, **({0x0a: stream} if stream else {})}
    return framed(msgpack.packb(header) + msgpack.packb(body))


def put(kind, number, text, stream=0):
    return packet(kind, {0x10: SPACE, 0x21: [number, text]}, number, stream)


SELECT_ALL = packet(SELECT, {0x10: SPACE, 0x11: 0, 0x12: 0xffffffff, 0x13: 0, 0x14: 2, 0x20: []})


def connect(port):
    connection = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    greeting = exactly(connection, 128)
    if not greeting.startswith(b"Tarantool"):
        raise ConnectionError(f"refused: {greeting[5:]}")
    return connection


def exactly(connection, count):
    data = b""
    while len(data) < count:
        part = connection.recv(count - len(data))
        if not part:
            raise ConnectionError("closed")
        data += part
    return data


def reply(connection):
    payload = exactly(connection, struct.unpack(">I", exactly(connection, 5)[1:])[0])
    unpacker = msgpack.Unpacker(raw=False, strict_map_key=False, unicode_errors="replace")
    unpacker.feed(payload)
    return unpacker.unpack(), unpacker.unpack()


def until(seconds=SECONDS):
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        yield


def quietly_send(connection, data):
    """Sends what the other side takes within a tenth of a second. False: it closed the connection."""
    try:
        connection.settimeout(0.1)
        connection.sendall(data)
    except TimeoutError:
        pass
    except OSError:
        return False
    return True


# --- attacks: each runs in a process of its own, and returns nothing or what is wrong ----------

def nothing(port):
    time.sleep(SECONDS)


def half_requests(port):
    """Thousands of connections that each hold half of a request."""
    half = put(INSERT, 10**6, "x" * 4000)[:2000]
    held = []
    for _ in range(4000):
        held.append(connect(port))
        held[-1].sendall(half)
    time.sleep(SECONDS)
    closed, _, _ = select.select(held[:500], [], [], 0)
    if closed:
        return f"{len(closed)} of 500 were closed"


def unread_replies(port):
    """Endless pipelines of large replies that nobody reads."""
    held = [connect(port) for _ in range(8)]
    for connection in held:
        connection.setblocking(False)
    batch = SELECT_ALL * 200
    for _ in until():
        _, ready, _ = select.select([], held, [], 0.1)
        for connection in ready:
            try:
                connection.send(batch)
            except BlockingIOError:
                pass


def endless_writes(port):
    """Pipelines of replaced rows without end, replies unread until the buffers are full."""
    held = [connect(port) for _ in range(4)]
    batch = b"".join(put(REPLACE, number % ROWS, "y" * 100) for number in range(10**5, 10**5 + 1000))
    for _ in until():
        for connection in held:
            connection.settimeout(0.05)
            try:
                connection.sendall(batch)
                while connection.recv(MIB, socket.MSG_DONTWAIT):
                    pass
            except (TimeoutError, BlockingIOError):
                pass


def huge_sizes(port):
    """Packets, strings and arrays that announce gigabytes."""
    header = msgpack.packb({0: INSERT, 1: 1})
    start = header + b"\x82\x10" + msgpack.packb(SPACE) + b"\x21"
    while_they_last, announcements = [], [
        b"\xce\xff\xff\xff\xff" + b"\x82" * 100,  # a packet of 4 GiB
        b"\xcf" + b"\xff" * 8,
        framed(start + b"\xdd\xff\xff\xff\xff" + b"\x01" * 64),  # an array of 4 billion
        framed(start + b"\xdb\xff\xff\xff\xff" + b"\x01" * 64),  # a string of 4 GiB
        framed(start + b"\x92\x01\xdf\xff\xff\xff\xff" + b"\x01" * 64),  # a map
        framed(b"\xdf\xff\xff\xff\xff" + b"\x01" * 64),  # a header
    ]
    for _ in until():
        for announced in announcements:
            connection = connect(port)
            quietly_send(connection, announced)
            while_they_last.append(connection)
        for connection in while_they_last[:-500]:
            connection.close()
        del while_they_last[:-500]


def wrong_messagepack(port):
    """Random bytes in frames of the right length, and arrays 100,000 deep."""
    dice = random.Random(1)
    start = msgpack.packb({0: INSERT, 1: 1}) + b"\x82\x10" + msgpack.packb(SPACE) + b"\x21"
    deep = framed(start + b"\x91" * 100_000 + b"\x01")
    for _ in until():
        connection = connect(port)
        good = bytearray(put(REPLACE, 1000, "z" * 50))
        for _ in range(100):
            bad = bytearray(good)
            for _ in range(dice.randint(1, 8)):
                bad[dice.randrange(5, len(bad))] = dice.randrange(256)
            if not quietly_send(connection, bytes(bad)) or not quietly_send(connection, framed(dice.randbytes(dice.randint(0, 300)))):
                break
        quietly_send(connection, deep)
        connection.close()


def auth_flood(port):
    """Logins with wrong passwords, in pipelines on many connections."""
    wrong = packet(AUTH, {0x23: "admin", 0x21: ["chap-sha1", b"w" * 20]})
    held = [connect(port) for _ in range(50)]
    refused = 0
    for _ in until():
        for connection in held:
            connection.sendall(wrong * 20)
        for connection in held:
            for _ in range(20):
                header, _ = reply(connection)
                if not header[0] & 0x8000:
                    return "a wrong password was taken"
                refused += 1
    if not refused:
        return "no login was answered"


def open_streams(port):
    """10,000 transactions on 10 connections that nobody ends, and 10,000 on one, of which 1,000 begin."""
    held = []
    for first in range(10):
        connection = connect(port)
        held.append(connection)
        begun = begin_streams(connection, 1000, first * 1000)
        if begun != 1000:
            return f"{begun} of 1000 streams began"
    held.append(connect(port))
    begun = begin_streams(held[-1], 10_000, 10**6)
    if begun != 1000:
        return f"{begun} of 10,000 streams of one connection began"
    time.sleep(SECONDS)


def begin_streams(connection, count, first):
    """Begins transactions, and inserts a row in each: how many began."""
    begun = 0
    for start in range(1, count + 1, 100):
        streams = range(start, start + 100)
        connection.sendall(b"".join(
            packet(BEGIN, {}, stream=stream) + put(INSERT, 10**6 + first + stream, "s" * 100, stream) for stream in streams))
        for _ in streams:
            header, _ = reply(connection)
            begun += header[0] == 0
            reply(connection)
    return begun


def million_keys(port):
    """A connection that watches a million keys: of which it gets a thousand."""
    connection = connect(port)
    connection.setblocking(False)
    events = received = 0
    buffered = b""
    for start in range(0, 1_000_000, 1000):
        data = b"".join(packet(WATCH, {0x57: f"key {number} " + "k" * 80}) for number in range(start, start + 1000))
        while data:
            readable, writable, _ = select.select([connection], [connection], [], PATIENCE)
            if readable:
                received += len(connection.recv(MIB))
            if writable:
                data = data[connection.send(data):]
    if not received:
        return "no reply"


def connection_storm(port):
    """Connections that come and go."""
    for _ in until():
        held = [socket.create_connection(("127.0.0.1", port)) for _ in range(100)]
        for connection in held:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()


# Each: the function, the bound of Ladon's memory, and whether tarantool 2.6 knows the requests.
ATTACKS = {
    "nothing": (nothing, 128 * MIB, True),
    "half_requests": (half_requests, 256 * MIB, True),
    "unread_replies": (unread_replies, 320 * MIB, True),
    "endless_writes": (endless_writes, 320 * MIB, True),
    "huge_sizes": (huge_sizes, 192 * MIB, True),
    "wrong_messagepack": (wrong_messagepack, 128 * MIB, True),
    "auth_flood": (auth_flood, 128 * MIB, True),
    "open_streams": (open_streams, 384 * MIB, False),
    "million_keys": (million_keys, 256 * MIB, False),
    "connection_storm": (connection_storm, 192 * MIB, True),
}


# --- the polite client ------------------------------------------------------------------------

def be_polite(port, stop, answer):
    """One request at a time: its waits in milliseconds, or what is wrong with a reply."""
    waits, wrong = [], None
    try:
        connection = connect(port)
        number = 0
        while not stop.is_set() and wrong is None:
            number += 1
            kind = number % 3
            request = [packet(PING, {}, number), put(REPLACE, 0, f"polite {number}"),
                       packet(SELECT, {0x10: SPACE, 0x11: 0, 0x12: 1, 0x13: 0, 0x14: 0, 0x20: [1]}, number)][kind]
            began = time.perf_counter()
            connection.sendall(request)
            header, body = reply(connection)
            waits.append((time.perf_counter() - began) * 1000)
            if header[0] != 0:
                wrong = f"an error: {body}"
            elif kind == 1 and body[0x30] != [[0, f"polite {number}"]]:
                wrong = f"another row: {body}"
            elif kind == 2 and body[0x30][0][0] != 1:
                wrong = f"another row: {body}"
            time.sleep(0.002)
    except (OSError, ValueError) as error:
        wrong = f"{type(error).__name__}: {error}"
    answer.put((waits, wrong))


def run(attack, port, answer):
    try:
        answer.put(attack(port))
    except Exception as error:  # the report is what matters
        answer.put(f"the attacker: {type(error).__name__}: {error}")


def measure(system, name):
    attack, bound, _ = ATTACKS[name]
    with Server(system, name) as server:
        stop, polite, attacked = multiprocessing.Event(), multiprocessing.Queue(), multiprocessing.Queue()
        client = multiprocessing.Process(target=be_polite, args=(server.port, stop, polite))
        attacker = multiprocessing.Process(target=run, args=(attack, server.port, attacked))
        client.start()
        attacker.start()
        try:
            result = attacked.get(timeout=120)
        except Exception:
            result = "the attack does not end"
        stop.set()
        waits, wrong = polite.get(timeout=2 * PATIENCE)
        attacker.kill()
        for process in (attacker, client):
            process.join()
        peak = server.peak() if server.lives() else 0
        problems = [problem for problem in (result, wrong and f"the polite client got {wrong}") if problem]
        if not server.lives():
            problems.append(f"the server died with {server.process.returncode}")
        elif system == "ladon" and peak > bound:
            problems.append(f"{peak / MIB:.0f} MiB, more than {bound / MIB:.0f}")
        else:
            problems += afterwards(server)
        if len(waits) < 20:
            problems.append(f"the polite client got {len(waits)} replies")
        return sorted(waits) or [float("inf")], peak, problems


def afterwards(server):
    """What is wrong for a new client. Damaged requests may have put rows and taken the one they were made of."""
    try:
        connection = connect(server.port)
        connection.sendall(SELECT_ALL)
        header, body = reply(connection)
        numbers = {row[0] for row in body[0x30]} if header[0] == 0 else set()
        lost = set(range(ROWS)) - numbers - {1000}
        return [f"{len(lost)} rows are missing afterwards"] if lost else []
    except (OSError, ValueError) as error:
        return [f"not of use afterwards: {error}"]


def main():
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 20_000), hard))
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    print(f"  {'polite client, ms, 50 / 99.9 %; memory, MiB':44} {'ladon':>24} {'tarantool':>24}")
    failed = False
    for name in sys.argv[1:] or ATTACKS:
        cells = []
        for system in ("ladon", "tarantool"):
            if system == "tarantool" and not ATTACKS[name][2]:
                cells.append("has no such requests")
                continue
            waits, peak, problems = measure(system, name)
            cells.append(f"{waits[len(waits) // 2]:.2f} / {waits[int(len(waits) * 0.999)]:.1f}; {peak / MIB:.0f}")
            for problem in problems:
                print(f"    {name}: {system}: {problem}")
            failed |= system == "ladon" and bool(problems)
        print(f"  {name:44} {cells[0]:>24} {cells[1]:>24}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
