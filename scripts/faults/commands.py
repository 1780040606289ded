"""Commands: what they answer, and how long they keep others waiting."""
import os
import re
import shlex
import socket
import subprocess
import threading
import time

from fault import fault

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def longest_get(server, work, rounds=1):
    """The longest GET of another client while `work(client)` runs, in ms: the least over the rounds."""
    return min(longest_get_of_one(server, work) for _ in range(rounds))


def longest_get_of_one(server, work):
    worker, other, is_over = server.client(), server.client(), threading.Event()

    def run():
        try:
            work(worker)
        finally:
            is_over.set()

    thread, longest = threading.Thread(target=run), 0
    other("SET", "other", "x")
    thread.start()
    while not is_over.is_set():
        began = time.monotonic()
        other("GET", "other")
        longest = max(longest, time.monotonic() - began)
        time.sleep(0.0005)
    thread.join()
    return longest * 1000


def beside_redis(bench, prepare, work, *, factor, rounds=3):
    """Ladon's and Redis' longest GET in the same run; right if Ladon's is at most `factor` times Redis'."""
    times = []
    for server in bench.ladon("--io-threads", "1", "--gate", "none"), bench.redis():
        prepare(server.client())
        times.append(longest_get(server, work, rounds))
        server.kill()
    return "%.0f ms (Redis: %.0f ms)" % tuple(times), times[0] <= max(times[1] * factor, 5)


LONG = b"x" * 50_000_000
# Each byte of a name is looked for in the whole class if a class is read anew for each.
LONG_CLASS = b"*[" + b"bc" * 500_000 + b"]*"


LONG_ARGUMENTS = {
    "HSET": ("HSET", "long", "field", LONG),
    "RPUSH": ("RPUSH", "list", LONG),
    "SADD": ("SADD", "set", LONG),
    "XADD": ("XADD", "stream", "*", "field", LONG),
    "ZADD": ("ZADD", "sorted", "1", LONG),
    "GEOADD": ("GEOADD", "geo", "1", "1", LONG),
    "SETRANGE": ("SETRANGE", "range", "0", LONG),
    "PFADD": ("PFADD", "counter", LONG),
}


@fault("HSET, RPUSH, SADD, XADD, ZADD, GEOADD, SETRANGE, PFADD with an argument of 50 MB: longest GET of another client",
       "at most twice Redis' in the same run")
def long_arguments(bench):
    told, is_right = [], True
    for name, request in LONG_ARGUMENTS.items():
        did, right = beside_redis(bench, lambda client: client("SET", "k", "v"),
                                  lambda client: (client(*request), client("DEL", request[1])), factor=2)
        told.append("%s %s" % (name, did))
        is_right &= right
    return "; ".join(told), is_right


def while_matching(bench, work):
    """The longest GET of another client while names of 1,000 bytes are matched with the class."""
    server = bench.ladon("--io-threads", "1")
    client = server.client()
    for number in range(3):
        client("SET", b"a" * 999 + b"%d" % number, "x")
    longest = longest_get(server, work)
    return "%.0f ms" % longest, longest < 50


@fault("KEYS with a class of 1 MB, names of 1,000 bytes: longest GET of another client", "under 50 ms")
def keys_class(bench):
    return while_matching(bench, lambda client: client("KEYS", LONG_CLASS))


@fault("SCAN MATCH with a class of 1 MB, names of 1,000 bytes: longest GET of another client", "under 50 ms")
def scan_class(bench):
    return while_matching(bench, lambda client: client("SCAN", 0, "MATCH", LONG_CLASS, "COUNT", 10_000))


@fault("PUBLISH on a channel of 1,000 bytes to a pattern with a class of 1 MB: longest GET of another client",
       "under 50 ms")
def publish_class(bench):
    def work(client):
        publisher = work.server.client()
        client("PSUBSCRIBE", LONG_CLASS)
        publisher("PUBLISH", b"a" * 1000, "x")
    server = work.server = bench.ladon("--io-threads", "1")
    longest = longest_get(server, work)
    return "%.0f ms" % longest, longest < 50


STREAM = [
    ["XADD", "stream", "1-0", "a", "1"], ["XADD", "stream", "2-0", "b", "2", "c", "3"], ["XADD", "stream", "3-0", "d", "4"],
    ["XDEL", "stream", "1-0"], ["XGROUP", "CREATE", "stream", "group", "0"],
    ["XREADGROUP", "GROUP", "group", "one", "COUNT", 1, "STREAMS", "stream", ">"],
    ["XGROUP", "CREATECONSUMER", "stream", "group", "two"], ["XGROUP", "CREATE", "empty", "group", "$", "MKSTREAM"],
]
KEYS = [
    ["SET", "string", b"\x00\xff"], ["SET", "expiring", "x", "EXAT", 4000000000], ["RPUSH", "list", *range(2500)],
    ["SADD", "set", *range(2500)], ["HSET", "hash", "a", "1", "b", "2"], ["ZADD", "zset", "1.5", "a", "-inf", "b"],
]
LOOKS = [
    ["GET", "string"], ["PEXPIRETIME", "expiring"], ["LRANGE", "list", 0, -1], ["SCARD", "set"], ["HGETALL", "hash"],
    ["ZRANGE", "zset", 0, -1, "WITHSCORES"], ["XRANGE", "stream", "-", "+"], ["XINFO", "GROUPS", "stream"],
    ["XPENDING", "stream", "group"], ["XINFO", "GROUPS", "empty"], ["DBSIZE"],
]


def exported(bench, *more):
    """Exports a Ladon and imports into a Redis. Returns the exit code, what was said, and both clients."""
    ladon, redis = bench.ladon(), bench.redis()
    source, target = ladon.client(), redis.client()
    for words in KEYS + STREAM + list(more):
        source(*words)
    file = os.path.join(bench.directory(), "moved.rdb")
    for words in (["export", file, "--from", "127.0.0.1:%d" % ladon.port],
                  ["import", file, "--into", "127.0.0.1:%d" % redis.port]):
        run = subprocess.run([bench.ladon_path, *words], capture_output=True, text=True, timeout=60)
        if run.returncode:
            break
    return run.returncode, run.stderr, source, target


@fault("ladon export, and import into a Redis: strings, lists, sets, hashes, sorted sets, streams with groups", "all of it arrives")
def export_all(bench):
    code, said, source, target = exported(bench)
    missing = [look for look in LOOKS if source(*look) != target(*look)]
    return "exit code %d%s; different: %s" % (code, said[-200:], missing or "nothing"), code == 0 and not missing


@fault("ladon export of a set whose members expire, which a Redis cannot hold", "it stops and says so")
def export_refuses(bench):
    code, said, _, _ = exported(bench, ["SADDEX", "times", "EX", 1000, "MEMBERS", 1, "m"])
    return "exit code %d: %s" % (code, said.strip()[-100:]), code != 0 and "times" in said


def wait_for_port(port):
    for _ in range(100):
        try:
            return socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.05)


def mounted(bench, *arguments):
    """A Ladon with a space mounted under `person:`, with two tuples, and two ordinary keys."""
    server = bench.ladon("--iproto-admin-password", "secret", *arguments, iproto=True)
    wait_for_port(server.iproto_port)
    for words in ("create people --field id:unsigned --field name:string", "index people pk --part id:unsigned",
                  "mount people person:"):
        command = [bench.ladon_path, "space", "--iproto", "127.0.0.1:%d" % server.iproto_port, *words.split()]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={"LADON_IPROTO_PASSWORD": "secret"})
    client = server.client()
    for number in 7, 8:
        client("HSET", "person:%d" % number, "name", "ada")
    client("SET", "string", "x")
    client("HSET", "hash", "f", "v")
    return server


@fault("redis-cli --bigkeys, --memkeys, --hotkeys with a mounted prefix", "each goes on to the end")
def tools_on_mounts(bench):
    server = mounted(bench, "--maxmemory-policy", "allkeys-lfu")
    failed = []
    for option in "--bigkeys", "--memkeys", "--hotkeys":
        run = subprocess.run(["redis-cli", "-p", str(server.port), option], capture_output=True, text=True, timeout=30)
        if run.returncode or "Sampled 4 keys" not in run.stdout:
            failed.append("%s: %s" % (option, (run.stdout + run.stderr).strip().split("\n")[-1]))
    return "; ".join(failed) or "each did", not failed


@fault("DBSIZE and INFO keyspace with a mounted prefix", "both count tuples: 4 keys")
def sizes_of_mounts(bench):
    client = mounted(bench).client()
    size, info = client("DBSIZE"), client("INFO", "keyspace").decode().split("\r\n")[1]
    return "%d, %s" % (size, info), size == 4 and "keys=4," in info


ABSENT = [
    ["MODULE", "LIST"], ["ACL", "WHOAMI"], ["ACL", "USERS"],
    ["ACL", "CAT", "nosuch"], ["CLUSTER", "INFO"], ["CLUSTER", "NODES"], ["CLUSTER", "KEYSLOT", "k"], ["READONLY"], ["ASKING"],
    ["REPLICAOF", "NO", "ONE"], ["SLAVEOF", "NO", "ONE"], ["REPLICAOF", "localhost", "x"],
]


@fault("MODULE LIST, ACL WHOAMI, CLUSTER INFO, REPLICAOF NO ONE and their like", "as Redis without any of it")
def absent(bench):
    ladon, redis = bench.ladon().client(), bench.redis().client()
    wrong = [words for words in ABSENT if ladon.error(*words) != redis.error(*words)]
    return "different: %s" % (wrong or "nothing"), not wrong


@fault("BLMOVE and BRPOPLPUSH of a list onto itself, awaited, then others that wait for it", "each is served as in Redis")
def onto_itself(bench):
    seen = []
    for server in bench.ladon("--io-threads", "2"), bench.redis():
        seen.append([])
        for words in ["BLMOVE", "k", "k", "LEFT", "RIGHT", 5], ["BRPOPLPUSH", "k", "k", 5]:
            for elements in ["a"], ["a", "b", "c"]:
                waiting = [server.client() for _ in range(3)]
                for client, wait in zip(waiting, [words, ["BLPOP", "k", 1], ["BLPOP", "k", 1]]):
                    client.send(*wait)
                    time.sleep(0.05)
                pusher = server.client()
                pusher("RPUSH", "k", *elements)
                seen[-1].append([client.reply() for client in waiting] + [pusher("LRANGE", "k", 0, -1)])
                pusher("DEL", "k")
    return "served as in Redis" if seen[0] == seen[1] else "%s, Redis %s" % tuple(seen), seen[0] == seen[1]


def tour(path):
    """The commands of a document's first `console` block, each with what it prints."""
    with open(os.path.join(ROOT, path)) as file:
        block = file.read().split("```console\n")[1].split("```")[0]
    steps = [step.split("\n", 1) for step in block.split("$ ")[1:]]
    return [(command, printed.strip("\n")) for command, printed in steps]


def as_printed(text):
    """Without what differs from run to run: the ids of a stream's entries, and how a terminal shows numbers."""
    return re.sub(r"\d{13}-\d+", "ID", text).strip()


def wrong_steps(server, path, ladon_path):
    """The commands of a document that do not print what it says."""
    environment = dict(os.environ, LADON_IPROTO_PASSWORD="secret")
    wrong = []
    for command, printed in tour(path):
        words = shlex.split(command)
        if words[0] == "redis-cli":
            words[1:1] = ["--no-raw", "-p", str(server.port)]
        elif words[:2] == ["ladon", "space"]:
            words[:2] = [ladon_path, "space", "--iproto", "127.0.0.1:%d" % server.iproto_port]
        else:
            continue  # It starts the server.
        run = subprocess.run(words, capture_output=True, text=True, timeout=30, env=environment)
        if as_printed(run.stdout + run.stderr) != as_printed(printed):
            wrong.append("%s: %s" % (command, (run.stdout + run.stderr).strip()))
    return wrong


@fault("README's first session, then that of docs/mounts.md, on one server", "each command prints what they say")
def tours(bench):
    server = bench.ladon("--iproto-admin-password", "secret", iproto=True)
    wait_for_port(server.iproto_port)
    wrong = [step for path in ("README.md", "docs/mounts.md") for step in wrong_steps(server, path, bench.ladon_path)]
    return "; ".join(wrong) or "each does", not wrong
