"""A small IPROTO client, which keeps MessagePack as it is sent."""
import base64
import hashlib
import socket
import struct

import msgpack

SELECT, INSERT, REPLACE, DELETE, AUTH = 1, 2, 3, 5, 7


def pairs(items):
    """A map, or a list of pairs where arrays or maps are keys."""
    try:
        return dict(items)
    except TypeError:
        return items


class IprotoError(Exception):
    """The server's error."""


class Packed:
    """A value that is MessagePack already."""

    def __init__(self, packed):
        self.packed = packed


class Client:
    """A connection to a unix socket or a TCP port."""

    def __init__(self, where):
        if isinstance(where, str):
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.connect(where)
        else:
            self.socket = socket.create_connection(where)
        greeting = self._read(128)
        self.salt = base64.b64decode(greeting[64:108])[:20]
        self.sync = 0

    def _read(self, count):
        data = b""
        while len(data) < count:
            more = self.socket.recv(count - len(data))
            if not more:
                raise ConnectionError("the server closed the connection")
            data += more
        return data

    def ask(self, kind, body):
        """Sends one request, and gives the data of its reply."""
        self.sync += 1
        packet = msgpack.packb({0: kind, 1: self.sync}) + bytes([0x80 | len(body)])
        for key, value in body.items():
            packet += msgpack.packb(key)
            packet += value.packed if isinstance(value, Packed) else msgpack.packb(
                value, use_bin_type=True, unicode_errors="surrogateescape")
        self.socket.sendall(b"\xce" + struct.pack(">I", len(packet)) + packet)
        size = struct.unpack(">I", self._read(5)[1:])[0]
        unpacker = msgpack.Unpacker(raw=False, strict_map_key=False, unicode_errors="surrogateescape",
                                    object_pairs_hook=pairs)
        unpacker.feed(self._read(size))
        header, reply = unpacker.unpack(), unpacker.unpack()
        if header[0]:
            raise IprotoError(reply.get(0x31))
        return reply.get(0x30)

    def login(self, user, password):
        """Authenticates by chap-sha1."""
        first = hashlib.sha1(password.encode()).digest()
        mask = hashlib.sha1(self.salt + hashlib.sha1(first).digest()).digest()
        self.ask(AUTH, {0x23: user, 0x21: ["chap-sha1", bytes(a ^ b for a, b in zip(first, mask))]})

    def select(self, space):
        return self.ask(SELECT, {0x10: space, 0x11: 0, 0x12: 0xFFFFFFFF, 0x13: 0, 0x14: 2, 0x20: []})

    def replace(self, space, row):
        return self.ask(REPLACE, {0x10: space, 0x21: row})

    def delete(self, space, key):
        return self.ask(DELETE, {0x10: space, 0x11: 0, 0x20: key})
