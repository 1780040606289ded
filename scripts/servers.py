"""What the measuring scripts share: requests, servers on a core of their own, and the command line."""
import argparse
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


class Server:
    """A server that keeps nothing of its own, with a thread for each of its cores; killed at the end of its `with`.

    `extra` are further arguments of Ladon's.
    """

    def __init__(self, path, port, core=0, cores=1, extra=()):
        self.directory = tempfile.mkdtemp()
        command = path.split() + (
            ["serve", "--resp", "127.0.0.1:%d" % port, "--io-threads", str(cores), "--dir", self.directory, "--gate", "none", *extra]
            if "ladon" in path
            else ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir",
                  "/tmp" if "chroot" in path else self.directory]
        )
        self.process = subprocess.Popen(["taskset", "-c", "%d-%d" % (core, core + cores - 1)] + command, stdout=subprocess.DEVNULL)
        for _ in range(200):
            try:
                with connect(port) as connection:
                    connection.sendall(request("PING"))
                    if connection.recv(100) == b"+PONG\r\n":
                        return
            except OSError:
                pass
            time.sleep(0.05)
        self.__exit__()
        sys.exit("%s does not start" % path)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.directory)


def options(doc, names, port):
    """The command line's parser: systems, a port, and what is to be measured."""
    parser = argparse.ArgumentParser(description=doc.split("\n")[0])
    parser.add_argument("--systems", default="ladon=target/release/ladon,redis=redis-server",
                        help="name=command, separated by commas")
    parser.add_argument("--port", type=int, default=port)
    parser.add_argument("names", nargs="*", metavar="NAME", help=" ".join(names))
    return parser


def print_head(title, systems):
    print("| %s | %s |" % (title, " | ".join(name for name, _ in systems)))
    print("|---%s|" % ("|---" * len(systems)))
