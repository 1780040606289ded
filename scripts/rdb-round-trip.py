#!/usr/bin/env python3
"""Takes the data of a redis-server through Ladon and back, and compares the whole keyspace.

    scripts/rdb-round-trip.py LADON

redis-server -> RDB and append-only files -> `ladon import` -> a served Ladon -> `ladon export`, from
the running server and from its directory, and `redis-cli --rdb` -> redis-server. And by `MIGRATE`,
from a redis-server to a Ladon, to another Ladon, to a redis-server. After each step every key of
every database is compared: type, value, expiry, groups of streams. Needs redis-server and redis-cli.
"""
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time


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


def value(call, key, kind):
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
        return sorted(zip(words[::2], words[1::2]))
    about = call("XINFO", "STREAM", key)
    about = dict(zip(about[::2], about[1::2]))
    names = [b"length", b"last-generated-id", b"max-deleted-entry-id", b"entries-added"]
    groups = []
    for group in call("XINFO", "GROUPS", key):
        group = dict(zip(group[::2], group[1::2]))
        pending = call("XPENDING", key, group[b"name"], "-", "+", 100000)
        pending = [(entry[0], entry[1], entry[3]) for entry in pending]
        consumers = call("XINFO", "CONSUMERS", key, group[b"name"])
        groups.append((sorted(group.items()), pending, sorted(c[1] for c in consumers)))
    return call("XRANGE", key, "-", "+"), [about[name] for name in names], groups


def contents(call):
    found = {}
    for db in range(16):
        call("SELECT", db)
        for key in call("KEYS", "*"):
            kind = call("TYPE", key)
            found[db, key] = (kind, value(call, key, kind), call("PEXPIRETIME", key))
    call("SELECT", 0)
    return found, sorted(str(library) for library in call("FUNCTION", "LIST", "WITHCODE"))


def compare(what, before, after):
    if before == after:
        print(f"{what}: {len(before[0])} keys, the same")
        return
    for key in sorted(set(before[0]) | set(after[0])):
        one, other = before[0].get(key), after[0].get(key)
        if one != other:
            print(f"{what}: {key}\n  before {str(one)[:600]}\n  after  {str(other)[:600]}")
    if before[1] != after[1]:
        print(f"{what}: libraries differ\n{before[1]}\n{after[1]}")
    sys.exit(1)


def fill(call):
    call("FUNCTION", "LOAD", "#!lua name=l\nredis.register_function('f', function() return 1 end)")
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
        call("SET", "long", "x" * 3_000_000)
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


def main():
    ladon = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        at = lambda *names: os.path.join(folder, *names)
        os.mkdir(at("redis"))
        words = ["redis-server", "--port", "PORT", "--dir", at("redis"), "--save", ""]
        redis, call, _ = start([*words, "--appendonly", "yes"])
        fill(call)
        call("SAVE")
        # These are in the append-only file only.
        saved = contents(call)
        call("SET", "later", "1")
        call("MULTI")
        call("INCR", "later")
        call("DEL", "string:1")
        call("EXEC")
        whole = contents(call)
        stop(redis)
        # Of a command that the server was killed in.
        increment = next(n for n in os.listdir(at("redis", "appendonlydir")) if "incr" in n)
        with open(at("redis", "appendonlydir", increment), "ab") as file:
            file.write(b"*3\r\n$3\r\nSET\r\n$1\r\n")
        sources = [("dump.rdb", saved), ("appendonlydir", whole)]
        for name, expected in sources:
            subprocess.run([ladon, "import", at("redis", name), "--data", at(name + ".data")], check=True)
            server, call, port = start([ladon, "serve", "--port", "PORT", "--data", at(name + ".data")])
            compare(f"imported {name}", expected, contents(call))
            for version in ("9", "10"):
                out = at(f"{name}.{version}.rdb")
                if version == "9":
                    call("FUNCTION", "FLUSH")
                export = [ladon, "export", out, "--rdb-version", version]
                subprocess.run([*export, "--from", f"127.0.0.1:{port}"], check=True)
                if version == "9":
                    call("FUNCTION", "LOAD", "#!lua name=l\nredis.register_function('f', function() return 1 end)")
                else:
                    back(out, folder, f"exported {name} from the server", expected)
            out = at(name + ".cli.rdb")
            subprocess.run(["redis-cli", "-p", str(port), "--rdb", out], check=True, stderr=subprocess.DEVNULL)
            back(out, folder, f"redis-cli --rdb of {name}", expected)
            stop(server)
            out = at(name + ".offline.rdb")
            subprocess.run([ladon, "export", out, "--data", at(name + ".data")], check=True)
            back(out, folder, f"exported {name} from the directory", expected)
        server, call, port = start([ladon, "serve", "--port", "PORT", "--data", at("running")])
        into = [ladon, "import", at("redis", "dump.rdb"), "--into", f"127.0.0.1:{port}"]
        subprocess.run(into, check=True)
        compare("imported into a running server", saved, contents(call))
        assert subprocess.run(into, stderr=subprocess.DEVNULL).returncode == 3, "keys are there"
        subprocess.run([*into, "--replace"], check=True)
        compare("imported again", saved, contents(call))
        stop(server)
        hops(ladon, at, at("redis", "dump.rdb"), saved)


def hops(ladon, at, file, expected):
    """All keys from server to server by MIGRATE."""
    where, name = os.path.split(file)
    redis = ["redis-server", "--port", "PORT", "--save", "", "--dir"]
    chain = [
        ("redis-server", [*redis, where, "--dbfilename", name]),
        ("Ladon", [ladon, "serve", "--port", "PORT", "--data", at("hop1")]),
        ("another Ladon", [ladon, "serve", "--port", "PORT", "--data", at("hop2")]),
        ("redis-server", [*redis, at()]),
    ]
    source, call, _ = start(chain[0][1])
    for (origin, _), (target, words) in zip(chain, chain[1:]):
        process, there, port = start(words)
        for db in range(16):
            call("SELECT", db)
            keys = call("KEYS", "*")
            # Half of them alone, the others together.
            for key in keys[::2]:
                assert call("MIGRATE", "127.0.0.1", port, key, db, 10000) == "OK", key
            if keys[1::2]:
                told = call("MIGRATE", "127.0.0.1", port, "", db, 10000, "KEYS", *keys[1::2])
                assert told == "OK", told
            assert call("DBSIZE") == 0
        found = contents(there)
        # As in Redis, the time that is left goes along: what the way takes is added to it.
        near = {k: (*v[:2], expected[0][k][2] if abs(v[2] - expected[0][k][2]) < 60000 else v[2])
                for k, v in found[0].items() if k in expected[0]}
        compare(f"MIGRATE from {origin} to {target}", (expected[0], []), ({**found[0], **near}, []))
        stop(source)
        source, call = process, there
    stop(source)


def back(file, folder, what, expected):
    where, name = os.path.split(file)
    redis, call, _ = start(
        ["redis-server", "--port", "PORT", "--dir", where, "--dbfilename", name, "--save", ""]
    )
    compare(what, expected, contents(call))
    stop(redis)


main()
