"""Interactive transactions over IPROTO: what they may break, and what they may hold."""
import time

from fault import ReplyError, fault
from iproto import (BEGIN, COMMIT, INDEX_ID, INSERT, ITERATOR, KEY, LIMIT, OFFSET, REPLACE, SELECT, SPACE_ID,
                    TUPLE, UPDATE, Iproto, code_of, packet)

UPSERT, OPERATIONS, INDEX_BASE = 9, 40, 21
SPACE, INDEX = 280, 288
PARENT, CHILD = 512, 513


def started(bench, *arguments, **more):
    password = "secret"
    return bench.ladon("--requirepass", password, "--iproto-admin-password", password, *arguments, iproto=True, **more)


def connected(server):
    return Iproto(server.iproto_port, "secret")


def asked(client, kind, body, stream=0):
    """The code of the error that a request is answered with; 0 of none."""
    client.socket.sendall(packet(kind, body, stream))
    return code_of(client.any_reply())


def make_spaces(client):
    """A parent with a unique name beside its number, and a child that names it."""
    unique, other = {"unique": True}, {"unique": False}
    key = {"named": {"space": PARENT, "field": {1: 1}}}
    client.call(
        packet(INSERT, {SPACE_ID: SPACE, TUPLE: [PARENT, 1, "parent", "memtx", 0, {}, []]}),
        packet(INSERT, {SPACE_ID: INDEX, TUPLE: [PARENT, 0, "pk", "tree", unique, [[0, "unsigned"]]]}),
        packet(INSERT, {SPACE_ID: INDEX, TUPLE: [PARENT, 1, "name", "tree", unique, [[1, "string"]]]}),
        packet(INSERT, {SPACE_ID: SPACE, TUPLE: [CHILD, 1, "child", "memtx", 0, {"foreign_key": key}, []]}),
        packet(INSERT, {SPACE_ID: INDEX, TUPLE: [CHILD, 0, "pk", "tree", unique, [[0, "unsigned"]]]}),
        packet(INSERT, {SPACE_ID: INDEX, TUPLE: [CHILD, 1, "of", "tree", other, [[1, "string"]]]}))


def names_of(client, space):
    """The second fields of all tuples: strings of one letter."""
    body = {SPACE_ID: space, INDEX_ID: 0, ITERATOR: 2, OFFSET: 0, LIMIT: 100, KEY: []}
    client.socket.sendall(packet(SELECT, body))
    reply, names = client.reply(), set()
    for letter in b"xyz":
        if b"\xdb\x00\x00\x00\x01" + bytes([letter]) in reply:
            names.add(chr(letter))
    return names


def broken(bench, before, first, others):
    """One transaction runs `first`, others commit, then it commits: its code, and who names nobody."""
    directory = bench.directory()
    server = started(bench, directory=directory)
    one, other = connected(server), connected(server)
    make_spaces(other)
    other.call(*(packet(kind, body) for kind, body in before))
    one.call(packet(BEGIN, {}, 1), packet(*first, 1))
    other.call(*(packet(kind, body) for kind, body in others))
    code = asked(one, COMMIT, {}, 1)
    lost = names_of(other, CHILD) - names_of(other, PARENT)
    server.kill()
    other = connected(started(bench, directory=directory))
    lost_after = names_of(other, CHILD) - names_of(other, PARENT)
    did = "COMMIT: %s; named and gone: %s, after a restart %s" % (
        code or "OK", ", ".join(lost) or "nobody", ", ".join(lost_after) or "nobody")
    return did, code == 97 and not lost and not lost_after


CONFLICT = "COMMIT: 97 (ER_TRANSACTION_CONFLICT); nobody is named and gone"
PUT_Y = (INSERT, {SPACE_ID: PARENT, TUPLE: [5, "y"]})
NAME_Y = (INSERT, {SPACE_ID: CHILD, TUPLE: [7, "y"]})


@fault("REPLACE of a parent in a transaction; others insert it with another name, and a child of that", CONFLICT)
def replaced_parent(bench):
    return broken(bench, [], (REPLACE, {SPACE_ID: PARENT, TUPLE: [5, "x"]}), [PUT_Y, NAME_Y])


@fault("the same by an UPDATE of the parent", CONFLICT)
def updated_parent(bench):
    update = {SPACE_ID: PARENT, INDEX_ID: 0, KEY: [5], TUPLE: [["=", 1, "x"]], INDEX_BASE: 0}
    before = [(INSERT, {SPACE_ID: PARENT, TUPLE: [5, "z"]})]
    return broken(bench, before, (UPDATE, update), [(REPLACE, PUT_Y[1]), NAME_Y])


@fault("an UPSERT of a child in a transaction; others insert the child, which its operations then change", CONFLICT)
def upserted_child(bench):
    upsert = {SPACE_ID: CHILD, TUPLE: [7, "x"], OPERATIONS: [["=", 1, "z"]], INDEX_BASE: 0}
    before = [(INSERT, {SPACE_ID: PARENT, TUPLE: [4, "x"]}), PUT_Y]
    return broken(bench, before, (UPSERT, upsert), [NAME_Y])


DATA = 600
TUPLES, TUPLE_BYTES = 12_000, 5_000


def put_all(client, letter):
    text = letter * TUPLE_BYTES
    client.call(*(packet(REPLACE, {SPACE_ID: DATA, TUPLE: [number, text]}) for number in range(TUPLES)))


def used_memory(server):
    client = server.client()
    client("AUTH", "secret")
    info = client("INFO", "memory").decode()
    return int(next(line for line in info.split("\r\n") if line.startswith("used_memory:")).split(":")[1])


@fault("six transactions with one SELECT each, 60 MB of tuples replaced after each of them",
       "used_memory says what they keep; beyond transaction-memory (256mb) those opened first end with 231, and "
       "the memory falls")
def old_copies(bench):
    server = started(bench)
    writer = connected(server)
    writer.make_space(DATA, "data")
    put_all(writer, "a")
    readers, most = [], 0
    one = {SPACE_ID: DATA, INDEX_ID: 0, ITERATOR: 0, OFFSET: 0, LIMIT: 1, KEY: [1]}
    for letter in "bcdefg":
        readers.append(connected(server))
        readers[-1].call(packet(BEGIN, {}, 1), packet(SELECT, one, 1))
        put_all(writer, letter)
        resident, used = server.rss_bytes(), used_memory(server)
        if resident > most:
            most, used_then = resident, used
    time.sleep(2.5)
    codes = [asked(reader, SELECT, one, 1) for reader in readers]
    end, used = server.rss_bytes(), used_memory(server)
    did = "codes %s; at most %d MB resident (used_memory %d MB), at the end %d (%d)" % (
        codes, most >> 20, used_then >> 20, end >> 20, used >> 20)
    is_counted = used_then > most * 0.7 and used > end * 0.7
    is_ended = 1 <= codes.count(231) < 6 and codes == sorted(codes, reverse=True)
    return did, is_counted and is_ended and end < 360 << 20


@fault("--maxmemory 100mb: four connections with uncommitted REPLACEs, then SETs of another",
       "they get 2 (ER_MEMORY_ISSUE) at their own bound; the SETs succeed")
def uncommitted_data(bench):
    server = started(bench, "--maxmemory", "100mb")
    clients = [connected(server) for _ in range(4)]
    clients[0].make_space(DATA, "data")
    refused, text = 0, "a" * TUPLE_BYTES
    for at, client in enumerate(clients):
        client.call(packet(BEGIN, {}, 1))
        for number in range(15_000):
            code = asked(client, REPLACE, {SPACE_ID: DATA, TUPLE: [at * 100_000 + number, text]}, 1)
            if code:
                refused += code == 2
                break
    redis = server.client()
    redis("AUTH", "secret")
    written = 0
    for number in range(1_000):
        try:
            written += redis("SET", "key:%d" % number, "x" * 1_000) == "OK"
        except ReplyError:
            pass
    did = "%d of 4 transactions refused, %d of 1000 SETs written" % (refused, written)
    return did, refused == 4 and written == 1_000
