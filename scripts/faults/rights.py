"""Rights over IPROTO: what users may do to spaces, users and grants, beside a real tarantool if there is one."""
import base64
import hashlib
import os
import shutil
import socket
import struct

from fault import Started, fault
from iproto import pack

SELECT, INSERT, REPLACE, UPDATE, DELETE, AUTH, EVAL, CALL, EXECUTE = 1, 2, 3, 4, 5, 7, 8, 10, 11
WATCH, PING, EVENT = 74, 64, 76
SPACE, INDEX, USER, PRIV, TRUNCATE, VSPACE = 280, 288, 304, 312, 330, 281
PASSWORD = "secret"
DENIED, DROP_SPACE, DROP_USER, NO_SUCH_USER = 42, 11, 44, 45
TARANTOOL = """
box.cfg{log_level = 0, wal_mode = 'none'}
box.schema.user.passwd('admin', '%s')
box.cfg{listen = '127.0.0.1:%d'}
require('fiber').sleep(600)
"""


class Iproto:
    """A connection; a request returns (0, its tuples) or (code, text)."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.salt = base64.b64decode(self.read(128)[64:108])[:20]
        self.sync = 100

    def read(self, length):
        data = b""
        while len(data) < length:
            part = self.socket.recv(length - len(data))
            if not part:
                raise EOFError("the server has closed the connection")
            data += part
        return data

    def packet(self):
        data = self.read(struct.unpack(">BI", self.read(5))[1])
        header, at = unpack(data, 0)
        return header, unpack(data, at)[0] if at < len(data) else {}

    def send(self, kind, body):
        self.sync += 1
        content = pack({0: kind, 1: self.sync}) + bytes([0x80 | len(body)]) + b"".join(pack(k) + packed(v) for k, v in body.items())
        self.socket.sendall(struct.pack(">BI", 0xCE, len(content)) + content)

    def ask(self, kind, body):
        self.send(kind, body)
        return self.answer()

    def answer(self):
        header, body = self.packet()
        return (header[0] & 0x7FFF, body.get(0x31)) if header[0] else (0, body.get(0x30))

    def log_in(self, user, password):
        once = hashlib.sha1(password.encode()).digest()
        key = hashlib.sha1(self.salt + hashlib.sha1(once).digest()).digest()
        scramble = bytes(a ^ b for a, b in zip(once, key))
        content = pack({0: AUTH, 1: 1}) + b"\x82" + pack(0x23) + pack(user) + pack(0x21) + b"\x92\xa9chap-sha1\xb4" + scramble
        self.socket.sendall(struct.pack(">BI", 0xCE, len(content)) + content)
        return self.answer()

    def insert(self, space, row, kind=INSERT):
        return self.ask(kind, {0x10: space, 0x21: row})

    def delete(self, space, key):
        return self.ask(DELETE, {0x10: space, 0x11: 0, 0x20: key})

    def update(self, space, key, operations):
        return self.ask(UPDATE, {0x10: space, 0x11: 0, 0x20: key, 0x21: operations})

    def select(self, space, key):
        return self.ask(SELECT, {0x10: space, 0x11: 0, 0x12: 1000, 0x13: 0, 0x14: 0, 0x20: key})

    def make_space(self, number, owner=1):
        assert self.insert(SPACE, [number, owner, "s%d" % number, "memtx", 0, {}, []])[0] == 0
        assert self.insert(INDEX, [number, 0, "pk", "tree", {"unique": True}, [[0, "unsigned"]]])[0] == 0

    def make_user(self, number, name, rights=3):
        """A user who may log in, and has these rights to everything."""
        stored = base64.b64encode(hashlib.sha1(hashlib.sha1(name.encode()).digest()).digest()).decode()
        assert self.insert(USER, [number, 1, name, "user", {"chap-sha1": stored}, [], 0])[0] == 0
        assert self.insert(PRIV, [1, number, "universe", 0, 24 | rights])[0] == 0


def packed(value):
    """As `pack`; strings may have bytes that are no text."""
    if isinstance(value, str):
        value = value.encode(errors="surrogateescape")
        return struct.pack(">BI", 0xDB, len(value)) + value
    return pack(value)


def unpack(data, at):
    first = data[at]
    at += 1
    if first < 0x80:
        return first, at
    if first >= 0xE0:
        return first - 256, at
    if first == 0xC0:
        return None, at
    if first in (0xC2, 0xC3):
        return first == 0xC3, at
    if 0xCC <= first <= 0xCF:
        size = 1 << (first - 0xCC)
        return int.from_bytes(data[at:at + size], "big"), at + size
    if 0xD0 <= first <= 0xD3:
        size = 1 << (first - 0xD0)
        return int.from_bytes(data[at:at + size], "big", signed=True), at + size
    sizes = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4, 0xDC: 2, 0xDD: 4, 0xDE: 2, 0xDF: 4}
    if first in sizes:
        count = int.from_bytes(data[at:at + sizes[first]], "big")
        at += sizes[first]
    else:
        count = first & (0x1F if first >= 0xA0 else 0x0F)
    if first in (0xC4, 0xC5, 0xC6):
        return data[at:at + count], at + count
    if 0xA0 <= first < 0xC0 or first in (0xD9, 0xDA, 0xDB):
        return data[at:at + count].decode(errors="surrogateescape"), at + count
    if 0x90 <= first < 0xA0 or first in (0xDC, 0xDD):
        items = []
        for _ in range(count):
            item, at = unpack(data, at)
            items.append(item)
        return items, at
    if 0x80 <= first < 0x90 or first in (0xDE, 0xDF):
        pairs = {}
        for _ in range(count):
            key, at = unpack(data, at)
            pairs[key], at = unpack(data, at)
        return pairs, at
    raise ValueError("no MessagePack that is known here: 0x%02x" % first)


def ladon(bench, *more):
    return bench.ladon("--iproto-admin-password", PASSWORD, *more, iproto=True).iproto_port


def tarantool(bench):
    """The port of a real tarantool, or None."""
    if not shutil.which("tarantool"):
        return None
    server = Started(bench.directory(), False)
    script = os.path.join(server.directory, "init.lua")
    with open(script, "w") as file:
        file.write(TARANTOOL % (PASSWORD, server.port))
    return bench.started(server, ["tarantool", script], cwd=server.directory).port


def admin(port):
    client = Iproto(port)
    assert client.log_in("admin", PASSWORD)[0] == 0
    return client


def user(port, name):
    client = Iproto(port)
    assert client.log_in(name, name)[0] == 0
    return client


def beside(bench, attempt, *more):
    """What an attempt on Ladon comes to, the codes of Tarantool where they are others, and whether they are equal."""
    ours = attempt(ladon(bench, *more))
    port = tarantool(bench)
    theirs = attempt(port) if port else ours
    text = ", ".join(map(str, ours))
    return text if ours == theirs else "%s (tarantool: %s)" % (text, ", ".join(map(str, theirs))), ours == theirs, ours


def empties(port):
    admin(port).make_space(512)
    assert admin(port).insert(512, [1])[0] == 0
    guest = Iproto(port)
    code = guest.insert(TRUNCATE, [512, 1], REPLACE)[0]
    return code, len(admin(port).select(512, [])[1])


@fault("IPROTO, no login: `[512, 1]` into `_truncate`", "error 42, the tuple is still there")
def truncation_by_a_guest(bench):
    text, is_same, ours = beside(bench, empties)
    return text, is_same and ours == (DENIED, 1)


@fault("IPROTO, no login, with `requirepass`: `INSERT [512, 1]` into `_truncate`", "error 42, the tuple is still there")
def truncation_with_requirepass(bench):
    port = ladon(bench, "--requirepass", "p")
    admin(port).make_space(512)
    admin(port).insert(512, [1])
    code, left = Iproto(port).insert(TRUNCATE, [512, 1])[0], len(admin(port).select(512, [])[1])
    return "%d, %d left" % (code, left), (code, left) == (DENIED, 1)


def rises(port):
    admin(port).make_user(50, "all")
    mine = user(port, "all")
    return (mine.insert(PRIV, [50, 50, "role", 31, 4])[0], mine.insert(PRIV, [1, 50, "role", 31, 4])[0],
            mine.update(USER, [1], [["=", 6, 9]])[0] and DENIED, mine.delete(USER, [0])[0],
            mine.insert(USER, [51, 50, "more", "user", {}, [], 0])[0])


@fault("A user with read and write on the universe takes the role `super`, changes admin, deletes guest, makes a user",
       "error 42 each")
def rise_of_a_user(bench):
    text, is_same, ours = beside(bench, rises)
    return text, is_same and set(ours) == {DENIED}


def drops(port):
    boss = admin(port)
    boss.make_space(512)
    boss.make_user(50, "dba")
    mine = user(port, "dba")
    return (mine.delete(INDEX, [512, 0])[0], mine.delete(SPACE, [512])[0], mine.update(SPACE, [512], [["=", 2, "mine"]])[0],
            mine.insert(SPACE, [513, 50, "new", "memtx", 0, {}, []])[0])


@fault("A user with write on `_space` and `_index` drops and renames another's space, makes one", "error 42 each")
def drop_of_anothers_space(bench):
    text, is_same, ours = beside(bench, drops)
    return text, is_same and set(ours) == {DENIED}


@fault("A user with write on `_space` makes itself the owner of another's space", "error 42 (Tarantool lets it)")
def theft_of_a_space(bench):
    port = ladon(bench)
    admin(port).make_space(512)
    admin(port).make_user(50, "dba")
    code = user(port, "dba").update(SPACE, [512], [["=", 1, 50]])[0]
    return str(code), code == DENIED


def inherits(port):
    boss = admin(port)
    boss.make_user(50, "before")
    first = boss.delete(USER, [50])[0]
    boss.delete(PRIV, [50, "universe", 0])
    boss.insert(SPACE, [520, 50, "owned", "memtx", 0, {}, []])
    second = boss.delete(USER, [50])[0]
    boss.delete(SPACE, [520])
    return first, second, boss.delete(USER, [50])[0]


@fault("Delete a user who has rights; who owns a space; who has neither", "44, 44, 0")
def drop_of_a_user(bench):
    text, is_same, ours = beside(bench, inherits)
    return text, is_same and ours == (DROP_USER, DROP_USER, 0)


@fault("A session whose user was dropped, and another user of that number comes with rights to everything: SELECT",
       "error 45: the session has no user")
def session_of_a_dropped_user(bench):
    port = ladon(bench)
    boss = admin(port)
    boss.make_space(512)
    boss.make_user(50, "before")
    left = user(port, "before")
    boss.delete(PRIV, [50, "universe", 0])
    boss.delete(USER, [50])
    boss.make_user(50, "after")
    code = left.select(512, [])[0]
    return str(code), code == NO_SUCH_USER


def odd_grants(port):
    boss = admin(port)
    boss.make_user(50, "one")
    return tuple(boss.insert(PRIV, row)[0] for row in (
        [1, 77, "universe", 0, 1], [77, 50, "space", 280, 1], [1, 50, "space", 999, 1], [1, 50, "spoon", 1, 1],
        [1, 50, "function", 999, 4], [1, 50, "sequence", 999, 1], [1, 50, "role", 999, 4], [1, 50, "role", 50, 4],
        [1, 50, "user", 2, 1], [1, 50, "space", 280, 0], [1, 2, "role", 2, 4]))


@fault("Grants to and by users that are not there, of objects that are not there, of nothing, of a `spoon`, of a role to itself",
       "45, 45, 36, 49, 51, 145, 82, 82, 45, 88, 87")
def grants_of_nothing(bench):
    text, is_same, ours = beside(bench, odd_grants)
    return text, is_same and ours == (45, 45, 36, 49, 51, 145, 82, 82, 45, 88, 87)


def granted_space(port):
    boss = admin(port)
    boss.make_user(50, "one")
    boss.insert(SPACE, [530, 1, "kept", "memtx", 0, {}, []])
    boss.insert(PRIV, [1, 50, "space", 530, 1])
    first = boss.delete(SPACE, [530])
    boss.delete(PRIV, [50, "space", 530])
    return first + boss.delete(SPACE, [530])[:1]


@fault("Drop a space that somebody has a right to; again without that", "11, the space has grants, 0")
def drop_of_a_granted_space(bench):
    text, is_same, ours = beside(bench, granted_space)
    return text, is_same and ours == (DROP_SPACE, "Can't drop space 'kept': the space has grants", 0)


@fault("A user without the role `public` reads `_vspace`", "error 42")
def views_without_rights(bench):
    def reads(port):
        admin(port).make_user(50, "bare", 0)
        return user(port, "bare").select(VSPACE, [280])[:1]
    text, is_same, ours = beside(bench, reads)
    return text, is_same and ours == (DENIED,)


@fault("SELECT after an empty position; the same of a view, with the position of its first tuple", "all tuples; the others")
def empty_position(bench):
    port = ladon(bench)
    boss = admin(port)
    boss.make_space(512)
    for number in range(3):
        boss.insert(512, [number])
    found = boss.ask(SELECT, {0x10: 512, 0x11: 0, 0x12: 100, 0x13: 0, 0x14: 2, 0x20: [], 0x2E: ""})
    boss.send(SELECT, {0x10: VSPACE, 0x11: 0, 0x12: 1, 0x13: 0, 0x14: 2, 0x20: [], 0x1F: True})
    _, first = boss.packet()
    rest = boss.ask(SELECT, {0x10: VSPACE, 0x11: 0, 0x12: 1, 0x13: 0, 0x14: 2, 0x20: [], 0x2E: first.get(0x35) or ""})
    follows = rest[0] == 0 and rest[1][0][0] > first[0x30][0][0]
    return "%d, %s; %s" % (found[0], found[1], "follows" if follows else rest), found == (0, [[0], [1], [2]]) and follows


@fault("WATCH `box.schema`, then a definition: the numbers that the two events carry", "those of the last WATCH before each")
def events_have_numbers(bench):
    port = ladon(bench)
    watcher = admin(port)
    watcher.send(WATCH, {0x57: "box.schema"})
    first, asked = watcher.packet()[0], [watcher.sync]
    watcher.send(WATCH, {0x57: "box.schema"})
    asked.append(watcher.sync)
    watcher.ask(PING, {})
    admin(port).make_space(512)
    second = watcher.packet()[0]
    numbers = [first.get(1), second.get(1)]
    return "%s of %s" % (numbers, asked), numbers == asked and first[0] == second[0] == EVENT


@fault("EVAL and CALL of what needs Lua, without a program; EVAL by a guest", "each says that there is no program; 42")
def what_there_is_not(bench):
    port = ladon(bench)
    boss = admin(port)
    told = [boss.ask(EVAL, {0x27: "return 1", 0x21: []})]
    told += [boss.ask(CALL, {0x22: name, 0x21: []}) for name in ("box.schema.space.create", "crud.select", "mine")]
    guest = Iproto(port).ask(EVAL, {0x27: "return 1", 0x21: []})[0]
    says = [code and "program" in text for code, text in told]
    return "%s; %d" % ([code for code, _ in told], guest), all(says) and guest == DENIED


def calls_without_rights(port):
    boss = admin(port)
    boss.make_space(512)
    assert boss.insert(SPACE, [513, 1, "empty", "memtx", 0, {}, []])[0] == 0
    boss.make_user(100, "caller", 4)
    caller = user(port, "caller")
    names = ["empty:get", "empty:count", "empty:pairs", "s512:get", "s512.index.pk:get", "s512.index.no:get"]
    return tuple(caller.ask(CALL, {0x22: "box.space." + name, 0x21: [1]})[0] for name in names)


@fault("CALL of methods without a right to the space, with and without a primary index", "errors 35, none, 32, 42, 42, 33: the index comes first")
def index_before_rights(bench):
    text, is_same, ours = beside(bench, calls_without_rights)
    return text, is_same and ours == (35, 0, 32, DENIED, DENIED, 33)


def drops_primary(port):
    boss = admin(port)
    boss.make_space(512)
    assert boss.insert(INDEX, [512, 1, "second", "tree", {"unique": True}, [[0, "unsigned"]]])[0] == 0
    assert boss.insert(284, [1, 1, "ids", 1, 1, 9, 1, 0, False])[0] == 0
    assert boss.insert(340, [512, 1, False, 0, ""])[0] == 0
    return tuple(boss.delete(INDEX, [512, index])[0] for index in (0, 1, 0))


@fault("a primary index with a second one beside it and a sequence: dropped, before the second one and after", "errors 17, 12: the second index is named first")
def primary_of_a_sequence(bench):
    text, is_same, ours = beside(bench, drops_primary)
    return text, is_same and ours == (17, 0, 12)
