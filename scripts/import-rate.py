#!/usr/bin/env python3
"""Measures how fast `ladon import` takes a file of RDB, beside redis-server's own load of it.

    scripts/import-rate.py LADON [KEYS] [ROUNDS]

LADON is the binary. A redis-server on the PATH makes the file: strings of 100 bytes, and of each
other type a tenth as many keys of some twenty elements. The rounds are interleaved; a round's
figure for redis-server is what it logs ("DB loaded from disk"), and for Ladon the whole command: into a
directory, checkpoint included, and into a running Ladon and a running redis-server (`--into`).
"""
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def connect(port):
    for _ in range(600):
        try:
            return socket.create_connection(("127.0.0.1", port))
        except OSError:
            time.sleep(0.05)
    raise SystemExit("redis-server does not start")


def make_file(folder, keys):
    port = free_port()
    server = subprocess.Popen(
        ["redis-server", "--port", str(port), "--save", "", "--dir", folder],
        stdout=subprocess.DEVNULL,
    )
    stream = connect(port)
    script = """
        for n = tonumber(ARGV[1]), tonumber(ARGV[2]) do
            redis.call('set', 'string:' .. n, string.rep(n % 10, 92) .. string.format('%08d', n))
            if n % 10 == 0 then
                local list, set, zset, hash = {}, {}, {}, {}
                for m = 1, 20 do
                    list[m], set[m] = 'element ' .. n .. m, 'member ' .. n .. m
                    zset[2 * m - 1], zset[2 * m] = m * 1.5, 'member ' .. n .. m
                    hash[2 * m - 1], hash[2 * m] = 'field ' .. m, 'value ' .. n .. m
                end
                redis.call('rpush', 'list:' .. n, unpack(list))
                redis.call('sadd', 'set:' .. n, unpack(set))
                redis.call('zadd', 'zset:' .. n, unpack(zset))
                redis.call('hset', 'hash:' .. n, unpack(hash))
            end
        end
        return 1"""
    step = 10000

    def call(*words):
        out = b"*%d\r\n" % len(words)
        for word in words:
            out += b"$%d\r\n%s\r\n" % (len(word), word.encode())
        stream.sendall(out)
        reply = b""
        while not reply.endswith(b"\r\n"):
            reply += stream.recv(4096)
        if reply.startswith(b"-"):
            raise SystemExit(reply.decode())

    for first in range(0, keys, step):
        call("EVAL", script, "0", str(first), str(min(first + step, keys) - 1))
    call("SAVE")
    server.terminate()
    server.wait()
    return os.path.join(folder, "dump.rdb")


def load_by_redis(folder, file):
    port = free_port()
    log = os.path.join(folder, "redis.log")
    server = subprocess.Popen(
        ["redis-server", "--port", str(port), "--save", "", "--dir", os.path.dirname(file),
         "--logfile", log]
    )
    seconds = None
    while seconds is None:
        time.sleep(0.05)
        text = open(log).read() if os.path.exists(log) else ""
        found = re.search(r"DB loaded from disk: ([0-9.]+) seconds", text)
        seconds = float(found.group(1)) if found else None
    server.kill()
    server.wait()
    os.remove(log)
    return seconds


def load_by_ladon(ladon, folder, file):
    data = os.path.join(folder, "data")
    began = time.monotonic()
    subprocess.run([ladon, "import", file, "--data", data], check=True, stderr=subprocess.DEVNULL)
    seconds = time.monotonic() - began
    shutil.rmtree(data)
    return seconds


def load_into(ladon, folder, file, name):
    port, data = free_port(), os.path.join(folder, "running")
    os.mkdir(data)
    own = {
        "ladon": [ladon, "serve", "--port", str(port), "--data", data],
        "redis-server": ["redis-server", "--port", str(port), "--save", "", "--dir", data],
    }
    quiet = subprocess.DEVNULL
    server = subprocess.Popen(own[name], stdout=quiet, stderr=quiet)
    connect(port).close()
    began = time.monotonic()
    subprocess.run([ladon, "import", file, "--into", f"127.0.0.1:{port}"], check=True, stderr=quiet)
    seconds = time.monotonic() - began
    server.kill()
    server.wait()
    shutil.rmtree(data)
    return seconds


def main():
    ladon = sys.argv[1]
    keys = int(sys.argv[2]) if len(sys.argv) > 2 else 2_000_000
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    with tempfile.TemporaryDirectory() as folder:
        file = make_file(folder, keys)
        print(f"{os.path.getsize(file) >> 20} MB, {keys + 4 * (keys // 10)} keys")
        columns = {
            "redis-server": lambda: load_by_redis(folder, file),
            "ladon": lambda: load_by_ladon(ladon, folder, file),
            "ladon, into a running ladon": lambda: load_into(ladon, folder, file, "ladon"),
            "ladon, into a running redis-server": lambda: load_into(ladon, folder, file, "redis-server"),
        }
        measured = []
        for number in range(rounds):
            measured.append([load() for load in columns.values()])
            figures = (f"{name} {seconds:.2f} s" for name, seconds in zip(columns, measured[-1]))
            print(f"round {number + 1}: {'; '.join(figures)}", flush=True)
        for at, name in list(enumerate(columns))[1:]:
            ratio = statistics.median(row[0] / row[at] for row in measured)
            print(f"median: {name}: {ratio:.2f} times as fast as redis-server's load")


main()
