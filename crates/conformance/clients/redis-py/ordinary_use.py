"""What a program that uses redis-py does all day, against the server on argv[1].

Plain asserts; prints the number of checks at the end. Runs with protocol 2 and 3, with the
pure Python parser and, from a pool, from several threads.
"""

import sys
import threading
import time

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

checks = 0


def equal(got, wanted, what=""):
    global checks
    checks += 1
    assert got == wanted, f"{what}: got {got!r}, wanted {wanted!r}"


def raises(kind, text, call, *args, **kwargs):
    global checks
    checks += 1
    try:
        got = call(*args, **kwargs)
    except kind as error:
        assert text in str(error), f"{error!r} does not say {text!r}"
    else:
        raise AssertionError(f"{call} gave {got!r} instead of {kind}")


def strings(r):
    equal(r.set("k", "v"), True)
    equal(r.get("k"), "v")
    equal(r.get("nosuch"), None)
    equal(r.set("k", "w", nx=True), None)
    equal(r.set("k", "w", xx=True, get=True), "v")
    equal(r.set("k", "w", ex=100), True)
    assert 0 < r.ttl("k") <= 100
    equal(r.set("k", "x", keepttl=True), True)
    assert 0 < r.ttl("k") <= 100
    equal(r.setex("k", 10, "v"), True)
    equal(r.psetex("k", 10_000, "v"), True)
    equal(r.setnx("k", "w"), False)
    equal(r.getset("k", "w"), "v")
    equal(r.getdel("k"), "w")
    equal(r.getex("k"), None)
    equal(r.mset({"a": 1, "b": "two"}), True)
    equal(r.mget("a", "b", "c"), ["1", "two", None])
    equal(r.msetnx({"a": 1, "z": 2}), False)
    equal(r.incr("n"), 1)
    equal(r.incrby("n", 10), 11)
    equal(r.decr("n", 5), 6)
    equal(r.incrbyfloat("f", 1.5), 1.5)
    equal(r.append("b", "!"), 4)
    equal(r.strlen("b"), 4)
    equal(r.getrange("b", 0, 1), "tw")
    equal(r.setrange("b", 0, "T"), 4)
    equal(r.lcs("a", "b"), "")
    equal(r.lcs("b", "b", len=True), 4)
    raises(redis.ResponseError, "not an integer", r.incr, "b")
    raises(redis.ResponseError, "invalid expire time", r.setex, "k", 0, "v")
    raw = redis.Redis(connection_pool=r.connection_pool)
    equal(raw.set("bytes", bytes(range(256))), True)
    equal(r.strlen("bytes"), 256)


def generic(r):
    r.flushdb()
    r.mset({"a": 1, "b": 2, "c": 3})
    equal(r.exists("a", "b", "nosuch"), 2)
    equal(r.delete("a", "nosuch"), 1)
    equal(r.unlink("b"), 1)
    equal(r.touch("c"), 1)
    equal(r.type("c"), "string")
    equal(r.type("nosuch"), "none")
    equal(sorted(r.keys("*")), ["c"])
    equal(r.rename("c", "d"), True)
    raises(redis.ResponseError, "no such key", r.rename, "c", "d")
    equal(r.renamenx("d", "e"), True)
    equal(r.copy("e", "f"), True)
    equal(r.copy("e", "f"), False)
    equal(r.copy("e", "f", replace=True), True)
    equal(r.expire("f", 100), True)
    equal(r.expire("f", 50, gt=True), False)
    equal(r.pexpire("f", 100_000, xx=True), True)
    equal(r.expireat("f", 9_999_999_999), True)
    equal(r.expiretime("f"), 9_999_999_999)
    equal(r.pexpiretime("f"), 9_999_999_999_000)
    equal(r.persist("f"), True)
    equal(r.ttl("f"), -1)
    equal(r.pttl("nosuch"), -2)
    equal(r.randomkey() in ("e", "f"), True)
    equal(r.dbsize(), 2)
    equal(r.object("encoding", "e"), "int")
    equal(r.object("refcount", "nosuch"), None)
    r.mset({f"key:{i}": i for i in range(1000)})
    r.sadd("aset", 1)
    equal(len(set(r.scan_iter("key:*", count=37))), 1000)
    equal(list(r.scan_iter(_type="SET")), ["aset"])
    equal(r.move("e", 1), True)
    other = redis.Redis(port=r.connection_pool.connection_kwargs["port"], db=1)
    equal(other.get("e"), b"3")
    other.flushdb()
    other.close()


def sets(r):
    r.flushdb()
    equal(r.sadd("s", "a", "b", "c"), 3)
    equal(r.sadd("s", "a"), 0)
    equal(r.scard("s"), 3)
    equal(r.sismember("s", "a"), 1)
    equal(r.smismember("s", ["a", "x"]), [1, 0])
    equal(r.smembers("s"), {"a", "b", "c"})
    equal(r.srem("s", "c", "x"), 1)
    r.sadd("t", "b", "d")
    equal(set(r.sinter("s", "t")), {"b"})
    equal(set(r.sunion("s", "t")), {"a", "b", "d"})
    equal(set(r.sdiff("s", "t")), {"a"})
    equal(r.sinterstore("i", "s", "t"), 1)
    equal(r.sunionstore("u", "s", "t"), 3)
    equal(r.sdiffstore("d", "s", "t"), 1)
    equal(r.sintercard(2, ["s", "t"]), 1)
    equal(r.sintercard(2, ["s", "t"], limit=1), 1)
    equal(r.smove("s", "t", "a"), True)
    equal(r.srandmember("s"), "b")
    equal(len(r.srandmember("u", -10)), 10)
    equal(set(r.srandmember("u", 10)), {"a", "b", "d"})
    equal(r.spop("s"), "b")
    equal(r.spop("s"), None)
    equal(len(r.spop("u", 2)), 2)
    r.sadd("big", *range(1000))
    equal({int(x) for x in r.sscan_iter("big")}, set(range(1000)))
    raises(redis.ResponseError, "WRONGTYPE", r.get, "big")


def transactions(r):
    r.flushdb()
    with r.pipeline() as pipe:
        pipe.set("a", 1).incr("a").sadd("s", 1).get("a")
        equal(pipe.execute(), [True, 2, 1, "2"])
    with r.pipeline(transaction=False) as pipe:
        for i in range(500):
            pipe.set(f"k{i}", i)
        equal(pipe.execute(), [True] * 500)
    with r.pipeline() as pipe:
        pipe.set("a", "text").incr("a").get("a")
        raises(redis.ResponseError, "not an integer", pipe.execute)
        pipe.set("a", "text").incr("a").get("a")
        got = pipe.execute(raise_on_error=False)
        equal([got[0], got[2]], [True, "text"])
        assert isinstance(got[1], redis.ResponseError)
    with r.pipeline() as pipe:
        pipe.watch("a")
        r.set("a", "changed")
        pipe.multi()
        pipe.set("a", "mine")
        raises(redis.WatchError, "", pipe.execute)
    equal(r.get("a"), "changed")
    r.set("n", 0)
    equal(r.transaction(lambda p: (p.multi(), p.incr("n")), "n"), [1])

    # Optimistic locking from several threads: no increment is lost.
    def add():
        for _ in range(25):
            while True:
                with r.pipeline() as pipe:
                    try:
                        pipe.watch("n")
                        value = int(pipe.get("n"))
                        pipe.multi()
                        pipe.set("n", value + 1)
                        pipe.execute()
                        break
                    except redis.WatchError:
                        continue

    threads = [threading.Thread(target=add) for _ in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    equal(r.get("n"), "101")


def expiry(r):
    r.flushdb()
    r.set("short", 1, px=30)
    r.sadd("s", 1)
    r.pexpire("s", 30)
    time.sleep(0.06)
    equal(r.get("short"), None)
    equal(r.exists("s"), 0)
    equal(r.dbsize(), 0)


def server(r):
    r.flushdb()
    equal(r.ping(), True)
    equal(r.echo("hi"), "hi")
    info = r.info()
    for name in ("redis_version", "connected_clients", "used_memory", "role", "uptime_in_seconds"):
        assert name in info, name
    equal(info["role"], "master")
    assert "cmdstat_ping" in r.info("commandstats")
    r.set("k", 1)
    equal(r.info("keyspace")["db0"]["keys"], 1)
    equal(r.config_get("maxmemory"), {"maxmemory": "0"})
    equal(r.config_set("maxmemory", "100mb"), True)
    equal(r.config_get("maxmem*y")["maxmemory"], str(100 << 20))
    equal(r.config_set("maxmemory", 0), True)
    equal(r.config_resetstat(), True)
    equal(r.client_setname("tester"), True)
    equal(r.client_getname(), "tester")
    assert r.client_id() > 0
    me = [c for c in r.client_list() if c["name"] == "tester"]
    equal(len(me), 1)
    equal(me[0]["lib-name"].startswith("redis-py"), True)
    equal(r.client_info()["name"], "tester")
    equal(r.client_kill_filter(_id=999_999_999), 0)
    seconds, micros = r.time()
    assert abs(seconds - time.time()) < 5 and 0 <= micros < 1_000_000
    assert r.command_count() > 150
    equal(r.command_count(), len(r.command()))
    assert "get" in r.command()
    equal(r.command_getkeys("MSET", "a", 1, "b", 2), ["a", "b"])
    assert isinstance(r.slowlog_get(), list)
    equal(r.slowlog_reset(), True)
    assert r.memory_usage("k") > 0
    assert "keys.count" in r.memory_stats()
    assert r.lastsave() is not None
    equal(r.save(), True)
    equal(r.wait(0, 10), 0)
    equal(r.swapdb(0, 3), True)
    equal(r.swapdb(0, 3), True)
    equal(r.flushall(), True)
    equal(r.lolwut().strip() != "", True)
    raises(redis.ResponseError, "unknown command", r.execute_command, "NOSUCH")


def scripts_of_libraries(r):
    """redis-py's own lock needs scripts; its building blocks do not."""
    equal(r.set("lock", "token", nx=True, px=5000), True)
    equal(r.set("lock", "other", nx=True, px=5000), None)


def reconnecting(port):
    r = redis.Redis(port=port, decode_responses=True, retry=Retry(NoBackoff(), 3), health_check_interval=1)
    me = r.client_id()
    killer = redis.Redis(port=port)
    killer.client_kill_filter(_id=me, skipme=False)
    equal(r.ping(), True)
    assert r.client_id() != me
    r.close()
    killer.close()


def main():
    port = int(sys.argv[1])
    for protocol in (2, 3):
        r = redis.Redis(port=port, protocol=protocol, decode_responses=True, client_name=f"p{protocol}")
        for part in (strings, generic, sets, transactions, expiry, server, scripts_of_libraries):
            r.flushall()
            part(r)
        r.close()
    reconnecting(port)
    print(checks)


main()
