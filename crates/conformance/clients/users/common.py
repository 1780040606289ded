"""What the programs in this folder share: connections without silent retries, threads that work
until they are told to stop, and the way to ask the test for a kill.

Each program gets the port as argv[1]. On standard output it says `kill` for a `kill -9` and a
restart, after which it reads `restarted`, and at its end `checks N`.
"""

import sys
import threading
import time

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

PORT = int(sys.argv[1])

# What a client sees of a server that was killed, and while one is away or still loading.
LOST = (redis.ConnectionError, redis.TimeoutError, redis.exceptions.BusyLoadingError)

checks = 0


def check(fact, what):
    global checks
    checks += 1
    assert fact, what


def connect():
    """One connection that never repeats a command by itself: a repeated LPUSH is a second job."""
    return redis.Redis(
        port=PORT,
        decode_responses=True,
        single_connection_client=False,
        max_connections=1,
        socket_timeout=20,
        retry=Retry(NoBackoff(), 0),
    )


def patiently(call):
    """The call's result, tried again while the server is away: for what may run twice."""
    deadline = time.monotonic() + 20
    while True:
        try:
            return call()
        except LOST:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def kill():
    """Kills the server and comes back when it answers again."""
    print("kill", flush=True)
    answer = sys.stdin.readline().strip()
    assert answer == "restarted", f"the test said {answer!r}"


class Crew:
    """Threads that run `work(stop, *arguments)`; what one raises ends the program's run."""

    def __init__(self):
        self.stop = threading.Event()
        self.threads = []
        self.failures = []

    def start(self, work, *arguments):
        def run():
            try:
                work(self.stop, *arguments)
            except BaseException as failure:
                self.failures.append(failure)

        thread = threading.Thread(target=run, daemon=True)
        self.threads.append(thread)
        thread.start()

    def work_for(self, seconds):
        time.sleep(seconds)
        self.look()

    def look(self):
        if self.failures:
            raise self.failures[0]

    def end(self):
        self.stop.set()
        for thread in self.threads:
            thread.join(timeout=30)
            assert not thread.is_alive(), "a thread does not end"
        self.look()


def finish():
    print(f"checks {checks}", flush=True)
