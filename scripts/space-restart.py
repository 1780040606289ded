#!/usr/bin/env python3
"""Memory of a tuple, a checkpoint, and restarts from the log and from the checkpoint, beside Tarantool.

    scripts/space-restart.py --systems ladon=target/release/ladon,tarantool=tarantool --tuples 10000000

Loads tuples of an unsigned number and a string of 8 bytes into a space with a TREE index, over one
connection in a pipeline from the second core; the server has the first core, with `--cores 2` both,
and Ladon then an IO thread for each. Both log what they are sent, without fsync (`--gate write`,
`wal_mode = 'write'`). The server is then killed and started again, which reads the log; makes a
checkpoint (`BGSAVE`, `box.snapshot()`); is killed and started again, which reads the checkpoint. A
restart ends when `CALL box.space.tuples:len` answers the number of tuples. CPU is user and system time
of the server's process.

Ladon's log does not stay in the page cache, Tarantool's does. So by default the files are read before a
restart, which then is of the servers' own work alone. With `--page-cache empty` (as root) everything
comes from the disk, as after a power cut; with `--page-cache as-left`, what the server has left to it.
"""
import argparse
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time

from iproto import CALL, EVAL, EXPRESSION, FUNCTION_NAME, REPLACE, SPACE_ID, TUPLE, Iproto, packet
from servers import connect, print_head, request, systems

TICKS = os.sysconf("SC_CLK_TCK")
SPACE, PASSWORD = 600, "measured"
# Tuples that one write to the socket carries.
TOGETHER = 256
START_MAX_SECONDS = 300

TARANTOOL = """
box.cfg{listen = '127.0.0.1:%(port)d', wal_mode = 'write', memtx_memory = %(memory)d, checkpoint_interval = 0,
    memtx_dir = '%(dir)s', wal_dir = '%(dir)s', vinyl_dir = '%(dir)s', log_level = 'warn', readahead = 1048576}
box.schema.user.passwd('admin', '%(password)s')
"""


class Node:
    """A server and its directory; every start goes on with what the one before has left there."""

    def __init__(self, path, port, given):
        self.path, self.port, self.given = path, port, given
        self.directory = tempfile.mkdtemp(dir=given.data_root)
        self.is_ladon = "ladon" in path
        self.process = None

    def start(self):
        """Starts it; seconds until it answers."""
        if self.is_ladon:
            command = [self.path, "serve", "--resp", "127.0.0.1:%d" % (self.port + 1), "--iproto",
                       "127.0.0.1:%d" % self.port, "--iproto-admin-password", PASSWORD, "--data", self.directory,
                       "--gate", "write", "--io-threads", str(self.given.cores), "--checkpoint-log-percent", "0"]
        else:
            script = os.path.join(self.directory, "start.lua")
            with open(script, "w") as file:
                file.write(TARANTOOL % {"port": self.port, "dir": self.directory, "password": PASSWORD,
                                        "memory": max(1 << 30, self.given.tuples * 256)})
            command = [self.path, script]
        cores = "0-%d" % (self.given.cores - 1)
        began = time.time()
        self.process = subprocess.Popen(["taskset", "-c", cores] + command, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        while True:
            try:
                self.admin = Iproto(self.port, PASSWORD)
                return time.time() - began
            except (OSError, EOFError, ValueError):
                if time.time() - began > START_MAX_SECONDS or self.process.poll() is not None:
                    sys.exit("%s does not start" % self.path)
                time.sleep(0.02)

    def restart(self):
        """Kills it and starts it again; seconds and CPU seconds until it has all tuples."""
        self.kill()
        self.prepare_page_cache()
        began = time.time()
        self.start()
        self.admin.socket.sendall(packet(CALL, {FUNCTION_NAME: "box.space.tuples:len", TUPLE: []}))
        answer = self.admin.reply()
        seconds, used = time.time() - began, self.cpu_seconds()
        if not answer.endswith(struct.pack(">BI", 0xCE, self.given.tuples)):
            sys.exit("%s came back without its tuples: %r" % (self.path, answer))
        return seconds, used

    def prepare_page_cache(self):
        if self.given.page_cache == "empty":
            subprocess.run(["sync"], check=True)
            with open("/proc/sys/vm/drop_caches", "w") as file:
                file.write("3")
        elif self.given.page_cache == "filled":
            for entry in os.scandir(self.directory):
                with open(entry.path, "rb") as file:
                    while file.read(1 << 20):
                        pass

    def checkpoint(self):
        """Seconds and CPU seconds of a checkpoint."""
        before, began = self.cpu_seconds(), time.time()
        if self.is_ladon:
            with connect(self.port + 1) as resp:
                resp.sendall(request("BGSAVE"))
                resp.recv(1000)
                answer = b""
                while b"rdb_bgsave_in_progress:0" not in answer:
                    time.sleep(0.02)
                    resp.sendall(request("INFO", "persistence"))
                    answer = resp.recv(1 << 16)
        else:
            self.admin.socket.sendall(packet(EVAL, {EXPRESSION: "box.snapshot()", TUPLE: []}))
            self.admin.reply()
        return time.time() - began, self.cpu_seconds() - before

    def load(self):
        """Seconds and CPU seconds; replies are read by another thread and counted."""
        before, began = self.cpu_seconds(), time.time()
        # A number and a string of eight digits; the batch's number is filled in.
        def tuple_of(low):
            key = b"\xce###" + bytes([low])
            return b"\x92" + key + b"\xa8@@@@@" + b"%03d" % low

        def packet_of(low):
            content = b"\x82\x00" + bytes([REPLACE]) + b"\x01\x01" + b"\x82\x10" + struct.pack(">BH", 0xCD, SPACE)
            content += b"\x21" + tuple_of(low)
            return struct.pack(">BI", 0xCE, len(content)) + content

        template = b"".join(packet_of(low) for low in range(TOGETHER))
        # Batches under way at once: more would pile up as unread replies.
        room = threading.Semaphore(11)

        def send():
            for batch in range(self.given.tuples // TOGETHER):
                room.acquire()
                filled = template.replace(b"###", batch.to_bytes(3, "big")).replace(b"@@@@@", b"%05d" % batch)
                self.admin.socket.sendall(filled)

        sender = threading.Thread(target=send)
        sender.start()
        done, kept = 0, b""
        while done < self.given.tuples:
            data = kept + self.admin.socket.recv(1 << 20)
            at, answered = 0, 0
            while at + 5 <= len(data):
                end = at + 5 + int.from_bytes(data[at + 1:at + 5], "big")
                if end > len(data):
                    break
                assert data[at + 5:at + 12] == b"\x83\x00\xce\0\0\0\0", data[at:end]
                at, answered = end, answered + 1
            for _ in range((done + answered) // TOGETHER - done // TOGETHER):
                room.release()
            done, kept = done + answered, data[at:]
        sender.join()
        return time.time() - began, self.cpu_seconds() - before

    def cpu_seconds(self):
        fields = open("/proc/%d/stat" % self.process.pid).read().rsplit(") ", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def resident_bytes(self):
        for line in open("/proc/%d/smaps_rollup" % self.process.pid):
            if line.startswith("Rss:"):
                return int(line.split()[1]) * 1024
        raise ValueError("no Rss")

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        shutil.rmtree(self.directory)


def measure(path, port, given):
    with Node(path, port, given) as node:
        node.start()
        node.admin.make_space(SPACE, "tuples")
        empty = node.resident_bytes()
        times = {"load": node.load()}
        each = [(node.resident_bytes() - empty) / given.tuples]
        times["restart from the log"] = node.restart()
        each.append((node.resident_bytes() - empty) / given.tuples)
        times["checkpoint"] = node.checkpoint()
        times["restart from the checkpoint"] = node.restart()
        each.append((node.resident_bytes() - empty) / given.tuples)
        rows = [("bytes a tuple: loaded, from the log, from the checkpoint", "%.1f, %.1f, %.1f" % tuple(each))]
        return rows + [(name + ": seconds, CPU seconds", "%.2f, %.2f" % pair) for name, pair in times.items()]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--systems", type=systems, default="ladon=target/release/ladon,tarantool=tarantool",
                        help="name=program, separated by commas")
    parser.add_argument("--port", type=int, default=17800)
    parser.add_argument("--tuples", type=int, default=1_000_000)
    parser.add_argument("--cores", type=int, default=1)
    parser.add_argument("--page-cache", choices=["filled", "empty", "as-left"], default="filled")
    parser.add_argument("--data-root", default="/tmp")
    given = parser.parse_args()
    # Whole batches, and more than 65,535, whose length has five bytes in MessagePack.
    given.tuples = max(given.tuples // TOGETHER * TOGETHER, 1 << 17)
    os.sched_setaffinity(0, {1})
    columns = [measure(path, given.port + 2 * number, given) for number, (_, path) in enumerate(given.systems)]
    print_head("%d tuples" % given.tuples, given.systems)
    for row in zip(*columns):
        print("| %s | %s |" % (row[0][0], " | ".join(cell for _, cell in row)))


if __name__ == "__main__":
    main()
