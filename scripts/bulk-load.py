#!/usr/bin/env python3
"""Loads many new keys, then measures the CPU of a SET and a GET among them.

    scripts/bulk-load.py --systems ladon=target/release/ladon,redis=redis-server --keys 10000000

One connection sends the keys (16 bytes, values of 40) in a pipeline from the second core. The server has
the first core, with `--cores 2` both, and Ladon then an IO thread for each. `redis-benchmark` (50
connections, pipelines of 16, random keys) sends the SETs and GETs. Prints the load's seconds, the
server's CPU seconds and memory after it, how much of that is in huge pages right after the load and
later, and CPU microseconds for each command.
"""
import os, subprocess, threading, time

from servers import Server, connect, options, print_head, request

TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid):
    fields = open("/proc/%d/stat" % pid).read().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def megabytes(pid, name):
    for line in open("/proc/%d/smaps_rollup" % pid):
        if line.startswith(name + ":"):
            return int(line.split()[1]) / 1024


def load(port, keys):
    """Sends `SET key:NNNNNNNNNNNN VALUE` for every number, and reads every reply."""
    template = b"".join(request("SET", b"key:#########%03d" % key, b"x" * 40) for key in range(1000))
    with connect(port) as connection:
        def send():
            for number in range(keys // 1000):
                connection.sendall(template.replace(b"#########", b"%09d" % number))

        sender = threading.Thread(target=send)
        sender.start()
        left = keys // 1000 * 1000 * len(b"+OK\r\n")
        while left:
            received = len(connection.recv(1 << 18))
            assert received, "the server hangs up"
            left -= received
        sender.join()


def benchmark(port, pid, command, keys, operations):
    before = cpu_seconds(pid)
    subprocess.run(["redis-benchmark", "-p", str(port), "-c", "50", "-P", "16", "-n", str(operations), "-r",
                    str(keys), "-d", "40", "-q"] + command, check=True, stdout=subprocess.DEVNULL)
    return (cpu_seconds(pid) - before) / operations * 1e6


def measure(path, port, given):
    with Server(path, port, cores=given.cores) as server:
        pid, began = server.process.pid, time.time()
        load(port, given.keys)
        seconds, used = time.time() - began, cpu_seconds(pid)
        huge = megabytes(pid, "AnonHugePages")
        time.sleep(given.pause)
        later = megabytes(pid, "AnonHugePages")
        memory = megabytes(pid, "Rss")
        key = "key:__rand_int__"
        costs = [benchmark(port, pid, command, given.keys, given.operations)
                 for command in (["SET", key, "x" * 40], ["GET", key])]
        return "%.1f s, CPU %.1f s, %.0f MB, huge %.0f, %.0f; %.2f, %.2f" % (
            seconds, used, memory, huge, later, *costs)


def main():
    parser = options(__doc__, {}, port=17700)
    parser.add_argument("--keys", type=int, default=2_000_000)
    parser.add_argument("--cores", type=int, default=1)
    parser.add_argument("--pause", type=float, default=2, help="seconds between the load and the rest")
    parser.add_argument("--operations", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=1)
    given = parser.parse_args()
    os.sched_setaffinity(0, {0, 1} if given.cores == 2 else {1})
    print_head("round: load, CPU, memory, huge pages in MB at once and later; CPU us of a SET, a GET", given.systems)
    for number in range(given.rounds):
        cells = [measure(path, given.port + number * len(given.systems) + offset, given)
                 for offset, (_, path) in enumerate(given.systems)]
        print("| %d | %s |" % (number + 1, " | ".join(cells)), flush=True)


if __name__ == "__main__":
    main()
