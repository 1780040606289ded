"""What the families of faults share: how a fault is declared, and servers that end with it."""
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

FAULTS = []


class Fault:
    def __init__(self, family, tried, right, check):
        self.family, self.tried, self.right, self.check = family, tried, right, check


def fault(tried, right):
    """Declares a fault: the function gets a Bench and returns what the server did and whether that is right."""
    def declare(check):
        FAULTS.append(Fault(check.__module__, tried, right, check))
        return check
    return declare


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Bench:
    """Starts servers for one fault, and ends them."""

    def __init__(self, ladon_path):
        self.ladon_path, self.running, self.directories = ladon_path, [], []

    def directory(self):
        self.directories.append(tempfile.mkdtemp(prefix="ladon-fault-"))
        return self.directories[-1]

    def ladon(self, *arguments, iproto=False, directory=None, **popen):
        """A Ladon in an empty directory that answers: .port, .iproto_port, .directory, .pid, .log()."""
        server = Started(directory or self.directory(), iproto)
        own = ["--resp", "127.0.0.1:%d" % server.port, "--dir", server.directory]
        if iproto:
            own += ["--iproto", "127.0.0.1:%d" % server.iproto_port]
        return self.started(server, [self.ladon_path, "serve", *own, *arguments], **popen)

    def cluster(self, *arguments):
        """Three Ladons of a cluster, first the one that leads, their ports of the cluster, and what each was started with."""
        ports = [free_port() for _ in range(3)]
        own = ["--io-threads", "1", "--cluster-enabled", "yes", "--cluster-secret", "s", "--failover-timeout", "1000", *arguments]
        nodes = [self.ladon(*own, "--cluster-port", str(port)) for port in ports]
        made = subprocess.run([self.ladon_path, "cluster", "create", *["127.0.0.1:%d" % node.port for node in nodes]],
                              capture_output=True, text=True)
        if made.returncode:
            raise RuntimeError(made.stderr)
        at = next(at for at, node in enumerate(nodes) if b"role:master" in node.client()("INFO", "replication"))
        return nodes[at:] + nodes[:at], ports[at:] + ports[:at], own

    def redis(self, *arguments, program="redis-server", **popen):
        """The original, without persistence."""
        server = Started(self.directory(), False)
        own = ["--port", str(server.port), "--bind", "127.0.0.1", "--save", "", "--dir", server.directory]
        return self.started(server, [program, *own, *arguments], **popen)

    def started(self, server, command, **popen):
        with open(server.log_path, "wb") as log:
            server.process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, **popen)
        self.running.append(server)
        server.wait_for_answers()
        return server

    def stop_all(self):
        for server in self.running:
            server.kill()
        for directory in self.directories:
            shutil.rmtree(directory, ignore_errors=True)
        self.running, self.directories = [], []


class Started:
    def __init__(self, directory, iproto):
        self.directory, self.port = directory, free_port()
        self.iproto_port = free_port() if iproto else None
        self.log_path = os.path.join(directory, "fault.log")
        self.process = None

    @property
    def pid(self):
        return self.process.pid

    def log(self):
        with open(self.log_path, errors="replace") as file:
            return file.read()

    def wait_for_answers(self, seconds=30):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise RuntimeError("the server ended: " + self.log()[-500:])
            try:
                with socket.create_connection(("127.0.0.1", self.port), timeout=1):
                    return
            except OSError:
                time.sleep(0.02)
        raise RuntimeError("the server does not answer: " + self.log()[-500:])

    def client(self, timeout=30):
        return Client(self.port, timeout)

    def rss_bytes(self):
        with open("/proc/%d/smaps_rollup" % self.pid) as file:
            return next(int(line.split()[1]) << 10 for line in file if line.startswith("Rss:"))

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()


def linked(replica, seconds=60):
    """Waits until a replica of a Ladon or a Redis has what the other one had."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if b"master_link_status:up" in replica.client()("INFO", "replication"):
                return
        except (EOFError, OSError):
            # Another server's data takes the place of its own: connections end there.
            pass
        time.sleep(0.05)
    raise RuntimeError("the replica gets no link")


def pings(server, seconds, meanwhile, words=lambda: ("PING",)):
    """p99.9 of another client's PING, or other `words()`, in milliseconds while `meanwhile(ends)` runs, and how much memory the
    server got."""
    client, before, ends = server.client(), server.rss_bytes(), threading.Event()
    thread = threading.Thread(target=meanwhile, args=(ends,), daemon=True)
    thread.start()
    taken, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.monotonic()
        client(*words())
        taken.append(1000 * (time.monotonic() - began))
        time.sleep(0.0005)
    ends.set()
    thread.join(20)
    return sorted(taken)[int(len(taken) * 0.999)], server.rss_bytes() - before


class ReplyError(Exception):
    """A reply that is an error."""


class Client:
    """A blocking client of Redis' protocol, RESP2. Errors within arrays are returned, others raised."""

    def __init__(self, port, timeout=30):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.input = self.socket.makefile("rb")

    def __call__(self, *words):
        self.send(*words)
        reply = self.reply()
        if isinstance(reply, ReplyError):
            raise reply
        return reply

    def error(self, *words):
        """The text of the error that a request is answered with, or the reply."""
        self.send(*words)
        reply = self.reply()
        return str(reply) if isinstance(reply, ReplyError) else reply

    def send(self, *words):
        words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        self.socket.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))

    def reply(self):
        line = self.input.readline()
        if not line.endswith(b"\r\n"):
            raise EOFError("the connection was closed")
        kind, rest = line[:1], line[1:-2]
        if kind == b"+":
            return rest.decode()
        if kind == b"-":
            return ReplyError(rest.decode(errors="replace"))
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == b"-1" else self.input.read(int(rest) + 2)[:-2]
        if kind == b"*":
            return None if rest == b"-1" else [self.reply() for _ in range(int(rest))]
        raise ValueError("no reply: %r" % line)

    def close(self):
        self.input.close()
        self.socket.close()
