"""What the measuring scripts share: requests, servers on a core of their own, and the command line."""
import argparse
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time


def request(*words):
    words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        parts += [b"$%d\r\n" % len(word), word, b"\r\n"]
    return b"".join(parts)


def connect(port):
    connection = socket.create_connection(("127.0.0.1", port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


TARANTOOL = """
box.cfg{listen = '127.0.0.1:%(iproto)d', wal_mode = 'write', memtx_memory = %(memory)d, checkpoint_interval = 0,
    memtx_dir = '%(dir)s', wal_dir = '%(dir)s', vinyl_dir = '%(dir)s', log_level = 'error',
    readahead = 1048576}
box.schema.user.passwd('admin', '%(password)s')
"""
TARANTOOL_MEMORY = 4 << 30


class Server:
    """A server that keeps nothing of its own, with a thread for each of its cores; killed at the end of its `with`.

    With `password`, the server speaks IPROTO at the port `port + 500` as well, and that is admin's password;
    Tarantool speaks nothing else. `extra` are further arguments of Ladon's. `directory` is for its files.
    """

    def __init__(self, path, port, core=0, cores=1, extra=(), password=None, directory=None):
        self.path, self.port, self.password = path, port, password
        self.iproto_port = port + 500
        self.keeps_directory = directory is not None
        self.directory = directory or tempfile.mkdtemp()
        self.taskset = ["taskset", "-c", "%d-%d" % (core, core + cores - 1)]
        self.command = path.split() + self.arguments(cores, extra)
        self.start()

    def arguments(self, cores, extra):
        if is_tarantool(self.path):
            script = os.path.join(self.directory, "start.lua")
            with open(script, "w") as file:
                file.write(TARANTOOL % {"iproto": self.iproto_port, "dir": self.directory,
                                        "password": self.password, "memory": TARANTOOL_MEMORY})
            return [script]
        if "ladon" in self.path:
            own = ["serve", "--resp", "127.0.0.1:%d" % self.port, "--io-threads", str(cores), "--dir",
                   self.directory, "--gate", "none", *extra]
            if self.password:
                own += ["--iproto", "127.0.0.1:%d" % self.iproto_port, "--iproto-admin-password", self.password]
            return own
        return ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir",
                "/tmp" if "chroot" in self.path else self.directory]

    def start(self):
        """Starts it, again if it was killed, and waits until it answers."""
        errors = subprocess.DEVNULL if is_tarantool(self.path) else None
        self.process = subprocess.Popen(self.taskset + self.command, stdout=subprocess.DEVNULL, stderr=errors)
        for _ in range(600):
            try:
                if self.answers():
                    return
            except OSError:
                pass
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        self.__exit__()
        sys.exit("%s does not start" % self.path)

    def answers(self):
        if is_tarantool(self.path):
            from iproto import Iproto  # It imports this module.
            try:
                Iproto(self.iproto_port, self.password)
            except (EOFError, ValueError):
                return False
            return True
        with connect(self.port) as connection:
            connection.sendall(request("PING"))
            return connection.recv(100) == b"+PONG\r\n"

    def kill(self):
        self.process.kill()
        self.process.wait()

    def resident_bytes(self):
        with open("/proc/%d/smaps_rollup" % self.process.pid) as file:
            return next(int(line.split()[1]) << 10 for line in file if line.startswith("Rss:"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        if not self.keeps_directory:
            shutil.rmtree(self.directory)


def is_tarantool(path):
    return "tarantool" in os.path.basename(path.split()[0])


def systems(text):
    """The names and commands of systems."""
    return [system.split("=", 1) for system in text.split(",")]


def options(doc, names, port):
    """The command line's parser: systems, a port, and what is to be measured."""
    parser = argparse.ArgumentParser(description=doc.split("\n")[0])
    parser.add_argument("--systems", type=systems, default="ladon=target/release/ladon,redis=redis-server",
                        help="name=command, separated by commas")
    parser.add_argument("--port", type=int, default=port)
    parser.add_argument("names", nargs="*", metavar="NAME", help=" ".join(names))
    return parser


def print_head(title, systems):
    print("| %s | %s |" % (title, " | ".join(name for name, _ in systems)))
    print("|---%s|" % ("|---" * len(systems)))
