"""Requests of IPROTO, Tarantool's protocol, for the measuring scripts."""
import base64
import hashlib
import struct

from servers import connect

SELECT, INSERT, REPLACE, UPDATE, DELETE, AUTH, EVAL, CALL, BEGIN, COMMIT, ROLLBACK, PING = 1, 2, 3, 4, 5, 7, 8, 10, 14, 15, 16, 64
REQUEST_TYPE, SYNC, STREAM_ID = 0, 1, 10
SPACE_ID, INDEX_ID, LIMIT, OFFSET, ITERATOR, KEY, TUPLE, FUNCTION_NAME, USER_NAME, EXPRESSION = 16, 17, 18, 19, 20, 32, 33, 34, 35, 39


def pack(value):
    if value is None or isinstance(value, bool):
        return {None: b"\xc0", False: b"\xc2", True: b"\xc3"}[value]
    if isinstance(value, int):
        return bytes([value]) if 0 <= value < 0x80 else struct.pack(">BQ", 0xCF, value)
    if isinstance(value, str):
        return struct.pack(">BI", 0xDB, len(value)) + value.encode()
    if isinstance(value, (list, tuple)):
        return struct.pack(">BI", 0xDD, len(value)) + b"".join(map(pack, value))
    return struct.pack(">BI", 0xDF, len(value)) + b"".join(pack(k) + pack(v) for k, v in value.items())


def packet(kind, body, stream=0, sync=1):
    content = pack({REQUEST_TYPE: kind, SYNC: sync, STREAM_ID: stream}) + pack(body)
    return struct.pack(">BI", 0xCE, len(content)) + content


def code_of(reply):
    """The code of an error that a reply is; 0 of none."""
    if reply[:3] != b"\x83\x00\xce":
        raise ValueError("no reply: %r" % reply)
    return struct.unpack(">I", reply[3:7])[0] & 0x7FFF


def sync_of(reply):
    """The number of the request that this is the reply to."""
    code_of(reply)
    if reply[7:9] != b"\x01\xcf":
        raise ValueError("no number: %r" % reply)
    return struct.unpack(">Q", reply[9:17])[0]


class Iproto:
    """A connection of the user `admin`."""

    def __init__(self, port, password):
        self.socket = connect(port)
        greeting = self.read(128)
        salt = base64.b64decode(greeting[64:108])[:20]
        once = hashlib.sha1(password.encode()).digest()
        key = hashlib.sha1(salt + hashlib.sha1(once).digest()).digest()
        scramble = bytes(a ^ b for a, b in zip(once, key))
        credentials = b"\x92\xa9chap-sha1\xb4" + scramble
        body = b"\x82" + pack(USER_NAME) + pack("admin") + pack(TUPLE) + credentials
        content = pack({REQUEST_TYPE: AUTH, SYNC: 1}) + body
        self.call(struct.pack(">BI", 0xCE, len(content)) + content)

    def read(self, length):
        data = b""
        while len(data) < length:
            part = self.socket.recv(length - len(data))
            if not part:
                raise EOFError("the server has closed the connection")
            data += part
        return data

    def reply(self):
        """The next reply, header and body; the header begins with the code: 0 for no error."""
        data = self.any_reply()
        if code_of(data):
            raise ValueError("an error: %r" % data)
        return data

    def any_reply(self):
        """The next reply, header and body, also of an error."""
        return self.read(struct.unpack(">BI", self.read(5))[1])

    def call(self, *packets):
        """Sends requests and reads their replies."""
        for first in range(0, len(packets), 500):
            self.socket.sendall(b"".join(packets[first:first + 500]))
            for _ in packets[first:first + 500]:
                self.reply()

    def make_space(self, number, name):
        """A space with a primary key of one number."""
        self.call(packet(INSERT, {SPACE_ID: 280, TUPLE: [number, 1, name, "memtx", 0, {}, []]}))
        index = [number, 0, "pk", "tree", {"unique": True}, [[0, "unsigned"]]]
        self.call(packet(INSERT, {SPACE_ID: 288, TUPLE: index}))
