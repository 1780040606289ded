#!/usr/bin/env python3
"""Records bytes that a real tarantool exchanges, for crates/iproto/tests/fixtures/recorded.txt.

    scripts/record-iproto.py PORT > crates/iproto/tests/fixtures/recorded.txt

Starts `tarantool` on the port with an empty folder, and ends it. One exchange a line:
the exchange's name, what was sent and what came back, in hexadecimal. The greeting is the
first line, with nothing sent. The server's uuid and salt differ from run to run.
"""
import base64
import hashlib
import socket
import struct
import subprocess
import sys
import tempfile
import time

SCRIPT = """
box.cfg{{listen = '127.0.0.1:{port}', log = 'tarantool.log'}}
box.schema.user.grant('guest', 'super')
box.schema.user.create('alice', {{password = 'secret'}})
box.schema.space.create('numbers', {{id = 512}})
box.space.numbers:create_index('primary')
box.space.numbers:create_index('second', {{parts = {{2, 'string'}}, unique = false}})
function echo(...) return ... end
require('fiber').sleep(600)
"""


def pack(value):
    if value is None:
        return b"\xc0"
    if isinstance(value, bool):
        return b"\xc3" if value else b"\xc2"
    if isinstance(value, int):
        if 0 <= value < 0x80:
            return bytes([value])
        return b"\xcf" + struct.pack(">Q", value) if value >= 0 else b"\xd3" + struct.pack(">q", value)
    if isinstance(value, str):
        value = value.encode()
        return b"\xd9" + bytes([len(value)]) + value
    if isinstance(value, bytes):
        return b"\xc4" + bytes([len(value)]) + value
    if isinstance(value, list):
        return bytes([0x90 | len(value)]) + b"".join(map(pack, value))
    return bytes([0x80 | len(value)]) + b"".join(pack(k) + pack(v) for k, v in value.items())


def frame(packet):
    return b"\xce" + struct.pack(">I", len(packet)) + packet


def request(kind, body=None, sync=7):
    return frame(pack({0: kind, 1: sync}) + (b"" if body is None else pack(body)))


def requests(salt):
    """Every exchange: name and bytes. SPACE_ID 16, INDEX_ID 17, LIMIT 18, ITERATOR 20, KEY 32 ..."""
    hash1 = hashlib.sha1(b"secret").digest()
    mask = hashlib.sha1(salt[:20] + hashlib.sha1(hash1).digest()).digest()
    scramble = bytes(a ^ b for a, b in zip(hash1, mask))
    select = lambda key: {16: 512, 17: 0, 18: 10, 19: 0, 20: 0, 32: key}
    return [
        ("ping", request(64)),
        ("ping with a body", request(64, {})),
        ("insert", request(2, {16: 512, 33: [1, "one"]})),
        ("insert again", request(2, {16: 512, 33: [1, "one"]})),
        ("insert without a tuple", request(2, {16: 512})),
        ("insert of no array", request(2, {16: 512, 33: 1})),
        ("replace", request(3, {16: 512, 33: [2, "two", None, True, -5, b"bin"]})),
        ("select one", request(1, select([1]))),
        ("select none", request(1, select([9]))),
        ("select all", request(1, {16: 512, 17: 0, 18: 10, 19: 0, 20: 2, 32: []})),
        ("select without anything", request(1, {})),
        ("select without a body", request(1)),
        ("select of no space", request(1, {16: 999, 18: 1, 32: []})),
        ("select with a bad iterator", request(1, {16: 512, 18: 1, 20: 99, 32: [1]})),
        ("select with a string for the space", request(1, {16: "x", 18: 1, 32: [1]})),
        ("select with a key that is no number", request(1, {16: 512, "x": 1, 18: 1, 32: [1]})),
        ("update", request(4, {16: 512, 17: 0, 21: 0, 32: [1], 33: [["=", 1, "uno"]]})),
        ("upsert", request(9, {16: 512, 21: 0, 33: [3, "three"], 40: [["=", 1, "drei"]]})),
        ("delete", request(5, {16: 512, 17: 0, 32: [2]})),
        ("call", request(10, {34: "echo", 33: [1, "two", [3]]})),
        ("call without arguments", request(10, {34: "echo"})),
        ("call of 1.6", request(6, {34: "echo", 33: [1, [2]]})),
        ("call of nothing", request(10, {33: []})),
        ("call of no function", request(10, {34: "nowhere", 33: []})),
        ("call without a body", request(10)),
        ("eval", request(8, {39: "return 1, ...", 33: [2]})),
        ("eval of nothing", request(8, {33: []})),
        ("eval that fails", request(8, {39: "box.error{code = 1000, reason = 'no'}", 33: []})),
        ("nop", request(12)),
        ("unknown type", request(123, {})),
        ("unknown large type", request(1 << 33, {})),
        ("header that is no map", frame(pack([0, 64]))),
        ("header with a wrong type", frame(pack({1: 7, 0: "x"}))),
        ("body that is no map", request(1, [])),
        ("two bodies", frame(pack({0: 64, 1: 7}) + pack({}) + pack({}))),
        ("body cut off", frame(pack({0: 1, 1: 7}) + b"\x82\x10")),
        ("short length", b"\x05" + pack({0: 64, 1: 7})),
        ("length of 8 bytes", b"\xcf" + struct.pack(">Q", 5) + pack({0: 64, 1: 7})),
        ("auth of an unknown method", request(7, {35: "alice", 33: ["md5", "x"]})),
        ("auth with a short scramble", request(7, {35: "alice", 33: ["chap-sha1", "x"]})),
        ("auth without a tuple", request(7, {35: "alice"})),
        ("auth with an empty tuple", request(7, {35: "alice", 33: []})),
        ("auth with a wrong scramble", request(7, {35: "alice", 33: ["chap-sha1", b"x" * 20]})),
        ("auth", request(7, {35: "alice", 33: ["chap-sha1", scramble]})),
        ("auth back to guest", request(7, {35: "guest", 33: []})),
        ("length that is no number", b"\x80"),
    ]


def receive(stream, count):
    data = b""
    while len(data) < count:
        got = stream.recv(count - len(data))
        if not got:
            break
        data += got
    return data


def main():
    port = int(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        script = folder + "/init.lua"
        with open(script, "w") as file:
            file.write(SCRIPT.format(port=port))
        server = subprocess.Popen(["tarantool", script], cwd=folder)
        try:
            record(port)
        finally:
            server.kill()
            server.wait()


def record(port):
    for _ in range(100):
        try:
            stream = socket.create_connection(("127.0.0.1", port))
            break
        except OSError:
            time.sleep(0.1)
    time.sleep(0.5)
    greeting = receive(stream, 128)
    print("# Made by scripts/record-iproto.py:", greeting[:20].decode())
    print("greeting||" + greeting.hex())
    for name, sent in requests(base64.b64decode(greeting[64:108])):
        stream.settimeout(5)
        stream.sendall(sent)
        head = receive(stream, 5)
        reply = head + (receive(stream, struct.unpack(">I", head[1:])[0]) if len(head) == 5 else b"")
        print(f"{name}|{sent.hex()}|{reply.hex()}")


main()
