"""Real work of tarantool-python."""
import datetime
import decimal
import time
import uuid

import tarantool
from tarantool import Mode, const
from tarantool.error import DatabaseError, NetworkError, PoolTopologyError

from common import (ANY, COUNTED, DEFINITIONS, FORMAT, LOG, PORT, SPACE, check, check_survived, crash_under_load,
                    done)


def code(work):
    try:
        work()
    except DatabaseError as error:
        return error.code
    return None


def rows(response):
    return [list(row) for row in response]


def ids(response):
    return [row[0] for row in response]


def connect(user="admin", password="secret", **more):
    return tarantool.Connection("127.0.0.1", PORT, user=user, password=password, **more)


def define(conn):
    for space, row in DEFINITIONS:
        conn.insert(space, row)
    # The password is `test`. The rights are those of `box.schema.user.create`, and read and write.
    conn.insert("_user", [40, 1, "ann", "user", {"chap-sha1": "lL3OvhkIPOKh+Vn9Avlkx69M/Ck="}, [], 0])
    for row in ([1, 40, "universe", 0, 8 | 16], [1, 40, "role", 2, 4], [1, 40, "space", SPACE, 1 | 2]):
        conn.insert("_priv", row)


def logins(conn):
    for user, password in (("ann", "wrong"), ("nobody", "x"), ("ann", None)):
        try:
            connect(user, password)
            check("wrong credentials", "accepted", "refused")
        except DatabaseError as error:
            check("wrong credentials", "User not found or supplied credentials are invalid" in str(error), True)
    check("required features", connect(required_protocol_version=3, required_features=[
        const.IPROTO_FEATURE_STREAMS, const.IPROTO_FEATURE_TRANSACTIONS,
        const.IPROTO_FEATURE_WATCHERS]).ping() >= 0, True)
    guest = tarantool.Connection("127.0.0.1", PORT)
    check("guest may ping", guest.ping() >= 0, True)
    check("guest may not read", code(lambda: guest.select(SPACE)), 42)
    guest.authenticate("ann", "test")
    check("ann may read, on the same connection", rows(guest.select(SPACE)), [])


def reads(ann, people):
    for number in range(1, 6):
        people.insert((number, f"name{number}", number * 10 if number != 3 else None))
    check("get by name", rows(ann.select("people", "name2", index="name")), [[2, "name2", 20]])
    check("nil in a key", ids(ann.select("people", [None, "name3"], index="age_name")), [3])
    check("nil is first", ids(ann.select("people", [], index="age", limit=2)), [3, 1])
    check("part of a key", ids(ann.select("people", [20], index="age_name")), [2])
    check("whole key", ids(ann.select("people", [20, "name2"], index="age_name")), [2])
    check("collation", ids(ann.select("people", "NAME4", index="any_case")), [4])
    for iterator, key, expected in [
            (const.ITERATOR_EQ, 3, [3]), (const.ITERATOR_REQ, 3, [3]), (const.ITERATOR_GT, 3, [4, 5]),
            (const.ITERATOR_GE, 3, [3, 4, 5]), (const.ITERATOR_LT, 3, [2, 1]),
            (const.ITERATOR_LE, 3, [3, 2, 1]), (const.ITERATOR_ALL, [], [1, 2, 3, 4, 5])]:
        check(f"iterator {iterator}", ids(ann.select("people", key, iterator=iterator)), expected)
    check("limit and offset", ids(ann.select("people", [], limit=2, offset=1)), [2, 3])


def errors(conn, ann, people):
    check("duplicate", code(lambda: people.insert((1, "other", 1))), 3)
    check("duplicate of a second index", code(lambda: people.insert((9, "name1", 1))), 3)
    check("wrong type", code(lambda: people.insert(("x", "other", 1))), 23)
    check("too few fields", code(lambda: people.insert((9,))), 39)
    check("no such space", code(lambda: conn.select(999)), 36)
    check("no such index", code(lambda: conn.select("people", 1, index=9)), 35)
    check("no right", code(lambda: ann.insert(ANY, (1,))), 42)
    check("wrong key", code(lambda: people.select("x")), 18)
    check("update by a key that is not unique", code(lambda: people.update(10, [("=", 1, "x")], index="age")), 41)
    check("two updates of a field", code(lambda: people.update(1, [("+", 2, 1), ("+", 2, 1)])), 29)
    check("update of a wrong type", code(lambda: people.update(1, [("+", 1, 1)])), 26)
    check("update of the primary key", code(lambda: people.update(1, [("=", 0, 7)])), 94)
    check("update of no field", code(lambda: people.update(1, [("+", 9, 7)])), 37)
    check("CALL of nothing", code(lambda: conn.call("nothing")), 33)
    check("nothing of it happened", rows(people.select(1)), [[1, "name1", 10]])


def changes(ann, people):
    check("replace", rows(people.replace((5, "five", 55))), [[5, "five", 55]])
    check("update", rows(people.update(1, [("+", "age", 5), ("=", "name", "one")])), [[1, "one", 15]])
    for operation, by, expected in (("-", 1, 14), ("&", 6, 6), ("|", 1, 7), ("^", 2, 5)):
        check(f"update {operation}", rows(people.update(1, [(operation, 2, by)])), [[1, "one", expected]])
    check("splice", rows(people.update(1, [(":", 1, 0, 1, "O")])), [[1, "One", 5]])
    check("insert and delete a field", rows(people.update(1, [("!", 3, "more"), ("#", 3, 1)])), [[1, "One", 5]])
    check("update of none", rows(people.update(99, [("=", 1, "x")])), [])
    check("upsert inserts", rows(people.upsert((6, "six", 1), [("+", 2, 1)])), [])
    people.upsert((6, "six", 1), [("+", 2, 1)])
    check("upsert updates", rows(people.select(6)), [[6, "six", 2]])
    check("delete", rows(people.delete(6)), [[6, "six", 2]])
    check("delete by another index", rows(ann.delete("people", "five", index="name")), [[5, "five", 55]])
    check("delete of none", rows(people.delete(6)), [])


# tarantool-python takes a single list for the list of all arguments.
def calls(conn):
    call = lambda name, *arguments: conn.call(f"box.space.{name}", list(arguments)).data
    check("CALL select", call("people:select", [2]), [[[2, "name2", 20]]])
    check("CALL select with options", call("people:select", [2], {"iterator": "GT", "limit": 1}), [[[3, "name3", None]]])
    check("CALL get", call("people:get", [2]), [[2, "name2", 20]])
    check("CALL get of none", call("people:get", [77]), [])
    check("CALL insert", call("people:insert", [7, "seven", 70]), [[7, "seven", 70]])
    check("CALL replace", call("people:replace", [7, "seven", 71]), [[7, "seven", 71]])
    check("CALL update", call("people:update", [7], [["+", 3, 1]]), [[7, "seven", 72]])
    call("people:upsert", [7, "seven", 1], [["-", 3, 2]])
    check("CALL delete", call("people:delete", [7]), [[7, "seven", 70]])
    check("CALL of an index", call("people.index.name:count"), [4])
    check("CALL min and max", call("people.index.pk:min") + call("people.index.pk:max"), [[1, "One", 5], [4, "name4", 40]])


def values(conn):
    row = [decimal.Decimal("-12.3400"), uuid.UUID(int=7),
           tarantool.Datetime(year=2024, month=2, day=29, nsec=123456789, tz="Europe/Moscow"),
           tarantool.Interval(month=1, sec=-5), b"\x00\xff", 2 ** 64 - 1, -2 ** 63, 1.5, None, True,
           {"a": [1, {"b": 2}]}, "\u00e4\u4e2d"]
    conn.insert("values", [1] + row)
    check("extension types", rows(conn.select("values", 1)), [[1] + row])
    conn.insert("values", [2, decimal.Decimal("0.1")])
    check("decimal sum", rows(conn.update("values", 2, [("+", 1, decimal.Decimal("0.2"))])), [[2, decimal.Decimal("0.3")]])
    large = "x" * 1_000_000
    conn.insert("values", [3, large])
    check("a long string", conn.select("values", 3)[0][1] == large, True)
    check("too long", code(lambda: conn.insert("values", [4, large * 2])), 110)
    return [1] + row


def sequences(conn):
    check("a number of the sequence", ids(conn.insert(COUNTED, [None, "first"])), [10])
    check("the next one", ids(conn.insert(COUNTED, [None, "second"])), [15])
    check("a number of our own", ids(conn.insert(COUNTED, [500, "ours"])), [500])
    check("goes on after it", ids(conn.insert(COUNTED, [None, "third"])), [505])
    check("`_sequence_data`", rows(conn.select("_sequence_data", 60)), [[60, 505]])


def schema_changes(conn, ann):
    """A connection with the old schema in its cache sees the new one."""
    # The connector sends no version until it was given one.
    ann.update_schema(ann.select("people", 2).schema_version)
    version = ann.schema_version
    conn.replace("_space", [SPACE, 1, "people", "memtx", 0, {}, FORMAT + [{"name": "nick", "type": "string", "is_nullable": True}]])
    conn.insert("_index", [SPACE, 5, "nick", "tree", {"unique": False}, [{"field": 3, "type": "string", "is_nullable": True}]])
    check("a request with the old version", ids(ann.select("people", 2)), [2])
    check("brings the new one", ann.schema_version, version + 2)
    check("a field by its new name", rows(ann.update("people", 2, [("=", "nick", "two")])), [[2, "name2", 20, "two"]])
    check("a new index", ids(ann.select("people", "two", index="nick")), [2])
    conn.update("_index", [SPACE, 5], [("=", 2, "nickname")])
    check("an index's new name", ids(ann.select("people", "two", index="nickname")), [2])
    check("wrong for the format", code(lambda: ann.insert("people", (8, "eight", 80, 8))), 23)
    conn.delete("_index", [SPACE, 5])
    check("an index that is gone", code(lambda: ann.select("people", "two", index=5)), 35)
    conn.insert("_space", [710, 1, "short", "memtx", 0, {}, []])
    conn.insert("_index", [710, 0, "pk", "tree", {"unique": True}, [[0, "string"]]])
    conn.insert("short", ["a"])
    conn.delete("_index", [710, 0])
    conn.delete("_space", [710])
    check("a space that is gone", code(lambda: conn.select(710)), 36)
    conn.delete("_priv", [40, "space", SPACE])
    check("the right is gone", code(lambda: ann.select(SPACE)), 42)
    conn.insert("_priv", [1, 40, "space", SPACE, 1])
    check("the right to read is back", ids(ann.select(SPACE, 2)), [2])
    check("not that to write", code(lambda: ann.delete(SPACE, 2)), 42)


def pooled():
    """A pool asks `box.info` of each member, which is writable."""
    address = {"host": "127.0.0.1", "port": PORT}
    pool = tarantool.ConnectionPool(addrs=[address], user="admin", password="secret", refresh_delay=0.05)
    for mode in (Mode.ANY, Mode.RW, Mode.PREFER_RO, Mode.PREFER_RW):
        check(f"the pool in {mode}", ids(pool.select(SPACE, 2, mode=mode)), [2])
    check("the pool writes", ids(pool.replace(SPACE, [90, "pooled", 90])), [90])
    check("and deletes", ids(pool.delete(SPACE, 90)), [90])
    try:
        pool.ping(mode=Mode.RO)
        check("a member that is read-only", "found", "none")
    except PoolTopologyError:
        check("a member that is read-only", "none", "none")
    return pool


def main():
    conn = connect()
    define(conn)
    logins(conn)
    ann = connect("ann", "test")
    people = ann.space("people")
    reads(ann, people)
    errors(conn, ann, people)
    changes(ann, people)
    calls(conn)
    row = values(conn)
    sequences(conn)
    schema_changes(conn, ann)
    mesh = tarantool.MeshConnection(addrs=[{"host": "127.0.0.1", "port": PORT}, {"host": "127.0.0.1", "port": PORT}],
                                    user="admin", password="secret")
    pool = pooled()
    acknowledged = crash_under_load(connect)
    # Connections made before the crash.
    check("reconnects, and the data is there", rows(ann.select(SPACE, 2)), [[2, "name2", 20, "two"]])
    check("a mesh too", len(mesh.select(SPACE)), 4)
    for _ in range(100):
        try:
            found = ids(pool.select(SPACE, 2, mode=Mode.RW))
            break
        except (NetworkError, PoolTopologyError) as error:
            # The pool has not yet asked the member again.
            found = str(error)
            time.sleep(0.05)
    check("a pool too", found, [2])
    pool.close()
    check_survived(acknowledged, conn.select(LOG))
    check("extension types after the crash", rows(connect().select("values", 1)), [row])
    check("the sequence goes on", conn.insert(COUNTED, [None, "fourth"])[0][0], 510)
    conn.close()
    done()


main()
