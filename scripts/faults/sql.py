"""Statements of SQL that change many rows: what others wait for meanwhile."""
import time

from fault import fault, pings
from iproto import BEGIN, ROLLBACK, Iproto, packet

EXECUTE, SQL_TEXT = 11, 0x40
ROWS = 20_000
SECONDS = 6
# On a busy machine an idle server's p99.9 is up to 10 ms.
OTHER_MS = 15
RIGHT = "p99.9 of another client's PING at most %d ms, and all of every statement or nothing of it" % OTHER_MS
NUMBERS = "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < %d) " % ROWS

TABLES = [
    "CREATE TABLE t (id INT PRIMARY KEY, n INT)",
    "CREATE TABLE log (id INT PRIMARY KEY AUTOINCREMENT, n INT)",
    NUMBERS + "INSERT INTO t SELECT i, 0 FROM r",
]
EACH_ROW = "CREATE TRIGGER a AFTER UPDATE ON t FOR EACH ROW BEGIN INSERT INTO log VALUES (NULL, new.n); END"
EACH_ROW_READS = ("CREATE TRIGGER a AFTER UPDATE ON t FOR EACH ROW BEGIN "
                  "INSERT INTO log SELECT NULL, count(*) FROM t WHERE n > new.n; END")


def stalled(bench, more, statement, stream=0):
    """What a statement, sent over and over, does to another client's PING."""
    server = bench.ladon("--io-threads", "1", "--gate", "none", "--iproto-admin-password", "secret",
                         "--client-transaction-memory", "256mb", iproto=True)
    client = Iproto(server.iproto_port, "secret")
    client.call(*(packet(EXECUTE, {SQL_TEXT: text, 0x41: []}) for text in TABLES + more))
    took = []

    def meanwhile(ends):
        while not ends.is_set():
            began = time.monotonic()
            packets = [packet(EXECUTE, {SQL_TEXT: statement, 0x41: []}, stream)]
            if stream:
                packets = [packet(BEGIN, {}, stream), *packets, packet(ROLLBACK, {}, stream)]
            client.call(*packets)
            took.append(time.monotonic() - began)

    slow, _ = pings(server, SECONDS, meanwhile)
    did = "p99.9 %.1f ms; %d statements of %.0f ms" % (slow, len(took), 1000 * sum(took) / max(len(took), 1))
    return did, slow <= OTHER_MS and len(took) > 0


@fault("UPDATE of %d rows, each of which fires a trigger that writes a row" % ROWS, RIGHT)
def fires(bench):
    return stalled(bench, [EACH_ROW], "UPDATE t SET n = n + 1")


@fault("the same in a stream, rolled back", RIGHT)
def fires_in_stream(bench):
    return stalled(bench, [EACH_ROW], "UPDATE t SET n = n + 1", stream=1)


@fault("UPDATE of 20 rows, each of which fires a trigger that reads %d" % ROWS, RIGHT)
def reads(bench):
    return stalled(bench, [EACH_ROW_READS], "UPDATE t SET n = n + 1 WHERE id <= 20")


@fault("UPDATE of %d rows without triggers" % ROWS, RIGHT)
def updates(bench):
    return stalled(bench, [], "UPDATE t SET n = n + 1")


@fault("INSERT OR REPLACE of %d rows by a query, in a stream, rolled back" % ROWS, RIGHT)
def inserts_in_stream(bench):
    return stalled(bench, [], "INSERT OR REPLACE INTO t SELECT id, n + 1 FROM t", stream=1)
