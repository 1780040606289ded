"""Real work of tarantool-python."""
import datetime
import decimal
import uuid

import tarantool
from tarantool import const
from tarantool.error import DatabaseError

from common import ANY, DEFINITIONS, PORT, SPACE, check, crash, done


def code(work):
    try:
        work()
    except DatabaseError as error:
        return error.code
    return None


def rows(response):
    return [list(row) for row in response]


def connect(user="admin", password="secret", **more):
    return tarantool.Connection("127.0.0.1", PORT, user=user, password=password, **more)


conn = connect()
for space, row in DEFINITIONS:
    conn.insert(space, row)
conn.insert("_user", [40, 1, "ann", "user", {"chap-sha1": "lL3OvhkIPOKh+Vn9Avlkx69M/Ck="}, [], 0])
# What `box.schema.user.create` and a grant of read and write give: session and usage, and public.
for row in ([1, 40, "universe", 0, 8 | 16], [1, 40, "role", 2, 4], [1, 40, "space", SPACE, 1 | 2]):
    conn.insert("_priv", row)
for user, password in (("ann", "wrong"), ("nobody", "x")):
    try:
        connect(user, password)
        check("wrong credentials", "accepted", "refused")
    except DatabaseError as error:
        check("wrong credentials", "User not found or supplied credentials are invalid" in str(error), True)
ann = connect("ann", "test")
check("required features", connect(required_protocol_version=3, required_features=[
    const.IPROTO_FEATURE_STREAMS, const.IPROTO_FEATURE_TRANSACTIONS,
    const.IPROTO_FEATURE_WATCHERS]).ping() >= 0, True)

people = ann.space("people")
for number in range(1, 6):
    people.insert((number, f"name{number}", number * 10 if number != 3 else None))
check("get by name", rows(ann.select("people", "name2", index="name")), [[2, "name2", 20]])
check("nullable key", rows(ann.select("people", None, index="age", iterator=const.ITERATOR_EQ))[0][2], None)
for iterator, key, expected in [
        (const.ITERATOR_EQ, 3, [3]), (const.ITERATOR_REQ, 3, [3]), (const.ITERATOR_GT, 3, [4, 5]),
        (const.ITERATOR_GE, 3, [3, 4, 5]), (const.ITERATOR_LT, 3, [2, 1]),
        (const.ITERATOR_LE, 3, [3, 2, 1]), (const.ITERATOR_ALL, [], [1, 2, 3, 4, 5])]:
    check(f"iterator {iterator}", [row[0] for row in ann.select("people", key, iterator=iterator)], expected)
check("limit and offset", [row[0] for row in ann.select("people", [], limit=2, offset=1)], [2, 3])
check("duplicate", code(lambda: people.insert((1, "other", 1))), 3)
check("duplicate of a second index", code(lambda: people.insert((9, "name1", 1))), 3)
check("wrong type", code(lambda: people.insert(("x", "other", 1))), 23)
check("too few fields", code(lambda: people.insert((9,))), 39)
check("no such space", code(lambda: conn.select(999)), 36)
check("no right", code(lambda: ann.insert(ANY, (1,))), 42)
check("replace", rows(people.replace((5, "five", 55))), [[5, "five", 55]])
check("update", rows(people.update(1, [("+", "age", 5), ("=", "name", "one")])), [[1, "one", 15]])
for operation, by, expected in (("-", 1, 14), ("&", 6, 6), ("|", 1, 7), ("^", 2, 5)):
    check(f"update {operation}", rows(people.update(1, [(operation, 2, by)])), [[1, "one", expected]])
check("two updates of a field", code(lambda: people.update(1, [("+", 2, 1), ("+", 2, 1)])), 29)
check("splice", rows(people.update(1, [(":", 1, 0, 1, "O")])), [[1, "One", 5]])
check("insert and delete a field", rows(people.update(1, [("!", 3, "more"), ("#", 3, 1)])), [[1, "One", 5]])
check("update of a wrong type", code(lambda: people.update(1, [("+", 1, 1)])), 26)
check("update of the primary key", code(lambda: people.update(1, [("=", 0, 7)])), 94)
check("update of none", rows(people.update(99, [("=", 1, "x")])), [])
check("upsert inserts", rows(people.upsert((6, "six", 1), [("+", 2, 1)])), [])
people.upsert((6, "six", 1), [("+", 2, 1)])
check("upsert updates", rows(people.select(6)), [[6, "six", 2]])
check("delete", rows(people.delete(6)), [[6, "six", 2]])
check("delete by another index", rows(ann.delete("people", "five", index="name")), [[5, "five", 55]])
admin_call = lambda name, *arguments: conn.call(f"box.space.{name}", *arguments).data
check("CALL select", admin_call("people:select", [2]), [[[2, "name2", 20]]])
check("CALL get", admin_call("people:get", [2]), [[2, "name2", 20]])
check("CALL insert", admin_call("people:insert", [7, "seven", 70]), [[7, "seven", 70]])
check("CALL replace", admin_call("people:replace", [7, "seven", 71]), [[7, "seven", 71]])
check("CALL update", admin_call("people:update", [7], [["+", 3, 1]]), [[7, "seven", 72]])
check("CALL delete", admin_call("people:delete", [7]), [[7, "seven", 72]])
check("CALL of an index", admin_call("people.index.name:count"), [4])
check("CALL of nothing", code(lambda: conn.call("nothing")), 33)

values = [decimal.Decimal("-12.3400"), uuid.UUID(int=7), tarantool.Datetime(year=2024, month=2, day=29, tz="Europe/Moscow"),
          tarantool.Interval(month=1, sec=-5), b"\x00\xff", 2 ** 64 - 1, -2 ** 63, 1.5, None, True,
          {"a": [1, {"b": 2}]}, "\u00e4\u4e2d"]
conn.insert("values", [1] + values)
check("extension types", rows(conn.select("values", 1)), [[1] + values])
conn.insert("values", [2, decimal.Decimal("0.1")])
check("decimal sum", rows(conn.update("values", 2, [("+", 1, decimal.Decimal("0.2"))])), [[2, decimal.Decimal("0.3")]])

crash()
check("reconnects, and the data is there", rows(people.select(2)), [[2, "name2", 20]])
check("all of it", len(people.select()), 4)
check("extension types after the crash", rows(connect().select("values", 1)), [[1] + values])
done()
