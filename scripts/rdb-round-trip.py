#!/usr/bin/env python3
"""Takes the data of a Redis or Valkey through Ladon and back, and compares the whole keyspace.

    scripts/rdb-round-trip.py LADON [SERVER]...

SERVER is a server's command, `redis-server` unless given: any from 6.2 on, and Valkey. The command of
its client is the same with -cli in the place of -server. For each server:

server -> RDB and append-only files -> `ladon import` -> a served Ladon -> `ladon export`, from the
running Ladon and from its directory, in each version that the server reads, and `redis-cli --rdb` ->
server. And by `MIGRATE`, from the server to a Ladon, to another Ladon, to the server. And
`ladon import --into`, a Ladon and the server. After each step every key of every database is compared:
type, value, expiry, fields' expiry, groups of streams, libraries.
"""
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time


class Peer:
    """A server to come from and to go back to."""

    def __init__(self, command):
        self.server = shlex.split(command)
        self.cli = [*self.server[:-1], re.sub("-server$", "-cli", self.server[-1])]
        told = subprocess.run([*self.server, "--version"], capture_output=True, text=True, check=True)
        version = re.search(r" v=(\d+)\.(\d+)", told.stdout)
        self.version = tuple(map(int, version.groups()))
        self.is_valkey = "Valkey" in told.stdout
        self.name = f"{'Valkey' if self.is_valkey else 'Redis'} {'.'.join(version.groups())}"
        # From 7.0 on: functions, counters of streams, one folder of append-only files.
        self.is_before_7 = self.version < (7, 0)
        self.fields_expire = self.version >= ((9, 0) if self.is_valkey else (7, 4))
        self.versions = ["9"]
        if not self.is_before_7:
            self.versions += ["10"]
        if self.version >= (7, 2):
            self.versions += ["11"]
        if self.fields_expire:
            self.versions += ["80" if self.is_valkey else "12"]

    def words(self, *more):
        return [*self.server, "--port", "PORT", "--save", "", *more]


class Client:
    def __init__(self, port):
        for _ in range(400):
            try:
                self.socket = socket.create_connection(("127.0.0.1", port))
                self.file = self.socket.makefile("rb")
                if self("PING") == "PONG":
                    return
            except OSError:
                pass
            time.sleep(0.05)
        raise SystemExit(f"nothing answers at port {port}")

    def __call__(self, *words):
        out = b"*%d\r\n" % len(words)
        for word in words:
            word = word if isinstance(word, bytes) else str(word).encode()
            out += b"$%d\r\n%s\r\n" % (len(word), word)
        self.socket.sendall(out)
        return self.read()

    def read(self):
        line = self.file.readline()[:-2]
        kind, rest = line[:1], line[1:]
        if kind == b"+":
            return rest.decode()
        if kind == b"-":
            return RuntimeError(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == b"-1" else self.file.read(int(rest) + 2)[:-2]
        return [self.read() for _ in range(max(int(rest), 0))]


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def start(words):
    port = free_port()
    words = [word.replace("PORT", str(port)) for word in words]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return process, Client(port), port


def stop(process):
    process.send_signal(signal.SIGTERM)
    process.wait()


def value(call, key, kind, peer):
    if kind == "string":
        return call("GET", key)
    if kind == "list":
        return call("LRANGE", key, 0, -1)
    if kind == "set":
        return sorted(call("SMEMBERS", key))
    if kind == "zset":
        words = call("ZRANGE", key, 0, -1, "WITHSCORES")
        # Redis before 7.2 prints all digits of a score.
        return list(zip(words[::2], map(float, words[1::2])))
    if kind == "hash":
        words = call("HGETALL", key)
        expiries = [-1] * (len(words) // 2)
        if peer.fields_expire:
            expiries = call("HPEXPIRETIME", key, "FIELDS", len(expiries), *words[::2])
        return sorted(zip(words[::2], words[1::2], expiries))
    about = call("XINFO", "STREAM", key)
    about = dict(zip(about[::2], about[1::2]))
    names = [b"length", b"last-generated-id"]
    of_group = [b"name", b"consumers", b"pending", b"last-delivered-id"]
    if not peer.is_before_7:
        names += [b"max-deleted-entry-id", b"entries-added"]
        of_group += [b"entries-read", b"lag"]
    groups = []
    for group in call("XINFO", "GROUPS", key):
        group = dict(zip(group[::2], group[1::2]))
        pending = call("XPENDING", key, group[b"name"], "-", "+", 100000)
        pending = [(entry[0], entry[1], entry[3]) for entry in pending]
        consumers = call("XINFO", "CONSUMERS", key, group[b"name"])
        facts = [group[name] for name in of_group]
        groups.append((facts, pending, sorted(c[1] for c in consumers)))
    return call("XRANGE", key, "-", "+"), [about[name] for name in names], groups


def contents(call, peer):
    """All keys, and the libraries, as far as the peer has such things."""
    found = {}
    for db in range(16):
        call("SELECT", db)
        for key in call("KEYS", "*"):
            kind = call("TYPE", key)
            if peer.is_before_7:
                # By the clock here: a few milliseconds off.
                left = call("PTTL", key)
                expiry = left if left < 0 else left + int(time.time() * 1000)
            else:
                expiry = call("PEXPIRETIME", key)
            found[db, key] = (kind, value(call, key, kind, peer), expiry)
    call("SELECT", 0)
    libraries = [] if peer.is_before_7 else call("FUNCTION", "LIST", "WITHCODE")
    return found, sorted(str(library) for library in libraries)


def compare(what, before, after, near_ms=0):
    """They are the same, except that keys expire up to so much earlier or later."""
    if near_ms:
        def near(key, one):
            other = before[0].get(key, one)
            return (*one[:2], other[2] if abs(other[2] - one[2]) <= near_ms else one[2])
        after = {key: near(key, one) for key, one in after[0].items()}, after[1]
    if before == after:
        print(f"{what}: {len(before[0])} keys, the same", flush=True)
        return
    for key in sorted(set(before[0]) | set(after[0])):
        one, other = before[0].get(key), after[0].get(key)
        if one != other:
            print(f"{what}: {key}\n  before {str(one)[:600]}\n  after  {str(other)[:600]}")
    if before[1] != after[1]:
        print(f"{what}: libraries differ\n{before[1]}\n{after[1]}")
    sys.exit(1)


def without(expected, name=None, functions=True):
    """The same without keys whose name begins so, or without libraries."""
    keys = {key: one for key, one in expected[0].items() if not name or not key[1].startswith(name)}
    return keys, expected[1] if functions else []


def fill(call, peer):
    if not peer.is_before_7:
        function = "redis.register_function('f', function() return 1 end)"
        call("FUNCTION", "LOAD", "#!lua name=l\n" + function)
    for db in (0, 3):
        call("SELECT", db)
        for n in range(60):
            call("SET", f"string:{n}", "v" * n)
            call("SET", f"int:{n}", n * n - 5000, "PX", 3600000 + n)
            call("RPUSH", f"list:{n}", *(f"element {m}" for m in range(n + 1)))
            call("SADD", f"ints:{n}", *range(-n, n + 1))
            call("SADD", f"set:{n}", *(f"member {m}" for m in range(n + 1)))
            call("ZADD", f"zset:{n}", *(w for m in range(n + 1) for w in (m * 1.25 - 7, f"m{m}")))
            call("HSET", f"hash:{n}", *(w for m in range(n + 1) for w in (f"f{m}", f"v{m}")))
            if peer.fields_expire:
                call("HSET", f"expiring:{n}", *(w for m in range(20 * n + 2) for w in (f"f{m}", m)))
                at = int(time.time() * 1000) + 3600000
                call("HPEXPIREAT", f"expiring:{n}", at + n, "FIELDS", 2, "f0", f"f{n}")
        call("SET", "long", "x" * 3_000_000)
        call("SET", "random", os.urandom(300_000))
        call("SETBIT", "bits", 1_000_003, 1)
        call("PFADD", "hll", *range(5000))
        call("RPUSH", "longlist", *(f"element {m}" * 10 for m in range(20000)))
        call("SADD", "longset", *(f"member {m}" for m in range(20000)))
        call("HSET", "longhash", *(w for m in range(20000) for w in (f"f{m}", f"v{m}")))
        call("ZADD", "longzset", *(w for m in range(20000) for w in (m, f"m{m}")))
        call("ZADD", "inf", "inf", "a", "-inf", "b", 0.1, "c")
        for n in range(2000):
            call("XADD", "stream", f"{n + 1}-{n % 3}", "field", f"value {n}", "n", n)
        call("XADD", "stream", "9000-0", "other", "fields")
        call("XDEL", "stream", "5-1", "9000-0")
        call("XGROUP", "CREATE", "stream", "group", "0")
        call("XGROUP", "CREATE", "stream", "idle", "$")
        for consumer in ("alice", "bob"):
            call("XREADGROUP", "GROUP", "group", consumer, "COUNT", 200, "STREAMS", "stream", ">")
        call("XACK", "stream", "group", "7-0", "8-1")
        call("XGROUP", "CREATE", "empty", "group", "$", "MKSTREAM")


def round_trip(ladon, peer, folder):
    at = lambda *names: os.path.join(folder, *names)
    near_ms = 2000 if peer.is_before_7 else 0
    os.mkdir(at("redis"))
    redis, call, _ = start(peer.words("--dir", at("redis"), "--appendonly", "yes"))
    fill(call, peer)
    call("SAVE")
    saved = contents(call, peer)
    # What follows is in the append-only file only, behind an RDB of its own.
    call("BGREWRITEAOF")
    while "aof_rewrite_in_progress:0" not in call("INFO", "persistence").decode():
        time.sleep(0.05)
    call("SET", "later", "1")
    call("MULTI")
    call("INCR", "later")
    call("DEL", "string:1")
    call("EXEC")
    whole = contents(call, peer)
    stop(redis)
    aof = "appendonly.aof" if peer.is_before_7 else "appendonlydir"
    increment = at("redis", aof)
    if not peer.is_before_7:
        increment = at("redis", aof, next(n for n in os.listdir(at("redis", aof)) if "incr" in n))
    # Of a command that the server was killed in.
    with open(increment, "ab") as file:
        file.write(b"*3\r\n$3\r\nSET\r\n$1\r\n")
    for name, expected in [("dump.rdb", saved), (aof, whole)]:
        files(ladon, peer, at, at("redis", name), expected, near_ms)
    into_running(ladon, peer, at, at("redis", "dump.rdb"), saved, near_ms)
    hops(ladon, peer, at, at("redis", "dump.rdb"), saved)


def files(ladon, peer, at, source, expected, near_ms):
    """Out of a file, into files."""
    name = os.path.basename(source)
    data = at(name + ".data")
    serve = [ladon, "serve", "--port", "PORT", "--data", data]
    subprocess.run([ladon, "import", source, "--data", data], check=True)
    server, call, port = start(serve)
    compare(f"imported {name}", expected, contents(call, peer), near_ms)
    newest = peer.versions[-1]

    def export(version, how, expected, *options):
        out = at(f"{name}.{version}.{how}.rdb")
        subprocess.run([ladon, "export", out, "--rdb-version", version, *options], check=True)
        back(peer, out, f"exported {name}, version {version}, {how}", expected, near_ms)

    running = ["--from", f"127.0.0.1:{port}"]
    export(newest, "online", expected, *running)
    export(newest, "scan", expected, *running, "--online", "scan")
    stop(server)
    export(newest, "offline", expected, "--data", data)
    server, call, port = start(serve)
    running = ["--from", f"127.0.0.1:{port}"]
    if peer.fields_expire:
        refused = subprocess.run(
            [ladon, "export", at("refused.rdb"), "--rdb-version", "11", *running], capture_output=True
        )
        assert refused.returncode and b"key 'expiring:" in refused.stderr, refused
        if not peer.is_valkey:
            by_client(peer, port, at(name), f"--rdb of {name} with fields that expire", expected)
        for db in (0, 3):
            call("SELECT", db)
            call("DEL", *(f"expiring:{n}" for n in range(60)))
        expected = without(expected, b"expiring:")
    if not peer.is_before_7 and not peer.is_valkey:
        by_client(peer, port, at(name), f"--rdb of {name}", expected)
    for version in reversed([version for version in peer.versions if version in ("10", "11")]):
        export(version, "older", expected, *running)
    if peer.is_valkey:
        # Once a field of it has had an expiry, Ladon dumps in Redis' version 12. Another has had none.
        words = [ladon, "serve", "--port", "PORT", "--data", at(name + ".other")]
        other, _, other_port = start(words)
        into = ["--into", f"127.0.0.1:{other_port}"]
        subprocess.run([ladon, "import", at(f"{name}.11.older.rdb"), *into], check=True)
        by_client(peer, other_port, at(name), f"--rdb of {name}", expected)
        stop(other)
    call("FUNCTION", "FLUSH")
    expected = without(expected, functions=False)
    # Counters of streams are not in it; what reads it takes others.
    export("9", "oldest", expected, *running)
    stop(server)


def by_client(peer, port, name, what, expected):
    out = name + ".cli.rdb"
    asked = [*peer.cli, "-p", str(port), "--rdb", out]
    subprocess.run(asked, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    back(peer, out, f"{os.path.basename(peer.cli[-1])} {what}", expected)
    os.remove(out)


def into_running(ladon, peer, at, file, expected, near_ms):
    os.mkdir(at("into"))
    for name, words in [
        ("Ladon", [ladon, "serve", "--port", "PORT", "--data", at("running")]),
        (peer.name, peer.words("--dir", at("into"))),
    ]:
        server, call, port = start(words)
        into = [ladon, "import", file, "--into", f"127.0.0.1:{port}"]
        subprocess.run(into, check=True)
        compare(f"imported into a running {name}", expected, contents(call, peer), near_ms)
        assert subprocess.run(into, stderr=subprocess.DEVNULL).returncode == 3, "keys are there"
        subprocess.run([*into, "--replace"], check=True)
        compare(f"imported into {name} again", expected, contents(call, peer), near_ms)
        stop(server)


def hops(ladon, peer, at, file, expected):
    """All keys from server to server by MIGRATE."""
    where, name = os.path.split(file)
    chain = [
        (peer.name, peer.words("--dir", where, "--dbfilename", name)),
        ("Ladon", [ladon, "serve", "--port", "PORT", "--data", at("hop1")]),
        ("another Ladon", [ladon, "serve", "--port", "PORT", "--data", at("hop2")]),
        (peer.name, peer.words("--dir", at())),
    ]
    source, call, _ = start(chain[0][1])
    if peer.is_valkey:
        # A payload of such a hash is in one format for Redis and another for Valkey.
        for db in (0, 3):
            call("SELECT", db)
            call("DEL", *(f"expiring:{n}" for n in range(60)))
        expected = without(expected, b"expiring:")
    for (origin, _), (target, words) in zip(chain, chain[1:]):
        process, there, port = start(words)
        kept = 0
        for db in range(16):
            call("SELECT", db)
            keys = call("KEYS", "*")
            if peer.is_before_7 and target == peer.name:
                # A stream with counters is in no payload that it reads.
                streams = [key for key in keys if call("TYPE", key) == "stream"]
                for key in streams:
                    told = call("MIGRATE", "127.0.0.1", port, key, db, 10000)
                    assert "payload version" in str(told), told
                keys = [key for key in keys if key not in streams]
                kept = len(streams)
                expected = {k: v for k, v in expected[0].items() if v[0] != "stream"}, []
            # Half of them alone, the others together.
            for key in keys[::2]:
                told = call("MIGRATE", "127.0.0.1", port, key, db, 10000)
                assert told == "OK", (key, told)
            if keys[1::2]:
                told = call("MIGRATE", "127.0.0.1", port, "", db, 10000, "KEYS", *keys[1::2])
                assert told == "OK", told
            assert call("DBSIZE") == kept
            kept = 0
        # As in Redis, the time that is left goes along: what the way takes is added to it.
        found = contents(there, peer)[0], []
        compare(f"MIGRATE from {origin} to {target}", without(expected, functions=False), found, 60000)
        stop(source)
        source, call = process, there
    stop(source)


def back(peer, file, what, expected, near_ms=0):
    where, name = os.path.split(file)
    redis, call, _ = start(peer.words("--dir", where, "--dbfilename", name))
    found = contents(call, peer)
    if what.endswith("oldest") and not peer.is_before_7:
        found, expected = ((strip(keys), more) for keys, more in (found, expected))
    compare(f"{what}, in {peer.name}", expected, found, near_ms)
    stop(redis)


def strip(keys):
    """Without what RDB 9 does not have of a stream."""
    def of(one):
        if one[0] != "stream":
            return one
        entries, about, groups = one[1]
        groups = [(facts[:4], *rest) for facts, *rest in groups]
        return one[0], (entries, about[:2], groups), one[2]
    return {key: of(one) for key, one in keys.items()}


def main():
    ladon = os.path.abspath(sys.argv[1])
    for command in sys.argv[2:] or ["redis-server"]:
        peer = Peer(command)
        print(f"== {peer.name}", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            round_trip(ladon, peer, folder)


main()
