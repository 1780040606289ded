"""Real work of asynctnt."""
import asyncio
import datetime
import decimal
import uuid

import asynctnt
from asynctnt.api import Isolation
from asynctnt.exceptions import TarantoolDatabaseError

from common import ANY, DEFINITIONS, PORT, check, crash, done


async def code(work):
    try:
        await work
    except TarantoolDatabaseError as error:
        return error.code
    return None


def rows(response):
    return [list(row) for row in response]


async def connect(username="admin", password="secret", **more):
    conn = asynctnt.Connection(host="127.0.0.1", port=PORT, username=username, password=password,
                               reconnect_timeout=0.05, **more)
    await conn.connect()
    return conn


async def transactions(conn):
    one, other = conn.stream(), conn.stream()
    await one.begin(Isolation.DEFAULT, tx_timeout=10)
    await one.insert("people", [20, "twenty", 1])
    check("hidden before the commit", rows(await conn.select("people", [20])), [])
    check("seen in the stream", len(await one.select("people", [20])), 1)
    await one.commit()
    check("seen after the commit", len(await conn.select("people", [20])), 1)
    await one.begin()
    await one.delete("people", [20])
    await one.rollback()
    check("rolled back", len(await conn.select("people", [20])), 1)
    await one.begin()
    await other.begin()
    for stream, name in ((one, "first"), (other, "second")):
        await stream.select("people", [20])
        await stream.update("people", [20], [("=", "name", name)])
    await one.commit()
    check("conflict", await code(other.commit()), 97)
    check("the first one counts", (await conn.select("people", [20]))[0]["name"], "first")


async def main():
    conn = await connect()
    for space, row in DEFINITIONS:
        await conn.insert(space, row)
    await conn.refetch_schema()
    check("features", (conn.features.streams, conn.features.watchers, conn.features.transactions), (True,) * 3)
    try:
        await asynctnt.connect(host="127.0.0.1", port=PORT, username="admin", password="wrong",
                               reconnect_timeout=0)
        check("wrong password", "accepted", "refused")
    except TarantoolDatabaseError as error:
        check("wrong password", error.code, 47)
    # Many requests at once on one connection.
    await asyncio.gather(*[conn.insert("people", [number, f"name{number}", number % 3]) for number in range(1, 11)])
    check("by the format's names", (await conn.select("people", {"id": 3}))[0]["name"], "name3")
    check("second index", [row["id"] for row in await conn.select("people", [1], index="age")], [1, 4, 7, 10])
    Iterator = asynctnt.Iterator
    for iterator, expected in [(Iterator.EQ, [5]), (Iterator.REQ, [5]), (Iterator.GE, [5, 6, 7]), (Iterator.GT, [6, 7, 8]),
                               (Iterator.LE, [5, 4, 3]), (Iterator.LT, [4, 3, 2])]:
        found = await conn.select("people", [5], iterator=iterator, limit=3)
        check(f"iterator {iterator}", [row["id"] for row in found], expected)
    check("duplicate", await code(conn.insert("people", [1, "other", 1])), 3)
    check("duplicate of a second index", await code(conn.insert("people", [99, "name1", 1])), 3)
    check("wrong type", await code(conn.insert("people", ["x", "other", 1])), 23)
    check("no such space", await code(conn.select(999)), 36)
    check("update", rows(await conn.update("people", [1], [("+", "age", 5), ("=", "name", "one")])), [[1, "one", 6]])
    check("splice", rows(await conn.update("people", [1], [(":", "name", 0, 1, "O")])), [[1, "One", 6]])
    check("insert and delete a field", rows(await conn.update("people", [1], [("!", 3, 1), ("#", 3, 1)])), [[1, "One", 6]])
    await conn.upsert("people", [50, "fifty", 1], [("+", "age", 1)])
    await conn.upsert("people", [50, "fifty", 1], [("+", "age", 1)])
    check("upsert", rows(await conn.delete("people", [50])), [[50, "fifty", 2]])
    check("replace", rows(await conn.replace("people", {"id": 10, "name": "ten", "age": None})), [[10, "ten", None]])
    check("CALL select", list(await conn.call("box.space.people:select", [[10]])), [[[10, "ten", None]]])
    check("CALL16 select", rows(await conn.call16("box.space.people:select", [[10]])), [[10, "ten", None]])
    await transactions(conn)
    values = [decimal.Decimal("-12.34"), uuid.UUID(int=7), datetime.datetime(2024, 2, 29, 1, 2, 3, 4, datetime.timezone(datetime.timedelta(hours=3))),
              asynctnt.MPInterval(month=1, sec=-5), 2 ** 64 - 1, -2 ** 63, 1.5, None, True, {"a": [1, {"b": 2}]}]
    await conn.insert("values", [1] + values)
    check("extension types", rows(await conn.select("values", [1])), [[1] + values])
    await asyncio.to_thread(crash)
    for _ in range(100):
        try:
            found = await conn.select("people", [20])
            break
        except Exception:
            await asyncio.sleep(0.05)
    check("reconnects, and the data is there", rows(found), [[20, "first", 1]])
    check("extension types after the crash", rows(await conn.select(ANY, [1])), [[1] + values])
    await conn.disconnect()


asyncio.run(main())
done()
