"""Real work of asynctnt."""
import asyncio
import datetime
import decimal
import uuid

import asynctnt
from asynctnt.api import Isolation
from asynctnt.exceptions import TarantoolDatabaseError, TarantoolError

from common import (ANY, COUNTED, DEFINITIONS, LOG, PORT, SPACE, check, check_survived, crash, done)

WRITERS, LANES = 4, 16


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
    await one.begin(tx_timeout=0.1)
    await one.delete("people", [20])
    await asyncio.sleep(0.3)
    check("its time is over", await code(one.commit()), 231)
    check("and the row is there", len(await conn.select("people", [20])), 1)
    # Transactions whose connection ends are taken back.
    gone = await connect()
    left = gone.stream()
    await left.begin()
    await left.delete("people", [20])
    await gone.disconnect()
    await conn.update("people", [20], [("+", "age", 1)])
    check("no conflict with one that left", rows(await conn.update("people", [20], [("-", "age", 1)])), [[20, "first", 1]])


async def version_of(conn, expected):
    for _ in range(200):
        if conn.schema_id == expected:
            break
        await asyncio.sleep(0.01)
    return conn.schema_id


async def schema_changes(conn):
    """A connection fetches the schema again when a reply says that it has another version."""
    other = await connect()
    version = conn.schema_id
    await other.insert("_index", [SPACE, 5, "nick", "tree", {"unique": False},
                                  [{"field": 3, "type": "string", "is_nullable": True}]])
    await conn.update("people", [2], [("!", 3, "two")])
    check("a new version", await version_of(conn, version + 1), version + 1)
    check("the new index", [row[0] for row in await conn.select("people", ["two"], index="nick")], [2])
    await other.update("_space", [SPACE], [("=", "name", "persons")])
    check("by the id", len(await conn.select(SPACE, [2])), 1)
    check("another version", await version_of(conn, version + 2), version + 2)
    check("a new name", [row[0] for row in await conn.select("persons", ["two"], index="nick")], [2])
    await other.update("_space", [SPACE], [("=", "name", "people")])
    await other.delete("_index", [SPACE, 5])
    check("the index is gone", await code(conn.select(SPACE, ["two"], index=5)), 35)
    await conn.refetch_schema()
    await other.disconnect()


async def write(conn, writer, lane, acknowledged):
    """Commits transactions of two rows until the connection ends with the server."""
    try:
        for number in range(writer * 1_000_000 + lane * 2, (writer + 1) * 1_000_000, LANES * 2):
            stream, pair = conn.stream(), [[number, "one", 0], [number + 1, "two", 0]]
            await asyncio.gather(stream.begin(), *[stream.insert(LOG, row) for row in pair], stream.commit())
            acknowledged.update((row[0], row) for row in pair)
    except (TarantoolError, OSError) as error:
        check("the server's end, not an error of it", isinstance(error, TarantoolDatabaseError), False)


async def crash_under_load():
    acknowledged = {}
    connections = [await connect() for _ in range(WRITERS)]
    lanes = [asyncio.create_task(write(conn, writer, lane, acknowledged))
             for writer, conn in enumerate(connections) for lane in range(LANES)]
    await asyncio.sleep(0.5)
    await asyncio.to_thread(crash)
    await asyncio.gather(*lanes)
    for conn in connections:
        await conn.disconnect()
    return acknowledged


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
    check("sequence", [(await conn.insert(COUNTED, [None]))[0][0] for _ in range(2)], [10, 15])
    await schema_changes(conn)
    acknowledged = await crash_under_load()
    for _ in range(100):
        try:
            found = await conn.select("people", [20])
            break
        except Exception:
            await asyncio.sleep(0.05)
    check("reconnects, and the data is there", rows(found), [[20, "first", 1]])
    check("extension types after the crash", rows(await conn.select(ANY, [1])), [[1] + values])
    found = await conn.select(LOG)
    check_survived(acknowledged, found, WRITERS * LANES * 2)
    numbers = {row[0] for row in found}
    check("half transactions", [number for number in numbers if number ^ 1 not in numbers], [])
    check("the sequence goes on", (await conn.insert(COUNTED, [None]))[0][0], 20)
    await conn.disconnect()


asyncio.run(main())
done()
