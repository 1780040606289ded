"""The server as a process among clients that mean it ill: threads, buffers, files, signals."""
import os
import signal
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import iproto  # noqa: E402
from fault import Client, ReplyError, fault  # noqa: E402

PASSWORD = "secret"
SPACE, TRUNCATE = 600, 330


def with_iproto(bench, *arguments, **more):
    return bench.ladon("--iproto-admin-password", PASSWORD, *arguments, iproto=True, **more)


def admin(server):
    client = iproto.Iproto(server.iproto_port, PASSWORD)
    client.socket.settimeout(10)
    return client


def put(number, payload=None):
    return iproto.packet(iproto.REPLACE, {iproto.SPACE_ID: SPACE, iproto.TUPLE: [number, payload or ""]})


class LongScript:
    """A script that runs past `busy-reply-threshold` for some seconds. The block begins then and ends with it."""

    def __init__(self, server):
        self.server = server

    def __enter__(self):
        control = self.server.client()
        control("CONFIG", "SET", "busy-reply-threshold", "50")
        self.runner = self.server.client(120)
        # It ends by itself: a command of another client would be one more request beside it.
        self.runner.send("EVAL", "local n = 0 while n < 1e8 do n = n + 1 end return n", "0")
        time.sleep(0.3)
        if not str(control.error("GET", "probe")).startswith("BUSY"):
            raise RuntimeError("the script does not run long")

    def __exit__(self, *_):
        self.runner.reply()


@fault("one IO thread, gate write: a script runs long, one REPLACE over IPROTO meanwhile; SET after it",
       "both are answered")
def write_beside_a_long_script(bench):
    server = with_iproto(bench, "--io-threads", "1", "--gate", "write")
    tuples = admin(server)
    tuples.make_space(SPACE, "t")
    with LongScript(server):
        tuples.socket.sendall(put(1))
        time.sleep(0.3)
    answers = []
    for what, ask in (("REPLACE", tuples.reply), ("SET", lambda: server.client(3)("SET", "a", "1"))):
        tuples.socket.settimeout(3)
        try:
            ask()
            answers.append(what)
        except OSError:
            pass
    return "answered: %s" % (", ".join(answers) or "none"), len(answers) == 2


@fault("one IO thread, gate none: a script runs long, one REPLACE meanwhile, 200 SETs, kill -9 after 3 s",
       "200 keys are there")
def lost_beside_a_long_script(bench):
    server = with_iproto(bench, "--io-threads", "1", "--gate", "none")
    tuples = admin(server)
    tuples.make_space(SPACE, "t")
    with LongScript(server):
        tuples.call(put(1))
    client = server.client()
    for number in range(200):
        client("SET", "k%d" % number, "1")
    time.sleep(3)
    server.kill()
    keys = with_iproto(bench, directory=server.directory).client()("DBSIZE")
    return "%d keys" % keys, keys == 200


@fault("a space of 200 MB is emptied while a script runs long; the memory a second after the script",
       "at most 100 MB")
def garbage_beside_a_long_script(bench):
    server = with_iproto(bench, "--io-threads", "1", "--gate", "none")
    tuples = admin(server)
    tuples.make_space(SPACE, "t")
    payload = "x" * 1000000
    for first in range(0, 200, 20):
        tuples.call(*(put(number, payload) for number in range(first, first + 20)))
    with LongScript(server):
        tuples.call(iproto.packet(iproto.REPLACE, {iproto.SPACE_ID: TRUNCATE, iproto.TUPLE: [SPACE, 1]}))
    time.sleep(2)
    megabytes = server.rss_bytes() >> 20
    return "%d MB" % megabytes, megabytes <= 100
