"""The server as a process among clients that mean it ill: threads, buffers, files, signals."""
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import iproto  # noqa: E402
from fault import ReplyError, fault  # noqa: E402

PASSWORD = "secret"
SPACE, TRUNCATE = 600, 330


def with_iproto(bench, *arguments, **more):
    return bench.ladon("--iproto-admin-password", PASSWORD, *arguments, iproto=True, **more)


def admin(server):
    client = None
    end = time.monotonic() + 10
    while not client:
        try:
            client = iproto.Iproto(server.iproto_port, PASSWORD)
        except ConnectionError:
            # Only the port of RESP was waited for.
            if time.monotonic() > end:
                raise
            time.sleep(0.02)
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


class Flood:
    """Connections that send a request again and again, and read nothing."""

    def __init__(self, port, connections, request, first=b"", greeting_bytes=0):
        self.sockets, self.closed, self.sent = [], 0, 0
        self.piece = request * (65536 // len(request) + 1)
        for _ in range(connections):
            connection = socket.create_connection(("127.0.0.1", port), timeout=10)
            if first:
                connection.sendall(first)
                connection.recv(1024)
            if greeting_bytes:
                connection.recv(greeting_bytes)
            connection.setblocking(False)
            self.sockets.append([connection, self.piece])

    def run(self, seconds, server):
        """Sends as much as the server takes. Returns the most memory that the server had meanwhile, bytes."""
        end, peak = time.monotonic() + seconds, 0
        while time.monotonic() < end:
            sockets = [entry for entry in self.sockets if entry[0]]
            for entry in sockets:
                try:
                    count = entry[0].send(entry[1])
                    self.sent += count
                    # A piece is sent to its end, so that requests stay whole.
                    entry[1] = entry[1][count:] or self.piece
                except BlockingIOError:
                    pass
                except OSError:
                    entry[0].close()
                    entry[0] = None
                    self.closed += 1
            peak = max(peak, server.rss_bytes())
            if not sockets:
                break
        return peak

    def stop(self):
        for connection, _ in self.sockets:
            if connection:
                connection.close()


def flooded(server, *arguments, **more):
    """The growth of a server's memory in a flood of 2 seconds, MB, and how many connections it has closed."""
    before = server.rss_bytes()
    flood = Flood(*arguments, **more)
    peak = max(flood.run(2, server), server.rss_bytes())
    flood.stop()
    return max(peak - before, 0) >> 20, flood.closed


UNKNOWN = b"*1\r\n$1\r\nA\r\n"


@fault("requirepass, 50 connections without login send unknown commands for 2 s and read nothing",
       "all are closed, as by Redis; at most 10 MB more")
def flood_without_login(bench):
    grown = {}
    for name, start in (("Ladon", bench.ladon), ("Redis", bench.redis)):
        server = start("--requirepass", PASSWORD)
        # The first one has the server's own code read from the disk.
        flooded(server, server.port, 1, UNKNOWN)
        grown[name] = flooded(server, server.port, 50, UNKNOWN)
    (more, closed), (redis_more, redis_closed) = grown["Ladon"], grown["Redis"]
    did = "+%d MB, %d closed; Redis: +%d MB, %d closed" % (more, closed, redis_more, redis_closed)
    return did, more <= 10 and closed == redis_closed == 50


@fault("50 connections send PING for 2 s and read nothing; RESP after a login, IPROTO",
       "at most 64 MB more; others are answered")
def flood_after_login(bench):
    grown = []
    for name in ("RESP", "IPROTO"):
        server = with_iproto(bench, "--requirepass", PASSWORD)
        if name == "RESP":
            more = flooded(server, server.port, 50, b"PING\r\n", b"AUTH %s\r\n" % PASSWORD.encode())
        else:
            ping = iproto.packet(iproto.PING, {})
            more = flooded(server, server.iproto_port, 50, ping, greeting_bytes=128)
        client = server.client(5)
        client("AUTH", PASSWORD)
        grown.append((name, *more))
    did = "; ".join("%s: +%d MB, %d closed" % each for each in grown)
    return did, all(more <= 64 for _, more, _ in grown)


def announced(server, length, sent_bytes, connections=20):
    """Connections that announce a packet of IPROTO and send a part of it: how many are answered by an error and
    closed, and how much memory the server has more, MB."""
    before, closed, open_ones = server.rss_bytes(), 0, []
    for _ in range(connections):
        connection = socket.create_connection(("127.0.0.1", server.iproto_port), timeout=10)
        connection.recv(128)
        open_ones.append(connection)
        try:
            connection.sendall(b"\xce" + length.to_bytes(4, "big"))
            part = b"\x82" * (1 << 20)
            for _ in range(sent_bytes >> 20):
                connection.sendall(part)
        except OSError:
            pass
        connection.settimeout(0.2)
        reply = b""
        try:
            while True:
                more = connection.recv(65536)
                if not more:
                    closed += b"too big packet size in the header: %d" % length in reply
                    break
                reply += more
        except TimeoutError:
            pass
        except OSError:
            closed += b"too big packet size in the header: %d" % length in reply
    more = max(server.rss_bytes() - before, 0) >> 20
    for connection in open_ones:
        connection.close()
    return closed, more


@fault("IPROTO without a login: a packet announced as 600 MB, 50 MB of it sent, by each of 20 connections",
       "20 errors, 20 closed; at most 20 MB more")
def large_packets_of_guests(bench):
    closed, more = announced(with_iproto(bench), 600 << 20, 50 << 20)
    return "%d closed with an error, +%d MB" % (closed, more), closed == 20 and more <= 20


@fault("requirepass, RESP without a login: an array of 11, an argument of 16385 bytes",
       "the same errors as Redis', then closed")
def large_requests_of_strangers(bench):
    answers = []
    for start in (bench.ladon, bench.redis):
        server = start("--requirepass", PASSWORD)
        for request in (b"*11\r\n", b"*1\r\n$16385\r\n"):
            with socket.create_connection(("127.0.0.1", server.port), timeout=5) as connection:
                connection.sendall(request)
                reply = connection.recv(1024)
                answers.append((reply, connection.recv(1)))
    return " / ".join(reply.decode().strip() for reply, _ in answers[:2]), answers[:2] == answers[2:]


@fault("gate fsync: the data directory is deleted; SET a second later, SAVE", "errors that say so, also in the log")
def deleted_directory(bench):
    data = os.path.join(bench.directory(), "data")
    server = bench.ladon("--gate", "fsync", "--dir", data)
    client = server.client()
    client("SET", "a", "1")
    shutil.rmtree(data)
    time.sleep(1.2)
    answers = []
    for request in (("SET", "b", "2"), ("SAVE",)):
        try:
            answers.append(str(server.client(5).error(*request)))
        except (OSError, EOFError) as error:
            answers.append(type(error).__name__)
    time.sleep(1.5)
    is_told = "is gone" in server.log()
    right = all("is gone" in answer for answer in answers) and is_told
    return "%s; log: %s" % (" / ".join(answer[:60] for answer in answers), "says so" if is_told else "silent"), right


@fault("ulimit -n 64: how many clients are served", "as many as by Redis, at least (31)")
def few_open_files(bench):
    def served(start):
        server = start(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)))
        clients, count = [], 0
        for _ in range(64):
            try:
                clients.append(server.client(2))
                count += clients[-1]("PING") == "PONG"
            except (OSError, EOFError, ReplyError, ValueError):
                break
        for client in clients:
            client.close()
        return count
    counts = served(bench.ladon), served(bench.redis)
    return "%d; Redis: %d" % counts, counts[0] >= max(31, counts[1] - 1)


@fault("two SIGTERM within a millisecond", "exit code 0: they are one")
def two_signals(bench):
    server = bench.ladon()
    server.client()("SET", "a", "1")
    os.kill(server.pid, signal.SIGTERM)
    time.sleep(0.0005)
    try:
        os.kill(server.pid, signal.SIGTERM)
    except ProcessLookupError:
        pass
    code = server.process.wait(timeout=20)
    return "exit code %d" % code, code == 0


@fault("a redis.conf with the logfile of Redis' own service", "the file is not made; a warning")
def log_of_redis(bench):
    directory = bench.directory()
    log, conf = os.path.join(directory, "redis-server.log"), os.path.join(directory, "redis.conf")
    with open(conf, "w") as file:
        file.write("daemonize yes\nlogfile %s\n" % log)
    server = bench.ladon("--redis-conf", conf)
    made, warned = os.path.exists(log), "logfile" in server.log()
    return "made: %s, warned: %s" % (made, warned), warned and not made


@fault("modes of a new data directory and its files, umask 022", "700, 600")
def file_modes(bench):
    directory = os.path.join(bench.directory(), "data")
    server = bench.ladon("--dir", directory, preexec_fn=lambda: os.umask(0o022))
    server.client()("SAVE")
    names = os.listdir(directory)
    modes = {os.stat(os.path.join(directory, name)).st_mode & 0o777 for name in names}
    own = os.stat(directory).st_mode & 0o777
    return "%o, %s" % (own, "/".join("%o" % mode for mode in sorted(modes))), own == 0o700 and modes == {0o600}


@fault("ladon check of an empty directory; ladon redis.conf; ladon init.lua", "exit codes 3, 2, 2, each with what to do")
def hints(bench):
    directory = bench.directory()
    for name in ("redis.conf", "init.lua"):
        with open(os.path.join(directory, name), "w"):
            pass
    empty = bench.directory()
    tries = (
        (["check", empty], 3, "no data"),
        (["redis.conf"], 2, "--redis-conf redis.conf"),
        (["init.lua"], 2, "Lua programs"),
    )
    codes, right = [], True
    for arguments, code, words in tries:
        run = subprocess.run([bench.ladon_path, *arguments], cwd=directory, capture_output=True, text=True, timeout=20)
        codes.append(str(run.returncode))
        right = right and run.returncode == code and words in run.stderr
    return "exit codes " + ", ".join(codes), right


@fault("lines in the server's log about BGSAVE, CONFIG SET requirepass, evictions, a start after kill -9",
       "all there, no password")
def messages(bench):
    directory = bench.directory()
    server = bench.ladon("--maxmemory", "30mb", "--maxmemory-policy", "allkeys-lru", directory=directory)
    client = server.client()
    client("CONFIG", "SET", "requirepass", "hush-hush")
    client("BGSAVE")
    for number in range(60):
        client("SET", "k%d" % number, "x" * (1 << 20))
    time.sleep(1.5)
    first = server.log()
    server.kill()
    second = bench.ladon(directory=directory)
    # It answers while it loads.
    while str(second.client().error("GET", "x")).startswith("LOADING"):
        time.sleep(0.02)
    time.sleep(0.5)
    wanted = {
        "BGSAVE begins": "checkpoint begins" in first,
        "ends": "checkpoint made" in first,
        "CONFIG SET": "CONFIG SET" in first and "hush-hush" not in first,
        "evictions": "evicted" in first,
        "start": "not closed in good order" in second.log(),
    }
    missing = [name for name, is_there in wanted.items() if not is_there]
    return "missing: " + (", ".join(missing) or "none"), not missing


@fault("IPROTO while two million keys are loaded, and on the same connection afterwards",
       "greeted and told ER_LOADING (116) at once, then a select")
def iproto_while_loading(bench):
    directory = bench.directory()
    server = bench.ladon("--enable-debug-command", "local", directory=directory)
    server.client(timeout=120)("DEBUG", "POPULATE", 2_000_000, "key", 64)
    server.kill()
    time.sleep(0.5)
    server = bench.ladon(directory=directory, iproto=True)
    redis = server.client()
    began = time.monotonic()
    guest = iproto.Iproto.__new__(iproto.Iproto)
    guest.socket = iproto.connect(server.iproto_port)
    guest.socket.settimeout(60)
    guest.read(128)

    def select():
        key = {iproto.SPACE_ID: 281, iproto.INDEX_ID: 0, iproto.LIMIT: 1, iproto.KEY: []}
        guest.socket.sendall(iproto.packet(iproto.SELECT, key))
        return iproto.code_of(guest.any_reply()) & 0x7FFF

    first = select()
    told_after = time.monotonic() - began
    is_loading = str(redis.error("GET", "x")).startswith("LOADING")
    code = first
    while code == 116 and time.monotonic() - began < 60:
        time.sleep(0.02)
        code = select()
    loading = " while loading" if is_loading else ""
    return "code %d after %.1f s%s, then %d" % (first, told_after, loading, code), first == 116 and is_loading and not code
