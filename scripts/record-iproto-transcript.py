#!/usr/bin/env python3
"""Records what a real tarantool replies to every kind of request that Ladon knows too.

    scripts/record-iproto-transcript.py PORT > crates/conformance/recorded/iproto_transcript.txt

Starts `tarantool` on the port with an empty folder, and ends it. One exchange a line: its name, the
packet that was sent and the one that came back, in hexadecimal and without their lengths. All run on
one connection, first as `admin`, then as `guest`, who may do nothing but read one space. In place of a
packet that was sent, `@USER:PASSWORD` is a login by chap-sha1, which depends on the greeting.
"""
import base64
import hashlib
import itertools
import re
import socket
import struct
import subprocess
import sys
import tempfile
import time

SCRIPT = """
box.cfg{{listen = '127.0.0.1:{port}', log_level = 0, wal_mode = 'none'}}
box.schema.user.passwd('admin', 'secret')
require('fiber').sleep(600)
"""
SELECT, INSERT, REPLACE, UPDATE, DELETE, CALL_16, AUTH, EVAL, UPSERT, CALL, NOP, PING = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 64
SPACE, INDEX, USER, PRIV, TRUNCATE, SEQUENCE, FUNC, SPACE_SEQUENCE = 280, 288, 304, 312, 330, 284, 296, 340
ITERATORS = ["EQ", "REQ", "ALL", "LT", "LE", "GE", "GT", "BITS_ALL_SET", "BITS_ANY_SET", "BITS_ALL_NOT_SET", "OVERLAPS", "NEIGHBOR"]
class Packed(bytes):
    """MessagePack as it is."""


# 1.5, 38 nines, and a UUID.
DECIMAL, NINES, UUID = b"\xc7\x03\x01\x01\x01\x5c", Packed(b"\xc7\x15\x01\x00\x09" + b"\x99" * 18 + b"\x9c"), b"\xd8\x02" + bytes(range(16))



def head(short, longs, length):
    if short is not None and length < short[1]:
        return bytes([short[0] | length])
    for first, size in longs:
        if length < 1 << 8 * size:
            return bytes([first]) + length.to_bytes(size, "big")


def pack(value):
    if isinstance(value, Packed):
        return bytes(value)
    if value is None or isinstance(value, bool):
        return {None: b"\xc0", False: b"\xc2", True: b"\xc3"}[value]
    if isinstance(value, int):
        if value < 0:
            return struct.pack("b", value) if value >= -32 else b"\xd3" + struct.pack(">q", value)
        return head((0, 128), [(0xCC, 1), (0xCD, 2), (0xCE, 4), (0xCF, 8)], value)
    if isinstance(value, float):
        return b"\xcb" + struct.pack(">d", value)
    if isinstance(value, str):
        data = value.encode()
        return head((0xA0, 32), [(0xD9, 1), (0xDA, 2), (0xDB, 4)], len(data)) + data
    if isinstance(value, bytes):
        return head(None, [(0xC4, 1), (0xC5, 2), (0xC6, 4)], len(value)) + value
    if isinstance(value, list):
        return head((0x90, 16), [(0xDC, 2), (0xDD, 4)], len(value)) + b"".join(map(pack, value))
    return head((0x80, 16), [(0xDE, 2), (0xDF, 4)], len(value)) + b"".join(pack(k) + pack(v) for k, v in value.items())


def select(space, key, index=0, iterator=0, limit=100, offset=0):
    return SELECT, {16: space, 17: index, 18: limit, 19: offset, 20: iterator, 32: key}


def put(space, row, kind=INSERT):
    return kind, {16: space, 33: row}


def update(space, key, operations, index=0, base=0):
    return UPDATE, {16: space, 17: index, 21: base, 32: key, 33: operations}


def upsert(space, row, operations, base=0):
    return UPSERT, {16: space, 21: base, 33: row, 40: operations}


def delete(space, key, index=0):
    return DELETE, {16: space, 17: index, 32: key}


def call(name, *arguments, kind=CALL):
    return kind, {34: name, 33: list(arguments)}


def space(number, name, form=(), **more):
    row = [number, 1, name, more.get("engine", "memtx"), more.get("count", 0), more.get("options", {}), list(form)]
    return put(SPACE, row)


def index(of, number, kind, parts, name=None, **options):
    options = {"unique": kind in ("tree", "hash"), **options}
    return put(INDEX, [of, number, name or "i%d" % number, kind, options, parts])


def field(name, kind, **more):
    return {"name": name, "type": kind, **more}


# The tuple that is updated: a field of each type.
CHANGED = [1, 5, "text", {"a": [1, {"b": 2}], "c": 3}, [1, 2, 3], 2.5, Packed(DECIMAL), True, None, b"b", -4]


def spaces():
    """The spaces of all that follows: 600 has every kind of index, 601 what is odd."""
    form = [field("id", "unsigned"), field("bits", "unsigned"), field("box", "array"), field("name", "string"),
            field("tags", "array"), field("any", "any", is_nullable=True)]
    yield space(600, "all", form)
    yield index(600, 0, "tree", [[0, "unsigned"]])
    yield index(600, 1, "hash", [[0, "unsigned"]])
    yield index(600, 2, "tree", [[3, "string"], [0, "unsigned"]], unique=False)
    yield index(600, 3, "bitset", [[1, "unsigned"]])
    yield index(600, 4, "rtree", [[2, "array"]])
    yield index(600, 5, "tree", [{"field": 4, "type": "unsigned", "path": "[*]"}], unique=False)
    yield index(600, 6, "bitset", [[3, "string"]])
    yield index(600, 7, "rtree", [[2, "array"]], distance="manhattan")
    for number, (bits, name) in enumerate([(1, "a"), (3, "a"), (6, "b"), (8, "c")]):
        yield put(600, [number, bits, [number, number + 1, number + 3, number + 2], name, [number, 7]])
    yield space(601, "free")
    yield index(601, 0, "tree", [[0, "unsigned"]])
    yield put(601, CHANGED)


def kinds_of_requests():
    yield PING, None
    yield PING, {}
    yield NOP, None
    for kind, (number, row) in itertools.product((INSERT, REPLACE), enumerate(([10], [1], [], ["x"], 5, None, {}))):
        yield put(601, row, kind)
    for kind in (SELECT, INSERT, REPLACE, UPDATE, DELETE, UPSERT, CALL, CALL_16):
        yield kind, {}
        yield kind, {16: 600}
        yield kind, {33: []}
    yield delete(601, [10])
    yield delete(601, [10])
    yield delete(600, ["a"], 2)
    for key in ([], [1, 2], [None], ["1"], [-1], [1.0], 1, {}, [[1]]):
        yield delete(601, key)
        yield select(601, key)
        yield update(601, key, [["=", 1, 5]])
        yield call("box.space.free:get", key)
        yield call("box.space.free:delete", key, "x")
    for limit, offset in itertools.product((0, 1, 2, 100), (0, 1, 3, 9)):
        yield select(600, [], 0, 2, limit, offset)
        yield call("box.space.all:select", [], {"iterator": "GE", "limit": limit, "offset": offset})
    yield upsert(601, [20, 1], [["+", 1, 1]])
    yield upsert(601, [20, 1], [["+", 1, 1]])
    yield upsert(TRUNCATE, [601, 1], [["+", 1, 1]])
    yield select(601, [], 0, 2)
    yield put(601, CHANGED)


def selections():
    """Every iterator of every kind of index, with keys of every form."""
    keys = {0: [[], [1], [9]], 1: [[], [1], [9]], 2: [[], ["a"], ["a", 1], ["aa"]], 3: [[], [2], [0]],
            4: [[], [1, 2], [[1, 2]], [1, 2, 4, 3], [[0, 0, 9, 9]], [5], ["a", 1], [1, 2, 3]],
            5: [[], [7], [2]], 6: [[], ["a"], ["\x01"]], 7: [[3, 3]]}
    for number, iterator in itertools.product(keys, range(13)):
        for key in keys[number]:
            # The order of a HASH index is any, and so is the part of it that follows a tuple.
            if number != 1 or (key and iterator not in (2, 6)):
                yield select(600, key, number, iterator)
                name = (ITERATORS + ["NEAR"])[iterator]
                yield call("box.space.all.index.i%d:select" % number, key, name)
                yield call("box.space.all.index.i%d:count" % number, key, {"iterator": name})
    for number, method in itertools.product(keys, ("get", "min", "max", "len", "pairs")):
        # 2.6 crashes over the length of a BITSET index.
        for key in [] if (method, number) in (("len", 3), ("len", 6)) else keys[number]:
            yield call("box.space.all.index.i%d:%s" % (number, method), key)
    for method in ("len", "bsize", "count", "select", "get", "min", "random", "nothing"):
        yield call("box.space.all:" + method, kind=CALL_16)
        yield call("box.space.nowhere:" + method)
        yield call("box.space.all.index.nothing:" + method)


def updates():
    """Every operation on a field of every type, by number, from the end, by name and by path."""
    arguments = {
        "+": [3, -7, 1.5, Packed(DECIMAL), "x", 1 << 63], "-": [3, -7, 1.5, Packed(DECIMAL), "x", 1 << 63],
        "&": [6, -1, 1.5], "|": [6, -1, 1.5], "^": [6, -1, 1.5],
        "=": [9, "nine", None, [1], {"k": 1}], "!": [9, None, [1]], "#": [1, 2, 0, -1, "x"],
    }
    targets = [1, 2, 3, 4, 5, 6, 11, -1, -3, 30, -30, "[2]", "[4].a[1]", "[4].a[2].b", "[4].x", "[5][2]", "[5][9]", "[4", "zz", 0, 1.5, True]
    for code in arguments:
        for target, argument in itertools.product(targets, arguments[code]):
            yield update(601, [1], [[code, target, argument]])
            yield put(601, CHANGED, REPLACE)
    for offset, length, text in itertools.product((0, 2, -1, -9, 9, "x"), (0, 2, -1, -9, 9), ("", "new", 5)):
        yield update(601, [1], [[":", 2, offset, length, text]])
        yield put(601, [1, 5, "text"], REPLACE)
    for operations in (
        [], [["=", 1, 1], ["=", 1, 2]], [["+", 1, 1], ["+", 1, 2]], [["!", 1, 1], ["#", 2, 1]], [["=", -1, 1], ["!", -1, 2]],
        [["%", 1, 1]], [[]], [5], 5, [["="]], [["=", 1]], [["=", 1, 2, 3]], [[5, 1, 1]], [["", 1, 1]], [["=", 0, 5]], [["++", 1, 1]],
    ):
        for base in (0, 1):
            yield update(601, [1], operations, base=base)
            yield upsert(601, [1, 5], operations, base)
            yield put(601, [1, 5, "text"], REPLACE)
        yield call("box.space.free:update", 1, operations)
        yield call("box.space.free:upsert", [1, 5], operations)
        yield put(601, [1, 5, "text"], REPLACE)
    yield update(600, ["a", 1], [["=", 1, 1]], index=2)
    yield update(600, [1], [["=", 1, 2]], index=1)
    yield update(600, [1], [["=", "name", "z"], ["=", "bits", 5], ["+", "id", 1]])


def refusals():
    """What else is refused, by the code of its error where that can be reached."""
    yield space(602, "")
    yield space(602, "all")
    yield space(602, "x", engine="disk")
    yield space(602, "x", count=1, options={"group_id": "x"})
    yield space(602, "x", [field("a", "unknown")])
    yield space(602, "x", [field("a", "any"), field("a", "any")])
    yield space(602, "x", [{"type": "any"}])
    yield space(602, "x" * 70000)
    yield space(603, "typed", [field("a", "unsigned"), field("b", "string")])
    yield index(603, 1, "tree", [[0, "unsigned"]])
    yield index(603, 0, "tree", [[0, "string"]])
    yield index(603, 0, "tree", [[0, "unsigned"]], unique=False)
    yield index(603, 0, "tree", [])
    yield index(603, 0, "tree", [[0, "unsigned"], [0, "unsigned"]])
    yield index(603, 0, "tree", [{"field": 0, "type": "unsigned", "is_nullable": True}])
    yield index(603, 0, "list", [[0, "unsigned"]])
    yield index(603, 0, "bitset", [[0, "unsigned"]])
    yield index(603, 0, "rtree", [[0, "array"]])
    yield index(603, 0, "tree", [[0, "thing"]])
    yield index(603, 0, "tree", [[70000, "unsigned"]])
    yield index(603, 0, "tree", [[0, "unsigned"]], dimension="x")
    yield index(603, 0, "tree", [{"field": 1, "type": "string", "collation": 999}])
    yield index(603, 0, "tree", [[0, "unsigned"]])
    yield index(603, 0, "tree", [[0, "unsigned"]])
    yield index(603, 1, "tree", [[1, "string"]], name="i0")
    yield index(603, 1, "tree", [[1, "unsigned"]])
    yield index(603, 1, "hash", [[1, "string"]], unique=False)
    yield index(603, 1, "rtree", [[2, "array"]], dimension=21)
    yield index(603, 1, "rtree", [[2, "array"]], distance="far")
    yield index(603, 1, "tree", [[2, "unsigned"]])
    yield index(603, 2, "tree", [[2, "string"]])
    yield index(603, 2, "list", [[1, "string"]])
    yield index(600, 8, "tree", [{"field": 4, "type": "unsigned", "path": "[1]"}])
    yield space(604, "x", [5])
    yield space(604, "pairs", count=2)
    yield index(604, 0, "tree", [[0, "unsigned"]])
    yield put(604, [1])
    yield put(600, [9, 1, [1, 2, 3], "x", []])
    yield update(380, ["sql_default_engine"], [["=", 1, 5]])
    yield index(603, 128, "tree", [[1, "string"]])
    for row in ([1, "a", 2], [1, "a", 2], [2, "b", 2], [2], [2, 3], ["x", "y", 1], [2, "b", "c"], [2, "b"]):
        yield put(603, row)
    yield put(603, [3, "x" * (1 << 20), 3])
    yield select(603, [1], 9)
    yield select(999, [1])
    yield delete(603, ["a"], 1)
    yield update(603, [1], [["=", 0, 5]])
    yield update(603, [1], [["+", 0, 1 << 63]])
    yield put(601, [29, Packed(UUID)])
    yield put(601, [30, 18446744073709551615, NINES])
    yield update(601, [30], [["+", 1, 1]])
    yield update(601, [30], [["+", 2, NINES]])
    yield index(600, 8, "tree", [{"field": 4, "type": "unsigned"}])
    yield index(600, 8, "tree", [{"field": 5, "type": "unsigned", "path": "[*]"}])
    yield delete(INDEX, [603, 0])
    yield delete(INDEX, [603, 1])
    yield delete(SPACE, [603])
    yield delete(SPACE, [280])
    yield put(281, [1])
    yield put(USER, [50, 1, "alice", "user", {}, [], 0])
    yield put(USER, [51, 1, "alice", "user", {}, [], 0])
    yield put(USER, [51, 1, "", "user", {}, [], 0])
    yield put(PRIV, [1, 0, "space", 601, 1])
    yield call("nothing")
    yield call("box.space.all.select", [1])
    yield CALL, {34: 5, 33: []}
    for kind in (55, 200):
        yield kind, {}
    yield AUTH, {35: "nobody", 33: ["chap-sha1", Packed(b"\xb4" + b"x" * 20)]}
    yield AUTH, {35: "admin", 33: ["chap-sha1", Packed(b"\xb4" + b"x" * 20)]}
    yield AUTH, {35: "admin", 33: ["chap-sha1", "short"]}
    yield AUTH, {35: "admin", 33: ["md5", "x"]}
    yield AUTH, {35: "admin", 33: []}
    yield AUTH, {35: "guest"}


class Login(str):
    """USER:PASSWORD, for a login by chap-sha1."""


def malformed():
    """Packets that are no requests, and bodies that are none: as they are."""
    def packet(header, body=b""):
        return Packed(pack(header) + body)

    for header in (None, [], [[0, PING]], 5, "x", {}, {1: 9}, {0: "x", 1: 9}, {0: PING}, {0: PING, 1: "x"}, {0: PING, 1: -1},
                   {0: -1, 1: 9}, {0: 1.5, 1: 9}, {0: 300, 1: 9}, {0: 1 << 40, 1: 9}, {0: PING, 1: 9, 99: 5}, {0: PING, 1: 9, "k": 5},
                   {0: PING, 1: 9, 5: 1}, {0: SELECT, 1: 9, 5: 1}, {0: PING, 1: 9, 5: "x"}):
        yield packet(header)
    for broken in (b"\xc1", b"\x81", b"\x82\x00", b"\x82\x00\x40\x01", b"\x81\xa5x", b"\xdf\xff\xff\xff\xff", b"\xde"):
        yield Packed(broken)
    for kind in (SELECT, REPLACE, UPDATE, CALL, PING, AUTH):
        header = {0: kind, 1: 9}
        for body in (b"", pack(None), pack([]), pack([[16, 600]]), pack(5), pack("x"), b"\xc1", b"\x81", b"\x81\x10", b"\x82\x10\x05",
                     b"\x81\x10\xc1", b"\xdf\xff\xff\xff\xff", pack({}) + pack({}), pack({16: 600}) + b"\xc1", pack({"k": 1}),
                     pack({99: 1}), pack({300: 1}), pack({-1: 1}), pack({None: 1}), b"\x81\x10" + b"\x91" * 300 + b"\x01",
                     b"\x81\x10\xdd\xff\xff\xff\xff", b"\x81\x10\xc6\xff\xff\xff\xffx"):
            yield packet(header, body)
    whole = {SELECT: {16: 600, 17: 0, 18: 5, 19: 0, 20: 0, 32: [1]}, REPLACE: {16: 601, 33: [1, 5]},
             UPDATE: {16: 601, 17: 0, 21: 0, 32: [1], 33: []}, DELETE: {16: 601, 17: 0, 32: [77]},
             UPSERT: {16: 601, 21: 0, 33: [1, 5], 40: []}, CALL: {34: "box.space.all:len", 33: []}}
    for kind, body in whole.items():
        for key in body:
            for value in (None, True, -1, 1 << 32, 1 << 63, 1.5, "x", b"x", [], [None], {}, {1: 2}, Packed(DECIMAL), Packed(b"\xc1")):
                # A space of any number or name may be there. A box of `1 << 32` is the limit of all.
                yield packet({0: kind, 1: 9}, pack({**body, key: value}))
            yield packet({0: kind, 1: 9}, pack({other: body[other] for other in body if other != key}))
            yield packet({0: kind, 1: 9}, pack({**body, 99: 1, 43: "x"}))
    yield packet({0: SELECT, 1: 9}, b"\x83\x10\xcd\x02\x58\x12\x05\x12\x06")


def logins():
    yield Login("admin:secret")
    yield select(281, [600])
    yield Login("admin:wrong")
    yield Login("nobody:secret")
    yield put(USER, [50, 1, "alice", "user", {"chap-sha1": base64.b64encode(twice(b"open")).decode()}, [], 0], REPLACE)
    yield Login("alice:open")
    yield put(PRIV, [1, 50, "universe", 0, 24], REPLACE)
    yield Login("alice:shut")
    yield Login("alice:open")
    yield select(601, [1])
    yield Login("admin:secret")
    yield select(601, [1])


def as_guest():
    yield AUTH, {35: "guest", 33: []}
    yield select(601, [1])
    for request in (select(600, [1]), put(601, [1]), put(601, [1], REPLACE), update(601, [1], []), upsert(601, [1], []), delete(601, [1]),
                    put(SPACE, [700, 1, "new", "memtx", 0, {}, []]), call("box.space.free:get", 1), call("nothing"), select(281, [600])):
        yield request

# Numbers and names of users, and their passwords.
NOBODY, SOME, ALL, OWNER, TOOL = (60, "nobody"), (61, "some"), (62, "all"), (63, "owner"), (64, "tool")
MANAGED = (SPACE, INDEX, USER, PRIV, TRUNCATE, SEQUENCE, FUNC, SPACE_SEQUENCE)
READS_AND_WRITES, LOGS_IN, CREATE, DROP, ALTER, EXECUTE = 3, 24, 32, 64, 128, 4


def user(number, name, kind=INSERT, owner=1, what="user", password=None):
    auth = {"chap-sha1": base64.b64encode(twice(password.encode())).decode()} if password else {}
    return put(USER, [number, owner, name, what, auth, [], 0], kind)


def grant(grantee, object_type, object_id, privileges, grantor=1, kind=REPLACE):
    return put(PRIV, [grantor, grantee, object_type, object_id, privileges], kind)


def revoke(grantee, object_type, object_id):
    return delete(PRIV, [grantee, object_type, object_id])


def owned_space(number, name, owner, kind=INSERT):
    return put(SPACE, [number, owner, name, "memtx", 0, {}, []], kind)


def sequence(number, name, owner=1, step=1, kind=INSERT):
    return put(SEQUENCE, [number, owner, name, step, 1, 1 << 40, 1, 0, False], kind)


def function(number, name, owner=1, kind=INSERT, **more):
    return put(FUNC, [number, owner, name, 0, more.get("language", "LUA"), more.get("body", ""), more.get("routine", "function"),
                      more.get("parameters", []), more.get("returns", "any"), more.get("aggregate", "none"),
                      more.get("access", "none"), False, more.get("sandboxed", False), more.get("null", True),
                      more.get("exports", ["LUA"]), more.get("options", {}), more.get("comment", ""), "", ""], kind)


def rights_set_up():
    """Users with no rights but to log in, with some, with all that a user can be granted of the universe, and owners."""
    for number, name in (NOBODY, SOME, ALL, OWNER, TOOL):
        yield user(number, name, password=name)
        yield Login("%s:%s" % (name, name))
        yield grant(number, "universe", 0, LOGS_IN)
    yield user(65, "work", what="role")
    yield user(66, "craft", what="role")
    yield user(67, "own", what="role", owner=OWNER[0])
    yield grant(SOME[0], "role", 65, EXECUTE)
    yield grant(65, "role", 66, EXECUTE)
    for managed in MANAGED:
        yield grant(66, "space", managed, READS_AND_WRITES)
        yield grant(OWNER[0], "space", managed, READS_AND_WRITES)
        yield grant(TOOL[0], "space", managed, READS_AND_WRITES)
    for kind in ("space", "sequence", "function", "user", "role"):
        yield grant(TOOL[0], kind, "", CREATE | DROP | ALTER)
    yield grant(ALL[0], "universe", 0, LOGS_IN | READS_AND_WRITES)
    yield owned_space(610, "admins", 1)
    yield index(610, 0, "tree", [[0, "unsigned"]])
    yield put(610, [1])
    yield owned_space(611, "owners", OWNER[0])
    yield index(611, 0, "tree", [[0, "unsigned"]])
    yield put(611, [1])
    yield sequence(5, "numbers")
    yield sequence(6, "owners", OWNER[0])
    yield function(100, "admins")
    yield function(101, "owners", OWNER[0])


def attempts(me):
    """What a user may try: every system space, in every way that Tarantool looks at who does it."""
    for number in (SPACE, INDEX, USER, PRIV, TRUNCATE, SEQUENCE, FUNC, SPACE_SEQUENCE, 272, 276, 285, 320, 328, 356, 364, 372, 380,
                   281, 289, 297, 305, 313, 286, 277, 610, 611):
        yield select(number, [], limit=0)
        yield put(number, [])
        yield delete(number, [])
        yield update(number, [], [])
        yield upsert(number, [], [])
    for number, keys in ((281, (280, 610, 611)), (289, (280, 610, 611)), (305, (0, 1, 2, 60, 63)), (313, (0, 2, 60, 63)), (297, (100, 101)), (286, (5, 6))):
        for key in keys:
            yield select(number, [key], limit=1)
    # Spaces and indexes of others and of one's own.
    for number, owner in ((610, 1), (611, OWNER[0]), (612, me), (613, 1), (280, 1), (281, 1)):
        is_system = number < 512
        yield owned_space(number, "of %d" % number, owner)
        yield update(SPACE, [number], [["=", 1, 1]] if is_system else [["=", 2, "again %d" % number]])
        yield index(number, 0, "tree", [[0, "unsigned"]])
        yield index(number, 1, "tree", [[0, "unsigned"]])
        yield update(INDEX, [number, 1], [["=", 2, "owner" if is_system else "again"]])
        yield put(TRUNCATE, [number, 1], REPLACE)
        yield delete(TRUNCATE, [number])
        yield select(number, [1], limit=0 if is_system else 1)
        yield put(number, [] if is_system else [7, 7])
    # Who owns what one writes: an update of the owner.
    yield update(SPACE, [612], [["=", 1, 1]])
    # Sequences.
    for number, owner in ((5, 1), (6, OWNER[0]), (7, me), (8, 1)):
        yield sequence(number, "of %d" % number, owner)
        yield sequence(number, "of %d" % number, owner, 2, REPLACE)
        yield put(285, [number, 1], REPLACE)
        for space_number in (610, 611, 612):
            for generated in (True, False):
                yield put(SPACE_SEQUENCE, [space_number, number, generated, 0, ""])
                yield put(SPACE_SEQUENCE, [space_number, number, generated, 0, ""], REPLACE)
                yield delete(SPACE_SEQUENCE, [space_number])
        yield delete(285, [number])
    # Functions.
    for number, owner in ((100, 1), (101, OWNER[0]), (102, me), (103, 1)):
        yield function(number, "of %d" % number, owner)
        yield function(number, "of %d" % number, owner, REPLACE)
        yield function(number, "of %d" % number, owner, REPLACE, comment="new")
    # Users and roles: others, oneself, new ones, system ones.
    for number, owner, what in ((0, 1, "user"), (1, 1, "user"), (2, 1, "role"), (31, 1, "role"), (me, 1, "user"), (60, 1, "user"), (67, 1, "role"),
                                (70, me, "user"), (71, 1, "user"), (72, me, "role"), (73, 1, "role")):
        yield user(number, "of %d" % number, owner=owner, what=what)
        if number > 2 and number != 31:
            yield update(USER, [number], [["=", 6, 5]])
        elif me != 1:
            yield update(USER, [number], [["=", 1, 1]])
    # Grants: by oneself, by others, to others, to oneself, of everything.
    for grantor, grantee in ((me, 60), (1, 60), (1, me), (OWNER[0], 60), (me, 70)):
        for object_type, object_id in (("space", 610), ("space", 611), ("space", 612), ("space", 280), ("sequence", 5), ("sequence", 6), ("sequence", 7),
                                       ("function", 100), ("function", 101), ("function", 102), ("role", 65), ("role", 67), ("role", 72), ("role", 31),
                                       ("role", 2), ("user", 60), ("user", 70), ("universe", 0)):
            # 2.6 dies of it when anybody but admin grants all objects of a kind.
            if (grantee, object_type) != (me, "universe"):
                yield grant(grantee, object_type, object_id, EXECUTE if object_type == "role" else 1, grantor, INSERT)
                yield revoke(grantee, object_type, object_id)
    # Dropped again, as far as one may.
    for number in (100, 101, 102, 103):
        yield delete(FUNC, [number])
    for number in (5, 6, 7, 8):
        yield delete(SEQUENCE, [number])
    for number in (610, 611, 612, 613, 280, 281):
        yield delete(TRUNCATE, [number])
        if number > 512:
            yield delete(INDEX, [number, 1])
        yield delete(INDEX, [number, 0])
        yield delete(SPACE, [number])
    for number in (0, 1, 2, 31, 60, 67, me, 70, 71, 72, 73):
        # Of its own row, `all` would lose what follows.
        if number != me or me == 1:
            yield delete(USER, [number])
    for name in ("box.space.admins:get", "admins", "owners", "nothing", "box.info.version"):
        yield call(name, 1)
    yield EVAL, {39: "return 1", 33: []}


def put_back():
    """What `attempts` may have taken away: all users find the same."""
    for number in (70, 71, 72, 73):
        yield delete(USER, [number])
    for number in (612, 613):
        yield delete(TRUNCATE, [number])
        yield delete(INDEX, [number, 1])
        yield delete(INDEX, [number, 0])
        yield delete(SPACE, [number])
    for number, name, owner in ((610, "admins", 1), (611, "owners", OWNER[0])):
        yield owned_space(number, name, owner, REPLACE)
        yield delete(INDEX, [number, 1])
        yield index(number, 0, "tree", [[0, "unsigned"]])
        yield put(number, [1], REPLACE)
    for number, name, owner in ((5, "numbers", 1), (6, "owners", OWNER[0])):
        yield sequence(number, name, owner, 1, REPLACE)
    for number in (7, 8):
        yield delete(SEQUENCE, [number])
    for number in (102, 103):
        yield delete(FUNC, [number])
    yield function(100, "admins")
    yield function(101, "owners", OWNER[0])
    yield user(60, "nobody", REPLACE, password="nobody")
    yield user(67, "own", REPLACE, what="role", owner=OWNER[0])


def rights():
    """Every system space, with users of every sort; 2.6 is left as it was after each."""
    yield Login("admin:secret")
    yield from rights_set_up()
    for number, name in (NOBODY, SOME, ALL, OWNER, TOOL):
        yield Login("%s:%s" % (name, name))
        yield from attempts(number)
        yield Login("admin:secret")
        yield from put_back()
    yield AUTH, {35: "guest", 33: []}
    yield from attempts(0)
    yield Login("admin:secret")


def refused_rights():
    """What nobody may do: of users, grants and functions, with their codes."""
    for what in ("user", "role", "spoon", ""):
        yield user(80, "x", what=what)
    for name in ("", "\n", "x" * 65001):
        yield user(81, name)
    yield put(USER, [81, 1, "a role", "role", {"chap-sha1": "x"}, [], 0])
    yield put(USER, [81, 1, "b", "user", {"chap-sha1": "short"}, [], 0])
    yield put(USER, [81, 1, "c", "user", {"unknown": "x"}, [], 0])
    yield put(USER, [0, 1, "guest", "user", {"chap-sha1": base64.b64encode(twice(b"open")).decode()}, [], 0], REPLACE)
    yield user(82, "first", what="role")
    yield user(83, "second", what="role")
    yield grant(82, "role", 82, EXECUTE)
    yield grant(82, "role", 83, EXECUTE)
    yield grant(83, "role", 82, EXECUTE)
    yield grant(82, "role", 81, EXECUTE)
    yield grant(82, "user", 83, 1)
    yield grant(80, "role", 80, EXECUTE)
    for object_type, object_id in itertools.product(("universe", "space", "function", "sequence", "role", "user", "spoon", ""), (0, 999, "", "x", -1)):
        if (object_type, object_id) not in (("universe", ""), ("function", "x"), ("spoon", "")):
            yield grant(60, object_type, object_id, 1)
    for object_type, object_id in (("universe", 0), ("space", 610)):
        for privileges in (0, 1, 1 << 31, 1 << 40):
            yield grant(82, object_type, object_id, privileges)
    yield grant(999, "space", 610, 1)
    yield grant(60, "space", 610, 1, grantor=999)
    # What is left of a user, a role, a space, a sequence or a function keeps it.
    yield delete(USER, [82])
    yield delete(USER, [83])
    yield grant(60, "sequence", 5, 1)
    yield delete(SEQUENCE, [5])
    yield grant(60, "function", 100, EXECUTE)
    yield delete(FUNC, [100])
    yield owned_space(614, "kept", 63)
    yield grant(60, "space", 614, 1)
    yield delete(SPACE, [614])
    yield revoke(60, "space", 614)
    yield put(TRUNCATE, [614, 1], REPLACE)
    yield delete(SPACE, [614])
    yield delete(TRUNCATE, [614])
    yield delete(USER, [63])
    yield delete(SPACE, [614])
    yield user(84, "giver")
    yield delete(USER, [84])
    for more in ({"language": "PERL"}, {"language": "SQL"}, {"routine": "method"}, {"access": "some"}, {"null": False}, {"returns": "thing"},
                 {"exports": ["PERL"]}, {"aggregate": "some"}, {"parameters": ["thing"]},
                 {"language": "C", "body": "x"}, {"sandboxed": True}, {"language": "C", "sandboxed": True}):
        yield function(104, "odd", **more)
    yield function(32001, "far")
    yield function(104, "")
    yield function(104, "owners")
    for number in (1, 280, 610, 999):
        for kind in (INSERT, REPLACE):
            yield from (put(TRUNCATE, [number, 1], REPLACE), delete(TRUNCATE, [number]))
    yield put(285, [999, 1], REPLACE)
    yield put(SPACE_SEQUENCE, [610, 999, False, 0, ""])
    yield put(SPACE_SEQUENCE, [999, 5, False, 0, ""])
    yield put(SPACE_SEQUENCE, [610, 5, True, 0, ""])
    yield put(SPACE_SEQUENCE, [611, 5, True, 0, ""])
    yield put(SPACE_SEQUENCE, [610, 5, False, 0, ""], REPLACE)
    yield put(285, [5, 1], REPLACE)
    yield delete(SEQUENCE, [5])


def dropped_users():
    """A user that comes after another one of its number has nothing of that one's."""
    yield user(90, "before", password="before")
    yield grant(90, "universe", 0, LOGS_IN | READS_AND_WRITES)
    yield delete(USER, [90])
    yield revoke(90, "universe", 0)
    yield delete(USER, [90])
    yield user(90, "after", password="after")
    yield Login("before:before")
    yield Login("after:after")
    yield grant(90, "universe", 0, LOGS_IN)
    yield Login("after:after")
    yield select(610, [1])
    yield Login("admin:secret")


def exchanges():
    for part in (spaces, kinds_of_requests, selections, updates, refusals, malformed, logins, as_guest, rights, refused_rights, dropped_users):
        for number, request in enumerate(part()):
            yield "%s %d" % (part.__name__, number), request


def receive(stream, count):
    data = b""
    while len(data) < count:
        got = stream.recv(count - len(data))
        if not got:
            raise EOFError("the server has closed the connection")
        data += got
    return data


def exchange(stream, packet):
    stream.sendall(b"\xce" + struct.pack(">I", len(packet)) + packet)
    return receive(stream, struct.unpack(">I", receive(stream, 5)[1:])[0])


def shown(data):
    """Hexadecimal digits; a byte that comes more than 64 times in a row is followed by {its count}."""
    runs = re.finditer(rb"(?s)(.)\1{64,}", data)
    text, at = "", 0
    for run in runs:
        text += data[at:run.start() + 1].hex() + "{%d}" % (run.end() - run.start())
        at = run.end()
    return text + data[at:].hex()


def twice(password):
    return hashlib.sha1(hashlib.sha1(password).digest()).digest()


def login(salt, user, password):
    once = hashlib.sha1(password.encode()).digest()
    mask = hashlib.sha1(salt + twice(password.encode())).digest()
    scramble = Packed(b"\xb4" + bytes(a ^ b for a, b in zip(once, mask)))
    return pack({0: AUTH, 1: 0}) + pack({35: user, 33: ["chap-sha1", scramble]})


def connect(port):
    """A connection of `admin`, and its greeting's name and salt."""
    stream = socket.create_connection(("127.0.0.1", port))
    stream.settimeout(10)
    greeting = receive(stream, 128)
    salt = base64.b64decode(greeting[64:108])[:20]
    exchange(stream, login(salt, "admin", "secret"))
    return stream, greeting[:20].decode(), salt


def record(port):
    for _ in range(100):
        time.sleep(0.1)
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            break
        except OSError:
            continue
    time.sleep(0.5)
    stream, greeting, salt = connect(port)
    print("# Made by scripts/record-iproto-transcript.py:", greeting)
    for sync, (name, request) in enumerate(exchanges()):
        if isinstance(request, Login):
            sent, what = login(salt, *request.split(":")), "@" + request
        elif isinstance(request, Packed):
            sent = bytes(request)
            what = shown(sent)
        else:
            kind, body = request
            sent = pack({0: kind, 1: sync}) + (b"" if body is None else pack(body))
            what = shown(sent)
        print("%s|%s|%s" % (name, what, shown(exchange(stream, sent))))


def main():
    port = int(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        with open(folder + "/init.lua", "w") as file:
            file.write(SCRIPT.format(port=port))
        server = subprocess.Popen(["tarantool", "init.lua"], cwd=folder)
        try:
            record(port)
        finally:
            server.kill()
            server.wait()


main()
